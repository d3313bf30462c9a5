"""What a line of a case times: epochs of our code or of a baseline, or a command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from weakref import finalize

import numpy as np
import torch
from numpy.typing import NDArray

from gcnii import data
from gcnii.data.formats.packed import save
from gcnii.errors import GcniiError
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.graph.arrays import freeze
from gcnii.results.fit import Session, fit_plans
from gcnii.train.group import ReplicaGroup
from gcnii.train.plan import Plan, make_plan
from gcnii.train.presets import preset
from gcnii.train.stopping import Run
from gcnii_paper.bench.baselines import BaselineTraining, CapturedTraining
from gcnii_paper.bench.cases import Line, Named, Shape
from gcnii_paper.bench.graphs import ENDLESS, BenchGraph, advance, make_bench_graph
from gcnii_paper.bench.limits import EpochWork, wait_for
from gcnii_paper.bench.sampled import SampledTraining

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
