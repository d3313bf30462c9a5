"""Where a study is kept: in memory, in an SQLite file, or in a database that machines share.

A worker's trials have a heartbeat.  Those of a worker that was killed are given back: they wait,
with the settings that they had, for the next worker that asks.
"""

from __future__ import annotations

import os
import platform
import re
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import (
    BaseStorage,
    InMemoryStorage,
    RDBStorage,
    fail_stale_trials,
)
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial, Trial, TrialState

from gcnii.errors import GcniiError, InputError, notice
from gcnii.files import one_line
from gcnii.tuning.trials import GIVEN_BACK, first_number

HEARTBEAT, GRACE = 5, 30  # seconds between two beats, and without one, after which a trial is lost
CONNECT = 20  # seconds in which a server must answer
OPENINGS = 5  # attempts, because workers that begin together make the same tables
MOST_DEATHS = 3  # of workers in one trial, which is then taken for their cause
FILE = "study.db"
PASSWORD = "***"
AGAIN = re.compile("already exists|duplicate key|UNIQUE constraint")
BEATING = "Heartbeat of storage"  # a warning of Optuna's: `Held` does it here


class StorageLost(GcniiError, RuntimeError):
    """A storage has stopped to answer in the middle of a search."""

    @classmethod
    def of(cls, url: str, error: Exception) -> StorageLost:
        """In a sentence, without the password."""
        reason = one_line(_reason(error, url))
        return cls(f"the storage {shown(url)} fails: {reason}; run the same command again to go on")


def open_storage(url: str) -> BaseStorage:
    """The storage at an address; "" is memory, which no other process sees."""
    if not url:
        return InMemoryStorage()
    for attempt in range(OPENINGS):
        try:
            storage = _open(url)
            break
        except ImportError as error:
            raise InputError(_missing_driver(url, error)) from None
        except Exception as error:  # every driver has errors of its own
            if AGAIN.search(str(error)) and attempt < OPENINGS - 1:
                time.sleep(0.2 * (attempt + 1))
                continue
            raise InputError(
                f"cannot open the storage {shown(url)}: {one_line(_reason(error, url))}; give the "
                "address of a database that this machine reaches, such as "
                "postgresql+psycopg://user@host/name"
            ) from None
    if url.startswith("sqlite"):
        _prepare_sqlite(storage)
    return storage


def _open(url: str) -> RDBStorage:
    beats: dict[str, object] = {"heartbeat_interval": HEARTBEAT, "grace_period": GRACE}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return RDBStorage(
            url.replace("{", "{{").replace("}", "}}"),  # Optuna takes it for a template
            engine_kwargs=_engine(url),
            heartbeat_stale_trial_callback=_after_death,
            **beats,  # type: ignore[arg-type]
        )


def _missing_driver(url: str, error: ImportError) -> str:
    name = getattr(error.__cause__ or error, "name", None) or "its driver"
    package = "'gcnii[tune]'" if name == "psycopg" else name
    return f"{shown(url)} needs {name}; install it: pip install {package}"


def sqlite_url(folder: Path) -> str:
    """The address of the SQLite file in a folder."""
    return f"sqlite:///{(folder / FILE).absolute()}"


def shown(url: str) -> str:
    """The address without its password, wherever it stands."""
    url = re.sub(r"(?i)((?:password|passwd|pwd)=)[^&\s]*", rf"\1{PASSWORD}", url)
    scheme, mark, rest = url.partition("://")
    head, at, host = rest.rpartition("@")
    user, colon, _ = head.partition(":")
    return f"{scheme}{mark}{user}:{PASSWORD}@{host}" if mark and at and colon else url


def _reason(error: Exception, url: str) -> str:
    """The first line of what the driver says, which may repeat the address."""
    cause = error.__cause__ if isinstance(error, StorageInternalError) else error
    cause = getattr(cause, "orig", None) or cause or error
    words = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
    return words.replace(url, shown(url))


def _engine(url: str) -> dict[str, object]:
    if url.startswith("sqlite"):
        return {"connect_args": {"timeout": 60}}  # several processes write
    server: dict[str, object] = {"pool_pre_ping": True}  # it may have been restarted
    known = url.startswith("postgresql")
    return server | ({"connect_args": {"connect_timeout": CONNECT}} if known else {})


