"""gcnii forecast, on a graph that takes no time."""

import json

import pytest
from support.command_line import call, files

from gcnii.paper import forecast
from gcnii.paper.forecast import CASES, ForecastCase


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(forecast, "DEPTHS", (2, 4))
    case = ForecastCase(
        name="digits",
        graph="csbm",
        parameters={"n": 100},
        settings={"width": 8, "epochs": 3},
        seeds=1,
    )
    monkeypatch.setitem(CASES, "digits", case)


def test_a_document_and_the_networks_are_kept(tmp_path):
    answer = call("forecast", "digits", "--device", "cpu", "--json", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out) == [
        json.loads((tmp_path / "results/forecast/digits.json").read_text())
    ]
    assert "digits/4-3/model.safetensors" in files(tmp_path / "runs/forecast")


def test_the_tables_are_printed(tmp_path):
    assert "|digits|trained|" in call("forecast", "digits", "--device", "cpu", cwd=tmp_path).out


def test_an_unknown_graph_is_refused_before_the_first_training(tmp_path):
    answer = call("forecast", "digits", "cra", cwd=tmp_path)
    assert (answer.code, files(tmp_path)) == (2, [])
    assert "no case 'cra'" in answer.err


@pytest.mark.parametrize("flag", ["--results", "--keep"])
def test_a_folder_that_cannot_be_written_to_is_refused_and_its_flag_named(flag, tmp_path):
    answer = call("forecast", "texas", flag, "/proc/x", cwd=tmp_path)
    assert answer.code == 2
    sentence = f"no file can be created in /proc; choose another {flag}"
    assert answer.err == f"gcnii: cannot write to /proc/x: {sentence}\n"
