"""What a table is, wherever it comes from, and what the user says about its columns.

`Rows` is a table of nodes or edges.  `Reading` says which columns are what: the same words in
Python and as flags.
"""

from __future__ import annotations

import stat
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import (
    DataError,
    InputError,
    Problems,
    check_number,
    is_one_of,
    notice,
    suggestion,
)
from gcnii.files import Document
from gcnii.graph.arrays import true_or_false
from gcnii.graph.columns import Cells, Texts, parsed
from gcnii.graph.weights import DUPLICATES

# Names of nodes as text, None where missing; or as whole numbers, where a table has such.
Ends: TypeAlias = Texts | NDArray[np.int64]


# Called with the bytes read so far and the bytes of the file, from 0 on in each pass over it.
Progress: TypeAlias = Callable[[int, int], None]
# Called with the name of the file as well.
Watcher: TypeAlias = Callable[[str, int, int], None]

LARGE = 10_000_000  # bytes: a smaller file is read before anyone asks
ALWAYS_READ = 5_000_000  # cells of a table of nodes; each takes about 40 bytes while it is read
MOST_EMPTY = 20  # times the cells that are given


class Rows(ABC):
    """A table with named columns.

    name    what messages call it: "nodes.csv"
    header  the names of the columns
    """

    name: str
    header: tuple[str, ...]

    @abstractmethod
    def __len__(self) -> int: ...

    def place(self, i: int) -> str:
        """Where row i is, for a message: "row 7 of nodes.csv"."""
        return f"row {i} of {self.name}"

    def lacks(self, column: str, what: str = "") -> str:
        """That there is no such column, from which `what` was to be taken."""
        use = f" to take {what} from" if what else ""
        return (
            f"{self.name} has no column {column!r}{use}; its columns are {', '.join(self.header)}"
        )

    @abstractmethod
    def texts(self, column: str) -> Texts:
        """The cells of one column, as they are written; None where one is empty or missing."""

    @abstractmethod
    def cells(self, columns: Sequence[str], as_text: Collection[str]) -> dict[str, Cells]:
        """Columns as numbers (float32; NaN where missing) if all their cells are, else as text.

        as_text  the names of those that are text even if all their cells are numbers
        """

    @abstractmethod
    def blocks(self, columns: Sequence[str]) -> Iterator[Sequence[Ends]]:
        """The names in some columns, some rows at a time, from the first row on."""

    def numbers(self, column: str) -> NDArray[np.float64]:
        """The cells of one column as numbers; NaN where a cell is none."""
        return parsed(self.texts(column))


def no_progress(read: int, size: int) -> None:
    """Show nothing."""


def progress_of(path: Path, watcher: Watcher | None) -> Progress:
    """What tells the watcher about this file, if it is large."""
    large = watcher and path.is_file() and path.stat().st_size >= LARGE
    return partial(watcher, path.name) if watcher and large else no_progress


