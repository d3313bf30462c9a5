"""Train what the ledger lacks of some cells; or what all tables lack, within a limited time.

Each run is recorded as soon as it is finished; on a GPU, together with its batch.

A cell lacks the runs that the rule of verdicts asks for and the ledger does not have.  If its
settings are to be ours, and have not been searched for, it lacks the tries of its search too, and
its runs begin when the winner has been adopted.  The cheapest come first: how long a run or a try
takes is estimated from the measured ones of the same model on the same graph, in proportion to
their layers.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import inf, log
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch

from gcnii.analysis import by_degree
from gcnii.files import Document, json_value
from gcnii.results.fit import Session, fit_plans
from gcnii.results.provenance import commit, versions
from gcnii.results.result import Result
from gcnii.train.checkpoint import remove
from gcnii.train.clusters import cutter
from gcnii.train.group import Diverged
from gcnii.train.hardware import choose_device, device_name, lacks_memory
from gcnii.train.presets import preset
from gcnii_paper.documents import duration
from gcnii_paper.ledger import Ledger, open_graph, plan_of, run_key
from gcnii_paper.search import SEARCHES, SEEDS, Search, adopt, read_tries, winners
from gcnii_paper.tables.cells import Cell, MeasuredRun
from gcnii_paper.tables.registry import ADOPTED, ENOUGH, adopted, cells_of, search_of

WAIT = 1.0  # seconds before asking again whether other processes have finished
TELL = 10  # times to ask before saying which processes they are


class OutOfTime(Exception):
    """A deadline has passed in the middle of a training, whose checkpoint has been written."""


def stop_after(deadline: float) -> None:
    """Raise OutOfTime after this time, by `time.monotonic`."""
    if time.monotonic() > deadline:
        raise OutOfTime


def reproduce(
    cells: Iterable[Cell],
    ledger: Ledger,
    *,
    runs: int | None = None,
    device: str = "auto",
    verbose: bool | None = False,
) -> None:
    """Return when the ledger has seeds 0 … runs - 1 of every cell, trained here or elsewhere.

    `verbose` is that of `fit`.
    """
    commit()  # recorded with each run; later it might be another one
    todo = [CellWork(cell, ledger, runs or cell.runs, device, verbose) for cell in cells]
    todo, idle = [work for work in todo if work.missing], 0
    for number, work in enumerate(todo, 1):
        work.place = f"{number}/{len(todo)} "
    while todo := [work for work in todo if work.missing]:
        idle = 0 if sum(work.advance() for work in todo) else idle + 1
        if idle:
            _wait(todo, idle)


def _wait(todo: Sequence[CellWork], idle: int) -> None:
    """For other processes, which have claimed all that is missing; after a while, name them."""
    if idle == TELL:
        for work in todo:
            work.name_the_others()
    time.sleep(WAIT)


def reproduce_one(cell: Cell, ledger: Path, runs: int | None, device: str) -> None:
    """`reproduce` for one cell in a process of its own."""
    with Ledger(ledger) as book:
        reproduce([cell], book, runs=runs, device=device)


class CellWork:
    """What is left to do of a cell; after the deadline its training raises OutOfTime."""

    def __init__(
        self,
        cell: Cell,
        ledger: Ledger,
        runs: int,
        device: str,
        verbose: bool | None = False,
        deadline: float = inf,
    ):
        self.cell, self.ledger, self.seeds = cell, ledger, range(runs)
        self.device, self.verbose, self.deadline = device, verbose, deadline
        self.key, self.plan = run_key(cell), plan_of(cell)
        one_by_one = choose_device(device).type == "cpu" or self.plan.recipe.batches != "full"
        self.batch = 1 if one_by_one else runs
        self.too_large = False
        self.place = ""  # among the cells to train, such as `2/7 `

    @property
    def missing(self) -> bool:
        """Whether a seed is not finished, unless a single run is too large for this machine."""
        finished = {run.seed for run in self.ledger.runs(self.key)}
        return not self.too_large and not finished.issuperset(self.seeds)

    def advance(self) -> int:
        """Train the seeds that no other process has claimed; the number of seeds finished."""
        finished = 0
        while not self.too_large and (seeds := self.ledger.claim(self.key, self.seeds, self.batch)):
            finished += self._train(seeds)
        if not self.missing and not self.ledger.claimed(self.key):
            for leftover in self._folder.glob(f"{self.key}-*"):
                leftover.unlink(missing_ok=True)
        return finished

    def name_the_others(self) -> None:
        """Warn which processes this cell waits for."""
        others = defaultdict(list)
        for claim in self.ledger.claimed(self.key):
            others[claim.pid, claim.host].append(claim)
        for (pid, host), claims in others.items():
            seeds = f"seed{'s' * (len(claims) > 1)} " + ", ".join(
                str(claim.seed) for claim in claims
            )
            silence = time.time() - max(claim.beat for claim in claims)
            warnings.warn(
                f"waiting for {seeds} of {self.cell.id}, claimed by process {pid} on {host}, "
                f"last heard of {silence:.0f} s ago",
                stacklevel=4,
            )

    def _train(self, seeds: list[int]) -> int:
        """Record the seeds' runs; the number of seeds finished, 0 if they did not fit together."""
        try:
            result = self._fit(seeds)
        except Diverged as error:
            return self._lose(seeds, error)
        if result is None:
            self._halve(seeds)
            return 0
        done = list(self._measured(result))
        self.ledger.record(self.key, self.cell.id, done)
        if result.interrupted:
            raise KeyboardInterrupt
        remove(self._checkpoint(seeds))
        return len(done)

    def _fit(self, seeds: list[int]) -> Result | None:
        """The result, or None if the device has too little memory for these seeds at once."""
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
        try:
            session = Session(
                device=self.device,
                batch=len(seeds),
                checkpoint=self._checkpoint(seeds),
                callbacks=[
                    lambda epoch: self.ledger.beat(),
                    lambda epoch: stop_after(self.deadline),
                ],
                verbose=self.verbose,
                title=f"{self.place}{self.cell.id}, {which}",
            )
            return fit_plans(open_graph(self.cell), [self.plan], session, seeds=seeds)
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
            return None

    def _halve(self, seeds: list[int]) -> None:
        self.ledger.release(self.key, seeds)
        torch.cuda.empty_cache()  # does nothing without a GPU
        self.batch, self.too_large = max(len(seeds) // 2, 1), len(seeds) == 1
        if self.too_large:
            warnings.warn(
                f"{self.cell.id} is left out: a single run does not fit into memory", stacklevel=2
            )

    def _lose(self, seeds: list[int], error: Diverged) -> int:
        """Record the runs that diverged, since every seed counts, and release the other seeds.

        Returns the number of runs that diverged.
        """
        nothing = dict.fromkeys(("test", "val", "val_loss"))
        device, software = device_name(choose_device(self.device)), versions()
        lost = [
            MeasuredRun(
                **run.summary() | nothing, device=device, versions=software, commit=commit()
            )
            for run in error.lost
        ]
        self.ledger.record(self.key, self.cell.id, lost)
        self.ledger.release(self.key, seeds)
        remove(self._checkpoint(seeds))
        warnings.warn(f"{self.cell.id}, kept as lost: {error}", stacklevel=4)
        return len(lost)

    @property
    def _folder(self) -> Path:
        return self.ledger.path.with_name(f"{self.ledger.path.name}-unfinished")

    def _checkpoint(self, seeds: list[int]) -> Path:
        return self._folder / f"{self.key}-{seeds[0]}-{seeds[-1]}-{len(seeds)}.safetensors"

    def _measured(self, result: Result) -> Iterator[MeasuredRun]:
        """The finished runs; Ctrl-C may have interrupted others."""
        software = versions()
        if result.plan.recipe.batches == "clusters":
            software = software | {"cutter": cutter()}
        for i, run in enumerate(result.runs):
            if run.stopped:
                yield MeasuredRun(
                    **{name: json_value(value) for name, value in run.summary().items()},
                    device=result.device,
                    versions=software,
                    commit=commit(),
                    by_degree=self._groups(result, i) if self.cell.by_degree else None,
                )

    def _groups(self, result: Result, i: int) -> list[Document]:
        """Run i's accuracy by degree."""
        graph = open_graph(self.cell)
        return by_degree(graph, result.alone(i).predict_ids(graph, self.device))


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
