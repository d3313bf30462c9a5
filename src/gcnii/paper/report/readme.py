"""README's table, the pages of results, speed and advice, and the picture, made from results/: no
number is typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from gcnii.errors import InputError
from gcnii.files import atomic_write
from gcnii.paper.forecast import read_records as read_advice
from gcnii.paper.report.figures.depth import draw_depth
from gcnii.paper.report.forecast_tables import advice_tables
from gcnii.paper.report.markdown import results_page, scores_table
from gcnii.paper.report.speed import (
    Record,
    many_sentence,
    read_record,
    read_records,
    speed_sentence,
    speed_tables,
)
from gcnii.paper.tables.cells import MeasuredCell, read_cells

PLACE = re.compile(
    r"(<!-- results: made by `gcnii report readme` -->\n).*?(<!-- end of results -->)", re.DOTALL
)


def update_readme(root: Path) -> list[Path]:
    """Rewrite the marked parts of README.md and two pages of docs/, docs/results.md and
    docs/depth.png.
    """
    if not (root / "README.md").is_file():
        raise InputError(f"{root} has no README.md; give the project's folder")
    cells, records = (
        read_cells(root / "results" / "cells"),
        read_records(root / "results" / "bench"),
    )
    advice = advice_tables(read_advice(root / "results" / "forecast"))
    texts = {
        root / "README.md": _filled(root / "README.md", summary(cells, root / "results" / "bench")),
        root / "docs" / "performance.md": _filled(
            root / "docs" / "performance.md", speed_tables(records)
        ),
        root / "docs" / "filters-learned.md": _filled(root / "docs" / "filters-learned.md", advice),
        root / "docs" / "results.md": results_page(cells),
    }
    picture = draw_depth(root / "docs" / "depth.png", cells)
    for path, words in texts.items():
        with atomic_write(path) as temporary:
            temporary.write_text(words, "utf-8")
    return [*texts, picture]


def summary(cells: Iterable[MeasuredCell], bench: Path) -> str:
    """What the README says of results: Table 2, and the time of an epoch."""

    def record(name: str) -> Record:
        case, _, device = name.rpartition("-")
        if not (path := bench / f"{name}.json").exists():
            raise InputError(
                f"there is no {path}; `gcnii bench {case} --device {device}` measures it"
            )
        return read_record(path)

    on_cpu = speed_sentence(record("cora-1-cpu"))
    return (
        scores_table(cells) + on_cpu + many_sentence(record("cora-1-cuda"), record("cora-100-cuda"))
    )


def _filled(path: Path, measured: str) -> str:
    """The file's text with its marked part replaced."""
    text, places = PLACE.subn(
        lambda marks: f"{marks[1]}{measured}{marks[2]}", path.read_text("utf-8")
    )
    if places != 1:
        raise InputError(
            f"{path} must have one place for results, between two comments, got {places}"
        )
    return text
