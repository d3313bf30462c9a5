"""What `gcnii doctor GRAPH --json` printed, for the page: verdicts on the deepest models, and a figure a question."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcnii.analysis.checkup import Checkup
from gcnii.report.checkups import draw_figures
from gcnii.report.figure import inline_svg


@dataclass(frozen=True)
class Visit:
    """One graph.

    verdicts   model and number of layers → what became of the information
    sentences  that compare the models
    figures    name → drawing
    """

    graph: str
    epochs: int
    command: str
    verdicts: dict[str, str]
    sentences: tuple[str, ...]
    figures: dict[str, Any]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Visit:
        """The document of one call."""
        graph, checkups = document["graph"], document["checkups"]
        deepest = [one for one in checkups if one["layers"] == max(other["layers"] for other in checkups)]
        verdicts = {f"{one['model']}, {one['layers']} layers": one["diagnosis"]["text"] for one in deepest}
        drawings = draw_figures([Checkup.of(graph, one) for one in checkups])
        sentences = tuple(document["comparison"])
        return cls(graph, document["epochs"], document["command"], verdicts, sentences, drawings)

    def svg(self, name: str) -> str:
        """A figure to stand within the page."""
        return inline_svg(self.figures[name], f"doctor-{self.graph}-{name}", f"{self.graph}: {name}")


def read_visits(folder: Path) -> list[Visit]:
    """Those of a folder's documents, by name."""
    return [Visit.of(json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("*.json"))]
