"""Labels as a user of scikit-learn gives them: of any type, some of them unknown."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from gcnii.errors import GraphError, InputError
from gcnii.graph import Graph, Split

Ints: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[np.generic]
Bools: TypeAlias = NDArray[np.bool_]

WRITTEN = ("-1", "nan", "None")  # what numpy and pandas make of an unknown label among texts


@dataclass(frozen=True, eq=False)
class Labels:
    """classes (k,), sorted and of y's own type; ids (n,) of each row's class, -1 if unknown."""

    classes: Values
    ids: Ints

    @classmethod
    def of(cls, y: object, unknown: object) -> Labels:
        """Read y; refuse labels that no classifier can be trained on."""
        values = column(y)
        known = known_labels(values, unknown)
        if not known.any():
            raise GraphError("no row has a known label; label at least two rows of each class")
        labels = plain(values[known])
        check_classification_targets(labels)
        classes, inverse = np.unique(labels, return_inverse=True)
        if len(classes) == 1:
            raise GraphError(_one_class(classes[0], values, unknown))
        ids = np.full(len(values), -1)
        ids[known] = inverse
        return cls(classes, ids)


def column(y: object) -> Values:
    """y as a vector; a list keeps the types of its items, which numpy would make texts of."""
    values = np.array(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
    return column_or_1d(values, warn=True)  # type: ignore[no-any-return]


def known_labels(values: Values, unknown: object) -> Bools:
    """(n,) whether a label is known: not None, not NaN, and not what `unknown` says."""
    known = ~np.asarray(pd.isna(values))
    if unknown is None:
        return known
    if isinstance(unknown, str) and unknown == "auto":
        return known & ~_unknown_by_convention(values, known)
    return known & ~_equal(values, unknown)


def known_beside(classes: Values, values: Values, unknown: object) -> Bools:
    """`known_labels` of rows to score, by a classifier that was trained on these classes."""
    if isinstance(unknown, str) and unknown == "auto" and _equal(classes, -1).any():
        unknown = None
    both = np.concatenate([classes.astype(object), values.astype(object)])
    return known_labels(both, unknown)[len(classes) :]


def own_labels(graph: Graph) -> Values:
    """(n,) the names of the nodes' classes, or numbers where there are none; None if unknown."""
    if graph.multilabel:
        raise InputError(
            f"a node of {graph.name} can have several labels, but GCNIIClassifier takes one; "
            "train with gcnii.fit"
        )
    labels = np.array([*(graph.classes or range(graph.k)), None], dtype=object)
    return labels[graph.labels]


def _unknown_by_convention(values: Values, known: Bools) -> Bools:
    """(n,) where -1 means unknown, as in sklearn.semi_supervised; nowhere if it is a class.

    It is a class beside 1 alone, which are the names of two classes, and beside other negative
    numbers.
    """
    _refuse_written(values)
    marked = known & _equal(values, -1)
    others = plain(values[known & ~marked])
    if marked.any() and len(others) and others.dtype.kind in "biuf":
        found = np.unique(others).tolist()
        if found == [1] or found[0] < 0:
            return np.zeros_like(known)
        if found == [0, 1]:
            warnings.warn(
                "y holds -1, 0 and 1, and -1 is taken as an unknown label; "
                "say so with unknown=-1, or say unknown=None if -1 is a class",
                stacklevel=6,  # whoever calls fit
            )
    return marked


def _refuse_written(values: Values) -> None:
    if values.dtype.kind not in "OUT":
        return
    for text in WRITTEN:
        if _equal(values, text).any():
            raise InputError(
                f"y holds the text {text!r}, which may be an unknown label made into text; "
                f"say unknown={text!r}, or say unknown=None if it is a class"
            )


def _equal(values: Values, label: object) -> Bools:
    return np.asarray(values.astype(object) == label, dtype=bool)


def plain(labels: Values) -> Values:
    """Numbers in an array of objects as an array of numbers."""
    if labels.dtype != object:
        return labels
    plain = np.array(labels.tolist())
    return plain if plain.dtype.kind in "biuf" else labels


def _one_class(label: object, values: Values, unknown: object) -> str:
    sentence = f"all known labels are {label!s}, one class; a classifier needs two classes or more"
    if unknown != "auto" or not _equal(values, -1).any():
        return sentence
    return f"{sentence} (-1 is taken as unknown; say unknown=None if it is a class)"


def hold_out(ids: Ints, share: float, random: np.random.Generator) -> Split:
    """Of each class this share, rounded, to validate on and the rest to train on; none to test.

    A class keeps at least one row to train on.  Where the share rounds to nothing in every class,
    one row of the largest is held out.
    """
    counts = np.bincount(ids[ids >= 0])
    if counts.max() < 2:
        raise GraphError(
            "every class has a single known label, which leaves none to validate on; "
            "label at least two rows of a class"
        )
    held = np.minimum(np.round(share * counts).astype(int), counts - 1)
    if not held.any():
        held[counts.argmax()] = 1
    roles = np.full(len(ids), "", dtype=object)
    for label, count in enumerate(held):
        members = random.permutation(np.flatnonzero(ids == label))
        roles[members[:count]], roles[members[count:]] = "val", "train"
    return Split.of_roles(roles)
