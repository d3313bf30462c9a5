"""Measure a case: every line in turn, round after round, so that whatever else the machine does
meets all alike.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil, inf
from statistics import median
from typing import Any

import torch

from gcnii.paper.bench.cases import Case, Line, Named, Shape
from gcnii.paper.bench.clock import products_in, timed
from gcnii.paper.bench.floor import Floor, Rates, measure_rates
from gcnii.paper.bench.graphs import BenchGraph, make_bench_graph
from gcnii.paper.bench.peak import Peak
from gcnii.paper.bench.runners import Runner, make_runner, plan_of, why_not, work_of
from gcnii.train.hardware import tuned_cpu

CHUNK = 0.3  # seconds between two looks at the clock on a GPU, where waiting for it costs time
MOST = 64  # epochs in them
OUT_OF_MEMORY = "out of memory"

OnStep = Callable[[str], None]


@dataclass
class Timed:
    """A line and what came of it: seconds an epoch, one a round; `failed` says why there are none."""

    line: Line
    scene: BenchGraph
    seconds: list[float] = field(default_factory=list)
    chunk: int = 1  # epochs a round
    peak: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    failed: str = ""

    @property
    def best(self) -> float:
        """Whatever else the machine does only adds to a time, so the least is the truest."""
        return min(self.seconds, default=inf)

    @property
    def median(self) -> float:
        """What one may expect."""
        return median(self.seconds) if self.seconds else inf

    def cost(self, case: Case) -> float:
        """The best time, divided by what the case counts per."""
        settings = plan_of(self.line).model_settings
        amounts = {
            "replicas": self.line.replicas,
            "layers": settings["layers"],
            "entries": self.scene.entries,
        }
        cost = self.best
        for unit in case.per:
            cost /= amounts[unit]
        return cost


@dataclass(frozen=True)
class Measured:
    """A case on a device: its lines, the device's rates, and what was left out."""

    case: Case
    device: torch.device
    rounds: int
    rates: Rates
    lines: list[Timed]
    notes: list[str]

    def floor(self, line: Timed) -> Floor | None:
        """The least time for an epoch of this line; from load to test there is more than epochs."""
        if line.line.who == "end-to-end":
            return None
        return self.rates.floor(work_of(line.line, line.scene), line.line.precision)

    def ratio(self, line: Timed) -> float | None:
        """How many times the first line's cost this one's is."""
        if not line.seconds or not self.lines[0].seconds:
            return None
        return line.cost(self.case) / self.lines[0].cost(self.case)


def steps(case: Case, device: torch.device, rounds: int) -> int:
    """How often `measure` calls `on_step` at most."""
    return 2 + len(case.lines(device.type)) * (1 + rounds)


def measure(case: Case, device: torch.device, rounds: int, on_step: OnStep) -> Measured:
    """Time every line; the first one is what the others are compared with."""
    lines, notes = _runnable(case.lines(device.type))
    with tuned_cpu():
        precisions, scenes, found = sorted({line.precision for line in lines}), _Scenes(device), []
        on_step("the device itself")
        before = measure_rates(device, precisions)
        for group in [lines] if case.together else [[line] for line in lines]:
            found += _take_turns(case, group, scenes, rounds, on_step)
            # What is only cached would not count as free when the next line asks how much it may
            # keep.
            gc.collect()
            if device.type == "cuda":
                torch.cuda.empty_cache()
        on_step("the device itself")
        rates = before.or_faster(measure_rates(device, precisions))
    return Measured(case, device, rounds, rates, found, notes)


class _Scenes(dict[Named | Shape, BenchGraph]):
    """Each graph is made once."""

    def __init__(self, device: torch.device):
        super().__init__()
        self.device = device

    def __missing__(self, source: Named | Shape) -> BenchGraph:
        self[source] = make_bench_graph(source, self.device)
        return self[source]


def _runnable(lines: tuple[Line, ...]) -> tuple[list[Line], list[str]]:
    reasons = [(line, why_not(line)) for line in lines]
    notes = [
        f"{line.who} in {line.precision} left out: {reason}" for line, reason in reasons if reason
    ]
    return [line for line, reason in reasons if not reason], list(dict.fromkeys(notes))


def _take_turns(
    case: Case, lines: list[Line], scenes: _Scenes, rounds: int, on_step: OnStep
) -> list[Timed]:
    entrants = []
    for line in lines:
        on_step(f"{line.who}, warming up")
        entrants.append(Entrant(case, line, scenes[line.graph], scenes.device))
    for _ in range(rounds):
        for entrant in entrants:
            on_step(entrant.timed.line.who)
            entrant.lap()
    return [entrant.timed for entrant in entrants]


class Entrant:
    """A line that is built and warm, and takes the time of its laps."""

    def __init__(self, case: Case, line: Line, scene: BenchGraph, device: torch.device):
        self.timed, self.device = Timed(line, scene), device
        self.contestant: Runner | None = None
        with self._fits():
            if device.type == "cpu" and case.warm_up:
                # A rehearsal: what the process loads when code first runs, 100 MiB and more, is no
                # line's own.
                make_runner(line, scene, device).epochs(1)
            self.peak = Peak(device)
            self.contestant = make_runner(line, scene, device)
            self.timed.facts = self.contestant.facts
            self.peak.begin()
            if case.warm_up:
                self._warm_up(self.contestant, case.warm_up)
                # before others come, whose memory is not this line's
                self.timed.peak = self.peak.bytes()

    def _warm_up(self, contestant: Runner, epochs: int) -> None:
        if self.device.type == "cpu":
            contestant.epochs(1)
            return
        contestant.epochs(epochs)
        seconds, done = timed(self.device, lambda: contestant.epochs(1))
        self.timed.chunk = min(MOST, ceil(CHUNK * done / seconds))

    def lap(self) -> None:
        """Some epochs, and their time."""
        with self._fits():
            if self.contestant:
                run = self.contestant.epochs
                seconds, done = timed(self.device, lambda: run(self.timed.chunk))
                self.timed.seconds.append(seconds / done)
                if self.timed.peak is None:  # nobody warmed up
                    self.timed.peak = self.peak.bytes()

    @contextmanager
    def _fits(self) -> Iterator[None]:
        """Within, memory may run out; then that is what is told of this line."""
        try:
            with products_in(self.timed.line.precision):
                yield
        except torch.OutOfMemoryError:
            self.contestant, self.timed.failed = None, OUT_OF_MEMORY
            self.timed.seconds.clear()
            self.timed.peak = None
