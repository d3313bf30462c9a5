"""Studies that take a second, and a look into where they are kept."""

from contextlib import contextmanager
from unittest import mock

import optuna

from gcnii.tuning.trials import trials_of
from gcnii.tuning.workers.storage import open_storage

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


def finished(url):
    """The finished trials of a storage, as `trials_of` has them, and as Optuna has them."""
    with study_at(url) as study:
        own = study.get_trials(deepcopy=False)
        return trials_of(study), [one for one in own if one.state.name in ("COMPLETE", "PRUNED")]
