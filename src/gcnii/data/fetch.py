"""Files of the catalog: from the cache, a mirror or upstream, in this order, and always checked."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from gcnii.data.catalog import CATALOG, lookup
from gcnii.data.download import (
    NotThereError,
    placed,
    receive,
    refuse_address,
    refuse_larger,
    without_password,
)
from gcnii.data.entry import File
from gcnii.errors import DataError
from gcnii.files import user_path

RETRY = "try again, or set GCNII_MIRROR to a folder or address that has the right one"

CHUNK = 1 << 20


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
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
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
