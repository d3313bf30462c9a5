"""A mask is a function of (seed, epoch, layer, element), and looks like coin tosses to any test."""

from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
import torch
from torch.func import vmap

from gcnii.dropout import LEVELS, Dropout, InplaceDropout, KeySequence, epoch_key, keep_mask, keyed
from gcnii.propagation import Sparse

N, WIDTH = 2708, 64
HALF = LEVELS // 2
Z = 4.5  # standard deviations; a fair coin passes one such check 999,993 times in a million


def mask(seed=0, epoch=0, call=0, count=N * WIDTH, kept=HALF, device="cpu"):
    sequence = KeySequence(epoch_key(torch.tensor([seed], device=device), epoch)[0])
    keys = [sequence.take(1)[0] for _ in range(call + 1)]
    return keep_mask(keys[-1], count, kept)


def assert_fair(signs, samples):
    """A mean of `samples` independent ±1 lies within Z/√samples of 0."""
    assert abs(float(signs.mean())) < Z / samples**0.5


def signs(**which):
    return 2.0 * mask(**which).double() - 1


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.6, 0.7, 0.9])
def test_the_keep_rate_is_what_was_asked_for(rate):
    kept = round((1 - rate) * LEVELS)
    shares = torch.stack([mask(seed=seed, kept=kept).double() for seed in range(5)])
    p = kept / LEVELS
    assert abs(shares.mean() - p) < Z * (p * (1 - p) / shares.numel()) ** 0.5


def test_keep_rates_of_rows_and_of_columns_scatter_as_coin_tosses_do():
    tosses = mask(kept=HALF).view(N, WIDTH).double()
    for axis, length in ((0, N), (1, WIDTH)):
        heads = tosses.sum(axis).numpy()
        chi2 = ((heads - length / 2) ** 2 / (length / 4)).sum()
        assert 1e-6 < scipy.stats.chi2.sf(chi2, len(heads)) < 1 - 1e-6


@pytest.mark.parametrize(
    "other",
    [{"seed": 1}, {"epoch": 1}, {"call": 1}, {"seed": 1 << 40}, {"epoch": 1499}, {"call": 64}],
)
def test_masks_of_two_seeds_epochs_or_layers_are_independent(other):
    assert_fair(signs() * signs(**other), N * WIDTH)


def test_no_two_of_many_masks_are_related():
    which = product(range(4), range(4), range(4))
    rows = torch.stack([signs(seed=s, epoch=e, call=c, count=20000) for s, e, c in which])
    correlations = (rows @ rows.T / rows.shape[1]).fill_diagonal_(0)
    assert correlations.abs().max() < 5.5 / rows.shape[1] ** 0.5  # the largest of 2016
    triples = (rows[:-2] * rows[1:-1] * rows[2:]).mean(1)
    assert triples.abs().max() < Z / rows.shape[1] ** 0.5


@pytest.mark.parametrize(
    "lag", [1, 2, 3, WIDTH - 1, WIDTH, WIDTH + 1, 2 * WIDTH, N, 1 << 15, 1 << 16]
)
def test_an_element_does_not_depend_on_those_before_it(lag):
    s = signs()
    assert_fair(s[lag:] * s[:-lag], len(s) - lag)


def test_there_is_no_visible_period():
    """The periodogram of coin tosses is exponential: m lines exceed ln m + 14 once in 10⁶."""
    power = torch.fft.rfft(signs()).abs().square()[1:] / (N * WIDTH)
    assert power.max() < np.log(len(power)) + 14
    assert scipy.stats.kstest(power[:20000].numpy(), "expon").pvalue > 1e-4


def test_the_two_lanes_of_a_word_are_independent_at_every_rate():
    for kept in (LEVELS // 10, HALF, 9 * LEVELS // 10):
        low, high = mask(kept=kept).view(-1, 2).double().T
        p = kept / LEVELS
        correlation = ((low - p) * (high - p)).mean() / (p * (1 - p))
        assert abs(correlation) < Z / len(low) ** 0.5


def test_runs_of_equal_elements_are_as_long_as_those_of_coin_tosses():
    s = mask().numpy()
    lengths = np.diff(np.flatnonzero(np.diff(s)))
    counts = np.bincount(lengths)[1:11]
    expected = len(lengths) * 0.5 ** np.arange(1, 11)
    assert scipy.stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), 9) > 1e-6


def test_neighbouring_seeds_and_epochs_have_keys_without_a_pattern():
    keys = epoch_key(torch.arange(2000), 3).double() / 2**31
    assert_fair(keys[:, 0].sign(), 2000)
    assert abs(np.corrcoef(keys.T)[0, 1]) < Z / 2000**0.5
    both = product(range(2), range(2))
    assert len({tuple(epoch_key(torch.tensor([s]), e)[0].tolist()) for s, e in both}) == 4


