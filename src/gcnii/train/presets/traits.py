"""What a default may depend on: traits of a graph that are known without training."""

from __future__ import annotations

from dataclasses import dataclass

from gcnii.graph import Graph
from gcnii.train.scaling import density, of_one_sign_and_size

MOSTLY = 0.5  # share of nonzero entries below which features count as sparse
DRAWN = 0.6  # share of the labelled nodes that a graph without splits would train on


@dataclass(frozen=True)
class Traits:
    """n nodes with d features, of which `train` nodes are trained on.

    sparse      whether features are like word counts: mostly zeros, never negative, and no column
                much larger than the others
    multilabel  whether a node can have several labels
    """

    n: int
    d: int
    train: int
    sparse: bool
    multilabel: bool

    @classmethod
    def of(cls, graph: Graph) -> Traits:
        """Those of a graph; training nodes are counted in its first split."""
        masks = [split.train for split in graph.splits[:1]]
        train = masks[0].sum() if masks else DRAWN * graph.labelled.sum()
        sparse = density(graph.X) < MOSTLY and of_one_sign_and_size(graph.X)
        return cls(graph.n, graph.d, int(train), sparse, graph.multilabel)

    @property
    def rho(self) -> float:
        """ρ = training nodes per feature."""
        return self.train / self.d
