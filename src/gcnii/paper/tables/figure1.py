"""Figure 1: accuracy of a GCN with residual connections by degree and depth.

The paper prints neither numbers nor settings.  Each run is graded by degree (`analysis.by_degree`),
all nodes and the
test nodes apart.  The paper's figure is of all nodes, those learnt from too: the eight groups that
                   the authors speak of
exist on Cora only so.
"""

from __future__ import annotations

from gcnii.paper.tables.cells import Cell
from gcnii.paper.tables.printed import DEPTHS, PUBLIC
from gcnii.paper.tables.searched import ADOPTED, whose

RUNS = 10


def _cell(name: str, layers: int) -> Cell:
    cell = f"figure1/{name}/{layers}"
    return Cell(
        table="figure1",
        row=name.capitalize(),
        column=str(layers),
        graph=name,
        model="gcn-residual",
        settings={"layers": layers} | ADOPTED.get(cell, {}),
        runs=RUNS,
        note=whose(cell),
        by_degree=True,
    )


CELLS = tuple(_cell(name, layers) for name in PUBLIC for layers in DEPTHS)
