"""Tables for the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gcnii.errors import visible


class PlainTable(Table):
    """A table without a frame, whose cells are shown as they are: a class may be called [red]."""

    def add_row(self, *cells: RenderableType | None, **how: Any) -> None:
        """Add a row of texts, with control characters as escapes."""
        super().add_row(*(Text(visible(str(cell))) for cell in cells), **how)


def plain_table(*heads: str, numbers: slice = slice(1, None)) -> PlainTable:
    """A table without a frame; the columns in `numbers` are aligned right."""
    table, right = PlainTable(box=None, header_style="bold"), range(len(heads))[numbers]
    for i, head in enumerate(heads):
        table.add_column(Text(visible(head)), justify="right" if i in right else "left")
    return table


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, one line per row."""
    return "".join(f"|{'|'.join(row)}|\n" for row in (heads, ["---"] * len(heads), *rows))
