"""What the doctor asks of the deepest networks that it trained: their filters, their reach, and a
depth.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gcnii.analysis.filters.bands import refuse_asymmetric
from gcnii.analysis.filters.depth_forecast import compare, forecast
from gcnii.analysis.filters.influence import influence
from gcnii.analysis.filters.response import response
from gcnii.analysis.layers.checkup import Checkup
from gcnii.analysis.layers.diagnosis import Diagnosis
from gcnii.analysis.report.learned import Learned
from gcnii.errors import InputError
from gcnii.graph import Graph
from gcnii.propagation import Sparse
from gcnii.train.plan import Plan
from gcnii.train.task import make_adjacency


def learn(
    graph: Graph,
    found: Sequence[tuple[Checkup, Diagnosis]],
    *,
    filters: bool,
    depth: bool,
    seed: int,
    show: Callable[[str], None],
) -> Learned:
    """Ask the deepest network of each model; the shallower ones are what a forecast is held
    against.
    """
    trained = [one for one, _ in found if one.result is not None]
    deepest = {one.model: one for one in sorted(trained, key=lambda one: one.layers)}
    gone = [one for one, diagnosis in found if diagnosis.verdict.kind == "gone"]
    answers: dict[str, dict[str, Any]] = {"filter": {}, "influence": {}, "depth": {}}
    for name, checkup in deepest.items():
        assert checkup.result is not None
        if filters:
            model, task = checkup.result.network(graph)
            show(f"{name}: filter")
            answers["filter"][name] = response(model, task.P, task.X, seed=seed).summary()
            show(f"{name}: influence of each hop")
            answers["influence"][name] = influence(model, task.P, task.X, seed=seed).summary()
        if depth:
            show(f"{name}: depth")
            if checkup in gone:
                words = f"{name} of {checkup.layers} layers recommends no depth: information is gone in it"
                warnings.warn(words, stacklevel=2)
                continue
            foretold = forecast(graph, checkup.result)
            sweep = {one.layers: one.test for one in trained if one.model == name}
            answers["depth"][name] = foretold.summary() | compare(foretold, sweep).summary()
    return Learned.of(answers, [one for one, _ in found])


def refuse_filters(graph: Graph, plans: Sequence[Plan]) -> None:
    """Say before the first training that these models have no frequencies, or none in common."""
    matrices = [make_adjacency(graph, plan.recipe).whole for plan in plans]
    for plan, P in zip(plans, matrices, strict=True):
        if not isinstance(P, Sparse):
            raise InputError(
                "frequencies need one propagation matrix; leave out --filter, or models with a geometry"
            )
        try:
            refuse_asymmetric(P)
        except ValueError:
            raise InputError(
                f"--filter needs a symmetric P̃, which {plan.model} has not on {graph.name}; leave out --filter"
            ) from None
        if len(P.values) != len(matrices[0].values) or not torch.equal(
            P.values, matrices[0].values
        ):
            names = ", ".join(plan.model for plan in plans)
            raise InputError(
                f"--filter compares models on one P̃, and {names} have several; ask for one at a time"
            )
