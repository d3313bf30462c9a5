"""The arithmetic of a plan: what grows with what, what fits, and what to change."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcnii import data
from gcnii.cost import (
    GIB,
    H200,
    MATRICES,
    Network,
    Place,
    Rates,
    calibrate,
    changes,
    chosen_memory,
    cost_at,
    cut_of,
    estimate,
    estimated_cut,
    h200_rates,
    measured_cut,
    memory,
    random_cut,
    this_cpu,
    uncut,
)
from gcnii.data.catalog import KNOWN, Size, counted, size_of
from gcnii.memory import segment_length
from gcnii.nn import MODELS
from gcnii.propagation import adjacency
from gcnii.train.distributed.shard import blocks
from gcnii.train.plan import make_plan
from gcnii_paper.bench.cases import GRAPHS

SIZE = Size(n=1_000_000, entries=20_000_000, d=100, k=10, stored=100_000_000)
DEEP = Network(layers=64, width=128)


def on_h200(size, network, devices=1, machines=1):
    cut = estimated_cut(size, devices) if devices > 1 else uncut(size.n)
    return estimate(size, network, H200, cut, devices, machines)


def test_auto_recomputes_where_train_would():
    assert chosen_memory("auto", DEEP, 1000, H200).memory == "keep"
    assert chosen_memory("auto", DEEP, 5_000_000, H200).memory == "recompute"
    assert chosen_memory("auto", DEEP, 100_000_000, H200).memory == "offload"
    assert chosen_memory("auto", DEEP, 10**12, this_cpu()).memory == "recompute"


@pytest.mark.parametrize("layers", [1, 2, 3, 8, 16, 63, 64, 65, 200])
def test_segments_are_those_of_the_model(layers):
    model = make_plan("gcnii", {"layers": layers, "width": 4}).build(3, 2)
    model.recomputes = True
    assert Network(layers=layers, memory="recompute").segment == model._segment()


@pytest.mark.parametrize("model", MATRICES)
def test_weights_are_counted_as_the_model_has_them(model):
    built = MODELS[model](30, 5, layers=4, width=16)
    found = sum(weight.numel() for weight in built.parameters())
    assert Network(model=model, layers=4, width=16).weights(30, 5) == found


def test_activations_kept_grow_with_nodes_layers_and_width_and_recomputed_ones_less():
    one = memory(SIZE, DEEP, H200, uncut(SIZE.n))
    twice = memory(SIZE, replace(DEEP, layers=128), H200, uncut(SIZE.n))
    assert twice.kept == 2 * one.kept == 2 * (2 * 64 * 1_000_000 * 128 * 4)
    again = memory(SIZE, replace(DEEP, memory="recompute"), H200, uncut(SIZE.n))
    assert again.kept == pytest.approx(one.kept * (11 + 2 * 6) / 128)
    away = memory(SIZE, replace(DEEP, memory="offload"), H200, uncut(SIZE.n))
    assert away.kept < again.kept
    assert away.host == 14 * 1_000_000 * 128 * 4


def test_half_as_many_bits_take_half_the_activations_and_less_time():
    whole, half = (on_h200(SIZE, replace(DEEP, precision=one)) for one in ("tf32", "bfloat16"))
    assert half.memory.kept == whole.memory.kept / 2
    assert half.seconds.total < whole.seconds.total


def test_a_layer_more_takes_as_long_as_any_other():
    times = [on_h200(SIZE, replace(DEEP, layers=layers)).seconds.total for layers in (8, 9, 10)]
    assert np.diff(times)[0] == pytest.approx(np.diff(times)[1])


def test_recomputing_costs_a_forward_pass_and_no_more():
    kept, again = (on_h200(SIZE, replace(DEEP, memory=way)) for way in ("keep", "recompute"))
    assert again.seconds.sparse == pytest.approx(kept.seconds.sparse * 4 / 3)
    assert 1 < again.seconds.total / kept.seconds.total < 1.5


def test_traffic_is_the_halo_s_rows_and_slower_between_machines():
    near, far = (on_h200(SIZE, DEEP, 16, machines) for machines in (1, 2))
    assert near.seconds.traffic == near.place.cut.halo * 128 * 4
    assert near.seconds.exchange < far.seconds.exchange
    assert near.seconds.hidden > far.seconds.hidden


def test_a_link_that_is_fast_enough_is_hidden():
    cost = on_h200(SIZE, DEEP, 4)
    fast = replace(H200, link=1e15)
    place = replace(cost.place, device=fast)
    assert cost_at(SIZE, DEEP, place).seconds.exchange == pytest.approx(0, abs=1e-12)


def test_offloading_is_hidden_behind_computing_or_takes_as_long_as_the_bus():
    away = replace(DEEP, memory="offload")
    assert on_h200(SIZE, away).seconds.host == 0
    slow = replace(H200, host=1e9)
    place = Place(device=slow, rates=h200_rates(away, SIZE.n), cut=uncut(SIZE.n))
    spent = cost_at(SIZE, away, place).seconds
    busy = spent.sparse + spent.dense + spent.passes
    assert busy + spent.host == pytest.approx(2 * 14 * 1_000_000 * 128 * 4 / 1e9)


def test_what_does_not_fit_says_what_would():
    papers = counted("papers100M")
    cost = on_h200(papers, Network(layers=64, width=128, memory="recompute"))
    assert not cost.fits
    found = dict(changes(cost))
    assert list(found) == ["--devices 32 --memory recompute"]  # no width would do
    for flags, held in found.items():
        devices = int(flags.split()[1])
        assert held == on_h200(papers, cost.network, devices, devices // 8).memory
        assert held.total <= H200.memory < on_h200(papers, cost.network, devices // 2).memory.total


def test_the_cheapest_change_comes_first():
    size = replace(SIZE, n=4_000_000, entries=80_000_000, stored=400_000_000)
    cost = on_h200(size, replace(DEEP, memory="keep"))
    assert not cost.fits
    assert next(changes(cost))[0] == "--memory recompute"


def test_on_a_cpu_nothing_is_offloaded():
    small = replace(this_cpu(), memory=GIB)
    rates = h200_rates(DEEP, SIZE.n)
    cost = cost_at(SIZE, DEEP, Place(device=small, rates=rates, cut=uncut(SIZE.n)))
    assert not any("offload" in flags for flags, _ in changes(cost))
    with pytest.raises(ValueError, match="memory offload is for GPUs"):
        chosen_memory("offload", DEEP, 10, small)


def test_nothing_is_proposed_that_is_too_narrow():
    tiny = replace(H200, memory=70 * 2**20)
    cost = cost_at(
        SIZE, DEEP, Place(device=tiny, rates=h200_rates(DEEP, SIZE.n), cut=uncut(SIZE.n))
    )
    widths = [flags for flags, _ in changes(cost) if "--width" in flags]
    assert not widths


def literal_halo(A, labels):
    """The largest number of foreign columns in a part's rows, by sets."""
    dense = A.toarray()
    found = []
    for part in sorted(set(labels)):
        rows = [i for i in range(len(labels)) if labels[i] == part]
        found.append({j for i in rows for j in np.flatnonzero(dense[i]) if labels[j] != part})
    return max(map(len, found))


