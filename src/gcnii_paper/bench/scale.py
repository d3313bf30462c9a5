"""gcnii bench scale: growth in size, cuts of a graph, several processes, plans beside measurements.

Each training is measured in a process of its own, which is this file as a script:

    python -m gcnii_paper.bench.scale ORDER.json ANSWER.json

If ORDER.json has the fields of `Order`, it times an epoch of its part of a graph, alone or under
torchrun; rank 0 writes ANSWER.json.  If it has those of `Training`, it measures the CPU seconds of
an epoch and the memory that it adds, because memory that another training has freed would not be
seen again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Event

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gcnii import data
from gcnii.cost import Labels, Network, calibrate, measured_cut
from gcnii.data.catalog import Size, counted, size_of
from gcnii.errors import GcniiError
from gcnii.files import NOTHING, Document, Shape, read_document, write_document
from gcnii.graph import Graph
from gcnii.memory import Held
from gcnii.propagation import adjacency
from gcnii.propagation.sparse import Wait
from gcnii.results.provenance import commit
from gcnii.train.clusters import metis
from gcnii.train.distributed.shard import blocks, spread
from gcnii.train.distributed.world import World, joined, own_device
from gcnii.train.group import ReplicaGroup
from gcnii.train.hardware import large_blocks_kept, tuned_cpu
from gcnii.train.stopping import Run
from gcnii.train.task import Task
from gcnii_paper.bench.cases import GRAPHS
from gcnii_paper.bench.graphs import BenchGraph, advance, endless_plan, make_bench_graph, near_graph
from gcnii_paper.bench.limits import Peak, timed
from gcnii_paper.bench.measure import heading


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to train.

    n       nodes of a near graph; 0: the graph of the bench case `products`
    rounds  how often epochs are timed
    epochs  in each round, at least
    """

    n: int
    layers: int
    width: int
    device: str
    rounds: int
    epochs: int = 1
    memory: str = "auto"


@dataclass(frozen=True, eq=False)
class TimedWorld(World):
    """A world that notes how long this process waits for rows.

    silent  once it is set, nothing is exchanged: rows of others are zeros, and nobody is waited for
    """

    waits: list[float] = field(default_factory=list)
    silent: Event = field(default_factory=Event)

    def added(self, sums: Tensor) -> Tensor:
        """As the world's."""
        return sums.detach().clone() if self.silent.is_set() else super().added(sums)

    def exchange(self, rows: Tensor, sent: Sequence[int], received: Sequence[int]) -> Wait:
        """As the world's."""
        if self.silent.is_set():
            zeros = rows.new_zeros(sum(received), *rows.shape[1:])
            return lambda: zeros
        wait = super().exchange(rows, sent, received)

        def noted() -> Tensor:
            start = time.perf_counter()
            found = wait()
            self.waits.append(time.perf_counter() - start)
            return found

        return noted


def work(order: Order) -> Document | None:
    """Train; the answer, if this is rank 0."""
    device = own_device(torch.device(order.device))
    with joined(device) as world, tuned_cpu(1):
        ours = TimedWorld(world.rank, world.size, world.store, world.hosted) if world else None
        peak = Peak(device)
        task = _task(order, device, ours)
        group = ReplicaGroup(task, [Run(0)])
        peak.begin()
        advance(group, 1)
        answer = _rounds(order, device, group, ours)
        answer["nodes"] = task.X.shape[0]
        # A CPU's would be mostly that of the libraries, which this process has just loaded.
        answer["peak_bytes"] = peak.bytes() if device.type == "cuda" else None
        return None if world and world.rank else answer


def _rounds(
    order: Order, device: torch.device, group: ReplicaGroup, world: TimedWorld | None
) -> Document:
    seconds, shares = [], []
    for _ in range(order.rounds):
        if world:
            world.waits.clear()
        seconds.append(_one_of(order, device, group))
        shares.append(sum(world.waits) / seconds[-1] / order.epochs if world else 0.0)
    best = seconds.index(min(seconds))
    computing = _computing(order, device, group, world) if world else seconds[best]
    return {
        "seconds": seconds,
        "best": seconds[best],
        "waiting": shares[best],
        "computing": computing,
    }


def _one_of(order: Order, device: torch.device, group: ReplicaGroup) -> float:
    """Seconds of an epoch, one of `order.epochs`."""
    spent, done = timed(device, lambda: advance(group, order.epochs))
    return spent / done


def _computing(
    order: Order, device: torch.device, group: ReplicaGroup, world: TimedWorld
) -> float | None:
    """Seconds of an epoch of rank 0's part, while the others wait and nothing is exchanged."""
    with world.first_alone():
        if world.rank:
            return None
        world.silent.set()
        best = min(_one_of(order, device, group) for _ in range(order.rounds))
        world.silent.clear()
        return best


