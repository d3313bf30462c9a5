"""Flags made of settings, each declared once: a model's keyword argument or a field of Recipe."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, TypeVar

from cyclopts import Group, Parameter

from gcnii.nn import MODELS
from gcnii.nn.settings import setting_of
from gcnii.train.plan import model_hints
from gcnii.train.recipe import recipe_hints

Command = TypeVar("Command", bound=Callable[..., None])
DEFAULTS = "default: the graph's preset (your own: docs/defaults.md), then the model's own"


def with_settings(command: Command) -> Command:
    """Replace `**settings` of a command by a flag for each setting of the models and of Recipe."""
    signature = inspect.signature(command, eval_str=True)
    parameters = signature.parameters.values()
    fixed = [parameter for parameter in parameters if parameter.kind != parameter.VAR_KEYWORD]
    flags = [
        *_flags(f"Model settings ({DEFAULTS})", _model_hints()),
        *_flags(f"Training settings ({DEFAULTS})", recipe_hints()),
    ]
    flags = [flag for flag in flags if flag.name not in signature.parameters]
    command.__signature__ = signature.replace(parameters=[*fixed, *flags])  # type: ignore[attr-defined]
    return command


def _model_hints() -> dict[str, object]:
    """setting → its annotation, of every model; the first model that has a setting describes it."""
    hints: dict[str, object] = {}
    for model in MODELS:
        hints |= {name: hint for name, hint in model_hints(model).items() if name not in hints}
    return hints


def _flags(title: str, hints: Mapping[str, object]) -> list[inspect.Parameter]:
    group = Group(title)
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,  # not given
            annotation=_annotation(hint, group),
        )
        for name, hint in hints.items()
    ]


def _annotation(hint: object, group: Group) -> object:
    kind, setting = setting_of(hint)
    sentence = f"{setting.help[0].upper()}{setting.help[1:]}."
    parameter = Parameter(help=sentence, group=group, negative_iterable="")
    return Annotated[kind | None, parameter]
