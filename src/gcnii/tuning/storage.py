"""Where a study is kept: in memory, in an SQLite file, or in a database that machines share.

A worker's trials have a heartbeat.  Those of a worker that was killed are given back: they wait,
with the settings that they had, for the next worker that asks.

A damaged study is refused when it is opened.  What a study keeps of a finished trial is under a
seal; the parameters, the state and the value that Optuna keeps beside it must say the same.
"""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from math import isclose
from pathlib import Path

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import ExperimentalWarning, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage, fail_stale_trials
from optuna.study import Study as OptunaStudy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from gcnii.errors import DataError, GcniiError, InputError, notice, one_line
from gcnii.files import Maybe, check, refuse_special
from gcnii.train.callbacks import every
from gcnii.tuning.proposals import distribution
from gcnii.tuning.question import Question, parameter, settings_of
from gcnii.tuning.trials import (
    DEFAULT,
    FINISHED,
    GIVEN_BACK,
    MEMBER,
    TOLD,
    first_number,
    seal_of,
    value_of,
)

HEARTBEAT, GRACE = 5, 30  # seconds between two beats, and without one, after which a trial is lost
CONNECT = 20  # seconds in which a server must answer
OPENINGS = 5  # attempts, because workers that begin together make the same tables
MOST_DEATHS = 3  # of workers in one trial, which is then taken for their cause
FILE = "study.db"
PASSWORD = "***"
AGAIN = re.compile("already exists|duplicate key|UNIQUE constraint|database is locked")
PATIENCE = 60  # seconds to wait for others who write to the same SQLite file
BEATING = "Heartbeat of storage"  # a warning of Optuna's: `Held` does it here


class StorageLost(GcniiError, RuntimeError):
    """A storage has stopped answering in the middle of a search."""

    @classmethod
    def of(cls, url: str, error: Exception) -> StorageLost:
        """In a sentence, without the password."""
        reason = one_line(_reason(error, url))
        return cls(f"the storage {shown(url)} fails: {reason}; run the same command again to go on")


def open_storage(url: str) -> BaseStorage:
    """The storage at an address; "" is memory, which no other process sees."""
    if not url:
        return InMemoryStorage()
    held = _refuse_damaged_file(url)
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
            if held:
                raise damaged(url, _reason(error, url)) from None
            raise InputError(
                f"cannot open the storage {shown(url)}: {one_line(_reason(error, url))}; give the "
                "address of a database that this machine reaches, such as "
                "postgresql+psycopg://user@host/name"
            ) from None
    if url.startswith("sqlite"):
        _prepare_sqlite(storage)
    return storage


def damaged(url: str, reason: str) -> DataError:
    """The error of a study that cannot be trusted."""
    return DataError(
        f"the study in {shown(url)} is damaged: {one_line(reason)}; restore it from a copy, or "
        "start over in another folder or database"
    )