def _task(order: Order, device: torch.device, world: World | None) -> Task:
    plan = endless_plan(order.layers, order.width, order.memory)
    if world:
        return spread(near_graph(order.n), plan, device, world)
    if not order.n:
        return make_bench_graph(GRAPHS["products"], device).task(plan, device)
    return BenchGraph.of(near_graph(order.n)).task(plan, device)


CPU = torch.device("cpu")
ROUNDS = 2


@dataclass(frozen=True, kw_only=True)
class Training:
    """A network on a graph of the catalog; the parameters are those of a generated one."""

    graph: str
    layers: int
    width: int
    memory: Held = "keep"
    parameters: Mapping[str, float] = field(default_factory=dict)


def measured(training: Training) -> Document:
    """What it takes, and the rates of this CPU: calibrated first, as in `gcnii plan`.

    Later, malloc would have memory at hand that it else has to ask for.
    """
    network = Network(layers=training.layers, width=training.width, memory=training.memory)
    like = _like(training)
    rates = calibrate(like, network, whole=True)
    with tuned_cpu(1), large_blocks_kept(training.memory == "keep"):
        # What a process loads when code first runs is not of this training.
        _epoch(_group(data.load("csbm", n=100), training))
        graph = data.load(training.graph, offline=True, **training.parameters)
        peak = Peak(CPU)
        group = _group(graph, training)
        peak.begin()
        seconds = [_epoch(group) for _ in range(1 + ROUNDS)][1:]
    about = {"graph": training.graph, "size": asdict(size_of(graph)), "network": asdict(network)}
    answer = {"rates": rates.document(), "best": min(seconds), "peak_bytes": peak.bytes()}
    return about | answer


def _like(training: Training) -> Size:
    """The size of the graph, before it is loaded."""
    if not training.parameters:
        found = counted(training.graph)
        assert found is not None
        return found
    n, degree = int(training.parameters["n"]), training.parameters["degree"]
    return Size(n=n, entries=round(n * (degree + 1)), d=1, k=1, stored=n)


def _group(graph: Graph, training: Training) -> ReplicaGroup:
    plan = endless_plan(training.layers, training.width, training.memory)
    return ReplicaGroup(Task.of(graph, plan, CPU), [Run(0)])


def _epoch(group: ReplicaGroup) -> float:
    start = time.process_time()
    group.advance()
    return time.process_time() - start


TORCHRUN = (
    *("-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"),
    "--nproc-per-node",
)


def launch(order: Document, shape: Shape, size: int = 0) -> Document:
    """The answer of a process with one thread.

    size  how many processes torchrun starts; 0: one, without torchrun
    """
    start = (*TORCHRUN, str(size)) if size else ()
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder) / "order.json", Path(folder) / "answer.json"
        write_document(asked, order)
        words = [sys.executable, *start, "-m", "gcnii_paper.bench.scale", str(asked), str(answer)]
        env = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(words, env=env, capture_output=True, text=True)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
            raise GcniiError(f"{size or 1} processes could not be measured: {last[0]}")
        return read_document(answer, shape, "answer of a process", dict)


REAL = ("cora", "pubmed", "amazon-photo")
MILLION = 1_000_000
PARTS = (2, 8, 32)


def graphs() -> Iterator[Graph]:
    """Three of the catalog and a million nodes that are drawn."""
    yield from (data.load(name, offline=True) for name in REAL)
    yield near_graph(MILLION, d=1)


def measured_cuts(sources: Iterator[Graph]) -> Iterator[Document]:
    """Each graph in each number of parts, cut in three ways."""
    for graph in sources:
        A = adjacency(graph)
        for parts in PARTS:
            for how, cutter in WAYS.items():
                start = time.perf_counter()
                labels = cutter(A, parts)
                if labels is None:
                    continue  # METIS is not installed
                spent = time.perf_counter() - start
                found = asdict(measured_cut(A, labels, how))
                about = {"graph": graph.name, "n": graph.n, "entries": int(A.nnz) + graph.n}
                yield about | {"parts": parts, "seconds": spent} | found


def _blocks(A: sp.csr_array, parts: int) -> Labels:
    return blocks(A.shape[0], parts)


def _random(A: sp.csr_array, parts: int) -> Labels:
    return np.random.default_rng(0).permutation(blocks(A.shape[0], parts))


WAYS: dict[str, Callable[[sp.csr_array, int], Labels | None]] = {
    "metis": metis,
    "blocks": _blocks,
    "random": _random,
}


