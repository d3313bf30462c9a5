"""docs/evidence/scale.md: the figure, and `gcnii bench scale` beside what `gcnii plan` says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group

from gcnii.cost import (
    GIB,
    H200,
    Cost,
    Network,
    Place,
    Rates,
    chosen_memory,
    cost_at,
    estimate,
    estimated_cut,
    this_cpu,
    uncut,
)
from gcnii.data.catalog import Size, counted
from gcnii.files import NOTHING, Document, read_document
from gcnii.report.figures import OTHERS, draw_line, figure, save, shared_legend
from gcnii_paper.documents import Part, software

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_NUMBER = (float, int, NOTHING)
_ROW = {"best": float, "peak_bytes": (int, NOTHING)}
_MEASURED = {**_ROW, "graph": str, "size": dict, "network": dict, "rates": {str: (*_NUMBER, bool)}}
SHAPE = {
    **dict.fromkeys(("case", "title", "command", "device"), str),
    "cores": int,
    "commit": (str, NOTHING),
    "versions": {str: (str, NOTHING)},
    "cuts": [{"graph": str, "parts": int, "how": str, "halo": int, "nodes": int}],
    "growth": [{**_MEASURED, "what": str, "value": int}],
    "planned": [_MEASURED],
    "processes": [{**_ROW, "kind": str, "n": int, "processes": int, "waiting": float}],
}
WHAT = {"n": "nodes", "entries": "entries", "layers": "layers", "width": "width"}
# Networks on papers100M that the page plans: layers, width, precision, memory, devices.
PLANS = (
    (8, 128, "float32", "recompute", 8),
    (8, 64, "float32", "offload", 8),
    (8, 128, "bfloat16", "offload", 8),
    (8, 128, "float32", "recompute", 32),
    (64, 128, "float32", "recompute", 32),
    (64, 128, "float32", "offload", 32),
)
PAPERS = "papers100M"
WITHOUT_EXCHANGE = (
    "Without exchange: an epoch of the first process's part, while the others wait and nothing is "
    "sent."
)


def read_scale(path: Path) -> Document:
    """The document of `gcnii bench scale`."""
    return read_document(path, SHAPE, "document of `gcnii bench scale`", dict)


def parts_of(record: Document) -> list[Part]:
    """The tables of one document."""
    found = [_processes(record)] if record["processes"] else []
    makers = {"cuts": _cuts, "planned": _planned, "growth": _growth}
    return found + [make(record[name]) for name, make in makers.items() if record[name]]


def terminal_tables(record: Document) -> Iterable[Group]:
    """The tables for a terminal."""
    return (part.terminal() for part in parts_of(record))


def scale_tables(bench: Path) -> str:
    """Markdown: the plans of papers100M, and the tables of what was measured."""
    texts = [papers_plans().markdown()]
    for path in sorted(bench.glob("scale-*.json")):
        record = read_scale(path)
        where = f"{record['commit']}, {record['device']}; {software(record['versions'])}."
        texts += [f"`{record['command']}` at {where}\n"]
        texts += [part.markdown() for part in parts_of(record)]
    return "\n".join(texts)


def papers_plans() -> Part:
    """What `gcnii plan` says of papers100M on several H200."""
    size = counted(PAPERS)
    assert size is not None
    heads = ("layers", "precision", "memory", "H200", "GiB of each", "GiB on the host", "seconds",
             "of them exchange", "GiB received a layer", "hidden", "fits")  # fmt: skip
    rows = [_plan_row(size, *plan) for plan in PLANS]
    remark = (
        f"`gcnii plan {PAPERS} --device h200 --devices N --layers L --width H --precision …  "
        "--memory …`, from counts alone; seconds are those of an epoch."
    )
    return Part(f"{PAPERS} on several H200, planned and not measured", heads, rows, remark)


def _plan_row(
    size: Size, layers: int, width: int, precision: str, memory: str, devices: int
) -> Sequence[str]:
    cut = estimated_cut(size, devices)
    network = Network(layers=layers, width=width, precision=precision)
    network = chosen_memory(memory, network, cut.nodes, H200)
    cost = estimate(size, network, H200, cut, devices, -(-devices // 8))
    held, spent = cost.memory, cost.seconds
    return (
        f"{layers} × {width}", precision, memory, str(devices), f"{held.total / GIB:.0f}",
        f"{held.host / GIB:.0f}", f"{spent.total:.3g}", f"{spent.exchange:.3g}",
        f"{spent.traffic / GIB:.1f}", f"{spent.hidden:.0%}", "yes" if cost.fits else "no",
    )  # fmt: skip


def _on_cpu(cores: int) -> str:
    return (
        "8 layers × 64 on a drawn graph with short edges, one thread a process, by gloo. This "
        f"machine has {cores} cores: more processes than that cannot be faster here. "
        f"{WITHOUT_EXCHANGE}"
    )


def _on_cuda(found: Mapping[str, Document]) -> str:
    ratio = found["torchrun"]["best"] / found["alone"]["best"]
    return (
        "8 layers × 128 in float32; the last line 64 × 128, recomputed. One process under torchrun "
        f"takes {ratio:.3f} of the time of one without. {WITHOUT_EXCHANGE} Two processes on one "
        "card exchange rows over the host; NCCL between several cards was not measured."
    )


def _computing(row: Document) -> str:
    if row["processes"] == 1 or "computing" not in row:  # documents of 1.0.0 do not have it
        return "–"
    return f"{1000 * row['computing']:.4g} ms"


def _processes(record: Document) -> Part:
    heads = ("", "nodes", "processes", "an epoch", "efficiency", "waiting for rows",
             "without exchange", "peak")  # fmt: skip
    rows = [
        (
            row["kind"],
            f"{row['n']:,}" if row["n"] else "2,449,029",
            str(row["processes"]),
            f"{1000 * row['best']:.4g} ms",
            f"{row['efficiency']:.2f}" if "efficiency" in row else "–",
            f"{row['waiting']:.0%}" if row["processes"] > 1 else "–",
            _computing(row),
            "–" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**20:.0f} MiB",
        )
        for row in record["processes"]
    ]
    rows_by_kind = {row["kind"]: row for row in record["processes"]}
    remark = _on_cpu(record["cores"]) if record["device"] == "cpu" else _on_cuda(rows_by_kind)
    return Part("One graph over several processes", heads, rows, remark)


def _cuts(cuts: Sequence[Document]) -> Part:
    ways = list(dict.fromkeys(row["how"] for row in cuts))
    found = {(row["graph"], row["parts"], row["how"]): row for row in cuts}
    rows = [
        (graph, str(parts), f"{found[graph, parts, ways[0]]['nodes']:,}", *(
            f"{found[graph, parts, way]['halo']:,}" for way in ways
        ))
        for graph, parts in dict.fromkeys((row["graph"], row["parts"]) for row in cuts)
    ]  # fmt: skip
    remark = "Rows of other parts that a part gathers from, at most; each is received in a layer."
    return Part("Halos", ("graph", "parts", "nodes of a part", *ways), rows, remark)


def planned_cost(row: Document) -> Cost:
    """What a plan says of a training that was measured, at the rates of that time."""
    size, network = Size(**row["size"]), Network(**row["network"])
    place = Place(device=this_cpu(), rates=Rates.of(row["rates"]), cut=uncut(size.n))
    return cost_at(size, network, place)


def _planned(rows: Sequence[Document]) -> Part:
    heads = ("graph", "layers", "an epoch", "planned", "peak", "planned ")
    lines = []
    for row in rows:
        cost, shape = planned_cost(row), row["network"]
        lines.append((
            row["graph"], f"{shape['layers']} × {shape['width']}", f"{row['best']:.3g} s",
            f"{cost.seconds.total:.3g} s", f"{row['peak_bytes'] / 2**20:.0f} MiB",
            f"{cost.memory.total / 2**20:.0f} MiB",
        ))  # fmt: skip
    remark = "CPU seconds of one thread; resident memory that a training run adds."
    return Part("Plans and what was measured", heads, lines, remark)


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of a line through the points on two logarithmic axes."""
    x, y = np.log(np.array(points, float)).T
    return float(np.polyfit(x, y, 1)[0])


