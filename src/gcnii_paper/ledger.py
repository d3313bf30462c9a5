"""The ledger: an SQLite file of finished runs, so that an interrupted table resumes.

A run is identified by its key, the hash of graph, model and settings in force, and by its seed;
cells with the same key share their runs.  Several processes may work from one ledger: each claims
seeds before it trains them.  A claim ends with its run, with its process, or, if that is in another
container, when it has given no sign of life for too long.  All processes must be on one machine,
because SQLite's write-ahead log does not work over a network; `gcnii reproduce export` and `import`
carry runs from one machine to another, in files as below results/cells.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
import uuid
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gcnii.data import load
from gcnii.data.splits import with_stratified_splits
from gcnii.errors import GcniiError, InputError
from gcnii.files import Document, Maybe, document_key, is_running, read_document
from gcnii.graph import Graph
from gcnii.train.plan import Plan, make_plan
from gcnii.train.presets import preset
from gcnii.train.recipe import in_force
from gcnii_paper.tables.cells import Cell, MeasuredCell, MeasuredRun, runs_of


@cache
def _load(name: str, splits: str) -> Graph:
    return with_stratified_splits(load(name)) if splits == "60/20/20" else load(name)


def open_graph(cell: Cell) -> Graph:
    """The cell's graph, with the splits that the cell asks for."""
    return _load(cell.graph, cell.splits)


def plan_of(cell: Cell) -> Plan:
    """The cell's settings over the preset of its graph and model."""
    return make_plan(cell.model, {**preset(cell.graph, cell.model), **cell.settings})


def run_key(cell: Cell) -> str:
    """A hash that is the same for cells whose runs are the same, and for no others."""
    identity = plan_of(cell).identity(open_graph(cell).fingerprint)
    return document_key(identity | ({"by_degree": "kept"} if cell.by_degree else {}))


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

    def seconds(self) -> list[tuple[str, str, float]]:
        """Cell, device and seconds of every run."""
        with self._explained():
            return self.connection.execute("SELECT cell, device, seconds FROM runs").fetchall()

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
        return is_running(pid) and _started(pid) <= beat + 1

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Make all changes or none, while no other process writes."""
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


def _started(pid: int) -> float:
    """When a process began, in seconds since 1970; 0 if the system does not tell."""
    try:
        about = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (
        time.time()
        - time.clock_gettime(time.CLOCK_BOOTTIME)
        + int(about[19]) / os.sysconf("SC_CLK_TCK")
    )


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


RUNS = {
    "graph": (str, dict),  # an object in a bundle's run.json, which has runs too
    "model": str,
    "settings": dict,
    "runs": [dict],
    "device": Maybe(str),
    "cell": Maybe(str),
    "settings_hash": Maybe(str),
    "interrupted": Maybe(bool),
}


def measured(cell: Cell, ledger: Ledger) -> MeasuredCell:
    """The cell with its runs in the ledger: seeds 0 … n-1, up to the first that is missing."""
    key = run_key(cell)
    own: Document = {
        "cell": cell.id,
        "settings": plan_of(cell).settings,
        "settings_hash": key,
        "runs": tuple(run for i, run in enumerate(ledger.runs(key)) if run.seed == i),
    }
    copied = (field.name for field in fields(MeasuredCell) if field.name not in own)
    return MeasuredCell(**own, **{name: getattr(cell, name) for name in copied})


class Found(NamedTuple):
    """What the documents of a folder hold."""

    # the settings' hash, the name of the cell, and its runs
    runs: list[tuple[str, str, list[MeasuredRun]]]
    strangers: int  # number of documents that match no cell


def export_cells(ledger: Ledger, cells: Iterable[Cell], folder: Path) -> list[Path]:
    """Write every cell that has runs to its file.

    Runs that only the file holds are recorded in the ledger first.
    """
    cells = _within_reach(ledger, list(cells))
    ledger.record_all(find_runs(cells, folder).runs)
    found = [measured(cell, ledger) for cell in cells]
    for cell in found:
        if behind := len(ledger.runs(cell.settings_hash)) - cell.n:
            warnings.warn(
                f"runs of {cell.cell} left out because seed {cell.n} is missing before them: "
                f"{behind}",
                stacklevel=2,
            )
    return [cell.save(folder) for cell in found if cell.runs and _replaces(cell, cell.path(folder))]


def _replaces(cell: MeasuredCell, path: Path) -> bool:
    """Whether to overwrite the file at the cell's path; warns if that is of other settings."""
    held = _document(path) if path.exists() else {}
    if held.get("settings_hash", cell.settings_hash) == cell.settings_hash:
        return True
    if cell.stand_in and not held.get("stand_in"):
        warnings.warn(
            f"{path} is left as it is: its runs are of the paper's graph, this ledger's are of a "
            "stand-in",
            stacklevel=3,
        )
        return False
    warnings.warn(
        f"{path} held {len(held['runs'])} runs of other settings or of another graph, now replaced",
        stacklevel=3,
    )
    return True


