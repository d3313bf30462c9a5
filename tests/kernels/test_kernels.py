"""Each kernel against the plain code, in float64 where possible."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from support import knobs

from gcnii.dropout import (
    LEVELS,
    _first_key,
    epoch_key,
    keep_mask,
    key_run,
    levels,
    numbered_keys,
)
from gcnii.kernels.layouts import Cut, schedule_of, slots_of
from gcnii.propagation import Sparse

pytestmark = pytest.mark.slow


def hubs(n, d, seed=0):
    """A sparse matrix with two long rows, a long column, an empty row, and values of both signs."""
    A = sp.random_array((n, d), density=0.05, rng=np.random.default_rng(seed)).tolil()
    A[3, :], A[5, : d // 2], A[:, 7] = 0.5, -1.5, 0.25
    A[9, :] = 0
    return sp.csr_array(A)


def relative(found, expected):
    return float((found.double() - expected).detach().norm() / expected.detach().norm())


@pytest.mark.parametrize("width", [1, 24, 64])
@pytest.mark.parametrize("own_values", [False, True])
def test_every_row_gathers_its_neighbours(device, width, own_values):
    from gcnii.kernels.gather import gather, gather_by_row

    A = hubs(70, 90)
    M = Sparse.from_scipy(A).to(device, torch.float64)
    values = torch.stack([M.values, 2 * M.values]) if own_values else M.values[None]
    H, H0 = (torch.randn(2, rows, width, dtype=torch.float64, device=device) for rows in (90, 70))
    dense = torch.tensor(A.toarray(), device=device)
    scales = torch.tensor([1.0, 2.0 if own_values else 1.0], dtype=torch.float64, device=device)[
        :, None, None
    ]
    weighted = schedule_of(M.pattern, Cut(16, 16, 4)).with_values(values)
    torch.testing.assert_close(gather(weighted, H), scales * (dense @ H))
    by_row = gather_by_row(M.pattern.rows, M.pattern.columns, values, H)
    torch.testing.assert_close(by_row, scales * (dense @ H))
    expected = scales * (dense @ H) + 0.1 * H0
    torch.testing.assert_close(gather(weighted, H, H0, 0.1), expected)
    torch.testing.assert_close(gather(weighted, H, H0, 0.1, where=H0), expected * (H0 > 0))


def test_dots_are_those_of_each_entry(device):
    from gcnii.kernels.gather import dots

    M = Sparse.from_scipy(hubs(70, 90)).to(device, torch.float64)
    G, H = (torch.randn(2, rows, 40, dtype=torch.float64, device=device) for rows in (70, 90))
    row, column = M.pattern.row_of, M.pattern.columns
    torch.testing.assert_close(dots(row, column, G, H), (G[:, row] * H[:, column.long()]).sum(-1))


def test_a_schedule_holds_every_entry_once(device):
    A = hubs(70, 90)
    pattern = Sparse.from_scipy(A).to(device, torch.float64).pattern
    schedule = schedule_of(pattern, Cut(32, 16, 4))
    rows = schedule.order[schedule.order >= 0]
    assert sorted(rows.tolist()) == list(range(70))
    places = schedule.place[schedule.place >= 0].tolist()
    pieces = [
        range(*ends) for ends in zip(schedule.starts.tolist(), schedule.ends.tolist(), strict=True)
    ]
    assert sorted(places + [entry for piece in pieces for entry in piece]) == list(range(A.nnz))
    assert max(map(len, pieces)) <= 32 < A[[3]].nnz


def test_slots_hold_every_entry_once_and_keep_a_row_in_one_block(device):
    A = hubs(70, 90)
    M = Sparse.from_scipy(A).to(device, torch.float64)
    layouts = slots_of(M.pattern, Cut(32, 4, 4))
    assert sorted(layouts.order[layouts.order >= 0].tolist()) == list(range(70))
    assert sorted(layouts.place[layouts.place >= 0].tolist()) == list(range(A.nnz))
    order = layouts.order.view(-1, 32).cpu()
    weights = layouts.with_values(M.values[None]).weights[0].cpu()
    own = torch.arange(32).repeat(layouts.blocks - layouts.hubs)
    owner = torch.cat([layouts.owner.cpu(), own]).view(-1, 32)
    found = torch.zeros(70, 90, dtype=torch.float64)
    for b, (start, end) in enumerate(pairwise(layouts.offsets.tolist())):
        for at in range(start * 32, end * 32):
            if layouts.index[at] >= 0:
                found[order[b, owner[b, at % 32]], layouts.index[at]] += weights[at]
    # rows of 90 and 45 entries, where 28 is four times the mean
    assert layouts.owner[:7].tolist() == [0, 0, 0, 0, 1, 1, -1]
    assert torch.equal(found, torch.tensor(A.toarray()))


@pytest.mark.parametrize("step", [None, 0, 7])
@pytest.mark.parametrize("epochs", [5, [[5], [0], [99_999]]])
def test_keys_are_those_of_the_cpu(device, epochs, step):
    from gcnii.kernels.mask import epoch_keys

    seeds, epochs = torch.tensor([0, 2**40 + 1, -3]), torch.tensor(epochs, dtype=torch.int32)
    number = None if step is None else torch.tensor(step, dtype=torch.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knobs.USABLE, lambda tensor: False)
        expected = epoch_key(seeds, epochs, step or 0)
    given = (None if one is None else one.to(device) for one in (seeds, epochs, number))
    assert torch.equal(epoch_keys(*given, _first_key(torch.device(device))).cpu(), expected)
    assert len(expected.unique()) == 6


@pytest.mark.parametrize("start", [0, 128])
def test_keys_of_dropout_calls_are_those_of_the_cpu_alone_and_under_vmap(device, start):
    keys, numbers = epoch_key(torch.tensor([0, 2**40]), 5), torch.arange(start, start + 700)
    expected = torch.stack([numbered_keys(key, numbers.int()) for key in keys.cpu()])
    run = partial(key_run, start=start, end=start + 700)
    keys = keys.to(device)
    assert torch.equal(torch.stack([run(key) for key in keys]).cpu(), expected)
    assert torch.equal(torch.func.vmap(run)(keys).cpu(), expected)


@pytest.mark.parametrize("count", [1, 1000, 2049])
def test_masks_are_those_of_the_cpu(device, count):
    from gcnii.kernels.mask import drop, mask

    keys = epoch_key(torch.tensor([0, 1, 2**40]), 5)
    for kept in (26214, torch.tensor([26214, LEVELS, 9830], dtype=torch.int32)):
        expected, share = keep_mask_on_cpu(keys, count, kept), levels(kept, device).to(device)
        assert torch.equal(mask(keys.to(device), count, share).cpu(), expected)
        H, scale = torch.randn(3, count), LEVELS / share[:, None].cpu()
        dropped = drop(H.to(device), keys.to(device), share, scaled=True).cpu()
        torch.testing.assert_close(dropped, H * expected * scale)


def keep_mask_on_cpu(keys, count, kept):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(knobs.USABLE, lambda tensor: False)
        return keep_mask(keys, count, kept)


CASES = [  # width, block, GCNII*'s second matrix, skip, dropped
    (16, 16, False, 0.0, True),
    (48, 32, False, 0.0, True),
    (64, 32, True, 1.25, True),
    (48, 16, True, 0.0, False),
    (144, 16, False, 1.25, True),
    (144, 16, True, 0.0, False),
]


@pytest.mark.parametrize(("width", "block", "star", "skip", "dropped"), CASES)
@pytest.mark.parametrize("fused", [True, False])
def test_layers_and_their_gradients_agree_with_float64(
    device, width, block, star, skip, dropped, fused, monkeypatch
):
    from gcnii.kernels import layouts, stack

    monkeypatch.setattr(stack, "cut", lambda H, back=False: layouts.Cut(block, 8, 4))
    monkeypatch.setattr(layouts, "TOO_LONG", 4 if fused else 0)
    n, replicas, layers = 60, 2, 3
    kept = torch.tensor([40000, 50000], dtype=torch.int32)
    alpha = 0.0 if star else 0.1
    A = hubs(n, n) * 0.5
    P = Sparse.from_scipy(A).to(device, torch.float32)
    H, H0, G = (torch.rand(replicas, n, width, device=device) for _ in range(3))
    M1, M2 = (
        torch.randn(layers, replicas, width, width, device=device) / width**0.5 for _ in range(2)
    )
    keys = epoch_key(torch.arange(layers * replicas), 5).view(layers, replicas, 2)
    masks = torch.stack(
        [keep_mask_on_cpu(key, n * width, kept).view(replicas, n, width) for key in keys]
    ).to(device)
    masks = masks.double() if dropped else torch.ones_like(masks).double()
    common = {"alpha": alpha, "skip": skip, "kept": kept.to(device)}
    second, keys = M2 if star else None, keys.to(device) if dropped else None

    X, X0, W1, W2 = (tensor.double().requires_grad_() for tensor in (H, H0, M1, M2))
    D, dense = X * masks[0], torch.tensor(A.toarray(), device=device).float().double()
    for l in range(layers):
        Z = (dense @ D + alpha * X0) @ W1[l] + (X0 @ W2[l] if star else 0) + skip * D
        D = Z.relu() * (masks[l + 1] if l + 1 < layers else 1)
    expected = torch.autograd.grad(D, [X, X0, W1, *([W2] if star else [])], G.double())

    args = (H, H0, M1, second, keys)
    weighted = stack.order(P.pattern, H).with_values(P.values[None])
    assert isinstance(weighted, layouts.SlottedMatrix) == (fused and width <= 128)
    (alone,) = stack.forward(weighted, *args, saves=False, **common)
    out, *saved = stack.forward(weighted, *args, saves=True, **common)
    weighted = stack.order(P.pattern.transposed[0], H).with_values(P.transposed[None])
    found = stack.backward(weighted, G, out, *saved, H0, M1, second, keys, **common)
    assert torch.equal(alone, out)
    assert relative(out, D) < 1e-6
    for gradient, reference in zip(found, expected, strict=False):
        assert relative(gradient, reference) < 1e-5


@pytest.mark.parametrize(("replicas", "layers"), [(1, 3), (2, 3), (3, 2)])
@pytest.mark.parametrize("rows_for_each", [1, 1000])
def test_gradients_of_gcnii_stars_second_weights_are_h0_transposed_times_dz(
    device, replicas, layers, rows_for_each, monkeypatch
):
    from gcnii.kernels import stack

    monkeypatch.setattr(knobs.LONG_ROWS, rows_for_each)  # one by one, and at once
    H0 = torch.randn(replicas, 50, 8, device=device)
    dZ = torch.randn(replicas, layers, 50, 8, device=device)
    expected = torch.einsum("rni,rlnj->lrij", H0.double(), dZ.double())
    assert relative(stack._initial_gradients(H0, dZ), expected) < 1e-5


@pytest.mark.cuda  # Triton's interpreter does not multiply 16-bit matrices
@pytest.mark.parametrize("width", [48, 64, 128, 144])
def test_layers_in_16_bits_equal_those_in_32_up_to_rounding(device, width):
    from gcnii.kernels import stack

    P = Sparse.from_scipy(hubs(60, 60) * 0.5).to(device, torch.float32)
    H, H0, G = (torch.rand(2, 60, width, device=device) for _ in range(3))
    M1, M2 = (torch.randn(3, 2, width, width, device=device) / width**0.5 for _ in range(2))
    keys = epoch_key(torch.arange(6), 5).view(3, 2, 2).to(device)
    common = {"alpha": 0.0, "skip": 1.25, "kept": levels(40000, torch.device(device))}

    def results(dtype):
        h, h0, g = (one.to(dtype) for one in (H, H0, G))
        weighted = stack.order(P.pattern, h).with_values(P.values[None])
        out, *saved = stack.forward(weighted, h, h0, M1, M2, keys, saves=True, **common)
        kept = out.clone()
        weighted = stack.order(P.pattern.transposed[0], h).with_values(P.transposed[None])
        return kept, *stack.backward(weighted, g, out, *saved, h0, M1, M2, keys, **common)

    (out, *gradients), (expected, *references) = results(torch.bfloat16), results(torch.float32)
    assert relative(out, expected.double()) < 0.02
    for gradient, reference in zip(gradients, references, strict=True):
        # Rounding flips the sign of some units near zero, whose gradients are then entirely wrong.
        assert relative(gradient, reference.double()) < 0.04
