"""The comparison is fair: with the same weights, baselines compute what our model computes."""

import pytest
import torch

from gcnii_paper.bench.baselines import BaselineTraining, adjacency_for, build_network
from gcnii_paper.bench.cases import Line, Named, Shape
from gcnii_paper.bench.graphs import make_bench_graph
from gcnii_paper.bench.runners import ours, plan_of, work_of

CPU = torch.device("cpu")
SHAPE = Shape(n=60, entries=400, d=12, k=3)
SMALL_PPI = Named("ppi-like", (("graphs", 5), ("n", 200), ("degree", 6)))


def with_our_weights(network, model):
    """Copy them by place: the baselines call the same matrices by other names."""
    network.double().eval()
    network.encode.load_state_dict(model.dense["encode"].state_dict())
    network.decode.load_state_dict(model.dense["decode"].state_dict())
    for theirs, own in zip(network.convs, model.convs, strict=True):
        (weight,) = theirs.parameters()
        weight.data.copy_(own.W)
    return network


@pytest.mark.parametrize("who", ["pyg", "authors", "authors-csr"])
@pytest.mark.parametrize("model", ["gcnii", "gcnii-ppi"])
def test_a_baseline_gives_our_model_s_scores_to_the_last_digits(who, model):
    bench_graph = make_bench_graph(SHAPE, CPU)
    plan = plan_of(Line(who="gcnii", graph=SHAPE, model=model, settings={"layers": 5, "width": 8}))
    model = plan.build(bench_graph.graph.d, bench_graph.graph.k, seed=1).double().eval()
    network = with_our_weights(
        build_network(who, plan, bench_graph.graph.d, bench_graph.graph.k), model
    )
    links, X = bench_graph.links.to(CPU, torch.float64), torch.tensor(bench_graph.graph.X).double()
    torch.testing.assert_close(
        network(X, adjacency_for(who, links)), model(links.whole, X), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("who", ["pyg", "authors", "authors-csr"])
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
