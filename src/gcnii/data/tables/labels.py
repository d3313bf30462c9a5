"""Labels and splits of the nodes, from text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gcnii.columns.cells import TRUTH, is_number
from gcnii.columns.learn import in_order
from gcnii.columns.table import Texts
from gcnii.data.tables.rows import Rows
from gcnii.errors import Problems, notice
from gcnii.graph import Split

MISSING = ("nan", "null")  # labels that mean unknown, in any case
MAYBE_MISSING = ("NA", "N/A", "None", "none", "?")  # labels that may mean it, or be names
YES_OR_NO = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, **{word: int(x) for word, x in TRUTH.items()}}
MOST_CLASSES, FEW_NODES = 50, 20  # beyond, and below on average, whole numbers seem amounts
ROLES = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


class Labels(NamedTuple):
    """(n,) class ids or (n, k) zeros and ones, -1 if unknown; and the names of the classes."""

    y: NDArray[np.int64]
    classes: tuple[str, ...] | None


def class_labels(cells: Texts, unknown: str, problems: Problems) -> Labels:
    """One class per node; None for the classes if no node has a label."""
    texts = known_labels(cells, unknown)
    classes = in_order({text for text in texts if text is not None})
    _note_regression(classes, sum(text is not None for text in texts), problems)
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
                f"if it means unknown, say --unknown {word} (in Python: unknown={word!r})",
            )
    return texts


def _is_unknown(cell: str | None, unknown: str) -> bool:
    return cell is None or cell.lower() in MISSING or (bool(unknown) and cell == unknown)


def _note_regression(classes: Sequence[str], labelled: int, problems: Problems) -> None:
    """Note labels that look like numbers to predict, not like classes."""
    if not all(map(is_number, classes)):
        return
    fractions = [name for name in classes if float(name) % 1]
    if not fractions:
        warn_of_numbers(len(classes), labelled)
    elif len(classes) > max(20, labelled / 10):
        problems.add(
            f"the labels of {labelled} nodes are {len(classes)} different numbers, such as "
            f"{fractions[0]}; gcnii predicts classes: group the numbers into classes"
        )


def warn_of_numbers(classes: int, labelled: int) -> None:
    """Warn where so many whole numbers are labels of so few nodes that they seem to be amounts."""
    if classes > MOST_CLASSES and labelled < FEW_NODES * classes:
        notice(
            f"the labels of {labelled} nodes are {classes} different whole numbers, each of which "
            "is taken as a class; if they are amounts, group them into a few classes"
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
    for role in ("train", "val"):
        if not (roles == role).any():
            problems.add(
                f"the split column of {rows.name} has no {role} node; "
                "mark some, or remove the column"
            )
    problems.refuse()
    return Split.of_roles(roles)
