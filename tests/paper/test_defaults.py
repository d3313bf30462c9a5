"""The study of the portfolio: what is kept is not trained again, and all else follows from it."""

import numpy as np
import pytest

from gcnii import Split, load
from gcnii.graph import Graph
from gcnii.train.presets import Point
from gcnii.tuning.portfolio import LABELS
from gcnii_paper import defaults
from gcnii_paper.defaults import (
    ALWAYS,
    EFFORTS,
    Kept,
    best_baseline,
    defaults_tables,
    judge,
    kin,
    measure,
    points_table,
)
from gcnii_paper.defaults import read_defaults as read

N = 180


def made_up(seed):
    random = np.random.default_rng(seed)
    splits = []
    for _ in range(3):
        roles = random.permutation(np.repeat(["train", "val", "test"], N // 3))
        splits.append(Split.of_roles(roles))
    y, edges = random.integers(0, 2, N), random.integers(0, N, (2, 3 * N))
    return Graph(X=random.normal(size=(N, 3)), edges=edges, y=y, splits=tuple(splits))


def answers(graph, right, seed):
    """Of a member that is right on this share of the nodes, split by split."""
    for s in range(3):
        guessed = np.random.default_rng([seed, s]).random(graph.n) < right
        guess = np.where(guessed, graph.labels, 1 - graph.labels)
        yield np.eye(2)[guess] * (2 * right - 1) + (1 - right)


@pytest.fixture
def kept(tmp_path):
    """Two graphs on which every member is right by chance, and `features` and `gat` are not."""
    for seed, name in enumerate(("texas", "film")):
        graph = made_up(seed)
        defaults.write_about(graph, name, tmp_path / name, "cpu")
        for i, member in enumerate((*EFFORTS["best"], "pyg-sage")):
            right = {"features": 0.95, "gat": 0.7}.get(member, 0.55)
            path = tmp_path / name / f"{member}.npz"
            defaults.keep(path, graph, [*answers(graph, right, i)], 1.5)
    return tmp_path


def test_what_is_good_on_validation_has_the_weight_and_is_missed(kept, tmp_path):
    judge(kept, tmp_path / "out", ("texas", "film"))
    for document in read(tmp_path / "out"):
        best = document["efforts"]["best"]
        assert np.mean([weights["features"] for weights in best["weights"]]) > 0.4
        assert all(sum(weights.values()) == pytest.approx(1) for weights in best["weights"])
        assert np.mean(document["without"]["features"]) < np.mean(best["test"])
        assert document["members"]["features"]["seconds"] == 1.5
        assert best_baseline(document) == "gat"
        assert document["left_out"]["networks"][0] == "features"
        assert len(document["left_out"]["networks"]) == defaults.CHOSEN


def test_networks_are_chosen_without_the_graph_and_its_kin(kept, tmp_path):
    (kept / "film").rename(kept / "cornell")
    judge(kept, tmp_path / "out", ("texas", "cornell"))
    assert [one["left_out"]["networks"] for one in read(tmp_path / "out")] == [[], []]


def test_members_that_are_weighed_are_not_judged_by_the_same_nodes(kept):
    one = Kept(kept / "film")
    everything = one.honest(EFFORTS["best"])
    assert everything < np.mean(one.ensemble(EFFORTS["best"])["val"])
    assert one.honest([*ALWAYS]) < everything


def test_the_tables_have_a_line_for_each_graph_and_member(kept, tmp_path):
    judge(kept, tmp_path / "out", ("texas", "film"))
    words = points_table() + defaults_tables(read(tmp_path / "out"))
    firsts = [line.split("|")[1] for line in words.splitlines() if line.startswith("|")]
    assert {"film", "texas", "**mean**", *EFFORTS["best"], "pyg-sage"} <= set(firsts)


def test_what_is_kept_is_not_trained_again(tmp_path, monkeypatch):
    monkeypatch.setattr(defaults, "development_graph", lambda name, data: load("csbm", n=60))
    points = [Point("short", "mlp", {"epochs": 5})]
    monkeypatch.setattr(defaults, "PORTFOLIO", points)
    monkeypatch.setattr(defaults, "portfolio", lambda graph: points)
    monkeypatch.setattr(defaults, "LIGHT", (LABELS,))
    monkeypatch.setattr(defaults, "RECIPES", ())
    told = []
    measure(tmp_path, ["csbm"], device="cpu", told=told.append)
    assert [words.split(":")[0] for words in told] == [f"csbm, {LABELS}", "csbm, short"]
    measure(tmp_path, ["csbm"], device="cpu", told=told.append)
    assert len(told) == 2
    P = Kept(tmp_path / "csbm").of(["short", LABELS], "test2")
    np.testing.assert_allclose(P.sum(2), 1, atol=1e-5)


def test_pyg_s_recipe_answers_for_every_node(monkeypatch):
    pytest.importorskip("torch_geometric")
    monkeypatch.setattr(defaults, "EPOCHS", 3)
    graph = made_up(0)
    P = defaults.recipe(graph, graph.splits[0], "pyg-sage", 0, "cpu")
    assert P.shape == (N, 2)
    np.testing.assert_allclose(P.sum(1), 1)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("cora-full", "cora-ml", True), ("texas", "cornell", True), ("cora", "citeseer", False)],
)
def test_kin_are_made_of_the_same_data(one, other, same):
    assert (kin(one) == kin(other)) is same
