"""How predictions are graded: every metric once, for an epoch of training and for an evaluation.

In training, a metric takes an Objective, scores (r, n, k) and a role, and gives a number for each
replica: tensors alone, and no host synchronisation, so that a captured epoch can hold it.  In an
evaluation it takes Answers and many weightings of their nodes at once, and gives a number for each,
so that an interval takes a thousand draws as a few matrix products.

To add a metric, write both and add a Score to CLASS_SCORES, LABEL_SCORES or NUMBER_SCORES:
settings, monitors, commands, evaluation, tables and the page then know it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.graph import Graph, Role
from gcnii.targets.interval import DRAWS, Estimate, bootstrap_weights, percentiles, share_of

if TYPE_CHECKING:
    from gcnii.graph.arrays import Labels
    from gcnii.targets.objective import Objective
    from gcnii.targets.target import Bools, Floats, Ints, LabelTarget, Target

RANKED = 100_000_000  # entries of draws × nodes × classes that are ranked, more or less
FEWEST = 100  # draws of a ranking
BINS = 15  # of confidence
ROUNDING = 1e-12  # of a spread of equal numbers
MANY = 10_000  # from which a number is shown without a fraction
Scores: TypeAlias = "dict[str, Floats]"
Ranking = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Score:
    """A way to grade predictions.

    name      in sentences
    graded    (b,) of answers and their weights
    measured  (r,) in training; None: it is for evaluation alone
    setting   what `metric` calls it
    over      what it is the mean over: nodes that are right or wrong, classes, the order of the
              nodes by the score of a class, or losses; else empty
    plain     whether it is shown as it is, and not in percent
    """

    name: str
    graded: Callable[[Answers], Floats]
    measured: Callable[[Objective, Tensor, Role], Tensor] | None = None
    setting: str = ""
    over: Literal["nodes", "classes", "order", "losses", ""] = ""
    lower_is_better: bool = False
    plain: bool = False

    @property
    def key(self) -> str:
        """Its name in JSON, such as macro_f1."""
        return self.name.lower().replace("-", "_").replace(" ", "_").replace("²", "2")

    def shown(self, value: float) -> str:
        """0.8534 → 85.3, R² as 0.853, an error as it is; a dash where there is nothing to grade."""
        if self.plain and self.most == 1:
            return "–" if isnan(value) else f"{value:.3f}".replace("-0.000", "0.000")
        return number_shown(value) if self.plain else percent(value)

    def difference(self, value: float) -> str:
        """0.0234 → +2.3, or as it is."""
        if isnan(value):
            return "–"
        return ("-" if value < 0 else "+") + self.shown(abs(value))

    @property
    def scale(self) -> int:
        """By which it is multiplied in drawings."""
        return 1 if self.plain else 100

    @property
    def in_percent(self) -> str:
        """What a heading says after its name."""
        return "" if self.plain else " in %"

    @property
    def ranks(self) -> bool:
        """Whether it is of the order of the nodes, for one class or as the mean over all."""
        return self.over == "order"

    @property
    def least(self) -> float:
        """R² is below 0 where the mean would be better."""
        return -inf if self.plain and not self.lower_is_better else 0.0

    @property
    def most(self) -> float:
        return inf if self.over == "losses" else 1.0


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says of m nodes whose labels are known.

    P      (m, k) probabilities, or values
    guess  what is predicted, in the form of the labels y
    part   (m,) the graph of each node, where there are several: micro-F1 is the graphs' mean
    positive   the class that ROC AUC and average precision are of; None: of two the second, else
           the mean over the classes
    weights    (m, b) how often each node counts in each of b draws; None: once
    """

    target: Target
    P: Floats
    guess: Labels
    y: Labels
    part: Ints | None = None
    positive: int | None = None
    weights: Floats | None = None

    @classmethod
    def of(
        cls, target: Target, P: Floats, guess: Labels, graph: Graph, nodes: Bools,
        positive: int | None = None,
    ) -> Answers:  # fmt: skip
        """What is said of some nodes, of answers and guesses for all nodes of a graph."""
        part = None if graph.part is None else graph.part[nodes]
        return cls(target, P[nodes], guess[nodes], graph.labels[nodes], part, positive)

    @property
    def labels(self) -> LabelTarget:
        """The target, of what is measured of labels alone."""
        from gcnii.targets.target import as_labels

        return as_labels(self.target, "this score is")

    @property
    def m(self) -> int:
        return len(self.y)

    @property
    def k(self) -> int:
        return int(self.P.shape[1])

    @property
    def right(self) -> Bools:
        """(m,) whether a node's label, or all of its labels, are as predicted."""
        return np.asarray(np.all(self.guess == self.y, axis=tuple(range(1, self.y.ndim))))

    def among(self, nodes: Bools | Ints) -> Answers:
        """What is said of some of the nodes."""
        part = None if self.part is None else self.part[nodes]
        return replace(self, P=self.P[nodes], guess=self.guess[nodes], y=self.y[nodes], part=part)

    @cached_property
    def counts(self) -> ClassCounts:
        return self.labels.counts(self.y, self.guess, self.weights)

    def mean(self, values: Floats | Bools) -> Floats:
        """(b,) over the nodes, of values (m, …)."""
        assert self.weights is not None
        return np.asarray(values @ self.weights / self.weights.sum(0))

    def graded(self, weights: Floats, kinds: Iterable[bool] = (False, True)) -> Scores:
        """Scores with these weights, each (b,): those that do not rank nodes, and those that do."""
        drawn, own = replace(self, weights=weights), self.target.scores
        return {score.key: score.graded(drawn) for score in own if score.ranks in kinds}

    def scored(self, name: str) -> Callable[[Floats], Floats]:
        """The function of weights that gives the score of this name, (b,)."""
        return lambda weights: SCORES[name].graded(replace(self, weights=weights))

    @cached_property
    def scores(self) -> dict[str, float]:
        """Every score of the nodes as they are."""
        found = self.graded(np.ones((self.m, 1)))
        return {name: float(one[0]) for name, one in found.items()}

    def score(self, name: str) -> float:
        """One of these alone."""
        return float(self.scored(name)(np.ones((self.m, 1)))[0])

    @property
    def ranking_draws(self) -> int:
        """The number of draws for an interval of a ranking, which is slow for many nodes."""
        return int(np.clip(RANKED // (self.m * self.k), FEWEST, DRAWS))

    def drawn(self, score: Callable[[Floats], Scores], draws: int = DRAWS) -> Scores:
        """What a function of weights gives for bootstrap draws of the nodes, (draws, …)."""
        chunks = [score(weights) for weights in bootstrap_weights(self.m, draws)]
        return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}

    def drawn_scores(self) -> Scores:
        """Every score of bootstrap draws of the nodes."""
        ranked = self.drawn(lambda weights: self.graded(weights, [True]), self.ranking_draws)
        return self.drawn(lambda weights: self.graded(weights, [False])) | ranked

    def estimate(self, name: str, drawn: Floats) -> Estimate:
        """A score with its interval over the nodes, from what bootstrap draws of them give."""
        if SCORES[name].over == "nodes":
            return share_of(float(self.right.sum()), self.m)
        return percentiles(self.scores[name], drawn, self._sizes(SCORES[name]))

    def _sizes(self, score: Score) -> list[float]:
        """The nodes that a score rests on: of each class, where it is the mean over classes."""
        if score.over not in ("classes", "order"):
            return [] if score.over == "losses" or score.plain else [self.m]
        sizes = self.counts.support
        if score.ranks:
            sizes = np.minimum(sizes, self.m - sizes)
            sizes = sizes if self._ranked is None else sizes[[self._ranked]]
        return [one for one in sizes.tolist() if one]

    @property
    def _ranked(self) -> int | None:
        """The class whose order is graded; None: all."""
        return 1 if self.positive is None and self.labels.binary else self.positive

    @property
    def micro_f1(self) -> Floats:
        """(b,) the mean over the graphs."""
        assert self.weights is not None
        part = np.zeros(self.m, np.int64) if self.part is None else self.part
        size = int(part.max()) + 1
        counts = ((self.y * self.guess).sum(1), self.y.sum(1) + self.guess.sum(1))
        hits, named = (summed(part, size, self.weights, one.astype(np.float64)) for one in counts)
        there = summed(part, size, self.weights) > 0
        # As in training: where no label is there and none is predicted, the F1 of a graph is 0.
        f1 = np.where(named > 0, share(2 * hits, named), 0.0)
        return mean_of_known(np.where(there, f1, np.nan))

    @property
    def log_loss(self) -> Floats:
        """(b,) the mean over the nodes."""
        tiny = np.finfo(np.float64).eps
        return self.mean(self.labels.log_losses(self.P.clip(tiny, 1 - tiny), self.y))

    @property
    def calibration_error(self) -> Floats:
        """(b,) by which nodes are more often right than their confidence says, or less."""
        sure, hit = self.labels.forecasts(self.P, self.y)
        times = len(sure) // max(self.m, 1)
        nodes = np.repeat(np.arange(self.m), times)
        bins = np.clip(np.ceil(sure * BINS).astype(np.int64) - 1, 0, BINS - 1)
        gaps = sp.csr_array(((hit - sure) / times, (bins, nodes)), (BINS, self.m))
        assert self.weights is not None
        return np.asarray(np.abs(gaps @ self.weights).sum(0) / self.weights.sum(0))

    def rankings(self, weights: Floats) -> Scores:
        """ROC AUC and average precision of each class against the rest, each (b, k)."""
        classes = [self._ranking(j, weights) for j in range(self.k)]
        auc, ap = zip(*classes, strict=True)
        return {ROC_AUC.key: np.stack(auc, 1), AVERAGE_PRECISION.key: np.stack(ap, 1)}

    @cached_property
    def ranked(self) -> tuple[Floats, ...]:
        """Those of the positive class, or their means over the classes with both kinds of nodes."""
        assert self.weights is not None
        if self._ranked is not None:
            return self._ranking(self._ranked, self.weights)
        return tuple(map(mean_of_known, self.rankings(self.weights).values()))

    def _ranking(self, j: int, weights: Floats) -> tuple[Floats, Floats]:
        """ROC AUC and average precision of class j, each (b,); NaN if all or no nodes are of it."""
        # The most probable first; where each probability begins.
        order = np.argsort(-self.P[:, j], kind="stable")
        first = np.flatnonzero(np.diff(self.P[order, j], prepend=np.inf))
        truth = self._truth[order, j]
        positive = np.add.reduceat(weights[order] * truth[:, None], first, 0)
        every = np.add.reduceat(weights[order], first, 0)
        # Equal probabilities are one step, and half of their pairs are won.
        found, called = positive.cumsum(0), every.cumsum(0)
        positives, negatives = found[-1], called[-1] - found[-1]
        won = (every - positive) * (found - positive / 2)
        auc = share(won.sum(0), positives * negatives)
        precision = np.divide(found, called, out=np.zeros_like(found), where=called > 0)
        ap = share((positive * precision).sum(0), positives)
        return auc, np.where(negatives > 0, ap, np.nan)

    @cached_property
    def _truth(self) -> Floats:
        return self.labels.indicators(self.y)


@dataclass(frozen=True, eq=False)
class ClassCounts:
    """How many nodes of each class are found, are there, and are predicted, each (…, k)."""

    hits: Floats
    support: Floats
    predicted: Floats

    @classmethod
    def of_confusion(cls, C: Floats) -> ClassCounts:
        """Of confusion matrices (…, k, k), whose rows are the true classes."""
        return cls(C.diagonal(axis1=-2, axis2=-1), C.sum(-1), C.sum(-2))

    @property
    def precision(self) -> Floats:
        """Of the nodes that are predicted as the class, the share that is; NaN if none is."""
        return share(self.hits, self.predicted)

    @property
    def recall(self) -> Floats:
        """Of the nodes of the class, the share that is found; NaN if there is none."""
        return share(self.hits, self.support)

    @property
    def f1(self) -> Floats:
        """The harmonic mean of both; NaN for a class that is neither there nor predicted."""
        return share(2 * self.hits, self.support + self.predicted)

    @property
    def balanced_accuracy(self) -> Floats:
        """The mean recall of the classes that are there."""
        return mean_of_known(self.recall)

    @property
    def macro_f1(self) -> Floats:
        """The mean F1 of the classes that are there or predicted."""
        return mean_of_known(self.f1)

    @property
    def micro_f1(self) -> float:
        """Of all classes together; accuracy, where every node has one label and is given one."""
        return float(2 * self.hits.sum() / max((self.support + self.predicted).sum(), 1))


def confusion(y: Ints, guess: Ints, k: int, weights: Floats | None = None) -> Floats:
    """(k, k) how many nodes of each class (row) are predicted as each (column)."""
    if weights is None:
        return np.bincount(y * k + guess, minlength=k * k).reshape(k, k).astype(np.float64)
    return summed(y * k + guess, k * k, weights).reshape(-1, k, k)


def frequent_confusions(C: NDArray[np.int64], most: int) -> list[tuple[int, int, int]]:
    """True class, predicted class and number of nodes of the most frequent mistakes."""
    wrong = C - np.diag(C.diagonal())
    order = np.argsort(-wrong, axis=None, kind="stable")[:most]
    places = (divmod(int(place), len(C)) for place in order)
    return [(i, j, int(wrong[i, j])) for i, j in places if wrong[i, j]]


def summed(places: Ints, size: int, weights: Floats, values: Floats | None = None) -> Floats:
    """(b, size) the weights (m, b) of the nodes in each place, times their values if given."""
    m = len(places)
    data = np.ones(m) if values is None else values
    return np.asarray((sp.csr_array((data, (places, np.arange(m))), (size, m)) @ weights).T)


def share(part: Floats, whole: Floats) -> Floats:
    """Part / whole, NaN where the whole is nothing."""
    found = np.full(np.broadcast(part, whole).shape, np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


def mean_of_known(values: Floats) -> Floats:
    """The mean over the last axis of what is not NaN; NaN where nothing is."""
    known = ~np.isnan(values)
    return share(np.where(known, values, 0.0).sum(-1), known.sum(-1).astype(np.float64))


def accuracy(objective: Objective, scores: Tensor, role: Role) -> Tensor:
    """The share of nodes whose class is right."""
    return _share_right(objective, scores.argmax(-1) == objective.y, role)


def subset_accuracy(objective: Objective, scores: Tensor, role: Role) -> Tensor:
    """The share of nodes of which all labels are right."""
    return _share_right(objective, ((scores > 0) == objective.y).all(-1), role)


def _share_right(objective: Objective, right: Tensor, role: Role) -> Tensor:
    hits = objective.total((right & objective.masks[role]).sum(-1))
    return hits.double() / objective.count(role)


def macro_f1(objective: Objective, scores: Tensor, role: Role) -> Tensor:
    """The mean F1 of the classes that occur in the truth or in the guess."""
    mask = objective.masks[role]
    classes = torch.arange(scores.shape[-1], device=mask.device)
    guess = (scores.argmax(-1)[..., None] == classes) & mask[..., None]
    truth = (objective.y[:, None] == classes) & mask[..., None]
    sums = torch.stack([guess.sum(1) + truth.sum(1), (guess & truth).sum(1)])
    found, hits = objective.total(sums).unbind()
    f1 = 2 * hits.double() / found.clamp(min=1)
    return f1.sum(-1) / (found > 0).sum(-1)


def micro_f1(objective: Objective, scores: Tensor, role: Role) -> Tensor:
    """The mean over the graphs of the F1 of all labels, as in the authors' code."""
    guess, truth = scores > 0, objective.y == 1
    hits = (guess & truth).sum(-1)
    errors = (guess ^ truth).sum(-1)

    def by_part(counts: Tensor) -> Tensor:
        sums = torch.zeros(len(counts), objective.parts, dtype=torch.float64, device=counts.device)
        inside = torch.where(objective.masks[role], counts, 0).double()
        return objective.total(sums.index_add(1, objective.part, inside))

    f1 = 2 * by_part(hits) / (2 * by_part(hits) + by_part(errors)).clamp(min=1)
    present = by_part(torch.ones_like(hits)) > 0
    return (f1 * present).sum(-1) / present.sum(-1)


# Metrics of an order: does a class's score put its nodes before the others?
#
# margins  (r, m, c) float64: the higher, the more likely the class
# truth    (r, m, c) whether the node is of the class
# there    (r, m) whether there is a node in this place


def roc_auc(margins: Tensor, truth: Tensor, there: Tensor) -> Tensor:
    """(r,) the probability that a node of the class is before one that is not; a tie counts half.

    The mean over the classes that have both kinds of nodes; NaN where there are none.
    """
    margins, truth, there = _by_class(margins, truth, there)
    positives, negatives = truth.sum(-1), (there & ~truth).sum(-1)
    ordered = _ordered(margins, there)
    below = torch.searchsorted(ordered, margins)
    not_above = torch.searchsorted(ordered, margins, right=True)
    # Each pair of positives counts 2 in this sum, and each positive with itself 1.
    wins = torch.where(truth, below + not_above, 0).sum(-1) - positives**2
    area = wins.double() / (2 * positives * negatives).clamp(min=1)
    return _mean_over_classes(area, positives, negatives)


def average_precision(margins: Tensor, truth: Tensor, there: Tensor) -> Tensor:
    """(r,) the mean precision at the nodes of the class: of those as high or higher, how many are.

    The mean over the classes that have both kinds of nodes; NaN where there are none.
    """
    margins, truth, there = _by_class(margins, truth, there)
    positives, count = truth.sum(-1), there.sum(-1)
    right = positives[..., None] - torch.searchsorted(_ordered(margins, truth), margins)
    called = count[..., None] - torch.searchsorted(_ordered(margins, there), margins)
    precision = torch.where(truth, right.double() / called.clamp(min=1), 0)
    mean = precision.sum(-1) / positives.clamp(min=1)
    return _mean_over_classes(mean, positives, count - positives)


def _by_class(margins: Tensor, truth: Tensor, there: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each (r, c, m), nothing true where there is no node."""
    truth = (truth & there[..., None]).mT.contiguous()
    return margins.mT.contiguous(), truth, there[:, None].expand_as(truth)


def _ordered(margins: Tensor, among: Tensor) -> Tensor:
    """(r, c, m) the margins of these nodes, lowest first; infinity fills the rest."""
    return torch.where(among, margins, inf).sort(-1).values


def _mean_over_classes(values: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
    """The mean over the classes that have both kinds of nodes."""
    graded = (positives > 0) & (negatives > 0)
    return torch.where(graded, values, 0).sum(-1) / graded.sum(-1)


# Metrics of numbers: the mean over their columns, each in its units.


def _errors(objective: Objective, scores: Tensor, role: Role) -> Tensor:
    """(r, n, q) what is too much in standardised scores, float64; 0 outside the role."""
    gap = scores.double() - objective.standardised
    return torch.where(objective.masks[role][..., None], gap, 0)


def r_squared(objective: Objective, scores: Tensor, role: Role) -> Tensor:
    """1 - the squared errors, of those of the mean of these nodes; NaN where all are equal."""
    own = torch.where(objective.masks[role][..., None], objective.standardised, 0)
    each = torch.stack([_errors(objective, scores, role).square(), own, own.square()])
    errors, total, square = objective.total(each.sum(2)).unbind()
    spread = square - total.square() / objective.count(role)[:, None]
    return torch.where(spread > ROUNDING, 1 - errors / spread, nan).mean(-1)


def absolute_error(objective: Objective, scores: Tensor, role: Role) -> Tensor:
    """The mean absolute error."""
    errors = objective.total(_errors(objective, scores, role).abs().sum(1))
    return (objective.deviations * errors / objective.count(role)[:, None]).mean(-1)


def root_square_error(objective: Objective, scores: Tensor, role: Role) -> Tensor:
    """The root of the mean squared error."""
    errors = objective.total(_errors(objective, scores, role).square().sum(1))
    return (objective.deviations * (errors / objective.count(role)[:, None]).sqrt()).mean(-1)


def _in_order(metric: Ranking) -> Callable[[Objective, Tensor, Role], Tensor]:
    return lambda objective, scores, role: objective.ranked(metric, scores, role)


def _right(said: Answers) -> Floats:
    return said.mean(said.right)


def _macro_f1(said: Answers) -> Floats:
    return said.counts.macro_f1


def _by_column(said: Answers, values: Floats) -> Floats:
    """(q, b) the means over the nodes of values (m, q)."""
    return said.mean(values.T)


def _r_squared(said: Answers) -> Floats:
    y = said.y - said.y.mean(0)
    errors = _by_column(said, (said.P - said.y) ** 2)
    spread = _by_column(said, y**2) - _by_column(said, y) ** 2
    known = spread > ROUNDING * np.square(y).mean(0)[:, None]
    return np.asarray(np.where(known, 1 - share(errors, spread), np.nan).mean(0))


def _absolute_error(said: Answers) -> Floats:
    return np.asarray(_by_column(said, np.abs(said.P - said.y)).mean(0))


def _root_square_error(said: Answers) -> Floats:
    return np.asarray(np.sqrt(_by_column(said, (said.P - said.y) ** 2)).mean(0))


LOG_LOSS = Score("log loss", lambda said: said.log_loss, over="losses", lower_is_better=True)
ECE = Score("calibration error", lambda said: said.calibration_error, lower_is_better=True)
ROC_AUC = Score("ROC AUC", lambda said: said.ranked[0], _in_order(roc_auc), "auc", "order")
AVERAGE_PRECISION = Score(
    "average precision", lambda said: said.ranked[1], _in_order(average_precision), "ap", "order"
)
ACCURACY = Score("accuracy", _right, accuracy, "accuracy", "nodes")
# The first is what training goes by if nothing else is asked for.
CLASS_SCORES = (
    ACCURACY,
    Score("balanced accuracy", lambda said: said.counts.balanced_accuracy, over="classes"),
    Score("macro-F1", _macro_f1, macro_f1, "f1", "classes"),
    *(LOG_LOSS, ECE, ROC_AUC, AVERAGE_PRECISION),
)
LABEL_SCORES = (
    Score("micro-F1", lambda said: said.micro_f1, micro_f1, "f1"),
    Score("macro-F1", _macro_f1, over="classes"),
    Score("subset accuracy", _right, subset_accuracy, "accuracy", "nodes"),
    *(LOG_LOSS, ECE, ROC_AUC, AVERAGE_PRECISION),
)
NUMBER_SCORES = (
    Score("R²", _r_squared, r_squared, "r2", plain=True),
    Score("MAE", _absolute_error, absolute_error, "mae", "losses", True, True),
    Score("RMSE", _root_square_error, root_square_error, "rmse", "losses", True, True),
)
EVERY = (*CLASS_SCORES, *LABEL_SCORES, *NUMBER_SCORES)
SCORES = {score.key: score for score in EVERY}
# What `metric` may be; accuracy gives rare classes little weight, the others enough.
METRICS = (
    "auto",
    *(score.setting for score in (*CLASS_SCORES, *NUMBER_SCORES) if score.setting),
)
LOWER = {score.setting for score in EVERY if score.setting and score.lower_is_better}
RARE = tuple(one.setting for one in CLASS_SCORES if one.setting and one.over != "nodes")
if TYPE_CHECKING:
    Metric: TypeAlias = str
else:
    Metric = Literal[METRICS]


def percent(score: float) -> str:
    """0.8534 → 85.3; a dash where there is nothing to grade."""
    return "–" if score != score else f"{100 * score:.1f}"


def number_shown(value: float) -> str:
    """Four digits, or all before the point; a dash for NaN."""
    if value != value:
        return "–"
    return f"{value:,.0f}" if abs(value) >= MANY else f"{value:.4g}"


def mean_and_spread(scores: NDArray[np.float64], score: Score = ACCURACY) -> str:
    """`85.3 ± 0.4 (10 runs)`: mean and sample standard deviation (ddof 1) over the runs."""
    if len(scores) == 1:
        return f"{score.shown(scores[0])} (1 run)"
    mean, spread = score.shown(scores.mean()), score.shown(scores.std(ddof=1))
    return f"{mean} ± {spread} ({len(scores)} runs)"


def sign_of(metric: str) -> int:
    """1 if a higher score is better, -1 if a lower one is."""
    return -1 if metric in LOWER else 1
