"""Tuning studies whose database or documents were tampered with."""

import json
import math
import os
import shutil
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from support.small_studies import few_runs

from gcnii.data import load
from gcnii.tuning import storage
from gcnii.tuning.closing import Tuned
from gcnii.tuning.question import STUDY
from gcnii.tuning.tune import tune
from hostile.commands import difference
from hostile.damage import damaged_bytes, damaged_document, damaged_tensors
from hostile.judging import Lost, Silent, answer_of, contents

WORDS: dict[str, Any] = {"trials": 3, "models": ["gcn"], "seeds": 1, "epochs": 3, "patience": 3}
WORDS |= {"layers": 2, "width": 4, "device": "cpu", "threads": 1, "verbose": False}
CELLS = (
    *(None, 0, 1, -1, 2**40, -(2**62), 0.5, 1e308, math.inf, "", "a", "nan", "COMPLETE", "RUNNING"),
    *("WAITING", "PRUNED", "FAIL", "nonsense", "\x1b[31m", "line\nline", "{}", "[]", "null", "{"),
    *('{"name": "FloatDistribution", "attributes": {}}', "x" * 50_000, b"\x00\xff", "1e999"),
)
BESIDE = ("study.db-wal", "study.db-shm", "study.db-journal")


class Searches:
    """A tampered study goes on to an answer, or is refused in a sentence; no trial is lost."""

    name, few, quick, long = "study", 2, 30, 400

    def __init__(self, home: Path):
        self.stack = ExitStack()
        self.stack.enter_context(few_runs())
        for name, value in {"HEARTBEAT": 0.1, "GRACE": 0.2}.items():
            self.stack.enter_context(mock.patch.object(storage, name, value))
        self.graph = load("csbm", n=60)
        self.whole = home / "study"
        self.expected = numbers(tune(self.graph, out=self.whole, **WORDS))

    def attempt(self, random: Random, folder: Path) -> None:
        """Tamper, and run the same search again."""
        target = folder / "study"
        shutil.copytree(self.whole, target)
        how = random.choice(HOW)
        told = f"{how.__name__.strip('_')}: {how(random, target)}"
        before, rows = contents(target), trials_in(target)
        answer = answer_of(lambda: tune(self.graph, out=target, **WORDS))
        if answer.value is None:
            after = contents(target)
            gone = {name for name in before if name not in BESIDE} - set(after)
            changed = {name for name in after if name in before and after[name] != before[name]}
            if lost := sorted(gone | (changed - {"study.db", STUDY, *BESIDE})):
                raise Lost(f"{told}: refused, but changed {lost}: {answer.sentence}")
        else:
            self._judge(answer.value, how, told)
        if rows is not None and (after_rows := trials_in(target)) is not None:
            missing = rows - after_rows
            if missing and answer.value is not None:
                raise Lost(f"{told}: lost {sorted(map(str, missing))[:2]}")

    def _judge(self, tuned: Tuned, how: Any, told: str) -> None:
        found = numbers(tuned)
        if how in (_other_file, _harmless) and found != self.expected:
            raise Silent(f"{told}: {difference(found, self.expected)}")
        for one in tuned.trials:
            sane = all(map(math.isfinite, (*one.val, *one.val_loss)))
            if one.outcome == "complete" and not sane:
                raise Silent(f"{told}: a trial with scores {one.val} and losses {one.val_loss}")
        json.dumps(tuned.document(), allow_nan=False)
        if tuned.winner.score < max(t.score for t in tuned.trials if t.outcome == "complete"):
            raise Silent(f"{told}: the winner is not the best")

    def close(self) -> None:
        """As it was."""
        self.stack.close()


def numbers(tuned: Tuned) -> Any:
    """What a search ends with, but for the seconds that it took."""
    trials = [one.document() | {"seconds": 0} for one in tuned.trials]
    runs = [run.summary() | {"seconds": 0} for run in tuned.result.runs]
    return json.loads(json.dumps([trials, runs, tuned.model]))


def trials_in(folder: Path) -> set[Any] | None:
    """The numbers and states of finished trials in study.db; None if it cannot be read."""
    if not (folder / "study.db").is_file():
        return None
    try:
        with closing(sqlite3.connect(f"file:{folder / 'study.db'}?mode=ro", uri=True)) as base:
            query = "SELECT number, state FROM trials WHERE state IN ('COMPLETE', 'PRUNED')"
            return set(base.execute(query).fetchall())
    except sqlite3.Error:
        return None


