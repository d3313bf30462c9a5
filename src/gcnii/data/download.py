"""Files of the catalog: from the cache, a mirror or upstream, in this order, and always checked.

A download is streamed to a temporary file, resumed if cut off, and moved into place.  A server can
neither hold it up nor fill the disk: the rate and the size of a file have limits.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import time
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPMessage, HTTPResponse, InvalidURL
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, BinaryIO
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from gcnii.data.catalog import CATALOG, File, lookup
from gcnii.errors import DataError
from gcnii.files import atomic_write, user_path

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
        since, before = time.monotonic(), out.tell()
        while chunk := _read(response):
            refuse_larger(shown, out.tell() + len(chunk), size)
            out.write(chunk)
            advance(out.tell(), total)
            # A timeout of the socket is not enough: it begins anew with each byte.
            if (passed := time.monotonic() - since) >= WINDOW:
                if out.tell() - before < SLOWEST * passed:
                    raise _CutError(f"slower than {SLOWEST:,} bytes per second")
                since, before = time.monotonic(), out.tell()
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
        opener = build_opener(_Redirection)
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
        return response.read1(CHUNK)
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


RETRY = "try again, or set GCNII_MIRROR to a folder or address that has the right one"


def cache_folder() -> Path:
    """Where fetched files are kept: $GCNII_DATA, else the user's cache folder."""
    if chosen := os.environ.get("GCNII_DATA"):
        return user_path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("gcnii")


def fetch(name: str, offline: bool = False) -> list[Path]:
    """The paths of a data set's files in the catalog's order, neighbourhoods last; all checked.

    Missing files are downloaded, unless `offline` is true or $GCNII_OFFLINE is 1.
    """
    entry = lookup(name)
    return fetch_files(name, (*entry.files, *entry.neighbourhoods.values()), offline)


def fetch_neighbourhood(name: str, geometry: str, offline: bool = False) -> Path | None:
    """The file of neighbours that Geom-GCN published for a data set of the catalog, or None."""
    file = CATALOG[name].neighbourhoods.get(geometry) if name in CATALOG else None
    return None if file is None else fetch_files(name, (file,), offline)[0]


def fetch_files(name: str, files: tuple[File, ...], offline: bool = False) -> list[Path]:
    """The paths of these files of the data set `name`; see `fetch`."""
    at_hand = {file: _at_hand(file) for file in files}
    missing = [file for file, path in at_hand.items() if path is None]
    if missing and (offline or os.environ.get("GCNII_OFFLINE", "0") not in ("", "0")):
        raise DataError(_advice(name, missing))
    _download(missing)
    return [path or cache_folder() / file.path for file, path in at_hand.items()]


def _at_hand(file: File) -> Path | None:
    """The path of a good copy in the cache or in a mirror that is a folder, or None."""
    cached = cache_folder() / file.path
    if cached.is_file() and agrees(cached, file.digest):
        return cached
    mirror = os.environ.get("GCNII_MIRROR", "")
    if not mirror or _is_address(mirror):
        return None
    if not (folder := user_path(mirror)).is_dir():
        raise DataError(
            f"GCNII_MIRROR must be a folder or an http(s) address, "
            f"got {without_password(mirror)!r}; "
            "correct or unset it"
        )
    mirrored = folder / file.path
    if not mirrored.is_file():
        return None
    check(mirrored, file.digest, str(mirrored), "replace it, or unset GCNII_MIRROR")
    return mirrored


def _is_address(mirror: str) -> bool:
    return mirror.startswith(("http://", "https://"))


def _advice(name: str, missing: list[File]) -> str:
    first = missing[0].path
    more = f" (and {len(missing) - 1} more)" if missing[1:] else ""
    return (
        f"no good copy of {first}{more} for {name!r} on this machine, and the network is off: "
        f"run `gcnii data fetch {name}` with a network, set GCNII_MIRROR to a folder that has it, "
        f"or copy it to {cache_folder() / first}"
    )


def _download(files: list[File]) -> None:
    """Download files into the cache, from a mirror's address if it has them, else from upstream."""
    mirror = os.environ.get("GCNII_MIRROR", "")
    if files and _is_address(mirror):
        refuse_address(mirror, "GCNII_MIRROR")
        files = [file for file in files if not _mirrored(file, mirror)]
    for file in files:
        if not file.archived:
            _single(file, file.url)
    for archive in dict.fromkeys(file.url for file in files if file.archived):
        _unpacked(archive, [file for file in files if file.url == archive])


def _mirrored(file: File, mirror: str) -> bool:
    try:
        _single(file, f"{mirror.rstrip('/')}/{file.path}")
    except NotThereError:
        return False
    return True


def _single(file: File, url: str) -> None:
    target = cache_folder() / file.path
    with placed(target) as part:
        receive(url, part, file.size)
        check(part, file.digest, without_password(url), RETRY)


def _unpacked(url: str, files: list[File]) -> None:
    """Download an archive and extract these files into the cache, found by name in any folder."""
    with TemporaryDirectory() as folder:
        archive = Path(folder) / "archive.zip"
        receive(url, archive)
        try:
            with zipfile.ZipFile(archive) as members:
                inside = {
                    PurePosixPath(member.filename).name: member for member in members.infolist()
                }
                for file in files:
                    if file.name not in inside:
                        raise DataError(f"{url} holds no {file.name}; {RETRY}")
                    _extract(members, inside[file.name], file, url)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise DataError(f"{url} is not a readable zip archive ({error}); {RETRY}") from error


def _extract(members: zipfile.ZipFile, member: zipfile.ZipInfo, file: File, url: str) -> None:
    # The target is the catalog's path, not the archive's, so that no member can escape the cache.
    target, what = cache_folder() / file.path, f"{file.name} in {url}"
    refuse_larger(what, member.file_size, file.size)  # zipfile unpacks no more than that
    with placed(target) as part:
        with members.open(member) as source, part.open("wb") as out:
            shutil.copyfileobj(source, out)
        check(part, file.digest, what, RETRY)


def measure(path: Path, kind: str) -> str:
    """The digest `kind:hex` of a file; kind is `sha256`, or `git` for the SHA-1 of a git blob."""
    digest = hashlib.sha256() if kind == "sha256" else hashlib.sha1(usedforsecurity=False)
    try:
        if kind == "git":  # the hash of "blob LENGTH NUL CONTENT"
            digest.update(b"blob %d\0" % path.stat().st_size)
        with path.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    except OSError as error:
        raise DataError(
            f"cannot read {path} ({error.strerror}); make it readable or remove it"
        ) from error
    return f"{kind}:{digest.hexdigest()}"


def agrees(path: Path, digest: str) -> bool:
    """Whether the file has this digest."""
    return measure(path, digest.partition(":")[0]) == digest


def check(path: Path, digest: str, what: str, remedy: str) -> None:
    """Raise DataError unless the file at `path`, called `what`, has this digest."""
    found = measure(path, digest.partition(":")[0])
    if found != digest:
        raise DataError(
            f"{what} is not the file in the catalog: expected {digest}, got {found}; {remedy}"
        )
