"""A table of labels as a file: names unchanged, or made harmless for spreadsheets."""

from __future__ import annotations

import csv
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gcnii.errors import InputError
from gcnii.files import atomic_write, first_bytes, refuse_replacing

if TYPE_CHECKING:
    from pandas import DataFrame

# What spreadsheets take for the start of a formula, after OWASP's page on CSV injection; a number
# with a sign is not one.
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
LATER = re.compile(r"(?<=[;\r\n])[^;\r\n]+")  # what may become a cell of its own
TEXT = ("node", "label", "known", "set")  # columns that hold names from the data


def harmless(table: DataFrame) -> tuple[DataFrame, int]:
    """The table with `'` before each name that a spreadsheet would run, and the number of these."""
    safe, count = table.copy(), 0
    for column in _texts(table):
        place = safe.columns.get_loc(column)
        for i, cell in enumerate(table[column]):
            if isinstance(cell, str) and (changed := _defused(cell)) != cell:
                safe.iat[i, place] = changed
                count += 1
    safe.columns = safe.columns.map(_defused)  # classes have a column each
    return safe, count


def _texts(table: DataFrame) -> list[str]:
    return [name for name in TEXT if name in table]


def _defused(cell: str) -> str:
    """The cell with `'` before each formula in it.

    A spreadsheet whose cells semicolons separate sees no quotes within `x,"a;=1+1"`, and takes what
    follows a semicolon or the end of a line for a cell of its own.
    """
    whole = f"'{cell}" if _is_formula(cell.lstrip("'")) else cell

    def later(found: re.Match[str]) -> str:
        return f"'{found[0]}" if _is_formula(found[0].lstrip("'\"")) else found[0]

    return LATER.sub(later, whole)


def _is_formula(bare: str) -> bool:
    """Whether a spreadsheet would run it, or would if the `'` before it were taken away.

    The latter get a `'` more, so that '=x differs from what becomes of =x.
    """
    return bool(FORMULA.match(bare)) and not NUMBER.fullmatch(bare)


def csv_text(table: DataFrame) -> str:
    """The table as CSV."""
    return str(table.to_csv(index=False, lineterminator="\n", quoting=_quoting(table)))


def write_table(table: DataFrame, path: Path, *, overwrite: bool = False) -> None:
    """Write a .csv or .parquet file, atomically; in place of no other but a table of labels."""
    refuse_format(path)
    refuse_replacing(path, is_table, overwrite=overwrite)
    try:
        with atomic_write(path) as temporary:
            _write(table, temporary, path.suffix)
    except UnicodeEncodeError as error:
        raise InputError(
            f"{path} cannot hold {error.object[error.start]!a}, which is half of a character; "
            "rename what has it in its name"
        ) from None


def _write(table: DataFrame, path: Path, suffix: str) -> None:
    if suffix == ".csv":
        table.to_csv(path, index=False, lineterminator="\n", quoting=_quoting(table))
        return
    text = [name for name in table if table[name].dtype == object]
    # Without a type, a column of unknown labels would not be one of text.
    typed = table.astype(dict.fromkeys(text, "string"))
    typed.to_parquet(path, engine="pyarrow", index=False)


def is_table(path: Path) -> bool:
    """Whether a file holds a table of labels, judged by the names of its columns."""
    if path.suffix == ".csv":
        text = first_bytes(path, 10_000).decode("utf-8", "replace")
        names = next(csv.reader(text.splitlines(keepends=True)), [])
    else:
        from pyarrow.parquet import read_schema

        try:
            names = read_schema(path).names
        except (OSError, ValueError):  # which Arrow's errors are
            return False
    return names[:2] == ["node", "label"] and {"known", "split"} <= {*names}


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
