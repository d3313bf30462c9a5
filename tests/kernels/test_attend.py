"""GAT's attention in the kernels: what the plain operations give, and their gradients."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from support import knobs
from torch.func import functional_call, vmap

from gcnii.dropout import epoch_key, keyed
from gcnii.nn.gat import Attention
from gcnii.propagation import Sparse
from gcnii.propagation.sparse import Pattern

pytestmark = pytest.mark.slow
WEIGHTS = ("W", "a1", "a2")
REPLICAS = 2


@pytest.fixture
def links():
    """Some entries are zero, one row and one column have none."""
    rng = np.random.default_rng(0)
    places = rng.random((7, 11)) < 0.5
    places[3], places[:, 6] = False, False
    pattern = Pattern.of(sp.csr_array(places))
    values = torch.tensor(rng.random(len(pattern.columns)) > 0.2).double()
    return Sparse(pattern, values)


def of_one_step(P, device):
    rows, columns = P.pattern.rows.to(device), P.pattern.columns.to(device)
    return Sparse(Pattern(rows, columns, P.shape, transient=True), P.values.to(device))


def attended(attention, P, H, key, *weights):
    with keyed(key):
        return functional_call(attention, dict(zip(WEIGHTS, weights, strict=True)), (P, H))


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("widest", [128, 2], ids=["one tile", "several tiles"])
def test_attention_in_four_launches_is_that_of_plain_operations(
    links, dropout, widest, device, monkeypatch
):
    import gcnii.kernels.attend as module

    monkeypatch.setattr(module, "WIDEST", widest)
    monkeypatch.setattr(module, "PIECE", 4)
    torch.manual_seed(0)
    attention, H = Attention(6, 3, 2, dropout).double(), torch.randn(11, 6).double()
    weights = [torch.randn(REPLICAS, *getattr(attention, name).shape).double() for name in WEIGHTS]
    keys, G = epoch_key(torch.arange(REPLICAS), 1), torch.randn(REPLICAS, 7, 2, 3).double()

    def result(P, where, run):
        given = [one.to(where).requires_grad_() for one in weights]
        out = run(partial(attended, attention.to(where), P, H.to(where)), keys.to(where), *given)
        return [out.cpu(), *(one.cpu() for one in torch.autograd.grad(out, given, G.to(where)))]

    def each(one, *given):
        return torch.stack([one(*(each[i] for each in given)) for i in range(REPLICAS)])

    with monkeypatch.context() as plainly:
        plainly.setattr(knobs.USABLE, lambda tensor: False)
        expected = result(links, "cpu", each)
    P = of_one_step(links, device)
    for run in (each, lambda one, *given: vmap(one)(*given)):
        for found, plain in zip(result(P, device, run), expected, strict=True):
            torch.testing.assert_close(found, plain)
