"""When training stops, and which weights it keeps: the published rules, patience, window and
plateau.

Rules speak of all replicas at once, in tensors (r,), and ask the host nothing: a GPU follows them
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor

from gcnii.train.run import Measures, Run

if TYPE_CHECKING:
    from gcnii.train.recipe import Recipe

Monitor = Literal[
    "val_loss", "val_score", "val_score_ties", "val_score_loss", "val_either", "noisy_loss", "last"
]


class Validation(NamedTuple):
    """Validation losses and scores (r,)."""

    loss: Tensor
    score: Tensor


@dataclass(frozen=True)
class Rule:
    """`keep`: whether this epoch's weights are better than those kept; `reset`: whether patience
    starts anew.

    Both are asked with this epoch's validation, that of the weights kept, and the best ever seen of
    each.
    """

    keep: Callable[[Validation, Validation, Validation], Tensor]
    reset: Callable[[Validation, Validation, Validation], Tensor]


def _either(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return (now.loss <= best.loss) | (now.score >= best.score)


def _both(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return (now.loss <= best.loss) & (now.score >= best.score)


def _lower(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return now.loss < kept.loss


def _as_low(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return now.loss <= kept.loss


def _higher(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return now.score > kept.score


def _as_high(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return now.score >= kept.score


def _higher_or_lower(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return (now.score > kept.score) | (now.score == kept.score) & (now.loss < kept.loss)


def _always(now: Validation, kept: Validation, best: Validation) -> Tensor:
    return torch.ones_like(now.loss, dtype=torch.bool)


RULES: dict[Monitor, Rule] = {
    # GCNII on citations and web pages
    "val_loss": Rule(_lower, _lower),
    # GCNII on PPI; GaAN
    "val_score": Rule(_higher, _higher),
    # GDC: of equal scores the last one
    "val_score_ties": Rule(_as_high, _as_high),
    # PPNP and APPNP: patience as GAT, but the highest score, and among equals the lowest loss
    "val_score_loss": Rule(_higher_or_lower, _either),
    # GAT: patience starts anew when loss or score is as good as ever; weights are kept when both
    # are
    "val_either": Rule(_both, _either),
    # DropEdge: the validation loss of the training pass, dropout and all
    "noisy_loss": Rule(_as_low, _as_low),
    # SGC, GraphSAGE, Cluster-GCN
    "last": Rule(_always, _always),
}


class Numbers(NamedTuple):
    """One (r,) for each field of `Run` that training changes."""

    val_loss: Tensor
    val: Tensor
    test: Tensor
    best_epoch: Tensor
    epochs: Tensor
    fresh_epoch: Tensor
    lowest: Tensor
    highest: Tensor
    lr_scale: Tensor
    stale: Tensor
    stopped: Tensor


class StoppingState:
    """All of it changes in place and without a question to the host, so that a captured epoch can
    do it.

    table    (numbers, r) float64, in which whole numbers are exact too
    history  (epochs, measures, r) float64: what the last epochs measured, the latest last
    clock    () int32, epochs done
    """

    def __init__(self, recipe: Recipe, runs: Sequence[Run], device: torch.device, epochs: int):
        self.recipe = recipe
        self.table = (
            torch.tensor([_numbers(run) for run in runs], dtype=torch.float64)
            .T.contiguous()
            .to(device)
        )
        history = torch.zeros(
            max(recipe.window, epochs), len(Measures._fields), len(runs), dtype=torch.float64
        )
        for i, run in enumerate(runs):
            for ago, (_, loss, _) in enumerate(reversed(run.curve[-len(history) :]), 1):
                history[-ago, 1, i] = loss
        self.history = history.to(device)
        self.clock = torch.tensor(max(run.epochs for run in runs), dtype=torch.int32, device=device)

    @property
    def scales(self) -> Tensor | None:
        """(r,) by which the step sizes are multiplied, where the recipe ever lowers them."""
        return self.table[Numbers._fields.index("lr_scale")] if self.recipe.plateau else None

    def update(self, measures: Tensor) -> Tensor:
        """Take in an epoch's (measures, r); which replicas' weights are to be kept (r,).

        A replica that has stopped keeps its numbers, whatever else it measures.
        """
        recipe, rule, old = self.recipe, RULES[self.recipe.monitor], Numbers(*self.table.unbind())
        now, kept = Validation(measures[1], measures[2]), Validation(old.val_loss, old.val)
        best = Validation(old.lowest, old.highest)
        running = old.stopped == 0
        keep = rule.keep(now, kept, best) & running
        fresh_epoch = torch.where(rule.reset(now, kept, best), old.epochs, old.fresh_epoch)
        epochs = old.epochs + 1
        stopped = (epochs >= recipe.epochs) | (old.epochs - fresh_epoch >= recipe.patience)
        if recipe.window:
            # Losses in float32 are summed exactly in float64, in whatever order a device does it.
            mean = self.history[-recipe.window :, 1].sum(0) / recipe.window
            stopped |= (epochs > max(recipe.window, recipe.window_from)) & (now.loss > mean)
        val_loss, val, test = torch.where(keep, measures[1:], self.table[:3]).unbind()
        lr_scale, stale = self._follow_plateau(old, now)
        new = Numbers(
            val_loss,
            val,
            test,
            best_epoch=torch.where(keep, old.epochs, old.best_epoch),
            epochs=epochs,
            fresh_epoch=fresh_epoch,
            lowest=torch.fmin(old.lowest, now.loss),
            highest=torch.fmax(old.highest, now.score),
            lr_scale=lr_scale,
            stale=stale,
            stopped=stopped.double(),
        )
        torch.where(running, torch.stack(new), self.table, out=self.table)
        self.history.copy_(torch.cat([self.history[1:], measures[None]]))
        self.clock.add_(1)
        return keep

    def _follow_plateau(self, old: Numbers, now: Validation) -> tuple[Tensor, Tensor]:
        """The factor of the step size, and the epochs since it was lowered or validation was
        better.
        """
        recipe = self.recipe
        if not recipe.plateau:
            return old.lr_scale, old.stale
        by_score = recipe.monitor.startswith("val_score")
        better = now.score > old.highest if by_score else now.loss < old.lowest
        stale = (old.stale + 1) * ~better
        due = stale > recipe.plateau
        lower = (old.lr_scale * recipe.plateau_factor).clamp(min=recipe.plateau_floor / recipe.lr)
        return torch.where(due, lower, old.lr_scale), stale * ~due

    def narrow(self, rows: Tensor) -> None:
        """Go on with some of the replicas."""
        self.table, self.history = (
            self.table[:, rows].contiguous(),
            self.history[..., rows].contiguous(),
        )

    def fetch(self, epochs: int) -> tuple[list[list[Measures]], list[dict[str, Any]]]:
        """The measures of the last epochs, for each replica, and how each stands: one transfer,
        which waits.
        """
        rows = torch.cat([self.history[-epochs:].flatten(0, 1), self.table]).tolist()
        width = len(Measures._fields)
        measures = [zip(*rows[i * width : (i + 1) * width], strict=True) for i in range(epochs)]
        numbers = [_fields(own) for own in zip(*rows[epochs * width :], strict=True)]
        return [[Measures(*own) for own in epoch] for epoch in measures], numbers


def _numbers(run: Run) -> list[float]:
    numbers = {name: float(getattr(run, name)) for name in Numbers._fields}
    # With nothing kept yet, any score is higher.
    return list((numbers if run.best_epoch >= 0 else numbers | {"val": -inf}).values())


def _fields(numbers: Sequence[float]) -> dict[str, Any]:
    """The fields of `Run`, from its numbers in the table."""
    fields: dict[str, Any] = dict(zip(Numbers._fields, numbers, strict=True))
    fields |= {name: int(fields[name]) for name in ("best_epoch", "epochs", "fresh_epoch", "stale")}
    return fields | {
        "stopped": fields["stopped"] > 0,
        "val": fields["val"] if fields["best_epoch"] >= 0 else nan,
    }
