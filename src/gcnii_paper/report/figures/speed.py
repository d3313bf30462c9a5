"""speed.png: an epoch here, in other code and at the floor; and how it grows with depth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gcnii.files import Document
from gcnii.report.figures import GCNII_STYLE, GREY, OTHERS, draw_line, figure, save
from gcnii_paper.report.speed import read_record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A document of `gcnii bench`, and what its bars are called.
CASES = {
    "cora-1-cpu": "Cora, 64 × 64\n2 CPU threads",
    "cora-1-cuda": "Cora, 64 × 64\none GPU",
    "cora-100-cuda": "Cora, 64 × 64\nGPU, 100 runs",
    "pubmed-10-cuda": "Pubmed, 16 × 256\nGPU, 10 runs",
}
CODES = {"gcnii": "here", "pyg": "PyG's GCN2Conv", "authors": "the authors' layer, re-implemented"}
COLOURS = {"gcnii": GCNII_STYLE.colour, "pyg": OTHERS[0].colour, "authors": OTHERS[1].colour}
DEPTHS = {"depth-cpu": "2 CPU threads", "depth-cuda": "one GPU"}


def draw_speed(path: Path, bench: Path) -> Path:
    """Bars of float32 per run, from the documents of a folder; then time against depth."""
    drawing = figure(2)
    first, second = drawing.axes
    records = {name: read_record(bench / f"{name}.json") for name in CASES}
    _draw_codes(first, records)
    for style, (name, label) in zip(
        (GCNII_STYLE, GCNII_STYLE._replace(marker="s", dash="--")), DEPTHS.items(), strict=True
    ):
        lines = read_record(bench / f"{name}.json")["lines"]
        times = [1000 * line["best"] for line in lines]
        draw_line(second, [line["layers"] for line in lines], times, style, label)
    second.set(
        xscale="log", yscale="log", xlabel="layers", ylabel="ms", title="Cora, one run: by depth"
    )
    ticks = [line["layers"] for line in lines]
    second.set_xticks(ticks, [str(layers) for layers in ticks])
    second.minorticks_off()
    second.legend(frameon=False)
    return save(drawing, path)


def _draw_codes(axes: Axes, records: dict[str, Document]) -> None:
    for place, record in enumerate(records.values()):
        lines = [line for line in record["lines"] if line["precision"] == "float32"]
        for line in lines:
            if line["who"] in CODES:
                _draw_bar(axes, place + 0.27 * (list(CODES).index(line["who"]) - 1), line)
        floor = 1000 * lines[0]["floor"]["seconds"] / lines[0]["replicas"]
        axes.plot([place - 0.4, place + 0.4], [floor, floor], color=GREY, linewidth=2)
    for who, label in CODES.items():
        axes.bar([0], [0], color=COLOURS[who], label=label)
    axes.plot([], [], color=GREY, linewidth=2, label="floor")
    axes.set_xticks(range(len(records)), [CASES[name] for name in records], fontsize=8.5)
    axes.set(yscale="log", ylabel="ms", title="an epoch of one run, float32")
    axes.set_ylim(top=20_000)  # room for the legend
    axes.legend(frameon=False, fontsize=8, loc="upper right", ncols=2)


def _draw_bar(axes: Axes, place: float, line: Document) -> None:
    time = 1000 * line["best"] / line["replicas"]
    axes.bar([place], [time], 0.25, color=COLOURS[line["who"]])
    number = f"{time:.0f}" if time >= 10 else f"{time:.2g}"
    axes.text(place, time, number, ha="center", va="bottom", fontsize=8.5)
