"""Three questions to the deepest networks that the doctor trained: filter, reach and depth."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gcnii.analysis.filters.bands import is_symmetric
from gcnii.analysis.filters.depth_forecast import compare_depths, forecast
from gcnii.analysis.filters.influence import Influence, influence
from gcnii.analysis.filters.response import Response, response
from gcnii.analysis.layers.checkup import Checkup
from gcnii.analysis.layers.diagnosis import Diagnosis
from gcnii.errors import InputError
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.propagation import RelationalMatrix, Sparse
from gcnii.train.plan import Plan
from gcnii.train.results.result import Result
from gcnii.train.task import make_adjacency

Show = Callable[[str], None]
ALPHA = 0.1  # of the PageRank beside the learned filters, if no model has an α of its own


@dataclass(frozen=True)
class Learned:
    """By model, the answers of its deepest network; empty where a question was not asked.

    layers, alpha  of the linear GCN and the PageRank that the filters are compared with
    forecasts      each a `Forecast.summary()` merged with a `Comparison.summary()`
    """

    layers: int
    alpha: float
    responses: Mapping[str, Response]
    influences: Mapping[str, Influence]
    forecasts: Mapping[str, Document]

    @classmethod
    def of(cls, document: Mapping[str, Any], checkups: Sequence[Checkup]) -> Learned:
        """The answers that a `document` holds, of networks with these checkups."""
        return cls(
            layers=max(one.layers for one in checkups),
            alpha=_alpha(checkups),
            responses={name: Response.of(one) for name, one in document.get("filter", {}).items()},
            influences={
                name: Influence.of(one) for name, one in document.get("influence", {}).items()
            },
            forecasts=document.get("depth", {}),
        )

    def document(self) -> Document:
        """The answers as a JSON object, without the questions that were not asked."""
        parts = {
            "filter": {model: one.summary() for model, one in self.responses.items()},
            "influence": {model: one.summary() for model, one in self.influences.items()},
            "depth": dict(self.forecasts),
        }
        return {name: part for name, part in parts.items() if part}


def _alpha(checkups: Sequence[Checkup]) -> float:
    own = (float(one.settings["alpha"]) for one in checkups if "alpha" in one.settings)
    return next(own, ALPHA)


def learn(
    graph: Graph,
    found: Sequence[tuple[Checkup, Diagnosis]],
    *,
    filters: bool,
    depth: bool,
    seed: int,
    show: Show,
) -> Learned:
    """Ask the deepest trained network of each model.

    found    all checkups: the shallower networks are what a forecast is compared with
    filters  ask for the filter and for the influence of each hop
    depth    ask for a depth
    seed     of the random signals and nodes
    show     told what is computed next
    """
    trained = _trained(found)
    checkups = [one for one, _ in found]
    responses, influences = _ask_filters(graph, trained, seed, show) if filters else ({}, {})
    forecasts = _ask_depths(graph, trained, show) if depth else {}
    layers = max(one.layers for one in checkups)
    return Learned(layers, _alpha(checkups), responses, influences, forecasts)


@dataclass(frozen=True)
class _Trained:
    """The trained networks of one model."""

    deepest: Result
    layers: int
    gone: bool  # the verdict on the deepest
    test: dict[int, float]  # scores by depth


def _trained(found: Sequence[tuple[Checkup, Diagnosis]]) -> dict[str, _Trained]:
    networks: dict[str, _Trained] = {}
    tests: dict[str, dict[int, float]] = {}
    for one, diagnosis in sorted(found, key=lambda pair: pair[0].layers):
        if one.result is not None:
            test = tests.setdefault(one.model, {})
            test[one.layers] = one.test
            gone = diagnosis.verdict.kind == "gone"
            networks[one.model] = _Trained(one.result, one.layers, gone, test)
    return networks


def _ask_filters(
    graph: Graph, trained: Mapping[str, _Trained], seed: int, show: Show
) -> tuple[dict[str, Response], dict[str, Influence]]:
    responses, influences = {}, {}
    for model, one in trained.items():
        network, task = one.deepest.network(graph)
        show(f"{model}: filter")
        responses[model] = response(network, task.P, task.X, seed=seed)
        show(f"{model}: influence of each hop")
        influences[model] = influence(network, task.P, task.X, seed=seed)
    return responses, influences


def _ask_depths(graph: Graph, trained: Mapping[str, _Trained], show: Show) -> dict[str, Document]:
    forecasts = {}
    for model, one in trained.items():
        show(f"{model}: depth")
        if one.gone:
            text = f"{model} of {one.layers} layers recommends no depth: information is gone in it"
            warnings.warn(text, stacklevel=3)
        else:
            foretold = forecast(graph, one.deepest)
            forecasts[model] = foretold.summary() | compare_depths(foretold, one.test).summary()
    return forecasts


def refuse_filters(graph: Graph, plans: Sequence[Plan]) -> None:
    """Refuse, before any training, models without frequencies or with different ones."""
    matrices = [make_adjacency(graph, plan.recipe).whole for plan in plans]
    for plan, P in zip(plans, matrices, strict=True):
        if isinstance(P, RelationalMatrix):
            raise InputError(
                f"{plan.model} has several propagation matrices, and a filter is of one;"
                " leave out the model or the filter (--filter)"
            )
        if not is_symmetric(P):
            raise InputError(
                f"{plan.model}'s P̃ on {graph.name} is not symmetric, which a filter needs;"
                " leave out the filter (--filter)"
            )
        if not _same_values(P, matrices[0]):
            raise InputError(
                f"filters are compared on one P̃, and {', '.join(plan.model for plan in plans)}"
                " have different ones; ask for one model at a time"
            )


def _same_values(P: Sparse, other: Sparse) -> bool:
    return len(P.values) == len(other.values) and torch.equal(P.values, other.values)
