"""What a default may depend on: traits of a graph that are known without training."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from gcnii.graph import Graph
from gcnii.train.scaling import density, of_one_sign_and_size

MOSTLY = 0.5  # share of nonzero entries below which features count as sparse
DRAWN = 0.6  # share of the labelled nodes that a graph without splits would train on
FEWEST = 20  # edges between training nodes, below which their homophily is not estimated
ASSUMED = 1.0  # the homophily where it is not estimated


@dataclass(frozen=True)
class Traits:
    """n nodes with d features, of which `train` nodes are trained on.

    sparse      whether features are like word counts: mostly zeros, never negative, and no column
                much larger than the others
    multilabel  whether a node can have several labels
    homophily   of the training nodes' labels, see `homophily_of`
    """

    n: int
    d: int
    train: int
    sparse: bool
    multilabel: bool
    homophily: float = ASSUMED

    @classmethod
    def of(cls, graph: Graph) -> Traits:
        """Those of a graph, found once; its training nodes are those of its first split."""
        if graph not in _KNOWN:
            _KNOWN[graph] = cls._found(graph)
        return _KNOWN[graph]

    @classmethod
    def _found(cls, graph: Graph) -> Traits:
        masks = [split.train for split in graph.splits[:1]]
        train = masks[0].sum() if masks else DRAWN * graph.labelled.sum()
        sparse = density(graph.X) < MOSTLY and of_one_sign_and_size(graph.X)
        return cls(graph.n, graph.d, int(train), sparse, graph.multilabel, homophily_of(graph))

    @property
    def rho(self) -> float:
        """ρ = training nodes per feature."""
        return self.train / self.d


_KNOWN: WeakKeyDictionary[Graph, Traits] = WeakKeyDictionary()


def homophily_of(graph: Graph) -> float:
    """Adjusted homophily (h - Σ p_k²) / (1 - Σ p_k²) of the training nodes, to four digits.

    h is the share of edges with equal labels and p_k the share of their ends with label k, over
    edges between two training nodes of the first split, without directions, duplicates and
    self-loops: 1 if all labels are equal, 0 as by chance.  No other label is read.  ASSUMED if
    there are fewer than FEWEST such edges, one label alone, or several labels per node.
    """
    if graph.multilabel or not graph.splits:
        return ASSUMED
    train, (u, v) = graph.splits[0].train, graph.edges
    u, v = graph.edges[:, train[u] & train[v] & (u != v)]
    codes = np.sort(np.minimum(u, v) * graph.n + np.maximum(u, v))
    codes = codes[np.diff(codes, prepend=-1) > 0]
    if len(codes) < FEWEST:
        return ASSUMED
    one, other = graph.labels[codes // graph.n], graph.labels[codes % graph.n]
    ends = np.bincount(np.concatenate([one, other])) / (2 * len(codes))
    chance = (ends**2).sum()
    if chance == 1:
        return ASSUMED
    return round(float(((one == other).mean() - chance) / (1 - chance)), 4)
