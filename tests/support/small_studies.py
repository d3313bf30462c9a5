"""Studies that take a second, and a look into where they are kept."""

import contextlib
import os
import signal
from contextlib import contextmanager
from unittest import mock

import optuna
from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError

from gcnii.tuning.storage import open_storage
from gcnii.tuning.trials import trials_of
from support import waiting

QUICK = {"epochs": 8, "patience": 3, "seeds": 2, "device": "cpu", "threads": 1}
WORDS = ("--epochs", 8, "--patience", 3, "--seeds", 2, "--device", "cpu", "--threads", 1)


@contextmanager
def few_runs():
    """Within, winners are trained anew with two seeds instead of ten."""
    with mock.patch("gcnii.tuning.question.FINAL", 2), mock.patch("gcnii.tuning.closing.FINAL", 2):
        yield


@contextmanager
def study_at(url):
    """The only study of a storage."""
    storage = open_storage(url)
    try:
        (name,) = optuna.get_all_study_names(storage)
        yield optuna.load_study(study_name=name, storage=storage)
    finally:
        storage.remove_session()
        storage.engine.dispose()


def states(url):
    """The name of the state of each trial of a storage, by its number."""
    with study_at(url) as study:
        return [trial.state.name for trial in study.get_trials(deepcopy=False)]


def settings_tried(trials):
    """What each trial trained and what came of it, without the seconds that it took."""
    return [(one.number, one.model, one.settings, one.outcome, one.val) for one in trials]


STATES = "SELECT state FROM trials ORDER BY number"
WORKERS = (
    "SELECT value_json FROM trials NATURAL JOIN trial_user_attributes WHERE state = 'RUNNING' "
    "AND key = 'worker' AND trial_id IN (SELECT trial_id FROM trial_params)"
)


def look(url, query=STATES):
    """What a query finds in a storage, if it is there, without taking a lock."""
    engine, found = create_engine(url), []
    with contextlib.suppress(SQLAlchemyError), engine.connect() as connection:
        found = [one for (one,) in connection.exec_driver_sql(query)]
    engine.dispose()
    return found


def wait_until(url, ready, query=STATES):
    """Wait until `ready` is true of what a query finds, by default the states of the trials."""
    waiting.wait_until(lambda: ready(look(url, query)))


def hold(process, url):
    """Let a worker stand still while it trains a trial, when it has finished another."""

    def trains(workers):
        return any(worker.endswith(f':{process}"') for worker in workers)

    wait_until(url, lambda found: done(found) > 0)
    while True:
        wait_until(url, trains, WORKERS)
        os.kill(process, signal.SIGSTOP)
        if trains(look(url, WORKERS)):
            return
        os.kill(process, signal.SIGCONT)


def training(count):
    """For `wait_until`: so many trials are finished, and some are being trained."""
    return lambda found: done(found) >= count and "RUNNING" in found


def done(found):
    """The number of finished trials among these states."""
    return sum(state in ("COMPLETE", "PRUNED") for state in found)


def finished(url):
    """The finished trials of a storage, as `trials_of` has them, and as Optuna has them."""
    with study_at(url) as study:
        own = study.get_trials(deepcopy=False)
        return trials_of(study), [one for one in own if one.state.name in ("COMPLETE", "PRUNED")]
