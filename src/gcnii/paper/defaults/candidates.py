"""What is measured: the development graphs, the candidates for the default, and the baselines."""

from __future__ import annotations

from itertools import product

from gcnii.nn.settings import Settings

# Names of the catalog, then files of the folder that `--data` names.
CATALOG = (
    *("cora", "citeseer", "pubmed", "cora-full", "citeseer-full", "pubmed-full", "digits"),
    *("chameleon", "texas", "wisconsin", "cornell", "film", "squirrel", "chameleon-filtered"),
    *("minesweeper", "amazon-photo", "coauthor-cs"),
)
FILES = ("facebook", "humango", "cora-ml", "twitch-engb")
# They need another head and no self-loops, which no candidate has: reported, not chosen by.
REPORTED = frozenset({"squirrel", "chameleon", "texas", "wisconsin", "cornell"})

BASELINES = ("mlp", "gcn", "gat", "appnp", "graphsage-mean")
STOP: Settings = {"epochs": 500, "patience": 80}


def _numbers(alpha: float, lam: float, dropout: float, conv: float, dense: float) -> Settings:
    numbers = {"alpha": alpha, "lam": lam, "dropout": dropout}
    return numbers | {"decay_conv": conv, "decay_dense": dense, "lr": 0.01}


# What differs in numbers alone trains as one batch.
NUMBERS = tuple(
    _numbers(*numbers)
    for numbers in (
        (0.1, 0.5, 0.5, 1e-4, 1e-4),
        (0.1, 0.5, 0.6, 1e-2, 5e-4),
        (0.1, 0.5, 0.2, 1e-4, 1e-4),
        (0.1, 1.5, 0.5, 1e-4, 1e-4),
        (0.3, 0.5, 0.5, 1e-4, 1e-4),
        (0.3, 1.0, 0.5, 1e-3, 5e-4),
        (0.5, 0.5, 0.5, 1e-4, 1e-4),
        (0.5, 1.0, 0.6, 1e-3, 1e-3),
        (0.2, 1.0, 0.7, 5e-4, 5e-4),
        (0.2, 1.0, 0.5, 0.0, 0.0),
    )
)
BASE: Settings = {"layers": 8, "width": 64, "scale": "length", "monitor": "val_score_loss"}
SPARSE = ("none", "rows", "columns")  # beside BASE's
DENSE = ("none", "standard", "columns")


def structures(*, sparse: bool, directed: bool) -> list[Settings]:
    """The candidates' layers, widths, scales, monitors and directions, for such a graph.

    sparse  whether its features are mostly zeros
    """
    base = BASE if sparse else BASE | {"scale": "standard"}
    scales = (scale for scale in (SPARSE if sparse else DENSE) if scale != base["scale"])
    changes: list[Settings] = [
        {},
        *({"scale": scale} for scale in scales),
        *({"layers": layers} for layers in (2, 4, 16)),
        {"width": 256},
        {"monitor": "val_loss"},
        *([{"direction": "both"}] if directed else []),
    ]
    return [base | change for change in changes]


def candidates(*, sparse: bool, directed: bool) -> list[Settings]:
    """All candidates for such a graph, those of one structure one after the other."""
    both = product(structures(sparse=sparse, directed=directed), NUMBERS)
    return [STOP | structure | numbers for structure, numbers in both]