def is_file(path: Path, problems: Problems) -> bool:
    """Whether a path can be read as a file; a pipe or a device might never end."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            path.open("rb").close()
            return True
        reason = "Is a directory" if stat.S_ISDIR(mode) else "Is not a regular file"
    except OSError as error:
        reason = error.strerror or type(error).__name__
    problems.add(f"cannot read {path} ({reason}); make it a readable file")
    return False


def note_repeated_names(name: str, header: Iterable[str], problems: Problems) -> None:
    """Note the names that several columns have."""
    for column, count in Counter(header).items():
        if count > 1:
            problems.add(f"{name} has {count} columns called {column!r}; rename or remove one")


def refuse_empty_cells(owner: str, rows: int, columns: int, given: int) -> None:
    """Raise DataError for a table that has hardly any of its cells, and would fill the memory."""
    if rows * columns > max(ALWAYS_READ, given * MOST_EMPTY):
        raise DataError(
            f"{owner} have {columns:,} attributes, but {given / rows:.2g} of them each on average: "
            f"a table of {rows:,} × {columns:,} cells would be nearly empty; keep fewer, or "
            "give a sparse matrix of features (features.npz beside nodes.csv; X in Python)"
        )


Names = str | Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the columns of the two tables are called, and what is known about them.

    id           the nodes' names
    label        the label; several columns of zeros and ones, where a node can have several labels
    split        train, val, test or empty
    target       the columns of nodes with numbers to predict, in the place of labels
    edge_from, edge_to, weight   of an edge; by default found by their usual names
    source       deprecated: with it, source and target mean edge_from and edge_to
    edge_type    the type of an edge; "": none, even if there is a column called type; amount=3,12:
                 a column of numbers, cut at 3 and 12
    node_type    the type of a node, each of which has feature columns of its own; "": none
    duplicates   what the weights of an edge that is given several times become: add, mean, max or
                 first; by default, those of one direction add up, and both directions must agree
    drop         columns of either table not to use
    numeric, categorical, date, text   columns of nodes that are this, whatever they look like
    unknown      a label that means unknown, beside an empty cell, NaN and null
    multilabel   whether a label such as `a;b` is two labels
    directed     whether edges are one-way
    seed         draws the split where there is none
    time         when a node came: a number, a date or a time of day; it divides the nodes, and is
                 no feature unless it is named as a number or a date, too
    time_edges   when an edge came, as `time` has it
    time_shares  of the labelled nodes, in the order of time: those that train and that validate
    time_cuts    in their place, the times at which validation and testing begin
    """

    id: str = "id"
    label: Names = "label"
    split: str = "split"
    target: Names = ()
    edge_from: str = ""
    edge_to: str = ""
    source: str = ""
    weight: str = ""
    edge_type: str = "type"
    node_type: str = "node_type"
    duplicates: str = ""
    drop: Names = ()
    numeric: Names = ()
    categorical: Names = ()
    date: Names = ()
    text: Names = ()
    unknown: str = ""
    multilabel: bool = False
    directed: bool = False
    seed: int = 0
    time: str = ""
    time_edges: str = ""
    time_shares: Sequence[float] | str = ()
    time_cuts: Names = ()

    def __post_init__(self) -> None:
        """Make texts and tuples of the names; refuse what is none, and a column named twice."""
        given = _renamed({name: getattr(self, name) for name in READING})
        labels, seed = _names("label", given["label"]), given["seed"]
        if not labels:
            raise InputError(f"label must name a column, got {given['label']!r}")
        check_number("seed", seed, 0, whole=True)
        plain = {
            **{name: _names(name, () if given[name] is None else given[name]) for name in HINTS},
            **{name: _name(name, given[name]) for name in ("id", "split")},
            **{name: _name(name, "" if given[name] is None else given[name]) for name in OPTIONAL},
            **{name: true_or_false(given[name], name) for name in ("multilabel", "directed")},
            "label": labels[0] if len(labels) == 1 else labels,
            "target": _names("target", () if given["target"] is None else given["target"]),
            "seed": int(seed),
            "time_shares": tuple(map(float, _pair("time_shares", given["time_shares"]))),
            "time_cuts": _pair("time_cuts", given["time_cuts"]),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if bool(self.edge_from) != bool(self.edge_to):
            raise InputError("edge_from and edge_to must be given together")
        if self.edge_from and self.edge_from == self.edge_to:
            raise InputError(f"edge_from and edge_to must differ, got {self.edge_from!r} for both")
        if self.target and (self.multilabel or self.label not in (Reading.label, *self.target)):
            raise InputError(
                "label and target both say what to predict; give label for classes, or target for "
                "numbers"
            )
        if not self.time and (more := [one for one in OF_TIME if getattr(self, one)]):
            raise InputError(f"{more[0]} needs time, the column that says when a node came")
        if self.time_shares and self.time_cuts:
            raise InputError("time_shares and time_cuts both divide the nodes; give one")
        if not is_one_of(self.duplicates, ("", *DUPLICATES)):
            raise InputError(
                f"duplicates must be {', '.join(DUPLICATES[:-1])} or {DUPLICATES[-1]}, "
                f"got {self.duplicates!r}"
            )
        said = Counter(name for hint in HINTS for name in getattr(self, hint))
        if twice := next((name for name, count in said.items() if count > 1), None):
            raise InputError(f"the column {twice!r} is named twice; say one thing about it")

    @classmethod
    def of(cls, **options: object) -> Reading:
        """From options; one that does not exist is refused."""
        for name in options:
            if name not in READING:
                raise InputError(f"no option {name!r}; {suggestion(name, [*READING])}")
        return cls(**options)  # type: ignore[arg-type]

    @property
    def given(self) -> dict[str, object]:
        """What differs from the defaults."""
        options = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        return {name: value for name, (value, default) in options.items() if value != default}

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the label columns."""
        return _names("label", self.label)

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares of nodes by time, if they are given."""
        return tuple(map(float, self.time_shares))

    @property
    def said(self) -> dict[str, str]:
        """What the user says of columns: what they are, or that they are not used ("drop")."""
        return {name: hint for hint in HINTS for name in getattr(self, hint)}


def _renamed(given: Document) -> Document:
    """The options, where `source` and `target` were given for the ends of edges."""
    if not given["source"]:
        return given
    if not isinstance(given["target"], str | Integral) or given["target"] == "":
        raise InputError("source and target must be given together; or edge_from and edge_to")
    notice("source and target of edges are called edge_from and edge_to now")
    ends = {"edge_from": given["source"], "edge_to": given["target"]}
    return given | ends | {"source": "", "target": ()}


HINTS = ("drop", "numeric", "categorical", "date", "text")
OF_EDGES = ("edge_from", "edge_to", "source", "weight", "edge_type", "node_type")
OPTIONAL = (*OF_EDGES, "unknown", "time", "time_edges")
OF_TIME = ("time_edges", "time_shares", "time_cuts")
READING = tuple(field.name for field in fields(Reading))


def _names(option: str, names: object) -> tuple[str, ...]:
    try:
        given = [names] if isinstance(names, str | bytes) else list(names)  # type: ignore[call-overload]
    except TypeError:
        given = [names]
    return tuple(_name(option, name) for name in given)


def _name(option: str, name: object) -> str:
    """A number is a name, too: data frames have columns called 0, 1, …."""
    if isinstance(name, bool) or not isinstance(name, str | Integral):
        what = "a label" if option == "unknown" else "the name of a column"
        raise InputError(f"{option} must be {what}, got {name!r}")
    return str(name)


def _pair(option: str, given: object) -> tuple[str, ...]:
    """Two values, in a list or in a text with a comma between them; or none."""
    values = given.split(",") if isinstance(given, str) and given else given
    try:
        every = () if values is None else values
        pair = tuple(str(value).strip() for value in every)  # type: ignore[attr-defined]
        if option == "time_shares":
            list(map(float, pair))
    except (TypeError, ValueError):
        pair = ("",)
    if len(pair) not in (0, 2):
        such = "0.6,0.2" if option == "time_shares" else "2019-01-01,2020-01-01"
        raise InputError(f"{option} must be two values such as {such}, got {given!r}")
    return pair
