"""Two commands share a study in PostgreSQL; one is killed, and nothing is lost or done twice."""

import json
import re
import shutil
import signal
import tempfile

import pytest
from support import postgres
from support.command_line import files, write_pets
from support.small_studies import finished, hold, study_at

from gcnii.results.bundle import open_bundle
from gcnii.tuning.trials import first_number

pytestmark = pytest.mark.slow

TRIALS = 7
WORDS = ("--models", "gcn", "--layers", 2, "--epochs", 40, "--patience", 40, "--seeds", 1)
WORDS = ("tune", "pets", "--trials", TRIALS, *WORDS, "--device", "cpu", "--threads", 1, "--json")


@pytest.fixture(scope="module")
def address():
    """A server with an empty database."""
    if postgres.find() is None or postgres.owner() is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder, postgres.server(folder) as url:
        yield url


def workers(url):
    """The process that trained each trial, by its number; 0 if nobody began it."""
    with study_at(url) as study:
        names = [trial.user_attrs.get("worker", ":0") for trial in study.get_trials()]
    return [int(name.rpartition(":")[2]) for name in names]


@pytest.fixture(scope="module")
def story(address, forks, tmp_path_factory):
    """One worker begins and is killed in a trial; another has begun at the same time."""
    home = tmp_path_factory.mktemp("machines")
    for name in ("one", "other"):
        write_pets(home / name / "pets")
    words = (*WORDS, "--storage", address, "--out", "study")
    one, other = (forks.start(*words, cwd=home / name) for name in ("one", "other"))

    hold(one, address)
    killed = forks.stop(one, signal.SIGKILL)
    before, _ = finished(address)
    return one, other, killed, before, forks.finish(other), home


def test_the_other_worker_finishes_everything(story):
    *_, answer, home = story
    assert answer.code == 0
    # A busy machine takes so long that progress is told.
    assert all(line.startswith("gcnii: tuning pets: ") for line in answer.err.splitlines())
    assert json.loads(answer.out)["tried"] == TRIALS
    assert files(home / "other" / "study") == [
        *("card.md", "curves.csv", "model.safetensors", "run.json", "search.png", "study.json")
    ]


def test_no_finished_trial_is_lost_and_none_is_trained_twice(story, address):
    one, other, killed, before, *_ = story
    assert killed == (-signal.SIGKILL, "", "")
    after, frozen = finished(address)
    numbers = {trial.number: trial for trial in after}
    assert all(numbers[trial.number] == trial for trial in before)
    assert len(after) == TRIALS
    assert len({first_number(trial) for trial in frozen}) == TRIALS
    assert len({json.dumps(trial.params, sort_keys=True) for trial in frozen}) == TRIALS
    assert {workers(address)[trial.number] for trial in frozen} <= {one, other}


def test_the_trial_of_the_dead_worker_came_back_to_the_other(story, address):
    one, other, *_ = story
    _, frozen = finished(address)
    began, over = workers(address), {trial.number for trial in frozen}
    (dead,) = [number for number, who in enumerate(began) if who == one and number not in over]
    (again,) = [trial for trial in frozen if first_number(trial) == dead]
    assert again.number > dead
    assert began[again.number] == other


def test_the_same_command_elsewhere_ends_with_the_same_numbers(story, address, forks, tmp_path):
    *_, answer, home = story
    shutil.copytree(home / "other" / "pets", tmp_path / "pets")
    words = (*WORDS, "--storage", address, "--out", "study")
    again = forks.finish(forks.start(*words, cwd=tmp_path))
    assert (again.code, again.err) == (0, "")
    one, other = json.loads(answer.out), json.loads(again.out)
    assert one["trials"] == other["trials"]
    assert one["final"] == other["final"]


def test_the_password_is_written_nowhere(story):
    *_, answer, home = story
    study = (home / "other" / "study" / "study.json").read_text()
    assert "s3cret" not in study + answer.out
    shown = json.loads(study)["command"]
    assert re.search(r"--storage 'postgresql\+psycopg://postgres:\*\*\*@127\.0\.0\.1:\d+/p", shown)


def test_two_workers_may_begin_at_once_in_one_folder_and_end_alike(address, forks, tmp_path):
    write_pets(tmp_path / "pets")
    words = (*WORDS, "--storage", address, "--out", "study", "--lr", 0.02)
    both = [forks.start(*words, cwd=tmp_path) for _ in range(2)]
    answers = [forks.finish(process) for process in both]
    assert [(answer.code, answer.err) for answer in answers] == [(0, "")] * 2
    one, other = (json.loads(answer.out) for answer in answers)
    assert one["tried"] == other["tried"] == TRIALS
    assert one["trials"] == other["trials"]
    assert one["final"] == other["final"]
    bundle = open_bundle(tmp_path / "study")
    assert bundle.plan.settings == one["winner"]["settings"]
    assert not [name for name in files(tmp_path / "study") if name.startswith(".")]
