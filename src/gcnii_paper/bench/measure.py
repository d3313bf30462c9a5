"""Measure a case: every line in turn, round after round, so that other load meets all alike.

The result is a JSON document with all that is needed to measure and to judge it again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from math import ceil, inf
from pathlib import Path
from statistics import median

import torch

from gcnii.errors import GcniiError, one_line
from gcnii.files import Document, write_document
from gcnii.results.provenance import commit, versions
from gcnii.train.hardware import device_name, large_blocks_kept, tuned_cpu
from gcnii_paper.bench.cases import OURS, BenchCase, Line, Named, Shape
from gcnii_paper.bench.graphs import BenchGraph, make_bench_graph
from gcnii_paper.bench.limits import Floor, Peak, Rates, measure_rates, products_in, timed
from gcnii_paper.bench.runners import Runner, make_runner, plan_of, why_not, work_of

CHUNK = 0.3  # seconds between two readings of the clock on a GPU, where each wait costs time
MOST = 64  # epochs between two readings
OUT_OF_MEMORY = "out of memory"
LONGEST = 200  # characters of why other code failed

OnStep = Callable[[str], None]


@dataclass
class Timed:
    """A line and its seconds per epoch, one number per round; `failed` says why there are none."""

    line: Line
    bench_graph: BenchGraph
    seconds: list[float] = field(default_factory=list)
    chunk: int = 1  # epochs per round
    peak: int | None = None
    facts: Document = field(default_factory=dict)
    failed: str = ""

    @property
    def best(self) -> float:
        """The least time: other load only adds to a time."""
        return min(self.seconds, default=inf)

    @property
    def median(self) -> float:
        """The time to expect."""
        return median(self.seconds) if self.seconds else inf

    def cost(self, case: BenchCase) -> float:
        """The best time, divided by what the case counts per."""
        settings = plan_of(self.line).model_settings
        amounts = {
            "replicas": self.line.replicas,
            "layers": settings["layers"],
            "entries": self.bench_graph.entries,
        }
        cost = self.best
        for unit in case.per:
            cost /= amounts[unit]
        return cost


@dataclass(frozen=True)
class Measured:
    """A case on a device: its lines, the device's rates, and notes on what was left out."""

    case: BenchCase
    device: torch.device
    rounds: int
    rates: Rates
    lines: list[Timed]
    notes: list[str]

    def floor(self, line: Timed) -> Floor | None:
        """The least time for an epoch; None for what is more than epochs, or none, and for sampled
        neighbours, whose number differs from step to step.
        """
        sampled = plan_of(line.line).recipe.batches == "neighbours"
        if sampled or line.line.who in ("end-to-end", "predict", "command"):
            return None
        return self.rates.floor(work_of(line.line, line.bench_graph), line.line.precision)

    def ratio(self, line: Timed) -> float | None:
        """This line's cost divided by the first line's."""
        if not line.seconds or not self.lines[0].seconds:
            return None
        return line.cost(self.case) / self.lines[0].cost(self.case)


def steps(case: BenchCase, device: torch.device, rounds: int) -> int:
    """The largest number of times that `measure` calls `on_step`."""
    return 2 + len(case.lines(device.type)) * (1 + rounds)


def measure(case: BenchCase, device: torch.device, rounds: int, on_step: OnStep) -> Measured:
    """Time every line; the others are compared with the first."""
    commit()  # recorded at the end, when it might be another one
    lines, notes = _runnable(case.lines(device.type), device)
    with tuned_cpu(), large_blocks_kept(device.type == "cpu"):
        precisions, graphs, found = sorted({line.precision for line in lines}), _Graphs(device), []
        on_step("the device itself")
        before = measure_rates(device, precisions)
        for group in [lines] if case.together else [[line] for line in lines]:
            found += _take_turns(case, group, graphs, rounds, on_step)
            # Cached memory would not count as free when the next line asks how much it may keep.
            gc.collect()
            if device.type == "cuda":
                torch.cuda.empty_cache()
        on_step("the device itself")
        rates = before.or_faster(measure_rates(device, precisions))
    return Measured(case, device, rounds, rates, found, notes)


class _Graphs(dict[Named | Shape, BenchGraph]):
    """Makes each graph once."""

    def __init__(self, device: torch.device):
        super().__init__()
        self.device = device

    def __missing__(self, source: Named | Shape) -> BenchGraph:
        self[source] = make_bench_graph(source, self.device)
        return self[source]


def _runnable(lines: tuple[Line, ...], device: torch.device) -> tuple[list[Line], list[str]]:
    reasons = [(line, why_not(line, device)) for line in lines]
    notes = [
        f"{line.who} in {line.precision} left out: {reason}" for line, reason in reasons if reason
    ]
    return [line for line, reason in reasons if not reason], list(dict.fromkeys(notes))


def _take_turns(
    case: BenchCase, lines: list[Line], graphs: _Graphs, rounds: int, on_step: OnStep
) -> list[Timed]:
    entrants = []
    for line in lines:
        on_step(f"{line.who}, warming up")
        entrants.append(Entrant(case, line, graphs[line.graph], graphs.device))
    for _ in range(rounds):
        for entrant in entrants:
            on_step(entrant.timed.line.who)
            entrant.lap()
    return [entrant.timed for entrant in entrants]


