"""JSON documents: written whole, and read back only where they have the shape that they were written with.

A shape is a type or several in a tuple, a set of allowed words, `[shape]` for a list of these, `{str: shape}` for an
object with any names, or `{"name": shape, …}` for one with at least these; `Maybe(shape)` there may be absent, and
`(shape, NOTHING)` may be null.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from gcnii.atomic import whole

Document = dict[str, Any]
NUMBER = (int, float)
NOTHING = type(None)
CALLED = {
    **{bool: "true or false", int: "a whole number", float: "a number", str: "text", dict: "an object", list: "a list"},
    NOTHING: "null",
}


class Maybe(NamedTuple):
    """The shape of what an object may also lack."""

    shape: Any


def write_document(path: Path, document: Document) -> Path:
    """Put it there, whole."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    with whole(path) as temporary:
        # A folder's name need not be text: what UTF-8 cannot say of it stands there as JSON's own escape.
        temporary.write_text(text, "utf-8", "backslashreplace")
    return path


def read_document(path: Path, shape: Any, what: str) -> Document:
    """What stands there; `what` it should have been is told where it is not."""
    try:
        document = json.loads(path.read_text("utf-8"), parse_constant=lambda word: None)  # NaN is no JSON
        check(document, shape)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no {what}: {error}; restore it, or move it away") from None
    return dict(document)


def check(value: Any, shape: Any, name: str = "it") -> None:
    """Refuse a value of another shape, by the first place where it differs."""
    if wrong := next(_misfits(value, shape, name), None):
        raise ValueError(wrong)


def _misfits(value: Any, shape: Any, name: str) -> Iterator[str]:
    match shape:
        case list() | dict() as some, none if none is NOTHING:
            if value is not None:
                yield from _misfits(value, some, name)
        case set() | frozenset():
            if not isinstance(value, str) or value not in shape:
                yield f"{name} must be one of {', '.join(sorted(shape))}, got {_short(value)}"
        case [each]:
            yield from _misfits(value, list, name)
            for i, one in enumerate(value if isinstance(value, list) else ()):
                yield from _misfits(one, each, f"{name}[{i}]")
        case dict():
            yield from _misfits(value, dict, name)
            if isinstance(value, dict):
                yield from _within(value, shape, name)
        case _:
            kinds = shape if isinstance(shape, tuple) else (shape,)
            number = isinstance(value, float) and not isfinite(value)
            if number or not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                yield f"{name} must be {_called(kinds)}, got {_short(value)}"


def _within(value: Document, shape: dict[Any, Any], name: str) -> Iterator[str]:
    place = "" if name == "it" else f"{name}."
    if str in shape:
        for key, one in value.items():
            yield from _misfits(one, shape[str], f"{place}{key}")
        return
    for key, expected in shape.items():
        optional = isinstance(expected, Maybe)
        if key in value:
            yield from _misfits(value[key], expected.shape if optional else expected, f"{place}{key}")
        elif not optional:
            yield f"{place}{key} is missing"


def _called(kinds: tuple[type, ...]) -> str:
    if set(kinds) >= set(NUMBER):
        kinds = tuple(kind for kind in kinds if kind is not int)
    return " or ".join(CALLED[kind] for kind in kinds)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
