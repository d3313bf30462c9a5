"""What the columns of a user's table hold and mean, and the features X made of them.

A Table has the columns as they came.  Columns say what each is taken for: they are learnt once,
from the cells and from what the user says, when a graph is made of a table, and stored in a bundle
as JSON; another table is encoded by the same Columns, found by their names in any order.

    numeric      as it is; a missing cell is the median, and 1 in a column of its own
    binary       two numbers, 0 and 1: as numeric, but never scaled
    date         days since 1970-01-01, as numeric
    categorical  a column of zeros and ones for each value; rare and unseen values share one
    words        one column for each word: TF-IDF
    matrix       the columns of a sparse matrix, as they are
    ignored      not part of X
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Literal, TypeAlias, TypeGuard, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.errors import DataError, Problems, some_of
from gcnii.files import Document, Maybe, check
from gcnii.graph.arrays import dense, first

Numbers: TypeAlias = NDArray[np.float32]  # NaN where missing
Texts: TypeAlias = NDArray[np.object_]  # str; None where missing
Cells: TypeAlias = Numbers | Texts


@dataclass(frozen=True, eq=False)
class Table:
    """n rows, one per node.

    columns  name → (n,) numbers or text
    matrix   (n, …) CSR: wide, sparse features beside the columns, such as counts of words
    names    of the matrix's columns
    """

    n: int
    columns: Mapping[str, Cells]
    matrix: sp.csr_array | None = None
    names: tuple[str, ...] = ()

    def some(self, rows: NDArray[np.bool_]) -> Table:
        """These rows alone."""
        cells = {name: own[rows] for name, own in self.columns.items()}
        matrix = None if self.matrix is None else sp.csr_array(self.matrix[rows])
        return Table(int(rows.sum()), cells, matrix, self.names)


def is_text(cells: Cells) -> TypeGuard[Texts]:
    """Whether the cells of a column are text, not numbers."""
    return cells.dtype == object


def differences(own: Iterable[str], wanted: Iterable[str], allowed: Iterable[str] = ()) -> str:
    """What wanted names are missing, and which are there that are not allowed either; or ""."""
    own, wanted = dict.fromkeys(own), dict.fromkeys(wanted)
    known = {*wanted, *allowed}
    lacks = [name for name in wanted if name not in own]
    has = [name for name in own if name not in known]
    return " and ".join(f"{verb} {some_of(x)}" for verb, x in (("lacks", lacks), ("has", has)) if x)


def refuse_other_columns(
    who: str, own: Iterable[str], wanted: Iterable[str], allowed: Iterable[str] = ()
) -> None:
    """Raise DataError if a wanted column is missing, or one is there that is not allowed either."""
    if wrong := differences(own, wanted, allowed):
        raise DataError(
            f"{who} {wrong} among its feature columns; "
            "a model takes the columns that it was trained on, in any order"
        )


NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
TRUTH = {"true": 1.0, "false": 0.0}
DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{2}.*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}", re.ASCII
)
DATES = "dates; "  # how the reason begins for which a column of dates is left out
EXACT_BELOW = 2**24  # whole numbers that float32 holds exactly


def is_number(cell: str) -> bool:
    """Whether a cell is written as a number."""
    return NUMBER.fullmatch(cell) is not None


def is_date(cell: str) -> bool:
    """Whether a cell looks like a date."""
    return DATE.fullmatch(cell) is not None


def float32_of(values: NDArray[np.float64]) -> Numbers:
    """In the precision of X; numbers beyond it become infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def parsed(cells: Iterable[str | None]) -> NDArray[np.float64]:
    """Cells as numbers; NaN where one is missing or not a number."""
    return np.array([float(cell) if cell and is_number(cell) else np.nan for cell in cells])


def truths_of(cells: Texts) -> Numbers:
    """Cells that are all true, false or missing, as ones and zeros."""
    return np.array([np.nan if cell is None else TRUTH[cell.lower()] for cell in cells], np.float32)


def numbers_of(table: Table, name: str) -> Numbers:
    """A column as numbers; DataError at the first cell that is none, or is not finite."""
    cells = table.columns[name]
    if is_text(cells):
        wrong = [i for i, cell in enumerate(cells) if cell is not None and not _has_value(cell)]
        if wrong:
            raise DataError(
                f"the feature {name!r} is numeric in the model, but {cells[wrong[0]]!r} "
                f"in row {wrong[0]} of the nodes (counted from 0)"
            )
        values = [np.nan if cell is None else TRUTH.get(cell.lower(), cell) for cell in cells]
        found = float32_of(np.array(values, np.float64))
    else:
        found = np.asarray(cells, np.float32)
    if (beyond := np.isinf(found)).any():
        raise DataError(
            f"the feature {name!r} is infinite or too large in row {first(beyond)} of the nodes "
            "(counted from 0); it must be a finite number or empty"
        )
    return found


