"""Parameters of functions of gcnii, each given what it is not for."""

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import torch

import gcnii
from gcnii.data.tables.reading import READING
from gcnii.graph import Graph
from gcnii.results.result import Result
from hostile.folders import encoded, write
from hostile.judging import Silent, answer_of, nothing_written
from hostile.trainings import EDGES, ROWS

VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        7,
        2**31,
        2**63,
        10**30,
        -(10**30),
        0.0,
        -0.0,
        0.5,
        1.5,
        1e300,
    ),
    *(math.nan, math.inf, -math.inf, "", " ", "no", "yes", "false", "0", "1", "a", "label", "id"),
    *("x" * 5000, "\x1b[31m", "line\nline", "\0", "\udc80", "../..", b"", b"a", bytearray(b"a")),
    *([], [0], [None], ["a"], ["a", "a"], [[]], (), (0,), {}, {"a": 1}, {0: 0}, set(), {"a"}),
    *(range(0), range(3), object, object(), len, Ellipsis, NotImplemented, 1j, slice(1)),
    *(np.int8(1), np.float32(0.5), np.bool_(True), np.str_("a"), np.array(1), np.array([1, 2])),
    *(np.array([]), np.nan, np.datetime64("2024"), pd.NA, pd.NaT, pd.Series([1]), pd.DataFrame()),
    *(torch.tensor(1), torch.ones(2), Path("x"), Path("/dev/null"), iter([]), Exception("x")),
)


class Call(NamedTuple):
    """A function, the words that it is given, and what its answer means."""

    function: Callable[..., Any]
    given: dict[str, Any]
    meaning: Callable[[Any], Any]
    names: tuple[str, ...] = ()  # of its parameters, if its signature does not have them


class Words:
    """A parameter of the wrong type is refused in a sentence, or means what it is equal to.

    What is accepted must mean the same as the value that it equals, such as 1.0 for 1, or else be a
    value that the parameter has; a text or a container where a truth value belongs is neither.
    """

    name, few, quick, long = "words", 20, 300, 2500

    def __init__(self, home: Path):
        write(home / "people", encoded({"nodes.csv": ROWS, "edges.csv": EDGES}))
        self.graph = gcnii.load(home / "people")
        small = {"layers": 2, "width": 4, "epochs": 2, "patience": 2, "device": "cpu"}
        self.small: dict[str, Any] = small | {"threads": 1, "verbose": False}
        self.result = gcnii.fit(self.graph, **self.small)
        self.calls = dict(self._calls(home))
        self.parameters = {
            name: [one for one in parameters_of(call) if one != "given"]
            for name, call in self.calls.items()
        }

    def _calls(self, home: Path) -> Iterator[tuple[str, Call]]:
        nodes = pd.DataFrame(ROWS[1:], columns=ROWS[0])
        edges = pd.DataFrame(EDGES[1:], columns=EDGES[0])
        ring = np.roll(np.eye(24), 1, 0)
        both = torch.tensor(np.stack(np.nonzero(ring + ring.T)))
        data = SimpleNamespace(x=torch.eye(24), edge_index=both, y=torch.arange(24) % 2)
        G = nx.cycle_graph(24)
        nx.set_node_attributes(G, {i: {"age": i, "label": "ab"[i % 2]} for i in G})
        y = [0, 1] * 12
        yield "load", Call(partial(gcnii.load, home / "people"), {}, of_graph, READING)
        yield "from_frames", Call(gcnii.from_frames, {"nodes": nodes, "edges": edges}, of_graph)
        matrices = {"A": ring + ring.T, "X": np.eye(24), "y": y}
        yield "from_scipy", Call(gcnii.from_scipy, matrices, of_graph)
        yield "from_pyg", Call(gcnii.from_pyg, {"data": data}, of_graph)
        yield "from_networkx", Call(gcnii.from_networkx, {"G": G}, of_graph)
        graphs = [gcnii.load("csbm", n=60, seed=seed) for seed in range(3)]
        roles = ["train", "val", "test"]
        yield "join", Call(gcnii.join, {"graphs": graphs, "roles": roles}, of_graph)
        arrays = {"X": np.eye(24), "edges": np.stack(np.nonzero(ring)), "y": y}
        yield "Graph", Call(gcnii.Graph, arrays, of_graph)
        masks = {role: np.arange(24) % 3 == i for i, role in enumerate(roles)}
        yield (
            "Split",
            Call(gcnii.Split, masks, lambda s: [getattr(s, one).tolist() for one in masks]),
        )
        yield "fit", Call(gcnii.fit, {"graph": self.graph, **self.small}, of_result)

    def attempt(self, random: Random, folder: Path) -> None:
        """One parameter of one function is something else."""
        which = random.choice(list(self.calls))
        call = self.calls[which]
        name = random.choice(self.parameters[which])
        value = random.choice(VALUES)
        told = f"{which}({name}={value!r:.60})"
        if name in ("checkpoint", "verbose", "callbacks", "offline"):
            value = random.choice((1j, [0], object, {"a": 1}))  # paths have a kind of their own
        with nothing_written(folder):
            answer = answer_of(lambda: call.function(**call.given | {name: value}))
        if answer.value is None:
            return
        found = call.meaning(answer.value)
        if name in ("directed", "multilabel") and not is_truth(value):
            raise Silent(f"{told}: accepted as a truth value")
        if name in call.given:
            return  # data have kinds of their own: no traceback is all that is asked here
        for plain in equals(value):
            other = answer_of(lambda plain=plain: call.function(**call.given | {name: plain}))
            if other.value is not None and call.meaning(other.value) != found:
                raise Silent(f"{told}: does not mean the same as {plain!r}")

    def close(self) -> None:
        """Nothing to end."""


