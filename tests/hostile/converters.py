"""Arrays, frames and graphs of other libraries, given to the converters and the estimator."""

import datetime
import decimal
import fractions
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
import torch

import gcnii
from gcnii.graph import Graph
from hostile.judging import Answer, Silent, Wrong, answer_of
from hostile.odd_arrays import Form, N, adjacency, features, labels


def judge(graph: Graph, told: str, **forms: Form) -> None:
    """Raise Silent unless the graph is what the forms of its parts mean."""
    if "y" in forms and (found := names_of(graph)) != forms["y"].means:
        raise Silent(f"{told}: labels {found}, not {forms['y'].means}")
    if "X" in forms:
        X = graph.X.toarray() if sp.issparse(graph.X) else np.asarray(graph.X)
        if not np.array_equal(X, forms["X"].means.astype(X.dtype)):
            raise Silent(f"{told}: other features")
        if forms["X"].told.endswith("f8") and X.dtype != np.float64:
            raise Silent(f"{told}: float64 became {X.dtype}")
    if "A" in forms and (found := edges_of(graph)) != forms["A"].means:
        raise Silent(f"{told}: edges {found}, not {forms['A'].means}")


def names_of(graph: Graph) -> list[str | None]:
    """The name of each node's class, None if it is unknown."""
    names = graph.classes or tuple(map(str, range(graph.k)))
    return [None if label < 0 else names[label] for label in graph.labels.tolist()]


def edges_of(graph: Graph) -> dict[tuple[int, int], float]:
    """(low, high) → weight."""
    weights = np.ones(graph.edges.shape[1]) if graph.weights is None else graph.weights
    found = zip(*graph.edges.tolist(), weights.tolist(), strict=True)
    return {(min(u, v), max(u, v)): weight for u, v, weight in found}


def judge_forms(answer: Answer, told: str, **forms: Form) -> None:
    """Raise Wrong unless the answer to these forms is proper."""
    sorts = {form.sort for form in forms.values()}
    if answer.value is None:
        if sorts == {"right"}:
            raise Wrong(f"{told}: refused: {answer.sentence}")
        return
    if "wrong" in sorts and not answer.warnings:
        raise Silent(f"{told}: accepted as {answer.value!r}")
    judge(answer.value, told, **{name: one for name, one in forms.items() if one.sort != "wrong"})


class Matrices:
    """from_scipy takes a matrix in any form as what it means, or refuses it."""

    name, few, quick, long = "matrices", 15, 200, 2000

    def __init__(self, home: Path):
        """Nothing is shared."""

    def attempt(self, random: Random, folder: Path) -> None:
        """Three arguments, each in a form of its own."""
        forms = {"A": adjacency(random), "X": features(random), "y": labels(random)}
        told = ", ".join(form.told for form in forms.values())
        A, X, y = (form.value for form in forms.values())
        directed = random.choice((None, None, False))
        if forms["A"].told == "A one way" and directed is False:
            return
        answer = answer_of(lambda: gcnii.from_scipy(A, X, y, directed=directed))
        judge_forms(answer, told, **forms)

    def close(self) -> None:
        """Nothing to end."""


# torch_geometric


def _tensor(value: Any) -> Any:
    return torch.tensor(np.ascontiguousarray(value))


