"""The doctor's advice: chosen by validation alone, simple where it makes no difference."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from gcnii.data import load
from gcnii.train.plan import make_plan

pytest.importorskip("optuna")

from gcnii.analysis import advice
from gcnii.analysis.advice import depth_line, use_line
from gcnii.tuning.question import Question
from gcnii.tuning.trials import NothingFound, Trial

MODELS = ("gcn", "gcnii", "appnp")


@pytest.fixture(scope="module")
def graph():
    return load("csbm", n=200)


@pytest.fixture(scope="module")
def question(graph):
    return Question.of(graph, MODELS, fixed=advice.LENGTH)


def trial(question, model, score, error=0.01, outcome="complete", **settings):
    """A made-up trial with three seeds, whose mean and standard error these are."""
    away = error * 3**0.5
    val = (score - away, score, score + away)
    found = question.plan(model, settings).settings
    return Trial(0, model, found, val, (1.0,) * 3, (9,) * 3, 1.0, 1.0, outcome)


def advised(question, *trials):
    return advice.Advice.of(question, [replace(one, number=i) for i, one in enumerate(trials)])


def test_what_is_clearly_best_is_chosen_and_stands_beside_the_others(question):
    found = advised(
        question,
        trial(question, "mlp", 0.802),
        trial(question, "gcn", 0.921),
        trial(question, "gcnii", 0.953, 0.004, layers=8),
        trial(question, "gcnii", 0.911, layers=2),
        trial(question, "gcnii", 0.93, layers=32),
        trial(question, "appnp", 0.3, outcome="given up"),
    )
    assert use_line(found) == (
        "use: gcnii (validation accuracy 95.3 ± 0.4; "
        "gcn 92.1, mlp 80.2 without the graph; given up: appnp)"
    )
    assert depth_line(found) == "depth: 8 layers (2: 91.1, 32: 93.0)"


def test_of_two_within_the_error_the_shallower_is_chosen_and_that_is_said(question):
    found = advised(
        question,
        trial(question, "gcnii", 0.95, layers=8),
        trial(question, "gcnii", 0.945, layers=4),
        trial(question, "gcnii", 0.90, layers=2),
    )
    assert found.chosen.settings["layers"] == 4
    assert depth_line(found) == "depth: 4 layers (2: 90.0, 8: 95.0; no better within the error: 8)"


def test_of_two_models_within_the_error_the_simpler_is_chosen_and_that_is_said(question):
    both = [trial(question, model, score) for model, score in (("gcn", 0.943), ("gcnii", 0.95))]
    found = advised(question, both[0], replace(both[1], settings=both[1].settings | {"layers": 2}))
    assert use_line(found) == (
        "use: gcn (validation accuracy 94.3 ± 1.0; no better within the error: gcnii 95.0)"
    )


@pytest.mark.parametrize("score", [0.95, 0.955])
def test_where_an_mlp_is_as_good_the_graph_does_not_help(question, score):
    found = advised(question, trial(question, "mlp", 0.95), trial(question, "gcn", score))
    assert use_line(found).startswith("use: mlp, because the graph does not help (validation")
    assert depth_line(found) == "depth: mlp has no layers over the graph"


def test_a_depth_at_the_end_of_what_was_tried_says_so(question):
    deep = [trial(question, "gcnii", score, layers=l) for l, score in ((4, 0.8), (8, 0.9))]
    assert depth_line(advised(question, *deep)) == (
        "depth: 8 layers (4: 80.0; more layers were not tried)"
    )
    assert depth_line(advised(question, deep[1])) == ("depth: 8 layers (no other depth was tried)")


def test_less_than_one_validation_node_is_no_difference(question):
    nodes = min(split.val.sum() for split in question.hidden.splits)
    shallow, deep = (trial(question, "gcnii", 0.9, 0.0, layers=l) for l in (2, 8))
    better = replace(deep, val=tuple(val + 0.9 / nodes for val in deep.val))
    assert advised(question, shallow, better).chosen.settings["layers"] == 2


def test_a_search_in_which_nothing_was_finished_gives_no_advice(question):
    with pytest.raises(NothingFound):
        advised(question, trial(question, "gcn", 0.9, outcome="given up"))


def test_the_settings_are_those_that_train_would_not_choose_itself(graph, question):
    found = advised(question, trial(question, "gcnii", 0.9, layers=4, lr=0.003))
    assert found.settings == {"layers": 4, "lr": 0.003, "monitor": "val_score_loss"}
    again = make_plan("gcnii", found.settings, graph).settings
    assert again | advice.LENGTH == found.chosen.settings


@pytest.fixture(scope="module")
def quick():
    with mock.patch.dict(advice.LENGTH, {"epochs": 8, "patience": 4}):
        yield


@pytest.mark.slow
def test_every_model_is_tried_and_the_best_at_other_depths(graph, quick):
    seen = []
    found = advice.advise(graph, MODELS, 8, device="cpu", show=seen.append)
    assert [one.number for one in found.trials] == list(range(8))
    assert {one.model for one in found.trials[:4]} == {*MODELS, "mlp"}
    assert all(one.settings.get("layers", 0) <= advice.START for one in found.trials[:4])
    ladder = found.trials[6:]
    assert len({one.model for one in ladder}) == 1
    changed = [one.settings | {"layers": 0} for one in ladder]
    assert any(one.settings | {"layers": 0} == changed[0] for one in found.trials[:6])
    assert changed[0] == changed[1]
    assert len(seen) == 8


@pytest.mark.slow
def test_no_test_label_has_an_influence_on_the_advice(graph, quick):
    def relabelled(shift):
        y, test = graph.y.copy(), graph.splits[0].test
        y[test] = np.roll(y[test], shift)
        return replace(graph, y=y)

    graphs = [relabelled(shift) for shift in (1, 2)]
    assert (graphs[0].y != graphs[1].y).any()
    first, second = (advice.advise(one, MODELS, 5, device="cpu") for one in graphs)
    assert [one.val for one in first.trials] == [one.val for one in second.trials]
    assert use_line(first) == use_line(second)


def test_more_trials_than_there_are_good_points_are_proposed_by_what_they_taught(graph, quick):
    with mock.patch.object(advice, "first_points", return_value=[]):
        found = advice.advise(graph, ("gcn",), 4, device="cpu")
    assert len(found.trials) == 4


def test_the_summary_has_all_trials_and_the_rule(question):
    found = advised(question, trial(question, "gcn", 0.9), trial(question, "mlp", 0.8))
    document = found.summary()
    assert (document["model"], document["layers"], document["chosen"]) == ("gcn", 2, 0)
    assert document["rule"] == advice.RULE
    assert [one["model"] for one in document["trials"]] == ["gcn", "mlp"]