def parameters_of(call: Call) -> tuple[str, ...]:
    """The names of what a function can be given."""
    return call.names or tuple(inspect.signature(call.function).parameters)


def is_truth(value: Any) -> bool:
    """Whether a value is one of the two truth values, or equal to one."""
    number = isinstance(value, bool | int | float | np.number | np.bool_)
    return value is None or (number and value in (0, 1))


def equals(value: Any) -> Iterator[Any]:
    """Plain values that are equal to an odd one."""
    with suppress(Exception):
        if isinstance(value, float | np.floating) and value == int(value):
            yield int(value)
    if isinstance(value, np.generic):
        yield value.item()
    if isinstance(value, np.str_):
        yield str(value)


def of_graph(graph: Graph) -> Any:
    """What a graph is, but for its name."""
    return graph.fingerprint, graph.nodes, graph.classes, graph.features, graph.directed


def of_split(split: gcnii.Split) -> Any:
    """The three masks."""
    return [getattr(split, role).tolist() for role in ("train", "val", "test")]


def of_result(result: Result) -> Any:
    """What a training ends with."""
    return [run.summary() | {"seconds": 0} for run in result.runs]


# Graphs that are joined


class Joins:
    """join adds up nodes, edges and labels by name, or refuses; nothing is taken for another."""

    name, few, quick, long = "joins", 20, 100, 500

    def __init__(self, home: Path):
        """Nothing is shared."""

    def attempt(self, random: Random, folder: Path) -> None:
        """Three graphs whose classes, features, directions or weights differ."""
        graphs = [self._drawn(random, i) for i in range(3)]
        roles = ["train", "val", "test"]
        answer = answer_of(lambda: gcnii.join(graphs, roles))
        told = " + ".join(f"{g.classes} {g.features} {g.d} {g.directed}" for g in graphs)
        if answer.value is None:
            if len({(g.classes, g.features, g.d, g.directed, g.weighted) for g in graphs}) == 1:
                raise Silent(f"{told}: refused: {answer.sentence}")
            return
        found = answer.value
        start = 0
        for graph in graphs:
            rows = range(start, start + graph.n)
            self._judge(found, graph, rows, told)
            start += graph.n

    @staticmethod
    def _judge(found: Graph, graph: Graph, rows: range, told: str) -> None:
        own = graph.classes or range(graph.k)
        for row, label in zip(rows, graph.labels.tolist(), strict=True):
            names = found.classes or range(found.k)
            if names[found.labels[row]] != own[label]:
                raise Silent(f"{told}: {own[label]!r} became {names[found.labels[row]]!r}")
        X, mine = (np.asarray(g.X) for g in (found, graph))
        if graph.features and found.features:
            place = [found.features.index(name) for name in graph.features]
        else:
            place = list(range(graph.d))
        if not np.array_equal(X[rows.start : rows.stop][:, place], mine):
            raise Silent(f"{told}: other features")
        if graph.features and not found.features:
            raise Silent(f"{told}: the names of features are gone")
        ways = {(u, v) for u, v in zip(*found.edges.tolist(), strict=True) if u in rows}
        wanted = {
            (u + rows.start, v + rows.start) for u, v in zip(*graph.edges.tolist(), strict=True)
        }
        both = {(v, u) for u, v in wanted}
        if found.directed:
            right = ways == (wanted if graph.directed else wanted | both)
        else:
            right = not graph.directed and ways | {(v, u) for u, v in ways} == wanted | both
        if not right:
            raise Silent(f"{told}: other edges")

    @staticmethod
    def _drawn(random: Random, seed: int) -> Graph:
        n = 8
        rng = np.random.default_rng(random.randrange(2**30))
        classes = random.choice((("ant", "bee"),) * 4 + (("bee", "cat"), ("bee", "ant"), None))
        features = random.choice((("x", "y"),) * 4 + (("y", "x"), ("x", "z"), None))
        width = random.choice((2,) * 8 + (3,))
        features = features if width == 2 or features is None else (*features, "w")
        directed = random.random() < 0.2
        weights = np.arange(1, 6) / 2 if random.random() < 0.1 else None
        return Graph(
            X=rng.normal(size=(n, width)).astype(np.float32),
            edges=np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 6]]),
            y=np.arange(n) % 2,
            classes=classes,
            features=features,
            directed=directed,
            weights=weights,
            name=f"g{seed}",
        )

    def close(self) -> None:
        """Nothing to end."""


