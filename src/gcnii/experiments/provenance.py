"""Where a measured number comes from: versions of the software, and the commit of this code."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import gcnii

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
    """Of the folder that this code lies in, with a mark where it differs from what is committed."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
