"""Whose code does the epochs of a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from gcnii import data
from gcnii.paper.bench.baselines import Peer
from gcnii.paper.bench.cases import Line, Named
from gcnii.paper.bench.clock import wait_for
from gcnii.paper.bench.floor import Work
from gcnii.paper.bench.graphs import BenchGraph
from gcnii.propagation import feature_matrix
from gcnii.train.fit import fit
from gcnii.train.plan import Plan, make_plan
from gcnii.train.presets import preset
from gcnii.train.replicas.group import ReplicaGroup
from gcnii.train.run import Run
from gcnii.train.task import Task

# do so many epochs, or somewhat more; how many they were, once the device is done
Epochs = Callable[[int], int]
ENDLESS = 20_000  # epochs; more than are ever timed, so that nobody stops early


@dataclass(frozen=True, eq=False)
class Runner:
    """`facts` are what it has to tell beside its time, once it has run."""

    epochs: Epochs
    facts: dict[str, Any] = field(default_factory=dict)


def why_not(line: Line) -> str:
    """Why this line cannot be run here, in a few words; empty where it can."""
    if line.who == "pyg" and not find_spec("torch_geometric"):
        return "PyG is not installed: pip install 'gcnii[pyg]'"
    try:
        plan_of(line)
    except ValueError as error:
        return str(error)
    return ""


def plan_of(line: Line) -> Plan:
    """The line's settings over those that the paper has for its graph, without an end."""
    published = preset(line.graph.name, line.model) if isinstance(line.graph, Named) else {}
    # Plain PyTorch computes TF32 products with float32 weights by a switch of its own.
    precision = line.precision if line.who == "gcnii" else "float32"
    endless = {"epochs": ENDLESS, "patience": ENDLESS, "precision": precision}
    return make_plan(line.model, {**published, **line.settings, **endless})


def work_of(line: Line, scene: BenchGraph) -> Work:
    """What an epoch of this line has to go through; of several graphs, those with training or
    validation nodes.
    """
    settings, graph = plan_of(line).model_settings, scene.graph
    trained = evaluated = at_once = graph.n
    entries = scene.entries
    if graph.part is not None:
        nodes, rows = np.bincount(graph.part), scene.links.pattern.rows.cpu().diff().numpy()
        trained, evaluated = (
            int(nodes[np.unique(graph.part[mask])].sum())
            for mask in (graph.splits[0].train, graph.splits[0].val)
        )
        at_once = int(nodes.max())
        entries = int(rows[np.isin(graph.part, graph.part[graph.splits[0].train])].sum())
    return Work(
        trained=trained,
        evaluated=evaluated,
        at_once=at_once,
        entries=entries,
        h=settings["width"],
        layers=settings["layers"],
        replicas=line.replicas,
    )


def make_runner(line: Line, scene: BenchGraph, device: torch.device) -> Runner:
    """Everything up to the first epoch."""
    if line.who == "end-to-end":
        return end_to_end(line, device)
    if line.who == "gcnii":
        return Runner(ours(line, scene, device))
    return Runner(Peer(line.who, scene, plan_of(line), device).epochs)


def ours(line: Line, scene: BenchGraph, device: torch.device) -> Epochs:
    """The epochs of `fit`: a step for each batch, an evaluation, and the best weights kept."""
    plan = plan_of(line)
    dtype = plan.recipe.dtype
    links, X = scene.links.to(device, dtype), feature_matrix(scene.graph).to(device, dtype)
    group = ReplicaGroup(
        Task(scene.graph, plan, device, links, X), [Run(seed) for seed in range(line.replicas)]
    )

    def epochs(count: int) -> int:
        start = group.epoch
        while group.epoch - start < count:
            group.advance()
        wait_for(device)
        return group.epoch - start

    return epochs


def end_to_end(line: Line, device: torch.device) -> Runner:
    """`load` and `fit` with early stopping, as `gcnii train` does; its test scores are told."""
    facts: dict[str, Any] = {}
    assert isinstance(line.graph, Named)
    name = line.graph.name

    def run(count: int) -> int:
        for _ in range(count):
            graph = data.load(name, offline=True)
            result = fit(
                graph, line.model, seeds=range(line.replicas), device=str(device), **line.settings
            )
            epochs = [run.epochs for run in result.runs]
            facts.update(
                test_mean=float(result.test.mean()), test_std=float(result.test.std(ddof=1))
            )
            facts.update(runs=len(epochs), epochs_mean=float(np.mean(epochs)))
        return count

    return Runner(run, facts)
