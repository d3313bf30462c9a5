"""Objective: loss and score of all replicas at once, scores (r, n, k) → one number per replica."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from gcnii.data.catalog import CATALOG
from gcnii.errors import GraphError, InputError, did_you_mean, some_of
from gcnii.graph import Graph, Piece, Role
from gcnii.targets import Target, label_target_of, target_of
from gcnii.targets.numbers import Loss, standardised
from gcnii.targets.scores import Metric, Ranking
from gcnii.targets.target import Total, alone, as_labels

ClassWeight = Literal["none", "balanced"]
RARE_SHARE = 0.2  # of the labels, below which one of two classes is rare


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
    """The loss of a target, and a metric.

    y        labels, as a graph has them
    masks    (r, n) for each role: the nodes that replica r trains on, stops by and is tested on;
             each replica has a split of its own
    part     (n,) the graph that each node belongs to, where there are several: micro-F1 is the mean
             of the graphs' F1, as in the authors' code; other metrics take all graphs together
    parts    the number of graphs
    metric   what the score is; auto: the first of the target's scores
    positive the class that an order of the nodes is of; None: the mean over the classes
    learnt   (r, …) what the loss knows of each replica's training nodes, as the target's `learnt`
             has it: weights of classes, or means and deviations of numbers; None: nothing
    share    where several processes have some of the nodes each: how they add up; None: all are
             here
    focal    γ of the focal loss
    """

    target: Target
    y: Tensor
    masks: dict[Role, Tensor]
    part: Tensor
    parts: int
    metric: Metric = "auto"
    learnt: Tensor | None = None
    share: Share | None = None
    positive: int | None = None
    focal: float = 0.0

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
        focal: float = 0.0,
        loss: Loss = "squared",
    ) -> Objective:
        """Replica r is trained on graph.splits[splits[r]]."""
        total, tensor = share.total if share else alone, partial(torch.tensor, device=device)
        part = np.zeros(len(graph.labels), np.int64) if graph.part is None else graph.part
        highest = torch.tensor([part.max()])
        parts = int((share.gathered(highest) if share else highest).max()) + 1
        masks = {
            role: tensor(np.stack([getattr(graph.splits[i], role) for i in splits]))
            for role in get_args(Role)
        }
        target, y = target_of(graph, loss), graph.labels
        own = [target.learnt(y[graph.splits[i].train], class_weight, total) for i in splits]
        learnt = (
            None if own[0] is None else tensor(np.stack([one for one in own if one is not None]))
        )
        j = positive_class(graph, positive, total) if target.score(metric).ranks else None
        about = (metric, learnt, share, j, focal)
        return cls(target, tensor(y), masks, tensor(part), parts, *about)

    def at(self, nodes: Tensor | None) -> Objective:
        """The objective on these nodes; on all where `nodes` is None."""
        if nodes is None:
            return self
        stacked = self._stacked.index_select(-1, nodes)
        y, part = (one.index_select(0, nodes) for one in (self.y, self.part))
        found = replace(self, y=y, masks=dict(zip(self.masks, stacked, strict=True)), part=part)
        found.__dict__["_stacked"] = stacked
        return found

    def narrow(self, rows: Tensor) -> Objective:
        """The objective of these replicas."""
        masks = {role: mask[rows] for role, mask in self.masks.items()}
        learnt = None if self.learnt is None else self.learnt[rows]
        return replace(self, masks=masks, learnt=learnt)

    def total(self, sums: Tensor) -> Tensor:
        """Sums over the nodes of all processes, from those over the nodes at hand."""
        return self.share.total(sums) if self.share else sums

    def count(self, role: Role) -> Tensor:
        """The number of the role's nodes (r,), over all processes."""
        return self._counts[role]

    @cached_property
    def _counts(self) -> dict[Role, Tensor]:
        """Made once, because it needs the other processes."""
        return dict(zip(self.masks, self.total(self._stacked.sum(-1)), strict=True))

    @cached_property
    def _stacked(self) -> Tensor:
        """The masks (roles, r, n): on a GPU, each operation on them is then one launch."""
        return torch.stack(list(self.masks.values()))

    def overall(self, mean: Tensor) -> Tensor:
        """The mean over the nodes of all processes, from the mean over those at hand."""
        return self.total(mean * (len(self.y) / self.share.n)) if self.share else mean

    def loss(self, scores: Tensor, role: Role) -> Tensor:
        """The mean loss over the role's nodes, (r,); with weights, those of the training nodes."""
        each = self.target.losses(scores, self.y, self.learnt, self.focal)
        # `where`, not a product: a node outside the mask must not turn the sum into NaN.
        sums = torch.where(self.masks[role], each, 0).sum(-1)
        return self.total(sums) / self.count(role)

    def score(self, scores: Tensor, role: Role) -> Tensor:
        """The metric in [0, 1], (r,); NaN where the role has nothing to grade."""
        measured = self.target.score(self.metric).measured
        assert measured is not None
        return measured(self, scores, role)

    @cached_property
    def standardised(self) -> Tensor:
        """(r, n, q) the numbers that each replica is to predict, as its scores have them."""
        return standardised(self.y, self.learnt)

    @property
    def deviations(self) -> Tensor:
        """(r, q) in units, of each replica's training nodes."""
        assert self.learnt is not None
        return self.learnt[:, 1]

    def ranked(self, metric: Ranking, scores: Tensor, role: Role) -> Tensor:
        """Of the positive class against the rest, or the mean of that over all classes."""
        if self.share:
            own = scores[:, self._graded].transpose(0, 1)
            return self._gathered.ranked(metric, self.share.gathered(own).transpose(0, 1), role)
        nodes, there = self._places[role]
        k, j = scores.shape[-1], self.positive
        own = scores.gather(1, nodes[..., None].expand(-1, -1, k)).double()
        margins, truth = as_labels(self.target, "rankings are").ordered(own, self.y[nodes])
        if j is not None:
            margins, truth = margins[..., j : j + 1], truth[..., j : j + 1]
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


