"""Digests of files, and whether a file is the one the catalog lists."""

import hashlib
from importlib import resources
from pathlib import Path

from gcnii.errors import DataError

CHUNK = 1 << 20


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


def published() -> dict[str, str]:
    """path → digest of every file in the packaged SHA256SUMS."""
    lines = resources.files("gcnii.data").joinpath("SHA256SUMS").read_text("ascii").splitlines()
    return {path: f"sha256:{sha256}" for sha256, path in map(str.split, lines)}
