"""The parts of attention: dot products, maxima and sums over the entries of a pattern."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import vmap

from gcnii.propagation import Sparse
from gcnii.propagation.attention import attend, row_max, row_softmax
from gcnii.propagation.sparse import Pattern, dots


@pytest.fixture
def pattern():
    places = np.random.default_rng(0).random((7, 5)) < 0.4
    places[3] = False  # a row without entries
    return Pattern.of(sp.csr_array(places))


def randn(*shape):
    return torch.randn(
        *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(len(shape))
    )


def test_dots_are_those_of_rows_and_columns_and_their_gradients_are_right(pattern):
    G, H = randn(7, 3).requires_grad_(), randn(5, 3).requires_grad_()
    torch.testing.assert_close(
        dots(pattern, G, H), (G[pattern.row_of] * H[pattern.columns]).sum(-1)
    )
    assert gradcheck(partial(dots, pattern), (G, H))
    assert gradgradcheck(partial(dots, pattern), (G, H))


@pytest.mark.parametrize("in_dims", [(0, 0), (1, 1), (0, None), (None, 1)])
def test_dots_of_replicas_are_those_of_each(pattern, in_dims):
    G, H = randn(7, 3), randn(5, 3)
    batched = [
        one if dim is None else torch.stack([one, 2 * one, one - 1], dim)
        for one, dim in zip((G, H), in_dims, strict=True)
    ]
    alone = [
        dots(
            pattern,
            *(
                one if dim is None else one.select(dim, r)
                for one, dim in zip(batched, in_dims, strict=True)
            ),
        )
        for r in range(3)
    ]
    torch.testing.assert_close(vmap(partial(dots, pattern), in_dims)(*batched), torch.stack(alone))


def test_the_gradient_of_a_matrixs_values_is_right(pattern):
    values, H = randn(len(pattern.columns)).requires_grad_(), randn(5, 3).requires_grad_()
    assert gradcheck(lambda values, H: Sparse(pattern, values) @ H, (values, H))


@pytest.mark.parametrize("dim", [0, 1])
def test_replicas_with_their_own_values_have_the_gradients_of_each_in_any_dimension(pattern, dim):
    values, H = randn(len(pattern.columns), 4), randn(5, 4, 3)
    values, H = (one.movedim(1, dim).contiguous().requires_grad_() for one in (values, H))
    together = vmap(lambda values, H: Sparse(pattern, values) @ H, in_dims=dim)(values, H)
    alone = torch.stack(
        [Sparse(pattern, values.select(dim, r)) @ H.select(dim, r) for r in range(4)]
    )
    G = randn(*alone.shape)
    for one, other in zip(
        *(torch.autograd.grad(out, (values, H), G) for out in (together, alone)), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_the_maximum_is_that_of_each_row_and_its_gradient_is_right(pattern):
    E = randn(len(pattern.columns), 2).requires_grad_()
    top = row_max(pattern, E)
    for i in range(7):
        own = E[pattern.row_of == i]
        assert torch.equal(
            top[i], own.max(0).values if len(own) else torch.full((2,), -torch.inf).double()
        )
    assert gradcheck(lambda E: row_max(pattern, E)[pattern.rows.diff() > 0], E)


def test_equal_maxima_share_the_gradient():
    pattern = Pattern.of(sp.csr_array(np.ones((2, 3))))
    E = torch.tensor([[5.0], [5.0], [1.0], [2.0], [2.0], [2.0]], requires_grad=True)
    row_max(pattern, E).backward(torch.tensor([[1.0], [3.0]]))
    assert E.grad[:, 0].tolist() == [0.5, 0.5, 0, 1, 1, 1]


def test_absent_entries_do_not_affect_the_maximum_or_its_gradient(pattern):
    E = randn(len(pattern.columns), 2).requires_grad_()
    there = torch.arange(len(pattern.columns)) % 3 > 0
    top = row_max(pattern, torch.where(there[:, None], E, -torch.inf))
    torch.where(top.isfinite(), top, 0).sum().backward()
    assert E.grad.isfinite().all()
    assert not E.grad[~there].any()
    rows = len(pattern.row_of[there].unique())
    assert E.grad.sum(0).tolist() == [rows, rows]


def test_the_maximum_of_replicas_and_its_gradient_are_those_of_each(pattern):
    E = randn(4, len(pattern.columns), 2).requires_grad_()
    full = pattern.rows.diff() > 0
    together = vmap(lambda E: row_max(pattern, E))(E)[:, full]
    alone = torch.stack([row_max(pattern, own)[full] for own in E])
    assert torch.equal(together, alone)
    G = randn(*alone.shape)
    torch.testing.assert_close(
        *(torch.autograd.grad(out, E, G, retain_graph=True)[0] for out in (together, alone))
    )


def test_each_head_gathers_with_weights_of_its_own(pattern):
    P = Sparse(pattern, torch.ones(len(pattern.columns)).double())
    alpha = row_softmax(pattern, randn(len(pattern.columns), 2)).requires_grad_()
    Z = randn(5, 2, 3).requires_grad_()
    for h in range(2):
        torch.testing.assert_close(attend(P, alpha, Z)[:, h], P.with_values(alpha[:, h]) @ Z[:, h])
    assert gradcheck(lambda alpha, Z: attend(P, alpha, Z), (alpha, Z))


@pytest.mark.cuda
def test_dots_and_their_gradients_are_the_same_on_cuda(pattern):
    G, H = randn(7, 3), randn(5, 3)
    results = []
    for device in ("cpu", "cuda"):
        ends = [one.to(device).requires_grad_() for one in (G, H)]
        found = dots(pattern.to(device), *ends)
        results.append([found, *torch.autograd.grad(found.square().sum(), ends)])
    for cpu, cuda in zip(*results, strict=True):
        torch.testing.assert_close(cpu, cuda.cpu())
