"""Figure 2: the ablation by depth: initial residual, identity mapping, both, or neither.

The paper prints neither numbers nor settings.  All arms share GCNII's skeleton; their settings are
those of the presets, which are Table 2's, or found by our searches.
"""

from __future__ import annotations

from gcnii_paper.tables.cells import Cell, slug
from gcnii_paper.tables.printed import DEPTHS, PUBLIC
from gcnii_paper.tables.searched import ADOPTED, whose

RUNS = 10
ARMS = {
    "GCN": "deep-gcn",
    "GCN with initial residual": "gcn-initial",
    "GCN with identity mapping": "gcn-identity",
    "GCNII": "gcnii",
}


def _cell(name: str, arm: str, layers: int) -> Cell:
    row = f"{name.capitalize()} {arm}"
    cell = f"figure2/{slug(row)}/{layers}"
    return Cell(
        table="figure2",
        row=row,
        column=str(layers),
        graph=name,
        model=ARMS[arm],
        settings={"layers": layers} | ADOPTED.get(cell, {}),
        runs=RUNS,
        note="" if arm == "GCNII" else whose(cell),
    )


CELLS = tuple(_cell(name, arm, layers) for name in PUBLIC for arm in ARMS for layers in DEPTHS)
