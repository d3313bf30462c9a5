"""Where a study is kept: in memory, in an SQLite file, or in a database that machines share.

A worker's trials have a heartbeat.  Those of a worker that was killed are given back: they wait,
with the settings that they had, for the next worker that asks.
"""

from __future__ import annotations

import os
import platform
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

import optuna
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.storages import (
    BaseStorage,
    InMemoryStorage,
    RDBStorage,
    fail_stale_trials,
)
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial, Trial, TrialState

from gcnii.errors import InputError
from gcnii.files import one_line

HEARTBEAT, GRACE = 5, 30  # seconds between two beats, and without one, after which a trial is lost
FILE = "study.db"
PASSWORD = "***"


def open_storage(url: str) -> BaseStorage:
    """The storage at an address; "" is memory, which no other process sees."""
    if not url:
        return InMemoryStorage()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        beats: dict[str, object] = {"heartbeat_interval": HEARTBEAT, "grace_period": GRACE}
        try:
            storage = RDBStorage(
                url,
                engine_kwargs=_engine(url),
                heartbeat_stale_trial_callback=_wait_again,
                **beats,  # type: ignore[arg-type]
            )
        except ModuleNotFoundError as error:
            raise InputError(
                f"{shown(url)} needs {error.name}; install it: pip install 'gcnii[tune]'"
            ) from None
        except Exception as error:  # every driver has errors of its own
            raise InputError(
                f"cannot open the storage {shown(url)}: {one_line(_reason(error))}; give the "
                "address of a database that this machine reaches, such as "
                "postgresql+psycopg://user@host/name"
            ) from None
    if url.startswith("sqlite"):
        _prepare_sqlite(storage)
    return storage


def sqlite_url(folder: Path) -> str:
    """The address of the SQLite file in a folder."""
    return f"sqlite:///{(folder / FILE).absolute()}"


def shown(url: str) -> str:
    """The address without its password."""
    head, at, host = url.rpartition("@")
    user, colon, _ = head.rpartition(":")
    return f"{user}:{PASSWORD}@{host}" if at and colon and not user.endswith("/") else url


def _reason(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    return (str(cause).strip().splitlines() or [type(cause).__name__])[0]


def _engine(url: str) -> dict[str, object]:
    if url.startswith("sqlite"):
        return {"connect_args": {"timeout": 60}}  # several processes write
    return {"pool_pre_ping": True}  # a server may have been restarted


def _prepare_sqlite(storage: RDBStorage) -> None:
    """Write ahead: an order of magnitude faster, and as safe when a process is killed."""
    from sqlalchemy import event

    def prepare(connection: object, _: object) -> None:
        connection.execute("PRAGMA journal_mode=WAL")  # type: ignore[attr-defined]
        connection.execute("PRAGMA synchronous=NORMAL")  # type: ignore[attr-defined]

    event.listen(storage.engine, "connect", prepare)
    storage.engine.dispose()  # connections from now on are prepared


@contextmanager
def beating(study: OptunaStudy, trials: Sequence[Trial]) -> Iterator[None]:
    """Within, these trials are alive to other workers."""
    storage = study._storage
    backend = getattr(storage, "_backend", storage)
    if not isinstance(backend, RDBStorage):
        yield
        return
    stop = threading.Event()
    numbers = [trial._trial_id for trial in trials]

    def beat() -> None:
        for number in numbers:
            with suppress(Exception):  # the database may be away for a moment
                backend.record_heartbeat(number)

    def run() -> None:
        while not stop.wait(HEARTBEAT):
            beat()

    beat()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def claim(study: OptunaStudy) -> Trial:
    """A trial that is this worker's alone: one that was given back, or a new one."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Heartbeat of storage")  # `beating` does it here
        trial = study.ask()
    with beating(study, [trial]):
        trial.set_user_attr("worker", f"{platform.node()}:{os.getpid()}")
    return trial


def give_back(study: OptunaStudy, trials: Sequence[Trial | FrozenTrial]) -> None:
    """Let others train these trials, with the settings that they have."""
    for trial in trials:
        with suppress(UpdateFinishedTrialError):
            number = trial._trial_id
            study._storage.set_trial_state_values(number, state=TrialState.FAIL)
            _wait_again(study, study._storage.get_trial(number))


def _wait_again(study: OptunaStudy, trial: FrozenTrial) -> None:
    """Make a trial with the settings of a failed one, which waits for a worker."""
    first = trial.system_attrs.get("failed_trial", trial.number)
    again = optuna.create_trial(
        state=TrialState.WAITING,
        params=trial.params,
        distributions=trial.distributions,
        system_attrs={"failed_trial": first},
    )
    study.add_trial(again)


def give_back_lost(study: OptunaStudy) -> None:
    """Give back the trials of workers that have died."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        fail_stale_trials(study)
    # A worker may die between making a trial and its first heartbeat, which comes with its name.
    now, late = datetime.now(), timedelta(seconds=2 * GRACE)
    give_back(
        study,
        [
            trial
            for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
            if "worker" not in trial.user_attrs
            and trial.datetime_start is not None
            and now - trial.datetime_start > late
        ],
    )


def open_study(
    name: str, storage: BaseStorage, sampler: optuna.samplers.BaseSampler
) -> OptunaStudy:
    """The study of this name; made if it is not there."""
    return optuna.create_study(
        study_name=name, storage=storage, sampler=sampler, direction="maximize", load_if_exists=True
    )
