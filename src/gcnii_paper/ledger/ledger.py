"""The ledger: an SQLite file of finished runs, so that an interrupted table resumes.

A run is identified by the hash of its settings and its seed.  Several processes may work from one
ledger: each claims seeds before it trains them.  A claim ends with its run, with its process, or,
if that is in another container, when it has given no sign of life for too long.  All processes must
be on one machine, because SQLite's write-ahead log does not work over a network; `gcnii reproduce
export` and `import` carry runs from one machine to another.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from gcnii.errors import GcniiError, InputError
from gcnii_paper.tables.cells import MeasuredRun

FORMAT = 1  # of the file, stored as SQLite's user_version
PATIENCE = 60.0  # seconds to wait for another process that is writing
# seconds without a sign of life after which a claim from another container ends: its processes
# cannot be seen from here
SILENCE = 1800.0
BEAT = 30.0  # seconds between signs of life

NAMES = tuple(field.name for field in fields(MeasuredRun))
AS_JSON = ("versions", "by_degree")
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
COLUMNS = ", ".join(f'"{name}"' for name in NAMES)  # quoted: commit is a word of SQL
SCHEMA = f"""
CREATE TABLE runs (settings_hash TEXT, cell TEXT, finished_at TEXT, {COLUMNS},
                   PRIMARY KEY (settings_hash, seed));
CREATE TABLE claims (settings_hash TEXT, seed INTEGER, owner TEXT, host TEXT, pid INTEGER,
                     beat REAL, PRIMARY KEY (settings_hash, seed));
PRAGMA user_version = {FORMAT};
"""


class SeedClaim(NamedTuple):
    """A seed that a process is training; `beat` is the time of its last sign of life."""

    seed: int
    host: str
    pid: int
    beat: float


class LedgerError(GcniiError, OSError):
    """A ledger cannot be read or written; the message says which one, why, and what is lost."""


def default_path() -> Path:
    """`ledger.sqlite` in the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("gcnii") / "ledger.sqlite"


