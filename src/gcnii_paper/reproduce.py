"""Train what the ledger lacks of some cells.

Each run is recorded as soon as it is finished; on a GPU, together with its batch.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from pathlib import Path

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
from gcnii_paper.ledger import Ledger, open_graph, plan_of, run_key
from gcnii_paper.tables.cells import Cell, MeasuredRun

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
