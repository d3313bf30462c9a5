"""Measure a case: every line in turn, round after round, so that other load meets all alike.

The result is a JSON document with all that is needed to measure and to judge it again.  A line
times epochs of our code or of a baseline, or a command.
"""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from math import ceil, inf
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory, mkdtemp
from weakref import finalize

import numpy as np
import torch
from numpy.typing import NDArray

from gcnii import data
from gcnii.data.formats.packed import save
from gcnii.errors import GcniiError, one_line
from gcnii.files import Document, write_document
from gcnii.graph import Graph
from gcnii.graph.arrays import freeze
from gcnii.results.fit import Session, fit_plans
from gcnii.results.provenance import commit, versions
from gcnii.train.group import ReplicaGroup
from gcnii.train.hardware import device_name, large_blocks_kept, tuned_cpu
from gcnii.train.plan import Plan, make_plan
from gcnii.train.presets import preset
from gcnii.train.stopping import Run
from gcnii_paper.bench.baselines import BaselineTraining, CapturedTraining, SampledTraining
from gcnii_paper.bench.cases import OURS, BenchCase, Line, Named, Shape
from gcnii_paper.bench.graphs import ENDLESS, BenchGraph, advance, make_bench_graph
from gcnii_paper.bench.limits import (
    EpochWork,
    Floor,
    Peak,
    Rates,
    measure_rates,
    products_in,
    timed,
    wait_for,
)

# The command of the words after it, and the peak of the process as the last line.
COMMAND = """
from gcnii.cli import main
from gcnii_paper.bench.limits import highest
main()
print(highest())
"""
STUDIED = 1000  # nodes of the graph on which the model is trained: labels need not be good


class Prediction:
    """A packed graph and a trained model in a folder of their own, and the command on them.

    facts  what was found by the last run
    """

    def __init__(self, line: Line, bench_graph: BenchGraph, plan: Plan):
        assert isinstance(line.graph, Shape)
        self.facts: Document = {}
        self.folder = here = Path(mkdtemp())
        finalize(self, shutil.rmtree, here, ignore_errors=True)
        save(_with_edges(bench_graph), here / "graph.safetensors")
        small = Shape(n=STUDIED, entries=STUDIED, d=line.graph.d, k=line.graph.k)
        graph = make_bench_graph(small, torch.device("cpu")).graph
        fit_plans(graph, [plan], Session(device="cpu"), seeds=[0]).save(here / "model")

    def runs(self, count: int) -> int:
        """Label all nodes `count` times."""
        here = self.folder
        words = ("predict", here / "model", "--graph", here / "graph.safetensors")
        where = ("--device", "cpu", "--out", here / "labels.csv", "--quiet")
        command = (sys.executable, "-c", COMMAND, *map(str, (*words, *where)))
        for _ in range(count):
            self.facts["peak_bytes"] = int(_told(command).splitlines()[-1])
        return count


def first_command(line: Line) -> Runner:
    """`gcnii train` in a process of its own, in a folder that is then removed."""
    assert isinstance(line.graph, Named)
    settings = (f"--{name}={value}" for name, value in line.settings.items())
    words = ("train", line.graph.name, *settings, "--device", "cpu", "--quiet")

    def runs(count: int) -> int:
        for _ in range(count):
            with TemporaryDirectory() as folder:
                _told((sys.executable, "-m", "gcnii", *words, "--out", f"{folder}/run"))
        return count

    return Runner(runs, {"peak_bytes": None})  # of another process


