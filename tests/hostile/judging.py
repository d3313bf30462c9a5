"""What a proper answer is: a value, or one sentence; in bounded time and memory."""

import resource
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, Protocol

from gcnii.errors import GcniiError

SECONDS = 10.0  # of the processor; a case takes milliseconds
WAITING = 30.0  # seconds of the clock, for what waits for something that never comes
MEMORY = 4 << 30  # bytes beyond those that the process has
LONGEST = 1000  # characters of a sentence


class Wrong(Exception):
    """An answer that is not proper; the message says what was done and what came."""

    sort = "other"

    def after(self, told: str) -> "Wrong":
        """The same, with what was done before it."""
        return type(self)(f"{told}: {self}")


class Silent(Wrong):
    """What was accepted is not what was given, and no word says so."""

    sort = "silent"


class Lost(Wrong):
    """Something that was there is gone or changed, or something is there that should not be."""

    sort = "lost"


class Hung(Wrong):
    """No answer within the time or the memory."""

    sort = "hung"


class Traceback(Wrong):
    """An error that is not a sentence."""

    sort = "traceback"


SORTS = ("silent", "traceback", "hung", "lost", "other")


class TooLong(BaseException):
    """The time is over; not an Exception, so that nothing answers it but the judge."""


class Skipped(Exception):
    """This machine cannot run the kind; the message says why."""


class Kind(Protocol):
    """A kind of hostility.

    name              names it in the table and among the seeds
    few, quick, long  the number of cases in the tests, in the slow tests and in a long run
    """

    name: str
    few: int
    quick: int
    long: int

    def __init__(self, home: Path): ...

    def attempt(self, random: Random, folder: Path) -> None:
        """Run one case in an empty folder; raise Wrong if the answer is not proper."""

    def close(self) -> None:
        """End what was started for all cases."""


class Answer(NamedTuple):
    """A value or, if there is none, the sentence with which it was refused; and the warnings."""

    value: Any
    sentence: str
    warnings: list[str]


def answer_of(make: Callable[[], Any]) -> Answer:
    """What `make` returns or refuses; any error but a GcniiError is not caught."""
    value, sentence = None, ""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        # numpy leaves an archive that it cannot read to the garbage collector
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            with bounded():
                value = make()
        except GcniiError as error:
            sentence = str(error)
            if not sentence:
                raise Wrong("an error without a word") from None
    told = [str(one.message) for one in said]
    for one in said:
        if one.category is not UserWarning:
            place = f"{Path(one.filename).name}:{one.lineno}"
            raise Wrong(f"a {one.category.__name__} of another library at {place}: {one.message}")
    for words in (sentence, *told):
        judge_sentence(words)
    return Answer(value, sentence, told)


def judge_sentence(words: str) -> None:
    """Raise Wrong unless the words are one line that a terminal can show."""
    if "\n" in words or "\r" in words:
        raise Wrong(f"more than one line: {words[:300]!r}")
    if "\x1b" in words:
        raise Wrong(f"an escape sequence for the terminal: {words[:300]!r}")
    if len(words) >= LONGEST:
        raise Wrong(f"{len(words)} characters: {words[:100]!r}…")


@contextmanager
def bounded(seconds: float = SECONDS) -> Iterator[None]:
    """Within, no more than so many seconds of the processor, and WAITING and MEMORY."""

    def over(*_: object) -> None:
        raise TooLong

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    timers = {signal.SIGALRM: signal.ITIMER_REAL, signal.SIGPROF: signal.ITIMER_PROF}
    before = {number: signal.signal(number, over) for number in timers}
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except TooLong:
        raise Hung(f"no answer within {seconds:.0f} s") from None
    except MemoryError:
        raise Hung(f"more than {MEMORY >> 30} GiB of memory") from None
    finally:
        for number, timer in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def nothing_written(folder: Path) -> Iterator[None]:
    """Raise Lost if a file below the folder is new, gone or changed afterwards."""
    before = contents(folder)
    yield
    if (after := contents(folder)) != before:
        changed = sorted({name for name, _ in before.items() ^ after.items()})
        raise Lost(f"wrote to {', '.join(changed)}")


def contents(folder: Path) -> dict[str, str]:
    """Relative path → digest, of all files below a folder."""
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
