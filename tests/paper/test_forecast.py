"""The recommended depth is compared with networks trained at every depth."""

import json

import pytest
import torch
from support.made_up_cells import around
from support.made_up_cells import measured as measured_cell

from gcnii.data.generators import csbm
from gcnii.paper import forecast
from gcnii.paper.forecast import (
    CASES,
    FULL,
    SHORT,
    SWEEP,
    ForecastCase,
    costs,
    errors,
    find_case,
    measure,
    steps,
)

CPU = torch.device("cpu")
SMALL = {"width": 8, "epochs": 4}


@pytest.fixture(autouse=True)
def _shallow(monkeypatch):
    monkeypatch.setattr(forecast, "DEPTHS", (2, 4))
    monkeypatch.setattr(forecast, "EPOCHS", 2)


def record(*curves, **asked):
    """A curve for each seed; all are asked the same."""
    seeds = [{"seed": s, "test": list(test), "asked": asked} for s, test in enumerate(curves)]
    return {"case": "made-up", "chose": False, "depths": [2, 8], "seeds": seeds}


def test_the_rule_is_tested_on_six_graphs_or_more_that_did_not_choose_it():
    assert {case.name for case in CASES.values() if case.chose} == {"cora", "citeseer", "csbm"}
    assert sum(not case.chose for case in CASES.values()) >= 6


def test_a_recommendation_costs_the_difference_to_the_depth_that_is_best_in_the_mean():
    found = record([0.5, 0.8], [0.7, 0.6])
    assert costs(found, [8, 8]) == pytest.approx([0, 0])
    assert costs(found, [2, 2]) == pytest.approx([0.3, -0.1])


def test_between_two_depths_the_cost_is_on_the_line_over_their_logarithm():
    assert costs(record([0.5, 0.9]), [4]) == pytest.approx([0.2])
    assert costs(record([0.5, 0.9]), [0]) == pytest.approx([0.4])


def test_the_error_of_a_curve_is_the_mean_over_its_depths_also_for_a_flat_line():
    found = record([0.5, 0.8], full={"foretold": [0.6, 0.8]})
    assert errors(found, FULL) == pytest.approx([0.05])
    assert errors(found, FULL, flat=True) == pytest.approx([0.15])


@pytest.fixture
def case():
    return ForecastCase(name="small", graph="csbm", parameters={"n": 120}, settings=SMALL, seeds=2)


def test_a_case_is_trained_at_every_depth_and_gives_three_recommendations(case, tmp_path):
    shown = []
    found = measure(case, tmp_path, tmp_path, CPU, shown.append)
    assert len(shown) == steps(case) == 6
    assert [one["seed"] for one in found["seeds"]] == [0, 1]
    for one in found["seeds"]:
        assert len(one["test"]) == len(one["val"]) == len(one["asked"][SHORT]["foretold"]) == 2
        assert one["epochs"] == [4, 4]
        assert set(one["asked"]) == {SHORT, FULL, SWEEP}
        assert one["asked"][FULL]["foretold"][-1] == pytest.approx(
            one["test"][-1]
        )  # the network asked is the one trained
    assert json.loads(json.dumps(found))["parameters"] == {"n": 120}


def test_short_trainings_recommend_and_predict_by_the_highest_validation_score():
    (found,) = forecast._extend([{"val": [0.9, 0.8], "test": [0.7, 0.75]}])
    assert found["recommended"] == 2
    assert found["foretold"] == pytest.approx([0.85, 0.75])


def test_networks_that_were_kept_are_not_trained_again(case, tmp_path, monkeypatch):
    first = measure(case, tmp_path, tmp_path, CPU, lambda now: None)
    monkeypatch.setattr(forecast, "fit_plan", None)
    assert measure(case, tmp_path, tmp_path, CPU, lambda now: None) == first


def test_networks_of_other_settings_are_trained_again(case, tmp_path):
    measure(case, tmp_path, tmp_path, CPU, lambda now: None)
    other = ForecastCase(name="small", graph="csbm", parameters={"n": 130}, settings=SMALL, seeds=1)
    assert len(measure(other, tmp_path, tmp_path, CPU, lambda now: None)["seeds"]) == 1


@pytest.fixture
def known(monkeypatch):
    """A graph whose true scores are those of Figure 2."""
    monkeypatch.setattr(forecast, "load", lambda name: csbm.read(n=120))
    return ForecastCase(name="cora", graph="cora", settings=SMALL, seeds=1, measured=True, asked=())


def test_true_scores_may_be_those_of_the_cells(known, tmp_path):
    for layers, mean in ((2, 80), (4, 82)):
        measured_cell(f"figure2/cora-gcnii/{layers}", around(mean)).save(tmp_path / "cells")
    (one,) = measure(known, tmp_path, tmp_path, CPU, lambda now: None)["seeds"]
    assert one["test"] == pytest.approx([0.80, 0.82])
    assert one["val"] == [0.8, 0.8]


def test_cells_that_are_missing_are_named(known, tmp_path):
    (tmp_path / "cells").mkdir()
    with pytest.raises(
        ValueError, match=r"no figure2 of Cora GCNII with \[2, 4\] layers; reproduce it first"
    ):
        measure(known, tmp_path, tmp_path, CPU, lambda now: None)


def test_an_unknown_case_is_refused():
    with pytest.raises(
        ValueError, match="no case 'cra'; did you mean 'cora'\\? known: cora, citeseer"
    ):
        find_case("cra")


def test_cells_with_fewer_runs_than_seeds_are_named(tmp_path):
    for layers in (2, 4):
        measured_cell(f"figure2/cora-gcnii/{layers}", [80.0], row="Cora GCNII").save(
            tmp_path / "cells"
        )
    with pytest.raises(
        ValueError,
        match=r"figure2/cora-gcnii/2, figure2/cora-gcnii/4 in .* must have at least 2 runs, none",
    ):
        measure(CASES["cora"], tmp_path, tmp_path, CPU, lambda words: None)


def test_cells_with_a_lost_run_are_named(tmp_path):
    for layers, scores in ((2, [80.0, None]), (4, [80.0, 81.0])):
        measured_cell(f"figure2/cora-gcnii/{layers}", scores, row="Cora GCNII").save(
            tmp_path / "cells"
        )
    with pytest.raises(
        ValueError,
        match=r"^figure2/cora-gcnii/2 in .* must have at least 2 runs, none of them lost",
    ):
        measure(CASES["cora"], tmp_path, tmp_path, CPU, lambda words: None)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("[]", "it must be an object"),
        (
            '{"case": "texas", "chose": false, "depths": [2], "seeds": []}',
            "it must have seeds, each with one score per depth",
        ),
        (
            '{"case": "texas", "chose": false, "depths": [2], "seeds": [{"test": []}]}',
            r"seeds\[0\].val is missing",
        ),
    ],
)
def test_a_damaged_document_is_named(wrong, sentence, tmp_path):
    (tmp_path / "texas.json").write_text(wrong)
    with pytest.raises(
        ValueError, match=rf"texas\.json is not a document of `gcnii forecast texas`: {sentence}"
    ):
        list(forecast.read_records(tmp_path))