class Entrant:
    """A line that is built and warm, and the times of its laps."""

    def __init__(self, case: BenchCase, line: Line, bench_graph: BenchGraph, device: torch.device):
        self.timed, self.device = Timed(line, bench_graph), device
        self.runner: Runner | None = None
        with self._fits():
            if device.type == "cpu" and case.warm_up:
                # A rehearsal: what the process loads when code first runs, 100 MiB and more, is not
                # this line's own.
                make_runner(line, bench_graph, device).epochs(1)
            self.peak = Peak(device)
            self.runner = make_runner(line, bench_graph, device)
            self.timed.facts = self.runner.facts
            self.peak.begin()
            if case.warm_up:
                self._warm_up(self.runner, case.warm_up)
                # before other lines are built, whose memory is not this line's
                self.timed.peak = self.peak.bytes()

    def _warm_up(self, runner: Runner, epochs: int) -> None:
        if self.device.type == "cpu":
            runner.epochs(1)
            return
        runner.epochs(epochs)
        seconds, done = timed(self.device, lambda: runner.epochs(1))
        self.timed.chunk = min(MOST, ceil(CHUNK * done / seconds))

    def lap(self) -> None:
        """Train some epochs and note their time."""
        with self._fits():
            if self.runner:
                run = self.runner.epochs
                seconds, done = timed(self.device, lambda: run(self.timed.chunk))
                self.timed.seconds.append(seconds / done)
                if self.timed.peak is None:  # there was no warm-up
                    self.timed.peak = self.peak.bytes()

    @contextmanager
    def _fits(self) -> Iterator[None]:
        """Note it as the line's failure if memory runs out, or if other code fails."""
        try:
            with products_in(self.timed.line.precision):
                yield
        except torch.OutOfMemoryError:
            self._give_up(OUT_OF_MEMORY)
        except (RuntimeError, GcniiError) as error:
            if self.timed.line.who in OURS:
                raise
            first = str(error).partition("\n")[0]
            self._give_up(f"failed: {one_line(first, LONGEST)}")

    def _give_up(self, why: str) -> None:
        self.runner, self.timed.failed, self.timed.peak = None, why, None
        self.timed.seconds.clear()


COUNTED = (
    "per layer and replica 13 passes over n·h numbers (training forward 4, backward 3, weight "
    "gradients 2, gradient of H0 1, evaluation 3) and 5 products of 2·n·h² operations; where n·h "
    "numbers do not fit into the cache, 3 times a row of h numbers for every entry of P̃; bandwidth "
    "and operations a second are those of a large copy and of a large matrix product on the same "
    "device"
)


def document(found: Measured) -> Document:
    """The case as a JSON document; times are in seconds per epoch."""
    case = found.case
    words = f" --rounds {found.rounds}" + (f" --scale {case.scale:g}" if case.scale < 1 else "")
    cores = {"threads": torch.get_num_threads()}
    return {
        **heading(case.name, case.title, found.device, words, cores),
        "graph": _graph(found.lines[0].bench_graph),
        "per": list(case.per),
        "rates": asdict(found.rates),
        "floor": COUNTED,
        "lines": [_line(found, line) for line in found.lines],
        "notes": found.notes,
    }


def heading(
    name: str, title: str, device: torch.device, words: str, cores: Mapping[str, int | None]
) -> Document:
    """What a document begins with; `words` are further ones of the command."""
    return {
        "case": name,
        "title": title,
        "command": f"gcnii bench {name} --device {device.type}{words}",
        "device": device_name(device),
        "processor": processor(),
        **cores,
        "versions": versions(),
        "commit": commit(),
        "day": datetime.now(UTC).date().isoformat(),
    }


def write(folder: Path, record: Document) -> Path:
    """Write the document to `CASE-DEVICE.json` in the folder."""
    device = record["device"].split(":")[0]
    return write_document(folder / f"{record['case']}-{device}.json", record)


def _graph(bench_graph: BenchGraph) -> Document:
    graph, drawn, entries = bench_graph.graph, bench_graph.drawn, bench_graph.entries
    return {"name": graph.name, "drawn": drawn, "n": graph.n, "entries": entries}


def _line(found: Measured, timed: Timed) -> Document:
    line, settings = timed.line, plan_of(timed.line).model_settings
    return {
        "who": line.who,
        **({"label": line.label} if line.label else {}),
        "model": line.model,
        "layers": settings["layers"],
        "width": settings["width"],
        "precision": line.precision,
        "replicas": line.replicas,
        "entries": timed.bench_graph.entries,
        **_times(found, timed),
        "failed": timed.failed,
        **timed.facts,
    }


def _times(found: Measured, timed: Timed) -> Document:
    floor = found.floor(timed)
    return {
        "epochs_a_round": timed.chunk,
        "seconds": timed.seconds,
        "best": timed.best if timed.seconds else None,
        "median": timed.median if timed.seconds else None,
        "ratio": found.ratio(timed),
        "peak_bytes": timed.peak,
        "floor": asdict(floor) if floor else None,
    }


def processor() -> str | None:
    """The name of the CPU, where the system tells."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None
    )
