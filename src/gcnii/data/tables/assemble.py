"""From a table of nodes and a table of edges to a Graph, with all that is wrong said at once.

`Ids` finds nodes by their names, `Nodes` reads names, labels, splits and features, `Edges` the
edges; `assemble` makes the graph of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.labels import (
    Labels,
    class_labels,
    cuts_of,
    given_split,
    label_columns,
    several_labels,
    target_columns,
    times_of,
)
from gcnii.data.splits import SHARES, about_times, as_learnt_before, stratified_split, time_split
from gcnii.data.tables.reading import Ends, Reading, Rows
from gcnii.errors import DataError, GraphError, Problems, did_you_mean, notice
from gcnii.graph import Graph, Split
from gcnii.graph.arrays import freeze, known_rows, merged
from gcnii.graph.columns import Columns, Learner, Table, Texts, flag
from gcnii.graph.times import Times, earliest, only_times
from gcnii.graph.types import (
    apart,
    cut_column,
    quarters,
    together,
    types_by_cuts,
    types_by_name,
)
from gcnii.graph.weights import merged_weighted

if TYPE_CHECKING:
    import pandas as pd


FAR = 0.05  # between a share of nodes that was asked for and one that times allow, to be said
SHORT = 8  # characters: such a text is looked up as an integer of 8 bytes, several times as fast


class Ids:
    """The ids of n nodes as text, None where one is missing: which row does an id name?

    An id that several rows have names the first of them.
    """

    def __init__(self, texts: Texts):
        self.texts = texts
        given = np.flatnonzero([text is not None for text in texts])
        self._are_short = _are_short(texts[given])
        index = self._keys(texts[given])
        repeats = index.duplicated()
        self._index = index[~repeats]
        self._repeats = given[repeats]
        self._rows = np.append(given[~repeats], -1)  # [-1], which is not found, is -1

    def __len__(self) -> int:
        return len(self.texts)

    def missing(self) -> list[int]:
        """The rows without an id."""
        return [i for i, text in enumerate(self.texts) if text is None]

    def repeated(self) -> list[tuple[int, int]]:
        """Each row whose id an earlier row has, and the first row that has it."""
        first = self.rows_of(self.texts[self._repeats])
        return list(zip(self._repeats.tolist(), first.tolist(), strict=True))

    def rows_of(self, names: Ends) -> NDArray[np.int64]:
        """The row that each name stands for; -1 where it stands for none."""
        if names.dtype != object:
            return self._rows_of_numbers(np.asarray(names, np.int64))
        return self._rows_of_texts(np.asarray(names, object))

    def _rows_of_numbers(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._numbers is None:
            return self._rows_of_texts(np.array(list(map(str, numbers.tolist())), object))
        found: NDArray[np.int64] = self._rows[self._numbers.get_indexer(numbers)]
        return found

    @cached_property
    def _numbers(self) -> pd.Index | None:
        """The ids as numbers, if all are whole numbers and written as Python writes them."""
        import pandas as pd

        texts = self.texts[self._rows[:-1]].tolist()
        try:
            numbers = np.array(list(map(int, texts)), np.int64)
        except (ValueError, OverflowError):
            return None
        return pd.Index(numbers) if list(map(str, numbers.tolist())) == texts else None

    def _rows_of_texts(self, texts: Texts) -> NDArray[np.int64]:
        if self._are_short and not _are_short(texts):
            short = np.array([_are_short(texts[i : i + 1]) for i in range(len(texts))], bool)
            rows = np.full(len(texts), -1, np.int64)  # where it is not short, it is no id
            rows[short] = self._rows_of_texts(texts[short])
            return rows
        found: NDArray[np.int64] = self._rows[self._index.get_indexer(self._keys(texts))]
        return found

    def _keys(self, texts: Texts) -> pd.Index:
        """What the ids are looked up by."""
        import pandas as pd

        keys = texts.astype(f"S{SHORT}").view(np.uint64) if self._are_short else texts
        return pd.Index(keys, dtype=keys.dtype)


class FurtherIds(Ids):
    """Ids of nodes that come after others, whose ids are looked up as they were before."""

    def __init__(self, before: Ids, texts: Texts):
        self._before, self._after = before, Ids(texts)
        self.texts = np.concatenate([before.texts, texts])

    def rows_of(self, names: Ends) -> NDArray[np.int64]:
        """The row that each name stands for; -1 where it stands for none."""
        first, more = self._before.rows_of(names), self._after.rows_of(names)
        return np.where((first < 0) & (more >= 0), len(self._before) + more, first)


def _are_short(texts: Texts) -> bool:
    """Whether all are short ASCII texts, so that padding them with NUL bytes keeps them apart."""
    cells = texts.tolist()
    if None in cells:
        return False
    together = "".join(cells)
    return max(map(len, cells), default=0) <= SHORT and together.isascii() and "\0" not in together


SHOWN = 5  # names of columns in a notice


@dataclass(frozen=True)
class Nodes:
    """A table of nodes, how to read it, and what is wrong so far.

    matrix  wide features beside the columns, one row per node; `names` are those of its columns
    known   what the columns are, if that was learnt on another table
    """

    rows: Rows
    reading: Reading
    problems: Problems
    matrix: sp.csr_array | None = None
    names: tuple[str, ...] = ()
    known: Columns | None = None

    def _column(self, wanted: str) -> str | None:
        """The nodes' column of this name, in any case; None if there is none."""
        found = [name for name in self.rows.header if name.lower() == wanted.lower()]
        return found[0] if found else None

    @property
    def features_named(self) -> list[str]:
        """The columns that are neither names, labels, numbers to predict nor splits."""
        reading, roles = self.reading, {self._column(name) for name in self._roles}
        if reading.said.get(reading.time) not in ("numeric", "date"):
            roles.add(self._column(reading.time))
        return [name for name in self.rows.header if name not in roles]

    @property
    def _roles(self) -> tuple[str, ...]:
        """What the columns that are no features are called."""
        reading = self.reading
        return (reading.id, reading.split, *dict.fromkeys((*reading.labels, *reading.target)))

    def note_wrong_names(self, edges: Sequence[str] = ()) -> None:
        """A column that the user named must exist, once; one to drop may be one of the edges."""
        lower = [name.lower() for name in self.rows.header]
        for name in self._roles:
            if (count := lower.count(name.lower())) > 1:
                self.problems.add(f"{self.rows.name} has {count} columns called {name!r}; keep one")
        said, features = self.reading.said, self.features_named
        for name in sorted({*said} - {*features} - ({*self.reading.drop} & {*edges})):
            self.problems.add(
                f"{self.rows.name} has no feature column {name!r}; "
                f"{did_you_mean(name, features)}its feature columns are {', '.join(features)}"
            )
        self.problems.refuse()

    def ids(self) -> Texts | None:
        """The names of the nodes; None, and a problem, if no column holds them."""
        column = self._column(self.reading.id)
        if column is None:
            self.problems.add(
                f"{self.rows.lacks(self.reading.id)}; say which holds the nodes' names: --id "
                "COLUMN (in Python: id=…)"
            )
            return None
        texts = self.rows.texts(column)
        self.problems.add_each(
            [i for i, text in enumerate(texts) if text is None],
            lambda i: f"{self.rows.place(i)} has no id; give every node one",
        )
        repeated = dict(Ids(texts).repeated())
        self.problems.add_each(
            repeated,
            lambda i: (
                f"{self.rows.place(i)} repeats the id {texts[i]!r} of "
                f"{self.rows.place(repeated[i])}; ids must differ"
            ),
        )
        return texts

    def labels(self) -> Labels:
        """The labels, from one column or from several; or the numbers to predict."""
        if self.reading.target:
            return self._targets(self.reading.target)
        names = [self._column(label) or "" for label in self.reading.labels]
        if "" in names:
            return self._absent_label(self.reading.labels[names.index("")])
        if len(names) > 1:
            return label_columns(self.rows, names, self.problems)
        texts = self.rows.texts(names[0])
        if self.reading.multilabel:
            return several_labels(texts, self.reading.unknown)
        return class_labels(texts, self.reading.unknown, self.problems, names[0])

    def _absent_label(self, name: str) -> Labels:
        if name != Reading.label:
            self._note_absent(name, "labels")
        return Labels(np.full(len(self.rows), -1), None)

    def _note_absent(self, name: str, what: str) -> None:
        if self.known is None:  # to predict, none is needed
            self.problems.add(self.rows.lacks(name, what))

    def _targets(self, wanted: Sequence[str]) -> Labels:
        """The numbers of these columns."""
        names = [self._column(name) for name in wanted]
        if None in names:
            self._note_absent(wanted[names.index(None)], "numbers")
            return Labels(np.full((len(self.rows), len(wanted)), np.nan), None, tuple(wanted))
        unused = [name for one in self.reading.labels if (name := self._column(one)) not in names]
        if unused != [None] * len(unused):
            notice(f"{self.rows.name}: the column {unused[0]} is not used; target is predicted")
        own = [name for name in names if name]
        return target_columns(self.rows, own, self.reading.unknown, self.problems)

    def features(self) -> tuple[Table, Columns]:
        """The feature columns, and what they are: as is known already, or learnt from them."""
        said = self.reading.said
        names = [name for name in self.features_named if said.get(name) != "drop"]
        if self.known is not None:
            cells = self.rows.cells(names, self.known.as_text)
            return Table(len(self.rows), cells, self.matrix, self.names), self.known
        if not names and self.matrix is None:
            self.problems.add(
                f"{self.rows.name} has no feature columns beside {', '.join(self.rows.header)}; "
                "a node needs at least one"
            )
            self.problems.refuse()
        as_text = {name for name in names if said.get(name) in ("categorical", "date", "text")}
        cells = self.rows.cells(names, as_text)
        table = Table(len(self.rows), cells, self.matrix, self.names)
        learner = Learner(self.rows.name, self.rows.place, self.problems, said)
        if kind := self._types(names):
            columns = learner.columns_of_types(table, kind)
        else:
            table, columns = learner.columns(table)
        self.problems.columns = columns
        if not columns.used:
            found = ", ".join(f"{one.name!r} is left out ({one.reason})" for one in columns)
            self.problems.add(
                f"{self.rows.name} has no column that can be a feature, and a node needs at least "
                f"one: {found}"
            )
        return table, columns

    def _types(self, features: Sequence[str]) -> str:
        """The column of the types of nodes; "" where there are no two."""
        wanted = self.reading.node_type
        column = self._column(wanted) if wanted else None
        if column is None and wanted not in ("", Reading.node_type):
            self._note_absent(wanted, "the types of nodes")
        if column is None or column not in features:
            return ""
        texts = self.rows.texts(column)
        if len({text for text in texts if text is not None}) < 2:
            return ""
        self.problems.add_each(
            [i for i, text in enumerate(texts) if text is None],
            lambda i: f"{self.rows.place(i)} has no {column}; give every node a type",
        )
        return column

    def say_what_is_ignored(self, columns: Columns) -> None:
        """A notice of the columns that were not asked to be left out, but are."""
        dropped = set(self.reading.drop)
        ignored = [
            f"{column.called!r} ({column.reason})"
            for column in columns
            if column.kind == "ignored" and column.name not in dropped
        ]
        if ignored and self.known is None:
            more = f" and {len(ignored) - SHOWN} more" if len(ignored) > SHOWN else ""
            shown = ", ".join(ignored[:SHOWN])
            notice(f"{self.rows.name}: left out of the features: {shown}{more}")

    def times(self) -> tuple[Times | None, bool]:
        """When the nodes came, and whether by dates; None where that is not asked."""
        column = self._column(self.reading.time) or self.reading.time
        absent = self.known is not None and column not in self.rows.header  # to predict, needless
        if not column or absent:
            return None, False
        return times_of(self.rows, column, self.problems)

    def splits(self, labels: Labels, times: Times | None, *, dated: bool) -> tuple[Split, ...]:
        """The split of a column, or by time, or drawn class by class; none without any label."""
        reading, labelled = self.reading, known_rows(labels.y)
        if column := self._column(reading.split):
            given = [name for name in ("time_shares", "time_cuts") if getattr(reading, name)]
            if given and self.known is None:
                self.problems.add(
                    f"{given[0]} divides the nodes, and so does the column {column!r} of "
                    f"{self.rows.name}; leave one of them out"
                )
            problems = self.problems if self.known is None else Problems()
            try:
                split = given_split(self.rows, column, labelled, problems)
            except DataError:
                if problems is self.problems:
                    raise
                return ()  # to predict, none is needed
            if times is not None:
                return self._drawn(lambda: split.validating_last(times))
            return self._drawn(lambda: split.validating(labels.y))
        if reading.split not in ("", Reading.split):
            self._note_absent(reading.split, "the split")
        if not labelled.any():
            return ()
        if times is not None:
            cuts = cuts_of(reading.time_cuts, dated=dated) if reading.time_cuts else None
            return self._drawn(lambda: time_split(times, labelled, reading.shares, cuts))
        return self._drawn(lambda: stratified_split(labels.y, reading.seed))

    def _drawn(self, draw: Callable[[], Split]) -> tuple[Split, ...]:
        """The split; if there are too few labels for it, none, and a problem."""
        try:
            return (draw(),)
        except GraphError as error:
            if self.known is None:  # to predict, none is needed
                self.problems.add(str(error))
            return ()