def rare_class(graph: Graph) -> int | None:
    """The class of `scarce_class`; None where the validation nodes of a split cannot rank it."""
    j = scarce_class(graph)
    return None if j is None or any(map(graph.val_is_alike, range(len(graph.splits)))) else j


def scarce_class(graph: Graph) -> int | None:
    """Of two classes, the one that less than a fifth of the labels are of; None: there is none.

    Labels are those of training and validation nodes.  Graphs of the catalog are graded as in what
    was published on them.
    """
    target, cut = target_of(graph), isinstance(graph, Piece)
    if cut or not target.binary or graph.source in CATALOG or not graph.splits:
        return None
    known = np.any([split.train | split.val for split in graph.splits], 0)
    counts = np.bincount(graph.labels[known], minlength=2)
    j = int(counts.argmin())
    return j if 0 < counts[j] < RARE_SHARE * counts.sum() else None


def positive_class(graph: Graph, named: str = "", total: Total = alone) -> int | None:
    """The class that ROC AUC and average precision are of; None: the mean over all.

    The named one; without a name, of two classes a rare one, else the one with fewer training nodes
    over all splits, or the second if equal.

    total  adds up the counts of several processes
    """
    target = target_of(graph)
    if named:
        names = target.names
        if named not in names:
            guess = did_you_mean(named, names)
            raise InputError(
                f"positive must be a {target.words[0]} of {graph.name}, got {named!r}; "
                f"{guess}known: {some_of(names)}"
            )
        return names.index(named)
    if not target.binary:
        return None
    if (rare := rare_class(graph)) is not None:
        return rare
    train = np.any([split.train for split in graph.splits], 0)
    counts = total(torch.tensor(np.bincount(graph.labels[train], minlength=2)))
    return 0 if counts[0] < counts[1] else 1


def refuse_unranked(
    graph: Graph, metric: Metric, splits: Iterable[int], positive: str = ""
) -> None:
    """Raise GraphError if validation nodes of one of these splits cannot be ranked."""
    target, j = label_target_of(graph), positive_class(graph, positive) if positive else None
    for split in sorted(set(splits)):
        alike, what = graph.val_is_alike(split), "a label"
        if j is not None and not isinstance(graph, Piece):  # which has some of the nodes only
            own = target.indicators(graph.labels[graph.splits[split].val])[:, j] == 1
            alike, what = not own.any() or bool(own.all()), f"the label {positive!r}"
        if alike:
            raise GraphError(
                f"{target.score(metric).name} needs nodes with and without "
                f"{what}, but all validation nodes of split {split} of {graph.name} have the "
                "same; use another metric or split"
            )


def refuse_equal_numbers(graph: Graph, metric: Metric, splits: Iterable[int]) -> None:
    """Raise GraphError if the metric is R², and a split has none on its validation nodes."""
    score = target_of(graph).score(metric)
    for split in sorted(set(splits)) if score.setting == "r2" else ():
        y = graph.labels[graph.splits[split].val]
        if not np.ptp(y, axis=0).all():
            alike = graph.targets[int(np.ptp(y, axis=0).argmin())]
            raise GraphError(
                f"{score.name} needs numbers that differ, but all validation nodes of split "
                f"{split} of {graph.name} have the same {alike}; use another metric (mae) or split"
            )