def _has_value(cell: str) -> bool:
    return is_number(cell) or cell.lower() in TRUTH


def texts_of(table: Table, name: str) -> Texts:
    """A column as text; DataError if it was read as numbers that cannot be written exactly."""
    cells = table.columns[name]
    if is_text(cells):
        return cells
    known = cells[~np.isnan(cells)]
    if (known % 1 != 0).any() or (np.abs(known) >= EXACT_BELOW).any():
        raise DataError(
            f"the feature {name!r} is categorical in the model but was read as numbers; "
            f"name it among the categorical columns when loading: categorical=[{name!r}]"
        )
    return np.array([None if np.isnan(cell) else str(int(cell)) for cell in cells], object)


def day_of(cell: str) -> float:
    """Days since 1970-01-01 of an ISO date or time; NaN if it is none."""
    try:
        moment = datetime.fromisoformat(cell)
    except ValueError:
        return np.nan
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return zoned.timestamp() / 86400


def day_numbers(table: Table, name: str) -> Numbers:
    """A column of ISO dates as days since 1970-01-01; DataError at the first that is none."""
    cells = texts_of(table, name)
    days = np.array([np.nan if cell is None else day_of(cell) for cell in cells], np.float32)
    for i in np.flatnonzero(np.isnan(days)):
        if cells[i] is not None:
            raise DataError(
                f"the date {name!r} is {cells[i]!r} in row {i} of the nodes (counted from 0); "
                "write dates as 2024-12-31"
            )
    return days


MOST_WORDS = 5000
WORD = r"(?u)\b(?!\d+\b)\w\w+\b"  # scikit-learn's, without bare numbers


def learn_words(texts: Texts) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The most frequent words and their inverse document frequencies; none if there are no words.

    A word of one node alone tells nothing about another node, and is left out; so are numbers.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(min_df=2, max_features=MOST_WORDS, token_pattern=WORD)
    try:
        vectorizer.fit(_documents(texts))
    except ValueError:  # no word is left
        return (), ()
    words = map(str, vectorizer.get_feature_names_out())
    return tuple(words), tuple(map(float, vectorizer.idf_))