def _told(command: Sequence[str]) -> str:
    """What a command prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise GcniiError(f"{' '.join(command[:5])} … failed: {done.stderr.strip()}")
    return done.stdout


def _with_edges(bench_graph: BenchGraph) -> Graph:
    """The graph with its drawn links as edges, each once."""
    pattern, graph = bench_graph.links.pattern, bench_graph.graph
    once = pattern.row_of < pattern.columns
    edges = np.stack([pattern.row_of[once].numpy(), pattern.columns[once].numpy()])
    return Graph(X=graph.X, edges=freeze(edges), y=graph.y, splits=graph.splits, name=graph.name)


# trains that number of epochs or slightly more, waits for the device, and returns their number
Epochs = Callable[[int], int]


@dataclass(frozen=True, eq=False)
class Runner:
    """`facts` are what the document says of it besides its time, once it has run."""

    epochs: Epochs
    facts: Document = field(default_factory=dict)


def why_not(line: Line, device: torch.device) -> str:
    """Why this line cannot be run here, in a few words; empty if it can."""
    if line.who in ("pyg-graph", "pyg-compiled") and device.type != "cuda":
        return "it needs a CUDA device"
    if line.who.startswith("pyg") and not find_spec("torch_geometric"):
        return "PyG is not installed: pip install 'gcnii[pyg]'"
    try:
        plan_of(line)
    except ValueError as error:
        return str(error)
    return ""


def plan_of(line: Line) -> Plan:
    """The line's settings over the preset of its graph, without early stopping."""
    # Plain PyTorch computes TF32 products of float32 weights by a switch of its own.
    precision = line.precision if line.who == "gcnii" else "float32"
    return _plan(line, precision=precision, **ENDLESS)


def _plan(line: Line, **more: object) -> Plan:
    published = preset(line.graph.name, line.model) if isinstance(line.graph, Named) else {}
    return make_plan(line.model, {**published, **line.settings, **more})


def work_of(line: Line, bench_graph: BenchGraph) -> EpochWork:
    """The size of the line's epochs; of several graphs, those with training or validation nodes."""
    settings, graph = plan_of(line).model_settings, bench_graph.graph
    width, layers = settings["width"], settings["layers"]
    if graph.part is None:
        nodes = (graph.n, graph.n, graph.n, bench_graph.entries)
    else:
        nodes = _in_parts(bench_graph, graph.part)
    return EpochWork(*nodes, h=width, layers=layers, replicas=line.replicas)


def _in_parts(bench_graph: BenchGraph, part: NDArray[np.int64]) -> tuple[int, int, int, int]:
    """Nodes trained on, nodes evaluated, nodes of the largest graph, and entries of P̃."""
    split = bench_graph.graph.splits[0]
    nodes, rows = np.bincount(part), bench_graph.links.pattern.rows.cpu().diff().numpy()
    trained, evaluated = (
        int(nodes[np.unique(part[mask])].sum()) for mask in (split.train, split.val)
    )
    entries = int(rows[np.isin(part, part[split.train])].sum())
    return trained, evaluated, int(nodes.max()), entries


def make_runner(line: Line, bench_graph: BenchGraph, device: torch.device) -> Runner:
    """Everything up to the first epoch."""
    if line.who == "end-to-end":
        return end_to_end(line, device)
    if line.who == "command":
        return first_command(line)
    if line.who == "predict":
        prediction = Prediction(line, bench_graph, _plan(line))
        return Runner(prediction.runs, prediction.facts)
    if line.who == "gcnii":
        return Runner(ours(line, bench_graph, device))
    plan = plan_of(line)
    if line.who == "pyg-sampled":
        return Runner(SampledTraining(bench_graph, plan, device).epochs)
    if line.who == "pyg-graph":
        return Runner(CapturedTraining(bench_graph, plan, device).epochs)
    return Runner(BaselineTraining(line.who, bench_graph, plan, device).epochs)


def ours(line: Line, bench_graph: BenchGraph, device: torch.device) -> Epochs:
    """The epochs of `fit`: a step for each batch, an evaluation, and the best weights kept."""
    runs = [Run(seed) for seed in range(line.replicas)]
    group = ReplicaGroup(bench_graph.task(plan_of(line), device), runs)

    def epochs(count: int) -> int:
        done = advance(group, count)
        wait_for(device)
        return done

    return epochs


def end_to_end(line: Line, device: torch.device) -> Runner:
    """`load` and `fit` with early stopping, as in `gcnii train`; its facts are the test scores."""
    facts: Document = {}
    assert isinstance(line.graph, Named)
    name = line.graph.name

    def run(count: int) -> int:
        for _ in range(count):
            graph, seeds = data.load(name, offline=True), range(line.replicas)
            session = Session(device=str(device))
            result = fit_plans(graph, [_plan(line)], session, seeds=seeds)
            test, epochs = result.test, [run.epochs for run in result.runs]
            facts.update(test_mean=float(test.mean()), test_std=float(test.std(ddof=1)))
            facts.update(runs=len(epochs), epochs_mean=float(np.mean(epochs)))
        return count

    return Runner(run, facts)


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
