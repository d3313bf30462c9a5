"""The ledger: an SQLite file of finished runs, so that nothing is run twice and an interrupted
table goes on.

A run is its settings' hash and its seed.  Several processes may work from one ledger: each claims
seeds before it
trains them.  A claim ends with its run, with its process, or, from another container, when that is
              silent too long.
All must be on one machine: SQLite's write-ahead log does not reach over a network.  `export` and
`import` do.
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
from gcnii.paper.tables.cells import MeasuredRun

FORMAT = 1  # of the file, in SQLite's user_version
PATIENCE = 60.0  # seconds to wait for another process that is writing
# seconds after which a claim from another container is void: its processes cannot be seen from here
SILENCE = 1800.0
BEAT = 30.0  # seconds between signs of life

NAMES = tuple(field.name for field in fields(MeasuredRun))
AS_JSON = ("versions", "by_degree")
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
COLUMNS = ", ".join(f'"{name}"' for name in NAMES)  # quoted: commit is a word of SQL
SCHEMA = f"""
CREATE TABLE runs (settings_hash TEXT, cell TEXT, finished_at TEXT, {COLUMNS}, PRIMARY KEY (settings_hash, seed));
CREATE TABLE claims (settings_hash TEXT, seed INTEGER, owner TEXT, host TEXT, pid INTEGER, beat REAL,
                     PRIMARY KEY (settings_hash, seed));
PRAGMA user_version = {FORMAT};
"""


class Claim(NamedTuple):
    """A seed that a process is at work on; `beat` is when it last gave a sign of life."""

    seed: int
    host: str
    pid: int
    beat: float


class LedgerError(GcniiError, OSError):
    """The ledger cannot be read or written; the message says which, why, and what of it is lost."""


def default_path() -> Path:
    """In the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("gcnii") / "ledger.sqlite"


class Ledger:
    """An open ledger; leaving it as a context gives back what it had claimed."""

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
            raise InputError(
                f"{self.path} is no ledger, and is left as it is; give another file for one"
            )

    def _make(self) -> None:
        with self._transaction():
            (found,) = self.connection.execute("PRAGMA user_version").fetchone()
            if found > FORMAT:
                raise LedgerError(
                    f"{self.path} is a ledger of format {found}, this gcnii knows {FORMAT}; update gcnii"
                )
            if found == 0:
                for statement in SCHEMA.split(";"):
                    self.connection.execute(statement)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give back what was claimed."""
        with suppress(sqlite3.Error):  # the claims end with this process anyway
            self.connection.execute("DELETE FROM claims WHERE owner = ?", (self.owner,))
        self.connection.close()

    def runs(self, settings_hash: str) -> list[MeasuredRun]:
        """The finished runs, by seed."""
        with self._explained():
            found = self.connection.execute(
                f"SELECT {COLUMNS} FROM runs WHERE settings_hash = ? ORDER BY seed",
                (settings_hash,),
            ).fetchall()
        try:
            return [_run(row) for row in found]
        except (TypeError, ValueError) as error:  # of JSON, or of what stands in it
            raise self._damaged(error) from error

    def cells(self) -> set[str]:
        """The names under which runs were recorded; other cells may share those runs."""
        with self._explained():
            return {cell for (cell,) in self.connection.execute("SELECT DISTINCT cell FROM runs")}

    def record(self, settings_hash: str, cell: str, runs: Iterable[MeasuredRun]) -> int:
        """Keep runs that are not there yet, all or none, and end their claims; how many were new."""
        return self.record_all([(settings_hash, cell, list(runs))])

    def record_all(self, found: Iterable[tuple[str, str, Sequence[MeasuredRun]]]) -> int:
        """The same for the runs of several settings' hashes and cells: all of all or none."""
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
        """At most so many of the seeds, which nobody has finished or is at work on; they are now
        ours.
        """
        with self._explained(), self._transaction():
            self._expire_claims()
            taken = self.connection.execute(
                "SELECT seed FROM runs WHERE settings_hash = ? UNION SELECT seed FROM claims WHERE settings_hash = ?",
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
        """Give seeds back unfinished."""
        with self._explained(), self._transaction():
            self._drop_claims(settings_hash, seeds)

    def claimed(self, settings_hash: str) -> list[Claim]:
        """Who is at work on seeds of these settings, by seed."""
        with self._explained():
            query = "SELECT seed, host, pid, beat FROM claims WHERE settings_hash = ? ORDER BY seed"
            return [Claim(*row) for row in self.connection.execute(query, (settings_hash,))]

    def beat(self) -> None:
        """A sign of life, at most every so often."""
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
        """End the claims of the dead, and of the silent where nobody can tell whether they are
        dead.
        """
        owners = self.connection.execute(
            "SELECT owner, host, pid, max(beat) FROM claims GROUP BY owner"
        ).fetchall()
        dead = [(owner,) for owner, *process in owners if not self._lives(*process)]
        self.connection.executemany("DELETE FROM claims WHERE owner = ?", dead)

    def _lives(self, host: str, pid: int, beat: float) -> bool:
        if host != self.host or os.name == "nt":  # where to ask would end it
            return beat >= time.time() - SILENCE
        # one that began later was given the number of a dead one
        return _alive(pid) and _started(pid) <= beat + 1

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, with no other writer meanwhile."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:  # SQLite ends it itself where the disk is full
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
                f"cannot use the ledger {self.path}: {error}; finished runs in it are kept, "
                "mend that and give the same command again"
            ) from error

    def _damaged(self, error: Exception) -> LedgerError:
        return LedgerError(
            f"the ledger {self.path} is damaged: {error}; restore a copy of it, or move it away and begin "
            "another with `gcnii reproduce import` of what was exported"
        )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    # killed, but not asked after by its parent, as nobody does in many containers
    return _stat(pid)[:1] != ["Z"]


def _started(pid: int) -> float:
    """When a process began, in seconds since 1970; long ago where the system does not tell."""
    if not (about := _stat(pid)):
        return 0.0
    return (
        time.time()
        - time.clock_gettime(time.CLOCK_BOOTTIME)
        + int(about[19]) / os.sysconf("SC_CLK_TCK")
    )


def _stat(pid: int) -> list[str]:
    """What Linux says of a process, from its state on; nothing on other systems."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _row(run: MeasuredRun) -> tuple[Any, ...]:
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
