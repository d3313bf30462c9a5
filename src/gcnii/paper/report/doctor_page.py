"""What `gcnii doctor GRAPH --json` printed, for the page: verdicts on the deepest models, and a
figure a question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

from gcnii.analysis.filters.learn import Learned
from gcnii.analysis.layers.checkup import Checkup
from gcnii.analysis.report.doctor_figures import draw_figures
from gcnii.analysis.report.learned import draw_learned
from gcnii.analysis.report.style import inline_svg
from gcnii.errors import InputError
from gcnii.files import NOTHING, Maybe, read_document
from gcnii.paper.tables.cells import GROUP, MeasuredCell

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
OWN = ("layers", "epochs", "memory")  # settings that the doctor chooses
CAPTIONS = {
    "filter": "The deepest network of each model, linearised. Bars: two standard errors. Grey: known in closed form.",
    "influence": "The deepest network of each model, with its mean in hops. Bars: two standard errors over the nodes.",
    "forecast": "Lines: what the deepest network alone says of shallower ones. Squares: networks that the doctor"
    " trained as shortly. Diamonds: the same settings in the tables of this page.",
}


@dataclass(frozen=True)
class Visit:
    """One graph.

    verdicts   model and number of layers → what became of the information
    sentences  that compare the models
    figures    name → drawing, of the layers and depths
    learned    the same of the further questions, those of CAPTIONS; empty where they were not asked
    """

    graph: str
    epochs: int
    command: str
    verdicts: dict[str, str]
    sentences: tuple[str, ...]
    figures: dict[str, Any]
    learned: dict[str, Any]

    @classmethod
    def of(cls, document: Mapping[str, Any], measured: Iterable[MeasuredCell] = ()) -> Visit:
        """The document of one call; its forecasts stand beside those of the measured cells that
        they speak of.
        """
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

    def svg(self, name: str) -> str:
        """A figure to stand within the page."""
        return inline_svg(
            (self.figures | self.learned)[name],
            f"doctor-{self.graph}-{name}",
            f"{self.graph}: {name}",
        )


def read_visits(folder: Path, measured: Sequence[MeasuredCell] = ()) -> list[Visit]:
    """Those of a folder's documents, by name."""
    return [_read(path, measured) for path in sorted(folder.glob("*.json"))]


def _read(path: Path, measured: Sequence[MeasuredCell]) -> Visit:
    return read_document(
        path, VISIT, "document of `gcnii doctor GRAPH --json`", partial(Visit.of, measured=measured)
    )


def _to_the_end(
    checkups: Sequence[Checkup], measured: Iterable[MeasuredCell]
) -> dict[str, dict[int, float]]:
    """By model, depth → mean test score of the cells that were trained as the doctor trains, but
    for OWN.
    """
    recipes = {(one.graph, one.model): _recipe(one.settings) for one in checkups}
    found: dict[str, dict[int, float]] = {}
    for cell in measured:
        alike = recipes.get((cell.graph, cell.model)) == _recipe(cell.settings)
        if (
            alike
            and "layers" in cell.settings
            and cell.splits == "published"
            and not isnan(cell.mean)
        ):
            found.setdefault(cell.model, {})[cell.settings["layers"]] = cell.mean / 100
    return found


def _recipe(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in OWN}
