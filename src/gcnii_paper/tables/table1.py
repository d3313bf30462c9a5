"""Table 1: what the data sets hold, and what the paper says that they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Literal

from gcnii.data import CATALOG, load
from gcnii.data.catalog import Counts
from gcnii.errors import DataError, InputError
from gcnii.files import Document
from gcnii_paper.tables.printed import TABLE_1

NAME = "table1"
TITLE = "Table 1: the data sets"
HEADS = ("data set", *(field.name for field in fields(Counts)), "verdict")
ABOUT = "Where two numbers differ, the second one is printed."

Word = Literal["equal", "different", "missing"]


@dataclass(frozen=True)
class DataRow:
    """A data set: the printed numbers, and those that were counted, or None without its files."""

    name: str
    printed: Counts
    found: Counts | None

    @property
    def word(self) -> Word:
        """`equal` if all four numbers are."""
        if self.found is None:
            return "missing"
        return "equal" if self.found == self.printed else "different"

    @property
    def notes(self) -> tuple[str, ...]:
        """What the catalog knows about the difference."""
        notes = CATALOG[self.name].notes if self.word == "different" else ()
        return tuple(note for note in notes if note.startswith("Table 1"))

    @property
    def words(self) -> list[str]:
        """The row in words, one for each of HEADS."""
        printed, found = asdict(self.printed), asdict(self.found) if self.found else {}
        numbers = (
            str(count) if found.get(name) in (count, None) else f"{found[name]} ({count})"
            for name, count in printed.items()
        )
        return [self.name, *numbers, self.word]

    def document(self) -> Document:
        """As JSON."""
        return asdict(self) | {"verdict": self.word, "notes": list(self.notes)}


def counted(name: str) -> Counts | None:
    """What the files of a data set hold; None if they are not here and cannot be fetched."""
    try:
        graph = load(name)
    except DataError:
        return None
    return Counts(graph.n, graph.m, graph.d, graph.k)


def in_catalog(name: str) -> Counts | None:
    """What the catalog says that they hold; None if it does not know all of it."""
    counts = CATALOG[name].counts
    return None if counts.edges is None else counts


def rows(count: Callable[[str], Counts | None] = counted, only: str = "") -> list[DataRow]:
    """The paper's data sets with this text in their name."""
    names = [name for name in TABLE_1 if only in name]
    if not names:
        known = ", ".join(TABLE_1)
        raise InputError(f"no data set of Table 1 has {only!r} in its name; known: {known}")
    return [DataRow(name, TABLE_1[name], count(name)) for name in names]


def notes_on(found: list[DataRow]) -> Iterator[str]:
    """Why numbers differ."""
    yield ABOUT
    yield from (f"{row.name}: {note}" for row in found for note in row.notes)
