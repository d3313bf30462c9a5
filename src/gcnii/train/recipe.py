"""How a model is trained.  Each setting is declared here once; the command line and the bundle read
the fields.
"""

from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import torch

from gcnii.dropout import DropForm
from gcnii.errors import InputError
from gcnii.propagation import LONGEST_HEAT, Diffusion, Direction, Geometry, Loops, Norm
from gcnii.train.batches import Batching, History
from gcnii.train.stopping import Monitor

Memory = Literal["auto", "keep", "recompute"]
Precision = Literal["float32", "float64", "tf32", "bfloat16"]
NOT_NEGATIVE = (
    *("clip", "window", "window_from", "plateau", "plateau_floor"),
    *("heat_time", "top_k", "threshold", "batch_size"),
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The defaults are the paper's for Cora (section 6.1)."""

    lr: Annotated[float, "step size of Adam"] = 0.01
    decay_conv: Annotated[float, "L2 penalty on the convolutions (the paper's L2_c)"] = 0.01
    decay_dense: Annotated[float, "L2 penalty on the two dense layers (the paper's L2_d)"] = 5e-4
    clip: Annotated[float, "clip every entry of the gradient to ± this; 0 for no clipping"] = 0.0
    epochs: Annotated[int, "train for at most so many epochs"] = 1500
    patience: Annotated[int, "stop after so many epochs without a better validation"] = 100
    monitor: Annotated[
        Monitor, "what a better validation is; `last` keeps the last epoch's weights"
    ] = "val_loss"
    window: Annotated[
        int, "also stop when the validation loss exceeds the mean of so many epochs before; 0 never"
    ] = 0
    window_from: Annotated[int, "the epoch from which on the window counts"] = 0
    plateau: Annotated[
        int, "after so many epochs without a better validation, lower the step size; 0 never"
    ] = 0
    plateau_factor: Annotated[float, "by which the step size is multiplied then"] = 0.5
    plateau_floor: Annotated[float, "the smallest step size"] = 0.0
    direction: Annotated[
        Direction, "in a directed graph, gather from out-, in- or both neighbours"
    ] = "out"
    loops: Annotated[
        Loops, "whether the graph's own self-loops count beside the one that P̃ adds"
    ] = "keep"
    norm: Annotated[Norm, "how the propagation matrix is normalised"] = "symmetric"
    diffusion: Annotated[Diffusion, "replace the links by a diffusion over them (GDC)"] = "none"
    teleport: Annotated[float, "chance to go back to the start in each step of a ppr diffusion"] = (
        0.05
    )
    heat_time: Annotated[float, "how long a heat diffusion lasts"] = 5.0
    top_k: Annotated[int, "keep a diffusion's so many largest links of a node; 0: by threshold"] = (
        128
    )
    threshold: Annotated[
        float, "with top_k 0, keep a diffusion's links of at least this weight"
    ] = 1e-4
    geometry: Annotated[
        Geometry, "embedding in a plane that adds neighbours and sorts them (Geom-GCN)"
    ] = "none"
    drop_edge: Annotated[float, "share of links left out in each epoch (DropEdge)"] = 0.0
    drop_form: Annotated[
        DropForm, "leave out links as stored, one direction alone, or as pairs"
    ] = "entries"
    batches: Annotated[
        Batching, "one step sees the full graph, whole parts of it, clusters, or neighbours"
    ] = "full"
    batch_size: Annotated[
        int, "graphs, clusters or nodes a step; 0 is 1 graph, 1 cluster or 512 nodes"
    ] = 0
    clusters: Annotated[int, "into how many clusters the graph is cut"] = 50
    fanout: Annotated[
        tuple[int, ...], "neighbours drawn for a node, layer by layer from the last; 0 is all"
    ] = (10, 25)
    history: Annotated[
        History, "old activations that make up for neighbours not drawn (VR-GCN)"
    ] = "none"
    memory: Annotated[
        Memory, "keep activations for backward, or recompute them; auto: as memory allows"
    ] = "auto"
    precision: Annotated[
        Precision, "of the numbers; on a GPU, tf32 or bfloat16 round products for speed"
    ] = "float32"

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        object.__setattr__(self, "fanout", tuple(self.fanout))
        for name in ("decay_conv", "decay_dense"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(
                    f"{name} is an L2 penalty and must be 0 or more, got {getattr(self, name)}"
                )
        if not 0 < self.lr < float("inf"):
            raise InputError(f"lr is a step size and must be above 0, got {self.lr}")
        for name in ("epochs", "patience"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"{name} counts epochs and must be at least 1, got {getattr(self, name)}"
                )
        if not 0 <= self.drop_edge < 1:
            raise InputError(
                f"drop_edge is a share of links and must lie in [0, 1), got {self.drop_edge}"
            )
        if self.clusters < 1:
            raise InputError(f"clusters must be at least 1, got {self.clusters}")
        for name in NOT_NEGATIVE:
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{name} must be 0 or more, got {getattr(self, name)}")
        if self.heat_time > LONGEST_HEAT:
            raise InputError(f"heat_time can be at most {LONGEST_HEAT}, got {self.heat_time}")
        for name in ("plateau_factor", "teleport"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")
        if not self.fanout or min(self.fanout) < 0:
            raise InputError(f"fanout must be numbers of 0 or more, one a layer, got {self.fanout}")
        for name, choices in _choices().items():
            if getattr(self, name) not in choices:
                raise InputError(
                    f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}"
                )
        if self.monitor == "noisy_loss" and self.batches != "full":
            raise InputError(
                f"noisy_loss needs the full graph in one batch, got {self.batches}; monitor val_loss"
            )

    @property
    def dtype(self) -> torch.dtype:
        """`precision` as torch names it."""
        return torch.float64 if self.precision == "float64" else torch.float32


def _choices() -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(Recipe)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


RECIPE_FIELDS = tuple(field.name for field in fields(Recipe))
