"""The default for graphs that nobody published settings for, your own among them.

It was chosen by `gcnii reproduce defaults`; docs/defaults.md has the study.  What separates graphs
is ρ, the number of training nodes per feature: the fewer there are, the more a network must be
held back from learning them by heart.  Where linked nodes are not alike, what tells a node's class
may be whom it links to, or its own features: then GCNII+ reads it from there.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from gcnii.graph import Graph
from gcnii.train.presets.settings import Settings
from gcnii.train.presets.traits import UNLIKE, Traits
from gcnii.train.scaling import Kind

FAMILY = ("gcnii", "gcnii-star", "gcnii-star-printed")
OURS = ("gcnii-plus",)  # nobody published settings for it, on any graph
BASELINES = ("mlp", "gcn", "gat", "appnp", "graphsage-mean")

STOP: Settings = {"epochs": 500, "patience": 60}
LONGEST = 4000  # epochs of a graph of one's own, where the best are still to come after those
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
    if model in BASELINES:
        return shared(traits) | _batches(model, traits, given)
    return features_and_labels(traits)


def own_links(model: str, graph: Graph) -> Settings:
    """How links are used in a graph of your own; those of the catalog keep the paper's ways."""
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
