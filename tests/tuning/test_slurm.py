"""Workers as an array of Slurm jobs: here processes of this machine stand in for Slurm's."""

import json
import os
import stat
import time

import pytest
from support.command_line import call, write_pets
from support.small_studies import WORDS, finished, states, study_at

from gcnii.errors import InputError
from gcnii.tuning import study as room
from gcnii.tuning.storage import sqlite_url
from gcnii.tuning.study import refuse_options
from gcnii.tuning.trials import first_number

pytestmark = pytest.mark.slow

TRIALS = 5
SMALL = ("--models", "gcn", "--layers", 2, *WORDS)


def test_the_jobs_do_the_trials_and_the_command_ends_with_the_bundle(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "LOOK", 0.2)
    write_pets(tmp_path / "pets")
    words = ("--slurm", "cluster=local", "--jobs", 2, "--trials", TRIALS, "--out", "s", "--json")
    answer = call("tune", "pets", *SMALL, *words, cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    document = json.loads(answer.out)
    assert document["tried"] == TRIALS
    url = sqlite_url(tmp_path / "s")
    _, frozen = finished(url)
    assert len({first_number(trial) for trial in frozen}) == TRIALS
    assert set(states(url)) <= {"COMPLETE", "PRUNED", "FAIL"}
    with study_at(url) as study:
        workers = {trial.user_attrs["worker"] for trial in study.get_trials()}
    assert not any(worker.endswith(f":{os.getpid()}") for worker in workers)
    folder = tmp_path / "s" / "slurm"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700  # a pickle there may hold a password
    assert call("predict", "s", cwd=tmp_path).code == 0


def test_options_are_numbers_and_slurms_own_have_its_prefix():
    options = {"partition": "gpu", "gpus_per_node": "2", "mem_gb": "16", "cluster": "slurm"}
    assert room._parameters(options, "slurm", 8, None) == {
        "timeout_min": 24 * 60,
        "slurm_array_parallelism": 8,
        "slurm_partition": "gpu",
        "gpus_per_node": 2,
        "mem_gb": 16,
    }


@pytest.mark.parametrize(
    ("left", "given", "minutes"), [(3600, {}, 70), (3600, {"timeout_min": "5"}, 5), (-99, {}, 10)]
)
def test_a_job_may_take_as_long_as_the_budget(left, given, minutes):
    found = room._parameters(given, "local", 1, time.time() + left)
    assert found["timeout_min"] == minutes


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"partition": "gpu"}, "Slurm cannot start the jobs: Could not detect "),
        ({"cluster": "local", "a": "b"}, "Slurm cannot start the jobs: Unknown argument 'a' for"),
        ({"cluster": "local", "nodes": "2"}, "Slurm cannot start the jobs: LocalExecutor can use"),
        ({"cluster": "cloud"}, "cluster must be one of slurm, local, got 'cloud'"),
        (
            {"mem_gb": "many"},
            "mem_gb must be a whole number, got 'many'; check slurm's options",
        ),
    ],
)
def test_options_that_cannot_work_are_refused_in_a_sentence(options, sentence, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError) as refused:
        refuse_options(options)
    assert str(refused.value).startswith(sentence)


def test_without_submitit_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(room, "find_spec", lambda name: None)
    with pytest.raises(InputError) as refused:
        refuse_options({})
    assert str(refused.value) == "slurm needs submitit; install it: pip install 'gcnii[slurm]'"


class Job:
    """A job that was started and has ended, or goes on until it is cancelled."""

    def __init__(self, error=None, ends=True):
        self.error, self.ends = error, ends

    def done(self):
        return self.ends

    def cancel(self):
        self.ends = True

    def exception(self):
        return self.error


class Tuner:
    """What `search_by_slurm` asks of one."""

    slurm, url, jobs = {"cluster": "local"}, "postgresql://me@host/x", 2

    def __init__(self, folder):
        self.folder = folder


def search(folder, jobs, monkeypatch):
    class Executor:
        def map_array(self, *_):
            return jobs

    monkeypatch.setattr(room, "_executor", lambda *_: Executor())
    limits = type("Limits", (), {"deadline": None})
    room.search_by_slurm(Tuner(folder), limits)


def test_if_all_jobs_fail_the_reason_is_said(tmp_path, monkeypatch):
    error = RuntimeError("Job failed with trace:\n  File x\nValueError: no such thing\n-----\nsee")
    with pytest.raises(room.JobFailed) as failed:
        search(tmp_path, [Job(error), Job(error)], monkeypatch)
    assert str(failed.value) == (
        f"all 2 jobs failed: ValueError: no such thing; see {tmp_path / 'slurm'}"
    )


def test_if_some_jobs_fail_the_others_suffice(tmp_path, monkeypatch):
    with pytest.warns(UserWarning, match="^1 of 2 jobs failed; see "):
        search(tmp_path, [Job(), Job(RuntimeError("x"))], monkeypatch)


def test_ctrl_c_cancels_the_jobs_and_waits_for_them(tmp_path, monkeypatch):
    jobs, naps = [Job(ends=False), Job(ends=False)], []

    def nap(seconds):
        naps.append(seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr(room.time, "sleep", nap)
    with pytest.raises(KeyboardInterrupt):
        search(tmp_path, jobs, monkeypatch)
    assert [job.ends for job in jobs] == [True, True]
    assert len(naps) == 1


def test_a_shared_sqlite_file_is_warned_of_on_a_cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(Tuner, "slurm", {"partition": "gpu"})
    monkeypatch.setattr(Tuner, "url", "sqlite:////x/study.db")
    with pytest.warns(UserWarning, match="^several machines share the SQLite file of this study; "):
        search(tmp_path, [Job()], monkeypatch)
