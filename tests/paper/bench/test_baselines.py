"""The comparison is fair: with the same weights, baselines compute what our model computes."""

from functools import partial

import pytest
import torch

from gcnii.train.group import WARM, CapturedEpoch, ReplicaGroup
from gcnii.train.stopping import Run
from gcnii_paper.bench.baselines import (
    BaselineTraining,
    CapturedTraining,
    build_network,
    links_for,
)
from gcnii_paper.bench.cases import Line, Named, Shape
from gcnii_paper.bench.graphs import advance, make_bench_graph
from gcnii_paper.bench.measure import ours, plan_of, work_of

CPU = torch.device("cpu")
SHAPE = Shape(n=60, entries=400, d=12, k=3)
SMALL_PPI = Named("ppi-like", (("graphs", 5), ("n", 200), ("degree", 6)))


def with_our_weights(network, model):
    """Copy them by place: the baselines call the same matrices by other names."""
    network.encode.load_state_dict(model.dense["encode"].state_dict())
    network.decode.load_state_dict(model.dense["decode"].state_dict())
    for theirs, own in zip(network.convs, model.convs, strict=True):
        (weight,) = theirs.parameters()
        weight.data.copy_(own.W)
    return network


@pytest.mark.parametrize("who", ["pyg", "pyg-edges", "authors", "authors-csr"])
@pytest.mark.parametrize("model", ["gcnii", "gcnii-ppi"])
def test_a_baseline_gives_our_model_s_scores_to_the_last_digits(who, model):
    bench_graph = make_bench_graph(SHAPE, CPU)
    plan = plan_of(Line(who="gcnii", graph=SHAPE, model=model, settings={"layers": 5, "width": 8}))
    model = plan.build(bench_graph.graph.d, bench_graph.graph.k, seed=1).double().eval()
    network = build_network(who, plan, bench_graph.graph.d, bench_graph.graph.k).double().eval()
    with_our_weights(network, model)
    links, X = bench_graph.links.to(CPU, torch.float64), torch.tensor(bench_graph.graph.X).double()
    torch.testing.assert_close(
        network(X, links_for(who, links)), model(links.whole, X), rtol=1e-12, atol=1e-12
    )


# Without dropout and in float64, runs are equal if they start alike.
EXACT = plan_of(
    Line(
        who="gcnii",
        graph=SHAPE,
        settings={"layers": 3, "width": 8, "dropout": 0.0},
        precision="float64",
    )
)


def in_training(who, device):
    """A baseline that starts with the weights of our seed 0, and our own training of that seed."""
    bench_graph, run = make_bench_graph(SHAPE, device), Run(0)
    make = CapturedTraining if who == "pyg-graph" else partial(BaselineTraining, who)
    baseline = make(bench_graph, EXACT, device)
    network = baseline.eager.network if who == "pyg-graph" else baseline.network
    with_our_weights(network, EXACT.build(bench_graph.graph.d, bench_graph.graph.k, seed=0))
    return baseline, ReplicaGroup(bench_graph.task(EXACT, device), [run])


@pytest.mark.parametrize("who", ["pyg", "pyg-edges", "pyg-graph", "pyg-compiled", "authors"])
def test_from_our_weights_a_baseline_has_our_loss_after_every_epoch(who, monkeypatch):
    # It takes minutes to compile, and seconds to import the compiler.
    monkeypatch.setattr(torch, "compile", lambda network, mode: network)
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: None)
    baseline, group = in_training(who, CPU)
    for _ in range(6):
        group.advance()
        baseline.epochs(1)
        _, val_loss, _ = group.runs[0].curve[-1]
        assert baseline.val_loss == pytest.approx(val_loss, rel=1e-10)


@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")  # torch's own
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty:UserWarning")
@pytest.mark.parametrize("who", ["pyg-graph", "pyg-compiled"])
def test_what_is_captured_has_our_loss_too(who):
    cuda = torch.device("cuda")
    baseline, group = in_training(who, cuda)
    epochs = advance(group, WARM + 5)
    baseline.epochs(epochs)
    curve = group.runs[0].curve
    (first, _, _), (last, val_loss, _) = curve[0], curve[-1]
    assert last < first  # it learns
    assert baseline.val_loss == pytest.approx(val_loss, rel=1e-8)
    if who == "pyg-graph":
        assert baseline.captured.replay


@pytest.mark.cuda
def test_dropout_draws_anew_in_every_replay_of_a_graph():
    line = Line(who="pyg-graph", graph=SHAPE, settings={"layers": 2, "width": 8, "dropout": 0.5})
    device = torch.device("cuda")
    training = CapturedTraining(make_bench_graph(SHAPE, device), plan_of(line), device).eager
    captured, losses = CapturedEpoch(device), []
    last = torch.zeros((), device=device)
    training.network.train()
    for _ in range(WARM + 6):
        with torch.no_grad():
            captured(lambda: last.copy_(training.train[0].loss(training.network)))
        losses.append(float(last))
    assert captured.replay
    assert len(set(losses[WARM:])) == 6


@pytest.mark.parametrize("who", ["pyg", "pyg-edges", "authors", "authors-csr"])
def test_a_baseline_learns(who):
    graph = Named("csbm", (("n", 300), ("signal", 3.0)))
    plan = plan_of(Line(who=who, graph=graph, settings={"layers": 2, "width": 16}))
    baseline = BaselineTraining(who, make_bench_graph(graph, CPU), plan, CPU)
    baseline.epochs(1)
    first = baseline.val_loss
    baseline.epochs(30)
    assert baseline.val_loss < first / 2


def test_of_several_graphs_a_baseline_trains_on_some_and_stops_by_others():
    line = Line(
        who="authors", graph=SMALL_PPI, model="gcnii-ppi", settings={"layers": 2, "width": 8}
    )
    bench_graph = make_bench_graph(SMALL_PPI, CPU)
    baseline = BaselineTraining("authors", bench_graph, plan_of(line), CPU)
    assert (len(baseline.train), len(baseline.val)) == (3, 1)
    assert baseline.epochs(2) == 2
    work = work_of(line, bench_graph)
    assert (work.trained, work.evaluated, work.at_once) == (600, 200, 200)
    assert work.entries == pytest.approx(bench_graph.entries * 3 / 5, rel=0.01)


@pytest.mark.parametrize(
    ("graph", "model"), [(SHAPE, "gcnii"), (SMALL_PPI, "gcnii-ppi")], ids=["whole", "parts"]
)
def test_our_own_epochs_are_those_of_fit(graph, model):
    line = Line(who="gcnii", graph=graph, model=model, settings={"layers": 2, "width": 8})
    epochs = ours(line, make_bench_graph(graph, CPU), CPU)
    assert (epochs(1), epochs(3)) == (1, 3)