class Pyg:
    """from_pyg takes tensors in any form as what they mean, or refuses them."""

    name, few, quick, long = "pyg", 15, 200, 1000

    def __init__(self, home: Path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it imports
            from torch_geometric.data import Data
        self.made = Data

    def attempt(self, random: Random, folder: Path) -> None:
        """A Data whose x, edge_index, edge_weight, y or masks are odd."""
        A = np.zeros((N, N))
        for u in range(N):
            v = (u + random.randint(1, 4)) % N
            A[u, v] = A[v, u] = random.randint(1, 6) / 2
        ends = np.stack(np.nonzero(A))
        X = np.array([[random.randint(-8, 8) / 2 for _ in range(3)] for _ in range(N)])
        y = [random.randrange(3) for _ in range(N - 3)] + [0, 1, 2]
        data = self.made(x=_tensor(X), edge_index=_tensor(ends), y=torch.tensor(y))
        data.edge_weight = _tensor(A[tuple(ends)])
        pairs = zip(*map(np.ndarray.tolist, np.nonzero(np.triu(A))), strict=True)
        names = sorted({str(one) for one in y})
        forms = {
            "A": Form("", None, {(u, v): float(A[u, v]) for u, v in pairs}),
            "X": Form("", None, X),
            "y": Form("", None, [names[names.index(str(one))] for one in y]),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch, about layouts
            told, sort = random.choice(PYG)(random, data)
        forms["y"] = forms["y"]._replace(sort=sort)
        if told.startswith("labels"):
            forms["y"] = labels_of(told, data, y, sort)
        judge_forms(answer_of(lambda: gcnii.from_pyg(data)), told, **forms)

    def close(self) -> None:
        """Nothing to end."""


def labels_of(told: str, data: Any, y: list[int], sort: Any) -> Form:
    """What changed labels mean."""
    gone = {int(word) for word in told.split() if word.isdigit()} if "unknown" in told else set()
    return Form(told, None, [None if i in gone else str(one) for i, one in enumerate(y)], sort)


def _pyg_x(random: Random, data: Any) -> tuple[str, Any]:
    x = data.x
    made: dict[str, Callable[[], tuple[Any, str]]] = {
        "bfloat16": lambda: (x.bfloat16(), "right"),
        "float16": lambda: (x.half(), "right"),
        "float32": lambda: (x.float(), "right"),
        "with a gradient": lambda: (x.clone().requires_grad_(), "right"),
        "sparse": lambda: (x.to_sparse(), "right"),
        "sparse csr": lambda: (x.to_sparse_csr(), "right"),
        "sparse csc": lambda: (x.to_sparse_csc(), "odd"),
        "bsr": lambda: (x.to_sparse_bsr((1, 1)), "odd"),
        "backwards": lambda: (x.flip(0).flip(0), "right"),
        "transposed": lambda: (x.T.contiguous().T, "right"),
        "numpy": lambda: (x.numpy(), "odd"),
        "a list": lambda: (x.tolist(), "odd"),
        "complex": lambda: (x + 0j, "wrong"),
        "NaN": lambda: (x / 0 * 0, "wrong"),
        "flat": lambda: (x.reshape(-1), "wrong"),
        "three dimensions": lambda: (x[None], "wrong"),
        "None": lambda: (None, "wrong"),
        "words": lambda: (["a"] * N, "wrong"),
        "quantized": lambda: (torch.quantize_per_tensor(x.float(), 0.5, 0, torch.qint8), "odd"),
        "meta": lambda: (x.to("meta"), "wrong"),
    }
    how = random.choice(list(made))
    data.x, sort = made[how]()
    return f"x {how}", sort


def _pyg_edges(random: Random, data: Any) -> tuple[str, Any]:
    ends = data.edge_index
    made: dict[str, Callable[[], tuple[Any, str]]] = {
        "int32": lambda: (ends.int(), "right"),
        "int16": lambda: (ends.short(), "right"),
        "uint8": lambda: (ends.byte(), "right"),
        "numpy": lambda: (ends.numpy(), "odd"),
        "a list": lambda: (ends.tolist(), "odd"),
        "transposed": lambda: (ends.T, "wrong"),
        "floats": lambda: (ends.float(), "odd"),
        "halves": lambda: (ends + 0.5, "wrong"),
        "bools": lambda: (ends.bool(), "wrong"),
        "negative": lambda: (ends - 1, "wrong"),
        "beyond": lambda: (ends + 1, "wrong"),
        "huge": lambda: (ends + 2**62, "wrong"),
        "sparse": lambda: (ends.to_sparse(), "odd"),
        "a sparse square": lambda: (
            torch.sparse_coo_tensor(ends, data.edge_weight, (N, N)),
            "odd",
        ),
        "None": lambda: (None, "wrong"),
        "flat": lambda: (ends.reshape(-1), "wrong"),
        "three rows": lambda: (torch.cat([ends, ends[:1]]), "wrong"),
    }
    how = random.choice(list(made))
    data.edge_index, sort = made[how]()
    return f"edges {how}", sort


def _pyg_weights(random: Random, data: Any) -> tuple[str, Any]:
    w = data.edge_weight
    made: dict[str, Callable[[], tuple[Any, str]]] = {
        "float32": lambda: (w.float(), "right"),
        "bfloat16": lambda: (w.bfloat16(), "right"),
        "a column": lambda: (w[:, None], "right"),
        "numpy": lambda: (w.numpy(), "odd"),
        "a list": lambda: (w.tolist(), "odd"),
        "a tuple": lambda: (tuple(w.tolist()), "odd"),
        "sparse": lambda: (w.to_sparse(), "odd"),
        "with a gradient": lambda: (w.clone().requires_grad_(), "right"),
        "too short": lambda: (w[:-1], "wrong"),
        "two columns": lambda: (torch.stack([w, w], 1), "wrong"),
        "negative": lambda: (-w, "wrong"),
        "NaN": lambda: (w * np.nan, "wrong"),
        "infinite": lambda: (w * np.inf, "wrong"),
        "complex": lambda: (w + 1j, "wrong"),
        "words": lambda: (["1"] * len(w), "wrong"),
        "a number": lambda: (1.0, "wrong"),
    }
    how = random.choice(list(made))
    data.edge_weight, sort = made[how]()
    return f"weights {how}", sort


def _pyg_y(random: Random, data: Any) -> tuple[str, Any]:
    y = data.y
    i = random.randrange(N)
    gap = y.clone().double()
    gap[i] = np.nan
    made: dict[str, Callable[[], tuple[Any, str]]] = {
        "int8": lambda: (y.char(), "right"),
        "uint8": lambda: (y.byte(), "right"),
        "float32": lambda: (y.float(), "right"),
        "bfloat16": lambda: (y.bfloat16(), "right"),
        "float16": lambda: (y.half(), "right"),
        "a column": lambda: (y[:, None], "right"),
        "numpy": lambda: (y.numpy(), "odd"),
        "a list": lambda: (y.tolist(), "odd"),
        "sparse": lambda: (y.to_sparse(), "odd"),
        f"NaN, unknown {i}": lambda: (gap, "right"),
        f"NaN of bfloat16, unknown {i}": lambda: (gap.bfloat16(), "right"),
        f"-1, unknown {i}": lambda: (torch.nan_to_num(gap, -1).long(), "right"),
        f"None, unknown {i}": lambda: ([None if j == i else int(y[j]) for j in range(N)], "odd"),
        "complex": lambda: (y + 1j, "wrong"),
        "too short": lambda: (y[:-1], "wrong"),
        "-2": lambda: (y - 2, "wrong"),
        "infinite": lambda: (y * np.inf, "wrong"),
    }
    how = random.choice(list(made))
    data.y, sort = made[how]()
    return f"labels {how}", sort


def _pyg_masks(random: Random, data: Any) -> tuple[str, Any]:
    order = torch.arange(N) % 3
    for i, role in enumerate(("train", "val", "test")):
        setattr(data, f"{role}_mask", order == i)
    role = random.choice(("train", "val", "test"))
    mask = getattr(data, f"{role}_mask")
    made: dict[str, Callable[[], tuple[Any, str]]] = {
        "numbers": lambda: (mask.byte(), "right"),
        "int64": lambda: (mask.long(), "odd"),
        "numpy": lambda: (mask.numpy(), "odd"),
        "a list": lambda: (mask.tolist(), "odd"),
        "a column": lambda: (mask[:, None], "right"),
        "row numbers": lambda: (mask.nonzero().reshape(-1), "wrong"),
        "twos": lambda: (mask.byte() * 2, "wrong"),
        "negative": lambda: (-mask.long(), "wrong"),
        "floats": lambda: (mask.float(), "odd"),
        "too short": lambda: (mask[:-1], "wrong"),
        "words": lambda: (["yes"] * N, "wrong"),
        "sparse": lambda: (mask.to_sparse(), "odd"),
    }
    how = random.choice(list(made))
    value, sort = made[how]()
    setattr(data, f"{role}_mask", value)
    return f"{role}_mask {how}", sort


PYG = (_pyg_x, _pyg_edges, _pyg_weights, _pyg_y, _pyg_masks)


# Data frames

Cells = list[Any]


class Frames:
    """from_frames takes a column in any type as what it means, or refuses it."""

    name, few, quick, long = "frames", 15, 200, 2000

    def __init__(self, home: Path):
        """Nothing is shared."""

    def attempt(self, random: Random, folder: Path) -> None:
        """A column of one of the frames in another type; beside it, the plain frames."""
        nodes: dict[str, Cells] = {
            "id": [str(i + 1) for i in range(N)],
            "age": [float(random.randint(1, 90)) for _ in range(N)],
            "town": [random.choice(("Oslo", "Rome", "Lima")) for _ in range(N)],
            "label": [str(i % 2) for i in range(N)],
            "split": [("train", "train", "val", "test")[i // 2 % 4] for i in range(N)],
        }
        edges: dict[str, Cells] = {
            "source": [str(i + 1) for i in range(N)],
            "target": [str((i + random.randint(1, 4)) % N + 1) for i in range(N)],
            "weight": [random.randint(1, 6) / 2 for _ in range(N)],
        }
        column, gaps = random.choice(tuple(COLUMNS)), random.random() < 0.4
        table = nodes if column in nodes else edges
        if gaps and column in ("age", "town", "label"):
            table[column][random.randrange(2, N)] = None
            table.pop("split", None) if column == "label" else None
        told, odd, sort = self._odd(random, table, column)
        given = (odd, self._plain(edges)) if table is nodes else (self._plain(nodes), odd)
        plain = answer_of(lambda: gcnii.from_frames(self._plain(nodes), self._plain(edges)))
        if plain.value is None:
            raise Wrong(f"the plain frames are refused: {plain.sentence}")
        answer = answer_of(lambda: gcnii.from_frames(*given))
        told = f"{column} {told}"
        if answer.value is None:
            if sort == "right":
                raise Wrong(f"{told}: refused: {answer.sentence}")
        elif sort == "wrong" and not answer.warnings:
            raise Silent(f"{told}: accepted as {answer.value!r}")
        elif sort != "wrong":
            equal(answer.value, plain.value, told)

    @staticmethod
    def _plain(table: dict[str, Cells]) -> Any:
        return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in table.items()})

    def _odd(self, random: Random, table: dict[str, Cells], column: str) -> tuple[str, Any, str]:
        """The table with this column in another type."""
        cells = table[column]
        gaps = None in cells
        if COLUMNS[column] == "whole":
            cells = [None if one is None else int(one) for one in cells]
        kinds = {"whole": WHOLE, "number": NUMBERS, "text": TEXTS}[COLUMNS[column]]
        told = random.choice([kind for kind in kinds if not (gaps and kind in GAPLESS)])
        make, sort = kinds[told]
        made = make(cells)
        rest = {name: values for name, values in table.items() if name != column}
        if isinstance(made, pl.Series):
            frame: Any = pl.DataFrame({**rest, column: made}).select(list(table))
        elif isinstance(made, pa.Array | pa.ChunkedArray):
            frame = pa.table({**{k: pa.array(v) for k, v in rest.items()}, column: made})
            frame = frame.select(list(table))
        else:
            frame = self._plain(rest)
            frame[column] = made
            frame = frame[list(table)]
        return told + (" with a gap" if gaps else ""), frame, sort

    def close(self) -> None:
        """Nothing to end."""


def equal(graph: Graph, other: Graph, told: str) -> None:
    """Raise Silent unless both graphs are the same, by names."""
    for name in ("nodes", "classes", "features"):
        if getattr(graph, name) != getattr(other, name):
            raise Silent(f"{told}: {name} {getattr(graph, name)}, not {getattr(other, name)}")
    if graph.fingerprint != other.fingerprint:
        parts = [
            name
            for name in ("X", "edges", "y", "weights")
            if not np.array_equal(
                *(
                    np.asarray(one.toarray() if sp.issparse(one) else one)
                    for one in (getattr(graph, name), getattr(other, name))
                )
            )
        ]
        raise Silent(f"{told}: other {parts or 'splits'}")


COLUMNS = {"id": "whole", "source": "whole", "label": "whole", "age": "number"}
COLUMNS |= {"weight": "number", "town": "text", "split": "text"}
GAPLESS = ("int8", "int64 >", "uint64", "float64 of whole numbers", "bytes", "float16 >")
GAPLESS += ("int64", "polars u64", "objects of Fraction", "pyarrow dictionary of integers")
WHOLE: dict[str, tuple[Callable[[Cells], Any], str]] = {
    "int8": (lambda v: np.array(v, "i1"), "right"),
    "int64": (lambda v: np.array(v, "i8"), "right"),
    "int64 >": (lambda v: np.array(v, ">i8"), "odd"),
    "uint64": (lambda v: np.array(v, "u8"), "right"),
    "float64 of whole numbers": (lambda v: np.array(v, "f8"), "right"),
    "Int64": (lambda v: pd.array(v, dtype="Int64"), "right"),
    "UInt8": (lambda v: pd.array(v, dtype="UInt8"), "right"),
    "Float64": (lambda v: pd.array(v, dtype="Float64"), "right"),
    "int64[pyarrow]": (lambda v: pd.array(v, dtype="int64[pyarrow]"), "right"),
    "double[pyarrow]": (lambda v: pd.array(v, dtype="double[pyarrow]"), "right"),
    "string": (lambda v: pd.array([None if x is None else str(x) for x in v], "string"), "right"),
    "category": (lambda v: pd.Categorical([None if x is None else str(x) for x in v]), "right"),
    "category of integers": (lambda v: pd.Categorical(v), "odd"),
    "objects": (lambda v: pd.Series(v, dtype=object), "right"),
    "objects of numpy": (lambda v: pd.Series([x if x is None else np.int16(x) for x in v]), "odd"),
    "objects of Fraction": (
        lambda v: pd.Series([fractions.Fraction(x) for x in v], dtype=object),
        "odd",
    ),
    "Sparse": (lambda v: pd.arrays.SparseArray([np.nan if x is None else x for x in v]), "odd"),
    "polars i16": (lambda v: pl.Series(v, dtype=pl.Int16), "right"),
    "polars u64": (lambda v: pl.Series(v, dtype=pl.UInt64), "right"),
    "polars f64": (lambda v: pl.Series(v, dtype=pl.Float64), "right"),
    "polars text": (lambda v: pl.Series([None if x is None else str(x) for x in v]), "right"),
    "polars categorical": (
        lambda v: pl.Series([None if x is None else str(x) for x in v], dtype=pl.Categorical),
        "right",
    ),
    "polars decimal": (lambda v: pl.Series(v).cast(pl.Decimal(10, 0)), "odd"),
    "polars objects": (lambda v: pl.Series(v, dtype=pl.Object), "odd"),
    "pyarrow int32": (lambda v: pa.array(v, pa.int32()), "right"),
    "pyarrow text": (lambda v: pa.array([None if x is None else str(x) for x in v]), "right"),
    "pyarrow large text": (
        lambda v: pa.array([None if x is None else str(x) for x in v], pa.large_string()),
        "right",
    ),
    "pyarrow dictionary of integers": (lambda v: pa.array(v).dictionary_encode(), "odd"),
    "lists": (lambda v: pd.Series([[x] for x in v], dtype=object), "wrong"),
    "complex": (lambda v: np.array([0 if x is None else x for x in v], complex), "wrong"),
    "bytes": (lambda v: pd.Series([str(x).encode() for x in v], dtype=object), "wrong"),
    "polars lists": (lambda v: pl.Series([[x] for x in v]), "wrong"),
    "polars structs": (lambda v: pl.Series([{"a": x} for x in v]), "wrong"),
}
NUMBERS: dict[str, tuple[Callable[[Cells], Any], str]] = {
    "float16 >": (lambda v: np.array(v, ">f2"), "odd"),
    "float32": (lambda v: np.array([np.nan if x is None else x for x in v], "f4"), "right"),
    "float64 >": (lambda v: np.array([np.nan if x is None else x for x in v], ">f8"), "odd"),
    "longdouble": (lambda v: np.array([np.nan if x is None else x for x in v], "g"), "odd"),
    "Float64": (lambda v: pd.array(v, dtype="Float64"), "right"),
    "Float32": (lambda v: pd.array(v, dtype="Float32"), "right"),
    "double[pyarrow]": (lambda v: pd.array(v, dtype="double[pyarrow]"), "right"),
    "text": (lambda v: pd.Series([x if x is None else str(x) for x in v], dtype=object), "right"),
    "objects": (lambda v: pd.Series(v, dtype=object), "right"),
    "Decimal": (
        lambda v: pd.Series([x if x is None else decimal.Decimal(x) for x in v], dtype=object),
        "odd",
    ),
    "Sparse": (lambda v: pd.arrays.SparseArray([np.nan if x is None else x for x in v]), "odd"),
    "polars f32": (lambda v: pl.Series(v, dtype=pl.Float32), "right"),
    "polars decimal": (lambda v: pl.Series(v).cast(pl.Decimal(10, 2)), "odd"),
    "pyarrow half": (
        lambda v: pa.array([x if x is None else np.float16(x) for x in v], pa.float16()),
        "odd",
    ),
    "pyarrow double": (lambda v: pa.array(v, pa.float64()), "right"),
    "pyarrow decimal": (
        lambda v: pa.array([x if x is None else decimal.Decimal(x) for x in v]),
        "odd",
    ),
    "complex": (lambda v: np.array([0 if x is None else x for x in v], complex) + 1j, "wrong"),
    "infinite": (lambda v: np.array([np.inf, *[1.0] * (N - 1)]), "wrong"),
    "lists": (lambda v: pd.Series([[x] for x in v], dtype=object), "wrong"),
    "polars lists": (lambda v: pl.Series([[x] for x in v]), "wrong"),
}
TEXTS: dict[str, tuple[Callable[[Cells], Any], str]] = {
    "string": (lambda v: pd.array(v, "string"), "right"),
    "string[pyarrow]": (lambda v: pd.array(v, "string[pyarrow]"), "right"),
    "category": (lambda v: pd.Categorical(v), "right"),
    "an ordered category": (lambda v: pd.Categorical(v, ordered=True), "right"),
    "category with others": (
        lambda v: pd.Categorical(v, sorted({x for x in v if x is not None} | {"zzz"})),
        "right",
    ),
    "numpy's words": (
        lambda v: pd.Series([x if x is None else np.str_(x) for x in v], dtype=object),
        "right",
    ),
    "polars text": (lambda v: pl.Series(v, dtype=pl.String), "right"),
    "polars categorical": (lambda v: pl.Series(v, dtype=pl.Categorical), "right"),
    "polars enum": (
        lambda v: pl.Series(v, dtype=pl.Enum(sorted({x for x in v if x is not None}))),
        "right",
    ),
    "pyarrow text": (lambda v: pa.array(v, pa.string()), "right"),
    "pyarrow dictionary": (lambda v: pa.array(v, pa.string()).dictionary_encode(), "right"),
    "pyarrow chunks": (
        lambda v: pa.chunked_array([pa.array(v[:5], pa.string()), pa.array(v[5:], pa.string())]),
        "right",
    ),
}


# networkx


class Networks:
    """from_networkx takes attributes of any type as what they mean, or refuses them."""

    name, few, quick, long = "networks", 15, 200, 1000

    def __init__(self, home: Path):
        """Nothing is shared."""

    def attempt(self, random: Random, folder: Path) -> None:
        """A graph of networkx, and one like it that is odd somewhere."""
        names = [f"p{i}" for i in range(N)]
        about: list[dict[str, Any]] = [
            {"age": float(random.randint(1, 90)), "town": random.choice(("Oslo", "Rome"))}
            | {"label": "ab"[i % 2]}
            for i in range(N)
        ]
        links = {}
        for i in range(N):
            pair = tuple(sorted((i, (i + random.randint(1, 4)) % N)))
            links[pair] = random.randint(2, 9) / 2
        plain = answer_of(lambda: gcnii.from_networkx(self._graph(names, about, links))).value
        how = random.choice(NETWORKS)
        G, told, sort = how(random, names, about, links, self._graph)
        answer = answer_of(lambda: gcnii.from_networkx(G))
        if answer.value is None:
            if sort == "right":
                raise Wrong(f"{told}: refused: {answer.sentence}")
        elif sort == "wrong" and not answer.warnings:
            raise Silent(f"{told}: accepted as {answer.value!r}")
        elif sort != "wrong":
            equal(answer.value, plain, told)

    @staticmethod
    def _graph(names: Any, about: Any, links: Any, kind: Any = nx.Graph) -> Any:
        G = kind()
        G.add_nodes_from(zip(names, about, strict=True))
        for (u, v), weight in links.items():
            G.add_edge(names[u], names[v], weight=weight)
        return G

    def close(self) -> None:
        """Nothing to end."""


def _nx_weight(random: Random, names: Any, about: Any, links: Any, make: Any) -> Any:
    pair = random.choice(list(links))
    value = links[pair]
    made: dict[str, tuple[Any, str]] = {
        "np.float64": (np.float64(value), "right"),
        "np.float32": (np.float32(value), "right"),
        "np.float16": (np.float16(value), "right"),
        "an array of one": (np.array(value), "odd"),
        "Decimal": (decimal.Decimal(value), "odd"),
        "Fraction": (fractions.Fraction(value), "odd"),
        "text": (str(value), "odd"),
        "a tensor": (torch.tensor(value), "odd"),
        "1_000": ("1_000", "wrong"),
        "Arabic digits": ("٣", "wrong"),
        "None": (None, "wrong"),
        "NaN": (np.nan, "wrong"),
        "inf": ("inf", "wrong"),
        "negative": (-1.0, "wrong"),
        "a list": ([1], "wrong"),
        "complex": (1 + 1j, "wrong"),
        "a word": ("heavy", "wrong"),
        "huge": (10**400, "wrong"),
        "bytes": (b"2", "wrong"),
        "a date": (datetime.date(2024, 1, 1), "wrong"),
    }
    how = random.choice(list(made))
    return make(names, about, links | {pair: made[how][0]}), f"weight {how}", made[how][1]


def _nx_attribute(random: Random, names: Any, about: Any, links: Any, make: Any) -> Any:
    i = random.randrange(N)
    value = about[i]["age"]
    made: dict[str, tuple[Any, str]] = {
        "an integer": (int(value), "right"),
        "np.float32": (np.float32(value), "right"),
        "np.int8": (np.int8(value), "right"),
        "text": (str(int(value)), "right"),
        "Decimal": (decimal.Decimal(value), "odd"),
        "an array of one": (np.array(value), "odd"),
        "a list": ([value], "wrong"),
        "a dict": ({"a": value}, "wrong"),
        "complex": (value + 1j, "wrong"),
        "infinite": (np.inf, "wrong"),
        "huge": (10**400, "wrong"),
        "an array": (np.array([1, 2]), "wrong"),
        "a tensor": (torch.ones(2), "wrong"),
    }
    how = random.choice(list(made))
    changed = [dict(one) for one in about]
    changed[i]["age"] = made[how][0]
    return make(names, changed, links), f"attribute {how}", made[how][1]


def _nx_label(random: Random, names: Any, about: Any, links: Any, make: Any) -> Any:
    made: dict[str, tuple[Any, str]] = {
        "np.str_": (np.str_, "right"),
        "bytes": (lambda x: x.encode(), "wrong"),
        "a list": (lambda x: [x], "wrong"),
        "a tuple": (lambda x: (x, x), "wrong"),
    }
    how = random.choice(list(made))
    changed = [one | {"label": made[how][0](one["label"])} for one in about]
    return make(names, changed, links), f"labels {how}", made[how][1]


def _nx_order(random: Random, names: Any, about: Any, links: Any, make: Any) -> Any:
    """The same graph: attributes, edges and ends in another order."""
    keys = random.sample(list(about[0]), len(about[0]))
    changed = [{key: one[key] for key in random.sample(keys, len(keys))} for one in about]
    pairs = random.sample(list(links.items()), len(links))
    turned = {(v, u) if random.random() < 0.5 else (u, v): weight for (u, v), weight in pairs}
    return make(names, changed, turned), "another order", "right"


def _nx_names(random: Random, names: Any, about: Any, links: Any, make: Any) -> Any:
    made: dict[str, tuple[Any, str]] = {
        "np.str_": ([np.str_(one) for one in names], "right"),
        "1 and '1'": ([1, "1", *names[2:]], "wrong"),
        "empty": (["", *names[1:]], "wrong"),
    }
    how = random.choice(list(made))
    found, sort = made[how]
    return make(found, about, links), f"names {how}", sort


def _nx_multi(random: Random, names: Any, about: Any, links: Any, make: Any) -> Any:
    """Parallel edges whose weights add up to the same."""
    G = make(names, about, {}, nx.MultiGraph)
    for (u, v), weight in links.items():
        shares = (weight,) if random.random() < 0.5 else (weight / 2, weight / 2)
        for share in shares:
            G.add_edge(names[u], names[v], weight=share)
    return G, "parallel edges", "right"


def _nx_thing(random: Random, names: Any, about: Any, links: Any, make: Any) -> Any:
    things = (None, 3, "graph", [], {}, nx.Graph, object(), np.eye(3), nx.Graph(), pd.DataFrame())
    thing = random.choice(things)
    return thing, f"{thing!r:.40} for a graph", "wrong"


NETWORKS = (_nx_weight, _nx_weight, _nx_attribute, _nx_attribute, _nx_label, _nx_order, _nx_order)
NETWORKS += (_nx_names, _nx_multi, _nx_thing)
ARRAYS = (Matrices, Pyg, Frames, Networks)
