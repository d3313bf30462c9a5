"""A process that trains some epochs of its part of a graph, and says how long they took.

    python -m gcnii.paper.bench.scale.worker ORDER.json ANSWER.json

alone, or under torchrun.  ORDER.json has the fields of `Order`; rank 0 writes ANSWER.json.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from gcnii.files import Document, write_document
from gcnii.paper.bench.cases import PRODUCTS
from gcnii.paper.bench.clock import timed
from gcnii.paper.bench.graphs import BenchGraph, make_bench_graph
from gcnii.paper.bench.peak import Peak
from gcnii.paper.bench.scale.near import near_graph
from gcnii.propagation import GraphAdjacency, adjacency, feature_matrix
from gcnii.train.distributed.shard import spread
from gcnii.train.distributed.world import World, joined, own_device
from gcnii.train.hardware import tuned_cpu
from gcnii.train.plan import make_plan
from gcnii.train.replicas.group import ReplicaGroup
from gcnii.train.results.run import Run
from gcnii.train.task import Task

ENDLESS = 20_000


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
    """A world that notes how long this process waits for rows."""

    waits: list[float] = field(default_factory=list)

    def exchange(
        self, rows: Tensor, sent: Sequence[int], received: Sequence[int]
    ) -> Callable[[], Tensor]:
        """As the world's."""
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
        _epochs(group, 1)
        waits = ours.waits if ours else []
        answer = _rounds(order, device, group, waits)
        answer["nodes"] = task.X.shape[0]
        # A CPU's would be mostly that of the libraries, which this process has just loaded.
        answer["peak_bytes"] = peak.bytes() if device.type == "cuda" else None
        return None if world and world.rank else answer


def _rounds(
    order: Order, device: torch.device, group: ReplicaGroup, waits: list[float]
) -> Document:
    seconds, shares = [], []
    for _ in range(order.rounds):
        waits.clear()
        spent, done = timed(device, lambda: _epochs(group, order.epochs))
        seconds.append(spent / done)
        shares.append(sum(waits) / spent)
    best = seconds.index(min(seconds))
    return {"seconds": seconds, "best": seconds[best], "waiting": shares[best]}


def _epochs(group: ReplicaGroup, count: int) -> int:
    start = group.epoch
    while group.epoch - start < count:
        group.advance()
    return group.epoch - start


def _task(order: Order, device: torch.device, world: World | None) -> Task:
    settings = {"layers": order.layers, "width": order.width, "memory": order.memory}
    plan = make_plan("gcnii", settings | {"epochs": ENDLESS, "patience": ENDLESS})
    if world:
        return spread(near_graph(order.n), plan, device, world)
    found = _graph(order, device)
    X = feature_matrix(found.graph, dtype=plan.recipe.dtype).to(device)
    return Task(found.graph, plan, device, found.links.to(device, plan.recipe.dtype), X)


def _graph(order: Order, device: torch.device) -> BenchGraph:
    if not order.n:
        return make_bench_graph(PRODUCTS, device)
    graph = near_graph(order.n)
    return BenchGraph(graph, GraphAdjacency.of(adjacency(graph)), drawn=False)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    found = work(Order(**json.loads(source.read_text("utf-8"))))
    if found is not None:
        write_document(target, found)