ENDS = (("source", "target"), ("from", "to"), ("src", "dst"), ("u", "v"))
WEIGHT, TYPE = "weight", "type"
MOST_HINTED = 1_000_000  # edges, whose columns are read again for a hint


class EdgeList(NamedTuple):
    """Edges as the fields of a graph that they are: the other four where there are any."""

    edges: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    edge_times: Times | None = None
    edge_types: NDArray[np.int64] | None = None
    edge_type_names: tuple[str, ...] | None = None


NONE = EdgeList(np.zeros((2, 0), np.int64), None)  # where something is wrong with them


class EdgeColumns(NamedTuple):
    """The names of the columns that hold the ends of an edge and, if any, its weight and type.

    cuts  where the numbers of the column of types are cut; none of a column of types
    """

    source: str
    target: str
    weight: str | None
    type: str | None
    cuts: tuple[float, ...] = ()


@dataclass(frozen=True)
class Edges:
    """A table of edges, how to read it, and what is wrong so far.

    dated     whether the times of the nodes are dates; None: there are none, and none of edges
    optional  whether weights and types could be left out
    """

    rows: Rows
    reading: Reading
    problems: Problems
    dated: bool | None = None
    optional: bool = True

    def read(self, ids: Ids) -> EdgeList:
        """The edges as they are listed; none, and problems, if anything is wrong with them."""
        rows = self.rows
        try:
            columns = self._columns()
        except (DataError, GraphError) as error:
            self.problems.add(str(error))
            return NONE
        used = {*columns, *self.reading.drop, self.reading.time_edges}
        unused = [name for name in rows.header if name not in used]
        if unused:
            which = "column" if len(unused) == 1 else "columns"
            verb = "is" if len(unused) == 1 else "are"
            hint = "" if columns.type else self._cuts_hint(unused)
            notice(f"{rows.name}: the {which} {', '.join(unused)} {verb} not used{hint}")
        before = len(self.problems.found)
        edges = self._ends(columns, ids)
        weights = self._weights(columns.weight) if columns.weight else None
        types, names = self._types(columns.type, columns.cuts) if columns.type else (None, None)
        links = EdgeList(edges, weights, self._times(), types, names)
        return links if len(self.problems.found) == before else NONE

    def _columns(self) -> EdgeColumns:
        """Which columns hold what; DataError if that cannot be told."""
        rows, reading = self.rows, self.reading
        header = [name for name in rows.header if name not in reading.drop]
        named = {name.lower(): name for name in header}
        weight = self._named(reading.weight) if reading.weight else named.get(WEIGHT)
        kind, cuts = named.get(reading.edge_type.lower()), tuple[float, ...]()
        if kind is None and reading.edge_type not in ("", Reading.edge_type):
            column = reading.edge_type
            if "=" in column:
                column, cuts = cut_column(column)
            kind = self._named(column)
        if reading.edge_from and reading.edge_to:
            ends = self._named(reading.edge_from), self._named(reading.edge_to)
            return EdgeColumns(*ends, weight, kind, cuts)
        for source, target in ENDS:
            if source in named and target in named:
                return EdgeColumns(named[source], named[target], weight, kind, cuts)
        rest = [name for name in header if name not in (weight, kind)]
        if len(rest) != 2:
            raise DataError(
                f"the two ends of an edge must be the columns source and target of {rows.name}, "
                f"whose columns are {', '.join(rows.header)}; rename them, or say which they are: "
                "edge_from=…, edge_to=… (--edge-from, --edge-to)"
            )
        return EdgeColumns(rest[0], rest[1], weight, kind, cuts)

    def _named(self, name: str) -> str:
        if name not in self.rows.header:
            raise DataError(self.rows.lacks(name))
        return name

    def _ends(self, columns: EdgeColumns, ids: Ids) -> NDArray[np.int64]:
        """(2, m) the rows of the nodes."""
        rows, ends = self.rows, [columns.source, columns.target]
        usual = (columns.source.lower(), columns.target.lower()) in ENDS  # also of nodes' names
        if not usual and (ids.rows_of(np.array(ends, object)) >= 0).all():
            self.problems.add(
                f"row 1 of {rows.name} holds node ids; begin the file with the header source,target"
            )
        edges, start = np.empty((2, len(rows)), np.int64), 0
        for block in rows.blocks(ends):
            stop = start + len(block[0])
            for row, texts in enumerate(block):
                edges[row, start:stop] = ids.rows_of(texts)
            start = stop
        for row, column in enumerate(ends):
            self._note_unknown(column, np.flatnonzero(edges[row] < 0))
        return edges

    def _note_unknown(self, column: str, unknown: NDArray[np.int64]) -> None:
        if not len(unknown):
            return
        place, names = self.rows.place, self.rows.texts(column)
        self.problems.add_each(
            unknown,
            lambda i: (
                f"{place(i)} names the node {names[i]!r}, which the nodes do not have"
                if names[i] is not None
                else f"{place(i)} has no {column}; name the nodes at both ends of every edge"
            ),
        )

    def _times(self) -> Times | None:
        """When they came, if that is asked; by dates if the times of the nodes are such."""
        if not self.reading.time_edges or self.dated is None:
            return None
        found, days = times_of(self.rows, self.reading.time_edges, self.problems)
        if days != self.dated:
            kinds = ("dates", "numbers") if days else ("numbers", "dates")
            self.problems.add(
                f"the times of edges, in the column {self.reading.time_edges!r}, are {kinds[0]}, "
                f"and those of nodes {kinds[1]}; write both alike"
            )
        return found

    def _weights(self, column: str) -> NDArray[np.float64]:
        weights = self.rows.numbers(column)
        or_else = f"; {flag('drop', column)} leaves all weights out" if self.optional else ""
        wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(wrong):
            cells = self.rows.texts(column)
            self.problems.add_each(
                wrong,
                lambda i: (
                    f"{self.rows.place(i)}: the weight is {_shown(cells[i])}; it must be a number "
                    f"of 0 or more{or_else}"
                ),
            )
        return weights

    def _cuts_hint(self, unused: Sequence[str]) -> str:
        """How the first column of numbers that is not used becomes types."""
        for name in unused if len(self.rows) <= MOST_HINTED else ():
            if cuts := quarters(self.rows.numbers(name)):
                return f"; --edge-type {name}={cuts} makes types of the quarters of {name}"
        return ""

    def _types(
        self, column: str, cuts: Sequence[float]
    ) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
        """The type of each edge, and the names of the types, by alphabet or by the cuts."""
        rows, texts = self.rows, self.rows.texts(column)
        numbers = rows.numbers(column) if cuts else np.zeros(0)
        absent = np.array([one is None for one in texts.tolist()], bool)
        lacking = np.isnan(numbers) if cuts else absent
        or_else = ", or leave the column out: --edge-type '' (in Python: edge_type='')"
        self.problems.add_each(
            np.flatnonzero(lacking),
            lambda i: (
                f"{rows.place(i)}: {column} is {_shown(texts[i])}; it must be a number, since "
                "--edge-type cuts it"
                if cuts
                else f"{rows.place(i)} has no {column}; give every edge a type"
                f"{or_else * self.optional}"
            ),
        )
        if cuts and lacking.any():
            return None, ()
        try:
            if cuts:
                types, names = types_by_cuts(numbers, column, cuts)
            else:
                types, names = types_by_name(texts[~lacking])
        except GraphError as error:
            quarter = quarters(rows.numbers(column))
            hint = f"; or cut its numbers: --edge-type {column}={quarter}" if quarter else ""
            self.problems.add(f"the column {column} of {rows.name}: {error}{hint}")
            return None, ()
        if self.optional:
            say_types(rows.name, column, names, np.bincount(types).tolist())
        return types, names


