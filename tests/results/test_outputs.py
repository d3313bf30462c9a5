"""Scores on the training graph are computed once, as one batch; everything else reads them."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.each_kind import of_each_kind
from support.small_models import fitting

import gcnii
from gcnii.nn import Model
from gcnii.results.card import short_form
from gcnii.results.outputs import Recomputed, scores_of
from gcnii.train.task import Task

SMALL = {"layers": 2, "width": 8, "epochs": 4, "device": "cpu"}


@pytest.fixture
def graph():
    return gcnii.load("csbm", n=80)


@pytest.fixture
def passes(monkeypatch):
    """The forward passes of whole models and the matrices P̃ made, by count."""
    found = {"passes": 0, "matrices": 0}
    forward, of = Model.__call__, Task.of.__func__

    def counted_forward(self, *inputs):
        found["passes"] += 1
        return forward(self, *inputs)

    def counted_of(cls, *words, **named):
        found["matrices"] += 1
        return of(cls, *words, **named)

    monkeypatch.setattr(Model, "__call__", counted_forward)
    monkeypatch.setattr(Task, "of", classmethod(counted_of))
    return found


@pytest.mark.filterwarnings("ignore:accuracy")
def test_after_a_fit_nothing_that_reads_its_answers_computes_them_again(graph, passes, tmp_path):
    result = gcnii.fit(graph, seeds=range(3), split=0, **SMALL)
    assert passes["matrices"] == 1
    before = dict(passes)
    result.save(tmp_path / "bundle")
    short_form(result)
    result.predict_proba(graph)
    result.evaluate(baselines=False)
    result.predict_sets(coverage=0.5)
    assert passes == before


@pytest.mark.filterwarnings("ignore:accuracy")
def test_an_opened_bundle_is_evaluated_by_one_matrix(graph, passes, tmp_path):
    gcnii.fit(graph, seeds=range(3), split=0, **SMALL).save(tmp_path / "bundle")
    before = passes["matrices"]
    gcnii.open_bundle(tmp_path / "bundle").evaluate(graph, baselines=False)
    assert passes["matrices"] == before + 1


@of_each_kind("name")
def test_a_batch_of_runs_scores_as_each_run_alone(name, graph):
    result = gcnii.fit(graph, name, seeds=range(2), split=0, **fitting(name, SMALL))
    model, task = result.network(graph, "cpu")
    alone = scores_of(model, result.weights, task)
    together = scores_of(model, result.weights, task, at_once=2)
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(alone[result.best].double(), result.scores(graph))


def test_scores_that_are_too_many_to_keep_are_computed_when_asked_for(graph, monkeypatch):
    kept = gcnii.fit(graph, seeds=range(2), split=0, **SMALL)
    monkeypatch.setattr("gcnii.results.result.KEPT", 0)
    again = replace(kept, outputs=None).scored(graph, "cpu")
    assert isinstance(again.outputs.scores, Recomputed)
    np.testing.assert_array_equal(again.predict_proba(graph), kept.predict_proba(graph))
    one = again.alone(1)
    np.testing.assert_array_equal(one.predict_proba(graph), kept.alone(1).predict_proba(graph))


def test_a_result_can_be_pickled_with_the_scores_that_it_keeps(graph, monkeypatch):
    kept = gcnii.fit(graph, seeds=range(2), split=0, **SMALL)
    again = pickle.loads(pickle.dumps(kept))
    np.testing.assert_array_equal(again.predict_proba(graph), kept.predict_proba(graph))
    monkeypatch.setattr("gcnii.results.result.KEPT", 0)
    asked = pickle.loads(pickle.dumps(replace(kept, outputs=None).scored(graph, "cpu")))
    np.testing.assert_array_equal(asked.outputs.scores[1], kept.outputs.scores[1])
