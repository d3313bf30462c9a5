"""The rules, on graphs where the truth is known and on rows made up for each rule."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gcnii.analysis import (
    LayerReport,
    ProbeBaseline,
    SampledValue,
    Smoothness,
    SmoothnessMeter,
    diagnose,
    examine,
    watch,
)
from gcnii.analysis.checkup import GONE, Checkup, Diagnosis, Doctor, Finding, Probe, compare_models
from gcnii.data import load
from gcnii.graph import Graph, Split
from gcnii.nn import GCNII, SGC, DeepGCN
from gcnii.propagation import feature_matrix
from gcnii_paper.theory.spectrum import exact_matrix

GUESSED = ProbeBaseline(chance=0.25, features=0.5)


def labelled(edges, n=60):
    """Two classes that the features tell apart, and these edges."""
    random = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = random.standard_normal((n, 8)) + 3 * y[:, None]
    return Graph(
        X=X, edges=edges, y=y, splits=(Split.of_roles(np.repeat(["train", "val", "test"], n // 3)),)
    )


def verdict_of(model, graph):
    """The verdict on a model as it is built."""
    probe, meter = Probe(graph), SmoothnessMeter.of(graph)
    with watch(model.double().eval()) as watched, torch.no_grad():
        model(exact_matrix(graph), feature_matrix(graph).double())
    return diagnose(
        examine(watched, meter, probe), edges=meter.m, baseline=ProbeBaseline.of(graph, probe)
    )


def test_a_complete_graph_leaves_nothing_after_one_layer():
    found = verdict_of(SGC(8, 2, layers=3), labelled(np.stack(np.triu_indices(60, 1))))
    assert found.verdict.kind == "gone"
    assert "information is gone from layer 1 on: effective rank 1.0 of 2" in found.verdict.text
    assert "guessing gives 50%" in found.verdict.text
    assert found.advice[0] == "an initial residual (gcnii, appnp)"


def test_a_watched_gcnii_is_not_told_to_become_one():
    graph = labelled(np.stack(np.triu_indices(60, 1)))
    model = GCNII(8, 2, layers=3, width=4, alpha=0.01, lam=9.0).double().eval()
    with watch(model, graph) as watched, torch.no_grad():
        model(exact_matrix(graph), feature_matrix(graph).double())
    advice = watched.diagnose().advice
    assert "an initial residual (gcnii, appnp)" not in advice
    assert advice[:2] == ("a larger α than 0.01", "a smaller λ")


def test_a_complete_graph_is_seen_through_without_labels_too():
    graph = labelled(np.stack(np.triu_indices(60, 1)))
    with watch(model := SGC(8, 2, layers=3).double()) as watched, torch.no_grad():
        model(exact_matrix(graph), feature_matrix(graph).double())
    found = diagnose(examine(watched, SmoothnessMeter.of(graph)), edges=1770)
    assert found.verdict.kind == "alike"
    assert "nodes are nearly alike from layer 1 on, near Theorem 1's limit" in found.verdict.text
    assert "fewer layers, about 1" in found.advice


def test_without_edges_nothing_is_smoothed_however_deep():
    graph = labelled(np.zeros((2, 0)))
    found = verdict_of(SGC(8, 2, layers=16), graph)
    assert (found.verdict.kind, found.advice) == ("no edges", ())


@pytest.fixture(scope="module")
def csbm():
    return load("csbm", n=200, classes=4, homophily=0.7, signal=2.0)


def test_on_a_block_model_32_layers_of_gcn_lose_what_gcnii_keeps(csbm):
    torch.manual_seed(0)
    deep = verdict_of(DeepGCN(16, 4, layers=32, width=16), csbm)
    assert deep.verdict.kind in ("gone", "alike")
    assert verdict_of(GCNII(16, 4, layers=32, width=16), csbm).verdict.kind == "kept"
    assert verdict_of(DeepGCN(16, 4, layers=2), csbm).verdict.kind == "kept"


@pytest.mark.long
@pytest.mark.parametrize(
    "drawn", [{"classes": 4, "homophily": 0.7, "signal": 2.0}, {"homophily": 0.1}]
)
def test_exactly_the_networks_that_guess_are_said_to_have_lost_information(drawn):
    graph = load("csbm", n=400, degree=6, **drawn)
    doctor = Doctor(graph, device="cpu")
    baseline = ProbeBaseline.of(graph, doctor.probe)
    checkups = [doctor.check(model, layers) for model in ("gcn", "gcnii") for layers in (2, 32)]
    best = max(one.val for one in checkups)
    for one in checkups:
        # of what can be learnt, the share that was
        share = (one.val - baseline.chance) / (best - baseline.chance)
        found = diagnose(one.after, edges=graph.m, baseline=baseline).verdict.kind
        assert (found == "gone") == (share < GONE), (one.model, one.layers, found, share)


@pytest.fixture
def healthy():
    """Nine layers without any finding."""
    state = Smoothness(
        width=64,
        norm=1.0,
        energy=SampledValue(0.3),
        roughness=SampledValue(0.3),
        mad=SampledValue(0.5),
        mad_gap=SampledValue(0.1),
        effective_rank=SampledValue(20.0),
        rank=64,
        distance=0.8,
        dead=0.0,
    )
    return tuple(LayerReport(f"convs.{l}", state, gradient=0.1, probe=0.7) for l in range(9))


def changed(rows, l, **numbers):
    """The rows with other numbers at layer l."""
    row = rows[l]
    return (*rows[:l], replace(row, **numbers), *rows[l:][1:])


def kinds(rows, **more):
    found = diagnose(rows, edges=10, baseline=GUESSED, **more)
    return [found.verdict.kind, *(other.kind for other in found.others)]


def test_a_healthy_model_is_told_so_and_gets_no_advice(healthy):
    found = diagnose(healthy, edges=10, baseline=GUESSED)
    assert (found.verdict.kind, found.others, found.advice) == ("kept", (), ())
    assert found.text.startswith("Information is kept: a linear probe reads ")


def test_information_fades_where_an_earlier_layer_reads_better(healthy):
    rows = changed(healthy, 3, probe=healthy[-1].probe + 0.06)
    found = diagnose(rows, edges=10, baseline=GUESSED)
    assert found.verdict.kind == "faded"
    assert found.advice == ("fewer layers, about 3",)
    assert kinds(changed(healthy, 3, probe=healthy[-1].probe + 0.04)) == ["kept"]


def test_information_fades_where_the_features_alone_tell_more(healthy):
    found = diagnose(healthy, edges=10, baseline=ProbeBaseline(chance=0.25, features=0.8))
    assert found.verdict.text.startswith(
        "information fades: a linear probe reads 80% from the features alone, 70% at"
    )


def test_what_made_information_go_is_said_beside_the_verdict(healthy):
    flat = replace(
        healthy[0].state, mad=SampledValue(1e-6), effective_rank=SampledValue(1.0), distance=0.01
    )
    rows = (*healthy[:2], *(replace(row, state=flat, probe=0.2) for row in healthy[2:]))
    assert kinds(rows) == ["gone", "alike"]
    assert (
        "Nodes are nearly alike from layer 2 on, near Theorem 1's limit"
        in diagnose(rows, edges=10, baseline=GUESSED).text
    )


def test_nodes_can_be_alike_without_being_at_the_limit(healthy):
    # biases alone
    flat = replace(
        healthy[0].state, mad=SampledValue(1e-6), effective_rank=SampledValue(1.0), distance=0.29
    )
    found = diagnose(
        (healthy[0], *(replace(row, state=flat) for row in healthy[1:])), edges=10, baseline=GUESSED
    )
    assert found.verdict.text.startswith(
        "nodes are nearly alike from layer 1 on, all along one direction: "
    )


def test_the_last_layer_but_one_tells_whether_the_graph_made_them_alike(healthy):
    flat = replace(healthy[0].state, mad=SampledValue(1e-6), effective_rank=SampledValue(1.0))
    away = [0.4, *(0.3 for _ in healthy[2:-2]), 0.1, 0.5]  # the last but one counts
    rows = [
        replace(row, state=replace(flat, distance=one))
        for row, one in zip(healthy[1:], away, strict=True)
    ]
    found = diagnose((healthy[0], *rows), edges=10, baseline=GUESSED)
    assert (
        "alike from layer 1 on, near Theorem 1's limit (distance 0.1 at the end): "
        in found.verdict.text
    )


def test_a_gradient_vanishes_below_a_thousandth_and_explodes_above_a_thousand(healthy):
    last = healthy[-1].gradient
    assert kinds(changed(healthy, 0, gradient=0.5e-3 * last)) == ["kept", "vanished"]
    assert kinds(changed(healthy, 0, gradient=2e-3 * last)) == ["kept"]
    assert kinds(changed(healthy, 0, gradient=2e3 * last)) == ["kept", "exploded"]


def test_dead_units_are_counted_before_the_last_layer(healthy):
    assert kinds(changed(healthy, -2, state=replace(healthy[-2].state, dead=0.95))) == [
        "kept",
        "dead",
    ]
    assert kinds(changed(healthy, 1, state=replace(healthy[1].state, dead=0.95))) == ["kept"]


def test_a_model_with_an_initial_residual_is_advised_a_larger_alpha(healthy):
    lost = tuple(replace(row, probe=0.25) if l > 4 else row for l, row in enumerate(healthy))
    found = diagnose(lost, edges=10, baseline=GUESSED, settings={"alpha": 0.1, "lam": 0.5})
    assert found.verdict.text.startswith("information is gone from layer 5 on: ")
    assert found.advice[:2] == ("a larger α than 0.1", "a smaller λ than 0.5")


def test_models_are_compared_at_the_deepest_and_each_at_its_best(healthy):
    kept, gone = (Diagnosis(Finding(kind, "…"), (), ()) for kind in ("kept", "gone"))

    def of(model, layers, val):
        return Checkup("csbm", model, layers, {}, healthy, healthy, val, val - 0.1, ())

    found = [(of("gcn", 2, 0.8), kept), (of("gcn", 64, 0.3), gone), (of("gcnii", 64, 0.9), kept)]
    assert compare_models(found) == [
        f"At 64 layers, where information is lost by gcn: gcnii keeps {healthy[-1].probe:.0%}.",
        "After at most 60 epochs gcn is best at 2 layers (validation 80.0%).",
    ]
