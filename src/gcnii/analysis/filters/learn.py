"""Two questions to the deepest networks that the doctor trained: their filter and their reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gcnii.analysis.filters.bands import is_symmetric
from gcnii.analysis.filters.influence import Influence, influence
from gcnii.analysis.filters.response import Response, response
from gcnii.analysis.layers.checkup import Checkup
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
    """

    layers: int
    alpha: float
    responses: Mapping[str, Response]
    influences: Mapping[str, Influence]

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
        )

    def document(self) -> Document:
        """The answers as a JSON object, without the questions that were not asked."""
        parts = {
            "filter": {model: one.summary() for model, one in self.responses.items()},
            "influence": {model: one.summary() for model, one in self.influences.items()},
        }
        return {name: part for name, part in parts.items() if part}


def _alpha(checkups: Sequence[Checkup]) -> float:
    own = (float(one.settings["alpha"]) for one in checkups if "alpha" in one.settings)
    return next(own, ALPHA)


def learn(
    graph: Graph, checkups: Sequence[Checkup], *, filters: bool, seed: int, show: Show
) -> Learned:
    """Ask the deepest trained network of each model.

    filters  whether to ask; else there are no answers
    seed     of the random signals and nodes
    show     told what is computed next
    """
    asked = _deepest(checkups) if filters else {}
    responses, influences = _ask(graph, asked, seed, show)
    layers = max(one.layers for one in checkups)
    return Learned(layers, _alpha(checkups), responses, influences)


def _deepest(checkups: Sequence[Checkup]) -> dict[str, Result]:
    """The result of each model's deepest network that did not diverge."""
    ordered = sorted(checkups, key=lambda one: one.layers)
    return {one.model: one.result for one in ordered if one.result is not None}


def _ask(
    graph: Graph, networks: Mapping[str, Result], seed: int, show: Show
) -> tuple[dict[str, Response], dict[str, Influence]]:
    responses, influences = {}, {}
    for model, result in networks.items():
        network, task = result.network(graph)
        show(f"{model}: filter")
        responses[model] = response(network, task.P, task.X, seed=seed)
        show(f"{model}: influence of each hop")
        influences[model] = influence(network, task.P, task.X, seed=seed)
    return responses, influences


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
