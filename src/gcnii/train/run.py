"""One run: a seed on a split, its curve, and its best epoch by validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import Any, NamedTuple

from gcnii.files import json_value


class Measures(NamedTuple):
    """What one epoch measured on one replica; the validation loss is the one that the recipe
    monitors.
    """

    train_loss: float
    val_loss: float
    val: float
    test: float

    @property
    def finite(self) -> bool:
        """Whether training can go on."""
        return isfinite(self.train_loss) and isfinite(self.val_loss)


@dataclass
class Run:
    """`test` is the score of the weights that were best on validation; no one looks at it before."""

    seed: int
    split: int = 0
    test: float = nan
    val: float = nan
    val_loss: float = inf
    best_epoch: int = -1
    epochs: int = 0
    seconds: float = 0.0
    lowest: float = inf  # validation loss and
    highest: float = -inf  # validation score of any epoch
    fresh_epoch: int = -1  # when patience last started anew
    lr_scale: float = 1.0
    # with a plateau, epochs since the last better validation, or since the step size was lowered
    stale: int = 0
    stopped: bool = False  # out of epochs or of patience
    # train_loss, val_loss, val
    curve: list[tuple[float, float, float]] = field(default_factory=list, repr=False)

    def summary(self) -> dict[str, Any]:
        """The run without its curve, as it stands in JSON."""
        fields = ("seed", "split", "test", "val", "val_loss", "best_epoch", "epochs", "seconds")
        return {name: json_value(getattr(self, name)) for name in fields}
