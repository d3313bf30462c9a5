"""What is searched: the cells whose settings nobody published, and the values tried for each."""

from __future__ import annotations

from collections.abc import Iterable

from gcnii.errors import InputError
from gcnii.train.presets import Settings, preset
from gcnii_paper.search.search import Search
from gcnii_paper.tables import figure1, figure2, table3
from gcnii_paper.tables.cells import Cell

Axis = tuple[Settings, ...]


def _axis(name: str, *values: object) -> Axis:
    return tuple({name: value} for value in values)


def _decays(*values: float) -> Axis:
    """The same decay for all weights."""
    return tuple({"decay_conv": value, "decay_dense": value} for value in values)


DROPOUT = _axis("dropout", 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)

# What Rong et al. 2020 searched, as far as they say it.
DROPEDGE = (
    _axis("lr", 0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.009, 0.01),
    _decays(1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2),
    _axis("drop_edge", 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
    DROPOUT,
    _axis("norm", "symmetric", "walk", "first-order", "symmetric+I"),
    _axis("self_weight", False, True),
    _axis("batch_norm", False, True),
)

# GCNII's skeleton with other convolutions.
_PLAIN = (
    _axis("lr", 0.001, 0.002, 0.005, 0.01),
    _decays(0.0, 5e-6, 5e-5, 5e-4, 5e-3),
    DROPOUT,
    _axis("width", 64, 128, 256),
)
SKELETON = {
    "deep-gcn": _PLAIN,
    "gcn-residual": _PLAIN,
    "gcn-initial": (*_PLAIN, _axis("alpha", 0.1, 0.2, 0.3, 0.4, 0.5)),
    "gcn-identity": (*_PLAIN, _axis("lam", 0.5, 1.0, 1.5)),
}

# What Table 5's authors say they searched, and Table 2's own decay, 0.01.
_L2 = (1e-2, 1e-3, 5e-4, 1e-4, 5e-5, 1e-5, 5e-6, 1e-6)
_GCNII = (
    DROPOUT,
    _axis("alpha", 0.1, 0.2, 0.3, 0.4, 0.5),
    _axis("lam", 0.5, 1.0, 1.5),
    _axis("decay_conv", *_L2),
    _axis("decay_dense", *_L2),
)
AT_EACH_DEPTH: dict[str, tuple[Axis, ...]] = dict.fromkeys(("gcnii", "gcnii-star"), _GCNII)


def _searches(cells: Iterable[Cell], axes: dict[str, tuple[Axis, ...]]) -> list[Search]:
    return [
        Search(
            cell.id, cell.graph, cell.model, {"layers": cell.settings["layers"]}, axes[cell.model]
        )
        for cell in cells
    ]


def _unpublished(cell: Cell) -> bool:
    """Whether it has DropEdge, at another depth than the published one."""
    return (
        "(Drop)" in cell.row and preset(cell.graph, cell.model)["layers"] != cell.settings["layers"]
    )


SEARCHES = {
    search.name: search
    for search in (
        *_searches(filter(_unpublished, table3.CELLS), dict.fromkeys(table3.FAMILY, DROPEDGE)),
        *_searches(table3.SEARCHED, AT_EACH_DEPTH),
        *_searches(figure1.CELLS, SKELETON),
        *_searches((cell for cell in figure2.CELLS if cell.model in SKELETON), SKELETON),
    )
}


def choose_searches(word: str) -> list[Search]:
    """The searches whose name contains this word."""
    found = [search for name, search in SEARCHES.items() if word.lower() in name]
    if not found:
        raise InputError(
            f"no search has {word!r} in its name; names are like {next(iter(SEARCHES))}"
        )
    return found
