"""Candidates for the default are measured once each, and what was measured is resumed."""

import subprocess
import sys

import pytest

from gcnii.paper.defaults import candidates, measure
from gcnii.paper.defaults.__main__ import main
from gcnii.paper.defaults.candidates import ROUNDS, Traits, settings_of
from gcnii.paper.defaults.records import Records
from gcnii.train.plan import batch_key, make_plan

TRAITS = [Traits(*(bool(bits & bit) for bit in (1, 2, 4))) for bits in range(8)]


@pytest.mark.parametrize("traits", TRAITS, ids=str)
def test_the_candidates_of_a_round_train_as_one_batch(traits):
    for round_ in ROUNDS:
        plans = [make_plan("gcnii", one) for one in settings_of(round_, "gcnii", traits)]
        assert len({batch_key(plan) for plan in plans}) <= 1
        assert len({str(plan.settings) for plan in plans}) == len(plans)


@pytest.mark.parametrize("traits", TRAITS, ids=str)
def test_baselines_share_scale_stopping_and_direction_with_some_candidate(traits):
    for round_ in ROUNDS:
        for model in candidates.BASELINES:
            for settings in settings_of(round_, model, traits):
                shared = {name: settings[name] for name in settings if name != "batches"}
                candidate = settings_of(round_, "gcnii", traits)[0]
                assert shared.items() <= candidate.items()
                assert make_plan(model, settings).recipe.batches == "full"


def test_each_change_of_a_round_is_new():
    for traits in TRAITS:
        rounds = [str(settings_of(round_, "gcnii", traits)) for round_ in ROUNDS]
        tried = [round_ for round_ in rounds if round_ != "[]"]
        assert len(set(tried)) == len(tried)


@pytest.fixture
def tiny(real_data, monkeypatch):
    """Texas in two rounds of two settings, two epochs each."""
    real_data("texas")
    monkeypatch.setattr(candidates, "NUMBERS", candidates.NUMBERS[:2])
    monkeypatch.setattr(candidates, "STOP", {"epochs": 2, "patience": 2})
    monkeypatch.setattr(measure, "ROUNDS", ("base", "layers 4"))
    return {"word": "texas", "device": "cpu"}


def test_what_is_held_is_not_trained_again(tiny, tmp_path):
    said = []
    measure.measure(Records(tmp_path / "all.json"), **tiny, told=said.append)
    assert len(said) == 7  # five baselines, and GCNII twice
    measure.measure(Records(tmp_path / "all.json"), **tiny, told=said.append)
    assert len(said) == 7
    document = Records(tmp_path / "all.json").documents["texas"]
    assert [len(document["runs"]), document["sparse"], document["directed"]] == [9, True, True]
    assert all(len(run["val"]) == len(run["seeds"]) == 10 for run in document["runs"])


def test_one_file_unpacks_into_a_folder(tiny, tmp_path):
    measure.measure(Records(tmp_path / "all.json"), **tiny, told=str)
    for _ in range(2):  # the second adds nothing
        main(["--unpack", str(tmp_path / "all.json"), "--out", str(tmp_path / "each")])
    unpacked = Records(tmp_path / "each").documents
    assert unpacked == Records(tmp_path / "all.json").documents


def test_no_batch_is_begun_when_time_is_up(tiny, tmp_path):
    said = []
    measure.measure(Records(tmp_path), **tiny, minutes=-1, told=said.append)
    assert said == []


def test_a_failure_is_told_and_the_others_go_on(tiny, tmp_path, monkeypatch):
    def fails(graph, plans, **how):
        if plans[0].model == "gat":
            raise RuntimeError("no attention")
        return fit(graph, plans, **how)

    fit, said = measure.fit_plans, []
    monkeypatch.setattr(measure, "fit_plans", fails)
    measure.measure(Records(tmp_path), **tiny, told=said.append)
    assert sum("no attention" in line for line in said) == 1
    assert len(said) == 7


def test_memory_that_is_short_is_shared_out(tiny, tmp_path, monkeypatch):
    def fails(graph, plans, *, batch, **how):
        asked.append(batch)
        if batch != 1:
            raise MemoryError
        return fit(graph, plans, batch=batch, **how)

    fit, asked = measure.fit_plans, []
    monkeypatch.setattr(measure, "fit_plans", fails)
    measure.measure(Records(tmp_path), **tiny, told=str)
    assert asked == [*measure.SMALLER] * 7


def test_the_script_needs_no_command_line():
    code = "import sys, gcnii.paper.defaults.__main__; print('cyclopts' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
