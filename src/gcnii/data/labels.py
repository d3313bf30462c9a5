"""Labels, splits and times: from text, or labels from arrays of numpy, torch or pandas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gcnii.data.splits import stratified_split
from gcnii.data.tables.reading import Rows
from gcnii.errors import GraphError, InputError, Problems, notice
from gcnii.graph import Split, splits_of
from gcnii.graph.arrays import BEYOND, Array, known_rows
from gcnii.graph.arrays import Labels as Values
from gcnii.graph.columns import TRUTH, Texts, day_of, flag, in_order, is_number, parsed
from gcnii.graph.times import Times

MISSING = ("nan", "null")  # labels that mean unknown, in any case
MAYBE_MISSING = ("NA", "N/A", "None", "none", "?")  # labels that may mean it, or be names
YES_OR_NO = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, **{word: int(x) for word, x in TRUTH.items()}}
MOST_CLASSES, FEW_NODES = 50, 20  # beyond, and below on average, whole numbers seem amounts
ROLES = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


class Labels(NamedTuple):
    """(n,) class ids or (n, k) zeros and ones, -1 if unknown; and the names of the classes.

    Or (n, q) numbers to predict, NaN if unknown, and their names.
    """

    y: Values
    classes: tuple[str, ...] | None
    targets: tuple[str, ...] = ()


def class_labels(cells: Texts, unknown: str, problems: Problems, column: str = "label") -> Labels:
    """One class per node; None for the classes if no node has a label.

    column  where they are, for messages
    """
    texts = known_labels(cells, unknown)
    classes = in_order({text for text in texts if text is not None})
    _note_regression(classes, sum(text is not None for text in texts), problems, column)
    number = {name: c for c, name in enumerate(classes)} | {None: -1}
    y = np.array([number[text] for text in texts], np.int64)
    return Labels(y, tuple(classes) or None)


def known_labels(cells: Texts, unknown: str) -> list[str | None]:
    """The labels, None where one is unknown; a warning counts those that are doubtful."""
    missing = sum(cell is not None and cell.lower() in MISSING for cell in cells)
    if missing:
        one = "1 label NaN or null is" if missing == 1 else f"{missing} labels NaN or null are"
        notice(f"{one} taken as unknown")
    texts = [None if _is_unknown(cell, unknown) else cell for cell in cells]
    for word in MAYBE_MISSING:
        if count := texts.count(word):
            which = "1 node has" if count == 1 else f"{count} nodes have"
            notice(
                f"{which} the label {word!r}, which is taken as a class; "
                f"if it means unknown, say --unknown {word} (in Python: unknown={word!r})"
            )
    return texts


def _is_unknown(cell: str | None, unknown: str) -> bool:
    return cell is None or cell.lower() in MISSING or (bool(unknown) and cell == unknown)


def _note_regression(
    classes: Sequence[str], labelled: int, problems: Problems, column: str
) -> None:
    """Note labels that look like numbers to predict, not like classes."""
    if not all(map(is_number, classes)):
        return
    fractions = [name for name in classes if float(name) % 1]
    if not fractions:
        warn_of_numbers(len(classes), labelled, column)
    elif len(classes) > max(20, labelled / 10):
        problems.add(
            f"the labels of {labelled} nodes are {len(classes)} different numbers, such as "
            f"{fractions[0]}; to predict numbers, say {flag('target', column)}, or else group the "
            "numbers into classes"
        )


def warn_of_numbers(classes: int, labelled: int, column: str = "label") -> None:
    """Warn where integer labels are many and each has few nodes: they may be amounts."""
    if classes > MOST_CLASSES and labelled < FEW_NODES * classes:
        notice(
            f"the labels of {labelled} nodes are {classes} different whole numbers, each of which "
            f"is taken as a class; if they are amounts, say {flag('target', column)}, or group "
            "them into a few classes"
        )


def several_labels(cells: Texts, unknown: str) -> Labels:
    """Labels such as `a;b`: a node has all that are named, and none of the others."""
    texts = known_labels(cells, unknown)
    sets = [
        None if text is None else {part.strip() for part in text.split(";") if part.strip()}
        for text in texts
    ]
    classes = in_order(set().union(*(one for one in sets if one)))
    place = {name: c for c, name in enumerate(classes)}
    y = np.full((len(cells), len(classes)), -1, np.int64)
    for i, one in enumerate(sets):
        if one is not None:
            y[i] = 0
            y[i, [place[name] for name in one]] = 1
    return Labels(y, tuple(classes) or None)


def label_columns(rows: Rows, names: Sequence[str], problems: Problems) -> Labels:
    """One column of zeros and ones per label; a node whose cells are all empty is unknown."""
    y = np.full((len(rows), len(names)), -1, np.int64)
    texts = rows.cells(names, names)  # in one pass over the file
    for j, name in enumerate(names):
        cells = texts[name]
        wrong = [i for i, cell in enumerate(cells) if cell and cell.lower() not in YES_OR_NO]
        problems.add_each(
            wrong,
            lambda i, name=name, cells=cells: (  # type: ignore[misc]
                f"{rows.place(i)}: the label {name!r} is {cells[i]!r}; "
                "where there are several label columns, it must be 0, 1 or empty"
            ),
        )
        y[:, j] = [-1 if cell is None else YES_OR_NO.get(cell.lower(), -1) for cell in cells]
    partly = np.flatnonzero((y < 0).any(1) & (y >= 0).any(1))
    if not problems.found:
        problems.add_each(
            partly,
            lambda i: f"{rows.place(i)} has some of its labels but not all; fill in all or none",
        )
    return Labels(y, tuple(names))


def target_columns(rows: Rows, names: Sequence[str], unknown: str, problems: Problems) -> Labels:
    """One column of numbers to predict each; a cell that is empty or `unknown` is not known."""
    y = np.full((len(rows), len(names)), np.nan)
    for j, name in enumerate(names):
        texts = rows.texts(name)
        cells = np.array([None if _is_unknown(one, unknown) else one for one in texts], object)
        y[:, j] = parsed(cells)
        wrong = [i for i, cell in enumerate(cells) if cell and not np.isfinite(y[i, j])]
        problems.add_each(
            wrong,
            lambda i, name=name, cells=cells: (  # type: ignore[misc]
                f"{rows.place(i)}: {name} is {cells[i]!r}, which is not a number to predict; write "
                "a finite number, or leave the cell empty where it is unknown"
            ),
        )
    return _targets(np.where(np.isfinite(y), y, np.nan), names)


def _targets(y: NDArray[np.float64], names: Sequence[str]) -> Labels:
    """Numbers to predict; a warning counts the nodes that have some of theirs, but not all."""
    known = ~np.isnan(y)
    if partly := int((known.any(1) & ~known.all(1)).sum()):
        notice(
            f"{partly:,} of the {int(known.any(1).sum()):,} nodes with numbers lack some of "
            f"{', '.join(names)}, and are not trained on; predict one at a time to use all of them"
        )
    return Labels(y, None, tuple(names))


def given_split(rows: Rows, column: str, labelled: NDArray[np.bool_], problems: Problems) -> Split:
    """The split that a column says; where it is wrong, any split, and a problem."""
    words = [(cell or "").lower() for cell in rows.texts(column)]
    roles = np.array([ROLES.get(word, "") for word in words], object)
    problems.add_each(
        [i for i, word in enumerate(words) if word and word not in ROLES],
        lambda i: (
            f"{rows.place(i)}: the split is {words[i]!r}; it must be train, val, test or empty"
        ),
    )
    problems.add_each(
        np.flatnonzero((roles != "") & ~labelled),
        lambda i: f"{rows.place(i)} is in {roles[i]} but has no label; label it or empty its split",
    )
    if not (roles == "train").any():
        problems.add(
            f"the split column of {rows.name} has no train node; mark some, or remove the column"
        )
    problems.refuse()
    return Split.of_roles(roles)


def times_of(rows: Rows, column: str, problems: Problems) -> tuple[Times, bool]:
    """(n,) the times of a column, NaN where a cell is empty; and whether they are dates.

    A cell that is neither a number nor a date is noted among the problems.
    """
    if column not in rows.header:
        problems.add(rows.lacks(column, "times"))
        return np.full(len(rows), np.nan), False
    cells = rows.texts(column).tolist()
    numbers = sum(is_number(cell) for cell in cells if cell is not None)
    dated = 2 * numbers < len(cells) - cells.count(None)  # what most are, and all have to be
    read = day_of if dated else lambda cell: parsed([cell])[0]
    times = np.array([np.nan if cell is None else read(cell) for cell in cells])
    problems.add_each(
        [i for i, cell in enumerate(cells) if cell is not None and not np.isfinite(times[i])],
        lambda i: (
            f"{rows.place(i)}: the time {column!r} is {cells[i]!r}; write all times as numbers, or "
            "all as dates such as 2024-12-31, and leave the cell empty where it is unknown"
        ),
    )
    return times, dated


def cuts_of(cuts: Sequence[str], *, dated: bool) -> tuple[float, float]:
    """The two times of `time_cuts`, which are read as the column is."""
    val, test = (day_of(cut) if dated else parsed([cut])[0] for cut in cuts)
    if not val < test:
        kind = "dates" if dated else "numbers"
        raise InputError(
            f"time_cuts must be two {kind}, as the times are, the first of them earlier, "
            f"got {cuts[0]!r} and {cuts[1]!r}"
        )
    return float(val), float(test)


Classes = Sequence[str] | None
UNKNOWN = -1


class Tensor(Protocol):
    """What is used of a torch tensor, so that torch need not be loaded."""

    def detach(self) -> Any: ...


class _Numbers(NamedTuple):
    """Labels as numbers or truth values, and where they are unknown."""

    values: Array
    unknown: NDArray[np.bool_]


def as_array(values: ArrayLike | Tensor) -> Array:
    """The values as a numpy array; those of a list keep their types."""
    if hasattr(values, "detach"):
        return _of_tensor(values)
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        known = values.data.astype(object)
        known[np.ma.getmaskarray(values)] = None
        return known
    if isinstance(values, list | tuple):
        # As objects, else numpy would write NaN among texts as 'nan'.
        return np.array([None if one is np.ma.masked else one for one in values], object)
    return np.asarray(values)


def _of_tensor(values: Any) -> Array:
    try:
        tensor = values.detach().cpu()
        # numpy has no bfloat16
        return np.asarray(tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor)
    except (TypeError, RuntimeError):  # sparse, quantized or on the device `meta`
        raise GraphError(
            f"numpy cannot hold a tensor of {values.dtype} with the layout {values.layout} on "
            f"{values.device}; give a dense one, such as tensor.to_dense()"
        ) from None


def array_labels(y: ArrayLike | Tensor | None, n: int, classes: Classes = None) -> Labels:
    """(n,) class ids or (n, k) zeros and ones of n nodes; -1, NaN and None are unknown.

    classes  names of the classes 0, 1, …; without them, classes are named after their labels
    """
    if classes is not None and (isinstance(classes, str) or not isinstance(classes, Iterable)):
        raise InputError(f"classes must be a list of names, got {classes!r}")
    if y is None:
        return Labels(np.full(n, UNKNOWN), None if classes is None else tuple(classes))
    values = as_array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or len(values) != n:
        raise GraphError(
            f"y must hold one label per node, {n} in all, or a row of zeros and ones per node; "
            f"got shape {values.shape}"
        )
    numbers = _numbers(values)
    if numbers is None:
        return _texts(values, classes)
    return _classes(numbers, classes) if values.ndim == 1 else _several(numbers, classes)


def target_names(targets: object) -> tuple[str, ...]:
    """The names of numbers to predict, given as one or a list; none for None."""
    named = [targets] if isinstance(targets, str) else () if targets is None else targets
    names = tuple(named) if isinstance(named, Iterable) else (named,)
    if any(not isinstance(name, str) for name in names):
        raise InputError(f"targets must be a list of names, got {targets!r}")
    return names


def array_numbers(y: ArrayLike | Tensor | None, n: int, names: Sequence[str]) -> Labels:
    """(n, q) numbers to predict of n nodes, of these names; NaN and None are unknown."""
    values = np.full((n, len(names)), np.nan) if y is None else as_array(y)
    try:
        numbers = np.asarray(values, np.float64).reshape(len(values), -1)
    except (TypeError, ValueError):
        raise GraphError(
            f"y must hold numbers where targets are named, got {values.dtype}"
        ) from None
    if numbers.shape != (n, len(names)):
        raise GraphError(
            f"y must hold a row for each of {n} nodes, with one column for each of the targets "
            f"{', '.join(names)}; got shape {values.shape}"
        )
    return _targets(numbers, names)


def _numbers(values: Array) -> _Numbers | None:
    """None if the labels are texts."""
    if values.dtype.kind == "f":
        return _Numbers(values, np.isnan(values) | (values == UNKNOWN))
    if values.dtype.kind in "iub":
        signed = values.dtype.kind == "i"
        return _Numbers(values, values == UNKNOWN if signed else np.zeros(values.shape, bool))
    if values.dtype.kind != "O":
        return None
    import pandas as pd

    absent = np.asarray(pd.isna(values))
    known = values[~absent]
    if any(isinstance(one, str) for one in known):
        return None
    filled = np.where(absent, UNKNOWN, values)
    if len(known) and all(isinstance(one, bool | np.bool_) for one in known):
        return _Numbers(np.where(absent, False, values).astype(bool), absent)
    if not all(isinstance(one, int | float | np.number) for one in known):
        odd = next(one for one in known if not isinstance(one, int | float | np.number))
        raise GraphError(f"y must hold numbers or texts, got {odd!r} of {type(odd).__name__}")
    whole = all(isinstance(one, int | np.integer) for one in known)
    if whole and (wide := next((one for one in known if abs(int(one)) >= BEYOND), None)):
        raise GraphError(f"y must hold numbers below 2^63, got {wide}")
    return _numbers(filled.astype(np.int64 if whole else np.float64))


def _texts(values: Array, classes: Classes) -> Labels:
    if values.ndim == 2:
        raise GraphError(
            f"y has {values.shape[1]} columns of text; where a node can have several labels, "
            "give one column of zeros and ones per label"
        )
    import pandas as pd

    if values.dtype.kind not in "OUT":
        raise GraphError(f"y must hold numbers or texts, got {values.dtype}")
    absent = np.asarray(pd.isna(values))
    cells = np.array(
        [None if gone else _text(one) for one, gone in zip(values, absent, strict=True)], object
    )
    problems = Problems()
    found = class_labels(cells, "", problems)
    problems.refuse()
    if classes is None:
        return found
    place = {name: c for c, name in enumerate(classes)}
    if lost := [name for name in found.classes or () if name not in place]:
        raise GraphError(f"y has the label {lost[0]!r}, which is not among the named classes")
    renumbered = np.array([*(place[name] for name in found.classes or ()), UNKNOWN])
    return Labels(renumbered[found.y], tuple(classes))


def _text(label: object) -> str | None:
    """The name of a class that stands beside texts; a number is named as beside numbers."""
    if isinstance(label, str):
        return label or None
    if isinstance(label, float | np.floating) and label.is_integer():
        label = int(label)
    return None if label == UNKNOWN else str(label)


def _classes(numbers: _Numbers, classes: Classes) -> Labels:
    values, unknown = numbers
    rows = np.flatnonzero(~unknown)
    known = values[rows]
    if known.dtype.kind != "b":
        _refuse(rows, np.isinf(known), known, "finite numbers")
        _refuse(rows, known != np.floor(known), known, "whole numbers, one per class")
        _refuse(rows, known.astype(np.float64) >= BEYOND, known, "numbers below 2^63")
        _refuse(rows, known < 0, known, "0 or more, or -1 for unknown")
    y = np.full(len(values), UNKNOWN)
    if classes is not None:
        _refuse(rows, known >= len(classes), known, f"less than the {len(classes)} named classes")
        y[rows] = known.astype(np.int64)
        return Labels(y, tuple(classes))
    found, y[rows] = np.unique(known, return_inverse=True)
    warn_of_numbers(len(found), len(rows))
    named = found.astype(np.int64) if found.dtype.kind == "f" else found
    return Labels(y, tuple(map(str, named.tolist())) or None)


def _several(numbers: _Numbers, classes: Classes) -> Labels:
    values, unknown = numbers
    wrong = ~unknown & (values != 0) & (values != 1)
    _refuse(np.argwhere(wrong)[:, 0], wrong[wrong], values[wrong], "0 or 1 where it has columns")
    partly = unknown.any(1) & ~unknown.all(1)
    if partly.any():
        raise GraphError(
            f"row {int(partly.argmax())} of y has some of its labels but not all; "
            "fill in all or none"
        )
    y: NDArray[np.int64] = np.full_like(values, UNKNOWN, np.int64)
    y[~unknown] = values[~unknown]
    known = y[~unknown.any(1)]
    if len(known) and (known.sum(1) == 1).all():
        notice(
            f"every row of y has exactly one 1, and is taken as {y.shape[1]} labels of which a "
            "node can have several; if a node has one class, give y.argmax(1)"
        )
    return Labels(y, None if classes is None else tuple(classes))


def _refuse(
    rows: NDArray[np.int64], wrong: NDArray[np.bool_], values: NDArray[np.generic], expected: str
) -> None:
    if wrong.any():
        first = int(wrong.argmax())
        raise GraphError(f"y must hold {expected}, got {values[first]} in row {int(rows[first])}")


def splits_or_stratified(
    splits: Split | Sequence[Split] | None, labels: Labels, seed: int
) -> tuple[Split, ...]:
    """The given splits; without any, the labelled nodes are split 60/20/20, class by class."""
    given = splits_of(splits)
    if given or not known_rows(labels.y).any():
        return given
    return (stratified_split(labels.y, seed),)
