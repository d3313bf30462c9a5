"""A run's temperature: found on its validation nodes, kept in the bundle, and no label changes."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, softmax

from gcnii import data, fit, open_bundle
from gcnii.errors import BundleError, InputError
from gcnii.files import document_key

SMALL = {"layers": 2, "width": 8, "epochs": 20, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    one = data.load("csbm", n=200, degree=6, labels_per_class=10)
    split = one.splits[0]
    swapped = replace(split, train=split.val, val=split.train)
    return replace(one, splits=(split, swapped))


@pytest.fixture(scope="module")
def result(graph):
    return fit(graph, seeds=range(4), **SMALL)


def test_each_run_has_the_temperature_of_its_own_validation_nodes(graph, result):
    for i, run in enumerate(result.runs):
        val, scores = graph.splits[run.split].val, result.alone(i).scores(graph, "cpu")
        assert run.temperature == result.target.best_temperature(scores[val], graph.labels[val])
    assert len({run.temperature for run in result.runs}) == 4


def test_scores_are_raw_and_probabilities_calibrated(graph, result):
    for i, run in enumerate(result.runs):
        alone = result.alone(i)
        scores = alone.scores(graph, "cpu")
        P = softmax(scores / run.temperature, axis=1)
        np.testing.assert_allclose(alone.predict_proba(graph, "cpu"), P, rtol=1e-12)


def test_runs_that_predict_together_have_a_temperature_of_their_own(graph, result, tmp_path):
    mates = result.predicting()
    val = graph.splits[result.runs[mates[0]].split].val
    mean = np.mean([result.alone(i).predict_proba(graph, "cpu") for i in mates], 0)
    assert result.together == result.target.best_temperature(np.log(mean[val]), graph.labels[val])
    P = result.target.tempered(mean, result.together)
    np.testing.assert_allclose(result.part(mates).predict_proba(graph, "cpu"), P, rtol=1e-9)
    assert np.array_equal(P.argmax(1), mean.argmax(1))
    opened = open_bundle(result.save(tmp_path / "bundle"))
    assert opened.together == result.together
    assert result.alone(mates[0]).together is None


def test_no_score_and_no_label_of_a_run_changes(graph, result):
    plain = fit(graph, seeds=range(4), calibrate="none", **SMALL)
    assert [run.temperature for run in plain.runs] == [None] * 4
    assert np.array_equal(plain.test, result.test)
    for i in range(4):
        one, other = (each.alone(i).predict_ids(graph, "cpu") for each in (plain, result))
        assert np.array_equal(one, other)


def test_several_labels_and_their_threshold_stay(graph):
    many = replace(graph, y=np.stack([graph.labels, 1 - graph.labels], 1))
    how = {"seeds": [0], "label_threshold": "validation", **SMALL}
    plain, warm = (fit(many, calibrate=kind, **how) for kind in ("none", "temperature"))
    assert plain.runs[0].threshold != warm.runs[0].threshold
    assert np.array_equal(plain.predict(many, "cpu"), warm.predict(many, "cpu"))
    P = expit(warm.scores(many, "cpu") / warm.runs[0].temperature)
    np.testing.assert_allclose(warm.predict_proba(many, "cpu"), P, rtol=1e-12)


def test_a_bundle_keeps_the_temperature(graph, result, tmp_path):
    opened = open_bundle(result.save(tmp_path / "bundle"))
    assert [run.temperature for run in opened.runs] == [run.temperature for run in result.runs]
    found, wanted = (one.alone(0).predict_proba(graph, "cpu") for one in (opened, result))
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("temperature", [0, -1.0])
def test_a_temperature_that_cannot_be_is_refused(temperature, result, tmp_path):
    path = result.save(tmp_path / "bundle") / "run.json"
    record = json.loads(path.read_text())
    record["runs"][0]["temperature"] = temperature
    rest = {name: one for name, one in record.items() if name != "seal"}
    path.write_text(json.dumps(rest | {"seal": document_key(rest)}))
    with pytest.raises(BundleError, match="temperatures of runs must be above 0"):
        open_bundle(tmp_path / "bundle")


@pytest.mark.parametrize("nodes", [9, 10])
def test_fewer_than_ten_validation_nodes_calibrate_nothing(nodes, graph):
    split = graph.splits[0]
    val = split.val & (np.cumsum(split.val) <= nodes)
    few = replace(graph, splits=(replace(split, val=val),))
    run = fit(few, seeds=[0], **SMALL).runs[0]
    assert (run.temperature is None) == (nodes < 10)


def test_another_calibration_is_refused(graph):
    with pytest.raises(InputError, match="calibrate must be temperature or none, got 'platt'"):
        fit(graph, calibrate="platt", **SMALL)
