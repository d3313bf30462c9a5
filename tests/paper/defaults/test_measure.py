"""Candidates for the default are measured once each, and what was measured is resumed."""

from dataclasses import replace

import pytest

from gcnii.train import own
from gcnii.train.own import MEASURED_BASELINES, Traits, own_default, shared
from gcnii.train.plan import batch_key, make_plan
from gcnii_paper import defaults
from gcnii_paper.defaults import Records, settings_of

pytestmark = pytest.mark.slow

TRAITS = [
    Traits(n=100, d=10, train=train, sparse=sparse, multilabel=multilabel)
    for train in (5, 50, 500)
    for sparse in (True, False)
    for multilabel in (True, False)
]


@pytest.mark.parametrize("traits", TRAITS, ids=str)
def test_candidates_train_in_one_batch_per_depth_and_the_default_is_one_of_them(traits):
    tries = settings_of("gcnii", traits)
    plans = [make_plan("gcnii", one) for one in tries]
    assert len({batch_key(plan) for plan in plans}) == 2
    assert len({str(plan.settings) for plan in plans}) == len(plans) == 26
    assert own_default("gcnii", traits) in tries
    assert settings_of("gcnii-plus", traits) == []


@pytest.mark.parametrize(("trait", "count", "shapes"), [("links", 24, 2), ("features", 96, 4)])
def test_where_links_or_features_tell_gcnii_plus_is_measured_in_their_place(trait, count, shapes):
    traits = replace(TRAITS[1], homophily=-0.1, **{trait: 0.5})
    tries = settings_of("gcnii-plus", traits)
    plans = [make_plan("gcnii-plus", one) for one in tries]
    assert len({str(plan.settings) for plan in plans}) == len(plans) == count
    assert len({batch_key(plan) for plan in plans}) == shapes
    assert own_default("gcnii-plus", traits) in tries
    assert settings_of("gcnii", traits) == []


@pytest.mark.parametrize("traits", TRAITS, ids=str)
def test_baselines_share_scale_and_stopping_with_the_candidates(traits):
    candidate = settings_of("gcnii", traits)[0]
    for model in MEASURED_BASELINES:
        (settings,) = settings_of(model, traits)
        assert {name: settings[name] for name in settings if name != "batches"} == shared(traits)
        assert shared(traits).items() <= candidate.items()
        assert make_plan(model, settings).recipe.batches == "full"


@pytest.fixture
def tiny(real_data, monkeypatch):
    """Texas alone, four settings of GCNII+ in two shapes, two epochs each."""
    real_data("texas")
    few = defaults.ITSELF[:2] + defaults.ITSELF[-2:]
    monkeypatch.setattr(defaults, "candidates", lambda kind: few)
    monkeypatch.setattr(own, "STOP", {"epochs": 2, "patience": 2})
    monkeypatch.setattr(defaults, "GRAPHS", ("texas",))
    return {"word": "texas", "device": "cpu"}


def test_what_is_held_is_not_trained_again(tiny, tmp_path):
    said = []
    defaults.measure(Records(tmp_path / "all.json"), **tiny, told=said.append)
    assert len(said) == 6  # GCNII+ and five baselines
    defaults.measure(Records(tmp_path / "all.json"), **tiny, told=said.append)
    assert len(said) == 6
    document = Records(tmp_path / "all.json").documents["texas"]
    assert [len(document["runs"]), document["sparse"], document["directed"]] == [9, True, True]
    assert document["homophily"] == -0.22
    assert all(len(run["val"]) == len(run["seeds"]) == 10 for run in document["runs"])


def test_only_what_is_missing_of_a_model_is_trained(tiny, tmp_path):
    records, said = Records(tmp_path), []
    defaults.measure(records, **tiny, told=str)
    del records.documents["texas"]["runs"][1:3]  # of GCNII+, which is measured first
    defaults.measure(records, **tiny, told=said.append)
    assert len(said) == 1
    assert ": 2 settings" in said[0]


def test_files_that_the_catalog_lacks_are_left_out_without_a_folder(tmp_path):
    said = []
    defaults.measure(Records(tmp_path), word="humango", told=said.append)
    assert said == ["left out without a folder that holds their npz files: humango"]


def test_no_batch_is_begun_when_time_is_up(tiny, tmp_path):
    said = []
    defaults.measure(Records(tmp_path), **tiny, minutes=-1, told=said.append)
    assert said == []


def test_a_failure_is_told_and_the_others_go_on(tiny, tmp_path, monkeypatch):
    def fails(graph, plans, *words, **how):
        if plans[0].model == "gat":
            raise RuntimeError("no attention")
        return fit(graph, plans, *words, **how)

    fit, said = defaults.fit_plans, []
    monkeypatch.setattr(defaults, "fit_plans", fails)
    defaults.measure(Records(tmp_path), **tiny, told=said.append)
    assert sum("no attention" in line for line in said) == 1
    assert len(said) == 6


@pytest.mark.long
def test_memory_that_is_short_is_shared_out(tiny, tmp_path, monkeypatch):
    def fails(graph, plans, session, **how):
        asked.append(session.batch)
        if session.batch != 1:
            raise MemoryError
        return fit(graph, plans, session, **how)

    fit, asked = defaults.fit_plans, []
    monkeypatch.setattr(defaults, "fit_plans", fails)
    defaults.measure(Records(tmp_path), **tiny, told=str)
    assert asked == [*defaults.SMALLER] * 7  # GCNII+ has two shapes
