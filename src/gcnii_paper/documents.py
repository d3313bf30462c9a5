"""What the pages of results/ share: folders of documents, and tables with a title and a remark."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cyclopts import run
from rich.console import Group

from gcnii.errors import GcniiError, InputError
from gcnii.files import Document, Made, Shape, read_document
from gcnii.report.tables import Sentence, markdown_table, plain_table
from gcnii.results.provenance import commit, versions


def read_folder(
    folder: Path, shape: Shape, what: str, make: Callable[[Document], Made], command: str = ""
) -> dict[str, Made]:
    """File name → what is made of each JSON document in a folder, in the order of the names.

    command  that writes them, where there must be one
    """
    paths = sorted(folder.glob("*.json"))
    if command and not paths:
        raise InputError(f"there is no {folder}/*.json; `{command}` makes it")
    return {path.stem: read_document(path, shape, what, make) for path in paths}


def run_script(main: Callable[..., None]) -> None:
    """Call a measurement with the arguments of the command line, as its signature has them."""
    try:
        run(main)
    except GcniiError as error:
        sys.exit(str(error))


def made_by(module: str, *words: object) -> Document:
    """The command of a measurement, its commit and software; to be asked before the work begins."""
    command = shlex.join(("python", "-m", f"gcnii_paper.{module}", *map(str, words)))
    return {"command": command, "commit": commit(), "versions": versions()}


def met(holds: bool) -> str:
    """Of a bar: `met` or `missed`."""
    return "met" if holds else "missed"


def software(versions: Mapping[str, str | None]) -> str:
    """`torch 2.9.0, numpy 2.3.0`: what was installed."""
    return ", ".join(f"{name} {version}" for name, version in versions.items() if version)


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3.1 h`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def prose(name: str) -> str:
    """A text of report/templates, with places for what it says in numbers."""
    return Path(__file__).with_name("report").joinpath("templates", f"{name}.md").read_text("utf-8")


def listed(notes: Iterable[str]) -> str:
    """The notes as a list in Markdown."""
    return "".join(f"- {note}\n" for note in notes)


class Part(NamedTuple):
    """A table with its title, and what is said below it."""

    title: str
    heads: Sequence[str]
    rows: Iterable[Sequence[str]]
    remark: str = ""

    def markdown(self) -> str:
        """With the title as a heading of the third level."""
        remark = f"\n{self.remark}\n" if self.remark else ""
        return f"### {self.title}\n\n{markdown_table(self.heads, self.rows)}{remark}"

    def terminal(self, numbers: slice = slice(0)) -> Group:
        """For the terminal, the columns in `numbers` aligned right."""
        table = plain_table(*self.heads, numbers=numbers)
        for row in self.rows:
            table.add_row(*row)
        title, remarks = map(str.splitlines, (self.title, self.remark))
        return Group(*map(Sentence, title), table, *map(Sentence, remarks))
