"""Training in mini-batches: what a step sees, who may take part, and that a killed run comes to the
same end.
"""

import json

import numpy as np
import pytest
import torch
from support.killing import Killed, killed_after_a_save

from gcnii import data
from gcnii.data.converters.join import join
from gcnii.errors import GraphError
from gcnii.results.fit import fit
from gcnii.train.clusters import cutter
from gcnii.train.plan import make_plan
from gcnii.train.task import Task

SMALL = {"layers": 2, "width": 8, "epochs": 6, "device": "cpu", "lr": 0.02}
KINDS = {  # name: which graph, which model, with which settings
    "clusters": ("one", "gcnii", {"batches": "clusters", "clusters": 4, "batch_size": 2}),
    "clusters of parts": ("joined", "gcnii", {"batches": "clusters", "clusters": 4}),
    "parts": ("joined", "gcnii-ppi", {"batches": "parts"}),
    "neighbours": (
        "one",
        "graphsage-mean",
        {"batches": "neighbours", "batch_size": 7, "fanout": (2, 3)},
    ),
    "history": (
        "one",
        "vr-gcn-cvd",
        {"batches": "neighbours", "batch_size": 7, "fanout": (1,), "history": "cv"},
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def csbm(seed=0):
    return data.load("csbm", n=60, degree=6, signal=3.0, labels_per_class=10, seed=seed)


@pytest.fixture(scope="module")
def graphs():
    return {
        "one": csbm(),
        "joined": join([csbm(seed) for seed in range(4)], ["train", "train", "val", "test"]),
    }


def chosen(graphs, kind):
    graph, model, settings = KINDS[kind]
    return graphs[graph], model, SMALL | settings


def batches(graph, model="gcnii", **settings):
    return Task.of(graph, make_plan(model, settings, graph), torch.device("cpu")).batches(0)


@every_kind
def test_the_loss_falls(graphs, kind):
    graph, model, settings = chosen(graphs, kind)
    result = fit(graph, model, **settings | {"epochs": 20})
    losses = [point[0] for point in result.runs[0].curve]
    assert min(losses[-3:]) < 0.8 * losses[0]


@every_kind
def test_each_seed_draws_batches_of_its_own_whoever_trains_beside_it(graphs, kind):
    graph, model, settings = chosen(graphs, kind)
    together = fit(graph, model, seeds=range(2), batch=2, **settings)
    alone = fit(graph, model, seeds=[1], **settings)
    assert together.runs[1].curve == alone.runs[0].curve
    assert together.runs[0].curve != alone.runs[0].curve


@pytest.mark.usefixtures("save_every_epoch")
@every_kind
def test_a_killed_run_resumes_to_the_same_final_numbers(graphs, kind, tmp_path):
    graph, model, settings = chosen(graphs, kind)
    settings |= {"seeds": range(2), "checkpoint": tmp_path / "checkpoint.safetensors"}
    whole = fit(graph, model, **settings | {"checkpoint": None})

    for _ in range(8):  # one epoch each; the first of two seeds is done by then
        with killed_after_a_save(), pytest.raises(Killed):
            fit(graph, model, **settings)
    resumed = fit(graph, model, **settings)
    assert [run.curve for run in resumed.runs] == [run.curve for run in whole.runs]
    assert all(torch.equal(resumed.weights[name], stack) for name, stack in whole.weights.items())


def test_a_step_of_clusters_sees_so_many_clusters_and_the_links_among_them(graphs):
    graph = graphs["one"]
    seen = list(batches(graph, batches="clusters", clusters=6, batch_size=3).epoch(0, 0))
    assert len(seen) == 2
    assert torch.cat([batch.nodes for batch in seen]).sort().values.tolist() == list(range(60))
    full = Task.of(graph, make_plan("gcnii", {}, graph), torch.device("cpu")).adjacency.pattern
    for batch in seen:
        inside = torch.isin(full.row_of, batch.nodes) & torch.isin(full.columns, batch.nodes)
        assert len(batch.adjacency.pattern.columns) == int(inside.sum())


@pytest.mark.parametrize("kind", ["parts", "clusters"])
def test_graphs_without_a_training_node_are_in_no_batch(graphs, kind):
    settings = {"batches": kind, "clusters": 3}
    nodes = torch.cat([batch.nodes for batch in batches(graphs["joined"], **settings).epoch(0, 0)])
    assert nodes.sort().values.tolist() == list(range(120))


def test_neighbours_are_drawn_for_the_training_nodes_once_an_epoch(graphs):
    graph = graphs["one"]
    seen = list(batches(graph, "graphsage-mean", batch_size=6).epoch(0, 0))
    assert [len(batch.nodes) for batch in seen] == [6, 6, 6, 2]
    nodes = torch.cat([batch.nodes for batch in seen]).sort().values
    assert nodes.tolist() == np.flatnonzero(graph.splits[0].train).tolist()


@pytest.mark.parametrize(
    ("model", "settings", "sentence"),
    [
        (
            "gcn",
            {"batches": "neighbours"},
            "gcn cannot be trained on sampled neighbours; use batches full, parts or clusters",
        ),
        (
            "graphsage-mean",
            {"drop_edge": 0.2},
            "DropEdge does not apply to sampled neighbours; set drop_edge to 0, got 0.2",
        ),
        (
            "graphsage-pool",
            {"history": "cv"},
            "graphsage-pool does not use old activations; set history to none",
        ),
        (
            "gcn",
            {"batches": "clusters", "monitor": "noisy_loss"},
            "monitor noisy_loss needs the full graph in one batch, got batches clusters; "
            "monitor val_loss",
        ),
    ],
)
def test_batches_that_cannot_work_are_refused_in_one_sentence(graphs, model, settings, sentence):
    with pytest.raises(ValueError) as error:
        fit(graphs["one"], model, **settings)
    assert str(error.value) == sentence


def test_one_graph_has_no_parts(graphs):
    with pytest.raises(
        GraphError, match="batches of parts need several graphs, but csbm is one; use clusters"
    ):
        fit(graphs["one"], batches="parts")


def test_a_bundle_says_who_cut_the_clusters(graphs, tmp_path):
    result = fit(
        graphs["one"], layers=2, width=4, epochs=1, batches="clusters", clusters=3, device="cpu"
    )
    versions = json.loads((result.save(tmp_path) / "run.json").read_text())["versions"]
    assert versions["cutter"] == cutter()


def test_who_cuts_is_metis_where_it_is_installed_and_else_we():
    try:
        import pymetis
    except ImportError:
        assert cutter() == "gcnii"
    else:
        assert cutter() == f"pymetis {pymetis.version}"
