"""Is this file the one the catalog means?"""

import hashlib
from importlib import resources
from pathlib import Path

from gcnii.errors import DataError

CHUNK = 1 << 20


def measure(path: Path, kind: str) -> str:
    """The digest `kind:hex` of a file; kind is `sha256`, or `git` for the SHA-1 of `blob LENGTH NUL
    CONTENT`.
    """
    digest = hashlib.sha256() if kind == "sha256" else hashlib.sha1(usedforsecurity=False)
    try:
        if kind == "git":
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
    """Refuse the file at `path`, called `what`, unless it has this digest."""
    came = measure(path, digest.partition(":")[0])
    if came != digest:
        raise DataError(
            f"{what} is not the file the catalog means: expected {digest}, got {came}; {remedy}"
        )


def published() -> dict[str, str]:
    """path → digest for every file whose SHA-256 is known, from the packaged SHA256SUMS."""
    lines = resources.files("gcnii.data").joinpath("SHA256SUMS").read_text("ascii").splitlines()
    return {path: f"sha256:{sha256}" for sha256, path in map(str.split, lines)}
