"""Table 5: mean accuracy over the ten splits of Geom-GCN."""

from __future__ import annotations

from gcnii.train.presets import preset
from gcnii_paper.tables import table2
from gcnii_paper.tables.cells import Cell
from gcnii_paper.tables.printed import TABLE_5, TEN_SPLITS

WEB = ("chameleon", "cornell", "texas", "wisconsin")

# row of the paper: model, settings that differ from the preset, key of TABLE_5.  The rows are Table
# 2's, with Geom-GCN's after GAT.
_GEOM: dict[str, table2.Row] = {
    f"Geom-GCN-{x}": (f"geom-gcn-{x.lower()}", {}, f"geom-gcn-{x.lower()}") for x in "IPS"
}
_TWO = [*table2.ROWS.items()]
ROWS: dict[str, table2.Row] = dict([*_TWO[:2], *_GEOM.items(), *_TWO[2:]])

LAST_WEIGHTS = (
    "Geom-GCN's number, whose code tests the weights of the last epoch where it means the best ones"
)

KEPT = (
    "the appendix's rate of DropEdge read as the share of links that stay, "
    "which DropEdge's own scripts ask for"
)


def _cell(row: str, name: str) -> Cell:
    model, settings, key = ROWS[row]
    return Cell(
        table="table5",
        row=row,
        column=name.removesuffix("-full").capitalize(),
        graph=name,
        model=model,
        settings=settings,
        printed=TABLE_5[key][name],
        note=LAST_WEIGHTS if row in ("GCN", "GAT", *_GEOM) else "",
    )


def _kept(row: str, name: str) -> Cell:
    """A row with DropEdge whose rate is read as the share of links that stay."""
    cell = _cell(row, name)
    rate = round(1 - preset(name, cell.model)["drop_edge"], 1)
    return cell.below("rate kept", KEPT, settings={"drop_edge": rate})


CELLS = (
    *(_cell(row, name) for row in ROWS for name in TEN_SPLITS),
    *table2.below("table5", "as printed", _cell),
    *table2.below("table5", "links both ways", _cell),
    *table2.below("table5", "decay 0.001", _cell),
    *(_kept(row, name) for row in ("JKNet(Drop)", "Incep(Drop)") for name in WEB),
    *table2.below("table5", "corrected in 2022", _cell),
    *table2.below("table5", "60/20/20", _cell),
)
