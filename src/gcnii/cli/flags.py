"""Flags of the command line, generated: a setting is declared once, as an argument of a model or a
field of Recipe.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from cyclopts import Group, Parameter

from gcnii.nn import MODELS
from gcnii.train.recipe import Recipe

Command = TypeVar("Command", bound=Callable[..., Any])


def with_settings(command: Command) -> Command:
    """Give a command that takes **settings a flag for every setting of every model and of the
    Recipe.
    """
    signature = inspect.signature(command, eval_str=True)
    fixed = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind != parameter.VAR_KEYWORD
    ]
    flags = _flags(
        "Model settings (default: the preset of the data set, else the model's own)", _model_hints()
    )
    flags += _flags(
        "Training settings (default: the preset of the data set, else the model's own)",
        get_type_hints(Recipe, include_extras=True),
    )
    command.__signature__ = signature.replace(parameters=[*fixed, *flags])  # type: ignore[attr-defined]
    return command


def _model_hints() -> dict[str, Any]:
    hints: dict[str, Any] = {}
    for model in MODELS.values():
        own = get_type_hints(model.__init__, include_extras=True)
        named = inspect.signature(model).parameters.values()
        hints |= {
            p.name: own[p.name] for p in named if p.kind == p.KEYWORD_ONLY and p.name not in hints
        }
    return hints


def _flags(title: str, hints: dict[str, Any]) -> list[inspect.Parameter]:
    group = Group(title)
    flags = []
    for name, hint in hints.items():
        kind, setting = get_args(hint)[:2]
        about = Parameter(
            help=f"{setting.help[0].upper()}{setting.help[1:]}.", group=group, negative_iterable=""
        )
        annotation = Annotated[kind | None, about]  # type: ignore[valid-type]
        flags.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
            )
        )
    return flags
