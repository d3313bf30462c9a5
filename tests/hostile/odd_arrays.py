"""Matrices and labels in all the forms that Python has for them: each says what it means.

A form is right (it must be taken, as what it means), odd (it may be refused, but if it is taken,
then as what it means) or wrong (it must be refused).
"""

import warnings
from collections.abc import Callable
from random import Random
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

N = 12
Sort = Literal["right", "odd", "wrong"]


class Form(NamedTuple):
    """A value, what it means, and whether it must be taken."""

    told: str
    value: Any
    means: Any
    sort: Sort = "right"


# Labels: what they mean is a list of names of classes, None if unknown


def _matrix(values):
    """numpy's old class of matrices, which warns when it is made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.matrix(values)


def labels(random: Random) -> Form:
    """The labels of N nodes."""
    classes = random.choice((("0", "1"), ("0", "1", "2"), ("a", "b"), ("0", "1", "other")))
    means: list[str | None] = [classes[i % len(classes)] for i in range(N)]
    random.shuffle(means)
    makers = _WORD_LABELS if any(not name.isdigit() for name in classes) else _NUMBER_LABELS
    return random.choice(makers)(random, means)


def _form(told: str, make: Callable[[list[Any]], Any], sort: Sort = "right") -> Any:
    """A form of labels that are all known: integers where their names are."""

    def form(random: Random, means: list[Any]) -> Form:
        return Form(told, make([int(one) if one.isdigit() else one for one in means]), means, sort)

    return form


def _gap(told: str, gap: Any, make: Callable[[list[Any]], Any], sort: Sort = "right") -> Any:
    """A form of labels of which one is unknown."""

    def form(random: Random, means: list[Any]) -> Form:
        values: list[Any] = [int(one) if one.isdigit() else one for one in means]
        i = random.randrange(N)
        values[i] = gap
        return Form(told, make(values), [*means[:i], None, *means[i + 1 :]], sort)

    return form


def _masked(random: Random, means: list[Any]) -> Form:
    values = np.ma.array([int(one) for one in means], mask=False)
    i = random.randrange(N)
    values[i] = np.ma.masked
    return Form("a masked array", values, [*means[:i], None, *means[i + 1 :]], "odd")


def _large(random: Random, means: list[Any]) -> Form:
    """Class ids that some integers do not hold."""
    large = random.choice((2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 10**30))
    names = [str(int(one) + large - 2) for one in means]
    numbers = [int(name) for name in names]
    makers: list[Callable[[Any], Any]] = [list, tuple, lambda v: np.array(v, object)]
    if max(numbers) < 2**63:
        makers += [lambda v: np.array(v, np.int64), lambda v: pd.Series(v, dtype="Int64")]
    if max(numbers) < 2**64:
        makers += [lambda v: np.array(v, np.uint64), lambda v: np.array(v, ">u8")]
    return Form(f"ids of about {large}", random.choice(makers)(numbers), names, "odd")


def _wrong_labels(random: Random, means: list[Any]) -> Form:
    numbers = [int(one) if one.isdigit() else one for one in means]
    values = random.choice(
        (
            numbers[:-1],
            [*numbers, 0],
            [numbers],
            np.array(range(N)) / 7,
            [1 + 2j] * N,
            np.zeros(N, "M8[s]"),
            np.zeros(N, [("a", int)]),
            [[1]] * (N - 1) + [[1, 2]],
            [object()] * N,
            [b"a", b"b"] * (N // 2),
            np.full(N, np.inf),
            [*range(N - 1), -2],
            np.zeros((N, 2, 2)),
            "ab" * (N // 2),
            {"a": 1},
            3,
            [None, [1]] * (N // 2),
        )
    )
    return Form(f"labels {values!r:.60}", values, None, "wrong")


def _ints(kind: str) -> Callable[[list[Any]], Any]:
    return lambda values: np.array(values, kind)


_NUMBER_LABELS = (
    *(_form(f"labels of {kind}", _ints(kind)) for kind in ("i1", "u1", "i2", ">i4", "i8", ">i8")),
    *(_form(f"labels of {kind}", _ints(kind)) for kind in ("f2", "f4", ">f8", "u8", ">u2", "g")),
    _form("a list", list),
    _form("a tuple", tuple),
    _form("objects", lambda values: np.array(values, object)),
    _form("numpy's numbers in a list", lambda values: [np.int32(one) for one in values]),
    _form("a column", lambda values: np.array(values)[:, None]),
    _form("backwards", lambda values: np.array(values[::-1])[::-1]),
    _form("a Series", pd.Series),
    _form("a Series of Int64", lambda values: pd.Series(values, dtype="Int64")),
    _form("a Series of Float64", lambda values: pd.Series(values, dtype="Float64")),
    _form("a Series with an index", lambda values: pd.Series(values, index=range(N)[::-1])),
    _form("a Categorical", lambda values: pd.Categorical(values), "odd"),
    _form("an Index", pd.Index),
    _form("a tensor", torch.tensor),
    _form("a tensor of int8", lambda values: torch.tensor(values, dtype=torch.int8)),
    _form("a tensor of float16", lambda values: torch.tensor(values, dtype=torch.float16)),
    _form("a tensor of bfloat16", lambda values: torch.tensor(values, dtype=torch.bfloat16)),
    _form("np.matrix", lambda values: _matrix(values).T),
    *(_gap(f"{gap!r} in a list", gap, list) for gap in (None, float("nan"), np.nan, pd.NA, -1)),
    _gap("-1 among integers", -1, np.array),
    _gap("NaN among floats", np.nan, lambda values: np.array(values, "f4")),
    _gap("NaN among >f8", np.nan, lambda values: np.array(values, ">f8")),
    _gap("NA in Int64", pd.NA, lambda values: pd.Series(values, dtype="Int64")),
    _gap("NA in Float64", pd.NA, lambda values: pd.Series(values, dtype="Float64")),
    _gap("NaT in a list", pd.NaT, list, "odd"),
    _masked,
    _large,
    _large,
    _wrong_labels,
    _wrong_labels,
)
_WORD_LABELS = (
    _form("a list", list),
    _form("a tuple", tuple),
    _form("objects", lambda values: np.array(values, object)),
    _form("a Series", lambda values: pd.Series(values, dtype=object)),
    _form("a Series with an index", lambda v: pd.Series(v, index=range(N)[::-1], dtype=object)),
    _form("numpy's words in a list", lambda v: [np.str_(x) if x == str(x) else x for x in v]),
    *(_gap(f"{gap!r} in a list", gap, list) for gap in (None, float("nan"), pd.NA, np.nan)),
    _gap("NaT in a list", pd.NaT, list, "odd"),
    _wrong_labels,
)


# Features: what they mean is a matrix


def features(random: Random) -> Form:
    """The features of N nodes; halves, unless float64 is asked to keep what it has."""
    whole = np.array([[random.randint(-8, 8) / 2 for _ in range(3)] for _ in range(N)])
    fine = whole + 0.1
    X, form = random.choice(
        (
            *((whole, f"X of {kind}") for kind in ("f2", "f4", "f8", ">f4", ">f8", "g")),
            *((fine, f"X of {kind}") for kind in ("f8", ">f8")),
            *((whole, name) for name in _FEATURES),
            *((fine, name) for name in ("in Fortran's order", "each second row", "csr", "a list")),
        )
    )
    if form.startswith("X of "):
        return Form(form, X.astype(form[5:]), X)
    if form in _ROUNDED:
        X = np.round(X) * 2
    value, sort = _FEATURES[form](X)
    return Form(f"X {form}", value, X, sort)


def _with(X: Any, i: int, j: int, value: Any, kind: Any = object) -> Any:
    found = X.astype(kind)
    found[i, j] = value
    return found


def _mask_of(X: Any) -> Any:
    return np.ma.array(X, mask=np.eye(N, 3, dtype=bool))


_ROUNDED = ("int8", "int64", "int16, >", "a tensor of int64")
_FEATURES: dict[str, Callable[[Any], tuple[Any, Sort]]] = {
    "int8": lambda X: (X.astype("i1"), "right"),
    "int64": lambda X: (X.astype("i8"), "right"),
    "int16, >": lambda X: (X.astype(">i2"), "right"),
    "in Fortran's order": lambda X: (np.asfortranarray(X), "right"),
    "each second row": lambda X: (np.repeat(X, 2, 0)[::2], "right"),
    "backwards": lambda X: (X[::-1].copy()[::-1], "right"),
    "read only": lambda X: (np.broadcast_to(X, X.shape), "right"),
    "np.matrix": lambda X: (_matrix(X), "right"),
    "a list": lambda X: (X.tolist(), "right"),
    "a frame": lambda X: (pd.DataFrame(X), "right"),
    "a frame of Float64": lambda X: (pd.DataFrame(X).astype("Float64"), "odd"),
    "objects": lambda X: (X.astype(object), "odd"),
    "a tensor": lambda X: (torch.tensor(X), "odd"),
    "a tensor of int64": lambda X: (torch.tensor(X.astype(int)), "odd"),
    "a tensor with a gradient": lambda X: (torch.tensor(X, requires_grad=True), "odd"),
    "an unmasked array": lambda X: (np.ma.array(X), "odd"),
    **{
        name: (lambda X, name=name: (getattr(sp, f"{name}_array")(X), "right"))  # type: ignore[misc]
        for name in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
    },
    "csr_matrix": lambda X: (sp.csr_matrix(X), "right"),
    "csr of >f8": lambda X: (_bare_csr(X, ">f8"), "odd"),
    "csr of objects": lambda X: (_bare_csr(X, object), "odd"),
    "csr with long indices": lambda X: (_long(X), "right"),
    "coo that adds up": lambda X: (_twice(X), "right"),
    "masked": lambda X: (_mask_of(X), "wrong"),
    "complex": lambda X: (X + 1j, "wrong"),
    "NaN": lambda X: (_with(X, 3, 1, np.nan, float), "wrong"),
    "infinite": lambda X: (_with(X, 3, 1, -np.inf, float), "wrong"),
    "NA in a frame": lambda X: (pd.DataFrame(_with(X, 3, 1, pd.NA)), "wrong"),
    "None among objects": lambda X: (_with(X, 3, 1, None), "wrong"),
    "a word among objects": lambda X: (_with(X, 3, 1, "x"), "wrong"),
    "words": lambda X: (X.astype(str), "wrong"),
    "dates": lambda X: (X.astype("i8").astype("M8[s]"), "wrong"),
    "flat": lambda X: (X.ravel(), "wrong"),
    "three dimensions": lambda X: (X[None], "wrong"),
    "ragged": lambda X: ([*X.tolist()[:-1], [1.0]], "wrong"),
    "beyond float64": lambda X: (_with(X, 3, 1, 10**400), "wrong"),
    "no rows": lambda X: (X[:0], "wrong"),
    "a number": lambda X: (3, "wrong"),
    "None": lambda X: (None, "wrong"),
    "a word": lambda X: ("X", "wrong"),
}


def _bare_csr(X: Any, kind: Any) -> Any:
    found = sp.csr_array(X)
    found.data = found.data.astype(kind)
    return found


def _long(X: Any) -> Any:
    found = sp.csr_array(X)
    found.indices, found.indptr = found.indices.astype("i8"), found.indptr.astype("i8")
    return found


def _twice(X: Any) -> Any:
    rows, columns = np.indices(X.shape).reshape(2, -1)
    halves = np.concatenate([X.ravel() / 2] * 2)
    return sp.coo_array((halves, (np.tile(rows, 2), np.tile(columns, 2))), X.shape)


# Adjacency matrices: what they mean is (low, high) → weight


def adjacency(random: Random) -> Form:
    """The edges between N nodes, in both directions."""
    A = np.zeros((N, N))
    weighted = random.random() < 0.5
    for u in range(N):
        v = (u + random.randint(1, 4)) % N
        A[u, v] = A[v, u] = random.randint(1, 6) / 2 if weighted else 1
    form = random.choice(list(_ADJACENCIES))
    if form in _WHOLE:
        A = np.ceil(A)
    if form == "of bool":
        A = (A > 0).astype(float)
    value, sort = _ADJACENCIES[form](A)
    pairs = zip(*map(np.ndarray.tolist, np.nonzero(np.triu(A))), strict=True)
    return Form(f"A {form}", value, {(u, v): float(A[u, v]) for u, v in pairs}, sort)


def _stored_zeros(A: Any) -> Any:
    rows, columns = np.indices(A.shape).reshape(2, -1)
    return sp.coo_array((A.ravel(), (rows, columns)), A.shape)


def _masked_edge(A: Any) -> Any:
    u, v = (int(one[0]) for one in np.nonzero(np.triu(A)))
    hidden = np.zeros(A.shape, bool)
    hidden[u, v] = hidden[v, u] = True
    return np.ma.array(A, mask=hidden)


def _changed(A: Any, value: Any, kind: Any = float) -> Any:
    u, v = (int(one[0]) for one in np.nonzero(np.triu(A)))
    found = A.astype(kind)
    found[u, v] = found[v, u] = value
    return found


def _one_way(A: Any) -> Any:
    found = A.copy()
    u, v = (int(one[0]) for one in np.nonzero(np.triu(A)))
    found[u, v] = 0
    return found


_WHOLE = ("of int8", "of uint64", "of int64 >")
_ADJACENCIES: dict[str, Callable[[Any], tuple[Any, Sort]]] = {
    **{
        f"{name}_{kind}": (lambda A, n=name, k=kind: (getattr(sp, f"{n}_{k}")(A), "right"))  # type: ignore[misc]
        for name in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
        for kind in ("array", "matrix")
    },
    "of bool": lambda A: (A.astype(bool), "right"),
    "of int8": lambda A: (A.astype("i1"), "right"),
    "of uint64": lambda A: (A.astype("u8"), "right"),
    "of int64 >": lambda A: (A.astype(">i8"), "right"),
    "of float16": lambda A: (A.astype("f2"), "right"),
    "of float64 >": lambda A: (A.astype(">f8"), "right"),
    "of longdouble": lambda A: (A.astype("g"), "right"),
    "as a list": lambda A: (A.tolist(), "right"),
    "as np.matrix": lambda A: (_matrix(A), "right"),
    "in Fortran's order": lambda A: (np.asfortranarray(A), "right"),
    "with stored zeros": lambda A: (_stored_zeros(A), "right"),
    "that adds up": lambda A: (_twice(A), "right"),
    "as a frame": lambda A: (pd.DataFrame(A), "right"),
    "as a frame of Float64": lambda A: (pd.DataFrame(A).astype("Float64"), "odd"),
    "as a tensor": lambda A: (torch.tensor(A), "odd"),
    "of objects": lambda A: (A.astype(object), "odd"),
    "unmasked": lambda A: (np.ma.array(A), "odd"),
    "masked": lambda A: (_masked_edge(A), "wrong"),
    "complex": lambda A: (A.astype(complex), "wrong"),
    "of words": lambda A: (A.astype(str), "wrong"),
    "NaN": lambda A: (_changed(A, np.nan), "wrong"),
    "infinite": lambda A: (_changed(A, np.inf), "wrong"),
    "negative": lambda A: (_changed(A, -1.0), "wrong"),
    "negative, stored": lambda A: (sp.coo_array(_changed(A, -1.0)), "wrong"),
    "one way": lambda A: (_one_way(A), "wrong"),
    "too small": lambda A: (A[:-1, :-1], "wrong"),
    "not square": lambda A: (A[:-1], "wrong"),
    "flat": lambda A: (A.ravel(), "wrong"),
    "three dimensions": lambda A: (A[None], "wrong"),
    "None": lambda A: (None, "wrong"),
    "a word": lambda A: ("A", "wrong"),
    "ragged": lambda A: ([*A.tolist()[:-1], [1.0]], "wrong"),
    "NaN among objects": lambda A: (_changed(A, float("nan"), object), "wrong"),
}
