"""Files that are written whole or not at all, and JSON documents that are checked against a shape
when they are read.

A shape is
    a type                   float takes whole numbers too, and neither takes true or false, nor
                             what is not finite
    {"good", "bad"}          one of these words
    [shape]                  a list of these; [a, b]: a list of two, of these shapes
    {"name": shape, …}       an object with these names and perhaps others; those of Maybe(shape)
                             may be absent
    Only({"name": shape, …}) an object with no other names
    {str: shape}             an object with any names
    (shape, NOTHING)         one of several; NOTHING is null
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from gcnii.errors import InputError

Document = dict[str, Any]
Made = TypeVar("Made")
NOTHING = type(None)
CALLED = {
    **{
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text",
        dict: "an object",
        list: "a list",
    },
    NOTHING: "null",
}


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary file to write to; on leaving without an error it takes the place of `path`, else
    it is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        # mkstemp's files are private; what the user asked for need not be
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        if error.errno and not error.filename:  # a full disk does not say which file had no room
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@dataclass(frozen=True)
class Maybe:
    """The shape of what an object may also lack."""

    shape: Any


@dataclass(frozen=True)
class Only:
    """The names of an object that may have no others."""

    names: dict[str, Any]


def json_value(value: Any) -> Any:
    """The value as JSON has it: null for a number that is not finite, a list for a tuple."""
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    return [json_value(one) for one in value] if isinstance(value, tuple | list) else value


def write_document(path: Path, document: Document) -> Path:
    """Put it there, whole."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    with atomic_write(path) as temporary:
        # A folder's name need not be text: what UTF-8 cannot say of it stands there as JSON's own
        # escape.
        temporary.write_text(text, "utf-8", "backslashreplace")
    return path


def read_document(path: Path, shape: Any, what: str, make: Callable[[Document], Made]) -> Made:
    """What `make` makes of what stands there; where that is not `what` it should be, the sentence
    names the file.
    """
    try:
        # NaN is no JSON
        document = json.loads(path.read_text("utf-8"), parse_constant=lambda word: None)
        check(document, shape)
        return make(document)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no {what}: {error}; restore it, or move it away") from None


def check(value: Any, shape: Any, name: str = "") -> None:
    """Refuse a value of another shape, by the first place where it differs."""
    if wrong := next(_misfits(value, shape, name), None):
        raise InputError(wrong)


def _misfits(value: Any, shape: Any, name: str) -> Iterator[str]:
    choices = shape if type(shape) is tuple else (shape,)
    fits = [choice for choice in choices if _is_one(value, choice)]
    if not fits:
        yield f"{name or 'it'} must be {' or '.join(map(_called, choices))}, got {_short(value)}"
        return
    match fits[0]:
        case [each]:
            for i, one in enumerate(value):
                yield from _misfits(one, each, f"{name}[{i}]")
        case list() as each:
            for i, (one, own) in enumerate(zip(value, each, strict=True)):
                yield from _misfits(one, own, f"{name}[{i}]")
        case Only(names=names):
            yield from (f"{_at(name, key)} is unknown" for key in value if key not in names)
            yield from _within(value, names, name)
        case dict() as names:
            yield from _within(value, names, name)


def _is_one(value: Any, shape: Any) -> bool:
    """Whether it is of this kind, whatever it holds."""
    match shape:
        case set() | frozenset():
            return isinstance(value, str) and value in shape
        case list():
            return isinstance(value, list) and len(shape) in (1, len(value))
        case dict() | Only():
            return isinstance(value, dict)
    if isinstance(value, bool) or (isinstance(value, float) and not isfinite(value)):
        return shape is type(value) is bool
    return isinstance(value, (int, float) if shape is float else shape)


def _within(value: Document, names: dict[Any, Any], name: str) -> Iterator[str]:
    if str in names:
        names = dict.fromkeys(value, names[str])
    for key, shape in names.items():
        optional = isinstance(shape, Maybe)
        if key in value:
            yield from _misfits(value[key], shape.shape if optional else shape, _at(name, key))
        elif not optional:
            yield f"{_at(name, key)} is missing"


def _at(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def _called(shape: Any) -> str:
    match shape:
        case set() | frozenset():
            return f"one of {', '.join(sorted(shape))}"
        case list():
            return CALLED[list] if len(shape) == 1 else f"a list of {len(shape)}"
        case dict() | Only():
            return CALLED[dict]
    return CALLED[shape]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
