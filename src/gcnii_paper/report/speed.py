"""Speed and memory as tables and speed.png, from the documents of `gcnii bench`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group

from gcnii.files import NOTHING, Document, Maybe, read_document
from gcnii.report.figures import GCNII_STYLE, GREY, OTHERS, draw_line, figure, save
from gcnii.report.tables import markdown_table
from gcnii_paper.bench.cases import OURS
from gcnii_paper.documents import Part, software

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NAMES = {
    "gcnii": "here",
    "pyg-graph": "PyG's GCN2Conv in a CUDA graph",
    "pyg-compiled": "PyG's GCN2Conv by torch.compile",
    "pyg-edges": "PyG's GCN2Conv, eager",
    "pyg": "PyG's GCN2Conv on CSR, eager",
    "pyg-sampled": "PyG's layers, neighbours drawn by torch",
    "authors": "the authors' layer, re-implemented",
    "authors-csr": "the authors' layer, re-implemented on CSR",
    "end-to-end": "here, from load to test",
    "predict": "gcnii predict, a process",
    "command": "gcnii train, a process",
}
UNITS = {"replicas": "run", "layers": "layer", "entries": "entry"}
_TIME = (float, NOTHING)
_LINE = {
    "who": set(NAMES),
    "precision": str,
    "failed": str,
    "label": Maybe(str),
    "floor": ({"seconds": float, "bound": str}, NOTHING),
    **dict.fromkeys(("layers", "width", "entries", "replicas"), int),
    **dict.fromkeys(("best", "median", "ratio", "peak_bytes"), _TIME),
    **dict.fromkeys(("runs", "epochs_mean", "test_mean", "test_std"), Maybe(float)),
}
RECORD = {
    **dict.fromkeys(("case", "title", "command", "device"), str),
    "threads": int,
    "commit": (str, NOTHING),
    "day": Maybe(str),
    "versions": {str: (str, NOTHING)},
    "graph": {"name": str},
    "per": [set(UNITS)],
    "rates": {"bandwidth": float, "operations": {str: float}},
    "notes": [str],
    "lines": [_LINE],
}
COLUMNS = (
    *("code", "layers", "entries", "precision", "runs at once"),
    *("best", "median", "ratio", "of medians", "peak", "floor", "× floor"),
)


def bench_table(record: Document) -> Group:
    """One row per line, for the terminal."""
    part = Part(headline(record), COLUMNS, _rows(record), "\n".join(_remarks(record)))
    return part.terminal(numbers=slice(1, None))


def headline(record: Document) -> str:
    """What was measured, and on which device."""
    graph = record["graph"]
    where = record["device"] if record["device"] != "cpu" else f"cpu, {record['threads']} threads"
    return f"{record['case']}: {record['title']}; {graph['name']}; {where}"


class Beside(NamedTuple):
    """A line of other code beside one of ours.

    times, of_medians  how many times as long it takes, each run after the other
    """

    line: Document
    times: float
    of_medians: float


def beside(ours: Document, records: Iterable[Document]) -> list[Beside]:
    """Other code of the same precision and depth in these documents, the fastest first."""

    def times(line: Document, which: str) -> float:
        mine, others = ours[which] / ours["replicas"], line[which] / line["replicas"]
        return float(others / mine)

    alike = [
        line
        for record in records
        for line in record["lines"]
        if line["who"] not in OURS and line["best"]
        if all(line[name] == ours[name] for name in ("precision", "layers", "width"))
    ]
    found = [Beside(line, times(line, "best"), times(line, "median")) for line in alike]
    return sorted(found, key=lambda one: one.times)


def _remarks(record: Document) -> list[str]:
    """What ratio and floor mean, who comes next, the test scores, and what was left out."""
    rates, units = record["rates"], [UNITS[unit] for unit in record["per"]]
    remarks = [f"ratio: time per {' and '.join(units)}, divided by the first line's"]
    speeds = [
        f"{speed / 1e12:.3g} TFLOP/s in {name}" for name, speed in rates["operations"].items()
    ]
    remarks.append(
        f"floor: {rates['bandwidth'] / 1e9:.3g} GB/s and {', '.join(speeds)}, as measured"
    )
    if "tf32" in rates["operations"]:
        remarks.append("tf32: PyTorch's switch for products of float32, on for the baselines too")
    scores = [
        f"{line['runs']} runs, {line['epochs_mean']:.0f} epochs each on average: "
        f"test {100 * line['test_mean']:.1f} ± {100 * line['test_std']:.1f}"
        for line in record["lines"]
        if {"runs", "epochs_mean", "test_mean", "test_std"} <= set(line)
    ]
    first = record["lines"][0]
    others = beside(first, [record]) if first["who"] == "gcnii" and first["best"] else []
    ahead = [
        f"fastest other code in {first['precision']}: {NAMES[line['who']]}, {times:.1f} times our "
        f"time a run (by medians {of_medians:.1f})"
        for line, times, of_medians in others[:1]
    ]
    return [*remarks, *ahead, *scores, *record["notes"]]


def _of_medians(record: Document, line: Document) -> float | None:
    """The ratio of a line, with medians for the best times."""
    first = record["lines"][0]
    if line["ratio"] is None:
        return None
    longer, first_longer = (one["median"] / one["best"] for one in (line, first))
    return float(line["ratio"] * longer / first_longer)


def _rows(record: Document) -> list[tuple[str, ...]]:
    return [_cells(record, line) for line in record["lines"]]


def _cells(record: Document, line: Document) -> tuple[str, ...]:
    floor, best, of_medians = line["floor"], line["best"], _of_medians(record, line)
    return (
        ", ".join(filter(None, (NAMES[line["who"]], line.get("label", "")))),
        f"{line['layers']} × {line['width']}",
        f"{line['entries']:,}",
        line["precision"],
        str(line["replicas"]),
        line["failed"] or time_text(best),
        time_text(line["median"]),
        "–" if line["ratio"] is None else f"{line['ratio']:.2f}",
        "–" if of_medians is None else f"{of_medians:.2f}",
        memory_text(line["peak_bytes"]),
        "–" if floor is None else f"{time_text(floor['seconds'])} ({floor['bound']})",
        "–" if floor is None or best is None else f"{best / floor['seconds']:.1f}",
    )


def time_text(seconds: float | None) -> str:
    """In ms or s, to three digits."""
    if seconds is None:
        return "–"
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def memory_text(size: int | None) -> str:
    """In MiB or GiB."""
    if size is None:
        return "–"
    return f"{size / 2**20:.0f} MiB" if size < 2**30 else f"{size / 2**30:.1f} GiB"


def read_records(folder: Path) -> list[Document]:
    """Every document in the folder but those of scale.py, in the order of the files' names."""
    paths = sorted(set(folder.glob("*.json")) - set(folder.glob("scale-*")))
    return [read_record(path) for path in paths]


