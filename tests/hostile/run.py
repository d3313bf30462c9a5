"""Run hostile cases and print a table of them.

python tests/hostile/run.py --long                      all kinds, thousands of cases
python tests/hostile/run.py --kind folders --case 17    one case again, with its traceback
"""

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.bombs import DIALECTS
from hostile.commands import COMMANDS
from hostile.converters import ARRAYS
from hostile.documents import Documents, Studies
from hostile.folders import Folders
from hostile.graph_files import FORMATS
from hostile.judging import SORTS, Kind, Skipped, Wrong
from hostile.logs import Logs
from hostile.names import NAMES
from hostile.new_nodes import NewNodes
from hostile.outputs import Outputs
from hostile.parts import Parts
from hostile.ranks import Ranks
from hostile.searches import Searches
from hostile.servers import Servers
from hostile.trainings import Bundles, Checkpoints
from hostile.words import WORDS

ALL = (Folders, *FORMATS, Bundles, Checkpoints, Documents, Studies, Servers, *COMMANDS)
ALL += (*ARRAYS, *WORDS, *NAMES, NewNodes, Logs, *DIALECTS, Parts, Searches, Ranks, Outputs)
KINDS: dict[str, type[Kind]] = {kind.name: kind for kind in ALL}
SHOWN = 5  # failures of each kind
PORTION = 200  # cases that a process takes at a time
STARTED_BY = "spawn"  # a fork would share the threads of torch
PATIENCE = 180.0  # seconds for a case, after which its process is ended


class Failure(NamedTuple):
    """What was wrong with the answer to a case."""

    sort: str
    told: str


@dataclass
class Tally:
    """The cases of one kind: how many, how long, and the failures by case number."""

    kind: str
    tried: int = 0
    seconds: float = 0.0
    skipped: str = ""
    failures: dict[int, Failure] = field(default_factory=dict)


