"""Damaged documents of results, as `gcnii reproduce export` writes them."""

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

from support import tiny_cells

from gcnii.paper.ledger.ledger import Ledger
from gcnii.paper.ledger.ledger_io import export_cells, find_runs, measured
from gcnii.paper.report.terminal import as_json
from gcnii.paper.reproduce import reproduce
from gcnii.paper.tables.cells import read_cells
from hostile.damage import damaged_bytes, damaged_document
from hostile.judging import answer_of, nothing_written

CELL = tiny_cells.cell(runs=2)


class Documents:
    """A damaged document is refused in a sentence, or can be read, imported and shown."""

    name, quick, long = "documents", 80, 3000

    def __init__(self, home: Path):
        with Ledger(home / "ledger.sqlite") as ledger:
            reproduce([CELL], ledger, device="cpu")
            self.file = export_cells(ledger, [CELL], home / "cells")[0]
        self.whole = home / "cells"

    def attempt(self, random: Random, folder: Path) -> None:
        """Damage the document of a cell, read it, and import its runs."""
        shutil.copytree(self.whole, folder / "cells")
        path = folder / "cells" / self.file.relative_to(self.whole)
        if random.random() < 0.7:
            text, _ = damaged_document(random, json.loads(path.read_text("utf-8")))
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
        else:
            path.write_bytes(damaged_bytes(random, path.read_bytes())[0])
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
