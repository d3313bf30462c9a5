"""An ensemble that was opened answers as one that was just trained, and as a single model does."""

from dataclasses import replace
from math import inf

import numpy as np
import pandas as pd
import pytest

from gcnii import Graph, InputError
from gcnii.inference.predict import label_table
from gcnii.results.ensemble import Networks

NODES = pd.DataFrame(np.zeros((2, 4)), columns=list("0123")).assign(id=["new0", "new1"])
EDGES = pd.DataFrame({"source": ["new0", "3", "new0"], "target": ["5", "new1", "new1"]})


def test_new_nodes_are_answered_with_the_labels_of_the_training(ensemble, opened, own):
    fresh = ensemble.predict_new(NODES, EDGES, own, coverage=0.8)
    again = opened.predict_new(NODES, EDGES, own, coverage=0.8)
    pd.testing.assert_frame_equal(fresh, again)


def test_who_validates_one_fold_and_trains_the_others_is_a_training_node(opened, own):
    split, roles = own.splits[0], label_table(opened, own)["split"].to_numpy()
    assert (roles[split.test] == "test").all()
    known = split.train | split.val
    runs = len(opened.blends[0].rows)
    expected = {"train"} if runs > 1 else {"train", "val"}
    assert set(roles[known]) == expected


def test_the_sets_rest_on_the_nodes_of_all_folds(opened, own):
    count = int(opened.held_out(own).sum())
    assert count == sum(own.splits[0].val) or len(opened.blends[0].rows) > 1
    most = 1 - 1 / (count // 2 + 1)
    assert opened.predict_sets(own, most - 1e-6).shape == (own.n, 2)
    with pytest.raises(InputError, match="validation nodes or more"):
        opened.predict_sets(own, min(most + 0.01, np.nextafter(1, -inf)))


@pytest.mark.parametrize("together", [True, False])
def test_the_table_has_a_row_for_each_node(opened, own, together):
    table = label_table(opened, own, ensemble=together, coverage=0.8)
    assert len(table) == own.n
    np.testing.assert_allclose(table[["p(cat)", "p(dog)"]].sum(axis=1), 1, atol=1e-5)


def test_a_single_model_has_no_members(result):
    with pytest.raises(InputError, match="this is one model, gcnii, 2 layers, without members"):
        result.member("trees")


def test_a_member_of_an_opened_ensemble_is_measured_on_the_graph_of_its_training(opened, own):
    name = opened.members[0].name
    alone = opened.knowing(own).member(name)
    assert alone.model == name
    evaluation = alone.evaluate(own, baselines=False)
    assert evaluation.scores["accuracy"].mean == pytest.approx(alone.test[0])


def test_an_embedding_has_a_row_for_each_node(opened, own):
    assert len(opened.embed(own)) == own.n


@pytest.fixture(scope="module")
def tested(own):
    return int(np.flatnonzero(own.splits[0].test)[0])


@pytest.fixture(scope="module")
def why(opened, own, tested):
    return opened.explain(own, tested, top=own.n)


def test_every_member_of_weight_is_named_with_it(why, opened):
    weights = {**why.weights, **why.others}
    (blend,) = opened.blends
    names = [member.name for member in opened.members]
    assert weights == {name: one for name, one in zip(names, blend.weights, strict=True) if one}
    for name in why.others:
        assert any(name in note for note in why.notes if note.startswith("not attributed: "))


def test_shares_add_up_to_the_log_odds_of_the_networks_times_their_weights(
    why, opened, own, tested
):
    (blend,), asked, expected = opened.blends, opened.asked(own), 0.0
    label = opened.target.names.index(why.label)
    for member, weight in zip(opened.members, blend.weights, strict=True):
        network = getattr(member, "base", member)
        if isinstance(network, Networks):
            logs = np.log(asked.of(network)[list(blend.rows), tested])
            expected += weight * (logs[:, label] - logs.mean(1)).mean()
    assert why.score == pytest.approx(expected, abs=1e-4)
    rest = why.bias
    assert sum(one.share for one in why.nodes) + rest == pytest.approx(why.score, abs=1e-4)
    assert sum(one.share for one in why.features) + rest == pytest.approx(why.score, abs=1e-4)


def test_the_check_by_removal_asks_all_members_again(why, opened, own, tested):
    proof = why.removal
    label = opened.target.names.index(why.label)
    assert proof.before == pytest.approx(opened.predict_proba(own)[tested, label])
    gone = {frozenset((one.source, one.target)) for one in proof.links}
    kept = [i for i, pair in enumerate(own.edges.T.tolist()) if frozenset(pair) not in gone]
    assert len(kept) < own.m
    less = Graph(X=own.X, edges=own.edges[:, kept], y=own.labels, features=own.features)
    # The labels of the training stay known: no member falls silent.
    said = opened.said(replace(opened.asked(own), graph=less, _said={}))[0]
    P = opened.target.tempered(said, opened.runs[0].temperature)
    assert proof.after == pytest.approx(P[tested, label])


def test_a_node_of_the_training_is_explained_by_the_runs_that_did_not_train_on_it(opened, own):
    (node, *_) = np.flatnonzero(opened.held_out(own))
    found = opened.explain(own, int(node), top=own.n)
    assert found.probability == pytest.approx(opened.predict_proba(own)[node].max())
    asked, (blend,) = opened.asked(own), opened.blends
    splits = opened.splits(blend, asked.known)
    rows = opened.rows_for(int(node), blend, asked)
    assert rows == [row for row, one in zip(blend.rows, splits, strict=True) if one.val[node]]


def test_one_member_is_explained_by_its_name(opened, own, tested):
    name = next(one.name for one in opened.members if isinstance(one, Networks))
    found = opened.knowing(own).member(name).explain(own, tested)
    assert found.weights == {name: 1.0}
    assert not found.others
    assert found.model == name


def test_links_of_a_member_without_gradients_are_ranked_by_removal(opened, own, tested, tmp_path):
    name = next(one.name for one in opened.members if one.sees == "graph")
    found = opened.knowing(own).member(name).explain(own, tested)
    assert found.others == {name: 1.0}
    assert not found.nodes
    assert not found.features
    head, check = found.sentences
    assert (
        head
        == f"Node {tested} is predicted as {found.label} (probability {found.probability:.3f})."
    )
    assert check.startswith("Removing the ")
    assert all(tested in (link.source, link.target) for link in found.links)
    assert found.removal.after < found.removal.before
    assert found.draw(tmp_path / "why.svg").exists()
