"""The cells of Figures 1 and 2, for which the paper prints neither numbers nor settings.

Figure 1 is the accuracy of a GCN with residual connections by degree and depth.  The accuracy of
each run is kept by degree (`analysis.by_degree`), for all nodes and for the test nodes.  The
paper's figure is of all nodes, training nodes included: only then does Cora have the eight groups
that the authors speak of.

Figure 2 is the ablation by depth: initial residual, identity mapping, both, or neither.  All arms
share GCNII's skeleton; their settings are those of the presets, which are Table 2's, or found by
our searches.
"""

from __future__ import annotations

from gcnii_paper.tables.cells import Cell, slug
from gcnii_paper.tables.printed import DEPTHS, PUBLIC
from gcnii_paper.tables.searched import ADOPTED, whose


def _degree_cell(name: str, layers: int) -> Cell:
    cell = f"figure1/{name}/{layers}"
    return Cell(
        table="figure1",
        row=name.capitalize(),
        column=str(layers),
        graph=name,
        model="gcn-residual",
        settings={"layers": layers} | ADOPTED.get(cell, {}),
        note=whose(cell),
        by_degree=True,
    )


FIGURE_1 = tuple(_degree_cell(name, layers) for name in PUBLIC for layers in DEPTHS)


ARMS = {
    "GCN": "deep-gcn",
    "GCN with initial residual": "gcn-initial",
    "GCN with identity mapping": "gcn-identity",
    "GCNII": "gcnii",
}


def _ablation_cell(name: str, arm: str, layers: int) -> Cell:
    row = f"{name.capitalize()} {arm}"
    cell = f"figure2/{slug(row)}/{layers}"
    return Cell(
        table="figure2",
        row=row,
        column=str(layers),
        graph=name,
        model=ARMS[arm],
        settings={"layers": layers} | ADOPTED.get(cell, {}),
        note="" if arm == "GCNII" else whose(cell),
    )


FIGURE_2 = tuple(
    _ablation_cell(name, arm, layers) for name in PUBLIC for arm in ARMS for layers in DEPTHS
)
