"""gcnii report: the measured results as pages and figures."""

from __future__ import annotations

import sys
from pathlib import Path

from gcnii.cli.options import Overwrite, refuse_unwritable
from gcnii.errors import InputError


def html(
    *,
    out: Path = Path("report.html"),
    overwrite: Overwrite = False,
    results: Path = Path("results"),
) -> None:
    """Write one HTML page with every table, seed and figure, and the figures as SVG and PNG.

    Parameters
    ----------
    out
        The page; the figures are written beside it.
    results
        The folder with cells/ and, optionally, doctor/.
    """
    from gcnii_paper.report.page import write_page

    if out.is_dir():
        raise InputError(
            f"--out {out} is a folder; name the page in it, such as {out / 'report.html'}"
        )
    refuse_unwritable(out.parent)
    for path in write_page(results, out, overwrite=overwrite):
        print(path)


def readme(root: Path = Path(), /) -> None:
    """Rewrite the tables and figures of README.md and docs/ from results/.

    Parameters
    ----------
    root
        The project's folder, with README.md and results/.
    """
    from gcnii_paper.report.performance import old_records
    from gcnii_paper.report.readme import update_readme

    for path in update_readme(root):
        print(path)
    for sentence in old_records(root):
        print(sentence, file=sys.stderr)