def read_record(path: Path) -> Document:
    """One document."""
    return read_document(path, RECORD, "document of `gcnii bench`", dict)


def speed_tables(records: Iterable[Document]) -> str:
    """Markdown: for each document its headline, its command and its lines."""
    return "\n".join(_markdown(record) for record in records)


def _markdown(record: Document) -> str:
    made = f"`{record['command']}` {measured_at(record)}; {software(record['versions'])}."
    return (
        f"### {headline(record)}\n\n{made}\n\n{markdown_table(COLUMNS, _rows(record))}\n"
        f"({'; '.join(_remarks(record))}.)\n"
    )


def measured_at(record: Document) -> str:
    """The commit of a document and, where it has one, its day."""
    day = f" on {record['day']}" if "day" in record else ""
    return f"at {record['commit']}{day}"


# A document of `gcnii bench`, and what its bars are called.
CASES = {
    "cora-1-cpu": "Cora, 64 × 64\n2 CPU threads",
    "cora-1-cuda": "Cora, 64 × 64\none GPU",
    "cora-100-cuda": "Cora, 64 × 64\nGPU, 100 runs",
    "pubmed-10-cuda": "Pubmed, 16 × 256\nGPU, 10 runs",
}
# label → colour, and the codes that it stands for: the fastest of them is drawn
BARS: dict[str, tuple[str, tuple[str, ...]]] = {
    "here": (GCNII_STYLE.colour, ("gcnii",)),
    "PyG by torch.compile": (OTHERS[3].colour, ("pyg-compiled",)),
    "PyG in a CUDA graph": (OTHERS[2].colour, ("pyg-graph",)),
    "PyG, eager": (OTHERS[0].colour, ("pyg", "pyg-edges")),
    "the authors' layer, re-implemented": (OTHERS[1].colour, ("authors",)),
}
COMPILED = "cora-1-compiled-cuda"  # which stands beside one run, and beside a hundred
DEPTHS = {"depth-cpu": "2 CPU threads", "depth-cuda": "one GPU"}


def draw_speed(path: Path, bench: Path) -> Path:
    """Bars of float32 per run, from the documents of a folder; then time against depth."""
    drawing = figure(2)
    first, second = drawing.axes
    records = {name: read_record(bench / f"{name}.json") for name in CASES}
    if (compiled := bench / f"{COMPILED}.json").exists():
        for name in ("cora-1-cuda", "cora-100-cuda"):
            records[name]["lines"] += read_record(compiled)["lines"]
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
    width = 0.8 / len(BARS)
    for place, record in enumerate(records.values()):
        lines = [line for line in record["lines"] if line["precision"] == "float32"]
        for number, (colour, codes) in enumerate(BARS.values()):
            times = [
                1000 * line["best"] / line["replicas"]
                for line in lines
                if line["who"] in codes and line["best"]
            ]
            if times:
                _draw_bar(axes, place - 0.4 + width * (number + 0.5), width, min(times), colour)
        floor = 1000 * lines[0]["floor"]["seconds"] / lines[0]["replicas"]
        axes.plot([place - 0.4, place + 0.4], [floor, floor], color=GREY, linewidth=2)
    drawn = {line["who"] for record in records.values() for line in record["lines"] if line["best"]}
    for label, (colour, codes) in BARS.items():
        if drawn & set(codes):
            axes.bar([0], [0], color=colour, label=label)
    axes.plot([], [], color=GREY, linewidth=2, label="floor")
    axes.set_xticks(range(len(records)), [CASES[name] for name in records], fontsize=8.5)
    axes.set(yscale="log", ylabel="ms", title="an epoch of one run, float32")
    axes.set_ylim(top=20_000)  # room for the legend
    axes.legend(frameon=False, fontsize=8, loc="upper right", ncols=2)


def _draw_bar(axes: Axes, place: float, width: float, time: float, colour: str) -> None:
    axes.bar([place], [time], 0.93 * width, color=colour)
    number = f"{time:.0f}" if time >= 10 else f"{time:.2g}"
    axes.text(place, time, number, ha="center", va="bottom", fontsize=6.5)
