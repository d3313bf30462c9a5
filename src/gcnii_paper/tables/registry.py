"""Every table and figure of the paper: its cells, by name; and one table of our own.

Table 2 is the accuracy on the public splits, 20 labels per class; Table 5 the mean over the ten
splits of Geom-GCN.  Table 4 is micro-F1 on PPI, or, without its files, a few epochs on a stand-in
of its shape.

Table 3 is the accuracy by depth.  GCNII has Table 2's settings at every depth, as its authors say.
The paper's text says that each depth had its own; so GCNII also stands below the table, with
settings of our own where they have been searched for.  For the DropEdge family one depth per data
set was published; the other depths have settings of our own, chosen by validation (`search.py`).
Rows without DropEdge have the same settings with all links, as in the scripts of DropEdge's
authors.

For the figures the paper prints neither numbers nor settings.  Figure 1 is the accuracy of a GCN
with residual connections by degree and depth.  The accuracy of each run is kept by degree
(`analysis.by_degree`), for all nodes and for the test nodes.  The paper's figure is of all nodes,
training nodes included: only then does Cora have the eight groups that the authors speak of.

Figure 2 is the ablation by depth: initial residual, identity mapping, both, or neither.  All arms
share GCNII's skeleton; their settings are those of the presets, which are Table 2's, or found by
our searches.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gcnii.data import fetch
from gcnii.errors import DataError, InputError, did_you_mean
from gcnii.train.presets import Settings, preset
from gcnii_paper.tables import beyond, table1
from gcnii_paper.tables.cells import Cell, slug
from gcnii_paper.tables.printed import (
    DEPTHS,
    PUBLIC,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TABLE_5,
    TEN_SPLITS,
    Printed,
)

# Settings that nobody published: the winners of our searches in results/search, by their names.  A
# cell that is not here yet has the published settings of the nearest cell, at its own depth.
FILE = Path(__file__).with_name("searched.json")  # made by `gcnii reproduce adopt`
ENOUGH = 10  # tries before a winner is adopted
OURS = f"settings are ours, by validation the best of at least {ENOUGH} tries"
ADOPTED: dict[str, Settings] = json.loads(FILE.read_text("utf-8"))


# Tables 2 and 5.  Row of the paper: model, settings that differ from the preset, key of the table.
Row = tuple[str, Settings, str]
_FIRST: dict[str, Row] = {"GCN": ("gcn", {}, "gcn"), "GAT": ("gat", {}, "gat")}
_GEOM: dict[str, Row] = {
    f"Geom-GCN-{x}": (f"geom-gcn-{x.lower()}", {}, f"geom-gcn-{x.lower()}") for x in "IPS"
}
_LAST: dict[str, Row] = {
    "APPNP": ("appnp", {}, "appnp"),
    "JKNet": ("jknet", {"drop_edge": 0.0}, "jknet, all links"),
    "JKNet(Drop)": ("jknet", {}, "jknet"),
    "Incep(Drop)": ("incep", {}, "incep"),
    "GCNII": ("gcnii", {}, "gcnii"),
    "GCNII*": ("gcnii-star", {}, "gcnii-star"),
}
ROWS = {"table2": _FIRST | _LAST, "table5": _FIRST | _GEOM | _LAST}
_PRINTED = {"table2": TABLE_2, "table5": TABLE_5}
ONE_RUN = "DropEdge printed one run, with seed 42"
OTHERS = f"{ONE_RUN}; others who ran its scripts report 81 on Cora and 67.9 on Citeseer"
JKNET = (
    "by Table 3 the printed number is of another depth than it says: on Cora of 32, not 4, "
    "on Pubmed of 8, not 32"
)
QUOTED_LOOPS = (
    "a node's own self-loop counts beside the one that P̃ adds, as for GCNII; "
    "the quoted code counts one"
)
LAST_WEIGHTS = (
    "Geom-GCN's number, whose code tests the weights of the last epoch where it means the best ones"
)
KEPT = (
    "the appendix's rate of DropEdge read as the share of links that stay, "
    "which DropEdge's own scripts ask for"
)
WEB = ("chameleon", "cornell", "texas", "wisconsin")
_BELOW = tomllib.loads(Path(__file__).with_name("below.toml").read_text("utf-8"))


def _note(table: str, row: str, name: str) -> str:
    if table == "table5":
        return LAST_WEIGHTS if row in ("GCN", "GAT", *_GEOM) else ""
    if row in ("GCN", "APPNP") and name != "cora":  # Cora has no loops
        return QUOTED_LOOPS
    if row == "JKNet" and name != "citeseer":
        return f"{ONE_RUN}; {JKNET}"
    return {"JKNet": ONE_RUN, "JKNet(Drop)": OTHERS, "Incep(Drop)": ONE_RUN}.get(row, "")


def _cell(table: str, row: str, name: str) -> Cell:
    """A cell of Table 2 or 5."""
    model, settings, key = ROWS[table][row]
    return Cell(
        table=table,
        row=row,
        column=name.removesuffix("-full").capitalize(),
        graph=name,
        model=model,
        settings=settings,
        printed=_PRINTED[table][key][name],
        note=_note(table, row, name),
    )


def _below(table: str, *ways: str) -> Iterator[Cell]:
    """Rows of our own, as below.toml has them: a table's with one thing changed."""
    for how in ways:
        said = _BELOW[how]
        paper = (_cell(table, row, name) for row in said["rows"] for name in said[table])
        yield from (one.below(how, said["note"], **said["change"]) for one in paper)


