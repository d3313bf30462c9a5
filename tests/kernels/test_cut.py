"""Layers on a GPU of a process that shares the rows: near columns, what others add, their masks."""

import pytest
import torch
from support.to_itself import alone, halved, numbered
from torch.func import functional_call, vmap

from gcnii.data import load
from gcnii.dropout import epoch_key, keyed
from gcnii.nn import MODELS
from gcnii.propagation import Adjacency, adjacency, feature_matrix

SOME, ALL, NONE = [1, 7, 20, 33], [*range(40)], []
FORMS = [
    ("gcnii", 16, SOME),
    ("gcnii", 16, ALL),
    ("gcnii", 16, NONE),
    ("gcnii-star", 24, SOME),
    ("gcnii-ppi", 16, SOME),
    ("gcnii", 160, SOME),
    ("gcnii-ppi", 144, SOME),
]


def step(name, width, device, dtype, strangers=(), world=None):
    """The scores and gradients of a training step of two replicas, whose rows are far apart.

    strangers  the columns that come from another process, which is this one
    """
    torch.manual_seed(0)
    graph = load("csbm", n=40, degree=5, labels_per_class=5)
    P = Adjacency.of(adjacency(graph)).to(device, dtype).whole
    X = feature_matrix(graph).to(device, dtype)
    # elements beyond 2³²
    P = numbered(P, torch.arange(40, device=device) * 200_000_001 + 5)
    P = P if world is None else halved(P, world, strangers)
    model = MODELS[name](graph.d, graph.k, layers=3, width=width, dropout=0.4).to(device, dtype)
    weights = {
        key: torch.stack([W.detach(), W.detach() * 1.1]).requires_grad_()
        for key, W in model.named_parameters()
    }

    def one(weights, key):
        with keyed(key, rows=P.row_numbers):
            return functional_call(model, weights, (P, X))

    scores = vmap(one)(weights, epoch_key(torch.tensor([0, 1]), 3).to(device))
    wanted = torch.randn(scores.shape, generator=torch.Generator().manual_seed(1)).to(scores)
    gradients = torch.autograd.grad((scores * wanted).sum(), list(weights.values()))
    return [each.detach().cpu().double() for each in (scores, *gradients)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "width", "strangers"), FORMS)
def test_a_step_with_kernels_over_a_halo_is_that_of_the_whole_matrix(
    device, name, width, strangers, without_kernels
):
    with alone() as world:
        found = step(name, width, device, torch.float32, strangers, world)
    without_kernels()
    for one, other in zip(found, step(name, width, "cpu", torch.float32), strict=True):
        assert float((one - other).norm() / other.norm()) < 1e-5


def test_narrow_layers_are_fused_on_either_side_of_the_border(device):
    from gcnii.kernels.layouts import CutSlots
    from gcnii.kernels.stack import cut_order

    graph = load("csbm", n=40, degree=5, labels_per_class=5)
    with alone() as world:
        places = halved(Adjacency.of(adjacency(graph)).whole, world, SOME).places
    for pattern in (places, places.transposed[0]):
        order = cut_order(pattern, torch.empty(1, 40, 64))
        assert isinstance(order, CutSlots)
        inner, border = (one.order[one.order >= 0] for one in (order.inner, order.arriving))
        assert 0 < len(border) < 40
        assert sorted([*inner.tolist(), *border.tolist()]) == list(range(40))
        assert (
            sorted(order.border.order[order.border.order >= 0].tolist())
            == border.sort()[0].tolist()
        )
        assert not isinstance(cut_order(pattern, torch.empty(1, 40, 160)), CutSlots)
