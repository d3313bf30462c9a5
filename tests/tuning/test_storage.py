"""A trial is one worker's alone; those of a dead worker are given back, with their settings."""

import shutil
import threading
import warnings
from itertools import chain

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState
from support import knobs
from support.small_studies import states, study_at
from support.waiting import wait_until

from gcnii.errors import InputError
from gcnii.tuning import storage as room
from gcnii.tuning.storage import Held, give_back, open_storage, open_study, shown

LR = FloatDistribution(0.0, 1.0)


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A file with an empty study, which takes a while to make."""
    path = tmp_path_factory.mktemp("empty") / "study.db"
    with opened(f"sqlite:///{path}"):
        pass
    return path


@pytest.fixture
def url(tmp_path, empty):
    shutil.copy(empty, tmp_path)
    return f"sqlite:///{tmp_path / 'study.db'}"


@pytest.fixture
def study(url):
    with opened(url) as study:
        yield study


def opened(url):
    return open_study("s", url, optuna.samplers.RandomSampler(seed=0))


def at_once(count, task):
    """Run a task in several threads that begin together; their answers, or their errors."""
    barrier, answers = threading.Barrier(count), []

    def run(i):
        barrier.wait()
        try:
            answers.append(task(i))
        except Exception as error:
            answers.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    with warnings.catch_warnings():  # whose filters all threads share
        warnings.simplefilter("ignore")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return answers


def let_die(study):
    """Let the heartbeats of all trials be an hour old."""
    with study._storage._backend.engine.begin() as connection:
        old = "UPDATE trial_heartbeats SET heartbeat = datetime('now', '-1 hour')"
        connection.exec_driver_sql(old)


def wait(study, count, **params):
    """Make trials that wait for a worker."""
    kinds = dict.fromkeys(params, LR)
    for _ in range(count):
        study.add_trial(
            optuna.create_trial(state=TrialState.WAITING, params=params, distributions=kinds)
        )


def test_a_trial_is_taken_by_one_worker_alone(url, study):
    wait(study, 20)

    def take_all(_):
        taken = []
        with opened(url) as own:
            while (number := own._pop_waiting_trial_id()) is not None:
                taken.append(number)
        return taken

    taken = list(chain(*at_once(4, take_all)))
    assert len(taken) == len(set(taken)) == 20


def test_the_trials_of_a_dead_worker_are_given_back_once_with_their_settings(url, study):
    for _ in range(6):
        trial = Held(study).claim()
        trial.suggest_float("lr", 0.0, 1.0)
    let_die(study)

    def look(_):
        with opened(url) as own:
            Held(own).give_back_lost()

    assert at_once(3, look) == [None] * 3
    trials = study.get_trials()
    dead, again = trials[:6], trials[6:]
    assert [trial.state.name for trial in dead] == ["FAIL"] * 6
    assert [trial.state.name for trial in again] == ["WAITING"] * 6
    assert sorted(trial.params["lr"] for trial in again) == sorted(
        trial.params["lr"] for trial in dead
    )
    assert {trial.system_attrs["failed_trial"] for trial in again} == set(range(6))


def test_the_trials_of_a_living_worker_are_not(study, monkeypatch):
    monkeypatch.setattr(room, "HEARTBEAT", 0.02)
    with Held(study) as held:
        held.claim(), held.claim()  # one is trained, and one waits for its turn
        let_die(study)
        wait_until(lambda: not study._storage._get_stale_trial_ids(study._study_id))
        Held(study).give_back_lost()
        assert [trial.state.name for trial in study.get_trials()] == ["RUNNING"] * 2


def test_a_worker_that_breaks_off_gives_its_trials_back_and_keeps_what_it_told(study):
    held = Held(study)
    trials = [held.claim() for _ in range(3)]
    trials[1].suggest_float("lr", 0.0, 1.0)
    study.tell(trials[0], 0.5)
    held.release(trials[0])
    with pytest.raises(KeyboardInterrupt), held:
        raise KeyboardInterrupt
    found = [trial.state.name for trial in study.get_trials()]
    assert found == ["COMPLETE", "FAIL", "FAIL", "WAITING", "WAITING"]
    assert study.get_trials()[3].params == study.get_trials()[1].params


def test_a_trial_that_was_given_back_twice_remembers_its_first_number(study):
    give_back(study, [Held(study).claim()])
    give_back(study, [Held(study).claim()])
    assert study.get_trials()[2].system_attrs["failed_trial"] == 0


def test_a_setting_in_which_three_workers_died_is_not_tried_again(study):
    for death in range(2):
        assert Held(study).claim().number == death
        let_die(study)
        Held(study).give_back_lost()
    Held(study).claim()
    let_die(study)
    with pytest.warns(UserWarning, match="^gave up a setting of a model: 3 workers died while th"):
        Held(study).give_back_lost()
    assert [trial.state.name for trial in study.get_trials()] == ["FAIL"] * 3


def test_stopping_a_worker_is_not_its_death(study):
    for _ in range(5):
        give_back(study, [Held(study).claim()])
    assert study.get_trials()[-1].state.name == "WAITING"


def test_a_trial_whose_worker_died_before_it_left_its_name_is_given_back(study, monkeypatch):
    with pytest.warns(UserWarning, match="Heartbeat of storage"):
        study.ask()
    other = Held(study)
    other.give_back_lost()
    assert [trial.state.name for trial in study.get_trials()] == ["RUNNING"]
    monkeypatch.setattr(knobs.GRACE, -1)  # as if this worker had waited for it long enough
    other.give_back_lost()
    assert [trial.state.name for trial in study.get_trials()] == ["FAIL", "WAITING"]


def test_a_study_in_memory_needs_no_heartbeat():
    with opened("") as study, Held(study) as held:
        held.claim()
        held.give_back_lost()
        assert [trial.state.name for trial in study.get_trials()] == ["RUNNING"]
    assert [trial.state.name for trial in study.get_trials()] == ["FAIL", "WAITING"]


def test_workers_that_begin_together_make_one_study(tmp_path):
    url = f"sqlite:///{tmp_path / 'new.db'}"

    def begin(_):
        with opened(url) as own:
            return own._study_id

    assert set(at_once(4, begin)) == {1}
    assert states(url) == []
    with study_at(url) as study:
        assert study.study_name == "s"


SECRET = "s3cret"


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("sqlite:////home/me/study.db", "sqlite:////home/me/study.db"),
        ("postgresql+psycopg://me@host/name", "postgresql+psycopg://me@host/name"),
        ("postgresql+psycopg://me:s3cret@host/name", "postgresql+psycopg://me:***@host/name"),
        ("postgresql://me:a:s3cret@host:5432/x", "postgresql://me:***@host:5432/x"),
        ("postgresql://me:a@s3cret@host/x", "postgresql://me:***@host/x"),
        ("postgresql://me:a/s3cret@host/x", "postgresql://me:***@host/x"),
        ("postgresql://:s3cret@host/x", "postgresql://:***@host/x"),
        ("postgresql:///x?user=me&password=s3cret", "postgresql:///x?user=me&password=***"),
        ("postgresql:///x?Password=s3cret&user=me", "postgresql:///x?Password=***&user=me"),
    ],
)
def test_an_address_is_shown_without_its_password(url, text):
    assert shown(url) == text


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (
            "postgresql+psycopg://me:s3cret@127.0.0.1:1/x",
            "cannot open the storage postgresql+psycopg://me:***@127.0.0.1:1/x: connection",
        ),
        (
            "postgresql+psycopg://127.0.0.1:1/x?user=me&password=s3cret",
            "cannot open the storage postgresql+psycopg://127.0.0.1:1/x?user=me&password=***: conn",
        ),
        ("s3cret{x}", "cannot open the storage s3cret{x}: Could not parse SQLAlchemy URL"),
        ("mongodb://me:s3cret@host/x", "cannot open the storage mongodb://me:***@host/x: Can't lo"),
        ("sqlite:////no/such/place", "cannot open the storage sqlite:////no/such/place: unable to"),
        (
            "mysql+pymysql://me:s3cret@host/x",
            "mysql+pymysql://me:***@host/x needs pymysql; install it: pip install pymysql",
        ),
    ],
)
def test_an_address_that_leads_nowhere_is_refused_in_a_sentence(url, sentence):
    with pytest.raises(InputError) as refused:
        open_storage(url)
    said = str(refused.value)
    assert said.startswith(sentence)
    assert (SECRET in said) == url.startswith(SECRET)
    if not said.startswith("mysql"):
        assert said.endswith("reaches, such as postgresql+psycopg://user@host/name")


def test_without_the_driver_of_postgresql_the_extra_is_named(monkeypatch):
    error = ImportError("Failed to import DB access module")
    error.__cause__ = ModuleNotFoundError("No module named 'psycopg'", name="psycopg")
    monkeypatch.setattr(room, "_open", lambda url: (_ for _ in ()).throw(error))
    with pytest.raises(
        InputError, match=r"^postgresql://me@h/x needs psycopg; install it: pip ins"
    ):
        open_storage("postgresql://me@h/x")


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "study.db").write_text("nonsense " * 200)
    with pytest.raises(
        InputError, match=r"study\.db is damaged: file is not a database; restore it"
    ):
        open_storage(f"sqlite:///{tmp_path / 'study.db'}")
