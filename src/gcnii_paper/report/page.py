"""report.html: one self-contained page with every cell, its seeds, both figures and the doctor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from gcnii import __version__
from gcnii.files import atomic_write, refuse_replacing
from gcnii.report.figures import is_figure, save
from gcnii.report.html import is_page, one_file
from gcnii_paper.report import beyond as told
from gcnii_paper.report.doctor_page import CAPTIONS, DoctorVisit, read_visits
from gcnii_paper.report.figures import PaperFigure, figures
from gcnii_paper.report.grid import MARKS, grid
from gcnii_paper.report.markdown import takeaway
from gcnii_paper.report.sentences import table_claims
from gcnii_paper.standing import beyond_rows
from gcnii_paper.tables.cells import MeasuredCell, read_cells
from gcnii_paper.tables.registry import CELLS


def page(
    measured: Sequence[MeasuredCell],
    drawn: Iterable[PaperFigure],
    visits: Iterable[DoctorVisit] = (),
    beyond: Path | None = None,
) -> str:
    """The page as HTML; `beyond` is results/beyond."""
    measured, drawn = list(measured), list(drawn)
    papers = [one for one in measured if one.table in CELLS]
    grids = {name: grid(name, measured) for name in CELLS}
    return one_file(
        "gcnii_paper.report",
        takeaway=takeaway(grids.values(), drawn),
        grids=grids,
        figures={one.name: one for one in drawn},
        sentences=table_claims(measured),
        visits=list(visits),
        beyond=beyond_rows(measured, folder=beyond),
        told=told,
        captions=CAPTIONS,
        words=list(MARKS),
        # cells share runs
        runs=len({(one.settings_hash, run.seed) for one in papers for run in one.runs}),
        version=__version__,
    )


def write_page(results: Path, out: Path, *, overwrite: bool = False) -> list[Path]:
    """Write the page of results/cells and results/doctor, and each figure of the paper beside it.

    The figures are written as SVG and as PNG.  Returns the paths of all files.
    """
    measured = read_cells(results / "cells")
    drawn = figures(measured)
    visits = read_visits(results / "doctor")
    refuse_replacing(out, is_page, overwrite=overwrite)
    for one in drawn:
        for kind in (".svg", ".png"):
            refuse_replacing(out.with_name(f"{one.name}{kind}"), is_figure, overwrite=overwrite)
    with atomic_write(out) as temporary:
        temporary.write_text(page(measured, drawn, visits, results / "beyond"), "utf-8")
    pictures = [
        save(one.drawing, out.with_name(f"{one.name}{kind}"), overwrite=overwrite)
        for one in drawn
        if one.drawing
        for kind in (".svg", ".png")
    ]
    return [out, *pictures]
