"""A process that trains some epochs of its part of a graph, and says how long they took.

    python -m gcnii_paper.bench.worker ORDER.json ANSWER.json

alone, or under torchrun.  ORDER.json has the fields of `Order`; rank 0 writes ANSWER.json.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import torch
from torch import Tensor

from gcnii.files import Document, write_document
from gcnii.propagation.sparse import Wait
from gcnii.train.distributed.shard import spread
from gcnii.train.distributed.world import World, joined, own_device
from gcnii.train.group import ReplicaGroup
from gcnii.train.hardware import tuned_cpu
from gcnii.train.run import Run
from gcnii.train.task import Task
from gcnii_paper.bench.cases import PRODUCTS
from gcnii_paper.bench.graphs import (
    BenchGraph,
    advance,
    endless_plan,
    make_bench_graph,
    near_graph,
)
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
        return make_bench_graph(PRODUCTS, device).task(plan, device)
    return BenchGraph.of(near_graph(order.n)).task(plan, device)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    found = work(Order(**json.loads(source.read_text("utf-8"))))
    if found is not None:
        write_document(target, found)
