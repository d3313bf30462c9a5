"""How ids find their nodes."""

import numpy as np
import pandas as pd
import pytest

from gcnii.errors import InputError
from gcnii.estimator import rows_of
from gcnii.graph import Graph

pl = pytest.importorskip("polars")

NAMED = Graph(X=np.eye(3), edges=[[0], [1]], nodes=("7", "8", "x"), name="pets")
NAMELESS = Graph(X=np.eye(3), edges=[[0], [1]])


@pytest.mark.parametrize(
    "X",
    [
        ["x", "7"],
        ["x", 7],
        np.array(["x", "7"]),
        np.array([["x"], ["7"]]),
        np.array(["x", 7], dtype=object),
        pd.Series(["x", "7"]),
        pd.DataFrame({"id": ["x", "7"]}),
        pl.DataFrame({"id": ["x", "7"]}),
    ],
)
def test_ids_are_a_list_or_a_vector_or_one_column(X):
    assert rows_of(NAMED, X).tolist() == [2, 0]


@pytest.mark.parametrize("X", [[8, 7], np.array([[8], [7]]), pd.Series([8.0, 7.0])])
def test_numbers_find_nodes_that_are_called_so(X):
    assert rows_of(NAMED, X).tolist() == [1, 0]


def test_nodes_without_names_are_called_by_their_row_numbers():
    assert rows_of(NAMELESS, [2, 0]).tolist() == [2, 0]
    with pytest.raises(InputError, match=r"no node '3'; X must hold row numbers.*'0' or '2'"):
        rows_of(NAMELESS, [0, 3])
    with pytest.raises(InputError, match="no node '-1'"):
        rows_of(NAMELESS, [-1])


def test_an_unknown_id_is_named():
    with pytest.raises(InputError, match=r"pets has no node 'dog', '0'; X must hold names"):
        rows_of(NAMED, ["7", "dog", 0, "dog"])


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.eye(3), r"one column of node ids, since a graph is given, got shape \(3, 3\)"),
        ("x", r"one column of node ids, .* got shape \(\)"),
        ([], "holds no node ids"),
        ([True, False, True], "no node 'True', 'False'"),
    ],
)
def test_what_is_not_ids_is_refused(X, sentence):
    with pytest.raises(InputError, match=sentence):
        rows_of(NAMED, X)


def test_a_name_that_two_nodes_have_is_refused_when_it_is_asked_for():
    twins = Graph(X=np.eye(3), edges=[[0], [1]], nodes=("a", "b", "a"))
    assert rows_of(twins, ["b"]).tolist() == [1]
    with pytest.raises(InputError, match="several nodes are called 'a'"):
        rows_of(twins, ["b", "a"])


def test_large_ids_stay_themselves_beside_a_float():
    large = 2**53 + 1
    graph = Graph(X=np.eye(3), edges=[[0], [1]], nodes=("7", str(large - 1), str(large)))
    assert rows_of(graph, [large, 7.0]).tolist() == [2, 0]
    with pytest.raises(
        InputError, match="the id 9007199254740992 as a float, which may be another"
    ):
        rows_of(graph, np.array([large, 7.0]))
    with pytest.raises(InputError, match="X has masked entries"):
        rows_of(graph, np.ma.array([7, 8], mask=[0, 1]))
