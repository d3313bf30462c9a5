"""Models give the same results with the kernels and without."""

import pytest
import torch
from torch.func import functional_call, vmap

from gcnii.data import load
from gcnii.dropout import epoch_key, keyed
from gcnii.nn import MODELS
from gcnii.propagation import GraphAdjacency, adjacency, feature_matrix

DROPEDGE = ("dropedge-gcn", "jknet", "incep")


def step(name, device, seeds):
    """The scores and gradients of a training step with dropout."""
    torch.manual_seed(0)
    graph = load("csbm", n=40, degree=5, labels_per_class=5)
    links = GraphAdjacency.of(adjacency(graph)).to(device, torch.float32)
    X = feature_matrix(graph).to(device, torch.float32)
    settings = {"layers": 3, "width": 16} if name != "gat" else {}
    settings |= {"self_weight": True, "batch_norm": True} if name in DROPEDGE else {}
    model = MODELS[name](graph.d, graph.k, dropout=0.4, **settings).to(device)
    weights = {
        key: torch.stack([W.detach() * 1.1**s for s in seeds]).requires_grad_()
        for key, W in model.named_parameters()
    }

    def one(weights, key):
        with keyed(key):
            return functional_call(model, weights, (links.whole, X))

    scores = vmap(one)(weights, epoch_key(torch.tensor(seeds), 3).to(device))
    # Not their squares, whose sum batch norm makes the same for all weights.
    wanted = torch.randn(scores.shape, generator=torch.Generator().manual_seed(1)).to(device)
    gradients = torch.autograd.grad((scores * wanted).sum(), list(weights.values()))
    return scores.detach().cpu(), [gradient.cpu() for gradient in gradients]


@pytest.mark.parametrize(
    "name", ["gcnii", "gcnii-star", "gcnii-ppi", "gat", "gcn", "appnp", *DROPEDGE]
)
def test_a_training_step_is_the_same_with_and_without_kernels(device, name, monkeypatch):
    if name == "gat" and device == "cpu":
        pytest.skip("takes too long in Triton's interpreter")
    found = step(name, device, [0, 1])
    monkeypatch.setattr("gcnii.kernels.usable", lambda tensor: False)
    expected = step(name, "cpu", [0, 1])
    # Relative to the largest: the gradient of a bias before batch norm is nothing but rounding.
    most = max(float(gradient.norm()) for gradient in expected[1])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * most)
