"""Ctrl-C, SIGTERM and kill -9 lose no finished trial, and the same command goes on."""

import json
import signal

import pytest
from support import knobs
from support.command_line import call, files, write_pets
from support.forking import GRACE, HEARTBEAT
from support.small_studies import done, finished, hold, states, training, wait_until

from gcnii.tuning import storage
from gcnii.tuning.storage import sqlite_url
from gcnii.tuning.trials import first_number

pytestmark = pytest.mark.slow

TRIALS = 4
WORDS = ("--models", "gcn", "--layers", 2, "--epochs", 40, "--patience", 40, "--seeds", 1)
WORDS = ("tune", "pets", "--trials", TRIALS, *WORDS, "--device", "cpu", "--threads", 1)
WORDS = (*WORDS, "--out", "study", "--json")


@pytest.fixture(scope="module")
def whole(forks, tmp_path_factory):
    """The document of a study that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    write_pets(folder / "pets")
    answer = forks.finish(forks.start(*WORDS, cwd=folder))
    assert (answer.code, answer.err) == (0, "")
    return json.loads(answer.out)


def stopped(forks, folder, number, *more, ready):
    """Send a signal to a study in the middle; its answer, and the finished trials."""
    write_pets(folder / "pets")
    process = forks.start(*WORDS, *more, cwd=folder)
    wait_until(sqlite_url(folder / "study"), ready)
    answer = forks.stop(process, number)
    return answer, finished(sqlite_url(folder / "study"))[0]


def found(document):
    """What a study ends with, whatever the numbers of its trials and the time that it took."""
    tried = sorted(json.dumps([one["settings"], one["val"]]) for one in document["trials"])
    winner = {name: one for name, one in document["winner"].items() if name != "number"}
    return tried, winner, document["final"], document["baselines"]


def go_on(folder, before, whole, *more):
    """Run the same command: nothing is lost or done twice, and it ends as it would have."""
    answer = call(*WORDS, *more, cwd=folder)
    assert (answer.code, answer.err) == (0, "")
    after, frozen = finished(sqlite_url(folder / "study"))
    assert after[: len(before)] == before
    assert len(after) == len({first_number(trial) for trial in frozen}) == TRIALS
    assert found(json.loads(answer.out)) == found(whole)
    assert "checkpoint.safetensors" not in files(folder / "study")
    return frozen


@pytest.fixture(autouse=True)
def _like_the_forks(monkeypatch):
    monkeypatch.setattr(storage, "HEARTBEAT", HEARTBEAT)
    monkeypatch.setattr(knobs.GRACE, GRACE)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (signal.SIGINT, "stopping after this epoch; press Ctrl-C again to stop now"),
        (signal.SIGTERM, "stopping after this epoch"),
    ],
)
def test_ctrl_c_and_sigterm_give_back_what_is_not_finished(number, said, forks, whole, tmp_path):
    answer, before = stopped(forks, tmp_path, number, ready=training(2))
    assert (answer.code, answer.out) == (1, "")
    best = max(before, key=lambda trial: trial.rank)
    assert answer.err == (
        f"gcnii: {said}\n"
        f"gcnii: stopped; {len(before)} settings are kept, the best {100 * best.score:.1f} "
        f"({best.model}). Run the same command again to go on.\n"
    )
    left = states(sqlite_url(tmp_path / "study"))
    assert "RUNNING" not in left
    assert left.count("WAITING") == left.count("FAIL") <= 1
    assert files(tmp_path / "study") == ["study.db"]
    go_on(tmp_path, before, whole)


def test_kill_9_loses_no_finished_trial_and_the_others_come_back(forks, whole, tmp_path):
    write_pets(tmp_path / "pets")
    url = sqlite_url(tmp_path / "study")
    process = forks.start(*WORDS, cwd=tmp_path)
    hold(process, url)
    assert forks.stop(process, signal.SIGKILL) == (-signal.SIGKILL, "", "")
    before, left = finished(url)[0], states(url)
    assert left.count("RUNNING") == 1
    frozen = go_on(tmp_path, before, whole)
    (again,) = [trial for trial in frozen if trial.number != first_number(trial)]
    assert first_number(again) == left.index("RUNNING")


@pytest.mark.long
def test_sigterm_stops_two_jobs_and_two_jobs_go_on_to_the_exact_number(forks, whole, tmp_path):
    how = {"ready": training(0)}
    answer, before = stopped(forks, tmp_path, signal.SIGTERM, "--jobs", 2, **how)
    kept = "1 setting is" if len(before) == 1 else f"{len(before)} settings are"
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(f"gcnii: stopped; {kept} kept")
    assert "RUNNING" not in states(sqlite_url(tmp_path / "study"))
    go_on(tmp_path, before, whole, "--jobs", 2)


def test_a_final_training_that_is_stopped_goes_on_as_well(forks, whole, tmp_path):
    ready = {"ready": lambda found: done(found) == TRIALS}
    answer, before = stopped(forks, tmp_path, signal.SIGINT, **ready)
    if answer.code != 0:  # in the very last epoch there is nothing left to stop
        assert answer.code == 1
        assert answer.err.endswith("Run the same command again to go on.\n")
    go_on(tmp_path, before, whole)
