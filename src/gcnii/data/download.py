"""One file over HTTP: streamed to a temporary file, resumed if cut off, and moved into place."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from gcnii.errors import DataError
from gcnii.files import atomic_write

CHUNK = 1 << 16
ATTEMPTS = 4
PAUSE = 0.5  # seconds before the second attempt; doubled for each one after it
TIMEOUT = 30.0  # seconds without a byte
TRANSIENT = {408, 429, 500, 502, 503, 504}  # HTTP errors that may be gone at the next attempt

Advance = Callable[[int, int | None], None]  # bytes so far, bytes in all


class NotThereError(DataError):
    """The server does not have the file."""


class _CutError(Exception):
    """The connection failed; another attempt may succeed."""


@contextmanager
def placed(target: Path) -> Iterator[Path]:
    """A temporary file that replaces `target` on success; DataError if it cannot be written.

    Its name is unique, so that two processes can fetch the same file at once.
    """
    try:
        with atomic_write(target) as part:
            yield part
    except OSError as error:
        reason = error.strerror or error
        raise DataError(
            f"cannot write {target} ({reason}); "
            "set GCNII_DATA to a writable folder with enough space"
        ) from error


def receive(url: str, part: Path) -> None:
    """Download `url` to the file `part`, in up to ATTEMPTS attempts."""
    with part.open("wb") as out, _progress(url.rpartition("/")[2]) as advance:
        for attempt in range(ATTEMPTS):
            time.sleep(PAUSE * 2 ** (attempt - 1) if attempt else 0)
            try:
                _attempt(url, out, advance)
                break
            except _CutError as cut:
                reason = str(cut)
        else:
            raise DataError(
                f"could not download {url} in {ATTEMPTS} attempts ({reason}); "
                "check the network, or set GCNII_MIRROR to a folder or address that has the file"
            )


def _attempt(url: str, out: BinaryIO, advance: Advance) -> None:
    start = out.tell()
    with _open(url, start) as response:
        sent = response.headers.get("Content-Range") or ""
        if start and not sent.startswith(f"bytes {start}-"):
            start = out.seek(0)  # the server sends the whole file again
            out.truncate()
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        while chunk := _read(response):
            out.write(chunk)
            advance(out.tell(), total)
    if total is not None and out.tell() < total:
        raise _CutError(f"the connection was cut after {out.tell()} of {total} bytes")


def _open(url: str, start: int) -> HTTPResponse:
    headers = {"User-Agent": "gcnii", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=TIMEOUT)
        return response
    except HTTPError as error:
        error.close()
        if start and error.code == 416:
            return _open(url, 0)  # the file has become shorter
        raise _refusal(url, error) from None
    except (OSError, HTTPException) as error:
        raise _CutError(str(getattr(error, "reason", error))) from error


def _refusal(url: str, error: HTTPError) -> Exception:
    answer = f"HTTP {error.code} {error.reason}"
    if error.code in TRANSIENT:
        return _CutError(answer)
    kind = NotThereError if error.code in (404, 410) else DataError
    return kind(
        f"could not download {url} ({answer}); set GCNII_MIRROR to a folder or address that has it"
    )


def _read(response: HTTPResponse) -> bytes:
    try:
        return response.read(CHUNK)
    except (OSError, HTTPException) as error:
        raise _CutError(str(error) or type(error).__name__) from error


@contextmanager
def _progress(name: str) -> Iterator[Advance]:
    """A progress bar on stderr if that is a terminal; nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
