"""A Graph of two data frames, of pandas, polars or pyarrow."""

import datetime

import numpy as np
import pandas as pd
import pytest

from gcnii.data.converters.frames import from_frames
from gcnii.data.converters.scipy_matrix import from_scipy
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


def test_numbers_may_have_more_digits_than_a_float(frame):
    account = (2**53 + 1) * np.arange(N)
    graph = from_frames(frame(NODES.assign(account=account)), frame(EDGES))
    np.testing.assert_array_equal(graph.X[:, -1], account.astype(np.float32))


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


def test_dates_are_left_out_or_taken_as_days(frame):
    days = [datetime.datetime(2024, 1, 1) + datetime.timedelta(days=i) for i in range(N)]
    nodes = NODES.assign(city=days)
    with pytest.warns(UserWarning, match=r"left out of the features: 'city' \(dates; --date city"):
        assert "city" not in from_frames(frame(nodes), frame(EDGES)).features
    with pytest.raises(DataError, match=r"no column that can be a feature.*'city' is left out \(d"):
        from_frames(frame(nodes[["id", "city"]]), frame(EDGES))
    graph = from_frames(frame(nodes), frame(EDGES), date=["city"])
    day = graph.X[:, graph.features.index("city")]
    assert np.allclose(np.diff(day), 1)


def test_durations_are_numbers_of_days(frame):
    spans = [None, *(datetime.timedelta(hours=6 * i) for i in range(1, N))]
    graph = from_frames(frame(NODES.assign(city=spans)), frame(EDGES))
    days = graph.X[:, graph.features.index("city")]
    assert days.tolist() == [5, *(i / 4 for i in range(1, N))]  # the first is the median


