"""Speed and memory as tables, sentences and speed.png, from the documents of `gcnii bench`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, Maybe, read_document
from gcnii.report.figures import GCNII_STYLE, GREY, OTHERS, draw_line, figure, save
from gcnii.report.tables import markdown_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NAMES = {
    "gcnii": "here",
    "pyg": "PyG's GCN2Conv",
    "pyg-sampled": "PyG's layers, neighbours drawn by torch",
    "authors": "the authors' layer, re-implemented",
    "authors-csr": "the authors' layer, re-implemented on CSR",
    "end-to-end": "here, from load to test",
    "predict": "gcnii predict, a process",
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
    "versions": {str: (str, NOTHING)},
    "graph": {"name": str},
    "per": [set(UNITS)],
    "rates": {"bandwidth": float, "operations": {str: float}},
    "notes": [str],
    "lines": [_LINE],
}
COLUMNS = (
    *("code", "layers", "entries", "precision", "runs at once"),
    *("best", "median", "ratio", "peak", "floor", "× floor"),
)


def bench_table(record: Document) -> Table:
    """One row per line, for the terminal."""
    table = Table(*COLUMNS, title=headline(record), title_justify="left", caption_justify="left")
    table.caption = "\n".join(_remarks(record))
    for column in table.columns[1:]:
        column.justify = "right"
    for line in record["lines"]:
        table.add_row(*_cells(line))
    return table


def headline(record: Document) -> str:
    """What was measured, and on which device."""
    graph = record["graph"]
    where = record["device"] if record["device"] != "cpu" else f"cpu, {record['threads']} threads"
    return f"{record['case']}: {record['title']}; {graph['name']}; {where}"


def _remarks(record: Document) -> list[str]:
    """What ratio and floor mean, the test scores, and what was left out."""
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
    return [*remarks, *scores, *record["notes"]]


def _cells(line: Document) -> tuple[str, ...]:
    floor, best = line["floor"], line["best"]
    return (
        ", ".join(filter(None, (NAMES[line["who"]], line.get("label", "")))),
        f"{line['layers']} × {line['width']}",
        f"{line['entries']:,}",
        line["precision"],
        str(line["replicas"]),
        line["failed"] or _time(best),
        _time(line["median"]),
        "–" if line["ratio"] is None else f"{line['ratio']:.2f}",
        _memory(line["peak_bytes"]),
        "–" if floor is None else f"{_time(floor['seconds'])} ({floor['bound']})",
        "–" if floor is None or best is None else f"{best / floor['seconds']:.1f}",
    )


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _memory(size: int | None) -> str:
    if size is None:
        return "–"
    return f"{size / 2**20:.0f} MiB" if size < 2**30 else f"{size / 2**30:.1f} GiB"


def read_records(folder: Path) -> list[Document]:
    """Every document in the folder but those of scale.py, in the order of the files' names."""
    paths = sorted(folder.glob("*.json"))
    return [read_record(path) for path in paths if not path.name.startswith("scale-")]


def read_record(path: Path) -> Document:
    """One document."""
    return read_document(path, RECORD, "document of `gcnii bench`", dict)


def speed_tables(records: Iterable[Document]) -> str:
    """Markdown: for each document its headline, its command and its lines."""
    return "\n".join(_markdown(record) for record in records)


def _markdown(record: Document) -> str:
    versions = ", ".join(
        f"{name} {version}" for name, version in record["versions"].items() if version
    )
    return (
        f"### {headline(record)}\n\n`{record['command']}` at {record['commit']}; {versions}.\n\n"
        f"{markdown_table(COLUMNS, map(_cells, record['lines']))}\n"
        f"({'; '.join(_remarks(record))}.)\n"
    )


def speed_sentence(record: Document) -> str:
    """The time of an epoch on a CPU, here and in other code."""
    here = _timed(record, "gcnii")[0]
    baselines = "; ".join(
        f"{NAMES[line['who']]}: {1000 * line['best']:.0f} ms ({line['ratio']:.1f} ×)"
        for line in record["lines"]
        if line["who"] != "gcnii" and line["best"] and line["ratio"]
    )
    return (
        f"\nOne epoch of {here['layers']} layers on {record['graph']['name']}, "
        f"{record['threads']} CPU threads: here {1000 * here['best']:.0f} ms; {baselines} "
        f"(`{record['command']}`).\n"
    )


def many_sentence(alone: Document, many: Document) -> str:
    """The time of an epoch on a GPU, for one run and for many at once."""
    one, pyg, ours = _timed(alone, "gcnii")[0], _timed(alone, "pyg")[0], _timed(many, "gcnii")
    card = alone["device"].removeprefix("cuda: ")
    times = ", ".join(f"{1000 * line['best']:.0f} ms in {line['precision']}" for line in ours)
    return (
        f"On {card}: here {1000 * one['best']:.1f} ms, PyG {1000 * pyg['best']:.0f} ms "
        f"({pyg['ratio']:.0f} ×); {ours[0]['replicas']} runs at once {times}.\n"
    )


def _timed(record: Document, who: str) -> list[Document]:
    """The lines of one code that have a time."""
    lines = [
        line for line in record["lines"] if line["who"] == who and line["best"] and line["ratio"]
    ]
    if not lines:
        raise InputError(
            f"{record['case']} on {record['device']} has no time of {who}; "
            f"measure it: {record['command']}"
        )
    return lines


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
