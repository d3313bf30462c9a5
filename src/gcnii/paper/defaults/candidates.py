"""What is measured: the development graphs, the candidates for the default, and the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.graph import Graph
from gcnii.nn.settings import Settings

# Those that take longest first.
COUNTED = (
    *("facebook", "coauthor-cs", "pubmed-full", "pubmed", "amazon-photo", "minesweeper", "film"),
    *("twitch-engb", "cora-ml", "citeseer-full", "cora-full", "citeseer", "cora", "humango"),
    "chameleon-filtered",
)
# They need another head and no self-loops, which no candidate has: measured last, not chosen by.
REPORTED = ("squirrel", "chameleon", "wisconsin", "texas", "cornell")
# Not of the catalog: NAME.npz in a folder that is given.
FILES = frozenset({"facebook", "humango", "cora-ml", "twitch-engb"})

MODEL = "gcnii"
BASELINES = ("mlp", "gcn", "gat", "appnp", "graphsage-mean")
MOSTLY = 0.5  # share of nonzero entries below which features count as sparse
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


@dataclass(frozen=True)
class Traits:
    """What a default may depend on: it can be seen of a graph without training.

    sparse  whether features are mostly zeros and never negative
    """

    sparse: bool
    directed: bool
    multilabel: bool

    @classmethod
    def of(cls, graph: Graph) -> Traits:
        """Those of a graph."""
        sparse = density(graph) < MOSTLY and bool((_entries(graph) >= 0).all())
        return cls(sparse, graph.directed, graph.multilabel)


def density(graph: Graph) -> float:
    """The share of nonzero features."""
    return round(float(np.count_nonzero(_entries(graph))) / (graph.n * graph.d), 4)


def _entries(graph: Graph) -> NDArray[np.floating[Any]]:
    return graph.X.data if isinstance(graph.X, sp.csr_array) else graph.X


OWN: Settings = {"layers": 8, "width": 64}
STOP: Settings = {"epochs": 500, "patience": 60}
# Changes of one thing at a time; the most valuable first, because time may run out.
ROUNDS = ("base", "layers 4", "width 128", "layers 16", "scale", "direction", "monitor", "rows")
OWN_ROUNDS: dict[str, Settings] = {
    "layers 4": {"layers": 4},
    "width 128": {"width": 128},
    "layers 16": {"layers": 16},
}


def settings_of(round_: str, model: str, traits: Traits) -> list[Settings]:
    """What a model is tried with in one of ROUNDS, on graphs of these traits; often nothing.

    A baseline has what it shares with the candidates, and its own settings otherwise; so it is
    measured where that changes.
    """
    scales = ("length", "standard") if traits.sparse else ("standard", "length")
    monitors = ("val_score_loss", "val_loss")
    shared = STOP | {"scale": scales[0], "monitor": monitors[0]}
    if traits.multilabel:
        # The score at one half is not what thresholds from validation give.
        monitors = ("val_loss", "val_score_loss")
        shared |= {"label_threshold": "validation", "monitor": monitors[0]}
    changed: dict[str, Settings] = {
        "base": {},
        "scale": {"scale": scales[1]},
        "monitor": {"monitor": monitors[1]},
        **({"direction": {"direction": "both"}} if traits.directed else {}),
        **({"rows": {"scale": "rows"}} if traits.sparse else {}),
    }
    if model == MODEL and round_ in changed | OWN_ROUNDS:
        structure = shared | OWN | (changed | OWN_ROUNDS)[round_]
        return [structure | numbers for numbers in NUMBERS]
    if model != MODEL and round_ in changed:
        # Its card trains on sampled neighbours, which is for graphs that fit no GPU.
        full = {"batches": "full"} if model == "graphsage-mean" else {}
        return [shared | changed[round_] | full]
    return []


def seeds_for(graph: Graph) -> Sequence[int]:
    """Three to ten splits, as many as NODES nodes allow; of a single split, up to four seeds."""
    most = MOST if len(graph.splits) > 1 else MOST_SEEDS
    return range(max(FEWEST, min(most, NODES // graph.n)))
