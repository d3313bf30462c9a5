"""Geom-GCN: nine divisions, however many of them a geometry has."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.exact import exact_features
from support.literal import LITERAL
from support.small_models import build, dense, inputs, plan, web

from gcnii import fit, load
from gcnii.dropout import epoch_key, keyed
from gcnii.graph import Graph, Split
from gcnii.train.plan import make_plan
from gcnii.train.task import make_adjacency

GEOMETRIES = {"geom-gcn-i": "isomap", "geom-gcn-p": "poincare", "geom-gcn-s": "struc2vec"}


@pytest.mark.parametrize("name", GEOMETRIES)
def test_without_a_geometry_it_says_what_to_set(name):
    graph = web()
    for method in ("forward", "embed"):
        with pytest.raises(ValueError, match="set geometry to isomap, poincare or struc2vec"):
            getattr(build(name, graph), method)(*inputs(graph))


@pytest.mark.parametrize(("name", "geometry"), GEOMETRIES.items())
def test_each_form_has_its_geometry_and_the_authors_recipe(name, geometry):
    expected = {"geometry": geometry, "monitor": "val_either", "lr": 0.05, "decay_conv": 5e-6}
    expected |= {"epochs": 5000, "patience": 100, "plateau": 50, "plateau_factor": 0.8}
    recipe = make_plan(name, {}).recipe
    assert {key: getattr(recipe, key) for key in expected} == expected


def test_every_division_starts_xavier_uniform():
    graph = web(d=100)
    hidden, last = build("geom-gcn-i", graph, layers=2, width=50).convs
    assert hidden.W.detach().abs().max() == pytest.approx((6 / (100 + 50)) ** 0.5, rel=0.01)
    assert last.W.detach().abs().max() == pytest.approx((6 / (9 * 50 + 3)) ** 0.5, rel=0.01)
    assert (hidden.W.shape, last.W.shape) == ((100, 450), (450, 27))


def test_the_embedding_has_nine_divisions_side_by_side():
    graph = web()
    model = build("geom-gcn-i", graph, layers=3, width=8)
    P, X = inputs(graph, "geom-gcn-i")
    H = model.embed(P, X)
    assert H.shape == (30, 72)
    torch.testing.assert_close(model.convs[-1](P, H), model(P, X))


def test_a_division_that_does_not_occur_learns_nothing(real_data):
    graph = real_data("chameleon")
    graph = replace(graph, X=graph.X[:, :20])._with_origin(graph.source, graph.catalog_name)
    settings = {"geometry": "poincare", "width": 2, "precision": "float64", "dropout": 0.0}
    made = make_plan("geom-gcn-p", settings, graph)
    model = made.build(graph.d, graph.k)
    P, X = make_adjacency(graph, made).whole, exact_features(graph)
    model(P, X).square().sum().backward()
    moved = model.convs[0].W.grad.reshape(20, 9, 2).abs().amax((0, 2)) > 0
    assert moved.tolist() == [True, True, True, True, False, True, False, True, True]


def test_with_dropped_links_the_scores_are_still_those_of_the_equation():
    graph = web()
    model = build("geom-gcn-i", graph)
    relations = make_adjacency(graph, plan("geom-gcn-i"))
    P = relations.matrix(
        torch.tensor(np.random.default_rng(0).random(len(relations.weights)) < 0.6)
    )
    weights = {key: value.detach().numpy() for key, value in model.state_dict().items()}
    expected = LITERAL["geom-gcn-i"](
        weights.__getitem__, dense(P), graph.X, **plan("geom-gcn-i").model_settings
    )
    np.testing.assert_allclose(
        model(P, exact_features(graph)).detach(), expected, rtol=1e-11, atol=1e-12
    )


def test_the_features_are_dropped_too():
    graph = web()
    model = build("geom-gcn-i", graph, layers=1, dropout=0.5).train()
    with keyed(epoch_key(torch.tensor([0]), 0)[0]):
        noisy = model(*inputs(graph, "geom-gcn-i"))
    assert not torch.equal(noisy, model.eval()(*inputs(graph, "geom-gcn-i")))


def test_other_models_can_gather_over_the_wider_neighbourhood():
    graph = web()
    P, X = inputs(graph, "geom-gcn-i")
    assert build("gcn", graph)(P, X).shape == (30, 3)


def test_a_geometry_and_a_diffusion_exclude_each_other():
    with pytest.raises(
        ValueError,
        match="a geometry has neighbours of its own, which a diffusion cannot replace; choose",
    ):
        make_adjacency(web(), make_plan("geom-gcn-i", {"diffusion": "ppr"}))


def write_rings(folder):
    """Two rings of ten nodes with a chord each, joined by two links; the features say nothing."""
    folder.mkdir()
    ring = [(i, (i + 1) % 10) for i in range(10)] + [(10 + i, 10 + (i + 1) % 10) for i in range(10)]
    edges = [*ring, (0, 4), (11, 16), (2, 12), (3, 14)]
    roles = ("train", "train", "val", "test", "train")
    nodes = [f"n{i},{i % 3},{i % 2},{'ab'[i // 10]},{roles[i % 5]}" for i in range(20)]
    (folder / "nodes.csv").write_text("\n".join(["id,x,z,label,split", *nodes]) + "\n")
    (folder / "edges.csv").write_text(
        "\n".join(["source,target", *(f"n{u},n{v}" for u, v in edges)]) + "\n"
    )
    return folder


def test_a_users_own_graph_trains_with_an_isomap(tmp_path):
    graph = load(write_rings(tmp_path / "rings"))
    result = fit(graph, "geom-gcn-i", epochs=40, drop_edge=0.2, device="cpu")
    assert result.runs[0].curve[-1][0] < result.runs[0].curve[0][0]
    assert result.predict(graph, "cpu").shape == (20,)


@pytest.mark.cuda
def test_it_trains_on_cuda_as_on_the_cpu():
    graph = load("csbm", n=120, degree=6, signal=3.0, labels_per_class=10)
    settings = {"epochs": 15, "lr": 0.01, "drop_edge": 0.2, "seeds": range(3)}
    cpu, cuda = (fit(graph, "geom-gcn-i", device=device, **settings) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(
        [run.curve for run in cpu.runs], [run.curve for run in cuda.runs], rtol=1e-3
    )


def test_several_graphs_train_part_by_part():
    graph = web(n=40)
    part = np.arange(40) // 20
    inside = part[graph.edges[0]] == part[graph.edges[1]]
    roles = np.array(["train", "val", "train", "test"] * 10)
    parts = Graph(
        X=graph.X,
        edges=graph.edges[:, inside],
        y=graph.y,
        part=part,
        splits=(Split.of_roles(roles),),
        directed=True,
    )
    result = fit(parts, "geom-gcn-i", epochs=5, batches="parts", device="cpu")
    assert result.runs[0].epochs == 5
