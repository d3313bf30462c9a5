"""Class weights move the labels, and probabilities are honest all the same."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import recall_score, roc_auc_score

from gcnii import Graph, Split, fit, open_bundle
from gcnii.errors import BundleError
from gcnii.files import document_key
from gcnii.targets import Classes

SMALL = {"layers": 2, "width": 8, "epochs": 40, "lr": 0.05, "monitor": "val_loss"}
SMALL |= {"alpha": 0.1, "lam": 1.0, "dropout": 0.2, "decay_conv": 1e-4, "decay_dense": 1e-4}
SMALL |= {"device": "cpu", "threads": 1}
RARE, N = 0.085, 900


def made(y, name="payments", **more):
    """Nodes whose features and neighbours hint at their class."""
    random, k = np.random.default_rng(1), int(y.max()) + 1
    ends = random.integers(0, len(y), (2, 4 * len(y)))
    kept = (y[ends[0]] == y[ends[1]]) | (random.random(4 * len(y)) < 0.35)
    roles = random.permutation(np.repeat(["train", "val", "test"], len(y) // 3))
    X = random.normal(size=(len(y), 4)) + 1.2 * np.pad(np.eye(k)[y], ((0, 0), (0, 4 - k)))
    about = {"edges": ends[:, kept], "splits": (Split.of_roles(roles),), "name": name}
    return Graph(X=X, y=y, **about | more)


@pytest.fixture(scope="module")
def graph():
    y = (np.random.default_rng(0).random(N) > RARE).astype(int)
    return made(y, classes=("fraud", "legit"))


@pytest.fixture(scope="module")
def balanced(graph):
    return fit(graph, seeds=[0], class_weight="balanced", metric="accuracy", **SMALL)


@pytest.fixture(scope="module")
def raw(graph):
    """The same training, with the probabilities that the weighted loss has taught."""
    return fit(
        graph, seeds=[0], class_weight="balanced", calibrate="none", metric="accuracy", **SMALL
    )


@pytest.fixture(scope="module")
def several(graph):
    return fit(graph, seeds=range(3), class_weight="balanced", metric="accuracy", **SMALL)


def quietly(result, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return result.evaluate(*args, baselines=False)


def mean_of_rare(result, graph):
    test = graph.splits[0].test
    return result.predict_proba(graph, "cpu")[test, 0].mean()


def test_the_mean_probability_of_a_rare_class_is_its_share(graph, balanced, raw, several):
    test = graph.splits[0].test
    share = (graph.labels[test] == 0).mean()
    assert mean_of_rare(raw, graph) > 3 * share
    for honest in (balanced, several):
        assert mean_of_rare(honest, graph) == pytest.approx(share, abs=0.02)


def test_the_labels_stay_those_that_the_weights_were_asked_for(graph, balanced, raw):
    plain, test = fit(graph, seeds=[0], metric="accuracy", **SMALL), graph.splits[0].test
    labels = [one.predict_ids(graph, "cpu") for one in (balanced, raw)]
    np.testing.assert_array_equal(*labels)
    assert balanced.test[0] == raw.test[0] == (labels[0] == graph.labels)[test].mean()
    found = {
        name: recall_score(graph.labels[test], one.predict_ids(graph, "cpu")[test], pos_label=0)
        for name, one in {"plain": plain, "balanced": balanced}.items()
    }
    assert found["balanced"] > found["plain"] + 0.3
    most_probable = balanced.predict_proba(graph, "cpu").argmax(1)
    assert (labels[0] == 0).sum() > 2 * (most_probable == 0).sum()


def test_runs_together_find_as_much_of_the_rare_class_as_alone(graph, several):
    assert several.together is None
    rare = graph.labels == 0
    alone = [several.alone(i).predict_ids(graph, "cpu")[rare] == 0 for i in range(3)]
    together = several.predict_ids(graph, "cpu")[rare] == 0
    assert together.mean() == pytest.approx(np.mean(alone), abs=0.05)


def test_a_bundle_undoes_the_weights_as_well(graph, balanced, tmp_path):
    opened = open_bundle(balanced.save(tmp_path / "bundle"))
    for name in ("predict_proba", "predict"):
        found, wanted = (getattr(one, name)(graph, "cpu") for one in (opened, balanced))
        np.testing.assert_array_equal(found, wanted)
    text = (tmp_path / "bundle" / "card.md").read_text()
    assert "Of the rarest, fraud, the mean probability is " in text
    assert "weighed the classes by is undone in probabilities alone" in text


def test_a_bundle_from_before_predicts_what_it_predicted(graph, balanced, raw, tmp_path):
    path = balanced.save(tmp_path / "bundle") / "run.json"
    record = json.loads(path.read_text())
    del record["seal"], record["runs"][0]["weights"], record["runs"][0]["temperature"]
    path.write_text(json.dumps(record | {"seal": document_key(record)}))
    old = open_bundle(tmp_path / "bundle")
    found, wanted = (one.predict_proba(graph, "cpu") for one in (old, raw))
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, -2.0]])
def test_weights_that_cannot_be_are_refused(balanced, weights, tmp_path):
    path = balanced.save(tmp_path / "bundle") / "run.json"
    record = json.loads(path.read_text())
    record["runs"][0]["weights"] = weights
    del record["seal"]
    path.write_text(json.dumps(record))
    with pytest.raises(BundleError, match="weights of runs must be 2 numbers above 0"):
        open_bundle(tmp_path / "bundle")


def test_few_validation_nodes_leave_the_weights_of_the_loss_to_be_undone(graph):
    split = graph.splits[0]
    val = split.val & (np.cumsum(split.val) <= 9)
    few = replace(graph, splits=(replace(split, val=val),))
    run = fit(
        few, seeds=[0], class_weight="balanced", metric="accuracy", **SMALL | {"epochs": 2}
    ).runs[0]
    counts = np.bincount(graph.labels[split.train])
    assert run.temperature is None
    np.testing.assert_allclose(run.weights, counts.sum() / (2 * counts))


def test_several_labels_are_honest_and_stay_as_they_were(graph):
    y = np.stack([graph.labels == 0, np.arange(N) % 2 == 0], 1).astype(int)
    many = replace(graph, y=y, classes=("fraud", "even"))
    how = {"seeds": [0], "class_weight": "balanced", **SMALL}
    raw, honest = (fit(many, calibrate=kind, **how) for kind in ("none", "temperature"))
    np.testing.assert_array_equal(*(one.predict_ids(many, "cpu") for one in (raw, honest)))
    test = many.splits[0].test
    P = honest.predict_proba(many, "cpu")[test]
    np.testing.assert_allclose(P.mean(0), y[test].mean(0), atol=0.04)
    assert raw.predict_proba(many, "cpu")[test, 0].mean() > 0.2


def test_a_temperature_and_the_power_of_the_weights_are_found_again():
    random = np.random.default_rng(0)
    logits, logs = 2 * random.normal(size=(20_000, 3)), np.log([4.0, 1.0, 0.5])
    P = np.exp(logits)
    y = (P.cumsum(1) / P.sum(1, keepdims=True) < random.random((20_000, 1))).sum(1)
    T, power = Classes(3).fitted(2.5 * (logits + 0.7 * logs), y, logs)
    assert (T, power) == pytest.approx((2.5, 0.7), rel=0.05)


def test_calibration_is_reported_by_class_the_rarest_first(graph, balanced, raw):
    found = quietly(balanced)
    first, second = found.calibration["classes"]
    test = graph.splits[0].test
    assert (first["name"], second["name"]) == ("fraud", "legit")
    assert first["mean_probability"] == pytest.approx(mean_of_rare(balanced, graph))
    assert first["share"] == pytest.approx((graph.labels[test] == 0).mean())
    assert first["low"] < first["mean_probability"] < first["high"]
    worse = quietly(raw).calibration["classes"][0]
    assert worse["error"] > 0.15 > 0.05 > first["error"]
    lines = str(found).splitlines()
    place = lines.index("probabilities by class in %, the rarest first")
    assert lines[place + 2].startswith(" fraud")


@pytest.mark.parametrize("weight", ["none", "balanced"])
def test_the_order_of_nodes_is_graded_once_for_training_and_evaluation(weight):
    y = np.random.default_rng(3).choice(3, 600, p=[0.1, 0.3, 0.6])
    three, how = made(y), SMALL | {"metric": "auc", "class_weight": weight, "epochs": 10}
    result = fit(three, seeds=range(2), **how)
    test = three.splits[0].test
    for i, run in enumerate(result.runs):
        P = result.alone(i).predict_proba(three, "cpu")[test]
        assert run.test == pytest.approx(roc_auc_score(y[test], P, multi_class="ovr"), abs=1e-12)
    assert quietly(result).scores["roc_auc"].mean == pytest.approx(result.test.mean(), abs=1e-12)
    plain = fit(three, seeds=[0], calibrate="none", **how)
    assert plain.test[0] != result.test[0]
    assert plain.runs[0].curve == result.runs[0].curve
