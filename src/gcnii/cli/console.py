"""Tables on stdout: as wide as the terminal; in a file or a pipe, as wide as they need to be."""

from rich.console import Console
from rich.table import Table

NARROW = 80  # columns; a narrower terminal wraps the lines itself, and no number is cut short
WIDE = 1000  # more than any table needs


def table_console(narrow: int = NARROW) -> Console:
    """A console on stdout that is `narrow` columns wide or more, and never wraps in a pipe."""
    console = Console(highlight=False)
    console.width = max(console.width, narrow) if console.is_terminal else WIDE
    return console


def plain_table(*heads: str, numbers: slice = slice(0)) -> Table:
    """A table without a frame; the columns in `numbers` are aligned right."""
    table = Table(*heads, box=None, header_style="bold")
    for column in table.columns[numbers]:
        column.justify = "right"
    return table
