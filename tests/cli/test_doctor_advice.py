"""gcnii doctor ends with what to use, how deep, and the command."""

import json
import re
import shlex
from unittest import mock

import pytest
from support import knobs
from support.command_line import call

pytest.importorskip("optuna")

from gcnii.analysis import advice

QUICK = ("--model", "gcn,gcnii", "--depths", "2", "--device", "cpu", "--trials", "3")


@pytest.fixture(scope="module", autouse=True)
def short():
    """Train for a few epochs only."""
    with (
        mock.patch(knobs.EXAMINED_EPOCHS, 3),
        mock.patch.dict(advice.LENGTH, {"epochs": 6, "patience": 3}),
    ):
        yield


@pytest.fixture(scope="module")
def answer(home):
    return call("doctor", "pets", *QUICK, cwd=home)


def test_the_advice_comes_last(answer):
    assert answer.code == 0, answer.err
    advice = answer.out[answer.out.index("use: ") :]
    use, depth, run = re.split(r"\n(?=depth: |run: )", advice.rstrip())
    assert " (validation accuracy " in use
    assert run.startswith("run: gcnii train pets --device cpu --model ")
    assert run.endswith("   (or search longer: gcnii tune pets --device cpu)")
    assert "test" not in f"{use}{depth}{run}"


def test_an_examination_that_is_stopped_takes_no_advice_away(home):
    with mock.patch("gcnii.cli.doctor._examine", side_effect=KeyboardInterrupt):
        answer = call("doctor", "pets", *QUICK, cwd=home)
    assert answer.code != 0
    assert answer.out.startswith("use: ")


@pytest.mark.slow
def test_the_command_runs_and_trains_what_was_advised(home):
    document = json.loads(call("doctor", "pets", *QUICK, "--json", cwd=home).out)["advice"]
    assert f"run: {document['command']}   (or" in document["lines"][2]
    gcnii, *words = shlex.split(document["command"])
    trained = call(*words, "--json", "--runs", "1", cwd=home)
    assert (gcnii, trained.code) == ("gcnii", 0), trained.err
    found = json.loads(trained.out)
    (chosen,) = (one for one in document["trials"] if one["number"] == document["chosen"])
    assert found["model"] == chosen["model"] == document["model"]
    length = {name: found["settings"][name] for name in ("epochs", "patience")}
    assert found["settings"] == chosen["settings"] | length


def test_the_command_has_the_flags_that_the_graph_was_read_with(home):
    strange = "pets'; echo 'a b"
    (home / strange).symlink_to(home / "pets")
    flags = ("--drop", "x1", "--unknown", "N A", "--directed")
    answer = call("doctor", strange, *QUICK, *flags, "--offline", "--json", cwd=home)
    words = shlex.split(json.loads(answer.out)["advice"]["command"])
    assert words[:3] == ["gcnii", "train", strange]
    assert words[3:11] == [*flags, "--device", "cpu", "--offline"]


def test_without_trials_there_is_no_advice(home):
    answer = call("doctor", "pets", *QUICK[:-1], "0", cwd=home)
    assert answer.code == 0, answer.err
    assert "use: " not in answer.out
    document = call("doctor", "pets", *QUICK[:-1], "0", "--json", cwd=home)
    assert "advice" not in json.loads(document.out)


def test_without_optuna_the_examination_goes_on(home):
    with mock.patch(knobs.FIND_OPTUNA, return_value=None):
        answer = call("doctor", "pets", *QUICK, cwd=home)
    assert answer.code == 0
    assert (
        "gcnii: no advice: tune needs Optuna; install it: pip install 'gcnii[tune]'" in answer.err
    )
    assert "gcn, 2 layers: " in answer.out


def test_a_negative_number_of_trials_is_refused(home):
    answer = call("doctor", "pets", "--trials", "-1", cwd=home)
    assert (answer.code, answer.out) == (2, "")
    assert "--trials must be at least 0, got -1" in answer.err


def test_the_retired_command_says_where_the_answer_is(home):
    answer = call("forecast", "cora", cwd=home)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("gcnii: gcnii forecast is retired: on ten graphs")


def test_the_retired_forecast_says_where_the_answer_is(home):
    answer = call("doctor", "pets", *QUICK, "--recommend-depth", "--json", cwd=home)
    assert answer.code == 0
    assert "--recommend-depth is retired" in answer.err
    assert "the line `depth:` of `gcnii doctor` answers by validation" in answer.err
    assert "depth" not in json.loads(answer.out)
