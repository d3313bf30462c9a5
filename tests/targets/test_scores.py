"""A metric is one entry: the same number in training and in an evaluation, and known everywhere."""

from typing import get_args

import numpy as np
import pytest
import torch

from gcnii.graph import Graph, Split
from gcnii.targets import target_of
from gcnii.targets.objective import Objective
from gcnii.targets.scores import METRICS, RARE, SCORES, Answers, Metric
from gcnii.train.stopping import RULES

N, K = 90, 3
RANDOM = np.random.default_rng(0)
LABELS = {
    "one of two": RANDOM.integers(0, 2, N),
    "one of three": RANDOM.integers(0, K, N),
    "several": (RANDOM.random((N, K)) < [0.2, 0.5, 0.7]).astype(int),
}


CLASSES = ("accuracy", "f1", "auc", "ap")


@pytest.mark.parametrize("metric", ["auto", *CLASSES])
@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_training_and_evaluation_find_the_same(y, metric):
    val = np.arange(N) % 3 == 1
    split = Split(train=np.arange(N) % 3 == 0, val=val, test=np.arange(N) % 3 == 2)
    graph = Graph(X=np.ones((N, 1)), edges=[[0], [1]], y=y, splits=(split,))
    target, scores = target_of(graph), torch.tensor(RANDOM.normal(size=(N, graph.k)))
    P = target.answers(scores)
    objective = Objective.of(graph, [0], torch.device("cpu"), metric)
    said = Answers(target, P[val], target.decided(P)[val], y[val], positive=objective.positive)
    found = float(objective.score(scores[None], "val")[0])
    assert found == pytest.approx(said.scores[target.score(metric).key], abs=1e-12)


def test_settings_and_monitors_are_those_of_the_table():
    assert get_args(Metric) == METRICS == ("auto", *CLASSES, "r2", "mae", "rmse")
    assert [RULES[f"val_{name}"].metric for name in RARE] == ["f1", "auc", "ap"]
    assert all(key == score.key for key, score in SCORES.items())
