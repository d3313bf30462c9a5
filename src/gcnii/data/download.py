"""One file over HTTP: streamed to a temporary file, resumed if cut off, and moved into place.

A server can neither hold a download up nor fill the disk: its answer, its rate and the size of the
file have limits.
"""

from __future__ import annotations

import re
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPMessage,
    HTTPResponse,
    HTTPSConnection,
    InvalidURL,
)
from io import BufferedReader, RawIOBase
from pathlib import Path
from socket import socket
from typing import IO, TYPE_CHECKING, Any, BinaryIO
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from gcnii.errors import DataError
from gcnii.files import atomic_write

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK = 1 << 16
ATTEMPTS = 4
PAUSE = 0.5  # seconds before the second attempt; doubled for each one after it
TIMEOUT = 30.0  # seconds without a byte
WINDOW = 60.0  # seconds over which the rate is measured
SLOWEST = 1000  # bytes per second
LARGEST = 1 << 30  # bytes of a file whose size the catalog does not know
LONGEST_REASON = 80  # characters of what a server says
TRANSIENT = {408, 429, 500, 502, 503, 504}  # HTTP errors that may be gone at the next attempt
ELSEWHERE = "set GCNII_MIRROR to a folder or address that has it"

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


def without_password(url: str) -> str:
    """The address as it may be printed and asked for: without the user and the password."""
    return re.sub(r"^(\w+://)?[^/?#]*@", r"\1", url)


def refuse_address(url: str, what: str) -> None:
    """Raise DataError if `url`, called `what`, is not an http(s) address."""
    try:
        parts = urlsplit(url)
        sound = bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not (sound and url.isascii() and url.isprintable() and " " not in url):
        shown = url.rpartition("@")[2]  # what is before may be a password
        raise DataError(
            f"{what} is not a valid http(s) address, got {shown!r}; "
            "write it as https://host/path, with other characters percent-encoded"
        )


def receive(url: str, part: Path, size: int | None = None) -> None:
    """Download `url`, of at most `size` bytes, to the file `part`, in up to ATTEMPTS attempts."""
    with part.open("wb") as out, _progress(url.rpartition("/")[2]) as advance:
        for attempt in range(ATTEMPTS):
            time.sleep(PAUSE * 2 ** (attempt - 1) if attempt else 0)
            try:
                _attempt(url, out, size, advance)
                break
            except _CutError as cut:
                reason = str(cut)
        else:
            raise DataError(
                f"could not download {without_password(url)} in {ATTEMPTS} attempts ({reason}); "
                "check the network, or set GCNII_MIRROR to a folder or address that has the file"
            )


def _attempt(url: str, out: BinaryIO, size: int | None, advance: Advance) -> None:
    start, shown = out.tell(), without_password(url)
    with _open(url, start) as response:
        sent = response.headers.get("Content-Range") or ""
        if start and not sent.startswith(f"bytes {start}-"):
            start = out.seek(0)  # the server sends the whole file again
            out.truncate()
        total = None if response.length is None else start + response.length
        refuse_larger(shown, total or 0, size)
        while chunk := _read(response):
            refuse_larger(shown, out.tell() + len(chunk), size)
            out.write(chunk)
            advance(out.tell(), total)
    if total is not None and out.tell() < total:
        raise _CutError(f"the connection was cut after {out.tell()} of {total} bytes")


def refuse_larger(what: str, size: int, most: int | None) -> None:
    """Raise DataError if `what` has more bytes than the catalog says, or else than LARGEST."""
    most = LARGEST if most is None else most
    if size > most:
        raise DataError(
            f"{what} has more than {most:,} bytes, the most expected; try again, or {ELSEWHERE}"
        )


def _open(url: str, start: int) -> HTTPResponse:
    try:
        opener = build_opener(_Http, _Https, _Redirection)
        response: HTTPResponse = opener.open(_request(url, start), timeout=TIMEOUT)
        return response
    except HTTPError as error:
        error.close()
        if start and error.code == 416:
            return _open(url, 0)  # the file has become shorter
        raise _refusal(url, error) from None
    except (InvalidURL, ValueError) as error:  # also of an address that the server redirects to
        raise DataError(
            f"could not download {without_password(url)} ({error}); {ELSEWHERE}"
        ) from None
    except (OSError, HTTPException) as error:
        raise _CutError(_reason(error)) from error


def _request(url: str, start: int) -> Request:
    """The request, with the user and password of the address as its authorization."""
    request = Request(without_password(url), headers={"User-Agent": "gcnii"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    user, given, _ = urlsplit(url).netloc.rpartition("@")
    if given:  # not for the server of a redirection
        word = b64encode(unquote(user).encode()).decode()
        request.add_unredirected_header("Authorization", f"Basic {word}")
    return request


class _Paced(RawIOBase):
    """What comes from a socket; TimeoutError if it is slower than SLOWEST over WINDOW seconds.

    A timeout of the socket is not enough: it begins anew with each byte.
    """

    def __init__(self, raw: RawIOBase):
        self.raw, self.since, self.received = raw, time.monotonic(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int | None:
        count = self.raw.readinto(buffer)
        self.received += count or 0
        passed = time.monotonic() - self.since
        if passed >= WINDOW:
            if self.received < SLOWEST * passed:
                raise TimeoutError(f"slower than {SLOWEST:,} bytes per second")
            self.since, self.received = time.monotonic(), 0
        return count

    def close(self) -> None:
        self.raw.close()
        super().close()


class _PacedResponse(HTTPResponse):
    """A response whose headers and body are paced."""

    def __init__(self, sock: socket, *arguments: Any, **more: Any):
        super().__init__(sock, *arguments, **more)
        self.fp = BufferedReader(_Paced(self.fp.detach()))


def _connected(kind: type[HTTPConnection], host: str, **how: Any) -> HTTPConnection:
    connection = kind(host, **how)
    connection.response_class = _PacedResponse
    return connection


class _Http(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_connected, HTTPConnection), req)


class _Https(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(partial(_connected, HTTPSConnection), req)


class _Redirection(HTTPRedirectHandler):
    """To http and https alone; urllib would follow one to ftp, and first read all of its body."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        fp.close()
        if not newurl.startswith(("http://", "https://")):
            raise DataError(
                f"could not download {without_password(req.full_url)}, which redirects to "
                f"{without_password(newurl)}; {ELSEWHERE}"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _refusal(url: str, error: HTTPError) -> Exception:
    answer = f"HTTP {error.code} {' '.join(str(error.reason).split())[:LONGEST_REASON]}"
    if error.code in TRANSIENT:
        return _CutError(answer)
    kind = NotThereError if error.code in (404, 410) else DataError
    return kind(f"could not download {without_password(url)} ({answer}); {ELSEWHERE}")


def _read(response: HTTPResponse) -> bytes:
    try:
        return response.read(CHUNK)
    except (OSError, HTTPException) as error:
        raise _CutError(_reason(error)) from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", error)) or type(error).__name__


@contextmanager
def _progress(name: str) -> Iterator[Advance]:
    """A progress bar on stderr if that is a terminal; nothing otherwise."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich import progress as bar
    from rich.console import Console

    columns = (
        bar.TextColumn("{task.description}", markup=False),
        bar.BarColumn(),
        bar.DownloadColumn(),
        bar.TransferSpeedColumn(),
        bar.TimeRemainingColumn(),
    )
    with bar.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