def test_the_hash_never_changes():
    """Results can be reproduced only while the hash stays the same."""
    bits = "".join(map(str, mask(seed=7, epoch=3, call=2, count=24).tolist()))
    assert bits == "001110001101001110011010"


def test_replicas_have_the_masks_they_have_alone():
    keys = epoch_key(torch.tensor([3, 1, 4]), 5)
    H, drop = torch.rand(10, 7), Dropout(0.4)

    def forward(key):
        with keyed(key):
            return drop(drop(H))

    assert torch.equal(vmap(forward)(keys), torch.stack([forward(key) for key in keys]))


def test_each_dropout_call_has_its_own_mask_and_a_pass_can_be_repeated():
    drop, H, key = Dropout(0.5), torch.ones(50, 8), epoch_key(torch.tensor([0]), 0)[0]
    passes = []
    for _ in range(2):
        with keyed(key):
            passes.append([drop(H) for _ in range(70)])
    assert all(torch.equal(*both) for both in zip(*passes, strict=True))
    assert not any(torch.equal(*both) for both in pairwise(passes[0]))


def test_keys_taken_together_are_those_taken_one_by_one():
    key = epoch_key(torch.tensor([3]), 7)[0]
    with keyed(key) as one, keyed(key) as other:
        alone = torch.stack([one.take(1)[0] for _ in range(70)])
        together = torch.cat([other.take(1), other.take(66), other.take(1)[0][None], other.take(2)])
    assert torch.equal(alone, together)


@pytest.mark.parametrize("kept", [1, HALF, 26214, LEVELS - 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dropout_in_place_leaves_what_the_mask_keeps(kept, dtype):
    H = torch.randn(3, 31, 7, dtype=dtype)
    erase = InplaceDropout(H, kept)
    for epoch in (5, 6):
        keys = epoch_key(torch.arange(3), epoch)
        masks = torch.stack([keep_mask(key, 31 * 7, kept).view(31, 7) for key in keys])
        assert torch.equal(erase(H.clone(), keys), H.where(masks == 1, 0))


def test_kept_entries_are_scaled_up_so_that_the_mean_stays():
    drop, H = Dropout(0.6), torch.ones(2708, 64)
    with keyed(epoch_key(torch.tensor([0]), 0)[0]):
        dropped = drop(H)
    assert dropped.unique().tolist() == [0, pytest.approx(1 / 0.4, rel=1e-4)]
    assert dropped.mean() == pytest.approx(1, abs=0.02)


def test_the_gradient_passes_where_the_entry_was_kept():
    drop, H = Dropout(0.5), torch.ones(30, 4, requires_grad=True)
    with keyed(epoch_key(torch.tensor([0]), 0)[0]):
        dropped = drop(H)
    dropped.sum().backward()
    assert torch.equal(H.grad, dropped.detach())


def test_on_sparse_features_the_stored_values_are_dropped():
    X = Sparse.from_scipy(sp.csr_array(np.triu(np.ones((40, 40)))))
    with keyed(epoch_key(torch.tensor([0]), 0)[0]):
        dropped = Dropout(0.5)(X)
    assert set(dropped.values.tolist()) == {0.0, 2.0}
    assert torch.equal(
        (X.to_dense() == 0) & (dropped.to_dense() != 0), torch.zeros(40, 40, dtype=bool)
    )
    W = torch.eye(40, dtype=torch.float64)  # the gradient uses the same values as the product
    torch.testing.assert_close(dropped.to_dense().T, _gradient(dropped, W))


def _gradient(M, W):
    W = W.clone().requires_grad_()
    return torch.stack(
        [torch.autograd.grad((M @ W)[i].sum(), W)[0][:, 0] for i in range(M.shape[0])], 1
    )


def test_without_training_or_at_rate_zero_nothing_changes():
    H = torch.rand(5, 5)
    assert Dropout(0.5).eval()(H) is H
    assert Dropout(0.0)(H) is H


def test_outside_of_fit_the_users_seed_decides():
    drop, H = Dropout(0.5), torch.ones(20, 20)
    torch.manual_seed(3)
    first = drop(H)
    torch.manual_seed(3)
    assert torch.equal(drop(H), first)
    assert not torch.equal(drop(H), first)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2.0])
def test_a_rate_outside_of_zero_to_one_is_refused(rate):
    sentence = f"dropout is the share of entries set to zero and must lie in [0, 1), got {rate}"
    with pytest.raises(ValueError) as error:
        Dropout(rate)
    assert str(error.value) == sentence


@pytest.mark.cuda
def test_masks_are_the_same_on_cuda():
    for which in (
        {"seed": 5},
        {"epoch": 1499, "call": 65},
        {"seed": 99, "kept": 12345, "count": 2708 * 64 + 1},
    ):
        assert torch.equal(mask(**which), mask(**which, device="cuda").cpu())
