"""Where tables are printed: as wide as the terminal; in a file or a pipe, as wide as they are."""

from rich.console import Console

NARROW = 80  # columns; a narrower terminal folds the lines itself, and no number is cut short
WIDE = 1000  # more than any table needs


def table_console(narrow: int = NARROW) -> Console:
    """A console on stdout that breaks no line that a program may read; a terminal has `narrow`
    columns or more.
    """
    console = Console(highlight=False)
    console.width = max(console.width, narrow) if console.is_terminal else WIDE
    return console
