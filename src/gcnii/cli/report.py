"""gcnii report: what was measured, as pages and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcnii.report.readme import update_readme


def readme(
    root: Annotated[Path, Parameter(help="The project's folder, with README.md and results/.")] = Path(), /
) -> None:
    """Rewrite the README's table and picture from results/."""
    for path in update_readme(root):
        print(path)
