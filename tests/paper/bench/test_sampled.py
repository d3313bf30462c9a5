"""Sampled neighbours elsewhere: the same networks on the same links, drawn fairly."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gcnii.propagation import Sparse
from gcnii.train.batches import Hops
from gcnii_paper.bench.baselines import NeighbourLists, SampledTraining, sampled_network
from gcnii_paper.bench.cases import CASES, Line, Named, Shape
from gcnii_paper.bench.graphs import make_bench_graph
from gcnii_paper.bench.measure import make_runner, plan_of

CPU = torch.device("cpu")
SHAPE = Shape(n=60, entries=400, d=12, k=3)
SMALL_PPI = Named("ppi-like", (("graphs", 5), ("n", 200), ("degree", 6)))
CSBM = Named("csbm", (("n", 300), ("signal", 3.0)))
SETTINGS = {
    "graphsage-mean": {"width": 6, "dropout": 0.0},
    "gat": {"width": 4, "heads": 3, "out_heads": 2, "dropout": 0.0, "monitor": "val_loss"},
}
every_model = pytest.mark.parametrize("model", SETTINGS)


def line(model, graph=SHAPE, **more):
    batches = {"layers": 2, "batches": "neighbours", "batch_size": 20, "fanout": (2, 3)}
    settings = SETTINGS[model] | batches | more
    return Line(who="pyg-sampled", graph=graph, model=model, settings=settings)


def matrix(links, rows, columns, model):
    """What our model gathers over: the mean of the links, or with each row's loop."""
    A = sp.coo_array((np.ones(links.shape[1]), (links[1], links[0])), (rows, columns)).tocsr()
    if model == "gat":
        A = A + sp.eye_array(rows, columns)
    else:
        A = sp.diags_array(1 / np.maximum(A.sum(1), 1)) @ A
    return Sparse.from_scipy(sp.csr_array(A))


def with_our_weights(network, ours):
    """Copy them by place."""
    pairs = []
    if hasattr(network, "own"):
        for own, near, conv in zip(network.own, network.near, ours.convs, strict=True):
            pairs += [(own.weight, conv.own.T), (near.weight, conv.neighbours.T)]
        decode = ours.dense["decode"]
        pairs += [(network.decode.weight, decode.weight), (network.decode.bias, decode.bias)]
    else:
        for theirs, conv in zip(network.convs, ours.convs, strict=True):
            pairs += [(theirs.lin.weight, conv.W.T), (theirs.bias, conv.b)]
            pairs += [(theirs.att_dst, conv.a1[None]), (theirs.att_src, conv.a2[None])]
    for mine, other in pairs:
        mine.data.copy_(other)
    return network


@every_model
def test_on_the_same_links_it_gives_our_model_s_scores_to_the_last_digits(model):
    bench_graph, plan = make_bench_graph(SHAPE, CPU), plan_of(line(model))
    ours = plan.build(12, 3, seed=1).double().eval()
    network = with_our_weights(sampled_network(plan, 12, 3).double().eval(), ours)
    training = SampledTraining(bench_graph, plan, CPU)
    hops, X = training.drawn(torch.arange(20))
    columns = [len(X), hops[0][1]]
    P = Hops(
        tuple(
            matrix(links.numpy(), rows, width, model)
            for (links, rows), width in zip(hops, columns, strict=True)
        )
    )
    torch.testing.assert_close(
        network(hops, X.double()), ours(P, X.double()), rtol=1e-12, atol=1e-12
    )


def test_it_draws_different_links_up_to_the_number_and_all_where_none_is_given():
    bench_graph = make_bench_graph(SHAPE, CPU)
    links, nodes = NeighbourLists.of(bench_graph, CPU), torch.tensor([7, 3, 50, 11])
    there = bench_graph.links.whole.to_dense() > 0
    for fanout in (3, 0):
        (source, row), reached = links.draw(nodes, fanout)
        assert reached[:4].tolist() == nodes.tolist()
        assert len(set(reached.tolist())) == len(reached)
        degree = links.rows.diff()[nodes]
        expected = degree.clamp(max=fanout) if fanout else degree
        assert torch.bincount(row, minlength=4).tolist() == expected.tolist()
        assert there[nodes[row], reached[source]].all()
        assert len(set(zip(source.tolist(), row.tolist(), strict=True))) == len(row)


@every_model
def test_it_learns(model):
    training = SampledTraining(make_bench_graph(CSBM, CPU), plan_of(line(model, CSBM)), CPU)
    training.epochs(1)
    first = training.val_loss
    training.epochs(40)
    assert training.val_loss < 0.8 * first


@pytest.mark.parametrize("who", ["gcnii", "pyg-sampled"])
def test_of_several_graphs_both_train_epochs(who):
    one = line("graphsage-mean", SMALL_PPI)
    run = make_runner(Line(**vars(one) | {"who": who}), make_bench_graph(SMALL_PPI, CPU), CPU)
    assert run.epochs(2) == 2


@pytest.mark.parametrize("name", ["sage-ppi", "sage-photo", "gat-ppi", "gat-photo"])
def test_both_draw_as_many_neighbours_of_as_many_nodes_for_networks_of_one_size(name):
    for lines in (CASES[name].cpu, CASES[name].cuda):
        (ours, theirs) = (plan_of(one) for one in lines[:2])
        assert ours.model_settings == theirs.model_settings
        assert (ours.recipe.fanout, ours.recipe.batch_size) == ((10, 25), 512)
        assert (theirs.recipe.fanout, theirs.recipe.batch_size) == ((10, 25), 512)
