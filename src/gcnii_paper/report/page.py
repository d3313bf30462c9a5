"""report.html: one self-contained page with every cell, its seeds, both figures and the doctor.

What `gcnii doctor GRAPH --json` printed is shown there, and on the manual's page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from gcnii import __version__
from gcnii.analysis.checkup import Checkup
from gcnii.analysis.filters import Learned
from gcnii.analysis.report import draw_figures, draw_learned
from gcnii.errors import InputError
from gcnii.files import (
    NOTHING,
    Document,
    Maybe,
    atomic_write,
    document_key,
    read_document,
    refuse_replacing,
)
from gcnii.report.figures import inline_svg, is_figure, save
from gcnii.report.html import is_page, one_file
from gcnii.report.tables import markdown_table
from gcnii.targets.scores import percent
from gcnii_paper import standing as told
from gcnii_paper.documents import read_folder
from gcnii_paper.report.figures import PaperFigure, figures
from gcnii_paper.report.grid import MARKS, grid
from gcnii_paper.report.markdown import takeaway
from gcnii_paper.report.sentences import table_claims
from gcnii_paper.standing import beyond_rows
from gcnii_paper.tables.cells import GROUP, MeasuredCell, read_cells
from gcnii_paper.tables.registry import CELLS

if TYPE_CHECKING:
    from markupsafe import Markup


_SCORE = (float, NOTHING)
_FINDING = {"text": str}
_ESTIMATES = ("energy", "roughness", "mad", "mad_gap", "effective_rank")
_LAYER = {
    **{"name": str, "width": int, **{key: [_SCORE, _SCORE] for key in _ESTIMATES}},
    **dict.fromkeys(("norm", "rank", "distance", "dead", "gradient", "probe"), _SCORE),
}
_CHECKUP = {
    **{"model": str, "layers": int, "settings": dict, "val": _SCORE, "test": _SCORE},
    **{"before": [_LAYER], "after": [_LAYER], "by_degree": [GROUP]},
    "diagnosis": {"text": str, "verdict": Maybe(_FINDING), "others": Maybe([_FINDING])},
}
VISIT = {
    **{"graph": str, "epochs": int, "command": str, "comparison": [str], "checkups": [_CHECKUP]},
    "filter": Maybe(
        {str: {key: [float] for key in ("frequency", "gain", "error", "share", "purity")}}
    ),
    "influence": Maybe({str: {"share": [float], "error": [float], "nodes": int, "silent": int}}),
    "advice": Maybe({"lines": [str]}),
    "commit": Maybe((str, NOTHING)),
}
WHAT = "document of `gcnii doctor GRAPH --json`"
HEADS = ("model", "layers", "val", "probe", "effective rank", "energy / ‖H‖²", "MAD", "findings")
CAPTIONS = {
    "filter": "The deepest network of each model, linearised. Bars: two standard errors. "
    "Grey: known in closed form.",
    "influence": "The deepest network of each model, with its mean in hops. "
    "Bars: two standard errors over the nodes.",
}


class DoctorVisit:
    """What the doctor says of one graph.

    advice     what to use, how deep, and the command; empty if it was not asked for
    verdicts   model and number of layers → diagnosis
    sentences  a comparison of the models
    figures    name → figure of layers and depths
    learned    name → figure of the further questions in CAPTIONS, as far as they were asked
    """

    def __init__(self, document: Document):
        rows = document["checkups"]
        if not rows:
            raise InputError("it has no checkups")
        self.graph: str = document["graph"]
        self.epochs, self.command = document["epochs"], document["command"]
        self.advice, self.sentences = advice_of(document), document["comparison"]
        deepest = max(one["layers"] for one in rows)
        self.verdicts = {
            f"{one['model']}, {one['layers']} layers": one["diagnosis"]["text"]
            for one in rows
            if one["layers"] == deepest
        }
        checkups = [Checkup.of(self.graph, one) for one in rows]
        self.figures = draw_figures(checkups)
        self.learned = draw_learned(Learned.of(document, checkups))

    @property
    def anchor(self) -> str:
        """The id of its section: the graph's name, or as much of it as an id can hold and a key."""
        word = re.sub("[^A-Za-z0-9_-]+", "-", self.graph)[:40]
        key = "" if word == self.graph else f"-{document_key({'graph': self.graph})}"
        return f"doctor-{word}{key}"

    def svg(self, name: str) -> Markup:
        """A figure as SVG to include in the page."""
        drawing = (self.figures | self.learned)[name]
        return inline_svg(drawing, f"{self.anchor}-{name}", f"{self.graph}: {name}")


def advice_of(document: Document) -> list[str]:
    """The lines of the doctor's advice; none if it was not asked for."""
    return [*document.get("advice", {}).get("lines", ())]


def read_visits(folder: Path) -> list[DoctorVisit]:
    """The visits of a folder's documents, in the order of the files' names."""
    return [*read_folder(folder, VISIT, WHAT, DoctorVisit).values()]


def visit_markdown(path: Path) -> str:
    """A document's command and advice, and a table with a row for each model and depth."""
    return read_document(path, VISIT, WHAT, _markdown)


def _markdown(document: Document) -> str:
    advice = "".join(f"    {line}\n" for line in advice_of(document))
    rows = [_row(Checkup.of(document["graph"], one), one) for one in document["checkups"]]
    made = f"`{document['command']}` at {document.get('commit')}:\n"
    return "\n".join(filter(None, (made, advice, markdown_table(HEADS, rows))))


def _row(checkup: Checkup, document: Document) -> list[str]:
    last, diagnosis = checkup.after[-1], document["diagnosis"]
    found = [diagnosis.get("verdict", diagnosis), *diagnosis.get("others", ())]
    state = last.state
    return [
        checkup.model,
        str(checkup.layers),
        percent(checkup.val),
        percent(nan if last.probe is None else last.probe),
        f"{state.effective_rank.value:.1f} of {state.width}",
        f"{state.roughness.value:.2g}",
        f"{state.mad.value:.2g}",
        "; ".join(finding["text"].partition(":")[0] for finding in found),
    ]


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
