"""The first proposals: the baselines, the default, and what was good on many graphs."""

import pytest

import gcnii
from gcnii.nn import MODELS
from gcnii.tuning.proposals import distribution
from gcnii.tuning.question import (
    BASELINES,
    GOOD,
    SEARCHED,
    Question,
    first_points,
    parameter,
    settings_of,
)


def of_catalog(name, real_data):
    return gcnii.load(name) if name in ("digits", "csbm") else real_data(name)


@pytest.mark.parametrize("name", ["csbm", "digits", "cora", "texas"])
def test_every_first_point_lies_in_the_space(name, real_data):
    question = Question.of(of_catalog(name, real_data), models=tuple(MODELS))
    points = first_points(question)
    assert len(points) > len(GOOD)
    for point in points:
        model = point["model"]
        space = question.space(model)
        assert set(point) == {"model", *(parameter(model, one) for one in space)}
        for one, search in space.items():
            kind = distribution(search)
            value = kind.to_internal_repr(point[parameter(model, one)])
            assert kind._contains(value), (model, one, value)


def test_the_first_are_the_baselines_and_the_default_of_the_first_model(graph):
    question = Question.of(graph, (*SEARCHED, "gcnii"))
    first = first_points(question)[:3]
    assert [point["model"] for point in first] == [*BASELINES, "gcnii-plus"]
    for point in first:
        model = point["model"]
        defaults = question.plan(model, {}).settings
        space = question.space(model)
        found = settings_of(model, space, point)
        far = {"layers", "width"}  # by default 64 layers, or a width of 16: 32 and 64 are nearest
        for name in set(space) - far:
            assert found[name] == pytest.approx(defaults[name]), name


def test_points_of_other_models_are_left_out_and_none_comes_twice(graph):
    points = first_points(Question.of(graph, models=("graphsage-mean",)))
    assert {point["model"] for point in points} == {"graphsage-mean", *BASELINES}
    assert len({repr(point) for point in points}) == len(points)


def test_a_point_has_what_is_given_in_the_place_of_its_own(graph):
    question = Question.of(graph, fixed={"width": 16, "lr": 0.02})
    for point in first_points(question):
        model = point["model"]
        plan = question.plan(model, settings_of(model, question.space(model), point))
        assert (plan.settings["width"], plan.settings["lr"]) == (16, 0.02)