def _prepare_sqlite(storage: RDBStorage) -> None:
    """Write ahead: an order of magnitude faster, and as safe when a process is killed.

    A transaction has the file to itself from its beginning: else two workers might both read that
    a trial waits, and both take it.
    """
    from sqlalchemy import event

    def prepare(connection: object, _: object) -> None:
        connection.isolation_level = None  # type: ignore[attr-defined] # `begin` is ours
        connection.execute("PRAGMA journal_mode=WAL")  # type: ignore[attr-defined]
        connection.execute("PRAGMA synchronous=NORMAL")  # type: ignore[attr-defined]

    def begin(connection: object) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # type: ignore[attr-defined]

    event.listen(storage.engine, "connect", prepare)
    event.listen(storage.engine, "begin", begin)
    storage.engine.dispose()  # connections from now on are prepared


class Held:
    """The trials that a worker holds: alive to the others, and given back if it breaks off.

    trials  those that it has claimed and not told, by Optuna's id
    seen    when a trial was first seen that has begun and has no worker
    """

    def __init__(self, study: OptunaStudy):
        self.study, self.trials = study, dict[int, Trial]()
        self.seen: dict[int, float] = {}
        storage = study._storage
        backend = getattr(storage, "_backend", storage)
        self.backend = backend if isinstance(backend, RDBStorage) else None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Held:
        if self.backend:
            self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        if self.backend:
            self.thread.join()
        with suppress(StorageInternalError):  # else others notice that they do not beat
            give_back(self.study, list(self.trials.values()))

    def _run(self) -> None:
        while not self.stop.wait(HEARTBEAT):
            for number in list(self.trials):
                self._beat(number)

    def _beat(self, number: int) -> None:
        if self.backend:
            with suppress(Exception):  # the database may be away for a moment
                self.backend.record_heartbeat(number)

    def claim(self) -> Trial:
        """A trial that is this worker's alone: one that was given back, or a new one."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", BEATING)
            trial = self.study.ask()
        self.trials[trial._trial_id] = trial
        self._beat(trial._trial_id)
        trial.set_user_attr("worker", f"{platform.node()}:{os.getpid()}")
        return trial

    def release(self, trial: Trial) -> None:
        """A trial of which the study has been told."""
        self.trials.pop(trial._trial_id, None)

    def give_back_lost(self) -> None:
        """Give back the trials of workers that have died."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            fail_stale_trials(self.study)
        # A worker may die between making a trial and its first heartbeat, which comes before its
        # name.  The clocks of machines differ, so it counts how long this one has waited.
        running = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        nameless = [trial for trial in running if "worker" not in trial.user_attrs]
        now = time.monotonic()
        self.seen = {one._trial_id: self.seen.get(one._trial_id, now) for one in nameless}
        give_back(
            self.study,
            [trial for trial in nameless if now - self.seen[trial._trial_id] > 2 * GRACE],
        )


def give_back(study: OptunaStudy, trials: Sequence[Trial | FrozenTrial]) -> None:
    """Let others train these trials, with the settings that they have."""
    for trial in trials:
        with suppress(UpdateFinishedTrialError):
            number = trial._trial_id
            study._storage.set_trial_state_values(number, state=TrialState.FAIL)
            _wait_again(study, study._storage.get_trial(number))


def _after_death(study: OptunaStudy, trial: FrozenTrial) -> None:
    """Give back the trial of a dead worker, unless it seems to have killed several."""
    deaths = trial.system_attrs.get("deaths", 0) + 1
    if deaths < MOST_DEATHS:
        _wait_again(study, trial, deaths)
    else:
        model = trial.params.get("model", "a model")
        notice(f"gave up a setting of {model}: {deaths} workers died while they trained it")


def _wait_again(study: OptunaStudy, trial: FrozenTrial, deaths: int | None = None) -> None:
    """Make a trial with the settings of a failed one, which waits for a worker."""
    died = trial.system_attrs.get("deaths", 0) if deaths is None else deaths
    again = optuna.create_trial(
        state=TrialState.WAITING,
        params=trial.params,
        distributions=trial.distributions,
        system_attrs={GIVEN_BACK: first_number(trial), "deaths": died},
    )
    study.add_trial(again)


@contextmanager
def open_study(name: str, url: str, sampler: optuna.samplers.BaseSampler) -> Iterator[OptunaStudy]:
    """The study of this name in a storage; made if it is not there."""
    storage = open_storage(url)
    how: dict[str, Any] = {"direction": "maximize", "load_if_exists": True}
    try:
        yield optuna.create_study(study_name=name, storage=storage, sampler=sampler, **how)
    finally:
        if isinstance(storage, RDBStorage):
            storage.remove_session()
            storage.engine.dispose()  # which tidies up after SQLite
