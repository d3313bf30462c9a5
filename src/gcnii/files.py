"""Paths, atomic writes, JSON documents checked against a shape, and names of files.

A shape is
    int, str, bool, …        a value of this type; float also accepts integers; numbers must be
                             finite, and true and false are not numbers
    {"good", "bad"}          one of these strings
    [shape]                  a list of any length, each item of this shape
    [a, b]                   a list of exactly two items, of shapes a and b
    {"name": shape, …}       an object with these keys; other keys are ignored, and a key whose
                             shape is Maybe(shape) may be missing
    Only({"name": shape, …}) an object with these keys and no others
    {str: shape}             an object with any keys, each value of this shape
    (a, b, NOTHING)          any one of these shapes; NOTHING is null
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from gcnii.errors import InputError, one_line

Json: TypeAlias = Any  # what json.loads returns
Shape: TypeAlias = Any  # see above
Document: TypeAlias = dict[str, Json]
Made = TypeVar("Made")
STALE = 3600.0  # seconds without a write, after which a temporary file is nobody's
NOTHING = type(None)
TABLES = ("nodes", "edges", "features")  # names of files that are read from a user's folder
# The files of a bundle, which gcnii.results writes, and what may lie beside them.
WEIGHTS, CURVES, CARD = "model.safetensors", "curves.csv", "card.md"
BUNDLE = ("run.json", WEIGHTS, CURVES, CARD)
CHECKPOINT = "checkpoint.safetensors"
OF_A_BUNDLE = re.compile(
    "|".join(map(re.escape, BUNDLE)) + r"|checkpoint(\.previous)?\.safetensors|study\.(json|db.*)"
)
CALLED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    dict: "an object",
    list: "a list",
    NOTHING: "null",
}


DEEPEST = 50  # levels of a document
LONGEST_NAME = 100  # bytes; file systems take 255, and the names of files add to it


def one_name(text: str) -> str:
    """The text as the name of one file or folder: no path, not hidden, not too long."""
    name = one_line(text)
    for sign in {"/", os.sep, os.altsep or "/"}:
        name = name.replace(sign, "_")
    # What is not UTF-8 is left out, and so is half a letter at the end.
    short = name.encode("utf-8", "surrogatepass")[:LONGEST_NAME].decode("utf-8", "ignore")
    return short.lstrip(". ").rstrip() or "graph"


def user_path(path: str | Path) -> Path:
    """The path with ~ and ~user replaced by that folder; InputError if there is no such user."""
    if not isinstance(path, str | Path):
        raise InputError(f"expected the path of a file or folder as text or Path, got {path!r}")
    if path == "":  # which would be this folder
        raise InputError("expected the path of a file or folder, got ''")
    try:
        found = Path(path).expanduser()
    except RuntimeError:
        raise InputError(
            f"{path} begins with a user who has no folder here; write ./{path} if it is a name"
        ) from None
    with suppress(OSError):  # such as of a folder that may not be read, said by whoever needs it
        mode_of(found)
    return found


def mode_of(path: Path) -> int | None:
    """The type and permissions of what is there, None if nothing is.

    InputError for a path that no file can have: too long, with a NUL, or through a link that leads
    to itself.
    """
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # ValueError: of a NUL, or of half a surrogate pair
        number, reason = getattr(error, "errno", None), getattr(error, "strerror", error)
        if number not in (None, errno.ELOOP, errno.ENAMETOOLONG):
            raise
        advice = "replace the link" if number == errno.ELOOP else "choose another name"
        raise InputError(f"{path} cannot be read or written: {reason}; {advice}") from None


def refuse_special(path: Path) -> None:
    """Raise InputError for a pipe, a device or a folder: reading it might never end."""
    mode = mode_of(path)
    if mode is not None and not stat.S_ISREG(mode):
        raise InputError(f"{path} is not a regular file; copy what it holds into one")


def _is_of_a_bundle(path: Path) -> bool:
    return bool(OF_A_BUNDLE.fullmatch(path.name)) and (path.parent / "run.json").exists()


def refuse_replacing(
    path: Path,
    is_ours: Callable[[Path], bool],
    *,
    inputs: Iterable[Path | str | None] = (),
    overwrite: bool = False,
) -> None:
    """Raise InputError unless a file may be written here: the one rule for every output.

    A file that is new, empty or of our own making may be; any other if `overwrite`; but never an
    input, nor a file of a bundle.

    is_ours  whether an existing file is one that this output has written, judged by how it begins
    inputs   what is read: files, and folders whose files are; a bundle among them
    """
    try:
        mode = mode_of(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error}); choose another name") from None
    link = path.is_symlink()
    if mode is None and not link:
        return
    if mode is not None and not stat.S_ISREG(mode):
        raise InputError(f"{path} is not a regular file; choose another name")
    # A link is another's, wherever it leads to: nowhere, or to a file of a bundle.
    ours = not link and (not path.stat().st_size or is_ours(path))
    if mode is not None and any(_reads(Path(one), path, ours) for one in inputs if one):
        raise InputError(
            f"{path} is read by this command, so it is not replaced; choose another name"
        )
    if any(map(_is_of_a_bundle, (path, path.resolve()))):
        raise InputError(
            f"{path} is a file of a bundle, so it is not replaced; choose another name"
        )
    if not ours and not overwrite:
        raise InputError(
            f"{path} exists and gcnii did not write it; choose another name, or replace it "
            "(--overwrite; in Python, overwrite=True)"
        )


def _reads(source: Path, path: Path, ours: bool) -> bool:
    """Whether the file is what is read; of a folder, all that we have not put there."""
    if source.is_dir():
        inside = path.resolve().parent == source.resolve()
        return inside and not (ours and path.stem not in TABLES)
    return source.is_file() and path.samefile(source)


def first_bytes(path: Path, count: int = 2000) -> bytes:
    """The beginning of a file, by which we know those of our own making."""
    with path.open("rb") as file:
        return file.read(count)


def file_sha256(path: Path) -> str:
    """The digest of a file's bytes; InputError for a pipe or a device, which may have no end."""
    refuse_special(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def claimed(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """Claim the folder to write to; InputError if another process holds it for `patience` seconds.

    The claim is a lock, which the system takes back however its owner ends.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    path, deadline = folder / ".claim", time.monotonic() + patience
    while (lock := _lock(path)) is None:
        if time.monotonic() >= deadline:
            raise InputError(
                f"{folder} is being written to by {_owner(path)}; wait until it is done, or choose "
                "another folder"
            )
        time.sleep(0.02)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)
        with suppress(OSError):  # of what is not empty
            for one in missing:
                one.rmdir()


def _lock(path: Path) -> int | None:
    """The open file that holds the lock; None if another process holds it."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        refuse_special(path)
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # its folder has just been removed
            continue
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        except (ImportError, OSError):  # a system or a file system without locks
            return lock
        with suppress(OSError):  # of a full disk, which does not lock worse
            os.truncate(lock, 0)
            os.write(lock, f"process {os.getpid()} on {platform.node()}".encode())
        if path.exists() and os.path.samestat(os.fstat(lock), path.stat()):
            return lock
        os.close(lock)  # its owner has just removed it


def _owner(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace") or "another process"
    except OSError:  # it has just been removed
        return "another process"


@contextmanager
def disk_errors() -> Iterator[None]:
    """Let safetensors raise OSError when the disk refuses, as all other writers do."""
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary file to write to; it replaces `path` on success and is removed on an error.

    Its name holds the number of this process: see `remove_stale`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    # Made here, so that whoever opens it by name never meets another's file.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    mode = stat.S_IMODE(temporary.stat().st_mode)
    try:
        with naming(path):
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.chmod(mode)  # safetensors puts a file of its own here, for its owner alone
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Let the error of a full disk name the file, which it does not by itself."""
    try:
        yield
    except OSError as error:
        if error.errno and not error.filename:
            error.filename = str(path)
        raise


def remove_stale(path: Path) -> None:
    """Remove what killed processes have left of their `atomic_write(path)`.

    A temporary file is stale if the process of its name has ended, or if nobody has written to it
    for an hour: numbers of processes return, and older versions wrote none.
    """
    name = re.compile(rf"\.{re.escape(path.name)}\.(?:(\d+)\.)?[a-z0-9_]{{8}}")
    for entry in path.parent.iterdir() if path.parent.is_dir() else ():
        if (found := name.fullmatch(entry.name)) and _is_stale(entry, found[1]):
            with suppress(OSError):  # another process removes it too, or another user owns it
                entry.unlink()


def _is_stale(temporary: Path, process: str | None) -> bool:
    if process and not is_running(int(process)):
        return True
    try:
        return time.time() - temporary.stat().st_mtime > STALE
    except FileNotFoundError:  # its process has just put it in place
        return False


def is_running(process: int) -> bool:
    """Whether a process of this machine is running; one that waits to be reaped is not."""
    if os.name != "posix":
        return True  # elsewhere there is no signal that only asks
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's, or a system without /proc
        return True
    return state not in ("Z", "X")


@dataclass(frozen=True)
class Maybe:
    """The shape of a key that may be missing."""

    shape: Shape


@dataclass(frozen=True)
class Only:
    """The keys of an object that may have no others, each with its shape."""

    names: dict[str, Shape]


def json_value(value: Json) -> Json:
    """The value as JSON can store it: None for NaN and infinity, a list for a tuple."""
    if isinstance(value, float):
        return float(value) if isfinite(value) else None
    return [json_value(one) for one in value] if isinstance(value, tuple | list) else value


def document_key(document: Document) -> str:
    """16 hexadecimal digits that are the same for the same document, whatever its order."""
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_document(path: Path, document: Document) -> Path:
    """Write the document as JSON, atomically; return the path."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    with atomic_write(path) as temporary:
        # A path may hold bytes that are not valid UTF-8; they are written as JSON escapes.
        temporary.write_text(text, "utf-8", "backslashreplace")
    return path


def read_document(path: Path, shape: Shape, what: str, make: Callable[[Document], Made]) -> Made:
    """`make` applied to the document; InputError "{path} is not a {what}: …" if it does not fit."""
    refuse_special(path)
    try:
        # NaN is not JSON
        document = json.loads(path.read_text("utf-8"), parse_constant=lambda word: None)
        _refuse_deep(document)
        check(document, shape)
        return make(document)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a {what}: {error}; restore it, or move it away") from None


def _refuse_deep(document: Json) -> None:
    """Raise InputError for lists within lists within …, which would exhaust whoever walks them."""
    level = [document] if isinstance(document, dict | list) else []
    for _ in range(DEEPEST):
        inside = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for items in inside for item in items if isinstance(item, dict | list)]
        if not level:
            return
    raise InputError(f"it is nested more than {DEEPEST} levels deep")


def check(value: Json, shape: Shape, name: str = "") -> None:
    """Raise InputError for the first place where the value does not have the shape."""
    if wrong := next(_misfits(value, shape, name), None):
        raise InputError(wrong)


def _misfits(value: Json, shape: Shape, name: str) -> Iterator[str]:
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


def _is_one(value: Json, shape: Shape) -> bool:
    """Whether the value itself fits; what it contains is not looked at."""
    match shape:
        case set() | frozenset():
            return isinstance(value, str) and value in shape
        case list():
            return isinstance(value, list) and len(shape) in (1, len(value))
        case dict() | Only():
            return isinstance(value, dict)
    if isinstance(value, bool) or (isinstance(value, float) and not isfinite(value)):
        return shape is type(value) is bool
    if shape in (int, float) and isinstance(value, int):
        return -(2**63) <= value < 2**63  # a larger one fits no field of a ledger
    return isinstance(value, shape)


def _within(value: Document, names: dict[Any, Shape], name: str) -> Iterator[str]:
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


def _called(shape: Shape) -> str:
    match shape:
        case set() | frozenset():
            return f"one of {', '.join(sorted(shape))}"
        case list():
            return CALLED[list] if len(shape) == 1 else f"a list of {len(shape)}"
        case dict() | Only():
            return CALLED[dict]
    return CALLED[shape]


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
