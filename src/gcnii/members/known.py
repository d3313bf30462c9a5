"""Known: the labels that a member may use to answer, which are those of the training nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gcnii.errors import InputError
from gcnii.graph import Graph, Split
from gcnii.targets import LabelTarget, Numbers, target_of
from gcnii.targets.target import Bools, Floats


@dataclass(frozen=True, eq=False)
class Known:
    """The labels of the training nodes, and of no other: there is no place for another's.

    Y          (n, k) ones for what a training node is, or its standardised numbers; a row of zeros
               for every other node
    train      (n,) which nodes these are
    shares     (k,) of the training nodes that are of each class, or have each label; or the means
               of their numbers
    exclusive  whether a node has exactly one of the k
    directed   whether edges were one-way; if not, those of another graph are taken as they point
    deviations (k,) of the training nodes' numbers; None of labels
    """

    Y: Floats
    train: Bools
    shares: Floats
    exclusive: bool
    directed: bool = False
    deviations: Floats | None = None

    @classmethod
    def of(cls, graph: Graph, split: Split) -> Known:
        """What is known of a graph while one of its splits is trained."""
        target = target_of(graph)
        if isinstance(target, Numbers):
            mean, deviation = target.learnt(graph.labels[split.train])
            Y = np.where(split.train[:, None], (graph.labels - mean) / deviation, 0.0)
            return cls(Y, split.train, mean, False, graph.directed, deviation)
        assert isinstance(target, LabelTarget)
        Y = target.indicators(graph.labels) * split.train[:, None]
        return cls(Y, split.train, Y[split.train].mean(0), target.exclusive, graph.directed)

    def reaching(self, n: int) -> Known:
        """The same for a graph with more nodes, which come last and have no known label."""
        more = n - len(self.train)
        if more < 0:
            raise InputError(
                f"the graph has {n:,} nodes, but labels of {len(self.train):,} are known; give the "
                "training graph, with new nodes after its own"
            )
        Y, train = np.pad(self.Y, ((0, more), (0, 0))), np.pad(self.train, (0, more))
        return replace(self, Y=Y, train=train)

    @classmethod
    def elsewhere(
        cls, n: int, shares: Floats, exclusive: bool, deviations: Floats | None = None
    ) -> Known:
        """Of another graph of n nodes: no label of it is known, but how frequent each is."""
        none = np.zeros((n, len(shares)))
        return cls(none, np.zeros(n, bool), shares, exclusive, deviations=deviations)

    def standard(self, answers: Floats) -> Floats:
        """Answers (…, k) as Y has them: numbers are standardised, and probabilities as they are."""
        if self.deviations is None:
            return answers
        return np.asarray((answers - self.shares) / self.deviations)

    def answers(self, Y: Floats) -> Floats:
        """What `standard` was given: numbers in units, and probabilities as they are."""
        return Y if self.deviations is None else np.asarray(Y * self.deviations + self.shares)
