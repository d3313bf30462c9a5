"""report.html: one self-contained page with every cell, its seeds, both figures and the doctor."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from gcnii import __version__
from gcnii.analysis.report.style import save
from gcnii.files import atomic_write
from gcnii.paper.report.doctor_page import CAPTIONS, DoctorVisit, read_visits
from gcnii.paper.report.figures.paper_figures import PaperFigure, figures
from gcnii.paper.report.grid import MARKS, grid
from gcnii.paper.tables.cells import MeasuredCell, read_cells
from gcnii.paper.tables.registry import CELLS

if TYPE_CHECKING:
    from jinja2 import Environment

PARTS = ("css", "js")  # written into the page
# The page's own style and script and nothing else: no text of a document can bring its own.
POLICY = (
    "default-src 'none'; style-src {}; script-src {}; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def page(
    measured: Sequence[MeasuredCell],
    drawn: Iterable[PaperFigure],
    visits: Iterable[DoctorVisit] = (),
) -> str:
    """The page as HTML."""
    templates = _templates()
    style, script = (Markup(templates.get_template(f"page.{kind}").render()) for kind in PARTS)
    return templates.get_template("page.html").render(
        style=style,
        script=script,
        policy=POLICY.format(_source(style), _source(script)),
        grids={name: grid(name, measured) for name in CELLS},
        figures={one.name: one for one in drawn},
        visits=list(visits),
        captions=CAPTIONS,
        words=list(MARKS),
        # cells share runs
        runs=len({(one.settings_hash, run.seed) for one in measured for run in one.runs}),
        version=__version__,
    )


def _source(text: str) -> str:
    """What a Content-Security-Policy calls an inline style or script with exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("gcnii.paper.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def write_page(results: Path, out: Path) -> list[Path]:
    """Write the page of results/cells and results/doctor, and each figure of the paper beside it.

    The figures are written as SVG and as PNG.  Returns the paths of all files.
    """
    measured = read_cells(results / "cells")
    drawn = figures(measured)
    visits = read_visits(results / "doctor")
    with atomic_write(out) as temporary:
        temporary.write_text(page(measured, drawn, visits), "utf-8")
    pictures = [
        save(one.drawing, out.with_name(f"{one.name}{kind}"))
        for one in drawn
        if one.drawing
        for kind in (".svg", ".png")
    ]
    return [out, *pictures]
