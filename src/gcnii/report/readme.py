"""The README's table and picture, generated from results/: no number in it is typed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev

from gcnii.atomic import whole
from gcnii.experiments.printed import CORA_BY_DEPTH, SCORES
from gcnii.experiments.results import Measured, read_results
from gcnii.report.figure import STYLES, figure, save

PEERS = {"pyg": "PyG's GCN2Conv", "authors": "the authors' manner"}  # as benchmarks/epoch.py calls them
MARKS = re.compile(r"(<!-- results: made by `gcnii report readme` -->\n).*?(<!-- end of results -->)", re.DOTALL)


def update_readme(root: Path) -> list[Path]:
    """Rewrite the marked part of README.md and docs/depth.png from results/train."""
    results = read_results(root / "results" / "train")
    readme = root / "README.md"
    measured = scores_table(results) + speed_sentence(root / "results" / "bench" / "epoch.json")
    text, places = MARKS.subn(lambda marks: f"{marks[1]}{measured}{marks[2]}", readme.read_text("utf-8"))
    if places != 1:
        raise ValueError(f"{readme} must have one place for results, between two comments, got {places}")
    picture = draw_depth(root / "docs" / "depth.png", results)
    with whole(readme) as temporary:
        temporary.write_text(text, "utf-8")
    return [readme, picture]


def scores_table(results: Iterable[Measured]) -> str:
    """Markdown: the paper's number beside ours."""
    rows = ["|data set|model|layers|paper|here (runs)|", "|---|---|---|---|---|"]
    found = {(result.graph, result.model): result for result in results if _as_printed(result)}
    for key, printed in SCORES.items():
        if key in found:
            result = found[key]
            paper = f"{printed.mean}" + (f" ± {printed.spread}" if printed.spread else "")
            cells = (result.graph, result.model, str(result.settings["layers"]), paper, _ours(result))
            rows.append(f"|{'|'.join(cells)}|")
    return "\n".join(rows) + "\n"


def speed_sentence(path: Path) -> str:
    """How long an epoch takes here and elsewhere, from the JSON of benchmarks/epoch.py."""
    bench = json.loads(path.read_text("utf-8"))
    ms = bench["epoch_ms"]
    peers = ", ".join(f"{name} {ms[key]:.0f} ms ({ms[key] / ms['gcnii']:.1f} ×)" for key, name in PEERS.items())
    return (
        f"\nOne epoch of {bench['layers']} layers on {bench['graph']}, {bench['threads']} CPU threads: "
        f"here {ms['gcnii']:.0f} ms, {peers} (`{bench['command']}`).\n"
    )


def _as_printed(result: Measured) -> bool:
    """Whether the command changed none of the preset's settings."""
    return not re.search(r"--(?!runs|model)", result.command)


def _ours(result: Measured) -> str:
    return f"{mean(result.test):.1f} ± {stdev(result.test):.1f} ({len(result.test)})"


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
