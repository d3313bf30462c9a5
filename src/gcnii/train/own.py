"""The default for graphs that nobody published settings for, your own among them.

It was chosen by `gcnii reproduce defaults`; docs/defaults.md has the study.  It depends on traits
of a graph that are known without training.  What separates graphs is ρ, the number of training
nodes per feature: the fewer there are, the more a network must be held back from learning them by
heart.  Where linked nodes are not alike, what tells a node's class may be whom it links to, or its
own features: then GCNII+ reads it from there.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_array

from gcnii.graph import Graph, Piece
from gcnii.train.presets import Settings, preset, published_by, uses_own_default
from gcnii.train.scaling import Kind, density, of_a_table, of_one_sign_and_size

MOSTLY = 0.5  # share of nonzero entries below which features count as sparse
DRAWN = 0.6  # share of the labelled nodes that a graph without splits would train on
FEWEST = 20  # edges between training nodes, below which their homophily is not estimated
ASSUMED = 1.0  # the homophily where it is not estimated
UNLIKE = 0.2  # the homophily below which a node's neighbours say little about its class
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
    from gcnii.targets import target_of  # which loads torch, and plans do without

    if not target_of(graph).exclusive or not graph.splits:
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
    labels of these frequencies do by chance, which is often where one class dominates.  It is
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


FAMILY = ("gcnii", "gcnii-star", "gcnii-star-printed")
OURS = ("gcnii-plus",)  # nobody published settings for it, on any graph
MEASURED_BASELINES = ("mlp", "gcn", "gat", "appnp", "graphsage-mean")

STOP: Settings = {"epochs": 500, "patience": 60}
LONGEST = 4000  # epochs on a user's own graph that still improves after STOP's
# Ranges of ρ: [0, 1), [1, 30) and [30, ∞).
BOUNDS = (1, 30)
# A graph with ρ < 1 and a homophily below this has the setting of [1, 30).
LOW = 0
_FEW: Settings = {
    **{"layers": 8, "width": 64, "alpha": 0.1, "lam": 0.5, "dropout": 0.6},
    **{"lr": 0.01, "decay_conv": 0.01, "decay_dense": 5e-4},
}
_SOME: Settings = {
    **{"layers": 8, "width": 64, "alpha": 0.5, "lam": 1.0, "dropout": 0.5},
    **{"lr": 0.01, "decay_conv": 1e-4, "decay_dense": 1e-4},
}
_MANY: Settings = {
    **{"layers": 4, "width": 64, "alpha": 0.1, "lam": 1.0, "dropout": 0.2},
    **{"lr": 0.01, "decay_conv": 1e-4, "decay_dense": 1e-4},
}
CHOSEN = (_FEW, _SOME, _MANY)
# Where linked nodes are not alike, and nodes with the same links, or the same features, agree at
# least so far.
TELLING = 0.45
_LINKS: Settings = {
    **{"product_first": True, "loops": "none", "row_norm": "layer"},
    **{"layers": 2, "width": 128, "alpha": 0.2, "lam": 1.0, "dropout": 0.0, "input_dropout": 0.3},
    **{"lr": 0.01, "decay_conv": 1e-5, "decay_dense": 1e-5},
}
_FEATURES: Settings = {
    **{"head": "features", "loops": "none", "direction": "both"},
    **{"layers": 2, "width": 64, "alpha": 0.8, "lam": 1.0, "dropout": 0.6, "input_dropout": 0.0},
    **{"lr": 0.01, "decay_conv": 1e-4, "decay_dense": 5e-3},
}


@dataclass(frozen=True)
class Default:
    """What graphs of one kind are trained with."""

    model: str
    settings: Settings


DEFAULTS = (
    *(Default("gcnii", settings) for settings in CHOSEN),
    Default("gcnii-plus", _LINKS),
    Default("gcnii-plus", _FEATURES),
)
LINKS, FEATURES = 3, 4  # in DEFAULTS

# GraphSAGE's card samples neighbours, for graphs that exceed memory.  Below this number of nodes an
# epoch on the full graph needs a few hundred MB, and sampling only adds noise and time.
MOST_NODES = 200_000
SAMPLING = frozenset({"batches", "batch_size", "clusters", "fanout", "history"})


def range_of(traits: Traits) -> int:
    """The index in CHOSEN of the range that a graph belongs to, by ρ and homophily."""
    by_rho = sum(traits.rho >= bound for bound in BOUNDS)
    return max(by_rho, 1) if traits.homophily < LOW else by_rho


def kind_of(traits: Traits) -> int:
    """The index in DEFAULTS of the kind that a graph is of."""
    if traits.homophily >= UNLIKE or max(traits.links, traits.features) < TELLING:
        return range_of(traits)
    return LINKS if traits.links > traits.features else FEATURES


def own_model(traits: Traits) -> str:
    """The model of a graph for which none is given."""
    return DEFAULTS[kind_of(traits)].model


def presets_for(
    model: str, graph: Graph, given: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, Settings]]:
    """Settings for a graph and where they come from, each over those before it.

    They are what was published for the graph, or else the default for graphs without.
    """
    given, name = given or {}, graph.catalog_name
    if model not in OURS and not uses_own_default(name):
        who = published_by(name, model)
        yield f"published: {who}" if who else "preset, tried by hand", preset(name, model)
        return
    if not name:
        yield "own graph: its edges", own_links(model, graph)
        yield "own graph: epochs", _going_on(model, given)
    traits = Traits.of(graph)
    yield rule_for(traits), own_default(model, traits, given)


def rule_for(traits: Traits) -> str:
    """What decides the default for such a graph, in words."""
    known = f"ρ {traits.rho:.3g}, homophily {traits.homophily:.2f}"
    return f"rule for graphs without published settings ({known})"


def _going_on(model: str, given: Mapping[str, Any]) -> Settings:
    """Let runs continue past the default's epochs, unless epochs or the monitor `last` is given."""
    own = model in (*FAMILY, *OURS, *MEASURED_BASELINES)  # others keep their stopping rules
    told = "epochs" in given or given.get("monitor") == "last"
    return {"longest": LONGEST} if own and not told else {}


