"""from_pyg: a graph of a torch_geometric.data.Data."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import gcnii
from gcnii.errors import GraphError

RING = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
BOTH = torch.cat([RING, RING.flip(0)], 1)
Y = torch.tensor([0, 0, 0, 1, 1, 1])


def pyg():
    """PyG's module, imported late: it imports Triton, whose interpreter is chosen before that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG uses what torch has deprecated
        return pytest.importorskip("torch_geometric.data")


def ring(edges=BOTH, **fields):
    return pyg().Data(**{"x": torch.eye(6), "edge_index": edges, "y": Y} | fields)


def mask(*rows):
    return torch.isin(torch.arange(6), torch.tensor(rows))


@pytest.mark.slow
def test_edges_listed_both_ways_are_undirected():
    graph = gcnii.from_pyg(ring())
    assert (graph.n, graph.m, graph.directed, graph.weights) == (6, 6, False, None)
    assert graph.edges.shape == (2, 6)
    assert graph.y.tolist() == Y.tolist()


def test_directed_is_true_or_false():
    with pytest.raises(GraphError, match="directed must be True or False, got 'no'"):
        gcnii.from_pyg(ring(), directed="no")


def test_edges_listed_one_way_are_directed_unless_said_otherwise():
    assert gcnii.from_pyg(ring(RING)).directed
    once = gcnii.from_pyg(ring(RING), directed=False)
    assert once.fingerprint == gcnii.from_pyg(ring()).fingerprint


def test_repeated_edges_without_weights_count_once():
    assert gcnii.from_pyg(ring(torch.cat([BOTH, BOTH], 1))).weights is None


def hetero(**relations):
    """Six nodes of one type, with edges by relation."""
    data = pyg().HeteroData()
    data["user"].x, data["user"].y = torch.eye(6), Y
    for name, edges in relations.items():
        data["user", name, "user"].edge_index = edges
    return data


