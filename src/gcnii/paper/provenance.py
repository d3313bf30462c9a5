"""Where a measured number comes from: versions of the software, and the commit of this code."""

from __future__ import annotations

import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import gcnii
from gcnii.train.results.git import ask, git_state

PACKAGES = ("torch", "triton", "torch-geometric", "numpy")


@cache
def versions() -> dict[str, str | None]:
    """package → version; None where it is not installed."""

    def version(package: str) -> str | None:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return None

    own = {"gcnii": gcnii.__version__, "python": ".".join(map(str, sys.version_info[:3]))}
    return own | {package: version(package) for package in PACKAGES}


@cache
def commit() -> str | None:
    """The commit of this code, marked `-dirty` if files differ; None outside its own repository.

    Git is asked once.  Call this before the work begins: a commit made while a table runs must not
    change what is recorded, because the code that computes the table has been loaded already.
    """
    here = Path(__file__)
    # The folder may lie in a repository that is not its own, such as a virtual environment within
    # another project.
    own = ask(["git", "-C", str(here.parent), "ls-files", "--error-unmatch", here.name])
    return git_state(here.parent, 7) if own else None