def _kept(row: str, name: str) -> Cell:
    """A row with DropEdge whose rate is read as the share of links that stay."""
    cell = _cell("table5", row, name)
    rate = round(1 - preset(name, cell.model)["drop_edge"], 1)
    return cell.below("rate kept", KEPT, settings={"drop_edge": rate})


_TABLE_2 = (
    *(_cell("table2", row, name) for row in ROWS["table2"] for name in PUBLIC),
    *_below("table2", "as printed", "no own loops"),
)
_TABLE_5 = (
    *(_cell("table5", row, name) for row in ROWS["table5"] for name in TEN_SPLITS),
    *_below("table5", "as printed", "links both ways", "decay 0.001"),
    *(_kept(row, name) for row in ("JKNet(Drop)", "Incep(Drop)") for name in WEB),
    *_below("table5", "corrected in 2022", "60/20/20"),
)


# Table 3.  Row of the paper: model, key of TABLE_3.
_BY_DEPTH = {
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
    """The cell of Table 3 with the winner of its search."""
    row = cell.row.removeprefix(f"{cell.graph.capitalize()} ")
    return _deep_cell(cell.graph, row, cell.settings["layers"], found)


def _settings(row: str, layers: int, found: Settings | None) -> Settings:
    settings: Settings = {"layers": layers} | (found or {})
    if _BY_DEPTH[row][0] in FAMILY and "(Drop)" not in row:
        settings["drop_edge"] = 0.0
    return settings


def _notes(
    name: str, row: str, layers: int, printed: Printed | None, found: Settings | None
) -> Iterator[str]:
    model = _BY_DEPTH[row][0]
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


def _deep_cell(name: str, row: str, layers: int, found: Settings | None = None) -> Cell:
    """A cell of Table 3; `found` are settings of ours, searched for at this depth."""
    model, key = _BY_DEPTH[row]
    printed = TABLE_3[name][key].get(layers)
    if model in FAMILY and found is None:
        found = ADOPTED.get(search_name(name, model, layers))
    return _at(
        name,
        layers,
        row,
        model=model,
        settings=_settings(row, layers, found),
        printed=printed,
        note="; ".join(_notes(name, row, layers, printed, found)),
        ours=model in FAMILY and layers != preset(name, model)["layers"],
    )


def _at(name: str, layers: int, row: str, **own: Any) -> Cell:
    """A cell of Table 3, or below it."""
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
    model, key = _BY_DEPTH[row]
    return _at(
        name,
        layers,
        f"{row}, searched",
        model=model,
        settings={"layers": layers} | found,
        printed=TABLE_3[name][key][layers],
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
_TABLE_3 = (
    *(
        _deep_cell(name, row, layers)
        for name in PUBLIC
        for row, (model, _) in _BY_DEPTH.items()
        for layers in DEPTHS
        if layers >= SHALLOWEST.get(model, 2)
    ),
    *(_kipf(name, layers) for name in PUBLIC for layers in DEPTHS),
    # without adopted settings they would be the table's own cells under another name
    *(cell for cell in SEARCHED if cell.id in ADOPTED),
)


# Table 4.  Row of the paper: model, which is its key.
ON_PPI = {
    "GraphSAGE": "graphsage-lstm",
    "VR-GCN": "vr-gcn-cvd",
    "GaAN": "gaan",
    "GAT": "gat-ppi",
    "JKNet": "jknet-lstm",
    "GeniePath": "geniepath-lazy",
    "Cluster-GCN": "cluster-gcn",
    "GCNII": "gcnii-ppi",
    "GCNII*": "gcnii-star-ppi",
}
SHORT = {"graphsage-lstm": 10, "gaan": 4}  # epochs on the stand-in; the others have EPOCHS
EPOCHS = 20
_TABLE_4 = tuple(
    Cell(table="table4", row=row, column="PPI", graph="ppi", model=model, printed=TABLE_4[model])
    for row, model in ON_PPI.items()
)


def stand_in(cell: Cell) -> Cell:
    """The same model on `ppi-like`: this shows that it trains at that size, and no more."""
    epochs = SHORT.get(cell.model, EPOCHS)
    return replace(
        cell,
        graph="ppi-like",
        settings={"epochs": epochs},
        runs=1,
        note=f"{epochs} epochs on a stand-in for PPI; says nothing of the printed number",
        stand_in=True,
    )


def has_ppi() -> bool:
    """Whether the files of PPI are in the cache or the mirror."""
    try:
        return bool(fetch("ppi", offline=True))
    except DataError:
        return False


# The figures.  Arm of Figure 2: model.
ARMS = {
    "GCN": "deep-gcn",
    "GCN with initial residual": "gcn-initial",
    "GCN with identity mapping": "gcn-identity",
    "GCNII": "gcnii",
}


def _figure_cell(table: str, name: str, arm: str, model: str, layers: int) -> Cell:
    """A cell of a figure, for whose settings the paper says nothing."""
    row = f"{name.capitalize()} {arm}".rstrip()
    cell = f"{table}/{slug(row)}/{layers}"
    note = OURS if cell in ADOPTED else "settings are Table 2's, not searched for"
    return Cell(
        table=table,
        row=row,
        column=str(layers),
        graph=name,
        model=model,
        settings={"layers": layers} | ADOPTED.get(cell, {}),
        note="" if arm == "GCNII" else note,
        by_degree=table == "figure1",
    )


_FIGURE_1 = tuple(
    _figure_cell("figure1", name, "", "gcn-residual", layers)
    for name in PUBLIC
    for layers in DEPTHS
)
_FIGURE_2 = tuple(
    _figure_cell("figure2", name, arm, model, layers)
    for name in PUBLIC
    for arm, model in ARMS.items()
    for layers in DEPTHS
)


TITLES = {
    "table2": "Table 2: accuracy on the public splits (%)",
    "table3": "Table 3: accuracy by depth on the public splits (%)",
    "table4": "Table 4: micro-F1 on PPI (%)",
    "table5": "Table 5: mean accuracy over ten splits (%)",
    "figure1": "Figure 1: GCN with residual by depth, all degrees together (%)",
    "figure2": "Figure 2: the ablation by depth (%)",
}
CELLS: dict[str, tuple[Cell, ...]] = {
    "table2": _TABLE_2,
    "table3": _TABLE_3,
    "table4": _TABLE_4,
    "table5": _TABLE_5,
    "figure1": _FIGURE_1,
    "figure2": _FIGURE_2,
}
NAMES = (table1.NAME, *TITLES, "all", beyond.NAME)  # Table 1 has no runs, and so no cells


def cells_of(table: str) -> tuple[Cell, ...]:
    """The cells of a table or figure; `all` are the paper's, so those of `beyond` are not in it.

    Table 4's are on a stand-in if PPI is not here.
    """
    if table == "all":
        return tuple(cell for name in TITLES for cell in cells_of(name))
    if table == beyond.NAME:
        return beyond.cells()
    if table not in TITLES:
        raise InputError(
            f"the paper has no {table!r}; {did_you_mean(table, NAMES)}known: {', '.join(NAMES)}"
        )
    if table == "table4" and not has_ppi():
        return tuple(map(stand_in, CELLS[table]))
    return CELLS[table]


def choose(table: str, only: str = "") -> list[Cell]:
    """The cells of a table whose id contains this word."""
    cells = [cell for cell in cells_of(table) if only.lower() in cell.id]
    if not cells:
        raise InputError(
            f"no cell of {table} has {only!r} in its name; names are like {cells_of(table)[0].id}"
        )
    return cells
