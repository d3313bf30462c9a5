"""A process that trains some epochs, and says how long they took.

    python -m gcnii_paper.bench.worker ORDER.json ANSWER.json

If ORDER.json has the fields of `Order`, it times an epoch of its part of a graph, alone or under
torchrun; rank 0 writes ANSWER.json.  If it has those of `Training`, it measures the CPU seconds of
an epoch and the memory that it adds, in a process of its own, because memory that another training
has freed would not be seen again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event

import torch
from torch import Tensor

from gcnii import data
from gcnii.cost import Network, calibrate
from gcnii.data.catalog import Size, counted, size_of
from gcnii.files import Document, write_document
from gcnii.graph import Graph
from gcnii.memory import Held
from gcnii.propagation.sparse import Wait
from gcnii.train.distributed.shard import spread
from gcnii.train.distributed.world import World, joined, own_device
from gcnii.train.group import ReplicaGroup
from gcnii.train.hardware import tuned_cpu
from gcnii.train.stopping import Run
from gcnii.train.task import Task
from gcnii_paper.bench.cases import GRAPHS
from gcnii_paper.bench.graphs import BenchGraph, advance, endless_plan, make_bench_graph, near_graph
from gcnii_paper.bench.limits import Peak, timed


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
    rates = calibrate(like, network)
    with tuned_cpu(1):
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


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    asked = json.loads(source.read_text("utf-8"))
    found = measured(Training(**asked)) if "graph" in asked else work(Order(**asked))
    if found is not None:
        write_document(target, found)
