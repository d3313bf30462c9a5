"""One run: a seed on a split, its curve, and its best epoch by validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import Any, Literal, NamedTuple


class Measures(NamedTuple):
    """What one epoch measured on one replica."""

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
    curve: list[tuple[float, float, float]] = field(default_factory=list, repr=False)  # train_loss, val_loss, val

    def record(self, now: Measures, monitor: Literal["val_loss", "val_score", "last"]) -> bool:
        """Take in an epoch; whether it is the best so far (strictly)."""
        self.curve.append((now.train_loss, now.val_loss, now.val))
        self.epochs += 1
        better = self._is_better(now, monitor)
        if better:
            self.test, self.val, self.val_loss, self.best_epoch = now.test, now.val, now.val_loss, self.epochs - 1
        return better

    def _is_better(self, now: Measures, monitor: Literal["val_loss", "val_score", "last"]) -> bool:
        match monitor:
            case "val_loss":
                return now.val_loss < self.val_loss
            case "val_score":
                return self.best_epoch < 0 or now.val > self.val
            case "last":
                return True

    def finished(self, epochs: int, patience: int) -> bool:
        """Whether it has run out of epochs or of patience."""
        return self.epochs >= epochs or self.epochs - 1 - self.best_epoch >= patience

    def summary(self) -> dict[str, Any]:
        """The run without its curve, as it stands in JSON."""
        fields = ("seed", "split", "test", "val", "val_loss", "best_epoch", "epochs", "seconds")
        return {name: _plain(getattr(self, name)) for name in fields}


def _plain(value: float) -> float | None:
    return None if value != value else value  # JSON has no NaN
