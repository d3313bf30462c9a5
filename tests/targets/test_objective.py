"""Loss and score of all replicas at once, against scikit-learn's of each alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score
from sklearn.utils.class_weight import compute_class_weight
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from gcnii.graph import Graph, Split
from gcnii.targets import Classes, SeveralLabels, target_of
from gcnii.targets.objective import Objective

CPU = torch.device("cpu")
N, SPLITS = 60, 3


def graph(y, seed=1):
    """Nodes with these labels, in splits of their own sizes; some nodes are in no mask."""
    draw = np.random.default_rng(seed)
    roles = np.array(["train", "val", "test", "none"])
    splits = []
    for share in (0.2, 0.4, 0.5):
        drawn = draw.choice(roles, N, p=[share, 0.7 - share, 0.2, 0.1])
        drawn[(y < 0).reshape(N, -1).any(1)] = "none"
        splits.append(Split.of_roles(drawn))
    return Graph(X=np.ones((N, 1)), edges=[[0], [1]], y=y, splits=tuple(splits))


def one_label(k, seed=0):
    """Classes of unequal sizes; a few nodes are of none that is known."""
    draw = np.random.default_rng(seed)
    y = draw.choice(k, N, p=np.arange(1, k + 1) / np.arange(1, k + 1).sum())
    y[:5] = -1
    return graph(y)


def several_labels(seed=0):
    """Four labels, of which each has its own share of the nodes."""
    draw = np.random.default_rng(seed)
    y = (draw.random((N, 4)) < [0.1, 0.3, 0.6, 0.9]).astype(int)
    y[:5] = -1
    return graph(y)


def drawn_scores(k, seed=0):
    """(r, n, k) with many ties."""
    draw = np.random.default_rng(seed)
    return torch.tensor(draw.integers(-3, 4, (SPLITS, N, k)) / 2, dtype=torch.float32)


def objective(graph, metric="auto", **settings):
    return Objective.of(graph, list(range(len(graph.splits))), CPU, metric, **settings)


def balanced_weights(graph, train):
    return target_of(graph).balanced_weights(graph.labels[train])


def graded(graph, scores, role):
    """Scores and labels of each replica's nodes of this role, as numpy has them."""
    for own, split in zip(scores.numpy(), graph.splits, strict=True):
        mask = getattr(split, role)
        yield own[mask], graph.labels[mask]


@pytest.mark.parametrize("role", ["train", "val", "test"])
@pytest.mark.parametrize("k", [2, 5])
def test_f1_of_one_label_is_the_mean_over_the_classes_that_occur(k, role):
    made, scores = one_label(k), drawn_scores(k)
    expected = [
        f1_score(y, own.argmax(1), average="macro") for own, y in graded(made, scores, role)
    ]
    np.testing.assert_allclose(objective(made, "f1").score(scores, role), expected)


@pytest.mark.parametrize("metric", ["auto", "f1"])
def test_f1_of_several_labels_is_micro_f1(metric):
    made, scores = several_labels(), drawn_scores(4)
    expected = [f1_score(y, own > 0, average="micro") for own, y in graded(made, scores, "test")]
    np.testing.assert_allclose(objective(made, metric).score(scores, "test"), expected)


@pytest.mark.parametrize("metric", ["auto", "accuracy"])
def test_accuracy_is_the_share_of_nodes_with_the_right_class(metric):
    made, scores = one_label(3), drawn_scores(3)
    expected = [accuracy_score(y, own.argmax(1)) for own, y in graded(made, scores, "val")]
    np.testing.assert_allclose(objective(made, metric).score(scores, "val"), expected)


def test_accuracy_of_several_labels_is_the_share_of_nodes_with_all_of_them_right():
    made, scores = several_labels(), drawn_scores(4)
    scores[:, ::2] = torch.tensor(made.labels[::2]) - 0.5
    expected = [accuracy_score(y, own > 0) for own, y in graded(made, scores, "val")]
    np.testing.assert_allclose(objective(made, "accuracy").score(scores, "val"), expected)