# The estimator


class Estimators:
    """GCNIIClassifier takes ids and labels in any form as what they mean, or refuses them."""

    name, few, quick, long = "estimators", 3, 40, 400

    def __init__(self, home: Path):
        ring = np.roll(np.eye(24), 1, 0)
        rng = np.random.default_rng(0)
        self.X = np.round(rng.normal(size=(24, 3)), 2)
        ids = [*range(1, 23), 2**53 + 1, 2**53 + 2]
        self.graph = gcnii.from_scipy(ring + ring.T, self.X, nodes=[str(one) for one in ids])
        self.ids, self.y = ids, [i % 3 for i in range(24)]
        self.small: dict[str, Any] = {"layers": 2, "width": 4, "epochs": 3, "device": "cpu"}
        self.plain = self._predicted(self.graph, ids, self.y)
        self.without = self._predicted(None, self.X, self.y)

    def _predicted(self, graph: Any, X: Any, y: Any, **given: Any) -> Any:
        made = gcnii.GCNIIClassifier(graph, **self.small | given).fit(X, y)
        return [str(one) for one in made.classes_], made.predict_proba(X).tolist()

    def attempt(self, random: Random, folder: Path) -> None:
        """Ids, features, labels or parameters that are odd."""
        on_graph = random.random() < 0.6
        X, y, given, same = self.ids if on_graph else self.X, self.y, {}, True
        how = random.choice(("X", "y", "y", "word"))
        if how == "X":
            forms = ODD_IDS if on_graph else ODD_FEATURES
            told = random.choice(list(forms))
            X, same = forms[told](X)
        elif how == "y":
            told = random.choice(list(ODD_LABELS))
            y, same = ODD_LABELS[told](y)
        else:
            name = random.choice(list(inspect.signature(gcnii.GCNIIClassifier).parameters))
            value = random.choice(VALUES)
            told, given, same = f"{name}={value!r:.50}", {name: value}, False
        graph = self.graph if on_graph else None
        if "graph" in given:
            graph = given.pop("graph")
        try:
            answer = answer_of(lambda: self._predicted(graph, X, y, **given))
        except (ValueError, TypeError) as error:
            if "sklearn" not in _raised_in(error):
                raise
            return  # scikit-learn's own words about what it is given
        wanted = self.plain if on_graph else self.without
        found = wanted if answer.value is None or not same else answer.value
        if not np.allclose(found[1], wanted[1], atol=1e-6):
            raise Silent(f"{told}: other predictions")

    def close(self) -> None:
        """Nothing to end."""


