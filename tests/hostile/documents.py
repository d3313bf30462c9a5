"""Damaged documents: results, as `gcnii reproduce export` writes them, and studies of `tune`."""

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

from support import tiny_cells

from gcnii.cli.train import _plan as train_plan
from gcnii.data import load
from gcnii.files import write_document
from gcnii.train.plan import make_plan
from gcnii.tuning.question import STUDY, Question, asked_in
from gcnii_paper.ledger import Ledger, export_cells, find_runs, measured
from gcnii_paper.report.markdown import as_json
from gcnii_paper.reproduce import reproduce
from gcnii_paper.tables.cells import read_cells
from hostile.damage import damaged_bytes, damaged_document
from hostile.judging import answer_of, nothing_written

CELL = tiny_cells.cell(runs=2)


def damage(random: Random, path: Path) -> None:
    """Damage a document: most often as JSON, else as bytes."""
    if random.random() < 0.7:
        text, _ = damaged_document(random, json.loads(path.read_text("utf-8")))
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
    else:
        path.write_bytes(damaged_bytes(random, path.read_bytes())[0])


class Documents:
    """A damaged document is refused in a sentence, or can be read, imported and shown."""

    name, few, quick, long = "documents", 4, 80, 1000

    def __init__(self, home: Path):
        with Ledger(home / "ledger.sqlite") as ledger:
            reproduce([CELL], ledger, device="cpu")
            self.file = export_cells(ledger, [CELL], home / "cells")[0]
        self.whole = home / "cells"

    def attempt(self, random: Random, folder: Path) -> None:
        """Damage the document of a cell, read it, and import its runs."""
        shutil.copytree(self.whole, folder / "cells")
        path = folder / "cells" / self.file.relative_to(self.whole)
        damage(random, path)
        with nothing_written(folder):
            answer_of(lambda: as_json(read_cells(folder / "cells")))
        answer_of(lambda: self._imported(folder))

    def _imported(self, folder: Path) -> Any:
        found = find_runs([CELL], folder / "cells")
        with Ledger(folder / "ledger.sqlite") as ledger:
            ledger.record_all(found.runs)
            return json.dumps(as_json([measured(CELL, ledger)]), allow_nan=False)

    def close(self) -> None:
        """Nothing to end."""


class Studies:
    """The winner of a damaged study is refused in a sentence, or can be planned and compared."""

    name, few, quick, long = "studies", 20, 80, 1000

    def __init__(self, home: Path):
        self.graph = load("csbm", n=60)
        settings = make_plan("gcnii", {"layers": 2}, self.graph).settings
        winner = {"number": 3, "model": "gcnii", "val": 0.5, "error": 0.1, "settings": settings}
        question = Question.of(self.graph, ("gcnii",), 1)
        self.whole = write_document(home / STUDY, question.asked | {"winner": winner})
        self.asked = asked_in(home)

    def attempt(self, random: Random, folder: Path) -> None:
        """Damage study.json, plan a training by it, and ask whether another study may go there."""
        shutil.copy(self.whole, folder)
        damage(random, folder / STUDY)
        with nothing_written(folder):
            planned = (self.graph, None, {}, folder, "published")
            answer_of(lambda: train_plan(*planned).identity(self.graph))
            answer_of(lambda: asked_in(folder) == self.asked)

    def close(self) -> None:
        """Nothing to end."""
