"""What `gcnii doctor GRAPH --json` printed, for the page: verdicts, and one figure per question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from gcnii.analysis.filters.learn import Learned
from gcnii.analysis.layers.checkup import Checkup
from gcnii.analysis.report.doctor_figures import draw_figures
from gcnii.analysis.report.learned import draw_learned
from gcnii.analysis.report.style import inline_svg
from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, Maybe, document_key, read_document
from gcnii.paper.tables.cells import GROUP, MeasuredCell

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure

_SCORE = (float, NOTHING)
_ESTIMATES = ("energy", "roughness", "mad", "mad_gap", "effective_rank")
_LAYER = {
    **{"name": str, "width": int, **{key: [_SCORE, _SCORE] for key in _ESTIMATES}},
    **dict.fromkeys(("norm", "rank", "distance", "dead", "gradient", "probe"), _SCORE),
}
_CHECKUP = {
    **{"model": str, "layers": int, "settings": dict, "val": _SCORE, "test": _SCORE},
    **{"before": [_LAYER], "after": [_LAYER], "by_degree": [GROUP], "diagnosis": {"text": str}},
}
_FORETOLD = {
    **{"recommended": int, "best": int, "depths": [int], "error": float, "regret": float},
    **{key: [float] for key in ("val", "test", "stopped", "foretold", "true")},
}
VISIT = {
    **{"graph": str, "epochs": int, "command": str, "comparison": [str], "checkups": [_CHECKUP]},
    "filter": Maybe(
        {str: {key: [float] for key in ("frequency", "gain", "error", "share", "purity")}}
    ),
    "influence": Maybe({str: {"share": [float], "error": [float], "nodes": int, "silent": int}}),
    "depth": Maybe({str: _FORETOLD}),
}
OWN = ("layers", "epochs", "memory")  # settings that the doctor chooses itself
CAPTIONS = {
    "filter": "The deepest network of each model, linearised. Bars: two standard errors. "
    "Grey: known in closed form.",
    "influence": "The deepest network of each model, with its mean in hops. "
    "Bars: two standard errors over the nodes.",
    "forecast": "Lines: what the deepest network alone predicts for shallower ones. "
    "Squares: networks that the doctor trained for the same few epochs. "
    "Diamonds: the same settings in the tables of this page.",
}


@dataclass(frozen=True)
class DoctorVisit:
    """What the doctor says of one graph.

    verdicts   model and number of layers → diagnosis
    sentences  a comparison of the models
    figures    name → figure of layers and depths
    learned    name → figure of the further questions in CAPTIONS, as far as they were asked
    """

    graph: str
    epochs: int
    command: str
    verdicts: dict[str, str]
    sentences: tuple[str, ...]
    figures: dict[str, Figure]
    learned: dict[str, Figure]

    @classmethod
    def of(cls, document: Document, measured: Iterable[MeasuredCell] = ()) -> DoctorVisit:
        """The visit of a document; its forecasts are drawn beside the measured cells."""
        graph, rows = document["graph"], document["checkups"]
        if not rows:
            raise InputError("it has no checkups")
        deepest = [one for one in rows if one["layers"] == max(other["layers"] for other in rows)]
        verdicts = {
            f"{one['model']}, {one['layers']} layers": one["diagnosis"]["text"] for one in deepest
        }
        checkups = [Checkup.of(graph, one) for one in rows]
        sentences = tuple(document["comparison"])
        answers = Learned.of(document, checkups)
        learned = draw_learned(answers, _to_the_end(checkups, measured))
        head = (graph, document["epochs"], document["command"])
        return cls(*head, verdicts, sentences, draw_figures(checkups), learned)

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


def read_visits(folder: Path, measured: Sequence[MeasuredCell] = ()) -> list[DoctorVisit]:
    """The visits of a folder's documents, in the order of the files' names."""
    return [_read(path, measured) for path in sorted(folder.glob("*.json"))]


def _read(path: Path, measured: Sequence[MeasuredCell]) -> DoctorVisit:
    make = partial(DoctorVisit.of, measured=measured)
    return read_document(path, VISIT, "document of `gcnii doctor GRAPH --json`", make)


def _to_the_end(
    checkups: Sequence[Checkup], measured: Iterable[MeasuredCell]
) -> dict[str, dict[int, float]]:
    """model → depth → mean test score of the cells whose settings are the doctor's, OWN apart."""
    recipes = {(one.graph, one.model): _recipe(one.settings) for one in checkups}
    found: dict[str, dict[int, float]] = {}
    for cell in measured:
        alike = recipes.get((cell.graph, cell.model)) == _recipe(cell.settings)
        known = cell.splits == "published" and not isnan(cell.mean)
        if alike and known and "layers" in cell.settings:
            found.setdefault(cell.model, {})[cell.settings["layers"]] = cell.mean / 100
    return found


def _recipe(settings: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if name not in OWN}
