"""A training on a graph with times sees its past: nothing later changes a bit of it."""

import dataclasses

import numpy as np
import pytest

import gcnii
from gcnii.graph.past import past
from gcnii.members.trees import Trees
from gcnii.train.hardware import choose_device
from gcnii.train.plan import make_plan
from gcnii.train.task import Task

SMALL = {"layers": 2, "width": 8, "epochs": 4, "verbose": False}
random = np.random.default_rng(0)
pytestmark = pytest.mark.filterwarnings("ignore:.*of all weight")  # of the changed graph


@pytest.fixture(scope="module")
def graph():
    plain = gcnii.load("csbm", n=120)
    times = random.integers(0, 30, 120)
    # Not all zeros and ones, so that scaling has something to learn.
    X = plain.X + random.normal(size=plain.X.shape).astype(plain.X.dtype)
    weights = random.random(plain.edges.shape[1]) + 0.1
    bare = dataclasses.replace(plain, X=X, splits=(), times=times, weights=weights)
    return gcnii.split_by_time(bare)


def changed(graph, role):
    """With other features and weights, and without some edges, beyond what this role sees."""
    there = past(graph, role).present
    X, weights, later = graph.X.copy(), graph.weights.copy(), ~there[graph.edges].all(0)
    X[~there] = random.normal(size=X[~there].shape) * 99
    weights[later] *= 1000
    kept = ~later | (random.random(len(later)) < 0.5)
    return dataclasses.replace(graph, X=X, edges=graph.edges[:, kept], weights=weights[kept])


def losses(result):
    return [loss for loss, *_ in result.runs[0].curve]


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("gcnii", {}),
        ("gcnii", {"structure": "walk"}),
        ("gcnii", {"diffusion": "ppr", "top_k": 8}),
        ("gcnii", {"batches": "clusters", "clusters": 3}),
        ("dropedge-gcn", {"batch_norm": True, "monitor": "val_loss"}),
        ("graphsage-mean", {}),
    ],
)
def test_what_comes_after_the_training_nodes_trains_nothing(graph, model, more):
    one, other = (gcnii.fit(own, model, **SMALL | more) for own in (graph, changed(graph, "train")))
    assert losses(one) == losses(other)
    assert one.runs[0].curve != other.runs[0].curve


def test_what_comes_after_the_validation_nodes_chooses_nothing(graph):
    one, other = (
        gcnii.fit(own, "gcnii", seeds=[0, 1], **SMALL) for own in (graph, changed(graph, "val"))
    )
    assert [run.curve for run in one.runs] == [run.curve for run in other.runs]
    assert [run.temperature for run in one.runs] == [run.temperature for run in other.runs]
    assert one.together == other.together
    assert not np.array_equal(one.predict_proba(graph), other.predict_proba(graph))


@pytest.mark.slow
def test_no_member_of_a_portfolio_is_weighed_by_the_future(graph):
    boards = []
    for own in (graph, changed(graph, "val")):
        rows = gcnii.fit(own, effort="quick", epochs=3, verbose=False).leaderboard()
        boards.append(
            [{name: row[name] for name in ("member", "val", "val_loss", "weight")} for row in rows]
        )
    assert boards[0] == boards[1]


def test_trees_grow_on_the_past(graph):
    both = (graph, changed(graph, "train"))
    one, other = (Trees.fit(own, own.splits[0], stops=[5]) for own in both)
    assert one.forests[0].text == other.forests[0].text


def test_a_bundle_answers_as_the_training_did_and_new_nodes_by_the_whole_graph(graph, tmp_path):
    result = gcnii.fit(graph, "gcnii", **SMALL)
    result.save(tmp_path / "bundle")
    again = gcnii.open_bundle(tmp_path / "bundle")
    P = result.predict_proba(graph)
    assert np.array_equal(again.predict_proba(graph), P)
    untimed = dataclasses.replace(graph, times=None)
    whole, (split,) = again.predict_proba(untimed), graph.splits
    assert np.array_equal(P[~split.val], whole[~split.val])
    assert not np.array_equal(P[split.val], whole[split.val])


def test_a_split_column_of_the_same_roles_is_the_same_training(graph):
    bare = dataclasses.replace(graph, splits=())
    by_hand = dataclasses.replace(bare, splits=graph.splits)
    one, other = (gcnii.fit(own, "gcnii", **SMALL) for own in (gcnii.split_by_time(bare), by_hand))
    assert one.runs[0].curve == other.runs[0].curve
    assert one.test.tolist() == other.test.tolist()


def test_training_computes_on_the_nodes_that_were_there(graph):
    there = np.flatnonzero(past(graph, "train").present)
    plan = make_plan("gcnii", {"layers": 2, "width": 8}, graph)
    task = Task.in_time(graph, plan, choose_device("cpu"), offline=True)
    (batch,) = task.batches(0).epoch(0, 0)
    assert batch.nodes.tolist() == there.tolist()
    assert batch.P.shape == (len(there), len(there))


def test_what_sees_the_future_is_refused(graph):
    with pytest.raises(gcnii.InputError, match="monitor noisy_loss validates by the training pass"):
        gcnii.fit(graph, "gcnii", monitor="noisy_loss", **SMALL)