def tf_idf(texts: Texts, words: Sequence[str], weights: Sequence[float]) -> sp.csr_array:
    """(n, words) the weights of the words of each text, rows of length 1."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(vocabulary=list(words))
    vectorizer.idf_ = np.array(weights)
    return sp.csr_array(vectorizer.transform(_documents(texts)), dtype=np.float32)


def _documents(texts: Texts) -> list[str]:
    return [text or "" for text in texts]


Kind = Literal["numeric", "binary", "date", "categorical", "words", "matrix", "ignored"]
Block: TypeAlias = Numbers | sp.csr_array
Encoded: TypeAlias = tuple[Block, tuple[str, ...]]  # values (n, width) and the names of the columns

COLUMN = {
    "name": str,
    "kind": set(get_args(Kind)),
    "median": Maybe(float),
    "missing": Maybe(bool),
    "values": Maybe([str]),
    "weights": Maybe([float]),
    "other": Maybe(bool),
    "reason": Maybe(str),
    "of": Maybe([str]),
}
SPARSE_ABOVE, SPARSE_BELOW = 100, 0.1  # number of columns, share of nonzero entries


@dataclass(frozen=True)
class Column:
    """What one column is taken for.

    median   of a numeric column or a date: stands in for a missing cell
    missing  whether cells were missing, which then has a feature of its own
    values   the categories, the words, or the matrix's columns that are used
    weights  the inverse document frequencies of the words
    other    whether there were rare categories, which then share a feature
    reason   why a column is ignored
    of       of nodes of several types: the column of types, and the type that alone has this column
             (the column of types itself has no such)
    """

    name: str
    kind: Kind
    median: float = 0.0
    missing: bool = False
    values: tuple[str, ...] = ()
    weights: tuple[float, ...] = field(default=(), repr=False)
    other: bool = False
    reason: str = ""
    of: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """Its name, after that of the type that has it."""
        return ": ".join((*self.of[1:], self.name))

    @property
    def width(self) -> int:
        """The number of features made of it."""
        if self.kind in ("numeric", "binary", "date"):
            return 1 + self.missing
        of_categories = (self.other + self.missing) if self.kind == "categorical" else 0
        return len(self.values) + of_categories

    @property
    def of_dates(self) -> bool:
        """Whether it is left out because its cells are dates."""
        return self.reason.startswith(DATES)

    @property
    def about(self) -> str:
        """What there is to say about it, in a few words."""
        match self.kind:
            case "ignored":
                return self.reason
            case "categorical":
                shown, more = self.values[:4], len(self.values) - 4
                rest = [f"{more} more"] * (more > 0) + ["others"] * self.other
                return ", ".join([*shown, *rest])
            case "words" | "matrix":
                return f"{len(self.values)} columns"
        return f"median {self.median:g}" + ", some missing" * self.missing

    def encode(self, table: Table) -> Encoded:
        """The features made of this column."""
        if self.of:
            return self._of_type(table)
        match self.kind:
            case "numeric" | "binary":
                return self._numbers(numbers_of(table, self.name))
            case "date":
                return self._numbers(day_numbers(table, self.name))
            case "categorical":
                return self._one_hot(texts_of(table, self.name))
            case "words":
                return tf_idf(texts_of(table, self.name), self.values, self.weights), tuple(
                    f"{self.name}: {word}" for word in self.values
                )
            case "matrix":
                return self._part(table), self.values
            case "ignored":
                return np.zeros((table.n, 0), np.float32), ()

    def _of_type(self, table: Table) -> Encoded:
        """Zero for nodes of other types; of numbers, the median is zero, and no type stands out."""
        alike = replace(self, of=())
        if len(self.of) == 1:
            known_types(table, self.name, self.values)
            return alike.encode(table)
        which = of_type(table, *self.of)
        nobody = Table(0, {self.name: np.zeros(0, object)})  # such a table need not have the column
        some = table.some(which) if which.any() else nobody
        rows, (block, names) = np.flatnonzero(which), alike.encode(some)
        if self.kind in ("numeric", "date"):
            neutral = np.array([self.median] + [0] * (self.width - 1), np.float32)
            block = np.asarray(dense(block) - neutral, np.float32)
        entries = np.ones(len(rows), np.float32), (rows, np.arange(len(rows)))
        spread = sp.csr_array(sp.csr_array(entries, (table.n, len(rows))) @ sp.csr_array(block))
        return spread, tuple(f"{self.of[1]}: {name}" for name in names)

    def _numbers(self, cells: Numbers) -> Encoded:
        lacks = np.isnan(cells)
        if not lacks.any() and not self.missing:
            return cells[:, None], (self.name,)
        filled = np.where(lacks, np.float32(self.median), cells)
        if not self.missing:
            return filled[:, None], (self.name,)
        both = np.stack([filled, lacks.astype(np.float32)], 1)
        return both, (self.name, f"{self.name} (missing)")

    def _one_hot(self, cells: Texts) -> Encoded:
        names = [f"{self.name}={value}" for value in self.values]
        place = {value: j for j, value in enumerate(self.values)}
        if self.other:
            names.append(f"{self.name} (other)")
        if self.missing:
            place[""] = len(names)
            names.append(f"{self.name} (missing)")
        rest = len(self.values) if self.other else -1  # an unseen value is none of them
        lost = place.get("", -1)
        found = np.array([lost if cell is None else place.get(cell, rest) for cell in cells], int)
        rows = np.flatnonzero(found >= 0)
        entries = (np.ones(len(rows), np.float32), (rows, found[rows]))
        return sp.csr_array(entries, (len(cells), len(names))), tuple(names)

    def _part(self, table: Table) -> sp.csr_array:
        if table.matrix is None or set(self.values) - set(table.names):
            raise DataError(
                f"the matrix of features lacks columns that {self.name} had in training"
            )
        place = {name: j for j, name in enumerate(table.names)}
        wanted = [place[name] for name in self.values]
        if wanted == list(range(len(table.names))):
            return table.matrix
        return sp.csr_array(table.matrix[:, wanted])

    def again(self, table: Table) -> Column:
        """What it is, learnt from another table."""
        if len(self.of) == 1:
            return self
        if self.of:
            own = table.some(of_type(table, *self.of))
            return replace(replace(self, of=()).again(own), of=self.of)
        match self.kind:
            case "numeric" | "binary":
                return _numbers(self.name, numbers_of(table, self.name))
            case "date":
                found = _numbers(self.name, day_numbers(table, self.name))
                return found if found.kind == "ignored" else replace(found, kind="date")
            case "categorical":
                return _categorical(self.name, texts_of(table, self.name))
            case "words":
                return _words(self.name, texts_of(table, self.name))
            case "matrix":
                assert table.matrix is not None
                return _matrix_column(table.matrix, table.names)
            case "ignored":
                return self

    def document(self) -> Document:
        """As JSON: what differs from the defaults."""
        plain = asdict(Column(self.name, self.kind))
        own = {key: value for key, value in asdict(self).items() if value != plain[key]}
        return {"name": self.name, "kind": self.kind} | own


@dataclass(frozen=True)
class Columns:
    """The columns of a table, in its order."""

    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def used(self) -> tuple[Column, ...]:
        """Those that X is made of."""
        return tuple(column for column in self.columns if column.kind != "ignored")

    @property
    def as_text(self) -> set[str]:
        """The columns whose cells are read as they are written."""
        return {one.name for one in self.columns if one.kind in ("categorical", "date", "words")}

    def encode(self, table: Table, who: str = "the table") -> Encoded:
        """X (n, d) and the names of its columns; DataError if a column is missing or unknown."""
        wanted = [column.name for column in self._asked(table) if column.kind != "matrix"]
        refuse_other_columns(who, table.columns, wanted, (one.name for one in self.columns))
        blocks, names = zip(*(column.encode(table) for column in self.used), strict=True)
        return _beside(blocks), tuple(name for block in names for name in block)

    def learnt_again(self, table: Table, rows: NDArray[np.bool_]) -> Columns:
        """The same columns, with medians, categories, words, … of some rows alone.

        A column that is constant there is not used.
        """
        part = table.some(rows)
        found = [column if column.kind == "ignored" else column.again(part) for column in self]
        if all(column.kind == "ignored" for column in found):
            found = [_kept_constant(column, part.columns) for column in found]
        return Columns(tuple(found))

    def _asked(self, table: Table) -> Iterator[Column]:
        """The columns that this table must have: of types of nodes, those of its own."""
        for column in self.used:
            lacks_types = len(column.of) > 1 and column.of[0] not in table.columns
            if len(column.of) < 2 or (not lacks_types and of_type(table, *column.of).any()):
                yield column

    def sharing(self, table: Table, X: Block) -> Table:
        """The table with the columns of X for its own, where they are equal: it saves memory."""
        if isinstance(X, sp.csr_array):
            return table
        cells, start = dict(table.columns), 0
        for column in self.used:
            plain = column.kind in ("numeric", "binary") and not column.missing
            if plain and not column.of:
                own = numbers_of(table, column.name)
                cells[column.name] = own if np.isnan(own).any() else X[:, start]
            start += column.width
        return replace(table, columns=cells)

    def document(self) -> list[Document]:
        return [column.document() for column in self.columns]

    @classmethod
    def of_document(cls, document: Sequence[Document]) -> Columns:
        """From JSON, which is checked."""
        check(document, [COLUMN], "columns")
        made = ({**one, "values": tuple(one.get("values", ()))} for one in document)
        tuples = ("weights", "of")
        made = ({**one, **{name: tuple(one.get(name, ())) for name in tuples}} for one in made)
        return cls(tuple(Column(**one) for one in made))


def node_types(columns: Columns | None) -> str:
    """The name of the column of types of nodes; "" if they are of one."""
    return next((one.name for one in columns or () if len(one.of) == 1), "")


def of_type(table: Table, column: str, kind: str) -> NDArray[np.bool_]:
    """(n,) which nodes are of this type."""
    return np.asarray(texts_of(table, column) == kind, bool)


def known_types(table: Table, column: str, known: Sequence[str]) -> None:
    """Raise DataError for a node whose type is not among these."""
    for i, kind in enumerate(texts_of(table, column)):
        if kind not in known:
            came = "missing" if kind is None else repr(kind)
            raise DataError(
                f"the type of the node in row {i} (counted from 0), in the column {column!r}, is "
                f"{came}; the types of the training are {', '.join(known)}"
            )


def _beside(blocks: Sequence[Block]) -> Block:
    """The blocks side by side: CSR if wide and mostly zeros, else dense."""
    width = sum(block.shape[1] for block in blocks)
    if width > SPARSE_ABOVE and _nonzeros(blocks) < SPARSE_BELOW * width * blocks[0].shape[0]:
        return sp.csr_array(sp.hstack([sp.csr_array(block) for block in blocks], "csr", np.float32))
    each = [dense(block) for block in blocks]
    return each[0] if len(each) == 1 else np.concatenate(each, 1)


def _nonzeros(blocks: Sequence[Block]) -> int:
    return sum(
        block.nnz if isinstance(block, sp.csr_array) else int(np.count_nonzero(block))
        for block in blocks
    )


NO_NUMBERS = ("nan", "inf", "infinity")  # written by programs where a number was expected
MOST_CATEGORIES = 100  # of one column; the others share a feature


@dataclass(frozen=True)
class Learner:
    """Judges the columns of a table; what cannot be used is noted among the problems.

    owner  what messages call the table: "nodes.csv"
    place  where row i is: "row 7 of nodes.csv"
    said   what the user says of a column: numeric, categorical, date, text, or to drop it
    """

    owner: str
    place: Callable[[int], str]
    problems: Problems
    said: Mapping[str, str]

    def columns(self, table: Table) -> tuple[Table, Columns]:
        """What the columns are, and the table with numbers in those that turned out numeric."""
        cells, found = dict(table.columns), self._dropped()
        for name in cells:
            column, cells[name] = self._column(name, cells[name])
            found.append(column)
        if table.matrix is not None:
            found.append(_matrix_column(table.matrix, table.names))
        if all(column.kind == "ignored" for column in found):
            found = [_kept_constant(column, cells) for column in found]
        return Table(table.n, cells, table.matrix, table.names), Columns(tuple(found))

    def _dropped(self) -> list[Column]:
        dropped = (name for name, kind in self.said.items() if kind == "drop")
        return [Column(name, "ignored", reason="as asked") for name in dropped]

    def columns_of_types(self, table: Table, kind: str) -> Columns:
        """What the columns are where the column `kind` has types of nodes: each type by itself.

        A column without a cell in the rows of a type is not one of that type.
        """
        types, found = texts_of(table, kind), self._dropped()
        names = tuple(in_order({one for one in types if one is not None}))
        found.append(Column(kind, "categorical", values=names, of=(kind,)))
        for one in names:
            which = of_type(table, kind, one)
            own = replace(self, place=partial(self._place_of, np.flatnonzero(which)))
            for name, cells in table.some(which).columns.items():
                if name != kind and not _empty(cells):
                    column, _ = own._column(name, cells)
                    found.append(replace(column, of=(kind, one)))
        told = {column.name for column in found}
        empty = (name for name in table.columns if name not in told)
        found += [Column(name, "ignored", reason="empty") for name in empty]
        if table.matrix is not None:
            found.append(_matrix_column(table.matrix, table.names))
        return Columns(tuple(found))

    def _place_of(self, rows: NDArray[np.int64], i: int) -> str:
        return self.place(int(rows[i]))

    def _column(self, name: str, cells: Cells) -> tuple[Column, Cells]:
        if is_text(cells):
            return self._text_column(name, cells, self.said.get(name, ""))
        numbers = np.asarray(cells, np.float32)
        return self._numeric(name, numbers), numbers

    def _text_column(self, name: str, cells: Texts, said: str) -> tuple[Column, Cells]:
        known = [cell for cell in cells if cell is not None]
        if not known:
            return Column(name, "ignored", reason="empty"), cells
        if said == "text":
            return _words(name, cells), cells
        if said == "date":
            return self._date(name, cells), cells
        if said == "categorical":
            return _categorical(name, cells), cells
        if said != "numeric" and all(cell.lower() in TRUTH for cell in known):
            return _numbers(name, truths_of(cells)), truths_of(cells)
        if said == "numeric" or 2 * sum(map(_meant_as_number, known)) >= len(known):
            return self._words_among_numbers(name, cells)
        if all(map(is_date, known)):
            reason = f"{DATES}{flag('date', name)} takes them as days"
            return Column(name, "ignored", reason=reason), cells
        return _categorical(name, cells), cells

    def _numeric(self, name: str, cells: Numbers) -> Column:
        self._refuse(name, np.flatnonzero(np.isinf(cells)), lambda i: "infinite or too large")
        return _numbers(name, cells)

    def _words_among_numbers(self, name: str, cells: Texts) -> tuple[Column, Cells]:
        wrong = [i for i, cell in enumerate(cells) if cell is not None and not is_number(cell)]
        self._refuse(name, wrong, lambda i: repr(cells[i]))
        numbers = float32_of(parsed(cells))
        return self._numeric(name, numbers), numbers

    def _refuse(self, name: str, rows: Iterable[int], came: Callable[[int], str]) -> None:
        self.problems.add_each(
            rows,
            lambda i: (
                f"{self.place(i)}: the feature {name!r} is {came(i)}; it must be a finite number "
                f"or empty; if it is no number at all, say {flag('categorical', name)}"
            ),
        )

    def _date(self, name: str, cells: Texts) -> Column:
        days = np.array([np.nan if cell is None else day_of(cell) for cell in cells])
        missing = np.array([cell is None for cell in cells])
        wrong = np.flatnonzero(np.isnan(days) & ~missing)
        self.problems.add_each(
            wrong,
            lambda i: f"{self.place(i)}: the date {name!r} is {cells[i]!r}; write it as 2024-12-31",
        )
        median = float(np.median(days[~np.isnan(days)])) if len(wrong) < (~missing).sum() else 0.0
        return Column(name, "date", median=median, missing=bool(missing.any()))


def _empty(cells: Cells) -> bool:
    """Whether no cell holds anything."""
    return all(cell is None for cell in cells) if is_text(cells) else bool(np.isnan(cells).all())


def _meant_as_number(cell: str) -> bool:
    return is_number(cell) or cell.lower().lstrip("+-") in NO_NUMBERS


def flag(name: str, value: str) -> str:
    """How to say it on the command line and in Python: a part of a message."""
    shown = f'"{value}"' if " " in value else value
    return f"--{name} {shown} (in Python: {name}=[{value!r}])"


def _numbers(name: str, cells: Numbers) -> Column:
    known = cells[~np.isnan(cells)]
    if not len(known):
        return Column(name, "ignored", reason="empty")
    low, high, missing = known.min(), known.max(), len(known) < len(cells)
    if low == high and not missing:
        return Column(name, "ignored", reason="constant")
    binary = bool(((known == 0) | (known == 1)).all())
    # In float64: the two middle values may add up to more than float32 holds.
    median = float(np.float32(np.median(known.astype(np.float64))))
    return Column(name, "binary" if binary else "numeric", median=median, missing=missing)


def _categorical(name: str, cells: Texts) -> Column:
    counts = Counter(cells)
    missing = bool(counts.pop(None, 0))
    if len(counts) == 1 and not missing:
        return Column(name, "ignored", reason="constant")
    rare = min(5, max(2, len(cells) // 100))  # a value of fewer nodes tells little about others
    frequent = [value for value, count in counts.most_common(MOST_CATEGORIES) if count >= rare]
    if not frequent:
        reason = f"{len(counts)} different texts; {flag('text', name)} uses their words"
        return Column(name, "ignored", reason=reason)
    other = len(frequent) < len(counts)
    return Column(
        name, "categorical", values=tuple(in_order(frequent)), other=other, missing=missing
    )


def _words(name: str, cells: Texts) -> Column:
    words, weights = learn_words(cells)
    if not words:
        return Column(name, "ignored", reason="no word occurs in two nodes")
    return Column(name, "words", values=words, weights=weights)


def _matrix_column(matrix: sp.csr_array, names: Sequence[str]) -> Column:
    """The columns of the matrix that vary."""
    lows, highs = matrix.min(0).toarray().ravel(), matrix.max(0).toarray().ravel()
    kept = tuple(name for name, low, high in zip(names, lows, highs, strict=True) if low != high)
    if not kept:
        return Column("matrix", "ignored", reason="constant")
    return Column("matrix", "matrix", values=kept)


def _kept_constant(column: Column, cells: Mapping[str, Cells]) -> Column:
    """A constant number as a feature after all: where there is no other, it carries the degrees."""
    numeric = column.name in cells and not is_text(cells[column.name])
    return Column(column.name, "numeric") if numeric and column.reason == "constant" else column


def in_order(names: Iterable[str]) -> list[str]:
    """In numerical order if all are numbers, else in alphabetical order."""
    names = list(names)
    if all(map(is_number, names)):
        return sorted(names, key=lambda name: (float(name), name))
    return sorted(names)
