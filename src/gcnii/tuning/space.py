"""What a search tries: settings whose annotations have a range, where they make a difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from gcnii.graph import Graph
from gcnii.nn import MODELS
from gcnii.nn.settings import Choice, Range, Settings, setting_of
from gcnii.propagation import OWN_LOOPS, Loops
from gcnii.targets.scores import RARE, Metric
from gcnii.train.plan import model_hints
from gcnii.train.recipe import recipe_hints

Space: TypeAlias = dict[str, Range | Choice]

# Nothing to a model without the graph.
OF_LINKS = ("direction", "edge_weights", "loops", "norm", "decay_conv")
OF_VIEWS = ("views", "drop_node", "consistency", "sharpen", "warm_up")  # for few labels
FEW = 0.1  # share of the nodes, below which labels are few
DIGITS = 2  # of a number on a logarithmic scale: more say nothing


def space_of(model: str, graph: Graph, metric: Metric, fixed: Settings) -> Space:
    """The settings of this model that are tried on this graph, those of Recipe among them."""
    declared = {
        name: setting.search
        for name, hint in (recipe_hints() | model_hints(model)).items()
        if (setting := setting_of(hint)[1]).search is not None
    }
    loops = loops_of(model, graph, fixed)
    declared["loops"] = Choice(loops)
    pointless = {
        "direction": not graph.directed,
        "edge_weights": not graph.weighted,
        "loops": len(loops) == 1,
        "class_weight": metric not in RARE,
    }
    if not few_labels(graph):
        pointless |= dict.fromkeys(OF_VIEWS, True)
    if not MODELS[model].card.uses_graph:
        pointless |= dict.fromkeys(OF_LINKS, True)
    return {
        name: search
        for name, search in declared.items()
        if search is not None and name not in fixed and not pointless.get(name, False)
    }


def few_labels(graph: Graph) -> bool:
    """Whether most nodes are neither trained on nor validated: they can teach consistency."""
    return bool(graph.splits[0].train.mean() < FEW)


def loops_of(model: str, graph: Graph, fixed: Settings) -> tuple[Loops, ...]:
    """The choices of `loops` that differ on this graph, and that what is fixed allows."""
    recipe = {**MODELS[model].card.recipe, **fixed}
    looped = bool((graph.edges[0] == graph.edges[1]).any())
    refused = (
        recipe.get("geometry", "none") != "none"
        or recipe.get("diffusion", "none") != "none"
        or fixed.get("norm") in OWN_LOOPS
    )
    kinds: tuple[Loops, ...] = ("keep", "remove") if looped else ("keep",)
    return kinds if refused else (*kinds, "none")


def parameter(model: str, name: str) -> str:
    """What Optuna calls a setting: one of a model's own is not another model's."""
    return f"{model}.{name}" if name in model_hints(model) else name


def settings_of(model: str, space: Space, parameters: Mapping[str, object]) -> Settings:
    """The settings that Optuna's parameters mean."""
    found = {name: parameters[parameter(model, name)] for name in space}
    return {name: _rounded(space[name], value) for name, value in found.items()}


def parameters_of(
    model: str, space: Mapping[str, Range | Choice], settings: Mapping[str, object]
) -> Settings:
    """Optuna's parameters for these settings; a number becomes the nearest that is tried."""
    return {parameter(model, name): _inside(space[name], settings[name]) for name in space}


def _rounded(search: Range | Choice, value: object) -> object:
    if isinstance(search, Choice) or not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if search.log else round(value, 6)


def _inside(search: Range | Choice, value: object) -> object:
    """The value itself, or the nearest that is tried; of words, the first."""
    if isinstance(search, Choice):
        if value in search.values or not isinstance(value, int | float):
            return value if value in search.values else search.values[0]
        return min(search.values, key=lambda one: abs(float(one) - value))
    assert isinstance(value, int | float)
    number = float(np.clip(value, search.low, search.high))
    if search.step is None:
        return number
    return round(search.low + round((number - search.low) / search.step) * search.step, 6)
