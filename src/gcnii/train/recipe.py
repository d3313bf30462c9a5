"""How a model is trained.  Each setting is declared here once; the command line and the bundle read the fields."""

from dataclasses import dataclass, fields
from typing import Annotated, Literal, get_args, get_type_hints

import torch

from gcnii.propagation import Direction, Loops


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The defaults are the paper's for Cora (section 6.1)."""

    lr: Annotated[float, "step size of Adam"] = 0.01
    decay_conv: Annotated[float, "L2 penalty on the convolutions (the paper's L2_c)"] = 0.01
    decay_dense: Annotated[float, "L2 penalty on the two dense layers (the paper's L2_d)"] = 5e-4
    epochs: Annotated[int, "train for at most so many epochs"] = 1500
    patience: Annotated[int, "stop after so many epochs without a better validation"] = 100
    monitor: Annotated[
        Literal["val_loss", "val_score", "last"], "what a better validation is; `last` keeps the last epoch's weights"
    ] = "val_loss"
    direction: Annotated[Direction, "in a directed graph, gather from out-, in- or both neighbours"] = "out"
    loops: Annotated[Loops, "whether the graph's own self-loops count beside the one that P̃ adds"] = "keep"
    precision: Annotated[Literal["float32", "float64"], "of weights and activations"] = "float32"

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        for name in ("decay_conv", "decay_dense"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} is an L2 penalty and must be 0 or more, got {getattr(self, name)}")
        if not 0 < self.lr < float("inf"):
            raise ValueError(f"lr is a step size and must be above 0, got {self.lr}")
        for name in ("epochs", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} counts epochs and must be at least 1, got {getattr(self, name)}")
        hints = get_type_hints(Recipe)
        for name in ("monitor", "direction", "loops", "precision"):
            if getattr(self, name) not in get_args(hints[name]):
                words = ", ".join(get_args(hints[name]))
                raise ValueError(f"{name} must be one of {words}, got {getattr(self, name)!r}")

    @property
    def dtype(self) -> torch.dtype:
        """`precision` as torch names it."""
        return torch.float64 if self.precision == "float64" else torch.float32


RECIPE_FIELDS = tuple(field.name for field in fields(Recipe))
