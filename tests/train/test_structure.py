"""Columns of a graph's structure are added to the features, and computed on the graph asked."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

import gcnii
from gcnii.results.ensemble import Blend, Ensemble, Networks
from gcnii.train.distributed.shard import refuse
from gcnii.train.features import COLUMNS, structure_columns
from gcnii.train.plan import make_plan
from gcnii.train.task import Task

CPU = torch.device("cpu")
HOW = {"layers": 2, "width": 8, "epochs": 5, "device": "cpu"}


def drawn(n=80, seed=0, *, directed=False, sparse=False):
    """A random graph whose features are noise, and whose label is whether a degree is high."""
    rng = np.random.default_rng(seed)
    draw = np.triu(rng.random((n, n)) < rng.random(n) ** 2 / 4, 1)
    degree = draw.sum(0) + draw.sum(1)
    y = (degree > np.median(degree)).astype(np.int64)
    X = rng.standard_normal((n, 3)).astype(np.float32)
    return gcnii.Graph(
        X=sp.csr_array(X) if sparse else X,
        edges=np.stack(draw.nonzero()),
        y=y,
        splits=(gcnii.stratified_split(y, seed),),
        directed=directed,
        name="drawn",
        nodes=tuple(f"n{i}" for i in range(n)),
        features=("a", "b", "c"),
    )


@pytest.fixture(scope="module")
def graph():
    return drawn()


def dense(graph):
    A = np.zeros((graph.n, graph.n))
    A[tuple(graph.edges)] = 1
    return A


@pytest.mark.parametrize("blocks", [1, 50])
def test_returns_are_the_diagonals_of_powers_of_the_random_walk(graph, blocks, monkeypatch):
    monkeypatch.setattr("gcnii.train.features.MOST", 1 << 24 if blocks == 1 else 40)
    A = dense(graph) + dense(graph).T
    P = A / np.maximum(A.sum(1, keepdims=True), 1)
    found = structure_columns(graph, "walk")
    np.testing.assert_allclose(found[:, 3], np.diag(P @ P), atol=1e-15)
    np.testing.assert_allclose(found[:, 4], np.diag(P @ P @ P), atol=1e-15)
    assert found[:, 4].max() > 0


def test_degrees_are_counted_in_and_out_without_loops_repeats_and_weights(graph):
    one_way = replace(graph, directed=True)
    A = dense(one_way)
    expected = np.log1p(np.column_stack([A.sum(0), A.sum(1)]))
    np.testing.assert_allclose(structure_columns(one_way, "degree"), expected)
    extra = np.concatenate([one_way.edges, one_way.edges[:, :5], [[3], [3]]], 1)
    weights = np.linspace(1, 9, extra.shape[1])
    same = structure_columns(replace(one_way, edges=extra, weights=weights), "degree")
    np.testing.assert_allclose(same, expected)


def test_pagerank_is_where_a_walk_with_restarts_is(graph):
    one_way = replace(graph, directed=True)
    A = dense(one_way)
    P = A / np.maximum(A.sum(1, keepdims=True), 1)
    exact = 0.15 * np.linalg.solve(np.eye(graph.n) - 0.85 * P.T, np.ones(graph.n))
    np.testing.assert_allclose(structure_columns(one_way, "walk")[:, 2], np.log(exact), atol=1e-3)


@pytest.mark.parametrize("directed", [False, True])
def test_numbering_the_nodes_anew_moves_the_rows_of_the_columns_alone(directed):
    graph = drawn(directed=directed)
    order = np.random.default_rng(1).permutation(graph.n)
    again = replace(graph, edges=order[graph.edges])  # node i is now called order[i]
    before, after = (structure_columns(one, "walk") for one in (graph, again))
    np.testing.assert_allclose(after[order], before, atol=1e-12)


def test_a_graph_beside_another_has_the_columns_that_it_has_alone(graph):
    other = drawn(50, seed=1)
    edges = np.concatenate([graph.edges, other.edges + graph.n], 1)
    both = gcnii.Graph(X=np.zeros((130, 3), np.float32), edges=edges, y=np.zeros(130, int))
    alone = [structure_columns(one, "walk") for one in (graph, other)]
    np.testing.assert_allclose(structure_columns(both, "walk"), np.concatenate(alone), atol=1e-12)


def test_a_graph_without_edges_has_columns_too(graph):
    bare = replace(graph, edges=np.zeros((2, 0), np.int64))
    assert np.isfinite(structure_columns(bare, "walk")).all()
    assert np.isfinite(gcnii.fit(bare, "gcnii", structure="walk", **HOW).predict_proba(bare)).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_a_model_sees_the_columns_standardised_after_the_features(sparse):
    graph = drawn(sparse=sparse)
    for kind, width in (("degree", 2), ("walk", 5)):
        X = Task.of(graph, make_plan("gcnii", {"structure": kind}), CPU).X.to_dense()
        assert X.shape == (graph.n, 3 + width)
        features = graph.X.toarray() if sparse else graph.X
        np.testing.assert_array_equal(X[:, :3], features)
        np.testing.assert_allclose(X[:, 3:].mean(0), 0, atol=1e-5)
        np.testing.assert_allclose(X[:, 3:].std(0, correction=0), 1, atol=1e-5)


def test_nothing_is_added_by_default_and_no_key_changes(graph):
    plan = make_plan("gcnii", {}, graph)
    assert (plan.recipe.structure, plan.structure) == ("none", "none")
    assert "structure" not in plan.identity(graph.fingerprint)["settings"]


def test_a_label_that_is_a_degree_is_learnt_from_its_column(graph):
    how = HOW | {"epochs": 60, "patience": 60}
    plain, told = (gcnii.fit(graph, "gcnii", structure=one, **how) for one in ("none", "degree"))
    assert told.test[0] > plain.test[0] + 0.2


def test_a_model_without_the_graph_gets_no_column_of_it_and_says_so(graph):
    with pytest.warns(UserWarning, match="mlp does not use the graph, and so no columns"):
        result = gcnii.fit(graph, "mlp", structure="walk", width=8, epochs=5, device="cpu")
    plain = gcnii.fit(graph, "mlp", width=8, epochs=5, device="cpu")
    assert np.array_equal(result.predict_proba(graph), plain.predict_proba(graph))


@pytest.mark.parametrize("scale", ["none", "quantile", "length"])
def test_a_bundle_predicts_as_the_result_that_was_saved(graph, scale, tmp_path):
    result = gcnii.fit(graph, "gcnii", scale=scale, structure="walk", **HOW)
    opened = gcnii.open_bundle(result.save(tmp_path / "bundle"))
    np.testing.assert_array_equal(opened.predict_proba(graph), result.predict_proba(graph))
    other = drawn(60, seed=3)
    np.testing.assert_array_equal(opened.predict_proba(other), result.predict_proba(other))
    assert "|structure|walk|" in (tmp_path / "bundle" / "card.md").read_text()


def test_a_bundle_without_the_scaling_of_its_columns_is_refused(graph, tmp_path):
    path = gcnii.fit(graph, "gcnii", structure="degree", **HOW).save(tmp_path / "b") / "run.json"
    record = json.loads(path.read_text())
    del record["scaling"]["structure"], record["seal"]
    path.write_text(json.dumps(record))
    with pytest.raises(gcnii.BundleError, match=r"scaling\.structure is missing"):
        gcnii.open_bundle(path.parent)


def test_another_graph_has_its_own_columns_scaled_as_in_training(graph):
    result = gcnii.fit(graph, "gcnii", structure="walk", **HOW)
    other = drawn(60, seed=3)
    _, task = result.network(other)
    own = result.scaling.structure.apply(structure_columns(other, "walk"))
    np.testing.assert_allclose(task.X[:, 3:], own, rtol=1e-5, atol=1e-6)


def test_the_columns_of_new_nodes_are_those_of_the_graph_that_they_join(graph):
    result = gcnii.fit(graph, "gcnii", structure="walk", **HOW)
    nodes = pd.DataFrame({"id": ["new"], "a": [0.1], "b": [0.2], "c": [0.3]})
    edges = pd.DataFrame({"source": ["new"] * 3, "target": ["n1", "n2", "n3"]})
    links = np.concatenate([graph.edges, [[graph.n] * 3, [1, 2, 3]]], 1)
    X = np.concatenate([graph.X, np.float32([[0.1, 0.2, 0.3]])])
    whole = gcnii.Graph(X=X, edges=links, y=np.append(graph.y, -1), features=graph.features)
    table = result.predict_new(nodes, edges, graph)
    assert table["p(1)"][0] == pytest.approx(result.predict_proba(whole)[-1, 1], abs=1e-6)


def test_a_large_prediction_by_rows_sees_the_same_columns(graph, monkeypatch):
    result = gcnii.fit(graph, "gcnii", structure="walk", scale="quantile", **HOW)
    other = drawn(60, seed=3)
    whole = result.predict_proba(other)
    monkeypatch.setattr("gcnii.results.result.LARGE", 0)
    np.testing.assert_allclose(result.predict_proba(other), whole, atol=1e-6)


def test_an_explanation_names_the_columns(graph):
    how = HOW | {"epochs": 60, "patience": 60}
    found = gcnii.fit(graph, "gcnii", structure="walk", **how).explain(graph, "n5")
    assert {one.feature for one in found.features} == {"a", "b", "c", *COLUMNS}
    total = sum(one.share for one in found.features) + found.bias
    assert total == pytest.approx(found.score, abs=1e-4)
    assert any("where edges are removed" in note for note in found.notes)


def test_an_ensemble_adds_the_shares_of_members_with_and_without_the_columns(graph):
    kinds = ("none", "degree", "walk")
    results = [gcnii.fit(graph, "gcnii", structure=one, **HOW) for one in kinds]
    first = results[0]
    ensemble = Ensemble(
        origin=first.origin,
        members=tuple(map(Networks, kinds, results)),
        blends=(Blend((0,), (0.2, 0.3, 0.5)),),
        runs=first.runs,
        shared=first.recipe,
        folds=0,
        device="cpu",
        trained_on=graph,
    )
    why = ensemble.explain(graph, "n5", top=20)
    assert {one.feature for one in why.features} == {"a", "b", "c", *COLUMNS}
    total = sum(one.share for one in why.features) + why.bias + why.residual
    assert total == pytest.approx(why.score, abs=1e-4)


def test_several_processes_cannot_add_columns_or_rank_features(graph):
    for given in ({"structure": "walk"}, {"scale": "quantile"}):
        with pytest.raises(gcnii.InputError, match="needs all nodes in one process"):
            refuse(make_plan("gcnii", given), graph.n, 2)
