"""Models give the same results with the kernels and without."""

import pytest
import torch
from torch.func import functional_call, vmap

from gcnii.data import load
from gcnii.dropout import epoch_key, keyed
from gcnii.nn import MODELS
from gcnii.nn.model import numbers_of, set_numbers
from gcnii.propagation import Adjacency, adjacency, feature_matrix

pytestmark = pytest.mark.slow

DROPEDGE = ("dropedge-gcn", "jknet", "incep")


def step(name, device, seeds, mixed=False):
    """The scores and gradients of a training step with dropout, of replicas that may differ in it.

    mixed  whether their rates of dropout differ, and their α where there is one
    """
    torch.manual_seed(0)
    graph = load("csbm", n=40, degree=5, labels_per_class=5)
    links = Adjacency.of(adjacency(graph)).to(device, torch.float32)
    X = feature_matrix(graph).to(device, torch.float32)
    settings = {"layers": 3, "width": 16} if name != "gat" else {}
    settings |= {"self_weight": True, "batch_norm": True} if name in DROPEDGE else {}
    models = [
        MODELS[name](graph.d, graph.k, dropout=0.4 - 0.2 * i * mixed, **settings, **more).to(device)
        for i, more in enumerate(({}, {"alpha": 0.3} if mixed and name != "gcn" else {}))
    ]
    numbers = set_numbers(models[0], [numbers_of(each) for each in models], torch.float32)
    assert bool(numbers) == mixed
    model = models[0]
    weights = {
        key: torch.stack([W.detach() * 1.1**s for s in seeds]).requires_grad_()
        for key, W in model.named_parameters()
    }

    def one(weights, key, numbers):
        with keyed(key):
            return functional_call(model, weights | numbers, (links.whole, X))

    keys = epoch_key(torch.tensor(seeds), 3).to(device)
    scores = vmap(one)(weights, keys, {key: number.to(device) for key, number in numbers.items()})
    # Not their squares, whose sum batch norm makes the same for all weights.
    wanted = torch.randn(scores.shape, generator=torch.Generator().manual_seed(1)).to(device)
    gradients = torch.autograd.grad((scores * wanted).sum(), list(weights.values()))
    return scores.detach().cpu(), [gradient.cpu() for gradient in gradients]


@pytest.mark.parametrize(
    "name", ["gcnii", "gcnii-star", "gcnii-ppi", "gat", "gcn", "appnp", *DROPEDGE]
)
def test_a_training_step_is_the_same_with_and_without_kernels(device, name, without_kernels):
    if name == "gat" and device == "cpu":
        pytest.skip("takes too long in Triton's interpreter")
    found = step(name, device, [0, 1])
    without_kernels()
    expected = step(name, "cpu", [0, 1])
    # Relative to the largest: the gradient of a bias before batch norm is nothing but rounding.
    most = max(float(gradient.norm()) for gradient in expected[1])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * most)


@pytest.mark.parametrize("name", ["gcnii", "gcnii-star", "gcnii-ppi", "gcn", "appnp"])
def test_replicas_of_different_settings_are_the_same_with_and_without_kernels(
    device, name, without_kernels
):
    found = step(name, device, [0, 1], mixed=True)
    without_kernels()
    expected = step(name, "cpu", [0, 1], mixed=True)
    most = max(float(gradient.norm()) for gradient in expected[1])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5 * most)
