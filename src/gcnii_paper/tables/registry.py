"""Every table and figure of the paper: its cells, by name, and its models; and one of our own."""

from __future__ import annotations

from gcnii.errors import InputError, did_you_mean
from gcnii_paper.tables import beyond, figures, table1, table2, table3, table4, table5
from gcnii_paper.tables.cells import Cell

TITLES = {
    "table2": "Table 2: accuracy on the public splits (%)",
    "table3": "Table 3: accuracy by depth on the public splits (%)",
    "table4": "Table 4: micro-F1 on PPI (%)",
    "table5": "Table 5: mean accuracy over ten splits (%)",
    "figure1": "Figure 1: GCN with residual by depth, all degrees together (%)",
    "figure2": "Figure 2: the ablation by depth (%)",
}
CELLS: dict[str, tuple[Cell, ...]] = {
    "table2": table2.CELLS,
    "table3": table3.CELLS,
    "table4": table4.CELLS,
    "table5": table5.CELLS,
    "figure1": figures.FIGURE_1,
    "figure2": figures.FIGURE_2,
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
    if table == "table4" and not table4.has_ppi():
        return tuple(map(table4.stand_in, table4.CELLS))
    return CELLS[table]


def choose(table: str, only: str = "") -> list[Cell]:
    """The cells of a table whose id contains this word."""
    cells = [cell for cell in cells_of(table) if only.lower() in cell.id]
    if not cells:
        raise InputError(
            f"no cell of {table} has {only!r} in its name; names are like {cells_of(table)[0].id}"
        )
    return cells
