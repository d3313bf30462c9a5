"""`preset="record"` trains with the model and the settings that a search has found best."""

import json

import pytest
from support.made_up_records import hold

import gcnii
from gcnii.train import presets as module
from gcnii.train.plan import chosen_model, make_plan
from gcnii.train.presets import records

SETTINGS = {"layers": 3, "width": 8, "alpha": 0.3, "epochs": 2, "lr": 0.02}


@pytest.fixture
def graph():
    return gcnii.load("csbm", n=60)


@pytest.fixture
def held(monkeypatch, tmp_path):
    return hold(monkeypatch, tmp_path, {"csbm": {"model": "gcnii-star", "settings": SETTINGS}})


def test_fit_takes_model_and_settings_of_the_record(graph, held):
    plan = gcnii.fit(graph, preset="record", device="cpu", threads=1).plan
    assert plan.model == "gcnii-star"
    assert SETTINGS.items() <= plan.settings.items()
    assert plan == make_plan("gcnii-star", SETTINGS)


def test_a_given_setting_overrides_the_record_and_the_default_preset_does_not_read_it(graph, held):
    plan = make_plan("gcnii-star", {"layers": 5}, graph, "record")
    assert (plan.settings["layers"], plan.settings["width"]) == (5, 8)
    assert make_plan("gcnii-star", {}, graph) == make_plan("gcnii-star", {})
    assert chosen_model(None, graph) == "gcnii"


def test_nothing_that_was_published_shows_through_a_record(monkeypatch, tmp_path, real_data):
    hold(monkeypatch, tmp_path, {"texas": {"model": "gcnii", "settings": {"layers": 2}}})
    plan = make_plan("gcnii", {}, real_data("texas"), "record")
    assert plan == make_plan("gcnii", {"layers": 2})
    assert plan.settings["alpha"] != make_plan("gcnii", {}, real_data("texas")).settings["alpha"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"model": "gcn"}, "the record of csbm has settings of gcnii-star, got the model gcn;"),
        ({"preset": "paper"}, "preset must be published or record, got 'paper'"),
    ],
)
def test_another_model_or_an_unknown_preset_is_refused(words, sentence, graph, held):
    with pytest.raises(gcnii.errors.InputError, match=sentence):
        gcnii.fit(graph, **{"preset": "record"} | words)


def test_a_graph_without_a_record_is_told_which_have_one(held, monkeypatch, tmp_path):
    digits = gcnii.load("digits")
    with pytest.raises(
        gcnii.errors.InputError, match="digits has no record settings; there are some for csbm;"
    ):
        gcnii.fit(digits, preset="record")
    hold(monkeypatch, tmp_path, {})
    with pytest.raises(gcnii.errors.InputError, match="no data set has any yet; leave the preset"):
        gcnii.fit(digits, preset="record")


def test_a_damaged_file_is_named(monkeypatch, tmp_path, graph):
    path = hold(monkeypatch, tmp_path, {"csbm": {"model": "gcnii", "settings": 3}})
    with pytest.raises(
        gcnii.errors.InputError,
        match=f"{path} is not a file of record settings: csbm.settings must be an object",
    ):
        gcnii.fit(graph, preset="record")


def test_every_record_that_is_shipped_can_be_trained():
    for name, record in records().items():
        plan = make_plan(record.model, record.settings)
        assert record.settings.items() <= plan.settings.items(), name
        assert record.tried >= 1
        assert 0 <= record.val <= 1
    shipped = json.loads(module.FILE.read_text("utf-8"))
    assert shipped == {name: record.document() for name, record in records().items()}
