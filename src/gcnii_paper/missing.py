"""What the tables still lack, the cheapest first, within a limited time.

A cell lacks the runs that the rule of verdicts asks for and the ledger does not have.  If its
settings are to be ours, and have not been searched for, it lacks the tries of its search too, and
its runs begin when the winner has been adopted.

How long a run or a try takes is estimated from the measured ones of the same model on the same
graph, in proportion to their layers.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import inf, log
from pathlib import Path
from statistics import median
from typing import NamedTuple

from gcnii.train.hardware import choose_device
from gcnii.train.presets import preset
from gcnii_paper.documents import duration
from gcnii_paper.ledger import Ledger, run_key
from gcnii_paper.reproduce import CellWork, OutOfTime
from gcnii_paper.search import SEARCHES, SEEDS, Search, adopt, read_tries, winners
from gcnii_paper.tables.cells import Cell
from gcnii_paper.tables.registry import ADOPTED, ENOUGH, adopted, cells_of, search_of

FIRST = frozenset(
    f"table3/{row}{drop}/{layers}"
    for row, *depths in (("pubmed-gcn", 32, 64), ("pubmed-jknet", 32, 64), ("citeseer-incep", 16))
    for drop in ("", "-drop")
    for layers in depths
)
BATCH = 10  # runs that a GPU trains at once, so that an interrupted batch is the same when resumed
FASTER = 10.0  # times that a GPU is as fast as a CPU, where only one of them was measured


@dataclass(frozen=True)
class Lack:
    """What a cell lacks: runs, and before them tries of its search; and what each may take."""

    cell: Cell
    runs: int
    search: Search | None
    tries: int
    run_seconds: float
    try_seconds: float

    @property
    def searching(self) -> float:
        """Seconds for the tries."""
        return self.tries * self.try_seconds if self.tries else 0.0

    @property
    def seconds(self) -> float:
        """Seconds for all of it."""
        return self.searching + self.runs * self.run_seconds

    @property
    def order(self) -> tuple[bool, bool, float]:
        """FIRST, then the paper's numbers, then the rest; of each, the cheapest first."""
        cell = self.cell
        return cell.id not in FIRST, cell.extra or cell.printed is None, self.seconds

    def __str__(self) -> str:
        tries = f"{self.tries} tries and " if self.tries else ""
        return f"{self.cell.id}: {tries}{self.runs} runs, {about(self.seconds)}"


def about(seconds: float) -> str:
    """`about 12 min`."""
    return "unknown time" if seconds == inf else f"about {duration(seconds)}"


def total_seconds(lacks: Iterable[Lack]) -> float:
    """Of all that can be estimated; cells share searches."""
    known = [lack for lack in lacks if lack.seconds < inf]
    searches = {lack.search.name: lack.searching for lack in known if lack.search}
    return sum(searches.values()) + sum(lack.runs * lack.run_seconds for lack in known)


class Timing(NamedTuple):
    """Seconds that a run or a try took, the device, and the work in proportion to its layers."""

    seconds: float
    device: str
    work: float


class Costs:
    """What a run and a try took, by graph and model.

    kind  of this device: cpu or cuda
    """

    def __init__(self, ledger: Ledger, folder: Path, device: str):
        self.kind = choose_device(device).type
        self.runs: dict[tuple[str, str], list[Timing]] = defaultdict(list)
        self.tries: dict[tuple[str, str], list[Timing]] = defaultdict(list)
        works = {cell.id: (cell, _work(cell)) for cell in cells_of("all")}
        for name, on, seconds in ledger.seconds():
            if name in works:
                cell, work = works[name]
                self.runs[cell.graph, cell.model].append(Timing(seconds, on, work))
        for search in SEARCHES.values():
            for done in read_tries(folder / search.file, search.about):
                timing = Timing(done["seconds"], done["device"], _work(search))
                self.tries[search.graph, search.model].append(timing)

    def of_run(self, cell: Cell) -> float:
        """Seconds of a run; inf if nothing like it was measured."""
        return self._estimated(self.runs[cell.graph, cell.model], _work(cell))

    def of_try(self, search: Search) -> float:
        """Seconds of a try; of its runs, if there was no such search."""
        key, work = (search.graph, search.model), _work(search)
        if found := self.tries[key]:
            return self._estimated(found, work)
        return SEEDS * self._estimated(self.runs[key], work)

    def _estimated(self, found: Sequence[Timing], work: float) -> float:
        """From those of the nearest depth, on this kind of device if any were; inf without any."""
        if not found:
            return inf
        here = [one for one in found if one.device.partition(":")[0] == self.kind]
        factor = 1.0 if here else FASTER if self.kind == "cpu" else 1 / FASTER
        nearest = min((here or found), key=lambda one: abs(log(one.work / work))).work
        same = [one.seconds for one in here or found if one.work == nearest]
        return factor * median(same) * work / nearest


