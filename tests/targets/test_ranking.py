"""ROC AUC and average precision, against scikit-learn's of each replica and class alone."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from gcnii.graph import Graph, Split
from gcnii.targets.objective import Objective

N, REPLICAS = 80, 3
EXPECTED = {"auc": roc_auc_score, "ap": average_precision_score}


def labelled(y, seed=3):
    """A graph with these labels, in three splits of other sizes; unknown labels are in none."""
    draw = np.random.default_rng(seed)
    splits = []
    for share in (0.15, 0.4, 0.6):
        roles = draw.choice(["train", "val", "test", "none"], N, p=[0.1, share, 0.8 - share, 0.1])
        roles[(y < 0).reshape(N, -1).any(1)] = "none"
        splits.append(Split.of_roles(roles))
    return Graph(X=np.ones((N, 1)), edges=[[0], [1]], y=y, splits=tuple(splits))


def scores_of(k, ties):
    drawn = np.random.default_rng(1).normal(size=(REPLICAS, N, k))
    return torch.tensor(drawn.round(0 if ties else 6), dtype=torch.float32)


def score(graph, metric, scores, role, device="cpu"):
    """(r,) by the Objective, on a device."""
    objective = Objective.of(graph, [0, 1, 2], torch.device(device), metric)
    return objective.score(scores.to(device), role).cpu().numpy()


def by_scikit_learn(graph, metric, margins, role):
    """The mean over the classes that have both kinds of nodes; margins (r, n, c)."""
    found = []
    y = graph.labels if graph.multilabel else np.eye(graph.k, dtype=int)[graph.labels]
    truth = y[:, -margins.shape[-1] :]
    for own, split in zip(margins, graph.splits, strict=True):
        mask = getattr(split, role)
        both = [j for j in range(truth.shape[1]) if 0 < truth[mask, j].sum() < mask.sum()]
        found.append(np.mean([EXPECTED[metric](truth[mask, j], own[mask, j]) for j in both]))
    return found


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("role", ["val", "test"])
@pytest.mark.parametrize("metric", EXPECTED)
def test_of_two_classes_the_second_is_told_from_the_first_by_the_difference(metric, role, ties):
    y = (np.random.default_rng(2).random(N) < 0.2).astype(int)
    y[:6] = -1
    graph, scores = labelled(y), scores_of(2, ties)
    margins = (scores[..., 1:].double() - scores[..., :1].double()).numpy()
    expected = by_scikit_learn(graph, metric, margins, role)
    np.testing.assert_allclose(score(graph, metric, scores, role), expected)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("metric", EXPECTED)
def test_of_more_classes_it_is_the_mean_of_each_class_against_the_rest(metric, ties):
    y = np.random.default_rng(2).choice(4, N, p=[0.5, 0.3, 0.18, 0.02])
    y[:6] = -1
    graph, scores = labelled(y), scores_of(4, ties)
    margins = scores.double().log_softmax(-1).numpy()
    for role in ("val", "test"):
        expected = by_scikit_learn(graph, metric, margins, role)
        np.testing.assert_allclose(score(graph, metric, scores, role), expected)


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("metric", EXPECTED)
def test_of_several_labels_it_is_the_mean_over_those_that_some_have_and_some_have_not(metric, ties):
    y = (np.random.default_rng(2).random((N, 5)) < [0, 0.02, 0.3, 0.8, 1]).astype(int)
    y[:6] = -1
    graph, scores = labelled(y), scores_of(5, ties)
    for role in ("val", "test"):
        expected = by_scikit_learn(graph, metric, scores.numpy(), role)
        np.testing.assert_allclose(score(graph, metric, scores, role), expected)


@pytest.mark.parametrize("metric", EXPECTED)
def test_nodes_of_one_class_cannot_be_put_in_order(metric):
    y = np.zeros(N, int)
    y[0] = 1
    graph = labelled(y)
    graded = [split.val[0] for split in graph.splits]
    found = score(graph, metric, scores_of(2, ties=False), "val")
    assert (~np.isnan(found)).tolist() == graded


def test_equal_scores_are_as_good_as_a_coin_toss():
    y = (np.random.default_rng(2).random(N) < 0.3).astype(int)
    graph, scores = labelled(y), torch.zeros(REPLICAS, N, 2)
    np.testing.assert_array_equal(score(graph, "auc", scores, "test"), 0.5)
    shares = [y[split.test].mean() for split in graph.splits]
    np.testing.assert_allclose(score(graph, "ap", scores, "test"), shares)


@pytest.mark.cuda
@pytest.mark.parametrize("metric", EXPECTED)
def test_a_gpu_finds_the_same_without_waiting_for_the_host(metric):
    y = np.random.default_rng(2).choice(4, N)
    # A tie of probabilities is one up to rounding, which differs between devices.
    graph, scores = labelled(y), scores_of(4, ties=False).cuda()
    objective = Objective.of(graph, [0, 1, 2], torch.device("cuda"), metric)
    objective.score(scores, "val")  # finds the places of the nodes, once
    tape = torch.cuda.CUDAGraph()
    with torch.cuda.graph(tape):
        found = objective.score(scores, "val")
    tape.replay()
    np.testing.assert_allclose(found.cpu(), score(graph, metric, scores, "val"))
