"""A run, which is a seed on a split, and when it ends.

Which weights it keeps, and when its learning rate falls, is decided here, too.
The published rules, patience, window and plateau, whose settings are fields of Recipe.  Vectorised
over replicas, in tensors (r,); no host synchronisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from gcnii.errors import GraphError, InputError
from gcnii.files import Document, json_value
from gcnii.graph import Graph
from gcnii.targets.scores import RARE, Metric, sign_of

if TYPE_CHECKING:
    from gcnii.train.recipe import Recipe


class Measures(NamedTuple):
    """What one epoch measured on one replica; the validation loss is the one monitored."""

    train_loss: float
    val_loss: float
    val: float
    test: float

    @property
    def finite(self) -> bool:
        """Whether training can go on."""
        return isfinite(self.train_loss) and isfinite(self.val_loss)


Number = TypeVar("Number", Tensor, float)


class Numbers(NamedTuple, Generic[Number]):
    """Where runs in training stand: what stopping decides of a `Run`.

    One tensor (r,) each, of all replicas; or one number each, of a run.
    """

    val_loss: Number
    val: Number
    test: Number
    best_epoch: Number
    epochs: Number
    fresh_epoch: Number
    lowest: Number
    highest: Number
    lr_scale: Number
    stale: Number
    stopped: Number


@dataclass
class Run:
    """One seed on one split.

    test         score of the weights that were best on validation, never used to choose them
    stopped      whether it is out of epochs or of patience
    curve        train_loss, val_loss and val of each epoch
    setting      the place of its settings, where a fit tries several
    threshold    the probability above which it predicts a label, where one was chosen
    temperature  by which its scores are divided before they become probabilities, where one was
                 found on its validation nodes
    weights      (k,) of the classes, by which its probabilities are divided, where its loss
                 weighed them; with several labels per node, the odds of each label are divided
    units        (2, q) the mean and the deviation of the numbers that it was trained to predict,
                 which turn its scores back into units

    What stopping remembers, so that a checkpoint can resume it:
    lowest, highest   validation loss and score of any epoch
    fresh_epoch  when patience last started again
    lr_scale     by which a plateau has lowered the learning rate
    stale        with a plateau, epochs since validation improved or the learning rate fell
    """

    seed: int
    split: int = 0
    test: float = nan
    val: float = nan
    val_loss: float = inf
    best_epoch: int = -1
    epochs: int = 0
    seconds: float = 0.0
    stopped: bool = False
    curve: list[tuple[float, float, float]] = field(default_factory=list, repr=False)
    setting: int = 0
    threshold: float | None = None
    temperature: float | None = None
    weights: Sequence[float] | None = None
    units: Sequence[Sequence[float]] | None = None
    lowest: float = field(default=inf, repr=False)
    highest: float = field(default=-inf, repr=False)
    fresh_epoch: int = field(default=-1, repr=False)
    lr_scale: float = field(default=1.0, repr=False)
    stale: int = field(default=0, repr=False)

    def stand(self, now: Numbers[float]) -> None:
        """Update the record with where the run stands."""
        self.val_loss, self.test, self.stopped = now.val_loss, now.test, now.stopped > 0
        self.best_epoch, self.epochs = int(now.best_epoch), int(now.epochs)
        self.val = now.val if self.best_epoch >= 0 else nan
        self.lowest, self.highest, self.lr_scale = now.lowest, now.highest, now.lr_scale
        self.fresh_epoch, self.stale = int(now.fresh_epoch), int(now.stale)

    @property
    def key(self) -> tuple[int, int]:
        """Which run of a fit it is."""
        return self.setting, self.seed

    def summary(self) -> Document:
        """The run without its curve, as JSON has it."""
        fields = ("seed", "split", "test", "val", "val_loss", "best_epoch", "epochs", "seconds")
        later = ("threshold", "temperature", "weights", "units")  # found after training, if wanted
        found = {name: one for name in later if (one := getattr(self, name)) is not None}
        return {name: json_value(getattr(self, name)) for name in fields} | found


def make_runs(
    graph: Graph, seeds: Sequence[int] | None, split: int | None, settings: int = 1
) -> list[Run]:
    """A run for each seed; seed s is on split s modulo their number, unless a split is given.

    settings  the number of settings, of which each is trained with every seed
    """
    if not graph.has_labels:
        if graph.targets:
            raise GraphError(
                f"no node of {graph.name} has all of its numbers ({', '.join(graph.targets)}); "
                "give some nodes theirs"
            )
        raise GraphError(
            f"no node of {graph.name} has a label; label some nodes, or say which column holds "
            "their labels: --label (in Python: label=)"
        )
    if graph.targets:
        _refuse_numbers(graph)
    elif graph.k == 1 and not graph.multilabel:
        raise GraphError(
            f"all labels of {graph.name} are the same; a classifier needs two classes or more"
        )
    if not graph.splits:
        raise GraphError(f"{graph.name} has no split; give it train, val and test masks")
    splits = len(graph.splits)
    if split is not None and not 0 <= split < splits:
        raise GraphError(f"{graph.name} has splits 0 to {splits - 1}, got split {split}")
    seeds = list(range(splits) if seeds is None else seeds)
    if not seeds or len(set(seeds)) != len(seeds) or min(seeds) < 0:
        raise InputError(f"seeds must be one or more different integers ≥ 0, got {seeds}")
    return [
        Run(seed, seed % splits if split is None else split, setting=setting)
        for setting in range(settings)
        for seed in seeds
    ]


LARGEST = 1e100  # number to predict, and its inverse the least range: squares of both are finite


def _refuse_numbers(graph: Graph) -> None:
    """Raise GraphError for numbers without a variance that float64 can hold."""
    y = graph.labels[graph.labelled]
    size, span = np.abs(y).max(0), np.ptp(y, axis=0)
    for j, name in enumerate(graph.targets):
        if span[j] == 0:
            raise GraphError(f"all known numbers of {name} are the same; they must differ")
        if size[j] > LARGEST or span[j] < 1 / LARGEST:
            raise GraphError(
                f"{name} has numbers up to {size[j]:g} that differ by {span[j]:g} at most; give "
                f"them in another unit, below {LARGEST:g} and at least {1 / LARGEST:g} apart"
            )


class Validation(NamedTuple):
    """Validation losses and scores (r,)."""

    loss: Tensor
    score: Tensor


Compare = Callable[[Validation, Validation, Validation], Tensor]


@dataclass(frozen=True)
class Rule:
    """A stopping rule.

    keep      whether this epoch's weights are better than those kept
    reset     whether patience starts again
    by_score  whether the score decides between runs and about a plateau; else the loss does
    noisy     whether the validation loss is that of the training pass, dropout and all
    metric    what the score must measure; auto: whatever the recipe says

    `keep` and `reset` are called with this epoch's validation, that of the weights kept, and the
    best ever seen of each.  A score of which less is better has its sign changed there.
    """

    keep: Compare
    reset: Compare
    by_score: bool = False
    noisy: bool = False
    metric: Metric = "auto"


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


RULES = {
    # GCNII on citations and web pages
    "val_loss": Rule(_lower, _lower),
    # GCNII on PPI; GaAN
    "val_score": Rule(_higher, _higher, by_score=True),
    # GDC: of equal scores the last one
    "val_score_ties": Rule(_as_high, _as_high, by_score=True),
    # PPNP and APPNP: patience as GAT, but the highest score, and among equals the lowest loss
    "val_score_loss": Rule(_higher_or_lower, _either, by_score=True),
    # imbalanced classes: val_f1, val_auc, val_ap
    **{f"val_{name}": Rule(_higher, _higher, by_score=True, metric=name) for name in RARE},
    # GAT: patience starts again when loss or score is as good as ever; keep weights when both are
    "val_either": Rule(_both, _either),
    # DropEdge: the validation loss of the training pass, dropout and all
    "noisy_loss": Rule(_as_low, _as_low, noisy=True),
    # SGC, GraphSAGE, Cluster-GCN
    "last": Rule(_always, _always),
}
if TYPE_CHECKING:
    Monitor: TypeAlias = str
else:
    Monitor = Literal[tuple(RULES)]


class StoppingState:
    """Where each replica stands, on its device: best epoch, patience, learning rate, last measures.

    All of it changes in place and without a question to the host, so that a captured epoch can do
    it.

    table    (numbers, r) float64, in which whole numbers are exact too
    limits   (4, r) float64: the most epochs, the most where it goes on, the patience, and the least
             factor of the learning rate
    history  (epochs, measures, r) float64: what the last epochs measured, the latest last
    clock    (r, 1) int32, epochs whose steps are done: whoever trains counts it on
    """

    def __init__(
        self, recipes: Sequence[Recipe], runs: Sequence[Run], device: torch.device, epochs: int
    ):
        settings = self.settings = recipes[0]
        self.sign = sign_of(settings.scored_by)
        limits = [
            (one.epochs, one.longest, one.patience, one.plateau_floor / one.lr) for one in recipes
        ]
        self.limits = torch.tensor(limits, dtype=torch.float64).T.contiguous().to(device)
        rows = [_numbers(run, self.sign) for run in runs]
        self.table = torch.tensor(rows, dtype=torch.float64).T.contiguous().to(device)
        shape = max(settings.window, epochs), len(Measures._fields), len(runs)
        history = torch.zeros(shape, dtype=torch.float64)
        for i, run in enumerate(runs):
            for ago, (_, loss, _) in enumerate(reversed(run.curve[-len(history) :]), 1):
                history[-ago, 1, i] = loss
        self.history = history.to(device)
        begun = [[run.epochs] for run in runs]
        self.clock = torch.tensor(begun, dtype=torch.int32, device=device)

    @property
    def scales(self) -> Tensor | None:
        """(r,) by which the learning rates are multiplied; None where they never fall."""
        return self.table[Numbers._fields.index("lr_scale")] if self.settings.plateau else None

    def update(self, measures: Tensor) -> Tensor:
        """Take in an epoch's (measures, r) and return which replicas' weights to keep (r,).

        A replica that has stopped keeps its numbers, whatever else it measures.
        """
        old, rule = Numbers(*self.table.unbind()), self.settings.rule
        now = Validation(measures[1], self.sign * measures[2])
        kept = Validation(old.val_loss, self.sign * old.val)
        best = Validation(old.lowest, old.highest)
        running = old.stopped == 0
        keep = rule.keep(now, kept, best) & running
        fresh_epoch = torch.where(rule.reset(now, kept, best), old.epochs, old.fresh_epoch)
        epochs, waited = old.epochs + 1, old.epochs - fresh_epoch
        val_loss, val, test = torch.where(keep, measures[1:], self.table[:3]).unbind()
        lr_scale, stale = self._follow_plateau(old, now)
        best_epoch = torch.where(keep, old.epochs, old.best_epoch)
        ends = self._ends(epochs, waited, old.epochs - best_epoch, now.loss)
        new = Numbers(
            *(val_loss, val, test, best_epoch),
            *(epochs, fresh_epoch),
            *(torch.fmin(old.lowest, now.loss), torch.fmax(old.highest, now.score)),
            *(lr_scale, stale, ends.double()),
        )
        torch.where(running, torch.stack(new), self.table, out=self.table)
        self.history.copy_(torch.cat([self.history[1:], measures[None]]))
        return keep

    def _ends(self, epochs: Tensor, waited: Tensor, since_best: Tensor, loss: Tensor) -> Tensor:
        """(r,) whether this epoch is the last: out of epochs, of patience, or above the window."""
        settings, (most, longest, patience, _) = self.settings, self.limits.unbind()
        goes_on = (epochs < longest) & (since_best < patience)
        ends = ((epochs >= most) & ~goes_on) | (waited >= patience)
        if settings.window:
            # Losses in float32 are summed exactly in float64, in whatever order a device does it.
            mean = self.history[-settings.window :, 1].sum(0) / settings.window
            ends |= (epochs > max(settings.window, settings.window_from)) & (loss > mean)
        return ends

    def _follow_plateau(self, old: Numbers[Tensor], now: Validation) -> tuple[Tensor, Tensor]:
        """The factor of the learning rate, and the epochs since it fell or validation improved."""
        settings = self.settings
        if not settings.plateau:
            return old.lr_scale, old.stale
        better = now.score > old.highest if settings.rule.by_score else now.loss < old.lowest
        stale = (old.stale + 1) * ~better
        due = stale > settings.plateau
        lower = (old.lr_scale * settings.plateau_factor).clamp(min=self.limits[3])
        return torch.where(due, lower, old.lr_scale), stale * ~due

    def stop(self, rows: Sequence[int]) -> None:
        """End these replicas now."""
        self.table[-1, list(rows)] = 1.0

    def narrow(self, rows: Tensor) -> None:
        """Go on with some of the replicas."""
        self.table = self.table[:, rows].contiguous()
        self.limits = self.limits[:, rows].contiguous()
        self.history = self.history[..., rows].contiguous()
        self.clock = self.clock[rows].contiguous()

    def join(self, others: StoppingState) -> None:
        """Continue with more replicas."""
        self.table = torch.cat([self.table, others.table], 1)
        self.limits = torch.cat([self.limits, others.limits], 1)
        self.history = torch.cat([self.history, others.history], 2)
        self.clock = torch.cat([self.clock, others.clock])

    def fetch(self, epochs: int) -> tuple[list[list[Measures]], list[Numbers[float]]]:
        """The replicas' measures of the last epochs, and where they stand: one transfer."""
        rows = torch.cat([self.history[-epochs:].flatten(0, 1), self.table]).tolist()
        width = len(Measures._fields)
        measures = [zip(*rows[i * width : (i + 1) * width], strict=True) for i in range(epochs)]
        standings = [Numbers(*own) for own in zip(*rows[epochs * width :], strict=True)]
        return [[Measures(*own) for own in epoch] for epoch in measures], standings


def _numbers(run: Run, sign: int) -> list[float]:
    numbers = {name: float(getattr(run, name)) for name in Numbers._fields}
    # With nothing kept yet, any score is better.
    return list((numbers if run.best_epoch >= 0 else numbers | {"val": -sign * inf}).values())