def run_cases(
    name: str, cases: Iterable[int], began: Callable[[int], object], *, raising: bool = False
) -> Iterator[tuple[int, Failure | None]]:
    """Run these cases of a kind, one after the other; `raising`: let the first error through."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        home = Path(folder)
        (home / "shared").mkdir()
        kind = KINDS[name](home / "shared")
        try:
            for case in cases:
                began(case)
                own = home / str(case)
                own.mkdir()
                failure = None
                try:
                    with chdir(own):  # what is written to a relative path is found there
                        kind.attempt(Random(f"{name} {case}"), own)
                except (Exception, SystemExit) as error:
                    if raising:
                        raise
                    failure = _failure(error)
                shutil.rmtree(own, ignore_errors=True)
                yield case, failure
        finally:
            kind.close()


def run_kind(name: str, cases: Iterable[int], *, raising: bool = False) -> Tally:
    """Run these cases of a kind in this process."""
    tally, start = Tally(name), time.monotonic()
    try:
        for case, failure in run_cases(name, cases, lambda _: None, raising=raising):
            _count(tally, case, failure)
    except Skipped as reason:
        tally.skipped = str(reason)
    tally.seconds = time.monotonic() - start
    return tally


def _count(tally: Tally, case: int, failure: Failure | None) -> None:
    tally.tried += 1
    if failure:
        tally.failures[case] = failure


def _failure(error: BaseException) -> Failure:
    """The words of Wrong; of any other error, where it was raised too."""
    if isinstance(error, Wrong):
        return Failure(error.sort, str(error))
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    return Failure("traceback", f"{type(error).__name__} at {place}: {str(error)[:300]}")


# Several processes


def _work(pipe: Connection) -> None:
    """What one of several processes does: portions of cases, until there are none."""
    while portion := pipe.recv():
        name, cases = portion
        try:
            for case, failure in run_cases(name, cases, lambda case: pipe.send(("began", case))):
                pipe.send(("ended", (case, failure)))
        except Skipped as reason:
            pipe.send(("skipped", str(reason)))
        except Exception:  # of what all cases share
            pipe.send(("broken", traceback.format_exc()))
        pipe.send(("done", None))


class Worker:
    """One of several processes, and the portion that it is at."""

    def __init__(self) -> None:
        self.pipe, other = multiprocessing.Pipe()
        context = multiprocessing.get_context(STARTED_BY)
        self.process = context.Process(target=_work, args=(other,))
        self.process.start()
        other.close()
        self.portion: tuple[str, list[int]] | None = None
        self.case: int | None = None
        self.since, self.dead = time.monotonic(), False

    def give(self, portion: tuple[str, list[int]]) -> None:
        """Let it run a portion."""
        self.portion, self.case, self.since = portion, None, time.monotonic()
        self.pipe.send(portion)

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join()


def run_all(portions: Iterable[tuple[str, list[int]]], jobs: int) -> dict[str, Tally]:
    """Run portions of cases in so many processes; one that dies or hangs costs its case alone."""
    left = deque(portions)
    tallies = {name: Tally(name) for name, _ in left}
    workers = [Worker() for _ in range(min(jobs, len(left)))]
    try:
        while True:
            for i, worker in enumerate(workers):
                if worker.portion is None and left:
                    worker.give(left.popleft())
                elif reason := _trouble(worker):
                    _bury(worker, reason, tallies, left)
                    workers[i] = Worker()
            busy = {worker.pipe: worker for worker in workers if worker.portion}
            if not busy and not left:
                return tallies
            for pipe in wait(list(busy), timeout=1.0):
                _hear(busy[pipe], tallies)  # type: ignore[index]
    finally:
        for worker in workers:
            worker.end()


def _trouble(worker: Worker) -> str:
    if worker.portion is None:
        return ""
    if worker.dead:
        worker.process.join()
        return f"the process ended with code {worker.process.exitcode}"
    if time.monotonic() - worker.since > PATIENCE:
        return f"no answer within {PATIENCE:.0f} s"
    return ""


def _bury(worker: Worker, reason: str, tallies: dict[str, Tally], left: deque[Any]) -> None:
    """End a process, and give its other cases to another."""
    worker.end()
    assert worker.portion is not None
    name, cases = worker.portion
    case = cases[0] if worker.case is None else worker.case
    _count(tallies[name], case, Failure("hung" if "within" in reason else "traceback", reason))
    if rest := cases[cases.index(case) + 1 :]:
        left.appendleft((name, rest))


def _hear(worker: Worker, tallies: dict[str, Tally]) -> None:
    assert worker.portion is not None
    tally, now = tallies[worker.portion[0]], time.monotonic()
    try:
        word, what = worker.pipe.recv()
    except EOFError:
        worker.dead = True
        return
    tally.seconds += now - worker.since
    worker.since = now
    if word == "began":
        worker.case = what
    elif word == "ended":
        _count(tally, *what)
    elif word == "broken":
        raise RuntimeError(f"{tally.kind} cannot begin: {what}")
    elif word == "skipped":
        tally.skipped = what
    else:
        worker.portion = None


def portions_of(counts: dict[str, int], first: int) -> list[tuple[str, list[int]]]:
    """All cases in portions; those of kinds with few cases, which take long, come first."""
    found = []
    for name in sorted(counts, key=lambda name: counts[name]):
        size = max(min(PORTION, counts[name] // 4), 1)
        cases = list(range(first, first + counts[name]))
        found += [(name, cases[i : i + size]) for i in range(0, len(cases), size)]
    return found


def report(tallies: Sequence[Tally]) -> Iterator[str]:
    """The table, and the first failures with the command that repeats them."""
    heads = ("cases", "proper", *SORTS)
    yield f"{'kind':14}" + "".join(f"{head:>10}" for head in heads) + f"{'seconds':>10}"
    sums = [0] * len(heads)
    for tally in tallies:
        if tally.skipped:
            yield f"{tally.kind:14}  skipped: {tally.skipped}"
            continue
        sorts = [one.sort for one in tally.failures.values()]
        counts = [tally.tried, tally.tried - len(sorts), *(sorts.count(sort) for sort in SORTS)]
        sums = [one + other for one, other in zip(sums, counts, strict=True)]
        yield _row(tally.kind, counts, tally.seconds)
    yield _row("all", sums, sum(tally.seconds for tally in tallies))
    for tally in tallies:
        for case, (sort, told) in list(tally.failures.items())[:SHOWN]:
            again = f"python tests/hostile/run.py --kind {tally.kind} --case {case}"
            yield f"\n{again}\n    {sort}: {told}"


def _row(name: str, counts: Sequence[int], seconds: float) -> str:
    return f"{name:14}" + "".join(f"{count:10,}" for count in counts) + f"{seconds:10.1f}"


def main() -> int:
    """Run what the words of the command ask for; 1 if a case was not answered properly."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--long", action="store_true", help="thousands of cases, not hundreds")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--count", type=int, help="so many cases of each kind")
    parser.add_argument("--kind", choices=KINDS, action="append", help="this kind alone")
    parser.add_argument("--case", type=int, help="this case alone, with its traceback")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores, help="processes; default: one a core")
    given = parser.parse_args()
    names = given.kind or list(KINDS)
    if given.case is not None:
        tallies = [run_kind(name, [given.case], raising=True) for name in names]
    else:
        counts = {name: _number(given, KINDS[name]) for name in names}
        found = run_all(portions_of(counts, given.seed), given.jobs)
        tallies = [found[name] for name in names]
    print("\n".join(report(tallies)))
    return int(any(tally.failures for tally in tallies))


def _number(given: argparse.Namespace, kind: type[Kind]) -> int:
    return given.count or (kind.long if given.long else kind.quick)


if __name__ == "__main__":
    sys.exit(main())
