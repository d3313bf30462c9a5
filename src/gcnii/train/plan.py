"""A plan: which model, with which settings, trained how.  What the user did not say comes from the
preset.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from gcnii.errors import InputError, did_you_mean
from gcnii.graph import Graph
from gcnii.nn import MODELS, Model
from gcnii.train.presets import preset
from gcnii.train.recipe import RECIPE_FIELDS, Recipe


@dataclass(frozen=True)
class Plan:
    """A model of the registry, its settings, and a Recipe."""

    model: str
    model_settings: Mapping[str, Any]
    recipe: Recipe

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting of model and recipe in one flat dictionary, as JSON has it."""
        settings = dict(self.model_settings) | asdict(self.recipe)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in settings.items()
        }

    def build(self, d: int, k: int, seed: int = 0) -> Model:
        """The model with the weights of this seed, drawn on the CPU so that they are the same on
        every device.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return MODELS[self.model](d, k, **self.model_settings).to(self.recipe.dtype)


def make_plan(model: str, settings: Mapping[str, Any], graph: Graph | None = None) -> Plan:
    """Settings given, over the preset of the graph's data set, over the model's own, over the
    defaults of Recipe.
    """
    defaults = model_defaults(known_model(model))
    known = (*defaults, *RECIPE_FIELDS)
    for name in settings:
        if name not in known:
            raise InputError(
                f"{model} has no setting {name!r}; {did_you_mean(name, known)}known: {', '.join(known)}"
            )
    published = preset(graph.source, model) if graph else {}
    merged = {**MODELS[model].card.recipe, **published, **settings}
    recipe = Recipe(**{name: merged[name] for name in RECIPE_FIELDS if name in merged})
    model_settings = {name: merged.get(name, default) for name, default in defaults.items()}
    _check(model_settings)
    _check_batches(model, recipe)
    if recipe.memory == "recompute" and not MODELS[model].can_recompute:
        raise InputError(f"{model} cannot recompute its activations; use memory auto or keep")
    return Plan(model, model_settings, recipe)


def known_model(name: str) -> str:
    """The name itself, or an error that guesses which model was meant."""
    if name not in MODELS:
        raise InputError(
            f"no model {name!r}; {did_you_mean(name, MODELS)}known: {', '.join(MODELS)}"
        )
    return name


def model_defaults(model: str) -> dict[str, Any]:
    """A model's settings are the keyword-only arguments of its class."""
    parameters = inspect.signature(MODELS[model]).parameters.values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind == parameter.KEYWORD_ONLY
    }


def _check(settings: Mapping[str, Any]) -> None:
    for name in ("layers", "width", "heads", "out_heads"):
        if name in settings and (settings[name] != int(settings[name]) or settings[name] < 1):
            raise InputError(f"{name} must be a whole number of at least 1, got {settings[name]}")
    if "alpha" in settings and not 0 <= settings["alpha"] <= 1:
        raise InputError(f"alpha is a share and must lie in [0, 1], got {settings['alpha']}")
    if "lam" in settings and not 0 <= settings["lam"] < float("inf"):
        raise InputError(f"lam must be 0 or more, got {settings['lam']}")


def _check_batches(name: str, recipe: Recipe) -> None:
    model = MODELS[name]
    if recipe.batches != "neighbours":
        return
    if not model.supports_sampling:
        raise InputError(
            f"{name} does not gather hop by hop and cannot be trained on drawn neighbours; "
            "use batches full, parts or clusters"
        )
    if recipe.drop_edge:
        raise InputError(
            f"drawn neighbours are not thinned out further; use drop_edge 0, got {recipe.drop_edge}"
        )
    if recipe.history != "none" and not model.supports_history:
        raise InputError(
            f"old activations make up for products alone, which {name} has none of; use history none"
        )
