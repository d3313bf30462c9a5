"""Run what the ledger lacks of some cells.  Every finished run is kept at once, or with its batch
on a GPU.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import torch

from gcnii.analysis import by_degree
from gcnii.data import fetch_neighbourhood
from gcnii.paper.ledger.ledger import Ledger
from gcnii.paper.ledger.run_key import open_graph, plan_of, run_key
from gcnii.paper.provenance import COMMIT, versions
from gcnii.paper.tables.cells import Cell, MeasuredRun
from gcnii.train.batches import cutter
from gcnii.train.fit import EpochReport, fit
from gcnii.train.hardware import choose_device, device_name, lacks_memory
from gcnii.train.replicas.group import Diverged
from gcnii.train.result import Result

# a title, and epochs at most
Watch = Callable[[str, int], AbstractContextManager[Callable[[EpochReport], None]]]
WAIT = 1.0  # seconds before asking again whether others have finished
TELL = 10  # times to ask before saying who they are


@contextmanager
def unwatched(title: str, epochs: int) -> Iterator[Callable[[EpochReport], None]]:
    """Show no progress."""
    yield lambda epoch: None


def reproduce(
    cells: Iterable[Cell],
    ledger: Ledger,
    *,
    runs: int | None = None,
    device: str = "auto",
    watch: Watch = unwatched,
) -> None:
    """Train until the ledger has seeds 0 … runs - 1 of every cell, by this process or by others at
    work on it.
    """
    todo = [Work(cell, ledger, runs or cell.runs, device, watch) for cell in cells]
    todo, idle = [work for work in todo if work.missing], 0
    for number, work in enumerate(todo, 1):
        work.place = f"{number}/{len(todo)} "
    while todo := [work for work in todo if work.missing]:
        idle = 0 if sum(work.advance() for work in todo) else idle + 1
        if idle == TELL:
            for work in todo:
                work.name_the_others()
        if idle:
            time.sleep(WAIT)  # all that is missing is claimed by others


def reproduce_one(cell: Cell, ledger: Path, runs: int | None, device: str) -> None:
    """The same for one cell, from a process of its own."""
    with Ledger(ledger) as book:
        reproduce([cell], book, runs=runs, device=device)


class Work:
    """What is left to do of a cell."""

    def __init__(self, cell: Cell, ledger: Ledger, runs: int, device: str, watch: Watch):
        self.cell, self.ledger, self.seeds, self.device, self.watch = (
            cell,
            ledger,
            range(runs),
            device,
            watch,
        )
        self.key = run_key(cell)
        one_by_one = choose_device(device).type == "cpu" or plan_of(cell).recipe.batches != "full"
        self.batch = 1 if one_by_one else runs
        self.too_large = False
        self.place = ""  # among those that are worked on

    @property
    def missing(self) -> bool:
        """Whether a seed is not finished, and not beyond this machine."""
        return not self.too_large and not {
            run.seed for run in self.ledger.runs(self.key)
        }.issuperset(self.seeds)

    def advance(self) -> int:
        """Train the seeds that nobody else is at; how many were finished."""
        finished = 0
        while seeds := self.ledger.claim(self.key, self.seeds, self.batch):
            try:
                result = self._fit(seeds)
            except Diverged as error:
                finished += self._lose(seeds, error)
                continue
            if result is None:
                self._halve(seeds)
                if self.too_large:
                    break
                continue
            done = list(self._measured(result))
            self.ledger.record(self.key, self.cell.id, done)
            if result.interrupted:
                raise KeyboardInterrupt
            self._checkpoint(seeds).unlink(missing_ok=True)
            finished += len(done)
        if not self.missing and not self.ledger.claimed(self.key):
            for leftover in self._folder.glob(f"{self.key}-*"):
                leftover.unlink(missing_ok=True)
        return finished

    def name_the_others(self) -> None:
        """Say whom this cell waits for."""
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
                stacklevel=3,
            )

    def _fit(self, seeds: list[int]) -> Result | None:
        """The result, or None where the device has too little memory for so many at once."""
        cell, plan = self.cell, plan_of(self.cell)
        graph = open_graph(cell)
        fetch_neighbourhood(graph.source, plan.recipe.geometry)
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
        with self.watch(f"{self.place}{cell.id}, {which}", plan.recipe.epochs) as show:

            def on_epoch(epoch: EpochReport) -> None:
                self.ledger.beat()
                show(epoch)

            try:
                return fit(
                    graph,
                    cell.model,
                    seeds=seeds,
                    device=self.device,
                    batch=len(seeds),
                    checkpoint=self._checkpoint(seeds),
                    on_epoch=on_epoch,
                    **cell.settings,
                )
            except (MemoryError, RuntimeError) as error:
                if not lacks_memory(error):
                    raise
                return None

    def _halve(self, seeds: list[int]) -> None:
        self.ledger.release(self.key, seeds)
        torch.cuda.empty_cache()  # does nothing where there is no GPU
        self.batch, self.too_large = max(len(seeds) // 2, 1), len(seeds) == 1
        if self.too_large:
            warnings.warn(
                f"{self.cell.id} is left out: one run alone does not fit into memory", stacklevel=2
            )

    def _lose(self, seeds: list[int], error: Diverged) -> int:
        """Keep that some diverged, for all seeds count, and let the others begin again; how many
        were lost.
        """
        nothing = dict.fromkeys(("test", "val", "val_loss"))
        where = {
            "device": device_name(choose_device(self.device)),
            "versions": versions(),
            "commit": COMMIT,
        }
        lost = [MeasuredRun(**run.summary() | nothing | where) for run in error.lost]
        self.ledger.record(self.key, self.cell.id, lost)
        self.ledger.release(self.key, seeds)
        self._checkpoint(seeds).unlink(missing_ok=True)
        warnings.warn(f"{self.cell.id}, kept as lost: {error}", stacklevel=3)
        return len(lost)

    @property
    def _folder(self) -> Path:
        return self.ledger.path.with_name(f"{self.ledger.path.name}-unfinished")

    def _checkpoint(self, seeds: list[int]) -> Path:
        return self._folder / f"{self.key}-{seeds[0]}-{seeds[-1]}-{len(seeds)}.safetensors"

    def _measured(self, result: Result) -> Iterator[MeasuredRun]:
        """The runs that came to their end; Ctrl-C may have stopped others before."""
        for i, run in enumerate(result.runs):
            if not run.stopped:
                continue
            software = versions() | (
                {"cutter": cutter()} if result.plan.recipe.batches == "clusters" else {}
            )
            numbers = {name: _finite(value) for name, value in run.summary().items()}
            groups = self._groups(result, i) if self.cell.by_degree else None
            yield MeasuredRun(
                **numbers, device=result.device, versions=software, commit=COMMIT, by_degree=groups
            )

    def _groups(self, result: Result, i: int) -> list[dict[str, Any]]:
        weights = {name: stack[i : i + 1] for name, stack in result.weights.items()}
        alone, graph = (
            replace(result, runs=result.runs[i : i + 1], weights=weights),
            open_graph(self.cell),
        )
        return by_degree(graph, alone.predict(graph, self.device))


def _finite(value: Any) -> Any:
    # JSON has neither NaN nor ∞
    return None if isinstance(value, float) and not isfinite(value) else value
