"""The README's table, parts of the pages in docs/, and their pictures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, stdev

from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, atomic_write
from gcnii.report.tables import markdown_table
from gcnii.targets.scores import percent
from gcnii.train.recipe import Recipe
from gcnii.tuning.question import BASELINES, OF_VIEWS
from gcnii_paper.ablating import ablation_tables
from gcnii_paper.calibrating import calibration_table
from gcnii_paper.defaults import defaults_tables, points_table, read_defaults
from gcnii_paper.documents import read_folder
from gcnii_paper.explaining import explaining_table
from gcnii_paper.hgb import typed_table
from gcnii_paper.rare import rare_table
from gcnii_paper.report.figures import draw_depth
from gcnii_paper.report.markdown import results_page, scores_table
from gcnii_paper.report.page import visit_markdown
from gcnii_paper.report.performance import (
    draw_speed,
    findings,
    read_records,
    short_comparison,
    speed_tables,
)
from gcnii_paper.report.scale import draw_growth, read_scale, scale_tables
from gcnii_paper.standing import BeyondRow, beyond_rows, findings_table, read_findings, section
from gcnii_paper.tables.cells import MeasuredCell, read_cells
from gcnii_paper.views import views_table

_TESTED = {"test_mean": (float, NOTHING), "test_std": (float, NOTHING), "test": list}
SHAPE = {
    "graph": str,
    "measured": str,
    "tried": int,
    "winner": {"model": str, "val": float},
    "final": _TESTED,
    "baselines": {str: _TESTED},
    "trials": [{"model": str}],
    "seconds": float,
    "command": str,
    "device": str,
}
HEADS = ("graph", "metric", "settings tried", "winner", "val", "test", *BASELINES, "seconds")


def tuning_table(folder: Path) -> str:
    """What `gcnii tune` reached: one row for each study, and the command behind each."""
    studies = read_folder(folder, SHAPE, "study", dict).values()
    table = markdown_table(HEADS, map(_cells, studies))
    devices = ", ".join(sorted({study["device"] for study in studies}))
    about = (
        f"On {devices}; test scores are mean ± deviation (runs), those of the baselines with the "
        "number of their settings among those tried. So by how much the graph helps is that of a "
        "tuned model over hardly tuned baselines. The commands:"
    )
    commands = [f"    {study['command']}" for study in studies]
    return "\n".join([table, about, "", *commands]) + "\n"


def _cells(study: Document) -> list[str]:
    final, others = study["final"], study["baselines"]
    spread = f"{percent(final['test_mean'])} ± {percent(final['test_std'])} ({len(final['test'])})"
    counts = Counter(trial["model"] for trial in study["trials"])
    plain = (
        f"{percent(others[one]['test_mean'])} ({counts[one]} tried)" if one in others else "–"
        for one in BASELINES
    )
    won = study["winner"]
    about = [study["graph"], study["measured"], str(study["tried"]), won["model"]]
    return [*about, percent(won["val"]), spread, *plain, f"{study['seconds']:.0f}"]


TRAINED = {"settings": dict, "runs": [{"test": float, "val": float}], "command": str}


def consistency_table(folder: Path) -> str:
    """What views give: one row for each output of `gcnii train --json` in a folder."""
    found = read_folder(folder, TRAINED, "training", dict).values()
    rows = sorted(found, key=lambda one: fmean(run["val"] for run in one["runs"]))
    return markdown_table(("further flags", "validation", "test"), map(_trained, rows))


def _trained(one: Document) -> list[str]:
    """The flags that are not at their defaults, the mean of validation, and that of test."""
    settings, runs = one["settings"], one["runs"]
    given = [name for name in OF_VIEWS if settings[name] != getattr(Recipe, name)]
    flags = " ".join(f"--{name.replace('_', '-')} {settings[name]:g}" for name in given)
    val, test = ([run[score] for run in runs] for score in ("val", "test"))
    spread = f"{percent(fmean(test))} ± {percent(stdev(test))} ({len(runs)})"
    return [f"`{flags}`" if flags else "none", percent(fmean(val)), spread]


PLACE = re.compile(
    r"(<!-- results: made by `gcnii report readme` -->\n).*?(<!-- end of results -->)", re.DOTALL
)


def update_readme(root: Path) -> list[Path]:
    """Rewrite the marked parts of README.md and docs/, and the pages that are all results."""
    readme, docs, results = root / "README.md", root / "docs", root / "results"
    if not readme.is_file():
        raise InputError(f"{root} has no README.md; give the project's folder")
    cells, bench, beyond = read_cells(results / "cells"), results / "bench", results / "beyond"
    rows = beyond_rows(cells, folder=beyond)
    measured = {
        "README.md": [summary(cells, bench)],
        "docs/evidence/performance.md": [findings(bench), speed_tables(read_records(bench))],
        "docs/understand/over-smoothing.md": [visit_markdown(results / "doctor" / "cora.json")],
        "docs/evidence/answers.md": [
            calibration_table(results / "calibration"),
            explaining_table(results / "explain" / "cora.json"),
            rare_table(results / "rare" / "default.json"),
        ],
        "docs/evidence/own-tables.md": [
            views_table(results / "views" / "twitch-engb.json"),
            typed_table(results / "typed"),
        ],
        "docs/evidence/beyond.md": [
            findings_table(read_findings(beyond / "studies")),
            ablation_tables(beyond / "ablation"),
        ],
        "docs/evidence/scale.md": [
            scale_tables(bench),
            speed_tables(read_records(results / "memory")),
        ],
        "docs/understand/defaults.md": [points_table()],
        "docs/evidence/settings.md": [
            defaults_tables(read_defaults(results / "defaults")),
            tuning_table(results / "tuning"),
            consistency_table(results / "consistency"),
        ],
    }
    texts = {root / page: _filled(root / page, *parts) for page, parts in measured.items()}
    texts[docs / "evidence" / "results.md"] = all_results(cells, rows)
    pictures = [
        draw_depth(docs / "pictures" / "depth.png", cells),
        draw_speed(docs / "pictures" / "speed.png", bench),
        draw_growth(docs / "pictures" / "scale-growth.png", read_scale(bench / "scale-cpu.json")),
    ]
    for path, words in texts.items():
        with atomic_write(path) as temporary:
            temporary.write_text(words, "utf-8")
    return [*texts, *pictures]


def all_results(cells: Sequence[MeasuredCell], rows: Sequence[BeyondRow]) -> str:
    """docs/evidence/results.md: the paper's tables, then what is beyond the paper."""
    return f"{results_page(cells, rows)}\n{section(rows)}"


def summary(cells: Iterable[MeasuredCell], bench: Path) -> str:
    """The README's part: Table 2, and the time of an epoch."""
    return scores_table(cells) + short_comparison(bench)


def _filled(path: Path, *measured: str) -> str:
    """The file's text with its marked parts replaced, in their order."""
    text = path.read_text("utf-8")
    if (places := len(PLACE.findall(text))) != len(measured):
        raise InputError(
            f"{path} must have as many places for results as there are results, each between two "
            f"comments: {len(measured)}, got {places}"
        )
    parts = iter(measured)
    return PLACE.sub(lambda marks: f"{marks[1]}{next(parts)}{marks[2]}", text)
