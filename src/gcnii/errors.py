"""The errors gcnii raises; a message says what was expected, what was given, and what to do."""

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from math import inf
from numbers import Integral, Real
from pathlib import Path

HOME = str(Path(__file__).parent)
LONGEST = 900  # characters of an error or a warning
LONGEST_LINE = 400  # characters of a sentence on stderr
# What a terminal obeys instead of showing it: control characters but newline and tab, separators of
# lines, and changes of the direction of writing.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class GcniiError(Exception):
    """Base class of all errors that gcnii raises on purpose."""

    def __str__(self) -> str:
        """One line that can be shown, whatever the values in it."""
        return one_line(super().__str__(), LONGEST)


class InputError(GcniiError, ValueError):
    """A value from the user cannot be used."""


class GraphError(InputError):
    """The data does not describe a graph."""


class DataError(InputError):
    """A data set cannot be found, fetched or read.

    Attributes
    ----------
    problems : tuple of str
        All that is wrong with it, one sentence each, where more than the first was looked for.
    columns
        What the columns of its tables were taken for, if it came to that.
    """

    def __init__(self, message: str, problems: Sequence[str] = (), columns: object = None):
        super().__init__(message)
        self.problems = tuple(problems) or (message,)
        self.columns = columns


class BundleError(InputError):
    """A folder does not hold a complete bundle."""


class UsageError(GcniiError, RuntimeError):
    """A method was called at the wrong time."""


class Problems:
    """What is wrong with a user's data, gathered so that all of it can be said at once."""

    SHOWN = 5  # of problems of one kind

    def __init__(self) -> None:
        self.found: list[str] = []
        self.columns: object = None

    def add(self, sentence: str) -> None:
        self.found.append(sentence)

    def add_each(self, rows: Iterable[int], sentence: Callable[[int], str]) -> None:
        """Note the same problem of several rows: the first few, and how many more there are."""
        rows = list(rows)
        self.found += [sentence(row) for row in rows[: self.SHOWN]]
        if len(rows) > self.SHOWN:
            self.found[-1] += f" (the same in {len(rows) - self.SHOWN:,} more rows)"

    def refuse(self) -> None:
        """Raise an error if anything was found."""
        if self.found:
            raise self.error()

    def error(self) -> DataError:
        """An error that says the first problem, and has them all."""
        more = len(self.found) - 1
        rest = f" ({more} more: see `gcnii data check` or error.problems)" if more else ""
        return DataError(self.found[0] + rest, self.found, self.columns)


def visible(text: str) -> str:
    """The text with control characters as escapes such as `\\x1b`; newlines and tabs stay."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(sentence: str, most: int = LONGEST_LINE) -> str:
    """A sentence that can be shown: visible, on one line, cut in the middle if it is too long.

    The middle holds long values; what was expected stands before it and what to do after it.
    """
    line = visible(sentence).replace("\n", "\\n")
    half = most // 2
    return line if len(line) <= most else f"{line[: half - 1]}…{line[-half:]}"


def notice(sentence: str) -> None:
    """Warn at the line of the caller's code, however deep in the package this is called."""
    depth, frame = 1, sys._getframe()
    while frame.f_back and frame.f_code.co_filename.startswith(HOME):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(one_line(sentence, LONGEST), stacklevel=depth)


def check_number(
    name: str, value: object, low: float, high: float = inf, *, whole: bool = False
) -> None:
    """Raise DataError unless the value is a (whole) number from low to high."""
    number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if not number or not low <= value <= high or value == inf:  # type: ignore[operator]
        kind = "an integer" if whole else "a number"
        bounds = f"≥ {low}" if high == inf else f"in [{low}, {high}]"
        raise DataError(f"{name} must be {kind} {bounds}, got {value!r}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'cora'? ` if a known word is close to this one, else "": part of a message."""
    close = get_close_matches(str(word)[:LONGEST_LINE].lower(), list(known), 1)
    return f"did you mean {close[0]!r}? " if close else ""


def suggestion(word: str, known: Sequence[str], lists: str = "") -> str:
    """What to give instead of an unknown word: part of a message.

    lists  the command that lists what is known, instead of this message
    """
    guess = did_you_mean(word, known)
    rest = f"{lists} lists them all" if lists else "" if guess else f"known: {', '.join(known)}"
    return f"{guess}{rest}".rstrip()


def is_one_of(value: object, words: Iterable[str]) -> bool:
    """Whether a value from the user is one of these words; anything but text is not.

    `value in words` fails for arrays and missing values, which have no truth, and in a dict for
    lists.
    """
    return isinstance(value, str) and value in words


def some_of(names: Sequence[str]) -> str:
    """`'a', 'b', 'c' and 4 more`: a part of an error's sentence."""
    shown = ", ".join(map(repr, names[:3]))
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
