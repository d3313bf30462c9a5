"""A table of labels as a file: names unchanged, or made harmless for spreadsheets."""

from __future__ import annotations

import csv
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gcnii.errors import InputError
from gcnii.files import atomic_write

if TYPE_CHECKING:
    from pandas import DataFrame

# What spreadsheets take for the start of a formula, after OWASP's page on CSV injection; a number
# with a sign is not one.
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
TEXT = ("node", "label", "known", "set")  # columns that hold names from the data


def harmless(table: DataFrame) -> tuple[DataFrame, int]:
    """The table with `'` before each name that a spreadsheet would run, and the number of these."""
    safe, count = table.copy(), 0
    for column in _texts(table):
        formulas = [i for i, cell in enumerate(table[column]) if _is_formula(cell)]
        place = safe.columns.get_loc(column)
        for i in formulas:
            safe.iat[i, place] = f"'{safe.iat[i, place]}"
        count += len(formulas)
    return safe, count


def _texts(table: DataFrame) -> list[str]:
    return [name for name in TEXT if name in table]


def _is_formula(cell: object) -> bool:
    """Whether a spreadsheet would run it, or would if a `'` before it were taken away.

    The latter get a `'` more, so that '=x differs from what becomes of =x.
    """
    if not isinstance(cell, str):
        return False
    bare = cell.lstrip("'")
    return bool(FORMULA.match(bare)) and not NUMBER.fullmatch(bare)


def csv_text(table: DataFrame) -> str:
    """The table as CSV."""
    return str(table.to_csv(index=False, lineterminator="\n", quoting=_quoting(table)))


def write_table(table: DataFrame, path: Path) -> None:
    """Write a .csv or .parquet file, atomically."""
    refuse_format(path)
    with atomic_write(path) as temporary:
        if path.suffix == ".csv":
            options = {"lineterminator": "\n", "quoting": _quoting(table)}
            table.to_csv(temporary, index=False, **options)
        else:
            text = [name for name in table if table[name].dtype == object]
            # Without a type, a column of unknown labels would not be one of text.
            table.astype(dict.fromkeys(text, "string")).to_parquet(
                temporary, engine="pyarrow", index=False
            )


def refuse_format(path: Path, what: str = "the file") -> None:
    """Raise InputError if no table can be written under this name."""
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"{what} must end in .csv or .parquet, got {path.name}")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(
            "writing .parquet needs pyarrow: pip install 'gcnii[parquet]', or use a .csv file"
        )


def _quoting(table: DataFrame) -> int:
    """Which cells go into quotes: text, if a name holds a carriage return, else as few as possible.

    Python before 3.13 leaves a carriage return without quotes, and readers end the row there.
    """
    names = [*table.columns, *(cell for name in _texts(table) for cell in table[name].unique())]
    returns = any("\r" in name for name in names if isinstance(name, str))
    return csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
