"""What the documents of `gcnii bench` show: as tables, speed.png and sentences.

They are for the terminal, the README and docs/evidence/performance.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group

from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, Maybe, read_document
from gcnii.report.figures import GCNII_STYLE, GREY, OTHERS, draw_line, figure, save
from gcnii.report.tables import markdown_table
from gcnii.results.provenance import ask
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
    part = Part(headline(record), COLUMNS, _timed_rows(record), "\n".join(_remarks(record)))
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


def _timed_rows(record: Document) -> list[tuple[str, ...]]:
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
        f"### {headline(record)}\n\n{made}\n\n{markdown_table(COLUMNS, _timed_rows(record))}\n"
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


class Bench(dict[str, Document]):
    """The documents of a folder, by name; each is read once."""

    def __init__(self, folder: Path):
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> Document:
        case, _, device = name.rpartition("-")
        path = self.folder / f"{name}.json"
        if not self.has(name):
            raise InputError(
                f"there is no {path}; `gcnii bench {case} --device {device}` measures it"
            )
        self[name] = read_record(path)
        return self[name]

    def others(self, ours: Document, *names: str) -> list[Beside]:
        """Other code beside a line of ours, in those of these documents that are there."""
        found = beside(ours, self._there(names))
        if not found:
            raise InputError(
                f"{names[0]} has no time of other code; measure it: {self[names[0]]['command']}"
            )
        return found

    def failure(self, who: str, *names: str) -> str:
        """Why these documents have no time of it."""
        lines = [line for record in self._there(names) for line in record["lines"]]
        failed = [line["failed"] for line in lines if line["who"] == who]
        return failed[0] if failed else "no record yet"

    def has(self, name: str) -> bool:
        """Whether there is such a document."""
        return (self.folder / f"{name}.json").exists()

    def _there(self, names: Iterable[str]) -> list[Document]:
        return [self[name] for name in names if self.has(name)]


def ours_in(record: Document) -> list[Document]:
    """Our own lines that have a time."""
    lines = [line for line in record["lines"] if line["who"] == "gcnii" and line["best"]]
    if not lines:
        raise InputError(
            f"{record['case']} on {record['device']} has no time of gcnii; "
            f"measure it: {record['command']}"
        )
    return lines


ALONE, MANY, ON_CPU = "cora-1-cuda", "cora-100-cuda", "cora-1-cpu"
QUICK = ("pyg-graph", "pyg-compiled")


def short_comparison(folder: Path) -> str:
    """Ours beside the fastest other code, and beside PyG as it is commonly run, for the README."""
    bench, rows = Bench(folder), []
    for names in ((ALONE, COMPILED), (MANY, COMPILED), (ON_CPU,)):
        record, ours = bench[names[0]], ours_in(bench[names[0]])[0]
        others = bench.others(ours, *names)
        eager = next((one for one in others if one.line["who"] in ("pyg-edges", "pyg")), others[0])
        ratios = [f"{one.times:.1f} ({one.of_medians:.1f})" for one in (others[0], eager)]
        fastest = f"{NAMES[others[0].line['who']]}: {ratios[0]}"
        rows.append(
            (_where(record, ours), _times(ours)[0], fastest, ratios[1], measured_at(record))
        )
    ours = ours_in(bench[ALONE])[0]
    about = f"An epoch on Cora, {ours['layers']} × {ours['width']}, {ours['precision']}"
    heads = ("where", "here", "fastest other code, × (by medians)", "PyG, eager, ×", "measured")
    return f"\n{about}:\n\n{markdown_table(heads, rows)}"


def comparison(folder: Path) -> str:
    """Ours beside other code, one run and many, for docs/evidence/performance.md."""
    bench = Bench(folder)
    rows = [*_rows(bench, ALONE, COMPILED), *_rows(bench, MANY, COMPILED), *_rows(bench, ON_CPU)]
    ours = ours_in(bench[ALONE])[0]
    about = f"{ours['layers']} layers × {ours['width']}, {ours['precision']}"
    heads = (f"an epoch of GCNII on Cora, {about}", "best", "median", "× here", "by medians")
    names = [name for name in (ALONE, MANY, COMPILED, ON_CPU) if bench.has(name)]
    sources = "; ".join(f"{name} {measured_at(bench[name])}" for name in names)
    return (
        "\nThe time of an epoch, here and in other code, the fastest first. Where many runs train "
        f"at once here, other code trains them one after the other. Measured: {sources}.\n\n"
        f"{markdown_table(heads, rows)}"
    )


def _rows(bench: Bench, *names: str) -> Iterator[tuple[str, ...]]:
    """Our line in the first document, then other code: what has no time, then the fastest first."""
    record = bench[names[0]]
    ours, on_gpu = ours_in(record)[0], record["device"].startswith("cuda: ")
    runs = ours["replicas"]
    yield f"**here: {_where(record, ours)}**", *_times(ours), "1", "1"
    others = {one.line["who"]: one for one in reversed(bench.others(ours, *names))}
    for who in QUICK if on_gpu else ():
        if who not in others:
            yield NAMES[who], bench.failure(who, *names), "–", "–", "–"
    for one in sorted(others.values(), key=lambda one: one.times):
        ratios = (f"{one.times:.1f}", f"{one.of_medians:.1f}")
        yield NAMES[one.line["who"]], *_times(one.line, runs), *ratios


def _where(record: Document, ours: Document) -> str:
    """The device, and how many runs train at once."""
    device, runs = record["device"], ours["replicas"]
    where = f"{record['threads']} CPU threads" if device == "cpu" else device[6:]
    return f"{where}, {runs} runs at once" if runs > 1 else f"{where}, one run"


def _times(line: Document, runs: int = 1) -> tuple[str, str]:
    """Best and median; a baseline trains one run, and is shown for this number of runs."""
    return time_text(runs * line["best"]), time_text(runs * line["median"])


def findings(folder: Path) -> str:
    """What docs/evidence/performance.md begins with."""
    bench = Bench(folder)
    found = (_one(bench), _more(bench), _large(bench["products-cuda"]), _sampled(bench))
    every = (*found, _floor(bench), _growth(bench))
    return "".join(f"- {sentence}\n" for sentence in every) + comparison(folder)


def _one(bench: Bench) -> str:
    words = []
    for names in ((ALONE, COMPILED), (ON_CPU,)):
        record = bench[names[0]]
        ours = ours_in(record)[0]
        first = bench.others(ours, *names)[0]
        where = _where(record, ours).removesuffix(", one run")
        name = NAMES[first.line["who"]]
        times = f"{first.times:.1f} times as long in the fastest other code there ({name})"
        words.append(f"{_times(ours)[0]} on {where}, and {times}")
    return f"**One run.** An epoch takes {'; '.join(words)}."


def _more(bench: Bench) -> str:
    lines, alone = ours_in(bench[MANY]), ours_in(bench[ALONE])[0]
    # Times of other code would be no ratio of one code's.
    same = bench[MANY]["commit"] == bench[ALONE]["commit"]
    ratio = f", {lines[0]['best'] / alone['best']:.0f} times as long as one" if same else ""
    times = ", ".join(f"{' and '.join(_times(line))} in {line['precision']}" for line in lines)
    return (
        f"**Many runs at once.** {lines[0]['replicas']} runs take {times} an epoch (best and "
        f"median){ratio}."
    )


def _large(record: Document) -> str:
    ours, theirs = ours_in(record), [one for one in record["lines"] if one["who"] == "pyg"]
    ratios = [f"{one['ratio']:.2f} ({one['layers']} layers)" for one in theirs if one["ratio"]]
    failed = [f"with {one['layers']} layers: {one['failed']}" for one in theirs if one["failed"]]
    sizes = "; ".join(
        f"{time_text(line['best'])} and {memory_text(line['peak_bytes'])} in {line['precision']}"
        for line in ours
    )
    return (
        f"**Large graphs** ({record['graph']['n']:,} nodes, {ours[0]['entries']:,} entries, "
        f"{measured_at(record)}). {NAMES['pyg']} takes {' and '.join(ratios)} times our time per "
        f"layer in {ours[0]['precision']}; the gain there is memory, and coarser rounding where "
        f"that will do. An epoch of {ours[0]['layers']} layers × {ours[0]['width']} takes {sizes}; "
        f"{NAMES['pyg']} {', '.join(failed)}."
    )


def _sampled(bench: Bench) -> str:
    words = []
    for case in ("sage-ppi", "sage-photo", "gat-ppi", "gat-photo"):
        ratios = []
        for device in ("cuda", "cpu"):
            ours = ours_in(bench[f"{case}-{device}"])[0]
            first = bench.others(ours, f"{case}-{device}")[0]
            ratios.append(f"{first.times:.2f} ({first.of_medians:.2f})")
        words.append(f"{case} {ratios[0]} and {ratios[1]}")
    return (
        "**Sampled neighbours.** PyG's time over ours, by best (and median) times, on a GPU and on "
        f"a CPU; below 1 PyG's layers are the faster ones: {', '.join(words)}."
    )


def _floor(bench: Bench) -> str:
    words = []
    for name, about in (
        ("cora-1-cpu", "one run on Cora, on a CPU"),
        ("cora-1-cuda", "one on a GPU, too small to fill it"),
        ("cora-100-cuda", "100 runs there"),
        ("ppi-cuda", "PPI's wide layers"),
    ):
        line = ours_in(bench[name])[0]
        words.append(f"{line['best'] / line['floor']['seconds']:.1f} ({about})")
    return (
        "**Against the floor**, the least time that memory and arithmetic of the device allow, an "
        f"epoch in float32 takes {', '.join(words)} times as long."
    )


def _growth(bench: Bench) -> str:
    words = []
    for case, what in (("depth", "layers"), ("edges", "entries")):
        times = []
        for device in ("cpu", "cuda"):
            first, *_, last = ours_in(bench[f"{case}-{device}"])
            times.append(f"{last['best'] / first['best']:.1f}")
        words.append(
            f"{last[what] / first[what]:.0f} times the {what} take {times[0]} times as long on a "
            f"CPU and {times[1]} on a GPU"
        )
    return f"**Growth.** {'; '.join(words)}. [Scale](scale.md) has nodes and processes."


# What `gcnii bench` measures; and how many changes to it a document may be behind.
CODE = (
    *("src/gcnii/kernels", "src/gcnii/nn", "src/gcnii/propagation", "src/gcnii/train"),
    *("src/gcnii/dropout.py", "src/gcnii_paper/bench"),
)
FEW = 5
DATED = {"commit": (str, NOTHING), "day": Maybe(str), "command": str}


def old_records(root: Path) -> list[str]:
    """Which documents are of unknown code, or a few changes older than it, a sentence each.

    The pages name the commit alone: the number of changes since then differs with every commit.
    """
    found = []
    for path in sorted((root / "results" / "bench").glob("*.json")):
        record = read_document(path, DATED, "document of `gcnii bench`", dict)
        if age := _age(root, record["commit"]):
            found.append(
                f"{path.stem} was measured {measured_at(record)}, {age}: {record['command']}"
            )
    return found


def _age(root: Path, commit: str | None) -> str:
    """What is wrong with the age of a document; empty if nothing is, or without git."""
    git = ["git", "-C", str(root), "rev-list", "--count"]
    if ask([*git, "HEAD"]) is None:
        return ""
    since = f"{(commit or 'no commit').removesuffix('-dirty')}..HEAD"
    match ask([*git, since, "--", *CODE]):
        case None:
            return "which this repository does not know"
        case count if int(count) > FEW:
            return f"{count} changes to what it measures ago"
    return ""
