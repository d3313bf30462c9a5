"""The errors gcnii raises; a message says what was expected, what was given, and what to do."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class GcniiError(Exception):
    """Base class of all errors that gcnii raises on purpose."""


class InputError(GcniiError, ValueError):
    """A value from the user cannot be used."""


class GraphError(InputError):
    """The data does not describe a graph."""


class DataError(InputError):
    """A data set cannot be found, fetched or read."""


class BundleError(InputError):
    """A folder does not hold a complete bundle."""


class UsageError(GcniiError, RuntimeError):
    """A method was called at the wrong time."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'cora'? ` if a known word is close to this one, else "": part of a message."""
    close = get_close_matches(word.lower(), list(known), 1)
    return f"did you mean {close[0]!r}? " if close else ""


def some_of(names: Sequence[str]) -> str:
    """`'a', 'b', 'c' and 4 more`: a part of an error's sentence."""
    shown = ", ".join(map(repr, names[:3]))
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
