"""Groups of flags, and those made of settings: a model's keyword argument or a field of Recipe.

`--help` shows what most people need; `--help-all` the rest, in groups by who needs them.  Nothing
here loads torch before `with_settings` is called.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import Group, Parameter
from cyclopts.help.formatters import DefaultFormatter

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

    from gcnii.nn.settings import Setting

Command = TypeVar("Command", bound=Callable[..., None])
ALL = "--help-all"
FLAGS = ("--help", "-h", ALL)


class _OnlyInAll(DefaultFormatter):
    """Draws a group of flags if all of them are asked for, else nothing."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        if ALL in sys.argv:
            super().__call__(console, options, panel)


def rest(place: int, title: str) -> Group:
    """A group of flags that `--help-all` alone shows, at this place among them."""
    return Group(title, sort_key=place, help_formatter=_OnlyInAll())


USUAL = Group.create_default_parameters()
REST_TABLES = rest(1, "If your tables have other columns than id, label, source and target")
RUNNING = rest(2, "If you repeat, log or resume training runs")
MODEL = rest(3, "If you shape the model")
# The fields of Recipe, in their order, from each of these on → the group of their flags.
GROUPS = {
    "lr": rest(4, "If you choose how it is optimised and when it stops"),
    "metric": rest(5, "If classes are rare, or nodes have several labels"),
    "scale": rest(7, "If you choose how features and edges are used"),
    "views": rest(6, "If few nodes have labels: consistency over random views"),
    "batches": rest(8, "If the graph is large: batches, memory, precision"),
}
FIRST = ("layers", "width", "dropout", "lr", "epochs")  # `--help` shows them, too


def epilogue(command: str, *sentences: str) -> str:
    """The last lines of a command's help."""
    where = f"`gcnii {command} {ALL}` shows all flags, in groups by purpose."
    return " ".join((where, *sentences))


def with_settings(command: Command) -> Command:
    """Replace `**settings` of a command by a flag for each setting of the models and of Recipe.

    The first model that has a setting describes it.
    """
    from gcnii.nn import MODELS
    from gcnii.nn.settings import setting_of
    from gcnii.train.plan import model_hints
    from gcnii.train.recipe import RECIPE_FIELDS, recipe_hints

    signature = inspect.signature(command, eval_str=True)
    parameters = signature.parameters.values()
    fixed = [parameter for parameter in parameters if parameter.kind != parameter.VAR_KEYWORD]
    hints: dict[str, object] = {}
    for model in MODELS:
        hints |= {name: hint for name, hint in model_hints(model).items() if name not in hints}
    hints |= recipe_hints()
    names = [*FIRST, *(name for name in hints if name not in FIRST)]
    groups = _groups(RECIPE_FIELDS)
    flags = [
        _flag(name, *setting_of(hints[name]), groups.get(name, MODEL))
        for name in names
        if name not in signature.parameters
    ]
    command.__signature__ = signature.replace(parameters=[*fixed, *flags])  # type: ignore[attr-defined]
    return command


def _groups(fields: Iterable[str]) -> dict[str, Group]:
    """setting of Recipe → the group of its flag."""
    groups, group = {}, MODEL
    for name in fields:
        group = GROUPS.get(name, group)
        groups[name] = group
    return groups | dict.fromkeys(FIRST, USUAL)


def _flag(name: str, kind: Any, setting: Setting, group: Group) -> inspect.Parameter:
    sentence = f"{setting.help[0].upper()}{setting.help[1:]}."
    parameter = Parameter(help=sentence, group=group, negative_iterable="")
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,  # not given
        annotation=Annotated[kind | None, parameter],
    )
