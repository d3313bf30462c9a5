"""Nodes of several types, whose columns differ."""

import numpy as np
import pandas as pd
import pytest

import gcnii
from gcnii.errors import DataError

USERS = pd.DataFrame(
    {
        "id": [f"u{i}" for i in range(8)],
        "age": np.arange(20.0, 28),
        "city": ["Rome", "Oslo"] * 4,
        "label": ["p", "q"] * 4,
    }
)
ITEMS = pd.DataFrame({"id": ["a", "b", "c"], "price": [1.0, 2, 6], "age": [1.0, 9, 5]})
EDGES = pd.DataFrame({"source": [f"u{i}" for i in range(8)], "target": list("abcabcab")})
FEATURES = (
    *("node_type=items", "node_type=users", "items: age", "items: price"),
    *("users: age", "users: city=Oslo", "users: city=Rome"),
)


def folder(path, users=USERS, items=ITEMS):
    users.to_csv(path / "nodes-users.csv", index=False)
    items.to_csv(path / "nodes-items.csv", index=False)
    EDGES.to_csv(path / "edges.csv", index=False)
    return path


def together() -> pd.DataFrame:
    return pd.concat([ITEMS.assign(node_type="items"), USERS.assign(node_type="users")])


@pytest.fixture
def graph(tmp_path):
    return gcnii.load(folder(tmp_path))


def test_each_type_has_columns_of_its_own_and_an_indicator(graph):
    assert set(graph.features) == set(FEATURES)
    X = pd.DataFrame(np.asarray(graph.X), columns=graph.features, index=graph.nodes)
    assert X.loc["a"].to_dict() == dict.fromkeys(FEATURES, 0) | {
        **{"node_type=items": 1, "items: age": -4, "items: price": -1}
    }
    assert X.loc["u1", ["node_type=items", "items: price", "users: city=Oslo"]].tolist() == [
        0,
        0,
        1,
    ]


def test_a_number_of_one_type_is_less_its_median_and_0_for_others(graph):
    column = np.asarray(graph.X)[:, graph.features.index("users: age")]
    assert column.tolist() == [0, 0, 0, *np.arange(20, 28) - 23.5]


def test_labels_are_those_of_the_types_that_have_them(graph):
    assert [name for name, y in zip(graph.nodes, graph.y, strict=True) if y < 0] == list("abc")


def test_a_column_of_types_means_the_same_as_several_tables(graph):
    assert gcnii.from_frames(together(), EDGES).fingerprint == graph.fingerprint


def test_a_missing_cell_of_a_type_is_its_median_and_has_a_column(tmp_path):
    gap = USERS.assign(age=[np.nan, *np.arange(21.0, 28)])
    graph = gcnii.load(folder(tmp_path, gap))
    missing = np.asarray(graph.X)[:, graph.features.index("users: age (missing)")]
    assert missing.tolist() == [0, 0, 0, 1, *[0] * 7]


def test_a_column_without_any_cell_is_left_out_with_a_word(tmp_path):
    with pytest.warns(UserWarning, match=r"left out of the features: 'colour' \(empty\)"):
        found = gcnii.load(folder(tmp_path, items=ITEMS.assign(colour=None)))
    assert sorted(found.features) == sorted(FEATURES)


def test_the_column_can_be_named_or_taken_as_a_feature():
    kinds = together().rename(columns={"node_type": "kind"})
    assert "kind=items" in gcnii.from_frames(kinds, EDGES, node_type="kind").features
    plain = gcnii.from_frames(together(), EDGES, node_type="")
    assert "users: age" not in plain.features


def test_one_type_alone_changes_nothing():
    one = USERS.assign(node_type="users")
    edges = pd.DataFrame({"source": ["u0"], "target": ["u1"]})
    with pytest.warns(UserWarning, match="left out of the features: 'node_type'"):
        graph = gcnii.from_frames(one, edges)
    assert graph.fingerprint == gcnii.from_frames(USERS, edges).fingerprint


def test_a_table_may_lack_the_nodes_and_columns_of_a_type(graph, tmp_path):
    result = gcnii.fit(graph, "gcnii", layers=2, epochs=3, seeds=[0], verbose=False)
    path = result.save(tmp_path / "bundle")
    nodes = pd.DataFrame({"id": ["d"], "price": [3.0], "age": [2.0], "node_type": ["items"]})
    new = gcnii.open_bundle(path).predict_new(
        nodes, pd.DataFrame({"source": ["d"], "target": ["u0"]}), graph
    )
    assert len(new) == 1


def test_an_unknown_type_of_nodes_is_refused_by_name(graph):
    result = gcnii.fit(graph, "gcnii", layers=2, epochs=3, seeds=[0], verbose=False)
    nodes = pd.DataFrame({"id": ["d"], "price": [3.0], "node_type": ["shops"]})
    edges = pd.DataFrame({"source": ["d"], "target": ["u0"]})
    with pytest.raises(DataError, match="in the column 'node_type', is 'shops'; the types of the"):
        result.predict_new(nodes, edges, graph)


def test_a_wrong_cell_is_named_with_its_file_and_row(tmp_path):
    wrong = ITEMS.assign(price=["1", "x", "6"])
    with pytest.raises(DataError, match=r"row 3 of nodes-items.csv: the feature 'price' is 'x'"):
        gcnii.load(folder(tmp_path, items=wrong))


def test_every_table_of_a_type_has_the_column_of_names(tmp_path):
    with pytest.raises(DataError, match=r"nodes-items.csv has no column 'id'; its columns are key"):
        gcnii.load(folder(tmp_path, items=ITEMS.rename(columns={"id": "key"})))


def test_ids_differ_over_all_tables(tmp_path):
    with pytest.raises(DataError, match=r"nodes-users.csv repeats the id 'a' of row 2 of nodes-i"):
        gcnii.load(folder(tmp_path, USERS.assign(id=["a", *USERS["id"][1:]])))


def test_one_table_beside_tables_of_types_is_refused(tmp_path):
    folder(tmp_path)
    USERS.to_csv(tmp_path / "nodes.csv", index=False)
    with pytest.raises(DataError, match=r"has nodes.csv and nodes-items; keep one kind of them"):
        gcnii.load(tmp_path)


def test_a_saved_graph_and_its_bundle_keep_the_columns_of_types(graph, tmp_path):
    same = gcnii.load(gcnii.save(graph, tmp_path / "typed.safetensors"))
    assert same.fingerprint == graph.fingerprint
    assert same.columns == graph.columns
    result = gcnii.fit(same, "gcnii", layers=2, epochs=3, seeds=[0], verbose=False)
    opened = gcnii.open_bundle(result.save(tmp_path / "bundle"))
    assert np.array_equal(opened.predict_proba(graph), result.predict_proba(graph))