@pytest.mark.parametrize("metric", ["auto", "accuracy", "f1", "auc", "ap"])
def test_a_role_without_nodes_has_no_score(metric):
    made = one_label(2)
    empty = tuple(replace(split, test=np.zeros(N, bool)) for split in made.splits)
    made = replace(made, splits=(made.splits[0], *empty[1:]))
    score = objective(made, metric).score(drawn_scores(2), "test")
    assert score.isnan().tolist() == [False, True, True]
    none = replace(made, splits=empty)
    assert objective(none, metric).score(drawn_scores(2), "test").isnan().all()


@pytest.mark.parametrize("metric", ["accuracy", "f1", "auc", "ap"])
@pytest.mark.parametrize("made", [one_label(4), several_labels()], ids=["one", "several"])
def test_some_replicas_or_nodes_are_graded_as_before(metric, made):
    scores, whole = drawn_scores(4), objective(made, metric, class_weight="balanced")
    rows, nodes = torch.tensor([2, 0]), torch.randperm(N)
    part, moved = whole.narrow(rows), whole.at(nodes)
    for measure in ("score", "loss"):
        expected = getattr(whole, measure)(scores, "val")
        torch.testing.assert_close(getattr(part, measure)(scores[rows], "val"), expected[rows])
        torch.testing.assert_close(getattr(moved, measure)(scores[:, nodes], "val"), expected)


def test_balanced_weights_are_those_of_scikit_learn_and_their_mean_is_one():
    made = one_label(4)
    for split in made.splits:
        y = made.labels[split.train]
        present, weights = np.unique(y), balanced_weights(made, split.train)
        expected = compute_class_weight("balanced", classes=present, y=y)
        np.testing.assert_allclose(weights[present], expected)
        assert weights[y].mean() == pytest.approx(1)


def test_a_class_without_training_nodes_weighs_one():
    y = np.array([0] * 30 + [1] * 20 + [2] * 10)
    train = np.arange(N) < 40
    np.testing.assert_allclose(balanced_weights(graph(y), train), [40 / 60, 40 / 20, 1])


def test_the_balanced_loss_weighs_nodes_by_their_class_in_training_and_validation():
    made, scores = one_label(4), drawn_scores(4)
    found = {
        role: objective(made, class_weight="balanced").loss(scores, role)
        for role in ("train", "val")
    }
    for role, losses in found.items():
        for i, (own, y) in enumerate(graded(made, scores, role)):
            weights = torch.tensor(balanced_weights(made, made.splits[i].train)).float()
            each = cross_entropy(torch.tensor(own), torch.tensor(y), weights, reduction="none")
            torch.testing.assert_close(losses[i], each.mean())


def test_a_rare_label_weighs_as_much_by_its_positives_as_by_its_negatives():
    made, scores = several_labels(), drawn_scores(4)
    losses = objective(made, class_weight="balanced").loss(scores, "train")
    for i, (own, y) in enumerate(graded(made, scores, "train")):
        negative, positive = balanced_weights(made, made.splits[i].train)
        weights = np.where(y == 1, positive, negative)
        np.testing.assert_allclose(weights.mean(0), 1)
        rare = (y.mean(0) <= 0.5) & y.any(0)
        np.testing.assert_allclose(((y == 1) * weights).mean(0)[rare], 0.5)
        np.testing.assert_allclose(positive[~rare], 1)  # a frequent label is left as it is
        expected = binary_cross_entropy_with_logits(
            torch.tensor(own), torch.tensor(y).float(), torch.tensor(weights)
        )
        torch.testing.assert_close(losses[i].double(), expected.double())


def test_the_positives_of_a_label_weigh_at_most_a_hundred_times_as_much():
    y = np.zeros((1000, 2), int)
    y[0, 0] = 1
    made = Graph(X=np.ones((1000, 1)), edges=[[0], [1]], y=y)
    negative, positive = balanced_weights(made, np.ones(1000, bool))
    np.testing.assert_allclose(positive / negative, [100, 1])  # the second label never occurs


def test_a_metric_has_the_name_that_the_field_gives_it():
    names = {metric: Classes(2).score(metric).name for metric in ("auto", "f1", "auc")}
    assert names == {"auto": "accuracy", "f1": "macro-F1", "auc": "ROC AUC"}
    assert SeveralLabels(2).score("f1").name == SeveralLabels(2).score("auto").name == "micro-F1"