def _refuse_damaged_file(url: str) -> bool:
    """Raise DataError if an SQLite file is not whole; whether there is one that holds something."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        place = make_url(url).database if url.startswith("sqlite") else None
    except ArgumentError:
        return False
    path = Path(place or "")
    if not place or not path.exists() or not path.stat().st_size:
        return False
    refuse_special(path)
    try:
        with closing(sqlite3.connect(path, timeout=PATIENCE)) as file:
            reason = _file_damage(file)
    except sqlite3.Error as error:
        if "locked" in str(error):
            return True
        reason = str(error)
    if reason:
        raise damaged(url, reason)
    return True


def _file_damage(file: sqlite3.Connection) -> str:
    """What is wrong with a file; "" if nothing is."""
    (whole,) = file.execute("PRAGMA integrity_check(1)").fetchone()
    if whole != "ok":
        return str(whole)
    lost = file.execute("PRAGMA foreign_key_check").fetchone()
    return f"rows of {lost[0]} belong to nothing" if lost else ""


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
        return {"connect_args": {"timeout": PATIENCE}}  # several processes write
    server: dict[str, object] = {"pool_pre_ping": True}  # it may have been restarted
    known = url.startswith("postgresql")
    return server | ({"connect_args": {"connect_timeout": CONNECT}} if known else {})


def _prepare_sqlite(storage: RDBStorage) -> None:
    """Write ahead: an order of magnitude faster, and as safe when a process is killed.

    A transaction has the file to itself from its beginning: else two workers might both read that
    a trial waits, and both take it.
    """
    from sqlalchemy import event

    def prepare(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # `begin` is ours
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous=NORMAL")

    def begin(connection: object) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # type: ignore[attr-defined]

    event.listen(storage.engine, "connect", prepare)
    event.listen(storage.engine, "begin", begin)
    storage.engine.dispose()  # connections from now on are prepared


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Change a file's journal, for which SQLite itself does not wait until others are done."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.05)


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
        self.beating = ExitStack()

    def __enter__(self) -> Held:
        if self.backend:
            self.beating.enter_context(every(HEARTBEAT, self._beat_all))
        return self

    def __exit__(self, *_: object) -> None:
        self.beating.close()
        with suppress(StorageInternalError):  # else others notice that they do not beat
            give_back(self.study, list(self.trials.values()))

    def _beat_all(self) -> None:
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
        # A worker may die between making a trial and its first heartbeat.  The clocks of machines
        # differ, so it counts how long this one has waited.
        unheard, now = self._unheard(), time.monotonic()
        self.seen = {one._trial_id: self.seen.get(one._trial_id, now) for one in unheard}
        late = [one for one in unheard if now - self.seen[one._trial_id] > 2 * GRACE]
        give_back(self.study, late)

    def _unheard(self) -> list[FrozenTrial]:
        """Trials that have begun and have had no heartbeat."""
        if self.backend is None:
            return []
        running = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        with self.backend.engine.connect() as connection:
            rows = connection.exec_driver_sql("SELECT trial_id FROM trial_heartbeats")
            heard = set(rows.scalars())
        return [one for one in running if one._trial_id not in heard]


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
        user_attrs={DEFAULT: True} if DEFAULT in trial.user_attrs else {},
        system_attrs={GIVEN_BACK: first_number(trial), "deaths": died},
    )
    study.add_trial(again)


@contextmanager
def open_study(
    name: str, url: str, sampler: optuna.samplers.BaseSampler, alone: bool = False
) -> Iterator[OptunaStudy]:
    """The study of this name in a storage; made if it is not there.

    alone  whether the storage is this study's alone, so that another may not be in it
    """
    with _opened(url) as storage:
        yield _study(name, storage, sampler, alone, url)


def holds(url: str, name: str) -> bool:
    """Whether a storage has a study of this name; no file is made to find out."""
    if not url or (url.startswith("sqlite") and not _refuse_damaged_file(url)):
        return False
    with _opened(url) as storage, suppress(KeyError, StorageInternalError):  # damage is told later
        storage.get_study_id_from_name(name)
        return True
    return False


@contextmanager
def _opened(url: str) -> Iterator[BaseStorage]:
    storage = open_storage(url)
    try:
        yield storage
    finally:
        if isinstance(storage, RDBStorage):
            storage.remove_session()
            storage.engine.dispose()  # which tidies up after SQLite


def _study(
    name: str, storage: BaseStorage, sampler: optuna.samplers.BaseSampler, alone: bool, url: str
) -> OptunaStudy:
    try:
        there = [one.study_name for one in storage.get_all_studies()] if alone else []
        if there and name not in there:
            raise InputError(
                f"{shown(url)} holds another study: of another graph, or with other models, seeds, "
                "metric or settings; choose another folder"
            )
        return optuna.create_study(
            study_name=name,
            storage=storage,
            sampler=sampler,
            direction="maximize",
            load_if_exists=True,
        )
    except (GcniiError, StorageInternalError):
        raise
    except Exception as error:  # Optuna trusts what it reads, and fails in many ways
        raise damaged(url, f"{type(error).__name__}: {error}") from None


def refuse_damaged(study: OptunaStudy, question: Question, url: str) -> None:
    """Raise DataError if the study is not as workers leave it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna's of odd values, which are refused below
            _check(study, question)
        return
    except StorageInternalError as error:
        if not url.startswith("sqlite"):
            raise  # a server that is away
        reason = str(error.__cause__ or error)
    except InputError as error:
        reason = str(error)
    except Exception as error:  # Optuna trusts what it reads, and fails in many ways
        reason = f"{type(error).__name__}: {error}"
    raise damaged(url, reason)


def _check(study: OptunaStudy, question: Question) -> None:
    if study.directions != [StudyDirection.MAXIMIZE]:
        raise InputError("it does not maximise one score")
    check(study.user_attrs, {"seconds": Maybe(float)})
    trials = study.get_trials(deepcopy=False)
    if [trial.number for trial in trials] != list(range(len(trials))):
        raise InputError("its settings are not numbered from 0")
    study._storage._get_stale_trial_ids(study._study_id)  # type: ignore[attr-defined] # or an error
    for trial in trials:
        try:
            check(trial.system_attrs, {GIVEN_BACK: Maybe(int), "deaths": Maybe(int)})
            if trial.state in FINISHED:
                _check_told(trial)
            if not {DEFAULT, MEMBER} & trial.user_attrs.keys():
                _check_params(trial, question)
        except InputError as error:
            raise InputError(f"setting {trial.number}: {error}") from None


def _check_params(trial: FrozenTrial, question: Question) -> None:
    """Raise InputError for parameters that are not searched so, or not those of the training."""
    kinds: dict[str, BaseDistribution] = {"model": CategoricalDistribution(question.models)}
    model = str(trial.params.get("model", ""))
    space = question.space(model) if model in question.models else {}
    kinds |= {parameter(model, name): distribution(one) for name, one in space.items()}
    for name, kind in trial.distributions.items():
        if kinds.get(name) != kind:
            raise InputError(f"{name} is not searched in this way")
    if trial.state in FINISHED:
        told = trial.user_attrs["told"]
        wanted = {"model": told["model"], **settings_of(model, space, trial.params)}
        found = {"model": model, **told["settings"]}
        for name, value in wanted.items():
            if found.get(name) != value:
                raise InputError(f"it was trained with another {name}")


def _check_told(trial: FrozenTrial) -> None:
    """Raise InputError if the record was changed, or state and value are not those it leads to."""
    told = trial.user_attrs.get("told", {})
    check(told, TOLD)
    if told.get("seal", seal_of(told)) != seal_of(told):
        raise InputError("its record was changed")
    score = value_of(told)
    steps = [max(told["epochs"])] if trial.state == TrialState.PRUNED else []
    if list(trial.intermediate_values) != steps:
        raise InputError(f"it cannot be {'given up' if steps else 'complete'}")
    if trial.value is None or not isclose(trial.value, score, abs_tol=1e-9):
        raise InputError(f"its score must be {score:.6g}")
