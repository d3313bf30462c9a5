"""Activations times weights: the same as torch's own product and its gradients."""

import numpy as np
import pytest
import torch
from support import knobs
from torch.func import vmap

from gcnii import data
from gcnii.nn.model import MatMul
from gcnii.results.fit import fit


def numbers(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("rows_for_each", [1, 1000])  # one by one, and at once
@pytest.mark.parametrize(
    ("H", "W", "dims"),
    [
        ((7, 4), (4, 3), None),
        ((2, 7, 4), (2, 4, 3), (0, 0)),
        ((7, 2, 4), (4, 3, 2), (1, 2)),
        ((7, 4), (2, 4, 3), (None, 0)),
    ],
    ids=["alone", "replicas", "replicas in other places", "shared features"],
)
def test_it_is_the_plain_product_with_its_gradients(H, W, dims, rows_for_each, monkeypatch):
    monkeypatch.setattr(knobs.LONG_ROWS, rows_for_each)
    H, W = numbers(*H), numbers(*W)
    plain, ours = (
        (torch.matmul, MatMul.apply)
        if dims is None
        else (vmap(torch.matmul, dims), vmap(MatMul.apply, dims))
    )
    weights = torch.randn_like(plain(H, W))
    found, expected = (
        (product(H, W), *torch.autograd.grad((product(H, W) * weights).sum(), (H, W)))
        for product in (ours, plain)
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_a_gradient_that_nobody_asks_for_is_not_computed():
    H, W = numbers(7, 4).detach(), numbers(4, 3)
    assert not MatMul.apply(H, W.detach()).requires_grad
    MatMul.apply(H, W).sum().backward()
    assert H.grad is None
    assert W.grad is not None


@pytest.mark.cuda
@pytest.mark.parametrize("model", ["dropedge-gcn", "jknet", "incep"])
def test_dropedges_networks_train_on_cuda_as_on_the_cpu(model, monkeypatch):
    monkeypatch.setattr(knobs.LONG_ROWS, 1)
    graph = data.load("csbm", n=120, degree=6, signal=3.0, labels_per_class=10)
    settings = {"layers": 4, "width": 16, "epochs": 12, "drop_edge": 0.3}
    settings |= {"self_weight": True, "batch_norm": True}
    cpu, cuda = (
        [run.curve for run in fit(graph, model, seeds=range(3), device=device, **settings).runs]
        for device in ("cpu", "cuda")
    )
    np.testing.assert_allclose(cpu, cuda, rtol=1e-3)
