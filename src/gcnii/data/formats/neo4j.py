"""A folder of CSV files as `neo4j-admin database import` takes them.

The header of a file says what it holds: `:ID` nodes, `:START_ID` and `:END_ID` relationships.  A
field is `name:type`; `:ID(Person)` keeps the ids of a group apart, `:LABEL` is the nodes' label,
`:TYPE` the relationships', and `:IGNORE` is not read.  All files of nodes are one table.

The label of a node is its property `label` if there is one, else `:LABEL`; the weight of a
relationship is its property `weight`.  Options give other names (`gcnii.data.tables.reading`).
Relationships are taken as undirected unless `directed` is given.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gcnii.data.tables.assemble import Nodes, assemble
from gcnii.data.tables.frame import FrameRows
from gcnii.data.tables.reading import Names, Reading, refuse_empty_cells
from gcnii.errors import DataError, InputError, Problems, notice
from gcnii.graph import Graph
from gcnii.graph.columns import Columns

if TYPE_CHECKING:
    import pandas as pd

FORM = "a folder of CSV files with :ID and :START_ID columns (Neo4j)"
FIELD = re.compile(r"(?P<name>[^:]*)(:(?P<kind>\w+(\[\])?)(\((?P<group>[^)]*)\))?)?\s*(\{.*\})?")
LABEL, IGNORED, NODE, SOURCE, TARGET = ":LABEL", ":IGNORE", ":ID", ":START_ID", ":END_ID"
IDS = (NODE, SOURCE, TARGET)
NUMBERS = {"int", "integer", "long", "short", "byte", "float", "double"}
DATES = {"date", "datetime", "localdatetime"}
TEXTS = {"string", "char"}
PLAIN = {*NUMBERS, *DATES, *TEXTS, "boolean"}
FIRST_LINE = 1 << 20  # bytes


class Field(NamedTuple):
    """A field of a header: "age:int", ":ID(Person)"."""

    name: str
    kind: str  # lower case; "string" if the header does not say
    group: str  # of ids

    @property
    def column(self) -> str:
        """What its column is called: a property by its name, the others as in LABEL and NODE."""
        own = f":{self.kind.upper()}"
        return own if own in (LABEL, *IDS, ":TYPE", IGNORED) else self.name


class CsvFile(NamedTuple):
    """A CSV file and its header."""

    path: Path
    header: tuple[Field, ...]

    @property
    def columns(self) -> list[str]:
        return [field.column for field in self.header]


def reads(path: Path) -> bool:
    """Whether the path is a folder in which the header of a CSV file has an `:ID`.

    Only headers in which these letters occur are taken apart.
    """
    files = _csv_files(path) if path.is_dir() else []
    return any(NODE in _first_line(one).upper() and NODE in _file(one).columns for one in files)


def read(path: Path, *, columns: Columns | None = None, **options: object) -> Graph:
    """The graph in a folder of CSV files for Neo4j.

    columns  what the properties are, if that was learnt on another graph
    options  those of `Reading`
    """
    for name in ("id", "edge_from", "edge_to", "source"):
        if name in options:
            raise InputError(f"{name} is written in the headers of {path}; leave it out")
    reading, files = Reading.of(**options), [_file(one) for one in _csv_files(path)]
    nodes = [file for file in files if NODE in file.columns]
    links = [file for file in files if {SOURCE, TARGET} <= set(file.columns)]
    if not links:
        raise DataError(f"{path} has no CSV file with the columns {SOURCE} and {TARGET}")
    groups = {field.group for file in nodes for field in file.header if field.column == NODE}
    table = _table(nodes, grouped=len(groups) > 1)
    reading = replace(reading, label=_label(table, reading))
    reading = _typed(table, _kinds(nodes), reading)
    edges = _table(links, grouped=len(groups) > 1)
    if len(set(edges.get(":TYPE", ()))) == 1:
        del edges[":TYPE"]
    elif ":TYPE" in edges and reading.edge_type == Reading.edge_type:
        reading = replace(reading, edge_type=":TYPE")
    reading = replace(reading, id=NODE, edge_from=SOURCE, edge_to=TARGET)
    if not len(table):
        raise DataError(f"the nodes of {path} have no rows; a graph needs at least one")
    rows = Nodes(FrameRows(table, "nodes"), reading, Problems(), known=columns)
    return assemble(rows, FrameRows(edges, "edges"), path.resolve().name)


def _csv_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.csv") if path.is_file())


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.readline(FIRST_LINE).decode("utf-8-sig", "replace")
    except OSError:
        return ""


def _file(path: Path) -> CsvFile:
    """The file with the fields of its first line; none if it cannot be read."""
    try:
        cells = next(csv.reader([_first_line(path)]), [])
    except csv.Error:
        cells = []
    return CsvFile(path, tuple(map(_field, cells)))


def _field(cell: str) -> Field:
    found = FIELD.fullmatch(cell.strip())
    if found is None:
        return Field(cell, "string", "")
    kind = (found["kind"] or "string").lower()
    return Field(found["name"].strip(), kind, found["group"] or "")


def _table(files: Sequence[CsvFile], *, grouped: bool) -> pd.DataFrame:
    """The rows of all files as one table of texts; ids have their groups."""
    import pandas as pd

    frames = []
    for file in files:
        used = Counter(name for name in file.columns if name != IGNORED)
        if twice := next((name for name, count in used.items() if count > 1), None):
            raise DataError(f"{file.path.name} has several columns called {twice!r}; keep one")
        frame = pd.DataFrame(list(_rows(file)), columns=file.columns, dtype=object)
        frame = frame.drop(columns=IGNORED, errors="ignore")
        for field in file.header:
            if grouped and field.column in IDS:
                ids = [cell and f"{field.group}/{cell}" for cell in frame[field.column]]
                frame[field.column] = ids
        frames.append(frame)
    names = {name for frame in frames for name in frame.columns}
    given = sum(frame.size for frame in frames)
    refuse_empty_cells("the rows", sum(map(len, frames)), len(names), given)
    return pd.concat(frames, ignore_index=True)


def _rows(file: CsvFile) -> Iterator[list[str]]:
    with file.path.open("rb") as start:
        if len(start.readline(FIRST_LINE)) == FIRST_LINE:
            size = f"{FIRST_LINE:,} bytes or more"
            raise DataError(f"the header of {file.path.name} has {size}; keep fewer columns")
    number = 1
    try:
        with file.path.open(encoding="utf-8-sig", newline="") as stream:
            for number, row in enumerate(csv.reader(stream, strict=True), 1):
                if any("\0" in cell for cell in row):
                    raise DataError(f"row {number} of {file.path.name} has a NUL byte; remove it")
                if number > 1 and row:
                    if len(row) != len(file.header):
                        cells = f"{len(row)} cells, but the header has {len(file.header)}"
                        raise DataError(f"row {number} of {file.path.name} has {cells}")
                    yield row
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(
            f"{file.path.name} is not CSV in UTF-8 after row {number} ({error}); export it again"
        ) from None


def _kinds(files: Sequence[CsvFile]) -> dict[str, str]:
    """The type of each property; one that has two types is refused."""
    kinds: dict[str, str] = {}
    for file in files:
        for field in file.header:
            if not field.column.startswith(":"):
                before = kinds.setdefault(field.name, field.kind)
                if before != field.kind:
                    raise DataError(
                        f"the property {field.name!r} is of type {field.kind} in "
                        f"{file.path.name} and of type {before} elsewhere; give it one type"
                    )
    return kinds


def _label(table: pd.DataFrame, reading: Reading) -> Names:
    given = reading.target or reading.labels != (Reading.label,)
    if given or Reading.label in table or LABEL not in table:
        return reading.label
    known = dict.fromkeys(cell for cell in table[LABEL].dropna() if cell)
    several = next((cell for cell in known if ";" in cell), None)
    if several and not reading.multilabel:
        raise DataError(
            f"a node has the labels {several}; say multilabel=True (--multilabel), or name the "
            "property to learn: label=… (--label …)"
        )
    if len(known) == 1:
        notice(f"all nodes have the label {', '.join(known)}; name the property to learn: label=…")
    return LABEL


def _typed(table: pd.DataFrame, kinds: Mapping[str, str], reading: Reading) -> Reading:
    """The reading with the types of the headers; what is no feature is taken out of the table."""
    roles = {one.lower() for one in (*reading.labels, *reading.target, reading.split, reading.time)}
    rest = {
        name: kind
        for name, kind in kinds.items()
        if name not in reading.said and name.lower() not in roles
    }
    if unused := [f"{name}:{kind}" for name, kind in rest.items() if kind not in PLAIN]:
        notice(f"nodes: left out of the features: {', '.join(unused)}")
    for name, kind in rest.items():
        if kind not in PLAIN:
            del table[name]

    numeric, date, categorical = (
        tuple(name for name, kind in rest.items() if kind in types)
        for types in (NUMBERS, DATES, TEXTS)
    )
    return replace(
        reading,
        numeric=(*reading.numeric, *numeric),
        date=(*reading.date, *date),
        categorical=(*reading.categorical, *categorical),
    )
