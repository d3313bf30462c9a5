"""What a default may depend on: traits of a graph that are known without training."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from gcnii.graph import Graph, Piece
from gcnii.train.scaling import density, of_a_table, of_one_sign_and_size

MOSTLY = 0.5  # share of nonzero entries below which features count as sparse
DRAWN = 0.6  # share of the labelled nodes that a graph without splits would train on
FEWEST = 20  # edges between training nodes, below which their homophily is not estimated
ASSUMED = 1.0  # the homophily where it is not estimated
UNLIKE = 0.2  # the homophily below which linked nodes say little by being alike
LEAST = 50  # training nodes, below which what else tells their classes is not estimated
COMPARED = 2000  # training nodes of which the nearest are sought; more would tell little more


@dataclass(frozen=True)
class Traits:
    """n nodes with d features, of which `train` nodes are trained on.

    sparse      whether features are like word counts: mostly zeros, never negative, no column much
                larger than the others, and not the columns of a user's table
    multilabel  whether a node can have several labels
    homophily   of the training nodes' labels, see `homophily_of`
    links       agreement of training nodes with the same out-links, see `agreement`; 0 where
                homophily is not below UNLIKE, and nothing depends on it
    features    that of training nodes with the same features
    """

    n: int
    d: int
    train: int
    sparse: bool
    multilabel: bool
    homophily: float = ASSUMED
    links: float = 0.0
    features: float = 0.0

    @classmethod
    def of(cls, graph: Graph) -> Traits:
        """Those of a graph, found once; its training nodes are those of its first split."""
        if graph not in _KNOWN:
            _KNOWN[graph] = cls._found(graph)
        return _KNOWN[graph]

    @classmethod
    def _found(cls, graph: Graph) -> Traits:
        if isinstance(graph, Piece):  # it was told what the whole graph is like
            told = cast(dict[str, Any], graph.whole.known["traits"])
            return cls(**{one.name: told[one.name] for one in fields(cls) if one.name in told})
        masks = [split.train for split in graph.splits[:1]]
        train = masks[0].sum() if masks else DRAWN * graph.labelled.sum()
        sparse = density(graph.X) < MOSTLY and of_one_sign_and_size(graph.X)
        sparse = sparse and not of_a_table(graph.columns)
        homophily = homophily_of(graph)
        agreements = agreements_of(graph) if homophily < UNLIKE else (0.0, 0.0)
        return cls(graph.n, graph.d, int(train), sparse, graph.multilabel, homophily, *agreements)

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


def agreements_of(graph: Graph) -> tuple[float, float]:
    """How far training nodes of the first split that are alike in links, and in features, agree.

    At most COMPARED of them are compared, drawn once and for all; fewer than LEAST tell nothing.
    No other label is read.
    """
    nodes = np.flatnonzero(graph.splits[0].train)
    if len(nodes) < LEAST:
        return 0.0, 0.0
    if len(nodes) > COMPARED:
        nodes = np.sort(np.random.default_rng(0).choice(nodes, COMPARED, replace=False))
    (u, v), labels = graph.edges, graph.labels[nodes]
    ends = (u, v) if graph.directed else (np.append(u, v), np.append(v, u))
    A = csr_array((np.ones(len(ends[0])), ends), (graph.n, graph.n))
    A.sum_duplicates()
    A.data[:] = 1
    return agreement(A[nodes], labels), agreement(csr_array(graph.X[nodes]), labels)


def agreement(rows: csr_array, labels: np.ndarray) -> float:
    """Cohen's κ between a node's label and that of the nearest other node, to four digits.

    Nearest is the largest cosine of rows.  κ is 1 if all agree, and 0 if they agree as often as
    labels of these frequencies do by chance, which is often where one class is most of all.  It is
    multiplied by the share of the nodes that have anything in common with another.
    """
    rows = rows.astype(np.float64)
    lengths = np.sqrt(rows.multiply(rows).sum(1))
    unit = rows.multiply(1 / np.where(lengths > 0, lengths, 1)[:, None]).tocsr()
    likeness = (unit @ unit.T).toarray()
    np.fill_diagonal(likeness, -1)
    near = likeness.max(1) > 0
    own, other = labels[near], labels[likeness.argmax(1)[near]]
    k = labels.max() + 1
    chance = (np.bincount(own, minlength=k) * np.bincount(other, minlength=k)).sum()
    chance = chance / max(len(own), 1) ** 2
    if not len(own) or chance == 1:
        return 0.0
    kappa = ((own == other).mean() - chance) / (1 - chance)
    return round(float(near.mean() * kappa), 4)
