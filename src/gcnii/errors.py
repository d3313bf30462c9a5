"""Every error that gcnii raises on purpose is a `GcniiError`; its message says what was expected,
what came, what to do.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class GcniiError(Exception):
    """The base class: `except gcnii.GcniiError` catches whatever this package refuses."""


class InputError(GcniiError, ValueError):
    """A value that was given cannot be used."""


class GraphError(InputError):
    """The data does not describe a graph."""


class DataError(InputError):
    """A data set cannot be found, fetched or read."""


class BundleError(InputError):
    """A folder does not hold a bundle, or not a complete one."""


class UsageError(GcniiError, RuntimeError):
    """A call came at the wrong time."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'cora'? ` where a known word is close to this one, else nothing: a part of an
    error's sentence.
    """
    close = get_close_matches(word.lower(), list(known), 1)
    return f"did you mean {close[0]!r}? " if close else ""