def _within_reach(ledger: Ledger, cells: list[Cell]) -> list[Cell]:
    """The cells that may have runs in the ledger, found without a run key, which opens a graph."""
    graphs = {cell.id: cell.graph for cell in cells}
    # None for a run that was recorded under a name which no cell has any more
    recorded = {graphs.get(name) for name in ledger.cells()}
    return [cell for cell in cells if cell.graph in recorded or None in recorded]


def find_runs(cells: Iterable[Cell], folder: Path) -> Found:
    """The runs of every document below the folder that was measured as one of the cells is.

    The document of a cell must have the cell's hash.  What `gcnii train --json` printed must agree
    in graph (by its fingerprint, not only by name), in model and in every setting in force; such
    runs have no version of the software.
    """
    documents = {path: _document(path) for path in sorted(folder.rglob("*.json"))}
    cells, runs, strangers = list(cells), [], 0
    for path, document in documents.items():
        if document.get("interrupted"):
            warnings.warn(f"{path} is left out: its training was interrupted", stacklevel=2)
        # cells that match the same document share their runs
        elif cell := next(_matches(document, cells), None):
            runs.append((run_key(cell), cell.id, _on_own_splits(cell, document["runs"], path)))
        else:
            strangers += 1
    return Found(runs, strangers)


def _on_own_splits(cell: Cell, runs: list[MeasuredRun], path: Path) -> list[MeasuredRun]:
    """The runs on the split that belongs to their seed; warns of the others."""
    splits = len(open_graph(cell).splits)
    own = [run for run in runs if run.split == run.seed % splits]
    if others := len(runs) - len(own):
        warnings.warn(
            f"runs of {path} left out because their split is not their seed's: {others}",
            stacklevel=3,
        )
    return own


def _document(path: Path) -> Document:
    """The file's JSON, with a MeasuredRun in place of each run."""
    return read_document(path, RUNS, "document with runs", _with_runs)


def _with_runs(document: Document) -> Document:
    if "cell" in document and "settings_hash" not in document:
        raise InputError("a cell needs its settings_hash")
    device = {"device": document["device"]} if "device" in document else {}
    return document | {"runs": list(runs_of(document, **device))}


def _matches(document: Document, cells: Iterable[Cell]) -> Iterator[Cell]:
    """The cells that the document's runs belong to."""
    match = _is_of_cell if "cell" in document else _is_trained_as_cell
    return (cell for cell in cells if match(document, cell))


def _is_of_cell(document: Document, cell: Cell) -> bool:
    """Compares the name first: the settings need a plan, the key needs the graph."""
    return (
        (cell.id, cell.graph) == (document["cell"], document["graph"])
        and _same_settings(document, cell)
        and run_key(cell) == document["settings_hash"]
    )


def _is_trained_as_cell(document: Document, cell: Cell) -> bool:
    known = (document["graph"], document["model"], "published", False)
    return (
        (cell.graph, cell.model, cell.splits, cell.by_degree) == known
        and _same_settings(document, cell)
        and open_graph(cell).fingerprint == document.get("fingerprint")
    )


def _same_settings(document: Document, cell: Cell) -> bool:
    return in_force(plan_of(cell).settings) == in_force(document["settings"])
