"""One run: a seed on a split, its curve, and its best epoch by validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite, nan
from statistics import fmean
from typing import Any, NamedTuple

from gcnii.train.recipe import Recipe
from gcnii.train.stopping import RULES, Validation


class Measures(NamedTuple):
    """What one epoch measured on one replica; the validation loss is the one that the recipe monitors."""

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
    stale: int = 0  # epochs since the last better validation, or since the step size was lowered
    curve: list[tuple[float, float, float]] = field(default_factory=list, repr=False)  # train_loss, val_loss, val

    def record(self, now: Measures, recipe: Recipe) -> bool:
        """Take in an epoch; whether its weights are to be kept."""
        rule = RULES[recipe.monitor]
        new, best = Validation(now.val_loss, now.val), Validation(self.lowest, self.highest)
        kept = Validation(self.val_loss, self.val) if self.best_epoch >= 0 else Validation(inf, -inf)
        self.curve.append((now.train_loss, now.val_loss, now.val))
        self.epochs += 1
        keep = rule.keep(new, kept, best)
        if rule.reset(new, kept, best):
            self.fresh_epoch = self.epochs - 1
        if keep:
            self.test, self.val, self.val_loss, self.best_epoch = now.test, now.val, now.val_loss, self.epochs - 1
        self._follow_plateau(new, best, recipe)
        self.lowest, self.highest = min(self.lowest, now.val_loss), max(self.highest, now.val)
        return keep

    def _follow_plateau(self, new: Validation, best: Validation, recipe: Recipe) -> None:
        by_score = recipe.monitor.startswith("val_score")
        better = new.score > best.score if by_score else new.loss < best.loss
        self.stale = 0 if better else self.stale + 1
        if recipe.plateau and self.stale > recipe.plateau:
            self.lr_scale = max(self.lr_scale * recipe.plateau_factor, recipe.plateau_floor / recipe.lr)
            self.stale = 0

    def finished(self, recipe: Recipe) -> bool:
        """Whether it has run out of epochs or of patience."""
        if self.epochs >= recipe.epochs or self.epochs - 1 - self.fresh_epoch >= recipe.patience:
            return True
        if not recipe.window or self.epochs <= max(recipe.window, recipe.window_from):
            return False
        losses = [loss for _, loss, _ in self.curve[-recipe.window - 1 :]]
        return losses[-1] > fmean(losses[:-1])

    def summary(self) -> dict[str, Any]:
        """The run without its curve, as it stands in JSON."""
        fields = ("seed", "split", "test", "val", "val_loss", "best_epoch", "epochs", "seconds")
        return {name: _plain(getattr(self, name)) for name in fields}


def _plain(value: float) -> float | None:
    return None if value != value else value  # JSON has no NaN
