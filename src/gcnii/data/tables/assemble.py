"""From a table of nodes and a table of edges to a Graph, with all that is wrong said at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.columns import Columns, Table
from gcnii.columns.learn import Learner
from gcnii.columns.table import Texts
from gcnii.data.arrays import merged
from gcnii.data.splits import stratified_split
from gcnii.data.tables.ids import Ids
from gcnii.data.tables.labels import (
    Labels,
    class_labels,
    given_split,
    label_columns,
    several_labels,
)
from gcnii.data.tables.links import Links, read_links
from gcnii.data.tables.reading import Reading
from gcnii.data.tables.rows import Rows
from gcnii.errors import GraphError, Problems, did_you_mean, notice
from gcnii.graph import Graph, Split


@dataclass(frozen=True)
class Assembly:
    """A graph in the making: two tables, how to read them, and what is wrong so far."""

    nodes: Rows
    edges: Rows
    reading: Reading
    problems: Problems
    matrix: sp.csr_array | None = None  # wide features beside the columns, one row per node
    names: tuple[str, ...] = ()  # of the matrix's columns

    def graph(self, name: str) -> Graph:
        """The graph; DataError with all problems if there is any."""
        self._note_doubles()
        ids, texts = self._ids()
        labels = self._labels()
        table, columns = self._features()
        links = read_links(self.edges, ids, self.reading, self.problems)
        splits = self._splits(labels)
        self.problems.refuse()
        self._say_what_is_ignored(columns)
        X, features = columns.encode(table, self.nodes.name)
        edges, weights = self._merged(links)
        graph = Graph(
            X=X,
            features=features,
            edges=edges,
            weights=weights,
            y=labels.y,
            splits=splits,
            directed=self.reading.directed,
            name=name,
            nodes=tuple(texts),
            classes=labels.classes,
        )
        return graph._with_table(table, columns)

    def _column(self, wanted: str) -> str | None:
        """The nodes' column of this name, in any case; None if there is none."""
        found = [name for name in self.nodes.header if name.lower() == wanted.lower()]
        return found[0] if found else None

    def _note_doubles(self) -> None:
        """Which of `id` and `ID` is meant cannot be told."""
        lower = [name.lower() for name in self.nodes.header]
        for name in (self.reading.id, self.reading.split, *self.reading.labels):
            if (count := lower.count(name.lower())) > 1:
                self.problems.add(
                    f"{self.nodes.name} has {count} columns called {name!r}; keep one"
                )
        self.problems.refuse()

    def _ids(self) -> tuple[Ids, Texts]:
        column = self._column(self.reading.id)
        if column is None:
            self.problems.add(
                f"{self.nodes.name} has no column {self.reading.id!r}; its columns are "
                f"{', '.join(self.nodes.header)}; say which holds the nodes' names with --id"
            )
            self.problems.refuse()
        assert column is not None
        texts = self.nodes.texts(column)
        self.problems.add_each(
            [i for i, text in enumerate(texts) if text is None],
            lambda i: f"{self.nodes.place(i)} has no id; give every node one",
        )
        ids = Ids(texts)
        repeated = dict(ids.repeated())
        self.problems.add_each(
            repeated,
            lambda i: (
                f"{self.nodes.place(i)} repeats the id {texts[i]!r} of "
                f"{self.nodes.place(repeated[i])}; ids must differ"
            ),
        )
        return ids, texts

    def _labels(self) -> Labels:
        names = [self._column(label) or "" for label in self.reading.labels]
        if "" in names:
            return self._absent_label(self.reading.labels[names.index("")])
        if len(names) > 1:
            return label_columns(self.nodes, names, self.problems)
        texts = self.nodes.texts(names[0])
        if self.reading.multilabel:
            return several_labels(texts, self.reading.unknown)
        return class_labels(texts, self.reading.unknown, self.problems)

    def _absent_label(self, name: str) -> Labels:
        if name != Reading.label:  # the user named it
            self.problems.add(
                f"{self.nodes.name} has no column {name!r} to take labels from; its columns are "
                f"{', '.join(self.nodes.header)}"
            )
        return Labels(np.full(len(self.nodes), -1), None)

    def _features(self) -> tuple[Table, Columns]:
        reading, hints = self.reading, self.reading.hints
        roles = {self._column(name) for name in (reading.id, reading.split, *reading.labels)}
        names = [name for name in self.nodes.header if name not in roles]
        self._note_unknown_names(names)
        names = [name for name in names if name not in hints.drop]
        if not names and self.matrix is None:
            self.problems.add(
                f"{self.nodes.name} has no feature columns beside {', '.join(self.nodes.header)}; "
                "a node needs at least one"
            )
            self.problems.refuse()
        cells = self.nodes.cells(names, hints.as_text)
        learner = Learner(self.nodes.name, self.nodes.place, self.problems)
        table, columns = learner.columns(
            Table(len(self.nodes), cells, self.matrix, self.names), hints
        )
        self.problems.columns = columns
        if not columns.used:
            self.problems.add(
                f"{self.nodes.name} has no column that can be a feature; a node needs at least one"
            )
        return table, columns

    def _note_unknown_names(self, features: list[str]) -> None:
        """A column that the user named must exist; one to drop may be one of the edges."""
        hints, edges = self.reading.hints, self.edges.header
        wanted = {*hints.numeric, *hints.categorical, *hints.date, *hints.text}
        known = set(features)
        for name in [*wanted - known, *set(hints.drop) - known - set(edges)]:
            self.problems.add(
                f"{self.nodes.name} has no feature column {name!r}; "
                f"{did_you_mean(name, features)}its feature columns are {', '.join(features)}"
            )

    def _say_what_is_ignored(self, columns: Columns) -> None:
        ignored = [
            f"{column.name!r} ({column.reason})"
            for column in columns
            if column.kind == "ignored" and column.name not in self.reading.drop
        ]
        if ignored:
            more = f" and {len(ignored) - 5} more" if len(ignored) > 5 else ""
            notice(
                f"{self.nodes.name}: left out of the features: {', '.join(ignored[:5])}{more}",
            )

    def _splits(self, labels: Labels) -> tuple[Split, ...]:
        labelled = np.asarray((labels.y >= 0).reshape(len(labels.y), -1).all(1))
        if column := self._column(self.reading.split):
            return (given_split(self.nodes, column, labelled, self.problems),)
        if not labelled.any():
            return ()
        try:
            return (stratified_split(labels.y, self.reading.seed),)
        except GraphError as error:
            self.problems.add(str(error))
            return ()

    def _merged(self, links: Links) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
        directed = self.reading.directed
        if links.weights is None:
            return merged(links.edges, directed=directed), None
        return links.edges, links.weights