def test_edge_type_is_the_type_of_each_edge():
    graph = gcnii.from_pyg(
        ring(torch.cat([BOTH, BOTH[:, :1]], 1), edge_type=torch.arange(13) // 12)
    )
    assert (graph.type_names, graph.directed) == (("0", "1"), True)
    assert np.bincount(graph.edge_types).tolist() == [12, 1]
    assert graph.edges[:, graph.edge_types == 1].tolist() == [[0], [1]]


def test_relations_of_one_type_of_nodes_are_types_of_edges():
    graph = gcnii.from_pyg(hetero(likes=BOTH, follows=BOTH[:, [0, 6]], blocks=BOTH[:, :0]))
    assert (graph.type_names, graph.directed, graph.m) == (("likes", "follows", "blocks"), False, 7)
    assert (graph.d, graph.y.tolist()) == (6, Y.tolist())


def test_weights_of_each_relation_must_agree_in_both_directions_to_be_undirected():
    data = hetero(likes=BOTH, follows=BOTH)
    for name, weight in (("likes", 2.0), ("follows", 3.0)):
        data["user", name, "user"].edge_weight = torch.full((12,), weight)
    graph = gcnii.from_pyg(data)
    assert not graph.directed
    assert graph.weights.tolist() == [2.0] * 6 + [3.0] * 6
    data["user", "likes", "user"].edge_weight[0] = 1
    assert gcnii.from_pyg(data).directed


def test_one_relation_makes_a_graph_without_types():
    graph = gcnii.from_pyg(hetero(likes=BOTH))
    assert not graph.typed
    assert graph.fingerprint == gcnii.from_pyg(ring()).fingerprint


def test_of_several_types_of_nodes_the_relations_are_kept_if_they_are_made_one():
    data = hetero(likes=BOTH)
    data["item"].x = torch.eye(2, 6)
    data["user", "buys", "item"].edge_index = torch.tensor([[0], [1]])
    data["item", "buys", "user"].edge_index = torch.tensor([[1], [0]])
    with pytest.raises(GraphError, match=r"has several types of nodes; .* data.to_homogeneous\(\)"):
        gcnii.from_pyg(data)
    graph = gcnii.from_pyg(data.to_homogeneous())
    assert graph.type_names == ("user likes user", "user buys item", "item buys user")
    assert graph.edges[:, -2:].tolist() == [[0, 7], [7, 0]]


@pytest.mark.parametrize("name", ["edge_weight", "weight"])
def test_weights_that_differ_in_the_two_directions_make_a_graph_directed(name):
    weights = torch.arange(1.0, 7)
    same = gcnii.from_pyg(ring(**{name: torch.cat([weights, weights])}))
    assert not same.directed
    assert sorted(same.weights.tolist()) == [1, 2, 3, 4, 5, 6]
    assert gcnii.from_pyg(ring(**{name: torch.arange(1.0, 13)})).directed


def test_a_vector_of_edge_attributes_is_taken_as_weights_with_a_warning():
    with pytest.warns(UserWarning, match="edge_attr is taken as the weights"):
        graph = gcnii.from_pyg(ring(edge_attr=torch.full((12, 1), 2.0)))
    assert set(graph.weights) == {2}


def test_a_matrix_of_edge_attributes_is_named_as_not_used():
    with pytest.warns(UserWarning, match=r"edge_attr of shape \(12, 3\) is not used"):
        assert gcnii.from_pyg(ring(edge_attr=torch.ones(12, 3))).weights is None


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_weights_are_positive_and_finite(wrong):
    with pytest.raises(GraphError, match="weight"):
        gcnii.from_pyg(ring(edge_weight=torch.full((12,), wrong)))


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_weights_may_be_of_any_kind(kind):
    assert set(gcnii.from_pyg(ring(edge_weight=kind([2.0] * 12))).weights) == {2}
    with pytest.warns(UserWarning, match="edge_attr is taken as the weights"):
        assert set(gcnii.from_pyg(ring(edge_attr=kind([2.0] * 12))).weights) == {2}


def test_a_zero_beside_texts_is_a_class():
    graph = gcnii.from_pyg(ring(y=[0, 0, 0, "b", "b", "b"]))
    assert (graph.y.tolist(), graph.classes) == (Y.tolist(), ("0", "b"))


def test_masks_are_the_split():
    graph = gcnii.from_pyg(ring(train_mask=mask(0, 3), val_mask=mask(1), test_mask=mask(4)))
    (split,) = graph.splits
    assert [np.flatnonzero(m).tolist() for m in (split.train, split.val, split.test)] == [
        [0, 3],
        [1],
        [4],
    ]
    assert graph.y[2] == 0  # known, though in no mask


def test_masks_with_columns_are_as_many_splits_and_a_vector_serves_all():
    two = torch.stack([mask(0, 3), mask(1, 4)], 1)
    graph = gcnii.from_pyg(ring(train_mask=two, val_mask=mask(2), test_mask=mask(5)))
    assert [np.flatnonzero(split.train).tolist() for split in graph.splits] == [[0, 3], [1, 4]]
    assert [np.flatnonzero(split.val).tolist() for split in graph.splits] == [[2], [2]]


def test_without_masks_each_class_is_split():
    split = gcnii.stratified_split(Y.numpy(), 0)
    assert (gcnii.from_pyg(ring()).splits[0].train == split.train).all()


def test_without_a_validation_mask_a_fifth_of_the_training_nodes_validates():
    (split,) = gcnii.from_pyg(ring(train_mask=mask(0, 1, 3, 4), test_mask=mask(2, 5))).splits
    assert (split.train.sum(), split.val.sum(), split.test.sum()) == (3, 1, 2)


def test_with_a_training_mask_alone_the_other_labelled_nodes_are_halved():
    y = torch.tensor([0, 0, 0, 1, 1, -1])
    with pytest.warns(UserWarning, match="of the other labelled nodes, 2 validate and 1 test"):
        (split,) = gcnii.from_pyg(ring(train_mask=mask(0, 3), y=y)).splits
    assert np.flatnonzero(split.val | split.test).tolist() == [1, 2, 4]


def test_labels_can_be_unknown_or_several():
    missing = gcnii.from_pyg(ring(y=torch.tensor([0.0, 0, 0, 1, 1, float("nan")])))
    assert missing.y.tolist() == [0, 0, 0, 1, 1, -1]
    several = torch.tensor([[1.0, 1], [0, 0], [1, 0], [0, 1], [1, 1], [0, 0]])
    assert gcnii.from_pyg(ring(y=several)).multilabel
    assert gcnii.from_pyg(ring(y=Y[:, None])).y.tolist() == Y.tolist()
    assert gcnii.from_pyg(ring(y=None)).splits == ()


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_sparse_features_stay_sparse(layout):
    graph = gcnii.from_pyg(ring(x=torch.eye(6).to_sparse(layout=layout)))
    assert sp.issparse(graph.X)
    assert (graph.X.toarray() == np.eye(6)).all()


def test_half_precision_and_gradients_are_no_obstacle():
    assert gcnii.from_pyg(ring(x=torch.eye(6).bfloat16())).X.dtype == np.float32
    sparse = gcnii.from_pyg(ring(x=torch.eye(6).bfloat16().to_sparse()))
    assert (sparse.X.toarray() == np.eye(6)).all()
    assert gcnii.from_pyg(ring(y=Y.bfloat16())).y.tolist() == Y.tolist()
    assert gcnii.from_pyg(ring(x=torch.eye(6, requires_grad=True))).d == 6


def test_a_batch_of_graphs_keeps_its_parts():
    graph = gcnii.from_pyg(pyg().Batch.from_data_list([ring(), ring()]))
    assert graph.part.tolist() == [0] * 6 + [1] * 6


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: pyg().HeteroData(), "with x and edge_index, got HeteroData"),
        (lambda: [ring()], r"got list; of a data set, pass one graph: dataset\[0\]"),
        (lambda: ring(x=None), r"data\.x is None.*torch\.eye"),
        (lambda: pyg().Data(x=torch.eye(6)), r"data\.edge_index is None"),
        (lambda: ring(x=torch.eye(4)), r"node ids from 0 to 5, but data\.x has rows 0 to 3"),
        (lambda: ring(RING - 1), "node ids from -1"),
        (lambda: ring(RING.float()), "whole numbers in the shape"),
        (lambda: ring(RING.T), "whole numbers in the shape"),
        (lambda: ring(torch.eye(6).to_sparse()), r"got a sparse matrix; .*to_edge_index makes"),
        (lambda: ring(edge_weight=["a"] * 12), "edge_weight must hold one number per edge"),
        (lambda: ring(y=Y[:3]), r"one label per node.*got shape \(3,\)"),
        (lambda: ring(edge_weight=torch.ones(5)), "5 entries for 12 edges"),
        (
            lambda: ring(train_mask=mask(0)[:3]),
            "train_mask must be true or false for each of 6 nodes",
        ),
        (lambda: ring(val_mask=mask(0)), "no train_mask"),
        (lambda: ring(train_mask=mask(0), val_mask=mask(0)), "masks train and val overlap"),
        (
            lambda: ring(
                train_mask=torch.ones(6, 2, dtype=bool), val_mask=torch.ones(6, 3, dtype=bool)
            ),
            r"\[2, 3\] columns",
        ),
    ],
)
def test_what_is_no_graph_is_refused(make, sentence):
    with pytest.raises(GraphError, match=sentence):
        gcnii.from_pyg(make())


@pytest.mark.parametrize("odd", [2, -1])
def test_a_mask_of_numbers_holds_ones_and_zeros(odd):
    with pytest.raises(GraphError, match=f"train_mask must be true or false .1 or 0., got {odd}"):
        gcnii.from_pyg(ring(train_mask=odd * mask(0, 3).long(), val_mask=mask(1, 4)))


@pytest.mark.parametrize("field", ["y", "train_mask", "edge_weight"])
@pytest.mark.parametrize("change", [torch.Tensor.to_sparse, lambda one: one.to("meta")])
def test_a_tensor_that_numpy_cannot_hold_is_refused(field, change):
    given = {"y": Y, "train_mask": mask(0, 3), "edge_weight": torch.ones(12)}
    with pytest.raises(GraphError, match="numpy cannot hold a tensor"):
        gcnii.from_pyg(ring(**{field: change(given[field])}))


@pytest.mark.parametrize("weights", [["1"] * 12, torch.ones(12) * 1j])
def test_weights_that_are_not_numbers_are_refused(weights):
    with pytest.raises(GraphError, match="edge_weight must hold one number per edge"):
        gcnii.from_pyg(ring(edge_weight=weights))
