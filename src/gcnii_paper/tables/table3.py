"""Table 3: accuracy by depth on the public splits.

GCNII has Table 2's settings at every depth, as its authors say.  The paper's text says that each
depth had its own; so GCNII also stands below the table, with settings of our own where they have
been searched for.  For the DropEdge family one depth per data set was published; the other depths
have settings of our own, chosen by validation (`search.py`).  Rows without DropEdge have the same
settings with all links, as in the scripts of DropEdge's authors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gcnii.train.presets import Settings, preset
from gcnii_paper.tables.cells import Cell, slug
from gcnii_paper.tables.printed import DEPTHS, PUBLIC, TABLE_3, Printed
from gcnii_paper.tables.searched import ADOPTED, OURS
from gcnii_paper.tables.table2 import ONE_RUN

# row of the paper: model, key of TABLE_3
ROWS = {
    "GCN": ("dropedge-gcn", "gcn"),
    "GCN(Drop)": ("dropedge-gcn", "gcn drop"),
    "JKNet": ("jknet", "jknet"),
    "JKNet(Drop)": ("jknet", "jknet drop"),
    "Incep": ("incep", "incep"),
    "Incep(Drop)": ("incep", "incep drop"),
    "GCNII": ("gcnii", "gcnii"),
    "GCNII*": ("gcnii-star", "gcnii-star"),
}
FAMILY = {"dropedge-gcn": "GCN", "jknet": "JKNet", "incep": "Incep"}
SHALLOWEST = {"jknet": 4, "incep": 4}  # with 2 layers both are a GCN, and the paper has a dash
ALL_LINKS = f"{OURS} with DropEdge, here with all links"
TABLE_2_S = (
    "Table 2's settings, as the authors say; the paper's text speaks of a search at each depth"
)
AT_EACH_DEPTH = (
    "the paper's text speaks of a search at each depth, its authors of Table 2's settings"
)
NOBODY = "; DropEdge's were never published, and others could not reach its deep numbers either"


def search_name(name: str, model: str, layers: int) -> str:
    """The id of the cell with DropEdge, whose settings the one without shares."""
    return f"table3/{slug(f'{name} {FAMILY[model]}(Drop)')}/{layers}"


def search_of(cell: Cell) -> str:
    """The name of the search that a cell's settings come from; "" if they are published."""
    return search_name(cell.graph, cell.model, cell.settings["layers"]) if cell.ours else ""


def adopted(cell: Cell, found: Settings) -> Cell:
    """The cell with the winner of its search."""
    row = cell.row.removeprefix(f"{cell.graph.capitalize()} ")
    return _cell(cell.graph, row, cell.settings["layers"], found)


def _settings(row: str, layers: int, found: Settings | None) -> Settings:
    settings: Settings = {"layers": layers} | (found or {})
    if ROWS[row][0] in FAMILY and "(Drop)" not in row:
        settings["drop_edge"] = 0.0
    return settings


def _notes(
    name: str, row: str, layers: int, printed: Printed | None, found: Settings | None
) -> Iterator[str]:
    model = ROWS[row][0]
    if printed is None:
        yield "the paper ran out of memory"
    elif model in FAMILY:
        yield ONE_RUN
    if layers == preset(name, model)["layers"]:
        return
    if model not in FAMILY:
        yield TABLE_2_S
        if model == "gcnii-star" and printed == TABLE_3[name]["gcnii"][layers]:
            yield "the printed number is the same as GCNII's"
    elif found is not None:
        yield (OURS if "(Drop)" in row else ALL_LINKS) + (NOBODY if layers >= 8 else "")
    else:
        yield "settings as published for another depth"


def _cell(name: str, row: str, layers: int, found: Settings | None = None) -> Cell:
    """A cell of the paper's; `found` are settings of ours, searched for at this depth."""
    model, key = ROWS[row]
    printed = TABLE_3[name][key].get(layers)
    if model in FAMILY and found is None:
        found = ADOPTED.get(search_name(name, model, layers))
    ours = model in FAMILY and layers != preset(name, model)["layers"]
    return _at(
        name,
        layers,
        row,
        model=model,
        settings=_settings(row, layers, found),
        printed=printed,
        note="; ".join(_notes(name, row, layers, printed, found)),
        ours=ours,
    )


def _at(name: str, layers: int, row: str, **own: Any) -> Cell:
    """A cell of this table, or below it."""
    row = f"{name.capitalize()} {row}"
    return Cell(table="table3", row=row, column=str(layers), graph=name, **own)


def _kipf(name: str, layers: int) -> Cell:
    return _at(
        name,
        layers,
        "GCN, Kipf's",
        model="gcn",
        settings={"layers": layers},
        printed=TABLE_3[name]["gcn"][layers],
        note="Table 2's GCN made deep; the printed number is of DropEdge's GCN",
        extra=True,
    )


def _searched(name: str, row: str, layers: int) -> Cell:
    found = ADOPTED.get(f"table3/{slug(f'{name} {row}, searched')}/{layers}", {})
    winner = OURS if found.keys() - {"layers"} else f"{OURS}, and no others than Table 2's"
    return _at(
        name,
        layers,
        f"{row}, searched",
        model=ROWS[row][0],
        settings={"layers": layers} | found,
        printed=TABLE_3[name][ROWS[row][1]][layers],
        note=f"{winner}; {AT_EACH_DEPTH}",
        extra=True,
    )


SEARCHED = tuple(
    _searched(name, row, layers)
    for name in PUBLIC
    for row in ("GCNII", "GCNII*")
    for layers in DEPTHS
    if layers != preset(name, "gcnii")["layers"]
)
CELLS = (
    *(
        _cell(name, row, layers)
        for name in PUBLIC
        for row, (model, _) in ROWS.items()
        for layers in DEPTHS
        if layers >= SHALLOWEST.get(model, 2)
    ),
    *(_kipf(name, layers) for name in PUBLIC for layers in DEPTHS),
    # without adopted settings they would be the table's own cells under another name
    *(cell for cell in SEARCHED if cell.id in ADOPTED),
)
