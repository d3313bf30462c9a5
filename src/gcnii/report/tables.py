"""Tables for the terminal and in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import TextWrapper
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Column, Table
from rich.text import Text

from gcnii.errors import visible

BESIDE = 2  # columns of a terminal around a cell
HELD = "\0"  # in the place of a space at which no line may end
NARROWEST_TEXT, WIDEST_WORD = 16, 40  # columns of a terminal: of texts that have to be wrapped


class PlainTable(Table):
    """A table without a frame, whose cells are shown as they are: a class may be called [red].

    In a narrow terminal texts are wrapped, and numbers never: columns that have no room follow in
    a table below, beside the first column again.
    """

    def add_row(self, *cells: RenderableType | None, **how: Any) -> None:
        """Add a row of texts, with control characters as escapes."""
        super().add_row(*(Text(visible(str(cell))) for cell in cells), **how)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, or its parts."""
        texts = [_aligned(column) for column in self.columns]
        pairs = list(zip(self.columns, texts, strict=True))
        natural = [_widest(map(_length, (str(column.header), *cells))) for column, cells in pairs]
        least = [_least(*pair, most) for pair, most in zip(pairs, natural, strict=True)]
        whole = _total(natural) <= options.max_width
        groups = [[*range(len(pairs))]] if whole else _groups(least, options.max_width)
        for i, group in enumerate(groups):
            widths = _spread(group, least, natural, options.max_width)
            part = Table(box=None, header_style=self.header_style)
            if i:
                yield Text("")
            else:
                part.title, part.title_justify = self.title, self.title_justify
            for j, width in zip(group, widths, strict=True):
                own = self.columns[j]
                head = Text(str(own.header), justify=own.justify)
                if own.justify == "right":  # by hand: Rich would cut the blanks off an end
                    texts[j] = [" " * (width - _length(cell)) + cell for cell in texts[j]]
                part.add_column(head, width=width, overflow="fold")
            for row in zip(*(texts[j] for j in group), strict=True):
                part.add_row(*map(Text, row))
            yield part


def _aligned(column: Column) -> list[str]:
    """The cells; of numbers with intervals the numbers end, and the intervals begin, in line."""
    cells = [str(cell) for cell in column.cells]
    if column.justify != "right" or not any(" [" in cell for cell in cells):
        return cells
    parts = [cell.partition(" ") for cell in cells]
    number, ends = (max(len(part[i]) for part in parts) for i in (0, 2))
    return [f"{one:>{number}} {rest:<{ends}}" for one, _, rest in parts]


def _length(text: str) -> int:
    return Text(text).cell_len


def _widest(lengths: Iterable[int]) -> int:
    return max(lengths, default=1) or 1


def _total(widths: Iterable[int]) -> int:
    return sum(width + BESIDE for width in widths)


def _least(column: Column, cells: Sequence[str], natural: int) -> int:
    """The narrowest that a column can be: its numbers, and words of its head or of its texts."""
    head = str(column.header)
    if column.justify == "right":
        return _widest(map(_length, (*head.split(), *cells)))
    word = _widest(_length(word) for text in (head, *cells) for word in text.split())
    return min(natural, max(NARROWEST_TEXT, min(word, WIDEST_WORD)))


def _groups(least: Sequence[int], room: int) -> Iterator[list[int]]:
    """The columns of each part; the first one is in all of them."""
    group = [0]
    for j in range(1, len(least)):
        if len(group) > 1 and _total(least[i] for i in (*group, j)) > room:
            yield group
            group = [0]
        group.append(j)
    yield group


def _spread(
    group: Sequence[int], least: Sequence[int], natural: Sequence[int], room: int
) -> list[int]:
    """The widths of a part: the first column takes what it lacks, the others share what is left."""
    widths = {j: least[j] for j in group}
    order = sorted(group, key=lambda j: (j > 0, natural[j] - least[j]))
    for left, j in enumerate(order, -len(group)):
        spare = max(room - _total(widths.values()), 0)
        widths[j] = min(natural[j], least[j] + spare // (-left if j else 1))
    return list(widths.values())


class Sentence(str):
    """A sentence for the terminal, wrapped between words, but not within an interval."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(wrapped(self, options.max_width), no_wrap=True)


def wrapped(text: str, width: int, below: str = "") -> str:
    """The text in lines of at most this width, if no word is longer; `[1.0, 2.0]` is a word.

    below  what the lines after the first begin with
    """
    held = re.sub(r"\[\S+, \S+\]", lambda found: found[0].replace(" ", HELD), visible(text))
    wrap = TextWrapper(
        width, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
    )
    return wrap.fill(held).replace(HELD, " ")


def plain_table(*heads: str, numbers: slice = slice(1, None)) -> PlainTable:
    """A table without a frame; the columns in `numbers` are aligned right."""
    table, right = PlainTable(box=None, header_style="bold"), range(len(heads))[numbers]
    for i, head in enumerate(heads):
        table.add_column(Text(visible(head)), justify="right" if i in right else "left")
    return table


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, one line per row."""
    return "".join(f"|{'|'.join(row)}|\n" for row in (heads, ["---"] * len(heads), *rows))
