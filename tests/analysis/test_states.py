"""`watch` catches the states of the equations, for the models of the registry and for others."""

import numpy as np
import pytest
import torch
from support.fitting import fitting
from torch import nn
from torch.nn.functional import relu

from gcnii.analysis import watch
from gcnii.graph import Graph
from gcnii.nn import APPNP, GCN, GCNII, MODELS, GCNResidual
from gcnii.propagation import feature_matrix
from gcnii.train.plan import make_plan
from gcnii.train.task import make_adjacency
from gcnii_paper.theory.spectrum import exact_matrix

PARALLEL = {"incep", "mlp", "ppnp"}  # they have no chain of layers
EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture
def graph():
    rng = np.random.default_rng(0)
    return Graph(
        X=rng.standard_normal((12, 5)), edges=rng.integers(0, 12, (2, 30)), y=np.arange(12) % 3
    )


@pytest.fixture
def inputs(graph):
    return exact_matrix(graph), feature_matrix(graph).double()


def states(w):
    return [H.detach() for _, H in w.layers]


def test_a_residual_layer_is_caught_after_its_relu(inputs):
    P, X = inputs
    model = GCNResidual(5, 3, layers=3, width=4).double().eval()
    with watch(model) as w:
        model(P, X)
    H = relu(model.dense["encode"](X))
    expected = [H]
    for conv in model.convs:
        H = relu((P @ H + H) @ conv.W)
        expected.append(H)
    assert [name for name, _ in w.layers] == ["input", "convs.0", "convs.1", "convs.2"]
    torch.testing.assert_close(states(w), [H.detach() for H in expected], **EXACT)


def test_a_gcn_layer_is_caught_after_the_relu_that_follows_and_the_last_as_scores(inputs):
    P, X = inputs
    model = GCN(5, 3, layers=2, width=4).double().eval()
    with watch(model) as w:
        scores = model(P, X)
    first = model.convs[0]
    H1 = relu(P @ (X @ first.W) + first.b)
    torch.testing.assert_close(states(w), [X, H1.detach(), scores.detach()], **EXACT)


def test_steps_of_propagation_without_a_module_are_layers(inputs):
    P, X = inputs
    model = APPNP(5, 3, layers=3, width=4, alpha=0.2).double().eval()
    with watch(model) as w:
        model(P, X)
    Z = Z0 = model.predict(P, X).detach()
    expected = [Z]
    for _ in range(3):
        Z = 0.8 * (P @ Z) + 0.2 * Z0
        expected.append(Z)
    torch.testing.assert_close(states(w), expected, **EXACT)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_can_be_watched_without_being_changed(name, graph):
    plan = make_plan(name, fitting(name, {"precision": "float64", "layers": 4, "width": 6}))
    model, X = plan.build(graph.d, graph.k).eval(), feature_matrix(graph).double()
    P = make_adjacency(graph, plan).whole
    before = model(P, X).detach()
    with watch(model) as w:
        watched = model(P, X)
    torch.testing.assert_close(watched.detach(), before, **EXACT)
    torch.testing.assert_close(model(P, X).detach(), before, rtol=0, atol=0)
    assert name in PARALLEL or len(w.layers) == (4 if name == "cluster-gcn" else 5)
    assert all(len(H) == graph.n for _, H in w.layers)


def test_states_have_gradients_after_a_backward_pass(inputs):
    P, X = inputs
    model = GCNII(5, 3, layers=2, width=4).double().eval()
    with watch(model) as w:
        scores = model(P, X)
    assert w.gradients == [None, None, None]
    scores.square().sum().backward()
    decode = model.dense["decode"]
    torch.testing.assert_close(
        w.gradients[-1], 2 * scores.detach() @ decode.weight.detach(), **EXACT
    )


def test_the_edges_are_found_among_the_inputs(graph, inputs):
    P, X = inputs
    with watch(model := GCN(5, 3).double()) as w:
        model(P, X)
    A = torch.zeros(12, 12)
    A[tuple(w.edges)] = 1
    torch.testing.assert_close(A, (P.to_dense() != 0).float())


def test_pygs_models_are_watched_too(graph):
    pyg = pytest.importorskip("torch_geometric.nn")
    edges = torch.tensor(graph.edges)
    model = pyg.models.GCN(5, 4, num_layers=3, out_channels=2).eval()
    X = feature_matrix(graph).float()
    with watch(model) as w:
        scores = model(X, edge_index=edges)
    H = X
    expected = [X]
    for conv in model.convs[:-1]:
        H = relu(conv(H, edges))
        expected.append(H.detach())
    torch.testing.assert_close(states(w), [*expected, scores.detach()])
    assert w.edges is edges


class Own(nn.Module):
    """A network without a list of modules or a known convolution."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 4), nn.Linear(4, 4)

    def forward(self, A, X):
        return A @ self.second(A @ self.first(X).tanh())


def test_the_user_names_the_layers_of_an_unknown_network(graph):
    model, X = Own(), feature_matrix(graph).float()
    with pytest.raises(ValueError, match=r"name its layers: layers=\[…\]"):
        watch(model)
    with pytest.raises(ValueError, match="these are not: Linear"):
        watch(model, layers=[nn.Linear(1, 1)])
    with watch(model, layers=[model.first, model.second]) as w:
        model(torch.eye(12), X)
    assert [name for name, _ in w.layers] == ["input", "first", "second"]
    torch.testing.assert_close(states(w)[1], model.first(X).tanh().detach())


def test_without_a_forward_pass_the_user_is_told_to_call_the_model():
    with watch(GCN(5, 3)) as w:
        pass
    with pytest.raises(RuntimeError, match="no forward pass was seen"):
        _ = w.layers


def test_a_failed_pass_leaves_no_trace(inputs):
    P, X = inputs
    model = GCN(5, 3).double()
    with watch(model), pytest.raises(RuntimeError):
        model(P, X[:, :2])
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert torch.overrides._get_current_function_mode() is None
