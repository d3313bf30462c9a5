"""Processes that train together and were given different things."""

import json
import shutil
import socket
from pathlib import Path
from random import Random
from typing import Any

from gcnii.data import load
from gcnii.train.distributed.shard import pack
from hostile.commands import Ended, difference, judge_words, without_passing, zygote
from hostile.folders import Rows, encoded, write
from hostile.judging import Lost, Silent, Wrong
from hostile.trainings import EDGES, ROWS

TRAIN = ("--layers", "2", "--width", "4", "--epochs", "5", "--patience", "5", "--device", "cpu")
TRAIN += ("--threads", "1", "--json", "--out", "bundle")
# Seconds, instead of the minute that the others wait for a process that never comes, or has ended.
WAITS = dict.fromkeys(("JOINING", "MEETING", "WAITING"), 8.0) | {"GRACE": 5.0}
SECONDS = 150.0


class Ranks:
    """Two processes end with the numbers of two that agree, or all end with a sentence."""

    name, few, quick, long = "ranks", 0, 4, 40

    def __init__(self, home: Path):
        self.commands = zygote()
        self.tables = {"nodes.csv": ROWS, "edges.csv": EDGES}
        self.expected = {}
        for form in ("folder", "parts"):
            base = home / form
            machines = self._machines(base, form)
            ended = self._run(machines, [["train", f"machine-{i}/graph", *TRAIN] for i in range(2)])
            for one in ended:
                judge_words(one, "undisturbed")
                if one.code:
                    raise Wrong(f"undisturbed: {one.code} {one.err[-300:]}")
            self.expected[form] = without_passing(json.loads(ended[0].out))

    def _machines(self, base: Path, form: str) -> list[Path]:
        """Two folders, as if on two machines, each with its copy of the graph."""
        base.mkdir()
        machines = []
        for i in range(2):
            machine = base / f"machine-{i}"
            machine.mkdir()
            write(machine / "graph", encoded(self.tables))
            machines.append(machine)
        if form == "parts":
            for machine in machines:
                _cut(machine)
        return machines

    def _run(
        self, machines: list[Path], words: list[Any], about: dict[int, Any] | None = None
    ) -> list[Ended]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        shared |= {"LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}
        commands = []
        for rank, machine in enumerate(machines):
            own = (about or {}).get(rank, {})
            env = shared | {"RANK": str(rank)} | own.get("env", {})
            patches = {f"gcnii.train.distributed.world:{one}": WAITS[one] for one in WAITS}
            how = {"env": env, "patches": patches | own.get("patches", {})}
            commands.append({"words": words[rank], "cwd": machine.parent, **how})
        return self.commands.run_all(commands, SECONDS)

    def attempt(self, random: Random, folder: Path) -> None:
        """Give one of the processes something else."""
        form = random.choice(("folder", "folder", "parts"))
        machines = self._machines(folder / "work", form)
        rank = random.randrange(2)
        words, about = [["train", f"machine-{i}/graph", *TRAIN] for i in range(2)], {}
        how = random.choice(FLAGS + ENVIRONMENTS + DATA)
        told = f"{form}, rank {rank}: {how[0]}"
        if how in FLAGS:
            words[rank] += how[1]
        elif how in ENVIRONMENTS:
            about[rank] = how[1]
        else:
            how[1](machines[rank], form)
        ended = self._run(machines, words, about)
        self._judge(ended, machines, form, told, harmless=how[0].startswith("the same"))

    def _judge(
        self, ended: list[Ended], machines: list[Path], form: str, told: str, *, harmless: bool
    ) -> None:
        for one in ended:
            judge_words(one, told)
            if one.code < 0:
                raise Wrong(f"{told}: ended by signal {-one.code}: {one.err[-300:]}")
        if not any(one.code for one in ended):
            found = without_passing(json.loads(ended[0].out))
            if found != self.expected[form]:
                raise Silent(f"{told}: {difference(found, self.expected[form])}")
            if not harmless:
                raise Silent(f"{told}: trained all the same")
            return
        if harmless:
            raise Wrong(f"{told}: refused: {[one.err[-200:] for one in ended]}")
        if not all(one.code for one in ended):
            raise Wrong(f"{told}: one of them went on: {[(e.code, e.err[-200:]) for e in ended]}")
        if not ended[0].err.strip():
            raise Wrong(f"{told}: rank 0 ended without a word")
        if (machines[0].parent / "bundle" / "run.json").exists():
            raise Lost(f"{told}: refused, but there is a bundle")

    def close(self) -> None:
        """The zygote is ended with this process."""


def _cut(machine: Path) -> None:
    """The graph of a machine in two parts."""
    graph = load(machine / "graph")
    shutil.rmtree(machine / "graph")
    pack(graph, machine / "graph", 2)


def _other(change: Any) -> Any:
    """Another graph on one machine: its tables, changed."""

    def apply(machine: Path, form: str) -> None:
        tables: dict[str, Rows] = {
            name: [list(row) for row in rows]
            for name, rows in (("nodes.csv", ROWS), ("edges.csv", EDGES))
        }
        change(tables)
        shutil.rmtree(machine / "graph")
        write(machine / "graph", encoded(tables))
        if form == "parts":
            _cut(machine)

    return apply


def _set(table: str, row: int, column: int, cell: str) -> Any:
    def change(tables: dict[str, Rows]) -> None:
        tables[table][row][column] = cell

    return change


def _renamed(tables: dict[str, Rows]) -> None:
    for row in tables["nodes.csv"][1:]:
        row[3] = {"c": "cat", "d": "dog"}[row[3]]


def _moved(tables: dict[str, Rows]) -> None:
    tables["nodes.csv"][1:] = tables["nodes.csv"][:0:-1]


def _gone(machine: Path, form: str) -> None:
    shutil.rmtree(machine / "graph")


FLAGS: tuple[Any, ...] = tuple(
    (" ".join(words), words)
    for words in (
        *(["--seed", "1"], ["--runs", "2"], ["--lr", "0.5"], ["--dropout", "0.1"]),
        *(["--epochs", "6"], ["--layers", "3"], ["--width", "8"], ["--model", "gcn"]),
        *(["--directed"], ["--nonsense"], ["--layers", "-1"], ["--split", "7"]),
        *(["--precision", "float64"], ["--device", "nowhere"], ["--out", "/proc/x"]),
    )
)
FLAGS += (("the same, with --quiet", ["--quiet"]), ("the same", []))
ENVIRONMENTS: tuple[Any, ...] = (
    ("another version", {"patches": {"gcnii:__version__": "0.0.1"}}),
    ("WORLD_SIZE 3", {"env": {"WORLD_SIZE": "3"}}),
    ("WORLD_SIZE x", {"env": {"WORLD_SIZE": "x"}}),
    ("RANK 7", {"env": {"RANK": "7"}}),
    ("RANK -1", {"env": {"RANK": "-1"}}),
    ("another port", {"env": {"MASTER_PORT": "9"}}),
    ("a port that is a word", {"env": {"MASTER_PORT": "http"}}),
)
DATA: tuple[Any, ...] = (
    ("a cell", _other(_set("nodes.csv", 3, 1, "99"))),
    ("a label", _other(_set("nodes.csv", 3, 3, "d"))),
    ("a split", _other(_set("nodes.csv", 6, 4, "train"))),
    ("an edge", _other(_set("edges.csv", 3, 1, "p20"))),
    ("a name", _other(_renamed)),
    ("another order", _other(_moved)),
    ("no graph", _gone),
)