def own_default(model: str, traits: Traits, given: Container[str] = ()) -> Settings:
    """The settings of a model on a graph without published ones, over those of its card.

    Models that the study did not measure keep their own stopping rule and batches.  `given` holds
    the names of settings that are given: someone who sets how to sample wants to sample.
    """
    if model in FAMILY:
        return shared(traits) | CHOSEN[range_of(traits)]
    if model in OURS:
        chosen = DEFAULTS[kind_of(traits)].settings
        return shared(traits) | {"input_dropout": chosen["dropout"], **chosen}
    if model in MEASURED_BASELINES:
        return shared(traits) | _batches(model, traits, given)
    return features_and_labels(traits)


def own_links(model: str, graph: Graph) -> Settings:
    """How edges are used in a graph of your own; graphs of the catalog follow the paper."""
    # Whom a node links to was measured with its out-links; in-links beside them cost 6 to 10 points
    # on Chameleon and Squirrel.  Elsewhere nobody knows which of the two ways tells the class.
    by_out_links = model in OURS and kind_of(Traits.of(graph)) == LINKS
    ways = {"direction": "both"} if graph.directed and not by_out_links else {}
    return ways | ({"edge_weights": "auto"} if graph.weighted else {})


def shared(traits: Traits) -> Settings:
    """What every measured model has: scaling, thresholds and stopping."""
    # The score that a monitor sees is that at one half, not at thresholds from validation.
    monitor = "val_loss" if traits.multilabel else "val_score_loss"
    return features_and_labels(traits) | STOP | {"monitor": monitor}


def features_and_labels(traits: Traits) -> Settings:
    """What every model has."""
    thresholds = {"label_threshold": "validation"} if traits.multilabel else {}
    return {"scale": scale_of(traits), **thresholds}


def scale_of(traits: Traits) -> Kind:
    """How features are scaled."""
    return "length" if traits.sparse else "standard"


def _batches(model: str, traits: Traits, given: Container[str]) -> Settings:
    sampled = model == "graphsage-mean" and not any(name in given for name in SAMPLING)
    return {"batches": "full"} if sampled and traits.n <= MOST_NODES else {}
