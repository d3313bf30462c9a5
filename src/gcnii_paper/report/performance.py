"""What the documents of `gcnii bench` show: for the README and docs/evidence/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, Maybe, read_document
from gcnii.report.tables import markdown_table
from gcnii.results.provenance import ask
from gcnii_paper.report.speed import (
    COMPILED,
    NAMES,
    Beside,
    beside,
    measured_at,
    memory_text,
    read_record,
    time_text,
)


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
