"""Figure 1: accuracy of a GCN with residual connections by degree and depth.

The paper prints neither numbers nor settings.  The accuracy of each run is kept by degree
(`analysis.by_degree`), for all nodes and for the test nodes.  The paper's figure is of all nodes,
training nodes included: only then does Cora have the eight groups that the authors speak of.
"""

from __future__ import annotations

from gcnii_paper.tables.cells import Cell
from gcnii_paper.tables.printed import DEPTHS, PUBLIC
from gcnii_paper.tables.searched import ADOPTED, whose

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