def test_a_halo_counts_each_foreign_node_once():
    graph = data.load("csbm", n=60)
    A, labels = adjacency(graph), blocks(60, 4)
    found = measured_cut(A, labels, "blocks")
    assert found.halo == literal_halo(A, labels.tolist())
    assert found.nodes == 15


def test_a_ring_in_two_arcs_has_a_halo_of_two():
    n = 20
    ring = sp.csr_array(np.roll(np.eye(n), 1, 0) + np.roll(np.eye(n), -1, 0))
    found = measured_cut(ring, blocks(n, 2), "blocks")
    assert (found.halo, found.crossing) == (2, pytest.approx(4 / 40))


def test_the_halo_of_a_random_cut_is_foretold_where_degrees_are_alike():
    graph = data.load("csbm", n=3000, degree=12)
    labels = np.random.default_rng(1).permutation(blocks(3000, 6))
    found = measured_cut(adjacency(graph), labels, "random")
    foretold = random_cut(size_of(graph), 6)
    assert foretold.halo == pytest.approx(found.halo, rel=0.1)
    assert foretold.crossing == pytest.approx(found.crossing, rel=0.05)


def test_metis_cuts_a_graph_at_hand_and_an_estimate_says_that_it_is_one():
    pytest.importorskip("pymetis")
    graph = data.load("digits")
    assert cut_of(size_of(graph), 4, graph).how == "metis"
    assert cut_of(size_of(graph), 4, None).how == "estimated"
    assert cut_of(size_of(graph), 1, graph).halo == 0
    with pytest.raises(ValueError, match="a graph of 1,797 nodes cannot be cut over 2000 devices"):
        cut_of(size_of(graph), 2000, None)


def test_the_size_of_a_graph_at_hand_is_that_of_its_matrices():
    graph = data.load("digits")
    size = size_of(graph)
    A = adjacency(graph) + sp.eye_array(graph.n)
    assert size.entries == sp.csr_array(A).nnz
    assert (size.stored, size.sparse, size.exact) == (1797 * 64, False, True)


def test_well_known_graphs_have_the_numbers_of_the_benchmarks():
    products = counted("ogbn-products")
    drawn = GRAPHS["products"]
    assert (products.n, products.d, products.k) == (drawn.n, drawn.d, drawn.k)
    assert products.entries == drawn.entries + drawn.n
    assert counted("papers100M") == counted("ogbn-papers100M")
    assert counted("cora").entries == 13_264
    assert counted("nothing") is None
    assert not any(counted(name).exact for name in KNOWN)


def test_a_calibration_measures_speeds_and_survives_a_document():
    size = Size(n=2000, entries=20_000, d=8, k=3, stored=16_000)
    rates = calibrate(size, Network(layers=2, width=16), whole=True)
    assert not rates.compiled  # of 16 columns
    assert all(number > 0 for name, number in vars(rates).items() if name != "compiled")
    assert Rates.of(rates.document()) == rates
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"model": "gat"}, "plans are made of gcnii, .* got 'gat'"),
        ({"precision": "float8"}, "precision must be one of float32, .* got 'float8'"),
    ],
)
def test_what_no_plan_is_made_of_is_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        Network(**wrong)
    with pytest.raises(ValueError, match="memory must be auto, keep, recompute or offload"):
        chosen_memory("much", DEEP, 10, H200)


@pytest.mark.parametrize("layers", [1, 2, 8, 18, 33, 64, 200])
def test_segments_are_those_of_the_model_and_two_inputs_stay_on_the_device(layers):
    for way in ("recompute", "offload"):
        network = Network(layers=layers, width=8, memory=way)
        assert network.segment == segment_length(layers, offloads=way == "offload")
    assert network.offloaded == max(0, -(-layers // network.segment) - 2)