def each_once(links: EdgeList, reading: Reading, nodes: Sequence[str] | None) -> EdgeList:
    """The edges without duplicates, as a graph keeps them; `nodes` are the names, for errors.

    Edges without weights count once, however often they are given, unless they are to be added up.
    """
    edges, weights, times, types, names = links
    if types is not None:  # each type by itself
        n = int(edges.max(initial=0)) + 1
        alike = each_once(EdgeList(apart(edges, types, n), weights, times), reading, nodes)
        edges, types = together(alike.edges, n)
        return alike._replace(edges=edges, edge_types=types, edge_type_names=names)
    directed, how = reading.directed, reading.duplicates
    if weights is None and how != "add":
        once = merged(edges, directed=directed)
        if times is not None:
            times = earliest(once, edges, times, directed=directed)
        return EdgeList(once, None, times)
    each = np.ones(edges.shape[1]) if weights is None else weights
    try:
        once, each = merged_weighted(edges, each, directed=directed, nodes=nodes, duplicates=how)
        if times is not None:
            times = only_times(once, edges, times, directed=directed)
    except GraphError as error:
        raise DataError(str(error)) from None
    return EdgeList(once, None if weights is None and (each == 1).all() else each, times)


def say_types(owner: str, column: str, names: Sequence[str], counts: Sequence[int]) -> None:
    """A notice of the types that edges have, if there are several."""
    if len(names) < 2:
        return
    colon = ":" if any(name[-1:].isdigit() for name in names) else ""
    shown = ", ".join(f"{a}{colon} {b:,}" for a, b in zip(names[:SHOWN], counts, strict=False))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    notice(
        f"{owner}: {column} makes {len(names)} types of edges: {shown}{more} "
        "(--edge-type '' leaves it out)"
    )


