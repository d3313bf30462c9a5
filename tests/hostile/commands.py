"""Commands that are killed at random moments, or write to a disk that is full."""

import atexit
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from gcnii.data import load
from gcnii.errors import InputError
from gcnii.results.bundle import open_bundle
from hostile.folders import drawn_tables, encoded, write
from hostile.judging import (
    Hung,
    Lost,
    Silent,
    Skipped,
    Traceback,
    Wrong,
    judge_sentence,
)

TRAIN = ("--layers", "2", "--width", "8", "--epochs", "30", "--patience", "30", "--runs", "2")
TRAIN = ("train", "graph", *TRAIN, "--device", "cpu", "--json", "--out", "bundle")
REPRODUCE = ("reproduce", "table2", "--device", "cpu", "--json", "--ledger", "ledger.sqlite")
PACK = ("data", "pack", "graph", "saved.safetensors", "--json")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
SECONDS = 150.0  # for one command, however busy the machine is
PASSING = ("seconds", "versions", "commit", "finished_at")  # what may differ from run to run


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


class Commands:
    """Runs commands by way of a zygote."""

    def __init__(self) -> None:
        path = os.pathsep.join(sys.path)
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("zygote.py")],
            cwd=tempfile.gettempdir(),
            env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._hear()

    def run(self, words: Any, cwd: Path, signals: Any = ()) -> Ended:
        """Run a command in a folder; signals are (seconds after its start, number)."""
        return self.run_all([{"words": words, "cwd": cwd, "signals": signals}])[0]

    def run_all(self, commands: Sequence[dict[str, Any]], seconds: float = SECONDS) -> list[Ended]:
        """Run commands at the same time, each with words, cwd and what else the zygote knows."""
        places = [
            [one["cwd"].with_suffix(f".{i}.{end}") for end in ("out", "err")]
            for i, one in enumerate(commands)
        ]
        for path in (path for paths in places for path in paths):
            path.write_bytes(b"")  # a command may be killed before it has opened them
        late = (seconds, int(signal.SIGKILL))
        asked = [
            {**one, "cwd": str(one["cwd"]), "out": str(out), "err": str(err)}
            | {"words": list(map(str, one["words"])), "signals": [*one.get("signals", ()), late]}
            for one, (out, err) in zip(commands, places, strict=True)
        ]
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        start, codes = time.monotonic(), json.loads(self._hear())
        if time.monotonic() - start > seconds:
            words = ", ".join(" ".join(map(str, one["words"])) for one in commands)
            raise Hung(f"no answer within {seconds:.0f} s: {words}")
        return [
            Ended(code, *(path.read_text("utf-8", "replace") for path in paths))
            for code, paths in zip(codes, places, strict=True)
        ]

    def _hear(self) -> str:
        assert self.process.stdout is not None
        if not (line := self.process.stdout.readline()):
            raise Wrong("the zygote died")
        return line.strip()

    def close(self) -> None:
        """End the zygote, which has no command running."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@cache
def zygote() -> Commands:
    """One for all kinds: it takes seconds to start."""
    commands = Commands()
    atexit.register(commands.close)
    return commands


def judge_words(ended: Ended, told: str) -> None:
    """Raise Wrong if a command printed a traceback or a sentence that is not one."""
    if "Traceback" in ended.err:
        raise Traceback(f"{told}: a traceback: …{ended.err[-300:]}")
    for line in ended.err.splitlines():
        judge_sentence(line)


def without_passing(value: Any) -> Any:
    """A JSON document without what may differ from run to run."""
    if isinstance(value, dict):
        return {key: without_passing(one) for key, one in value.items() if key not in PASSING}
    return [without_passing(one) for one in value] if isinstance(value, list) else value


def difference(found: Any, expected: Any, path: str = "the answer") -> str:
    """The first place where two documents differ."""
    if isinstance(found, dict) and isinstance(expected, dict) and found.keys() == expected.keys():
        pairs = [(found[key], expected[key], f"{path}.{key}") for key in found]
    elif isinstance(found, list | tuple) and len(found) == len(expected):
        pairs = [
            (*both, f"{path}[{i}]") for i, both in enumerate(zip(found, expected, strict=True))
        ]
    else:
        return f"{path} is {found!r:.200}, not {expected!r:.200}"
    return next(difference(*pair) for pair in pairs if pair[0] != pair[1])


class Killed:
    """Killed at any moment, the same command ends with the same numbers; nothing is lost."""

    name, few, quick, long, words = "", 0, 2, 40, TRAIN

    def __init__(self, home: Path):
        self.commands = zygote()
        self.tables = drawn_tables(Random(0))
        whole = self._folder(home / "whole")
        start = time.monotonic()
        self.expected = self._finish(whole, "undisturbed")
        self.seconds = time.monotonic() - start

    def _folder(self, folder: Path) -> Path:
        folder.mkdir()
        write(folder / "graph", encoded(self.tables))
        return folder

    def _finish(self, folder: Path, told: str) -> Any:
        """The numbers of a command that nothing disturbs."""
        ended = self.commands.run(self.words, folder)
        judge_words(ended, told)
        if ended.code:
            raise Wrong(f"{told}: then exit code {ended.code}: {ended.err[-300:]}")
        return self.numbers(folder, ended.out)

    def attempt(self, random: Random, folder: Path) -> None:
        """One to three kills, each at a random moment; then the command without any."""
        here, told = self._folder(folder / "work"), []
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            number = random.choice(SIGNALS)
            moment = random.uniform(0, 1.1 * self.seconds)
            twice = number == signal.SIGINT and random.random() < 0.3
            signals = [(moment, int(number)), *([(moment + 0.02, int(number))] if twice else [])]
            told.append(f"{number.name}{' twice' if twice else ''} after {moment:.3f} s")
            before = self.kept(here)
            ended = self.commands.run(self.words, here, signals)
            judge_words(ended, ", ".join(told))
            if lost := before - self.kept(here):
                raise Lost(f"{', '.join(told)}: lost {sorted(lost)[:3]}")
        before = self.kept(here)
        found = self._finish(here, ", ".join(told))
        if lost := before - self.kept(here):
            raise Lost(f"{', '.join(told)}: lost {sorted(lost)[:3]}")
        if found != self.expected:
            raise Silent(f"{', '.join(told)}: {difference(found, self.expected)}")

    def numbers(self, folder: Path, out: str) -> Any:
        """All that a command ends with."""
        raise NotImplementedError

    def kept(self, folder: Path) -> set[Any]:
        """What must still be there after the next command."""
        raise NotImplementedError

    def close(self) -> None:
        """The zygote is ended with this process."""


class KilledTraining(Killed):
    """`gcnii train`."""

    name, words = "killed-train", TRAIN

    def numbers(self, folder: Path, out: str) -> Any:
        """The document, the curves and the names of the files."""
        bundle = folder / "bundle"
        predicted = open_bundle(bundle).predict_proba(load(folder / "graph"), "cpu")
        files = sorted(path.name for path in bundle.iterdir() if not path.name.startswith("."))
        document = without_passing(json.loads(out))
        return document, (bundle / "curves.csv").read_text(), files, predicted.tolist()

    def kept(self, folder: Path) -> set[Any]:
        """A bundle that opens, once it is there, goes on to open."""
        with suppress(InputError):
            open_bundle(folder / "bundle")
            return {"bundle"}
        return set()


class KilledTable(Killed):
    """`gcnii reproduce`."""

    name, quick, words = "killed-table", 1, REPRODUCE

    def numbers(self, folder: Path, out: str) -> Any:
        """The document."""
        return without_passing(json.loads(out))

    def kept(self, folder: Path) -> set[Any]:
        """The runs in the ledger, with the seconds that they took."""
        if not (folder / "ledger.sqlite").exists():
            return set()
        ledger = sqlite3.connect(f"file:{folder / 'ledger.sqlite'}?mode=ro", uri=True)
        try:
            rows = ledger.execute("SELECT settings_hash, seed, test, seconds FROM runs").fetchall()
        except sqlite3.OperationalError as error:  # killed before there was a table
            if "no such table" not in str(error):
                raise
            rows = []
        finally:
            ledger.close()
        return set(rows)


class FullDisks:
    """On a disk that is full a command says so; with more space, it ends as it should."""

    name, few, quick, long = "full-disks", 0, 2, 40

    def __init__(self, home: Path):
        self.disk = home / "disk"
        self.disk.mkdir()
        if not _mount(self.disk, "64k"):
            raise Skipped("a small file system cannot be mounted here")
        _unmount(self.disk)
        self.commands = zygote()
        self.tables = drawn_tables(Random(0))
        self.expected = {}
        for words in (TRAIN, REPRODUCE, PACK):
            folder = home / words[0]
            folder.mkdir()
            write(folder / "graph", encoded(self.tables))
            ended = self.commands.run(words, folder)
            judge_words(ended, "undisturbed")
            self.expected[words] = without_passing(json.loads(ended.out))

    def attempt(self, random: Random, folder: Path) -> None:
        """A disk of some kilobytes, then of many."""
        words = random.choice((TRAIN, REPRODUCE, PACK))
        size = random.choice((4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96))
        told = f"{words[0]} on a disk of {size} kB"
        if not _mount(self.disk, f"{size}k"):
            raise Wrong("the disk could not be mounted")
        try:
            here = self.disk / "work"
            here.mkdir()
            if words == PACK:  # a packed graph is small: no byte is left for it
                (self.disk / "filler").write_bytes(bytes(size * 1024))
            (here / "graph").symlink_to(folder / "graph")
            write(folder / "graph", encoded(self.tables))
            ended = self._run(words, here, folder)
            judge_words(ended, told)
            if ended.code and not re.search("No space left|disk", ended.err):
                raise Wrong(f"{told}: {ended.err[-300:]!r} does not say why")
            if left := [path.name for path in here.rglob(".*") if path.is_file()]:
                raise Lost(f"{told}: left {left}")
            _mount(self.disk, "remount,size=64m", remount=True)
            ended = self._run(words, here, folder)
            judge_words(ended, f"{told}, then of 64 MB")
            if ended.code or without_passing(json.loads(ended.out)) != self.expected[words]:
                raise Wrong(f"{told}, then of 64 MB: {ended.code} {ended.err[-300:]}")
        finally:
            _unmount(self.disk)

    def _run(self, words: Any, here: Path, folder: Path) -> Ended:
        """Run in the folder of the disk; what is printed goes to another disk."""
        (folder / "work").unlink(missing_ok=True)
        (folder / "work").symlink_to(here)
        return self.commands.run(words, folder / "work")

    def close(self) -> None:
        """The zygote is ended with this process."""


def _mount(place: Path, size: str, remount: bool = False) -> bool:
    options = size if remount else f"size={size}"
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    try:
        return subprocess.run(words, capture_output=True).returncode == 0
    except OSError:
        return False


def _unmount(place: Path) -> None:
    subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)


COMMANDS = (KilledTraining, KilledTable, FullDisks)
