"""A graph whose nodes have numbers to predict in the place of classes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import gcnii
from gcnii import Graph, Split
from gcnii.errors import DataError, GraphError, InputError

EDGES = [[0, 1, 2], [1, 2, 3]]
NODES = pd.DataFrame({"id": range(20), "x": range(20), "cost": np.arange(20) / 3})
LINKS = pd.DataFrame({"source": range(19), "target": range(1, 20)})


def graph(**more):
    y = [0.5, -1.0, np.nan, 2.0]
    return Graph(**{"X": np.eye(4), "edges": EDGES, "y": y, "targets": ("cost",)} | more)


def test_a_vector_is_one_column_and_nan_is_unknown():
    found = graph()
    assert (found.y.shape, found.y.dtype, found.k, found.classes) == ((4, 1), float, 1, None)
    assert found.labelled.tolist() == [True, True, False, True]
    assert not found.multilabel
    assert "4 features, 1 target)" in repr(found)


def test_a_node_is_labelled_if_all_its_numbers_are_known():
    found = graph(y=[[1, 2], [3, np.nan], [5, 6], [np.nan, np.nan]], targets=("a", "b"))
    assert found.labelled.tolist() == [True, False, True, False]
    assert "2 targets" in repr(found)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"y": [1, 2, np.inf, 4]}, "y must be finite, or NaN where it is unknown, got infinity in"),
        ({"targets": ("a", "b")}, "targets must be 1 different names, one for each column of y"),
        ({"classes": ("u", "v")}, "a graph has classes or targets, got both"),
        ({"y": ["a", "b", "c", "d"]}, "y must hold numbers where targets are named"),
        ({"y": np.ones((4, 1, 1))}, r"y must be \(n,\) or \(n, q\) numbers, got 3 dimensions"),
    ],
)
def test_what_are_no_numbers_is_refused(more, sentence):
    with pytest.raises(GraphError, match=sentence):
        graph(**more)


def test_a_number_enters_the_fingerprint_as_a_number():
    zeros = np.zeros((4, 1))
    labels = graph(y=zeros.astype(int), targets=())
    assert graph(y=zeros).fingerprint != labels.fingerprint
    assert graph(y=zeros).fingerprint != graph(y=zeros + 1).fingerprint


def test_a_file_keeps_numbers_and_their_names(tmp_path):
    first = gcnii.from_frames(NODES, LINKS, target="cost")
    again = gcnii.load(gcnii.save(first, tmp_path / "g.safetensors"))
    assert again.targets == ("cost",)
    assert again.fingerprint == first.fingerprint
    np.testing.assert_array_equal(again.y, first.y)


def test_joined_graphs_keep_their_numbers_and_must_agree_on_them():
    one, other = graph(y=[-1, -2, -3, -4]), graph(y=[1, 2, 3, 4])
    both = gcnii.join([one, other], ["train", "test"])
    assert (both.targets, both.y[4:, 0].tolist()) == (("cost",), [1, 2, 3, 4])
    with pytest.raises(GraphError, match="have different targets"):
        gcnii.join([one, graph(targets=("price",))], ["train", "test"])


def test_numbers_are_split_by_chance_60_20_20():
    found = gcnii.from_frames(NODES, LINKS, target="cost")
    (split,) = found.splits
    assert [mask.sum() for mask in (split.train, split.val, split.test)] == [12, 4, 4]
    assert found.features == ("x",)


def test_an_empty_cell_is_unknown_and_a_word_is_refused():
    some = NODES.assign(cost=[*NODES["cost"][:19].astype(str), ""])
    assert gcnii.from_frames(some, LINKS, target="cost").labelled.sum() == 19
    sentence = "row 3 of nodes: cost is 'much', which is not a number to predict"
    with pytest.raises(DataError, match=sentence):
        gcnii.from_frames(
            some.assign(cost=[*some["cost"][:3], "much", *some["cost"][4:]]), LINKS, target="cost"
        )


def test_a_column_of_numbers_that_is_not_there_is_named():
    with pytest.raises(DataError, match="no column 'price' to take numbers from"):
        gcnii.from_frames(NODES, LINKS, target="price")


def test_labels_that_are_amounts_are_refused_with_the_option_that_takes_them():
    with pytest.raises(DataError, match=r"to predict numbers, say --target cost \(in Python"):
        gcnii.from_frames(
            pd.concat([NODES] * 3).assign(id=range(60), cost=np.arange(60) / 7), LINKS, label="cost"
        )


def test_a_label_beside_numbers_is_no_feature():
    with pytest.warns(UserWarning, match="the column label is not used; target is predicted"):
        found = gcnii.from_frames(NODES.assign(label=list("ab") * 10), LINKS, target="cost")
    assert found.features == ("x",)
    with pytest.raises(InputError, match="label and target both say what to predict"):
        gcnii.from_frames(NODES, LINKS, label="x", target="cost")


def test_edges_have_ends_of_other_names_and_the_old_words_still_say_so():
    links = LINKS.rename(columns={"source": "buyer", "target": "seller"}).assign(weight=1.5)
    new = gcnii.from_frames(NODES, links, target="cost", edge_from="buyer", edge_to="seller")
    plain = NODES.drop(columns="cost")
    with pytest.warns(UserWarning, match="are called edge_from and edge_to now"):
        old = gcnii.from_frames(plain, links, source="buyer", target="seller")
    np.testing.assert_array_equal(old.edges, new.edges)
    for half in ({"source": "buyer"}, {"edge_from": "buyer"}):
        with pytest.raises(InputError, match="must be given together"):
            gcnii.from_frames(NODES, links, **half)


def test_matrices_and_networkx_give_numbers():
    import networkx as nx

    ring = np.roll(np.eye(12), 1, axis=0)
    of_scipy = gcnii.from_scipy(ring + ring.T, np.ones((12, 2)), np.arange(12), targets=["t"])
    assert (of_scipy.targets, of_scipy.y[:, 0].tolist()) == (("t",), list(range(12)))
    G = nx.cycle_graph(12)
    nx.set_node_attributes(G, {i: i / 2 for i in G}, "t")
    of_networkx = gcnii.from_networkx(G, target="t", X=np.ones((12, 2)))
    assert of_networkx.y[:, 0].tolist() == [i / 2 for i in range(12)]


def test_fractions_of_pyg_are_numbers_and_zeros_and_ones_stay_labels():
    torch = pytest.importorskip("torch")
    data = pytest.importorskip("torch_geometric.data")
    ring = torch.arange(12)
    edges = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
    made = {"x": torch.ones(12, 2), "edge_index": edges}
    assert gcnii.from_pyg(data.Data(**made, y=ring / 5)).targets == ("y",)
    assert gcnii.from_pyg(data.Data(**made, y=(ring % 2).float())).targets == ()
    named = gcnii.from_pyg(data.Data(**made, y=ring.float()), targets=["age"])
    assert (named.targets, named.y.dtype) == (("age",), float)


def test_a_piece_of_a_graph_has_no_numbers(tmp_path):
    from gcnii.graph import Piece

    with pytest.raises(DataError, match="has numbers to predict, which one process trains"):
        Piece.cut(graph(), np.arange(2))


def test_a_split_without_validation_nodes_gets_some_whatever_the_numbers():
    known = np.arange(20) < 15
    split = Split(train=known, val=[False] * 20, test=~known)
    found = replace(gcnii.from_frames(NODES, LINKS, target="cost"), splits=(split,))
    assert found.splits[0].val.sum() == 3