def grown_by(growth: Sequence[Document], what: str) -> list[Document]:
    """The points in which this one grows."""
    return sorted((row for row in growth if row["what"] == what), key=lambda row: row["value"])


def _growth(growth: Sequence[Document]) -> Part:
    rows = []
    for what, word in WHAT.items():
        points = grown_by(growth, what)
        time, held = (
            slope([(row["value"], row[name]) for row in points]) for name in ("best", "peak_bytes")
        )
        ends = f"{points[0]['value']:,} to {points[-1]['value']:,}"
        rows.append((word, ends, f"{time:.2f}", f"{held:.2f}"))
    remark = "Slopes on two logarithmic axes: 1 is growth in proportion."
    return Part("Growth", ("in", "from", "slope of the time", "slope of the peak"), rows, remark)


TIME, HELD = OTHERS[:2]


def draw_growth(path: Path, record: Document) -> Path:
    """Four panels, of two lines each and the plan beside them."""
    drawing = figure(2, 2)
    for axes, (what, word) in zip(drawing.axes, WHAT.items(), strict=True):
        _draw(axes, grown_by(record["growth"], what), word)
    shared_legend(drawing)
    return save(drawing, path)


def _draw(axes: Axes, points: Sequence[Document], word: str) -> None:
    from matplotlib.ticker import LogFormatter

    x, costs = [row["value"] for row in points], [planned_cost(row) for row in points]
    times = [1000 * row["best"] for row in points]
    held = [row["peak_bytes"] / 2**20 for row in points]
    planned_times = [1000 * cost.seconds.total for cost in costs]
    planned_held = [cost.memory.total / 2**20 for cost in costs]
    axes.set(xscale="log", yscale="log")
    axes.yaxis.set_major_formatter(LogFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.9)))
    for y, plan, style, name in (
        (times, planned_times, TIME, "ms of an epoch"),
        (held, planned_held, HELD, "MiB at the peak"),
    ):
        draw_line(axes, x, y, style, name)
        axes.plot(x, plan, ":", color=style.colour, label=f"{name}, planned")
    axes.set_xticks(x, [f"{value:,}" for value in x])
    axes.set_xticks([], minor=True)
    slopes = [slope(list(zip(x, y, strict=True))) for y in (times, held)]
    title = f"time ∝ {word}^{slopes[0]:.2f}, memory ∝ {word}^{slopes[1]:.2f}"
    axes.set(xlabel=word, title=title)