def _raised_in(error: BaseException) -> str:
    """The file in which an error was raised."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename if trace else ""


# told → (the value, whether it means the same as the plain one)
ODD_IDS: dict[str, Callable[[Any], tuple[Any, bool]]] = {
    "texts": lambda ids: ([str(one) for one in ids], True),
    "objects": lambda ids: (np.array(ids, object), True),
    "big-endian": lambda ids: (np.array(ids, ">i8"), True),
    "a column": lambda ids: (np.array(ids)[:, None], True),
    "a Series": lambda ids: (pd.Series(ids), True),
    "Int64": lambda ids: (pd.Series(ids, dtype="Int64"), True),
    "a frame": lambda ids: (pd.DataFrame({"id": ids}), True),
    "a tensor": lambda ids: (torch.tensor(ids), True),
    "a tuple": lambda ids: (tuple(ids), True),
    "uint64": lambda ids: (np.array(ids, np.uint64), True),
    "an iterator": lambda ids: (iter(ids), True),
    "floats beside large ids": lambda ids: ([1.0, *ids[1:]], True),
    "floats": lambda ids: (np.array(ids, float), True),
    "masked": lambda ids: (np.ma.array(ids, mask=[True] + [False] * 23), True),
    "NaN": lambda ids: ([np.nan, *ids[1:]], True),
    "None": lambda ids: ([None, *ids[1:]], True),
    "two columns": lambda ids: (np.array([ids, ids]).T, True),
    "nothing": lambda ids: ([], True),
    "a word": lambda ids: ("1", True),
    "nested": lambda ids: ([[one] for one in ids[:-1]] + [[1, 2]], True),
    "bool": lambda ids: ([True] * 24, True),
}
ODD_FEATURES: dict[str, Callable[[Any], tuple[Any, bool]]] = {
    "a frame": lambda X: (pd.DataFrame(X, columns=["a", "b", "c"]), True),
    "Float64": lambda X: (pd.DataFrame(X).astype("Float64"), True),
    "a list": lambda X: (X.tolist(), True),
    "big-endian": lambda X: (X.astype(">f8"), True),
    "objects": lambda X: (X.astype(object), True),
    "1e300": lambda X: (np.where(np.eye(24, 3), 1e300, X), False),
    "1e39": lambda X: (np.where(np.eye(24, 3), 1e39, X), False),
    "NaN": lambda X: (np.where(np.eye(24, 3), np.nan, X), True),
    "masked": lambda X: (np.ma.array(X, mask=np.eye(24, 3, dtype=bool)), True),
    "complex": lambda X: (X + 1j, True),
    "words": lambda X: (X.astype(str).astype(object), True),
    "one row": lambda X: (X[:1], True),
    "no columns": lambda X: (X[:, :0], True),
    "all the same": lambda X: (X * 0, False),
    "flat": lambda X: (X.ravel(), True),
}
ODD_LABELS: dict[str, Callable[[Any], tuple[Any, bool]]] = {
    "floats": lambda y: (np.array(y, float), True),
    "big-endian": lambda y: (np.array(y, ">i4"), True),
    "texts": lambda y: (["abc"[one] for one in y], True),
    "objects": lambda y: (np.array(y, object), True),
    "Int64": lambda y: (pd.Series(y, dtype="Int64"), True),
    "a category": lambda y: (pd.Categorical(["abc"[one] for one in y]), True),
    "a tensor": lambda y: (torch.tensor(y), True),
    "string": lambda y: (pd.array(["abc"[one] for one in y], "string"), True),
    "1 and a": lambda y: ([one if one else "a" for one in y], True),
    "bytes": lambda y: (["abc"[one].encode() for one in y], True),
    "large": lambda y: ([2**63 + one for one in y], True),
    "mixed numbers": lambda y: ([float(one) if one else 0 for one in y], True),
    "truth and numbers": lambda y: ([True if one == 1 else one for one in y], False),
    "NA": lambda y: (pd.array([pd.NA, *y[1:]], "Int64"), False),
    "NaN": lambda y: ([np.nan, *y[1:]], False),
    "masked": lambda y: (np.ma.array(y, mask=[True] + [False] * 23), False),
    "halves": lambda y: (np.array(y) + 0.5, True),
    "complex": lambda y: (np.array(y) + 1j, True),
    "one class": lambda y: ([0] * 24, True),
    "too short": lambda y: (y[:-1], True),
    "nothing": lambda y: ([], True),
    "dates": lambda y: (np.array(y, "M8[D]"), False),
    "objects of their own": lambda y: ([object() for _ in y], True),
    "infinite": lambda y: ([np.inf, *y[1:]], True),
    "two columns": lambda y: (np.array([y, y]).T, True),
}
WORDS = (Words, Joins, Estimators)