def test_gaps_of_nullable_numbers_are_gaps():
    numbers = pd.array([None, 1.0, 2.0, 2.0] * (N // 4), dtype="Float64")
    graph = from_frames(NODES.assign(label=numbers), EDGES)
    assert (graph.y.tolist()[:4], graph.classes) == ([-1, 0, 1, 1], ("1", "2"))
    with pytest.raises(DataError, match="row 0 of nodes has no id; give every node one"):
        from_frames(NODES.assign(id=numbers), EDGES)
    with pytest.raises(DataError, match="row 1 of nodes: the split is '1'; it must be train, val"):
        from_frames(NODES.assign(split=numbers), EDGES)


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
    assert from_frames(nodes, EDGES, drop=[0]).features[0] == "1"


def test_a_number_may_mean_unknown():
    numbers = [0, 7, -1, 7] * (N // 4)
    graph = from_frames(NODES.assign(label=numbers), EDGES, unknown=-1)
    assert (graph.y.tolist()[:4], graph.classes) == ([0, 1, -1, 1], ("0", "7"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"label": None}, "label must be the name of a column, got None"),
        ({"label": []}, r"label must name a column, got \[\]"),
        ({"id": ["id"]}, r"id must be the name of a column, got \['id'\]"),
        ({"drop": [None]}, "drop must be the name of a column, got None"),
        ({"unknown": 1.5}, "unknown must be a label, got 1.5"),
        ({"split": "fold"}, "nodes has no column 'fold' to take the split from; its columns are"),
        ({"directed": "no"}, "directed must be True or False, got 'no'"),
        ({"multilabel": "no"}, "multilabel must be True or False, got 'no'"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        from_frames(NODES, EDGES, **options)


def test_many_whole_numbers_of_few_nodes_are_doubtful():
    n = 180
    nodes = pd.DataFrame({"id": range(n), "age": range(n), "label": [i % 60 for i in range(n)]})
    edges = pd.DataFrame({"source": range(n - 1), "target": range(1, n)})
    with pytest.warns(UserWarning, match="of 180 nodes are 60 different whole numbers, each of"):
        assert from_frames(nodes, edges).k == 60
    with pytest.warns(UserWarning, match="of 180 nodes are 60 different whole numbers, each of"):
        assert from_scipy(np.eye(n), np.eye(n), nodes["label"]).k == 60
    names = nodes.assign(label=[f"product {i % 60}" for i in range(n)])
    assert from_frames(names, edges).k == 60


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ({"id": [1]}, EDGES, "nodes must be a data frame of pandas, polars or pyarrow"),
        (NODES, None, "edges must be a data frame"),
        (NODES.iloc[:0], EDGES, "nodes has no rows"),
        (NODES.drop(columns="id"), EDGES, "nodes has no column 'id'"),
        (NODES[["id", "label"]], EDGES, "nodes has no feature columns"),
        (
            NODES,
            EDGES.rename(columns={"source": "a", "target": "b", "weight": "c"}),
            "or say which they are: edge_from=",
        ),
        (pd.concat([NODES, NODES[["age"]]], axis=1), EDGES, "different names"),
        (pl.from_pandas(NODES).lazy(), EDGES, r"got LazyFrame; collect\(\) it first"),
        (NODES["age"], EDGES, "nodes must be a data frame of .*, got Series$"),
        (NODES, pl.Series([1]), "edges must be a data frame of .*, got Series$"),
        (pd.concat({"a": NODES}, axis=1), EDGES, r"of several levels, such as \('a', 'id'\); give"),
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


@pytest.mark.parametrize("cell", [1j, b"a", [1], {"a": 1}], ids=str)
def test_a_cell_that_is_neither_a_number_nor_a_text_is_refused(cell):
    nodes = pd.DataFrame({"id": [1, 2, 3], "x": pd.Series([cell] * 3, dtype=object)})
    edges = pd.DataFrame({"source": [1], "target": [2]})
    with pytest.raises(DataError, match=f"'x' of nodes holds values of type {type(cell).__name__}"):
        from_frames(nodes, edges)


def test_a_sparse_column_with_a_gap_is_read_as_a_dense_one():
    labels = pd.arrays.SparseArray([0, 1, 0, 1, 0, 1, np.nan])
    nodes = pd.DataFrame({"id": range(7), "x": range(7), "label": labels})
    edges = pd.DataFrame({"source": [1], "target": [2]})
    assert from_frames(nodes, edges).classes == ("0", "1")


@pytest.mark.parametrize("plain", [True, False])
def test_columns_that_share_a_name_are_named(plain):
    nodes = pd.DataFrame([[0, 1, 2, "a"]], columns=["id", "age", "age", "label"])
    given = nodes if plain else pa.Table.from_arrays([pa.array([1])] * 2, names=["age", "age"])
    with pytest.raises(DataError, match=r"different names .*got: 'age' 2 times"):
        from_frames(given, nodes)


def test_a_column_may_have_a_name_that_is_not_utf8():
    names = pd.Index(["id", "\ud800", "label"], dtype=object)
    rows = pd.DataFrame([[i, i / 3, "xy"[i % 2]] for i in range(N)])
    assert from_frames(rows.set_axis(names, axis=1), pair_table(N)).features == ("\ud800",)


def pair_table(n):
    return pd.DataFrame({"source": range(n), "target": np.roll(range(n), 1)})


@pytest.mark.parametrize("odd", [pd.DataFrame(), np.array([]), pd.NA, ["sum"]])
def test_a_choice_that_is_not_text_is_refused(odd):
    with pytest.raises(InputError, match="duplicates must be "):
        from_frames(NODES, EDGES, duplicates=odd)


def test_nodes_may_be_called_as_the_ends_of_an_edge_are():
    nodes = NODES.replace({"id": {"000": "source", "001": "target"}})
    edges = pd.DataFrame({"source": ["source", "002"], "target": ["target", "003"]})
    assert from_frames(nodes, edges).edges.T.tolist() == [[0, 1], [2, 3]]


def test_the_ends_of_an_edge_are_two_columns():
    with pytest.raises(InputError, match="edge_from and edge_to must differ, got 'source' for"):
        from_frames(NODES, EDGES, edge_from="source", edge_to="source")
