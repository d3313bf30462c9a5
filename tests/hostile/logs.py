"""Callbacks, logs and checkpoints that are not what `fit` hopes for."""

import csv
import os
from pathlib import Path
from random import Random
from typing import Any

import gcnii
from gcnii.data import load
from hostile.judging import Lost, Silent, Wrong, answer_of
from hostile.outputs import snapshot
from hostile.trainings import WORDS, numbers


class Own(Exception):
    """What a callback of the user raises."""


class Odd:
    """Callables of all sorts."""

    def __call__(self, now: Any, more: Any = None) -> object:
        """Take a report."""
        return now

    def close(self) -> None:
        """Fail at the end."""
        raise Own("closing")


def _raise(now: Any) -> None:
    raise Own("now")


def _system_exit(now: Any) -> None:
    raise SystemExit(3)


def _mutate(now: Any) -> None:
    now.measures.clear()


class Logs:
    """Callbacks change no number; a log is what it says, and replaces nothing that is not ours."""

    name, few, quick, long = "logs", 4, 40, 500

    def __init__(self, home: Path):
        self.graph = load("csbm", n=60)
        self.result = gcnii.fit(self.graph, **WORDS)
        self.expected = numbers(self.result)

    def attempt(self, random: Random, folder: Path) -> None:
        """A training with an odd callback, log or checkpoint."""
        how = random.choice((self._callback, self._callback, self._log, self._log, self._board))
        if random.random() < 0.2:
            how = self._checkpoint
        how(random, folder)

    def _callback(self, random: Random, folder: Path) -> None:
        given, told, ours = random.choice(CALLBACKS)
        given = given() if callable(given) else given
        try:
            answer = answer_of(lambda: gcnii.fit(self.graph, callbacks=given, **WORDS))
        except (Own, SystemExit):
            if not ours:
                raise
            return
        if answer.value is None:
            if "harmless" in told:
                raise Wrong(f"{told}: refused: {answer.sentence}")
        elif numbers(answer.value) != self.expected and "stop" not in told:
            raise Silent(f"{told}: other numbers")

    def _log(self, random: Random, folder: Path) -> None:
        path, told, sort = self._place(random, folder, ".csv")
        before = snapshot(folder)
        answer = answer_of(lambda: gcnii.fit(self.graph, callbacks=[gcnii.CsvLog(path)], **WORDS))
        self._judge(folder, before, answer, told, sort)
        if answer.value is not None and Path(path).is_file():
            with Path(path).open(newline="") as file:
                rows = list(csv.DictReader(file))
            curves = [len(run.curve) for run in self.result.runs]
            if len(rows) != sum(curves):
                raise Silent(f"{told}: {len(rows)} rows, not {sum(curves)}")

    def _board(self, random: Random, folder: Path) -> None:
        path, told, sort = self._place(random, folder, "")
        before = snapshot(folder)
        answer = answer_of(
            lambda: gcnii.fit(self.graph, callbacks=[gcnii.TensorBoard(path)], **WORDS)
        )
        self._judge(folder, before, answer, told, sort)

    def _checkpoint(self, random: Random, folder: Path) -> None:
        path, told, sort = self._place(random, folder, ".safetensors")
        before = snapshot(folder)
        answer = answer_of(lambda: gcnii.fit(self.graph, checkpoint=path, **WORDS))
        self._judge(folder, before, answer, f"checkpoint {told}", sort)

    def _judge(self, folder: Path, before: Any, answer: Any, told: str, sort: str) -> None:
        after = snapshot(folder)
        if changed := [name for name, state in before.items() if after.get(name) != state]:
            raise Lost(f"{told}: changed {changed}")
        if answer.value is None:
            if sort == "right":
                raise Wrong(f"{told}: refused: {answer.sentence}")
        elif numbers(answer.value) != self.expected:
            raise Silent(f"{told}: other numbers")

    def _place(self, random: Random, folder: Path, end: str) -> tuple[Any, str, str]:
        """A path, what it is, and whether it must be taken."""
        (folder / f"notes{end}").write_text("id,price\n1,2\n")
        (folder / "thesis").mkdir()
        (folder / "thesis" / "thesis.tex").write_text("ten years")
        (folder / f"link{end}").symlink_to(f"notes{end}")
        (folder / f"loop{end}").symlink_to(f"loop{end}")
        os.mkfifo(folder / f"pipe{end}")
        places: dict[str, tuple[Any, str]] = {
            "new": (folder / f"new{end}", "right"),
            "a text": (str(folder / f"new{end}"), "right"),
            "deep": (folder / "deep" / "er" / f"new{end}", "right"),
            "foreign": (folder / f"notes{end}", "odd"),
            "a link": (folder / f"link{end}", "odd"),
            "a loop": (folder / f"loop{end}", "odd"),
            "a pipe": (folder / f"pipe{end}", "odd"),
            "a folder": (folder / "thesis", "odd"),
            "in a file": (folder / f"notes{end}" / f"x{end}", "odd"),
            "/proc": (f"/proc/x{end}", "odd"),
            "/dev/null": ("/dev/null", "odd"),
            "/dev/full": ("/dev/full", "odd"),
            "too long": (folder / f"{'x' * 300}{end}", "odd"),
            "odd signs": (folder / f"\x1b[31m\n{end}", "odd"),
            "NUL": (f"{folder}/a\0b{end}", "odd"),
            "a number": (3, "odd"),
            "bytes": (str(folder / f"new{end}").encode(), "odd"),
            "a list": ([], "odd"),
            "a user": (f"~nobody-here/x{end}", "odd"),
        }
        told = random.choice(list(places))
        return *places[told][:1], f"{told} ({end})", places[told][1]

    def close(self) -> None:
        """Nothing to end."""


# callbacks, what they are, and whether an error of their own may come out
CALLBACKS: tuple[tuple[Any, str, bool], ...] = (
    (lambda: [lambda now: None], "harmless", False),
    (lambda: (print.__class__, len)[:0], "harmless: none at all", False),
    (lambda: [Odd()], "fails when it is closed", True),
    (lambda: [_raise], "raises", True),
    (lambda: [_system_exit], "exits", True),
    (lambda: [_mutate], "empties the report", False),
    (lambda: [lambda: None], "takes nothing", False),
    (lambda: [lambda one, two: None], "takes two", False),
    (lambda: [lambda *, now: None], "takes a word", False),
    (lambda: [lambda *all: None], "harmless: takes any", False),
    (lambda: [Odd], "is a class that takes nothing", False),
    (lambda: [3], "is a number", False),
    (lambda: [None], "is None", False),
    (lambda: None, "are None", False),
    (lambda: len, "are a function", False),
    (lambda: "print", "are a text", False),
    (lambda: {"a": print}, "are a dict", False),
    (lambda: iter([print]), "are an iterator", False),
    (lambda: ["print"], "is a text", False),
    (lambda: [gcnii.StopTraining("stop")], "is a stop", False),
    (lambda: [gcnii.StopTraining], "is the class of a stop", False),
)
