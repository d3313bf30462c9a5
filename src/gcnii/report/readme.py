"""README's table, the pages of results and of speed, and the picture, made from results/: no number is typed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev

from gcnii.atomic import whole
from gcnii.experiments.printed import CORA_BY_DEPTH, TABLE_2, TABLE_5, Cells, Printed
from gcnii.experiments.results import Measured, read_results
from gcnii.report.figure import STYLES, figure, save
from gcnii.report.speed import many_sentence, read_record, read_records, speed_sentence, speed_tables

MARKS = re.compile(r"(<!-- results: made by `gcnii report readme` -->\n).*?(<!-- end of results -->)", re.DOTALL)


def update_readme(root: Path) -> list[Path]:
    """Rewrite the marked parts of README.md and docs/performance.md, docs/results.md and docs/depth.png."""
    results, bench = read_results(root / "results" / "train"), root / "results" / "bench"
    measured = scores_table(results, TABLE_2) + speed_sentence(read_record(bench / "cora-1-cpu.json"))
    measured += many_sentence(read_record(bench / "cora-1-cuda.json"), read_record(bench / "cora-100-cuda.json"))
    texts = {
        root / "README.md": _filled(root / "README.md", measured),
        root / "docs" / "performance.md": _filled(root / "docs" / "performance.md", speed_tables(read_records(bench))),
        root / "docs" / "results.md": results_page(results),
    }
    picture = draw_depth(root / "docs" / "depth.png", results)
    for path, words in texts.items():
        with whole(path) as temporary:
            temporary.write_text(words, "utf-8")
    return [*texts, picture]


def _filled(path: Path, measured: str) -> str:
    """The file's text with its marked part replaced."""
    text, places = MARKS.subn(lambda marks: f"{marks[1]}{measured}{marks[2]}", path.read_text("utf-8"))
    if places != 1:
        raise ValueError(f"{path} must have one place for results, between two comments, got {places}")
    return text


def results_page(results: Iterable[Measured]) -> str:
    """Markdown: every measured number that stands beside a printed one, and then every other."""
    results = list(results)
    parts = [
        "# Results\n\nMade by `gcnii report readme` from results/, which holds every seed.\n"
        "In each cell: mean ± standard deviation here (number of runs), then the paper's number.\n"
    ]
    for title, printed in (("Public splits (Table 2)", TABLE_2), ("Ten splits, 48 % of the labels (Table 5)", TABLE_5)):
        parts.append(f"## {title}\n\n{scores_table(results, printed)}")
    rows = [f"|`{r.command}`|{_ours(r)}|{r.device}|" for r in results]
    parts.append("\n".join(["## Every command\n", "|command|here|device|", "|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def scores_table(results: Iterable[Measured], table: Cells) -> str:
    """Markdown: a row a model, a column a data set, ours beside the paper's; models not measured are left out."""
    found = {(result.model, result.graph): result for result in results if _as_printed(result)}
    sets = list(next(iter(table.values())))
    rows = [f"|model|{'|'.join(sets)}|", "|---" * (len(sets) + 1) + "|"]
    for model, row in table.items():
        if any((model, name) in found for name in sets):
            rows.append(f"|{model}|{'|'.join(_cell(found.get((model, name)), row[name]) for name in sets)}|")
    return "\n".join(rows) + "\n"


def _cell(result: Measured | None, printed: Printed) -> str:
    paper = f"{printed.mean}" + (f"±{printed.sd}" if printed.sd else "")
    return f"{_ours(result) if result else '–'} · {paper}"


def _as_printed(result: Measured) -> bool:
    """Whether the command changed none of the preset's settings."""
    return not re.search(r"--(?!runs|model)", result.command)


def _ours(result: Measured) -> str:
    spread = f"±{stdev(result.test):.1f}" if len(result.test) > 1 else ""
    return f"{mean(result.test):.1f}{spread} ({len(result.test)})"


def draw_depth(path: Path, results: Iterable[Measured]) -> Path:
    """Accuracy against depth on Cora: measured here, with its standard deviation, and as Table 3 prints it."""
    drawing, results = figure(1), list(results)
    (axes,) = drawing.axes
    for (colour, marker, dash), (label, model) in zip(STYLES, (("GCNII", "gcnii"), ("GCN", "gcn")), strict=False):
        ours = sorted((r.settings["layers"], r.test) for r in results if (r.graph, r.model) == ("cora", model))
        layers, means = [layers for layers, _ in ours], [mean(test) for _, test in ours]
        low, high = ([mean(test) + sign * stdev(test) for _, test in ours] for sign in (-1, 1))
        axes.plot(layers, means, color=colour, marker=marker, linestyle=dash, label=f"{label}, here")
        axes.fill_between(layers, low, high, color=colour, alpha=0.15, linewidth=0)
        printed = CORA_BY_DEPTH[model]
        hollow = {"color": colour, "markerfacecolor": "none", "markersize": 10, "label": f"{label}, paper"}
        axes.plot(list(printed), list(printed.values()), marker, **hollow)
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(CORA_BY_DEPTH["gcn"]), [str(layers) for layers in CORA_BY_DEPTH["gcn"]])
    axes.set(xlabel="layers", ylabel="test accuracy (%)", title="Cora: accuracy against depth", ylim=(0, 95))
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return save(drawing, path)