def _shown(cell: str | None) -> str:
    return "empty" if cell is None else repr(cell)


def assemble(nodes: Nodes, edges: Rows | EdgeList, name: str) -> Graph:
    """The graph of two tables, or of one and edges; DataError with all problems if there is any."""
    reading, problems = nodes.reading, nodes.problems
    nodes.note_wrong_names(edges.header if isinstance(edges, Rows) else ())
    texts, labels, (times, dated) = nodes.ids(), nodes.labels(), nodes.times()
    # Before the features are read: both together would be the most memory that is needed.
    links = NONE
    if texts is not None:
        if isinstance(edges, Rows):
            when = None if times is None else dated
            edges = Edges(edges, reading, problems, when).read(Ids(texts))
        try:
            links = each_once(edges, reading, texts.tolist())
        except DataError as error:
            problems.add(str(error))
    table, columns = nodes.features()
    splits = nodes.splits(labels, times, dated=dated)
    problems.refuse()
    nodes.say_what_is_ignored(columns)
    X, features = columns.encode(table, nodes.rows.name)
    graph = Graph(
        X=freeze(X),
        features=features,
        times=times,
        dated=dated,
        **links._asdict(),
        **labels._asdict(),
        splits=splits,
        directed=reading.directed,
        name=name,
        nodes=tuple(() if texts is None else texts),
    )
    graph = graph._with_table(columns.sharing(table, graph.X), columns)
    if times is None or nodes.known is not None or not graph.splits:
        return graph
    roles = nodes._column(reading.split)
    by_shares = not roles and not reading.time_cuts
    wanted = reading.shares or SHARES if by_shares else ()
    say_what_times_change(graph, roles or reading.time, wanted)
    return as_learnt_before(graph)


def say_what_times_change(graph: Graph, column: str, wanted: Sequence[float]) -> None:
    """A notice where nodes have no time, or where ties move the shares far from those wanted."""
    assert graph.times is not None
    (split,) = graph.splits
    counts = np.array([split.train.sum(), split.val.sum(), split.test.sum()])
    far = np.abs(counts[: len(wanted)] / counts.sum() - wanted)
    tied = (far > FAR).any()
    if tied or np.isnan(graph.times).any():
        ties = "; nodes of one time have one role, which moves the shares" if tied else ""
        notice(f"{graph.name} is divided by {column!r}: {about_times(graph)}{ties}")
