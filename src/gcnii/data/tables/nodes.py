"""The table of nodes: names, labels, splits and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from gcnii.columns import Columns, Table
from gcnii.columns.learn import Learner
from gcnii.columns.table import Texts
from gcnii.data.splits import stratified_split
from gcnii.data.tables.ids import Ids
from gcnii.data.tables.labels import (
    Labels,
    class_labels,
    given_split,
    label_columns,
    several_labels,
)
from gcnii.data.tables.reading import Reading
from gcnii.data.tables.rows import Rows
from gcnii.errors import GraphError, Problems, did_you_mean, notice
from gcnii.graph import Split

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
        """The columns that are neither names, labels nor splits."""
        reading = self.reading
        roles = {self._column(name) for name in (reading.id, reading.split, *reading.labels)}
        return [name for name in self.rows.header if name not in roles]

    def note_wrong_names(self, edges: Sequence[str] = ()) -> None:
        """A column that the user named must exist, once; one to drop may be one of the edges."""
        lower = [name.lower() for name in self.rows.header]
        for name in (self.reading.id, self.reading.split, *self.reading.labels):
            if (count := lower.count(name.lower())) > 1:
                self.problems.add(f"{self.rows.name} has {count} columns called {name!r}; keep one")
        hints, features = self.reading.hints, self.features_named
        wanted = {*hints.numeric, *hints.categorical, *hints.date, *hints.text, *hints.drop}
        for name in sorted(wanted - set(features) - (set(hints.drop) & set(edges))):
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
                f"{self.rows.name} has no column {self.reading.id!r}; its columns are "
                f"{', '.join(self.rows.header)}; say which holds the nodes' names: --id COLUMN (in "
                "Python: id=…)"
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
        """The labels, from one column or from several."""
        names = [self._column(label) or "" for label in self.reading.labels]
        if "" in names:
            return self._absent_label(self.reading.labels[names.index("")])
        if len(names) > 1:
            return label_columns(self.rows, names, self.problems)
        texts = self.rows.texts(names[0])
        if self.reading.multilabel:
            return several_labels(texts, self.reading.unknown)
        return class_labels(texts, self.reading.unknown, self.problems)

    def _absent_label(self, name: str) -> Labels:
        if name != Reading.label and self.known is None:  # to predict, no label is needed
            self.problems.add(
                f"{self.rows.name} has no column {name!r} to take labels from; its columns are "
                f"{', '.join(self.rows.header)}"
            )
        return Labels(np.full(len(self.rows), -1), None)

    def features(self) -> tuple[Table, Columns]:
        """The feature columns, and what they are: as is known already, or learnt from them."""
        hints = self.reading.hints
        dropped = set(hints.drop)
        names = [name for name in self.features_named if name not in dropped]
        if self.known is not None:
            cells = self.rows.cells(names, self.known.as_text)
            return Table(len(self.rows), cells, self.matrix, self.names), self.known
        if not names and self.matrix is None:
            self.problems.add(
                f"{self.rows.name} has no feature columns beside {', '.join(self.rows.header)}; "
                "a node needs at least one"
            )
            self.problems.refuse()
        table = Table(
            len(self.rows), self.rows.cells(names, hints.as_text), self.matrix, self.names
        )
        learner = Learner(self.rows.name, self.rows.place, self.problems)
        table, columns = learner.columns(table, hints)
        self.problems.columns = columns
        if not columns.used:
            found = ", ".join(f"{one.name!r} is left out ({one.reason})" for one in columns)
            self.problems.add(
                f"{self.rows.name} has no column that can be a feature, and a node needs at least "
                f"one: {found}"
            )
        return table, columns

    def say_what_is_ignored(self, columns: Columns) -> None:
        """A notice of the columns that were not asked to be left out, but are."""
        dropped = set(self.reading.drop)
        ignored = [
            f"{column.name!r} ({column.reason})"
            for column in columns
            if column.kind == "ignored" and column.name not in dropped
        ]
        if ignored and self.known is None:
            more = f" and {len(ignored) - SHOWN} more" if len(ignored) > SHOWN else ""
            shown = ", ".join(ignored[:SHOWN])
            notice(f"{self.rows.name}: left out of the features: {shown}{more}")

    def splits(self, labels: Labels) -> tuple[Split, ...]:
        """The split of a column, or one drawn class by class; none if no node has a label."""
        labelled = np.asarray((labels.y >= 0).reshape(len(labels.y), -1).all(1))
        if column := self._column(self.reading.split):
            return (given_split(self.rows, column, labelled, self.problems),)
        if self.known is None and self.reading.split not in ("", Reading.split):
            self.problems.add(
                f"{self.rows.name} has no column {self.reading.split!r} to take the split from; "
                f"its columns are {', '.join(self.rows.header)}"
            )
        if not labelled.any():
            return ()
        try:
            return (stratified_split(labels.y, self.reading.seed),)
        except GraphError as error:
            self.problems.add(str(error))
            return ()