class Ledger:
    """An open ledger; leaving its context releases the claims that it made."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.owner, self.host = uuid.uuid4().hex, socket.gethostname()
        self.beaten = time.monotonic()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._explained():
            self.connection = sqlite3.connect(
                self.path.absolute(), timeout=PATIENCE, isolation_level=None
            )
            self._refuse_strangers()
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.execute("PRAGMA synchronous = FULL")
            self._make()

    def _refuse_strangers(self) -> None:
        try:
            tables = {name for (name,) in self.connection.execute("SELECT name FROM sqlite_master")}
            (version,) = self.connection.execute("PRAGMA user_version").fetchone()
            ours = tables >= {"runs", "claims"} or (not tables and version == 0)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_NOTADB:
                raise
            ours = False
        if not ours:
            self.connection.close()
            raise InputError(f"{self.path} is not a ledger and is left as it is; give another file")

    def _make(self) -> None:
        with self._transaction():
            (found,) = self.connection.execute("PRAGMA user_version").fetchone()
            if found > FORMAT:
                raise LedgerError(
                    f"{self.path} is a ledger of format {found}, this gcnii reads {FORMAT}; "
                    "update gcnii"
                )
            if found == 0:
                for statement in SCHEMA.split(";"):
                    self.connection.execute(statement)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the claims, and close the file."""
        with suppress(sqlite3.Error):  # the claims end with this process anyway
            self.connection.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))
        self.connection.close()

    def runs(self, settings_hash: str) -> list[MeasuredRun]:
        """The finished runs, in the order of their seeds."""
        with self._explained():
            found = self.connection.execute(
                f"SELECT {COLUMNS} FROM runs WHERE settings_hash = ? ORDER BY seed",
                (settings_hash,),
            ).fetchall()
        try:
            return [_run(row) for row in found]
        except (TypeError, ValueError) as error:  # not JSON, or JSON that is not a run
            raise self._damaged(error) from error

    def cells(self) -> set[str]:
        """The names of the cells that runs were recorded for; other cells may share the runs."""
        with self._explained():
            return {cell for (cell,) in self.connection.execute("SELECT DISTINCT cell FROM runs")}

    def record(self, settings_hash: str, cell: str, runs: Iterable[MeasuredRun]) -> int:
        """Insert the runs that are new, all or none, end their claims, and return their number."""
        return self.record_all([(settings_hash, cell, list(runs))])

    def record_all(self, found: Iterable[tuple[str, str, Sequence[MeasuredRun]]]) -> int:
        """`record` for (settings' hash, cell, runs) of several cells, in one transaction."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        insert = f"INSERT OR IGNORE INTO runs VALUES ({', '.join('?' * (len(NAMES) + 3))})"
        new = 0
        with self._explained(), self._transaction():
            for settings_hash, cell, runs in found:
                rows = [(settings_hash, cell, now, *_row(run)) for run in runs]
                new += self.connection.executemany(insert, rows).rowcount if rows else 0
                self._drop_claims(settings_hash, [run.seed for run in runs])
        return new

    def claim(self, settings_hash: str, seeds: Iterable[int], most: int) -> list[int]:
        """Claim and return at most `most` of the seeds that are neither finished nor claimed."""
        with self._explained(), self._transaction():
            self._expire_claims()
            taken = self.connection.execute(
                "SELECT seed FROM runs WHERE settings_hash = ? "
                "UNION SELECT seed FROM claims WHERE settings_hash = ?",
                (settings_hash, settings_hash),
            ).fetchall()
            free = [seed for seed in seeds if (seed,) not in set(taken)][:most]
            rows = [
                (settings_hash, seed, self.owner, self.host, os.getpid(), time.time())
                for seed in free
            ]
            self.connection.executemany("INSERT INTO claims VALUES (?, ?, ?, ?, ?, ?)", rows)
        return free

    def release(self, settings_hash: str, seeds: Iterable[int]) -> None:
        """Give up the claims on seeds that were not finished."""
        with self._explained(), self._transaction():
            self._drop_claims(settings_hash, seeds)

    def claimed(self, settings_hash: str) -> list[SeedClaim]:
        """The claims on seeds of these settings, in the order of the seeds."""
        with self._explained():
            query = "SELECT seed, host, pid, beat FROM claims WHERE settings_hash = ? ORDER BY seed"
            return [SeedClaim(*row) for row in self.connection.execute(query, (settings_hash,))]

    def beat(self) -> None:
        """Give a sign of life, at most once in BEAT seconds."""
        if time.monotonic() - self.beaten > BEAT:
            self.beaten = time.monotonic()
            with self._explained():
                self.connection.execute(
                    "UPDATE claims SET beat = ? WHERE owner = ?", (time.time(), self.owner)
                )

    def _drop_claims(self, settings_hash: str, seeds: Iterable[int]) -> None:
        rows = [(settings_hash, seed, self.owner) for seed in seeds]
        self.connection.executemany(
            "DELETE FROM claims WHERE settings_hash = ? AND seed = ? AND owner = ?", rows
        )

    def _expire_claims(self) -> None:
        """End the claims of dead processes; silent ones count as dead if they cannot be seen."""
        owners = self.connection.execute(
            "SELECT owner, host, pid, max(beat) FROM claims GROUP BY owner"
        ).fetchall()
        dead = [(owner,) for owner, *process in owners if not self._lives(*process)]
        self.connection.executemany("DELETE FROM claims WHERE owner = ?", dead)

    def _lives(self, host: str, pid: int, beat: float) -> bool:
        if host != self.host or os.name == "nt":  # on Windows, to ask would end it
            return beat >= time.time() - SILENCE
        # a process that began later has been given the number of a dead one
        return _alive(pid) and _started(pid) <= beat + 1

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Within, changes are made all or none, and no other process writes."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:  # SQLite ends it itself if the disk is full
                self.connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) in DAMAGE:
                raise self._damaged(error) from error
            raise LedgerError(
                f"cannot use the ledger {self.path}: {error}; finished runs in it are kept: "
                "solve this, then run the same command again"
            ) from error

    def _damaged(self, error: Exception) -> LedgerError:
        return LedgerError(
            f"the ledger {self.path} is damaged: {error}; restore a copy of it, or move it away "
            "and start another with `gcnii reproduce import` from an exported folder"
        )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs as another user
    # A zombie was killed, but its parent has not waited for it, as in many containers.
    return _stat(pid)[:1] != ["Z"]


def _started(pid: int) -> float:
    """When a process began, in seconds since 1970; 0 if the system does not tell."""
    if not (about := _stat(pid)):
        return 0.0
    return (
        time.time()
        - time.clock_gettime(time.CLOCK_BOOTTIME)
        + int(about[19]) / os.sysconf("SC_CLK_TCK")
    )


def _stat(pid: int) -> list[str]:
    """Linux's /proc/PID/stat from the field `state` on; empty on other systems."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _row(run: MeasuredRun) -> tuple[object, ...]:
    values = {name: getattr(run, name) for name in NAMES}
    return tuple(
        json.dumps(value) if name in AS_JSON and value is not None else value
        for name, value in values.items()
    )


def _run(row: tuple[Any, ...]) -> MeasuredRun:
    values = dict(zip(NAMES, row, strict=True))
    return MeasuredRun.of(
        {name: json.loads(v) if name in AS_JSON and v else v for name, v in values.items()}
    )
