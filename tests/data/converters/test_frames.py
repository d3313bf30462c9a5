"""A Graph of two data frames, of pandas, polars or pyarrow."""

import datetime

import numpy as np
import pandas as pd
import pytest

from gcnii.data.converters.frames import from_frames
from gcnii.errors import DataError, InputError

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N = 40
NODES = pd.DataFrame(
    {
        "id": [f"{i:03d}" for i in range(N)],
        "income": [20_000.0 + 311 * i for i in range(N)],
        "age": [np.nan if i % 9 == 0 else 20 + i for i in range(N)],
        "city": ["rome", "oslo"] * (N // 2),
        "member": [i % 3 == 0 for i in range(N)],
        "label": [None if i % 5 == 0 else "xy"[i % 2] for i in range(N)],
    }
)
EDGES = pd.DataFrame(
    {"source": NODES["id"], "target": np.roll(NODES["id"], 1), "weight": np.arange(N) / 7}
)


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def frame(request):
    """Makes a frame of this library of a pandas frame."""
    return {
        "pandas": lambda table: table,
        "polars": pl.from_pandas,
        "pyarrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
    }[request.param]


def test_frames_of_all_libraries_are_the_same_graph(frame):
    graph = from_frames(frame(NODES), frame(EDGES))
    assert graph.features == (
        "income",
        "age",
        "age (missing)",
        "city=oslo",
        "city=rome",
        "member",
    )
    assert graph.nodes[7] == "007"
    assert (graph.classes, int(graph.labelled.sum())) == (("x", "y"), 32)
    assert graph.fingerprint == from_frames(NODES, EDGES).fingerprint


def test_missing_numbers_are_the_median(frame):
    graph = from_frames(frame(NODES), frame(EDGES))
    assert graph.X[0, 1] == np.nanmedian(NODES["age"])
    assert graph.X[0, 2] == 1


def test_weights_are_used_unless_they_are_dropped(frame):
    assert from_frames(frame(NODES), frame(EDGES)).weights is not None
    assert from_frames(frame(NODES), frame(EDGES), drop=["weight"]).weights is None


@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", "object"])
def test_whole_numbers_are_names_without_a_point(dtype):
    nodes = NODES.assign(id=np.arange(N)).astype({"id": dtype})
    edges = pd.DataFrame({"source": np.arange(N - 1.0), "target": np.arange(1, N)})
    graph = from_frames(nodes, edges)
    assert (graph.nodes[:2], graph.m) == (("0", "1"), N - 1)


def test_text_keeps_its_zeros_and_points():
    nodes = NODES.assign(id=["1", "1.0", "01", *NODES["id"][3:]])
    edges = pd.DataFrame({"source": ["1", "1.0"], "target": ["01", "003"]})
    assert from_frames(nodes, edges).edges.T.tolist() == [[0, 2], [1, 3]]


def test_whole_labels_with_gaps_are_classes_without_a_point():
    labels = [np.nan if i % 5 == 0 else float(i % 3) for i in range(N)]
    assert from_frames(NODES.assign(label=labels), EDGES).classes == ("0", "1", "2")


def test_a_categorical_column_is_categorical_even_of_numbers(frame):
    nodes = NODES.assign(city=[7, 12] * (N // 2))
    graph = from_frames(frame(nodes), frame(EDGES), categorical=["city"])
    assert {"city=7", "city=12"} <= set(graph.features)


def test_pandas_categories_are_text():
    nodes = NODES.assign(city=NODES["city"].astype("category"))
    assert from_frames(nodes, EDGES).fingerprint == from_frames(NODES, EDGES).fingerprint


def test_dates_are_refused_or_taken_as_days(frame):
    days = [datetime.datetime(2024, 1, 1) + datetime.timedelta(days=i) for i in range(N)]
    nodes = NODES.assign(city=days)
    with pytest.raises(DataError, match="'city' of nodes holds dates"):
        from_frames(frame(nodes), frame(EDGES))
    graph = from_frames(frame(nodes), frame(EDGES), date=["city"])
    day = graph.X[:, graph.features.index("city")]
    assert np.allclose(np.diff(day), 1)


def test_rows_of_frames_are_counted_from_0():
    nodes = NODES.assign(id=["000", *NODES["id"][:-1]])
    with pytest.raises(DataError, match="row 1 of nodes repeats the id '000' of row 0 of nodes"):
        from_frames(nodes, EDGES)


def test_infinity_is_refused():
    with pytest.raises(DataError, match="row 3 of nodes: the feature 'income' is infinite"):
        from_frames(NODES.assign(income=[1.0, 2, 3, np.inf, *range(N - 4)]), EDGES)


def test_columns_called_by_numbers_are_features():
    nodes = NODES.rename(columns={"income": 0, "age": 1})
    assert from_frames(nodes, EDGES).features[:2] == ("0", "1")


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ({"id": [1]}, EDGES, "nodes must be a data frame of pandas, polars or pyarrow"),
        (NODES, None, "edges must be a data frame"),
        (NODES.iloc[:0], EDGES, "nodes has no rows"),
        (NODES.drop(columns="id"), EDGES, "nodes has no column 'id'"),
        (NODES[["id", "label"]], EDGES, "nodes has no feature columns"),
        (NODES, EDGES.rename(columns={"source": "a", "target": "b", "weight": "c"}), "--source"),
        (pd.concat([NODES, NODES[["age"]]], axis=1), EDGES, "different names"),
        (pl.from_pandas(NODES).lazy(), EDGES, "got LazyFrame"),
    ],
)
def test_what_is_no_graph_is_refused(nodes, edges, message):
    with pytest.raises(DataError, match=message):
        from_frames(nodes, edges)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_a_weight_is_a_number_of_0_or_more(weight):
    edges = EDGES.assign(weight=[*EDGES["weight"][:-1], weight])
    with pytest.raises(DataError, match="row 39 of edges: the weight is"):
        from_frames(NODES, edges)


def test_a_column_cannot_be_two_things():
    with pytest.raises(InputError, match="'city' is named twice"):
        from_frames(NODES, EDGES, drop=["city"], text=["city"])
