"""What backward needs waits on the host: the same numbers, and buffers that are used again."""

import gc

import pytest
import torch

from gcnii.data import load
from gcnii.dropout import epoch_key, keyed
from gcnii.errors import UsageError
from gcnii.memory import segment_length
from gcnii.nn import MODELS
from gcnii.nn.engine.recompute import HostBuffer, Stash
from gcnii.propagation import feature_matrix, propagation_matrix
from gcnii.results.fit import fit

SKELETON = [name for name, model in MODELS.items() if model.can_recompute]
CPU, CUDA = torch.device("cpu"), "cuda"
PLUS = [
    {"head": "features", "product_first": True},
    {"row_norm": "layer"},
    {"row_norm": "layer", "residual": True, "head": "features", "product_first": True},
]
CASES = [(name, {}) for name in SKELETON] + [("gcnii-plus", options) for options in PLUS]


def step(name, options, stash, device="cpu", layers=10, width=8, retain=False):
    """The scores and gradients of a step with dropout that recomputes."""
    graph = load("csbm", n=60, degree=5, labels_per_class=5)
    torch.manual_seed(0)
    depth = {} if name == "mlp" else {"layers": layers}
    model = MODELS[name](graph.d, graph.k, width=width, dropout=0.4, **depth, **options)
    model = model.to(device).train()
    model.recomputes, model.stash = True, stash
    P, X = propagation_matrix(graph).to(device), feature_matrix(graph).to(device)
    with keyed(epoch_key(torch.tensor([3]), 1)[0].to(device)):
        scores = model(P, X)
    loss, weights = scores.square().sum(), list(model.parameters())
    return scores, torch.autograd.grad(loss, weights, retain_graph=retain)


def equal(one, other):
    return torch.equal(one[0], other[0]) and all(map(torch.equal, one[1], other[1]))


@pytest.mark.parametrize(("name", "options"), CASES)
def test_on_a_cpu_offloading_gives_the_bits_of_recomputing(name, options):
    again, away = step(name, options, None), step(name, options, Stash(CPU))
    assert again[0].std() > 0
    assert equal(again, away)


@pytest.mark.cuda
@pytest.mark.parametrize("width", [32, 160])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_on_a_gpu_offloading_gives_the_bits_of_recomputing(name, options, width):
    again = step(name, options, None, CUDA, width=width)
    away = step(name, options, Stash(torch.device(CUDA)), CUDA, width=width)
    assert equal(again, away)


@pytest.mark.cuda
@pytest.mark.parametrize(("name", "options"), CASES)
def test_without_kernels_it_gives_the_same_but_for_sums_in_no_fixed_order(
    name, options, without_kernels
):
    without_kernels()
    again = step(name, options, None, CUDA)
    away = step(name, options, Stash(torch.device(CUDA)), CUDA)
    most = max(float(gradient.abs().max()) for gradient in again[1])
    torch.testing.assert_close(away, again, rtol=1e-4, atol=1e-5 * most)


@pytest.mark.cuda
def test_the_inputs_of_all_segments_but_the_first_and_the_last_go_to_pinned_memory():
    stash = Stash(torch.device(CUDA))
    step("gcnii", {}, stash, CUDA, layers=18, width=16)
    assert len(stash.free) == -(-18 // segment_length(18, offloads=True)) - 2
    assert all(buffer.bytes.is_pinned() for buffer in stash.free)
    before = list(stash.free)
    step("gcnii", {}, stash, CUDA, layers=18, width=16)
    assert {id(one) for one in stash.free} == {id(one) for one in before}


@pytest.mark.cuda
def test_pinned_memory_is_handed_back_with_the_stash():
    buffer = HostBuffer(1 << 20, pinned=True)
    held = buffer.bytes
    assert held.is_pinned()
    del buffer
    gc.collect()
    assert not held.is_pinned()
    fit(load("csbm", n=60), layers=18, width=16, epochs=2, device=CUDA, memory="offload")
    gc.collect()
    assert not [one for one in gc.get_objects() if type(one) is HostBuffer]


def peak(graph, memory):
    """The most bytes of the device that two epochs take; they are too few for a CUDA graph."""
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    fit(graph, layers=64, width=256, epochs=2, device=CUDA, memory=memory, seeds=[0])
    return torch.cuda.max_memory_allocated() - before


@pytest.mark.cuda
@pytest.mark.parametrize("kernels", [True, False])
def test_offloading_needs_less_of_the_device_than_recomputing(kernels, without_kernels):
    if not kernels:
        without_kernels()
    graph = load("csbm", n=20_000, degree=6, labels_per_class=10)
    keep, recompute, offload = (peak(graph, how) for how in ("keep", "recompute", "offload"))
    assert recompute < 0.5 * keep
    assert offload < 0.8 * recompute


def test_segments_are_those_of_recomputing_up_to_four_layers():
    assert [segment_length(layers) for layers in (0, 1, 8, 18, 32, 64)] == [1, 1, 2, 3, 4, 6]
    assert [segment_length(layers, offloads=True) for layers in (8, 18, 32, 64)] == [2, 3, 4, 4]


def test_a_second_backward_is_refused():
    scores, _ = step("gcnii", {}, Stash(CPU), retain=True)
    with pytest.raises(UsageError, match="with memory offload, backward runs only once"):
        scores.sum().backward()


def test_a_buffer_is_taken_again_and_a_small_one_replaced():
    stash = Stash(CPU)
    small, large = stash.buffer(100), stash.buffer(300)
    stash.free += [small, large]
    assert stash.buffer(80) is small
    assert stash.buffer(80) is large
    stash.free += [small, large]
    assert stash.buffer(301).size == 301
    assert stash.free == [small]


def test_a_buffer_has_the_strides_of_what_it_holds():
    H = torch.randn(3, 5, 4).transpose(0, 1)
    like = torch.empty_like(H, device="meta")
    held = HostBuffer(H.numel() * 4 + 10, pinned=False).shaped(like)
    held.copy_(H)
    assert held.stride() == H.stride()
    assert torch.equal(held, H)
