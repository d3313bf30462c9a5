"""report.html: one page that needs nothing else: the tables cell by cell, the seeds, both figures,
the doctor.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gcnii import __version__
from gcnii.analysis.report.style import save
from gcnii.files import atomic_write
from gcnii.paper.report.doctor_page import CAPTIONS, Visit, read_visits
from gcnii.paper.report.figures.paper_figures import Figure, figures
from gcnii.paper.report.grid import MARKS, grid
from gcnii.paper.tables.cells import MeasuredCell, read_cells
from gcnii.paper.tables.registry import CELLS


def page(
    measured: Iterable[MeasuredCell], drawn: Iterable[Figure], visits: Iterable[Visit] = ()
) -> str:
    """The HTML."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    measured = list(measured)
    templates = Environment(
        loader=PackageLoader("gcnii.paper.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("page.html").render(
        grids={name: grid(name, measured) for name in CELLS},
        figures={one.name: one for one in drawn},
        visits=list(visits),
        captions=CAPTIONS,
        words=list(MARKS),
        # cells share runs
        runs=len({(one.settings_hash, run.seed) for one in measured for run in one.runs}),
        version=__version__,
    )


def write_page(results: Path, out: Path) -> list[Path]:
    """Write the page of results/cells and results/doctor, and beside it each figure of the paper as
    SVG and PNG.
    """
    measured = read_cells(results / "cells")
    drawn = figures(measured)
    with atomic_write(out) as temporary:
        temporary.write_text(
            page(measured, drawn, read_visits(results / "doctor", measured)), "utf-8"
        )
    pictures = [
        (one.drawing, out.with_name(f"{one.name}{kind}"))
        for one in drawn
        if one.drawing
        for kind in (".svg", ".png")
    ]
    return [out, *(save(drawing, path) for drawing, path in pictures)]
