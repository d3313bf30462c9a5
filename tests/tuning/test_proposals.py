"""Points first, then TPE; the trials of a batch share a shape and differ in numbers."""

from dataclasses import replace

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from gcnii.nn.settings import Choice
from gcnii.train.plan import batch_key, batched
from gcnii.tuning.proposals import (
    PointsFirst,
    new_shape,
    propose,
    quiet,
    sampler_of,
    shape_of,
)
from gcnii.tuning.question import BASELINES, Question, first_points, parameter
from gcnii.tuning.storage import give_back


@pytest.fixture(scope="module")
def question(graph):
    return Question.of(graph)


def begun(question, done=0, score=lambda number: number / 100):
    """A study in memory in which some trials are done."""
    quiet()
    study = optuna.create_study(direction="maximize", sampler=sampler_of(question))
    for number in range(done):
        trial = study.ask()
        propose(question, trial)
        study.tell(trial, score(number))
    return study


def test_models_that_differ_in_their_choices_of_loops_share_a_study(graph):
    looped = replace(graph, edges=np.append(graph.edges, [[0], [0]], axis=1))
    question = Question.of(looped, ["geom-gcn-i"])
    study = begun(question, done=len(first_points(question)) + 3)
    tried = {trial.params["model"]: trial.params for trial in study.trials}
    assert tried["geom-gcn-i"]["geom-gcn-i.loops"] in ("keep", "remove")
    assert tried["gcn"]["loops"] in ("keep", "remove", "none")


def test_the_points_come_first_and_in_their_order(question):
    points = first_points(question)
    study = begun(question, len(points))
    assert [trial.params for trial in study.trials] == points


@pytest.fixture(scope="module")
def learnt(question):
    """A study that has done its points and some trials more."""
    return begun(question, len(first_points(question)) + 3)


def test_then_settings_are_drawn_from_the_space(question, learnt):
    for trial in learnt.trials[-3:]:
        model = trial.params["model"]
        space = question.space(model)
        assert set(trial.params) == {"model", *(parameter(model, name) for name in space)}
    assert len({str(trial.params) for trial in learnt.trials}) == len(learnt.trials)


def test_tpe_is_joint_and_takes_trials_of_others_for_bad_ones(question):
    sampler = sampler_of(question).base
    assert (sampler._multivariate, sampler._group, sampler._constant_liar) == (True,) * 3


def test_a_draw_depends_on_the_number_of_the_trial_and_on_what_is_known(question):
    def third(done):
        sampler = PointsFirst([], seed=2**32 - 1)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for _ in range(done):
            study.tell(study.ask(), state=TrialState.FAIL)
        return propose(question, study.ask()).trial.params

    assert third(2) == third(2)
    assert third(2) != third(3)


def test_the_trials_of_a_batch_can_be_trained_together(question, learnt):
    study = optuna.create_study(direction="maximize", sampler=sampler_of(question))
    study.add_trials(learnt.get_trials())
    first = propose(question, study.ask())
    study.sampler.shape = shape_of(first, question)
    batch = [first, *(propose(question, study.ask()) for _ in range(3))]
    assert len({batch_key(proposal.plan) for proposal in batch}) == 1
    assert len({str(proposal.trial.params) for proposal in batch}) == 4
    numbers = {parameter(first.plan.model, name) for name in batched(first.plan.model)}
    assert not set(study.sampler.shape) & numbers
    assert "model" in study.sampler.shape


def test_some_batches_begin_with_a_shape_at_random(question):
    study = begun(question)
    shapes = [new_shape(question, study.sampler, study.ask()) for _ in range(120)]
    drawn = [shape for shape in shapes if shape]
    assert 10 < len(drawn) < 32  # a sixth
    models = {shape["model"] for shape in drawn}
    assert len(models) > 2
    assert not models & set(BASELINES)
    for shape in drawn:
        model = shape["model"]
        assert set(shape) - {"model"} <= {parameter(model, name) for name in question.space(model)}
        assert "lr" not in shape


def test_some_batches_begin_with_the_best_shape_and_one_choice_changed(question):
    study = begun(question)
    best = question.plan("gcnii-plus", {"layers": 4, "width": 128, "head": "features"})
    told = {"model": best.model, "settings": best.settings, "val": [0.9], "val_loss": [0.1]}
    trial = study.ask()
    propose(question, trial)
    trial.set_user_attr("told", told | ENDED)
    study.tell(trial, 0.9)
    shapes = [new_shape(question, study.sampler, study.ask()) for _ in range(60)]
    near = [one for one in shapes if one.get("model") == best.model and changed(one, best) == 1]
    assert 10 < len(near) < 32  # a third
    assert len({str(one) for one in near}) > 5


def test_a_search_whose_choices_are_all_given_goes_on_with_its_numbers(question):
    choices = {name: one for name, one in question.space("gcnii-plus").items() if chosen(one)}
    plan = question.plan("gcnii-plus", {})
    given = {name: plan.settings[name] for name in choices}
    fixed = replace(question, models=("gcnii-plus",), fixed=given)
    assert not any(chosen(one) for one in fixed.space("gcnii-plus").values())
    study = begun(fixed)
    trial = study.ask()
    propose(fixed, trial)
    told = {"model": plan.model, "settings": plan.settings, "val": [0.9], "val_loss": [0.1]}
    trial.set_user_attr("told", told | ENDED)
    study.tell(trial, 0.9)
    shapes = [new_shape(fixed, study.sampler, study.ask()) for _ in range(20)]
    assert {str(shape) for shape in shapes} == {"{}", "{'model': 'gcnii-plus'}"}


def chosen(search):
    return isinstance(search, Choice)


ENDED = {"epochs": [9], "seconds": 1.0, "final_seconds": 1.0, "lost": False}


def changed(shape, plan):
    """How many of a shape's choices are not the plan's."""
    own = {parameter(plan.model, name): value for name, value in plan.settings.items()}
    return sum(own[name] != value for name, value in shape.items() if name != "model")


def test_a_trial_that_was_given_back_has_its_point_and_uses_up_no_other(question):
    points, study = first_points(question), begun(question)
    give_back(study, [study.ask()])  # before its settings were known
    found = [propose(question, study.ask()).trial.params for _ in range(3)]
    assert found == points[:3]
    assert [trial.state.name for trial in study.trials] == ["FAIL", *["RUNNING"] * 3]


def test_a_trial_that_was_given_back_has_the_settings_that_it_had(question, learnt):
    study = optuna.create_study(direction="maximize", sampler=sampler_of(question))
    study.add_trials(learnt.get_trials())
    trial = study.ask()
    params = dict(propose(question, trial).trial.params)
    give_back(study, [trial])
    again = propose(question, study.ask())
    assert again.trial.number == trial.number + 1
    assert again.trial.params == params
