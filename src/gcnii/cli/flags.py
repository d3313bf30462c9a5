"""Flags made of settings, each declared once: a model's keyword argument or a field of Recipe."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Annotated, TypeVar

from cyclopts import Group, Parameter

from gcnii.cli.help import USUAL, rest
from gcnii.nn import MODELS
from gcnii.nn.settings import setting_of
from gcnii.train import recipe
from gcnii.train.plan import model_hints

Command = TypeVar("Command", bound=Callable[..., None])
FIRST = ("layers", "width", "dropout", "lr", "epochs")  # `--help` shows them, too
MODEL = rest(3, "If you shape the model")
OPTIMISING = rest(4, "If you choose how it is optimised and when it stops")
SEEING = rest(7, "If you choose how features and links are used")
LARGE = rest(8, "If the graph is large: batches, memory, precision")
# The fields of Recipe, in their order, from each of these on → the group of their flags.
GROUPS = {
    "lr": OPTIMISING,
    "metric": rest(5, "If classes are rare, or nodes have several labels"),
    "scale": SEEING,
    "views": rest(6, "If few nodes have labels: consistency over random views"),
    "batches": LARGE,
}


def with_settings(command: Command) -> Command:
    """Replace `**settings` of a command by a flag for each setting of the models and of Recipe."""
    signature = inspect.signature(command, eval_str=True)
    parameters = signature.parameters.values()
    fixed = [parameter for parameter in parameters if parameter.kind != parameter.VAR_KEYWORD]
    hints = _model_hints() | recipe.recipe_hints()
    names = [*FIRST, *(name for name in hints if name not in FIRST)]
    flags = [_flag(name, hints[name]) for name in names if name not in signature.parameters]
    command.__signature__ = signature.replace(parameters=[*fixed, *flags])  # type: ignore[attr-defined]
    return command


@cache
def _groups() -> dict[str, Group]:
    """setting of Recipe → the group of its flag."""
    groups, group = {}, MODEL
    for name in recipe.RECIPE_FIELDS:
        group = GROUPS.get(name, group)
        groups[name] = group
    return groups | dict.fromkeys(FIRST, USUAL)


def _model_hints() -> dict[str, object]:
    """setting → its annotation, of every model; the first model that has a setting describes it."""
    hints: dict[str, object] = {}
    for model in MODELS:
        hints |= {name: hint for name, hint in model_hints(model).items() if name not in hints}
    return hints


def _flag(name: str, hint: object) -> inspect.Parameter:
    kind, setting = setting_of(hint)
    sentence = f"{setting.help[0].upper()}{setting.help[1:]}."
    parameter = Parameter(help=sentence, group=_groups().get(name, MODEL), negative_iterable="")
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,  # not given
        annotation=Annotated[kind | None, parameter],
    )