SINGLE_ANSWER = {"best": float, "peak_bytes": (int, NOTHING), "rates": dict, "size": dict}
# The point that all lines go through: nodes, links of a node, layers and width.
BASE = {"n": 10_000, "degree": 10, "layers": 8, "width": 64}
STEPS = {
    "n": (5_000, 10_000, 20_000, 40_000),
    "degree": (5, 10, 20, 40),
    "layers": (4, 8, 16, 32),
    "width": (32, 64, 128, 256),
}
# Trainings to hold a plan against.
PLANNED = (
    Training(graph="cora", layers=64, width=64),
    Training(graph="pubmed", layers=16, width=256),
    Training(graph="amazon-photo", layers=8, width=128),
    Training(graph="coauthor-cs", layers=4, width=64),
    Training(graph="csbm", layers=8, width=64, parameters={"n": 200_000, "degree": 10}),
)
DRAWN = {"classes": 10, "features": 64}


def grown() -> Iterator[Document]:
    """Each of the four, the others as in BASE."""
    for what, values in STEPS.items():
        for value in values:
            point = BASE | {what: value}
            layers, width = point.pop("layers"), point.pop("width")
            found = one_training(
                Training(graph="csbm", layers=layers, width=width, parameters=point)
            )
            amount = found["size"]["entries"] if what == "degree" else value
            yield {"what": "entries" if what == "degree" else what, "value": amount, **found}


def planned() -> Iterator[Document]:
    """What the trainings of PLANNED took, and the rates of this CPU beside them."""
    return map(one_training, PLANNED)


def one_training(training: Training) -> Document:
    """In a process of its own."""
    order = asdict(training)
    order["parameters"] |= DRAWN if training.graph == "csbm" else {}
    return launch(order, SINGLE_ANSWER)


WORKER_ANSWER = {
    **{"seconds": [float], "best": float, "waiting": float, "computing": float, "nodes": int}
}
SIZES = (1, 2, 4)
ON_CPU = Order(n=40_000, layers=8, width=64, device="cpu", rounds=16)
EACH = 20_000  # nodes of a process, where the work of each is fixed
ON_CUDA = Order(n=1_000_000, layers=8, width=128, device="cuda", rounds=5, epochs=10)
LARGE = Order(n=0, layers=64, width=128, device="cuda", rounds=2, memory="recompute")


def over_processes(order: Order = ON_CPU, each: int = EACH) -> Iterator[Document]:
    """Strong: the graph is fixed; weak: the nodes of a process are.

    efficiency  1 where N processes do N times the work of one in the same time
    """
    for kind in ("strong", "weak"):
        first = 0.0
        for size in SIZES:
            n = order.n if kind == "strong" else each * size
            found = run_workers(replace(order, n=n), size)
            first = first or found["best"]
            gain = first / found["best"] / (size if kind == "strong" else 1)
            yield {"kind": kind, "n": n, "processes": size, "efficiency": gain, **found}


def on_cuda() -> Iterator[Document]:
    """One process with and without torchrun, two on one GPU by gloo, and 2.4 million nodes."""
    for kind, order, size in (
        ("alone", ON_CUDA, 0),
        ("torchrun", ON_CUDA, 1),
        ("two by gloo", replace(ON_CUDA, rounds=3, epochs=3), 2),
        ("2.4 million nodes", LARGE, 0),
    ):
        yield {"kind": kind, "n": order.n, "processes": max(size, 1), **run_workers(order, size)}


def run_workers(order: Order, size: int) -> Document:
    """The answer of `size` processes under torchrun; 0: of one process, without it."""
    found = launch(asdict(order), WORKER_ANSWER, size)
    return {"layers": order.layers, "width": order.width, **found}


NAME, TITLE = "scale", "growth, and one graph over several processes"
OnStep = Callable[[str], None]


def steps(device: torch.device) -> int:
    """How often `measure` calls `on_step`."""
    if device.type == "cuda":
        return 4
    growths = sum(len(values) for values in STEPS.values())
    cuts = (len(REAL) + 1) * len(PARTS) * len(WAYS)
    return cuts + 2 * len(SIZES) + growths + len(PLANNED)


def measure(device: torch.device, on_step: OnStep) -> Document:
    """All of it on a CPU; on a GPU, what processes and a large graph take."""
    commit()  # recorded at the end, when it might be another one

    def told(what: str, rows: Iterable[Document]) -> list[Document]:
        found = []
        for row in rows:
            on_step(what)
            found.append(row)
        return found

    if device.type == "cuda":
        found = {"processes": told("processes", on_cuda())}
    else:
        found = {
            "cuts": told("cuts", measured_cuts(graphs())),
            "growth": told("growth", grown()),
            "planned": told("plans", planned()),
            "processes": told("processes", over_processes()),
        }
    return {
        **heading(NAME, TITLE, device, "", {"cores": os.cpu_count()}),
        **{part: [] for part in ("cuts", "growth", "planned")},
        **found,
    }


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    asked = json.loads(source.read_text("utf-8"))
    found = measured(Training(**asked)) if "graph" in asked else work(Order(**asked))
    if found is not None:
        write_document(target, found)
