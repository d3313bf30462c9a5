"""Both figures of the paper from measured cells: the drawing, and what the paper says of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gcnii.analysis import Curve, curves
from gcnii.report.figures import inline_svg
from gcnii_paper.report.figures.claims import Claim
from gcnii_paper.report.figures.figure1 import WHO, degree_claims, draw_figure1
from gcnii_paper.report.figures.figure2 import Arm, ablation_claims, draw_figure2
from gcnii_paper.tables.cells import Cell, MeasuredCell
from gcnii_paper.tables.registry import CELLS

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure


def degree_curves(measured: Iterable[MeasuredCell]) -> list[Curve]:
    """Figure 1's lines, from the cells whose runs have accuracies by degree."""
    cells = _declared("figure1", measured)
    graded = [(cell, [run.by_degree for run in one.runs if run.by_degree]) for cell, one in cells]
    return [
        line
        for cell, rows in graded
        if rows
        for line in curves(cell.graph, cell.settings["layers"], rows)
    ]


def ablation_arms(measured: Iterable[MeasuredCell]) -> list[Arm]:
    """Figure 2's lines."""
    tests: dict[tuple[str, str], dict[int, tuple[float, ...]]] = {}
    for cell, one in _declared("figure2", measured):
        if one.mean != one.mean:
            continue
        tests.setdefault((cell.graph, cell.model), {})[cell.settings["layers"]] = one.test
    return [Arm(graph, model, by_depth) for (graph, model), by_depth in tests.items()]


def _declared(figure: str, measured: Iterable[MeasuredCell]) -> list[tuple[Cell, MeasuredCell]]:
    """The figure's cells that were measured, in the order of their declaration."""
    found = {one.cell: one for one in measured}
    return [(cell, found[cell.id]) for cell in CELLS[figure] if cell.id in found]


@dataclass(frozen=True)
class PaperFigure:
    """A drawing, and what the paper says of it, by graph."""

    name: str
    title: str
    caption: str
    drawing: Figure | None
    claims: dict[str, list[Claim]]

    def svg(self) -> Markup:
        """The drawing as SVG to include in the page."""
        assert self.drawing is not None
        return inline_svg(self.drawing, self.name, self.title)


def figures(measured: Iterable[MeasuredCell]) -> list[PaperFigure]:
    """Both figures, with a drawing if there is anything to draw."""
    measured = list(measured)
    return [_figure1(degree_curves(measured)), _figure2(ablation_arms(measured))]


def _figure1(lines: list[Curve]) -> PaperFigure:
    panels = [(graph, who) for graph in dict.fromkeys(line.graph for line in lines) for who in WHO]
    claims = {
        f"{graph}, {WHO[who]}": degree_claims(
            line for line in lines if (line.graph, line.who) == (graph, who)
        )
        for graph, who in panels
    }
    return PaperFigure(
        "figure1",
        "Figure 1: accuracy of a GCN with residual connections, by degree and depth",
        "Below each group of degrees: its number of nodes. "
        "Bands and bars: 95 % intervals over a group's nodes.",
        draw_figure1(lines) if lines else None,
        claims,
    )


def _figure2(arms: list[Arm]) -> PaperFigure:
    claims = {
        graph: ablation_claims(arm for arm in arms if arm.graph == graph)
        for graph in dict.fromkeys(arm.graph for arm in arms)
    }
    return PaperFigure(
        "figure2",
        "Figure 2: initial residual and identity mapping, alone and together, by depth",
        "Mean over the seeds; bands: one standard deviation.",
        draw_figure2(arms) if arms else None,
        claims,
    )