def _work(what: Cell | Search) -> float:
    """In proportion to an epoch; IncepGCN has a branch of every depth up to its own."""
    own = what.settings if isinstance(what, Cell) else what.fixed
    layers = float((preset(what.graph, what.model) | own).get("layers", 1))
    return layers**2 if what.model == "incep" else layers


def lacking(cells: Iterable[Cell], ledger: Ledger, folder: Path, device: str) -> list[Lack]:
    """What the cells lack, in the order in which it is worth doing.

    folder  that of the searches' documents

    Stand-ins are left out: they say nothing of a printed number.
    """
    costs, most = Costs(ledger, folder, device), dict[str, Lack]()
    for cell in map(_as_adopted, cells):
        if cell.stand_in:
            continue
        search = _open_search(cell)
        key = cell.id if search else run_key(cell)
        missing = cell.runs - (0 if search else _done(cell, ledger))
        tries = ENOUGH - len(read_tries(folder / search.file, search.about)) if search else 0
        lack = Lack(
            cell,
            missing,
            search,
            max(tries, 0),
            costs.of_run(cell),
            costs.of_try(search) if search else 0.0,
        )
        # of cells that share their runs, the one that needs most
        if missing > 0 and (key not in most or most[key].runs < missing):
            most[key] = lack
    return sorted(most.values(), key=lambda lack: lack.order)


def _as_adopted(cell: Cell) -> Cell:
    """The cell with the winner of its search, if that was adopted after the tables were made."""
    name = search_of(cell)
    return adopted(cell, ADOPTED[name]) if name in ADOPTED else cell


def _open_search(cell: Cell) -> Search | None:
    """The search whose winner the cell waits for; None if it waits for none."""
    name = search_of(cell)
    return SEARCHES[name] if name and name not in ADOPTED else None


def _done(cell: Cell, ledger: Ledger) -> int:
    """The number of its seeds 0 … runs - 1 in the ledger."""
    return sum(run.seed < cell.runs for run in ledger.runs(run_key(cell)))


@dataclass(frozen=True)
class Shift:
    """Time in which to do what is lacking.

    deadline  by `time.monotonic`
    folder    that of the searches' documents
    adopted   the file of adopted settings, to which winners are added
    """

    ledger: Ledger
    folder: Path
    adopted: Path
    device: str
    deadline: float
    verbose: bool | None = False

    @property
    def left(self) -> float:
        """Seconds."""
        return self.deadline - time.monotonic()

    def work(self, lacks: Sequence[Lack], tell: Callable[[str], None]) -> list[Cell]:
        """Do what fits into the time; if nothing does, begin with the first.

        Nothing is lost at the end: finished runs and tries are kept, and a run that is not finished
        goes on from its checkpoint.  Returns the cells that were begun.
        """
        begun: list[Cell] = []
        try:
            for lack in lacks:
                if self._fits(lack):
                    self._train(lack, self._runs(lack), begun, tell)
            if lacks and not begun:
                tell(f"nothing ends in this time; beginning with {lacks[0].cell.id}")
                self._train(lacks[0], lacks[0].cell.runs, begun, tell)
        except OutOfTime:
            tell("time is up; what was not finished goes on next time")
        return begun

    def _fits(self, lack: Lack) -> bool:
        """Whether the search and at least one batch end in time."""
        if lack.tries and not find_spec("optuna"):
            return False
        first = min(lack.runs, self._batch) * lack.run_seconds
        return self.left > 0 and lack.searching + first <= self.left

    @property
    def _batch(self) -> int:
        return 1 if choose_device(self.device).type == "cpu" else BATCH

    def _runs(self, lack: Lack) -> int:
        """The number of the cell's runs, in whole batches, that may be there at the end."""
        if self.left == inf:
            return lack.cell.runs
        batches = int((self.left - lack.searching) / (self._batch * lack.run_seconds))
        return min(lack.cell.runs, lack.cell.runs - lack.runs + batches * self._batch)

    def _train(self, lack: Lack, runs: int, begun: list[Cell], tell: Callable[[str], None]) -> None:
        if lack.search:
            self._adopt_winner(lack.search, tell)
        begun.append(cell := _as_adopted(lack.cell))
        tell(f"{cell.id}: to {runs} of {cell.runs} runs")
        work = CellWork(cell, self.ledger, runs, self.device, self.verbose, self.deadline)
        work.batch = min(work.batch, BATCH)
        work.advance()

    def _adopt_winner(self, search: Search, tell: Callable[[str], None]) -> None:
        """Adopt the best settings of the search, after the tries that it lacks."""
        from gcnii_paper.searching import run_search  # Optuna may not be installed

        if len(read_tries(self.folder / search.file, search.about)) < ENOUGH:
            tell(f"{search.name}: searching for settings")
            run_search(search, self.folder, ENOUGH, self.device, deadline=self.deadline)
        adopt(self.folder, self.adopted)
        ADOPTED[search.name] = winners(self.folder)[search.name]
