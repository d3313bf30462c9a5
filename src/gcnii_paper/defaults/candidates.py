"""What is measured: the development graphs, the candidates for the default, and the baselines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from gcnii.graph import Graph
from gcnii.nn.settings import Settings
from gcnii.train.own import DEFAULTS, FEATURES, LINKS, Traits, kind_of, own_default, shared

# Those that take longest first.
GRAPHS = (
    *("squirrel", "facebook", "coauthor-cs", "pubmed-full", "pubmed", "amazon-photo"),
    *("chameleon", "minesweeper", "film", "twitch-engb", "cora-ml", "citeseer-full", "cora-full"),
    *("citeseer", "cora", "humango", "chameleon-filtered", "wisconsin", "texas", "cornell"),
)
# Not of the catalog: NAME.npz in a folder that is given.
FILES = frozenset({"facebook", "humango", "cora-ml", "twitch-engb"})

OURS = tuple(dict.fromkeys(default.model for default in DEFAULTS))
NODES, FEWEST, MOST, MOST_SEEDS = 40_000, 3, 10, 4  # of `seeds_for`


def _numbers(alpha: float, lam: float, dropout: float, conv: float, dense: float) -> Settings:
    numbers = {"alpha": alpha, "lam": lam, "dropout": dropout}
    return numbers | {"decay_conv": conv, "decay_dense": dense, "lr": 0.01}


# They differ in numbers alone, so a GPU trains all of them at once.
NUMBERS = tuple(
    _numbers(*numbers)
    for numbers in (
        (0.1, 0.5, 0.6, 1e-2, 5e-4),
        (0.1, 0.5, 0.6, 1e-3, 5e-4),
        (0.1, 0.5, 0.5, 1e-4, 1e-4),
        (0.1, 1.0, 0.7, 1e-4, 1e-3),
        (0.1, 1.0, 0.5, 1e-4, 5e-4),
        (0.1, 1.0, 0.2, 1e-4, 1e-4),
        (0.1, 1.5, 0.5, 1e-5, 1e-4),
        (0.2, 1.0, 0.6, 5e-4, 5e-4),
        (0.2, 1.0, 0.5, 0.0, 0.0),
        (0.2, 1.5, 0.1, 1e-5, 1e-5),
        (0.3, 1.0, 0.5, 1e-3, 5e-4),
        (0.3, 1.5, 0.5, 1e-4, 5e-4),
        (0.5, 1.0, 0.5, 1e-4, 1e-4),
    )
)


GCNII = tuple(
    {"layers": layers, "width": 64, **numbers} for layers in (8, 4) for numbers in NUMBERS
)


def _each(**choices: Sequence[object]) -> Iterator[Settings]:
    """Every combination."""
    for values in product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


WHOM_ALL: Settings = {
    **{"product_first": True, "loops": "none", "row_norm": "layer"},
    **{"width": 128, "alpha": 0.2, "lam": 1.0, "lr": 0.01},
}
WHOM = tuple(  # a node's class is told by whom it links to
    {**WHOM_ALL, **one, **decays}
    for one in _each(
        layers=(4, 2),
        dropout=(0.0, 0.2, 0.5),
        input_dropout=(0.0, 0.3),
    )
    for decays in (
        {"decay_conv": 1e-5, "decay_dense": 1e-5},
        {"decay_conv": 1e-4, "decay_dense": 1e-3},
    )
)
ITSELF = tuple(  # by its own features
    {"head": "features", "layers": 2, "lam": 1.0, "lr": 0.01, "width": 64, **one, **decays}
    for one in _each(
        loops=("none", "keep"),
        direction=("out", "both"),
        alpha=(0.5, 0.8),
        dropout=(0.3, 0.6),
        input_dropout=(0.0, 0.2),
    )
    for decays in (
        {"decay_conv": 1e-4, "decay_dense": 1e-4},
        {"decay_conv": 1e-3, "decay_dense": 1e-3},
        {"decay_conv": 1e-4, "decay_dense": 5e-3},
    )
)


def candidates(kind: int) -> Sequence[Settings]:
    """What the default of a kind of graphs is chosen from."""
    special: dict[int, Sequence[Settings]] = {LINKS: WHOM, FEATURES: ITSELF}
    return special.get(kind, GCNII)


def settings_of(model: str, traits: Traits) -> list[Settings]:
    """What a model is measured with on a graph of these traits.

    A baseline shares scaling, stopping and thresholds with the candidates, and has its own settings
    otherwise.  Of the family, only the model of the graph's kind is measured.
    """
    kind = kind_of(traits)
    if model in OURS:
        tried = candidates(kind) if model == DEFAULTS[kind].model else ()
        return [shared(traits) | one for one in tried]
    return [own_default(model, traits)]


def seeds_for(graph: Graph) -> Sequence[int]:
    """Three to ten splits, as many as NODES nodes allow; of a single split, up to four seeds."""
    most = MOST if len(graph.splits) > 1 else MOST_SEEDS
    return range(max(FEWEST, min(most, NODES // graph.n)))
