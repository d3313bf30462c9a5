"""A process that measures one training: CPU seconds of an epoch and the memory that it adds.

    python -m gcnii_paper.bench.single ORDER.json ANSWER.json

In a process of its own, because memory that another one has freed would not be seen again.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from gcnii import data
from gcnii.cost import Network, calibrate
from gcnii.data.catalog import Size, counted, size_of
from gcnii.files import Document, write_document
from gcnii.graph import Graph
from gcnii.memory import Held
from gcnii.train.group import ReplicaGroup
from gcnii.train.hardware import tuned_cpu
from gcnii.train.run import Run
from gcnii.train.task import Task
from gcnii_paper.bench.graphs import endless_plan
from gcnii_paper.bench.limits import Peak

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
    write_document(target, measured(Training(**json.loads(source.read_text("utf-8")))))