# What is done to a study; each returns what it was


def _cell(random: Random, folder: Path) -> str:
    """A cell of the database."""
    with closing(sqlite3.connect(folder / "study.db")) as base:
        table, columns = _table(random, base)
        column, cell = random.choice(columns), random.choice(CELLS)
        try:
            base.execute("PRAGMA writable_schema=ON")
            base.execute("PRAGMA ignore_check_constraints=ON")
            where = f"rowid IN (SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET ?)"
            count = base.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            row = random.randrange(count)
            base.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (cell, row))
            base.commit()
        except sqlite3.Error as error:
            return f"{table}.{column}: {error}"
        return f"{table}.{column} of row {row} is {cell!r:.60}"


def _table(random: Random, base: sqlite3.Connection) -> tuple[str, list[str]]:
    """A table that has rows, and its columns."""
    names = [
        name
        for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if base.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
    ]
    table = random.choice(sorted(names))
    return table, [row[1] for row in base.execute(f"PRAGMA table_info({table})")]


def _told(random: Random, folder: Path) -> str:
    """What a trial told, which is a JSON document in a cell."""
    with closing(sqlite3.connect(folder / "study.db")) as base:
        table = random.choice(("trial_user_attributes", "trial_user_attributes", "trial_params"))
        column = "value_json" if table.endswith("attributes") else "distribution_json"
        rows = base.execute(f"SELECT rowid, {column} FROM {table} ORDER BY rowid").fetchall()
        row, text = random.choice(rows)
        document = json.loads(text)
        if isinstance(document, dict) and document:
            changed, told = damaged_document(random, document)
        else:
            changed = random.choice(("", "{", "null", "[1]", '{"a": 1}', "NaN", '"x"'))
            told = changed
        changed = changed.encode("utf-8", "replace").decode()
        base.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, row))
        base.commit()
        return f"{table} {row}: {told}"


def _schema(random: Random, folder: Path) -> str:
    with closing(sqlite3.connect(folder / "study.db")) as base:
        base.execute("PRAGMA foreign_keys=OFF")
        table, columns = _table(random, base)
        how = random.choice(("DROP TABLE", "DELETE FROM", "rename", "drop column", "one row"))
        try:
            if how == "rename":
                base.execute(f"ALTER TABLE {table} RENAME TO other")
            elif how == "drop column":
                base.execute(f"ALTER TABLE {table} DROP COLUMN {random.choice(columns)}")
            elif how == "one row":
                base.execute(f"DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})")
            else:
                base.execute(f"{how} {table}")
            base.commit()
        except sqlite3.Error as error:
            return f"{how} {table}: {error}"
        return f"{how} {table}"


def _bytes(random: Random, folder: Path) -> str:
    path = folder / "study.db"
    content, told = damaged_bytes(random, path.read_bytes())
    path.write_bytes(content)
    return told


def _replaced(random: Random, folder: Path) -> str:
    path = folder / random.choice(("study.db", "study.db", STUDY))
    path.unlink()
    what = random.choice(("gone", "empty", "text", "a folder", "a pipe", "a loop", "another base"))
    if what == "empty":
        path.write_bytes(b"")
    elif what == "text":
        path.write_text("id,label\n1,a\n" * 300)
    elif what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    elif what == "a loop":
        path.symlink_to(path.name)
    elif what == "another base":
        with closing(sqlite3.connect(path)) as base:
            base.execute("CREATE TABLE studies (a)")
            base.commit()
    return f"{path.name}: {what}"


def _document(random: Random, folder: Path) -> str:
    path = folder / STUDY
    text, told = damaged_document(random, json.loads(path.read_text("utf-8")))
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return told


def _other_file(random: Random, folder: Path) -> str:
    """A file of the bundle beside the study: it is written anew, and says nothing about it."""
    name = random.choice(("run.json", "model.safetensors", "curves.csv"))
    change = damaged_tensors if name.endswith("safetensors") else damaged_bytes
    content, told = change(random, (folder / name).read_bytes())
    (folder / name).write_bytes(content)
    return f"{name}: {told}"


def _harmless(random: Random, folder: Path) -> str:
    with closing(sqlite3.connect(folder / "study.db")) as base:
        base.execute("VACUUM")
    return "vacuumed"


HOW = (_cell, _cell, _cell, _told, _told, _told, _schema, _bytes, _replaced, _document)
HOW += (_other_file, _harmless)
