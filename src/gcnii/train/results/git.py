"""The git state of a folder; nothing here loads torch."""

from __future__ import annotations

import subprocess
from pathlib import Path

PATIENCE = 10  # seconds, in a large repository


def git_state(folder: Path, digits: int = 40) -> str | None:
    """The commit of the repository around a folder, marked `-dirty` if files differ; else None."""
    # A repository can name a program as its fsmonitor, and git would run it.
    git = ["git", "-C", str(folder), "-c", "core.fsmonitor=false"]
    return ask([*git, "describe", "--always", f"--abbrev={digits}", "--dirty", "--exclude", "*"])


def ask(command: list[str]) -> str | None:
    """What a program prints; None if it is not there, fails, or takes too long."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
        return run.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
