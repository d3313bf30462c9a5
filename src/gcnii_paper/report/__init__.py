"""Reports of what was measured: pages, tables and figures, on paper and in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, one line per row."""
    return "".join(f"|{'|'.join(row)}|\n" for row in (heads, ["---"] * len(heads), *rows))
