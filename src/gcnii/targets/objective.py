"""Loss and score of all replicas at once: scores (r, n, k) → one number per replica.

Metrics of an order: does a class's score put its nodes before the others?

All replicas and classes at once, and without a question to the host: a CUDA graph can hold them.

margins  (r, m, c) float64: the higher, the more likely the class
truth    (r, m, c) whether the node is of the class
there    (r, m) whether there is a node in this place

How far several views' predictions are from what they agree on (GRAND; Feng et al. 2020).

Loss and score of all replicas at once: scores (r, n, k) → one number per replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from gcnii.errors import GraphError, InputError, did_you_mean, some_of
from gcnii.graph import Graph, Piece, Role


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
    return _mean_over_classes(
        precision.sum(-1) / positives.clamp(min=1), positives, count - positives
    )


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


def disagreement(scores: Tensor, sharpen: Tensor, *, multilabel: bool) -> Tensor:
    """The mean over views and nodes of ‖p - sharp(p̄)‖², for scores (r, S, n, k): (r,).

    p̄ is the mean of the views' probabilities, and no gradient passes through sharp(p̄):

        sharp(p)_c = p_c^(1/T) / Σ_j p_j^(1/T)          one label per node
        sharp(p)   = p^(1/T) / (p^(1/T) + (1-p)^(1/T))  several, each by itself

    sharpen  (r,) T; its type is that of the numbers here
    """
    scores, T = scores.to(sharpen.dtype), sharpen[:, None, None]
    if multilabel:
        p = scores.sigmoid()
        odds = _log_mean(logsigmoid(scores)) - _log_mean(logsigmoid(-scores))
        target = (odds / T).sigmoid()
    else:
        log_p = scores.log_softmax(-1)
        p, target = log_p.exp(), (_log_mean(log_p) / T).softmax(-1)
    return (p - target.detach()[:, None]).square().sum(-1).mean((1, 2))


def _log_mean(log_p: Tensor) -> Tensor:
    """The logarithm of the mean over the views: (r, S, n, k) → (r, n, k)."""
    return log_p.detach().logsumexp(1) - log(log_p.shape[1])


Metric = Literal["auto", "accuracy", "f1", "auc", "ap"]
ClassWeight = Literal["none", "balanced"]

RANKINGS: tuple[Metric, ...] = ("auc", "ap")  # metrics of the order of the nodes, not of labels
MOST_WEIGHT = 100  # of a rare label's positives beside its negatives
# What a metric is called where a node has one label, and where it can have several.
METRIC_NAMES: dict[Metric, tuple[str, str]] = {
    "auto": ("accuracy", "micro-F1"),
    "accuracy": ("accuracy", "subset accuracy"),
    "f1": ("macro-F1", "micro-F1"),
    "auc": ("ROC AUC", "ROC AUC"),
    "ap": ("average precision", "average precision"),
}


Total = Callable[[Tensor], Tensor]


def alone(sums: Tensor) -> Tensor:
    """The total, where one process has all nodes."""
    return sums


@dataclass(frozen=True)
class Share:
    """How an objective of some nodes becomes that of all n, which several processes share.

    total     adds up sums over nodes; gradients pass
    gathered  puts the rows of all processes together, in the same order every time
    """

    total: Total
    gathered: Total
    n: int


@dataclass(frozen=True, eq=False)
class Objective:
    """Cross-entropy and a metric; with several labels per node, binary cross-entropy and a metric.

    y        (n,) or (n, k)
    masks    (r, n) for each role: the nodes that replica r trains on, stops by and is tested on;
             each replica has a split of its own
    part     (n,) the graph that each node belongs to, where there are several: micro-F1 is the mean
             of the graphs' F1, as in the authors' code; other metrics take all graphs together
    parts    the number of graphs
    metric   what the score is; auto: accuracy, or micro-F1 with several labels per node
    positive the class that an order of the nodes is of; None: the mean over the classes
    weights  (r, k) of the classes in the loss; with several labels per node (r, 2, k), of a label's
             negatives and positives; None: all weigh the same
    share    where several processes have some of the nodes each: how they add up; None: all are
             here
    """

    y: Tensor
    masks: dict[Role, Tensor]
    part: Tensor
    parts: int
    metric: Metric = "auto"
    weights: Tensor | None = None
    share: Share | None = None
    positive: int | None = None

    @classmethod
    def of(
        cls,
        graph: Graph,
        splits: list[int],
        device: torch.device,
        metric: Metric = "auto",
        class_weight: ClassWeight = "none",
        share: Share | None = None,
        positive: str = "",
    ) -> Objective:
        """Replica r is trained on graph.splits[splits[r]]."""
        total = share.total if share else alone

        def stack(role: Role) -> Tensor:
            return torch.tensor(
                np.stack([getattr(graph.splits[i], role) for i in splits]), device=device
            )

        part = np.zeros(len(graph.labels), np.int64) if graph.part is None else graph.part
        highest = torch.tensor([part.max()])
        parts = int((share.gathered(highest) if share else highest).max()) + 1
        masks: dict[Role, Tensor] = {
            "train": stack("train"),
            "val": stack("val"),
            "test": stack("test"),
        }
        weights = None
        if class_weight == "balanced":
            own = [balanced_weights(graph, graph.splits[i].train, total) for i in splits]
            weights = torch.tensor(np.stack(own), device=device)
        return cls(
            torch.tensor(graph.labels, device=device),
            masks,
            torch.tensor(part, device=device),
            parts,
            metric,
            weights,
            share,
            positive_class(graph, positive, total) if metric in RANKINGS else None,
        )

    def at(self, nodes: Tensor | None) -> Objective:
        """The objective on these nodes; on all where `nodes` is None."""
        if nodes is None:
            return self
        masks = {role: mask[:, nodes] for role, mask in self.masks.items()}
        return replace(self, y=self.y[nodes], masks=masks, part=self.part[nodes])

    def narrow(self, rows: Tensor) -> Objective:
        """The objective of these replicas."""
        masks = {role: mask[rows] for role, mask in self.masks.items()}
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, masks=masks, weights=weights)

    def total(self, sums: Tensor) -> Tensor:
        """Sums over the nodes of all processes, from those over the nodes at hand."""
        return self.share.total(sums) if self.share else sums

    def count(self, role: Role) -> Tensor:
        """The number of the role's nodes (r,), over all processes."""
        return self._counts[role] if self.share else self.masks[role].sum(-1)

    @cached_property
    def _counts(self) -> dict[Role, Tensor]:
        """Made once, because the other processes are asked."""
        return {role: self.total(mask.sum(-1)) for role, mask in self.masks.items()}

    def overall(self, mean: Tensor) -> Tensor:
        """The mean over the nodes of all processes, from the mean over those at hand."""
        return self.total(mean * (len(self.y) / self.share.n)) if self.share else mean

    def loss(self, scores: Tensor, role: Role) -> Tensor:
        """The mean loss over the role's nodes, (r,); with weights, those of the training nodes."""
        y = self.y.clamp(min=0)
        if y.ndim == 1:
            log_p = scores.log_softmax(-1)
            each = -log_p.gather(-1, y.expand(len(scores), -1)[..., None])[..., 0]
            if self.weights is not None:
                each = each * self.weights.to(scores.dtype)[:, y]
        else:
            target = y.to(scores.dtype).expand_as(scores)
            entries = binary_cross_entropy_with_logits(scores, target, reduction="none")
            if self.weights is not None:
                negative, positive = self.weights.to(scores.dtype)[:, :, None].unbind(1)
                entries = entries * torch.where(y == 1, positive, negative)
            each = entries.mean(-1)
        # `where`, not a product: a node outside the mask must not turn the sum into NaN.
        sums = torch.where(self.masks[role], each, 0).sum(-1)
        return self.total(sums) / self.count(role)

    def score(self, scores: Tensor, role: Role) -> Tensor:
        """The metric in [0, 1], (r,); NaN where the role has nothing to grade."""
        if self.metric in RANKINGS:
            return self._ranking(scores, role)
        mask = self.masks[role]
        if self.y.ndim == 2 and self.metric != "accuracy":
            return self._micro_f1(scores > 0, mask)
        if self.metric == "f1":
            return self._macro_f1(scores, mask)
        several = self.y.ndim == 2
        right = ((scores > 0) == self.y).all(-1) if several else scores.argmax(-1) == self.y
        return self.total((right & mask).sum(-1)).double() / self.count(role)

    def _ranking(self, scores: Tensor, role: Role) -> Tensor:
        """Of the positive class against the rest, or the mean of that over all classes."""
        if self.share:
            own = scores[:, self._graded].transpose(0, 1)
            return self._gathered._ranking(self.share.gathered(own).transpose(0, 1), role)
        nodes, there = self._places[role]
        k = scores.shape[-1]
        own = scores.gather(1, nodes[..., None].expand(-1, -1, k)).double()
        truth, j = self.y[nodes], self.positive
        if self.y.ndim == 2:
            margins, truth = own, truth == 1
        elif k == 2:
            margins = own - own.flip(-1)
            truth = truth[..., None] == torch.arange(k, device=truth.device)
        else:  # probabilities can be compared between nodes, and scores cannot
            margins = own.log_softmax(-1)
            truth = truth[..., None] == torch.arange(k, device=truth.device)
        if j is not None:
            margins, truth = margins[..., j : j + 1], truth[..., j : j + 1]
        metric = roc_auc if self.metric == "auc" else average_precision
        return metric(margins, truth, there)

    @cached_property
    def _graded(self) -> Tensor:
        """The nodes at hand that a replica is trained on or graded by."""
        return torch.nonzero(torch.stack([*self.masks.values()]).any(0).any(0))[:, 0]

    @cached_property
    def _gathered(self) -> Objective:
        """The objective of all such nodes, of all processes."""
        assert self.share is not None
        own, gathered = self.at(self._graded), self.share.gathered
        masks = {role: gathered(mask.T.byte()).T.bool() for role, mask in own.masks.items()}
        return replace(own, y=gathered(own.y), masks=masks, part=gathered(own.part), share=None)

    @cached_property
    def _places(self) -> dict[Role, tuple[Tensor, Tensor]]:
        """The nodes of each role (r, most), and which of these places are filled (r, most).

        Made once, because it waits for the device; sorting then leaves out the other nodes.
        """
        places: dict[Role, tuple[Tensor, Tensor]] = {}
        for role, mask in self.masks.items():
            counts = mask.sum(-1, keepdim=True)
            most = int(counts.max())
            nodes = mask.byte().argsort(stable=True, dim=-1, descending=True)[:, :most]
            places[role] = nodes, torch.arange(most, device=mask.device) < counts
        return places

    def _macro_f1(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The mean F1 of the classes that occur in the truth or in the guess."""
        classes = torch.arange(scores.shape[-1], device=mask.device)
        guess = (scores.argmax(-1)[..., None] == classes) & mask[..., None]
        truth = (self.y[:, None] == classes) & mask[..., None]
        sums = torch.stack([guess.sum(1) + truth.sum(1), (guess & truth).sum(1)])
        found, hits = self.total(sums).unbind()
        f1 = 2 * hits.double() / found.clamp(min=1)
        return f1.sum(-1) / (found > 0).sum(-1)

    def _micro_f1(self, guess: Tensor, mask: Tensor) -> Tensor:
        truth = self.y == 1
        hits = (guess & truth).sum(-1)
        errors = (guess ^ truth).sum(-1)

        def by_part(counts: Tensor) -> Tensor:
            sums = torch.zeros(len(counts), self.parts, dtype=torch.float64, device=counts.device)
            own = sums.index_add(1, self.part, torch.where(mask, counts, 0).double())
            return self.total(own)

        f1 = 2 * by_part(hits) / (2 * by_part(hits) + by_part(errors)).clamp(min=1)
        present = by_part(torch.ones_like(hits)) > 0
        return (f1 * present).sum(-1) / present.sum(-1)


def balanced_weights(
    graph: Graph, train: NDArray[np.bool_], total: Total = alone
) -> NDArray[np.float64]:
    """(k,) by which the classes' losses are multiplied, so that all count the same in training.

    n / (classes · n_c) for a class of n_c of the n training nodes, as in scikit-learn; 1 for a
    class that has none.  With several labels per node (2, k), of each label's negatives and
    positives: their ratio is negatives / positives, at least 1 and at most 100.  The mean over the
    training nodes is 1, so that a step size keeps its meaning.

    total  adds up the counts of several processes
    """
    y = graph.labels[train]
    n = int(total(torch.tensor(len(y))))
    if not graph.multilabel:
        counts = total(torch.tensor(np.bincount(y, minlength=graph.k))).numpy()
        return np.where(counts, n / (np.maximum(counts, 1) * (counts > 0).sum()), 1.0)
    positives = total(torch.tensor(y.sum(0))).numpy()
    ratio = np.clip((n - positives) / np.maximum(positives, 1), 1, MOST_WEIGHT)
    ratio = np.where(positives, ratio, 1.0)
    negative = n / (n - positives + ratio * positives)
    return np.stack([negative, ratio * negative])


def positive_class(graph: Graph, named: str = "", total: Total = alone) -> int | None:
    """The class that ROC AUC and average precision are of; None: the mean over all.

    The named one; without a name, of two classes the one of fewer training nodes over all splits,
    of as many the second.

    total  adds up the counts of several processes
    """
    if named:
        names = graph.classes or tuple(map(str, range(graph.k)))
        if named not in names:
            what = "label" if graph.multilabel else "class"
            guess = did_you_mean(named, names)
            raise InputError(
                f"positive must be a {what} of {graph.name}, got {named!r}; {guess}known: "
                f"{some_of(names)}"
            )
        return names.index(named)
    if graph.multilabel or graph.k != 2:
        return None
    train = np.any([split.train for split in graph.splits], 0)
    counts = total(torch.tensor(np.bincount(graph.labels[train], minlength=2)))
    return 0 if counts[0] < counts[1] else 1


def refuse_unranked(
    graph: Graph, metric: Metric, splits: Iterable[int], positive: str = ""
) -> None:
    """Raise GraphError if validation nodes of one of these splits cannot be put in order."""
    j = positive_class(graph, positive) if positive else None
    for split in sorted(set(splits)):
        alike, what = graph.val_is_alike(split), "a label"
        if j is not None and not isinstance(graph, Piece):  # which has some of the nodes only
            y = graph.labels[graph.splits[split].val]
            own = y[:, j] == 1 if graph.multilabel else y == j
            alike, what = not own.any() or bool(own.all()), f"the label {positive!r}"
        if alike:
            raise GraphError(
                f"{metric_name(metric, multilabel=graph.multilabel)} needs nodes with and without "
                f"{what}, but all validation nodes of split {split} of {graph.name} have the "
                "same; use another metric or split"
            )


def metric_name(metric: Metric, *, multilabel: bool) -> str:
    """`accuracy`, `micro-F1`, `ROC AUC`: what a score is called."""
    return METRIC_NAMES[metric][multilabel]


def percent(score: float) -> str:
    """0.8534 → 85.3; a dash where there is nothing to grade."""
    return "–" if score != score else f"{100 * score:.1f}"


def mean_and_spread(scores: NDArray[np.float64]) -> str:
    """`85.3 ± 0.4 (10 runs)`: mean and sample standard deviation (ddof 1) over the runs."""
    if len(scores) == 1:
        return f"{percent(scores[0])} (1 run)"
    return f"{percent(scores.mean())} ± {percent(scores.std(ddof=1))} ({len(scores)} runs)"
