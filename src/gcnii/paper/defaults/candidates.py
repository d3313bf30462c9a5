"""What is measured: the development graphs, the candidates for the default, and the baselines."""

from __future__ import annotations

from collections.abc import Sequence

from gcnii.graph import Graph
from gcnii.nn.settings import Settings
from gcnii.train.presets.own import CHOSEN, own_default, shared
from gcnii.train.presets.traits import Traits

# Those that take longest first.
COUNTED = (
    *("facebook", "coauthor-cs", "pubmed-full", "pubmed", "amazon-photo", "minesweeper", "film"),
    *("twitch-engb", "cora-ml", "citeseer-full", "cora-full", "citeseer", "cora", "humango"),
    "chameleon-filtered",
)
# They need another head and no self-loops, which no candidate has: no setting is chosen by them.
REPORTED = ("squirrel", "chameleon", "wisconsin", "texas", "cornell")
# Not of the catalog: NAME.npz in a folder that is given.
FILES = frozenset({"facebook", "humango", "cora-ml", "twitch-engb"})

MODEL = "gcnii"
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


LAYERS, WIDTH = (8, 4), 64
CANDIDATES = tuple(
    {"layers": layers, "width": WIDTH, **numbers} for layers in LAYERS for numbers in NUMBERS
)


def settings_of(name: str, model: str, traits: Traits) -> list[Settings]:
    """What a model is measured with on a graph of this name.

    A baseline shares scaling, stopping and thresholds with the candidates, and has its own settings
    otherwise.  Graphs that are only reported need no candidates, but the settings chosen.
    """
    if model == MODEL:
        tried = CANDIDATES if name in COUNTED else CHOSEN
        return [shared(traits) | one for one in tried]
    return [own_default(model, traits)]


def seeds_for(graph: Graph) -> Sequence[int]:
    """Three to ten splits, as many as NODES nodes allow; of a single split, up to four seeds."""
    most = MOST if len(graph.splits) > 1 else MOST_SEEDS
    return range(max(FEWEST, min(most, NODES // graph.n)))
