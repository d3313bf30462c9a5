"""`--help` shows what most people need; `--help-all` the rest, in groups by who needs them.

Nothing here loads torch.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cyclopts import Group
from cyclopts.help.formatters import DefaultFormatter

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

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
RUNNING = rest(2, "If you repeat, log or resume trainings")


def epilogue(command: str, *sentences: str) -> str:
    """The last lines of a command's help."""
    where = f"`gcnii {command} {ALL}` shows all flags, in groups by purpose."
    return " ".join((where, *sentences))
