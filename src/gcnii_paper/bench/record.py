"""A measured case as a JSON document, with all that is needed to measure and to judge it again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch

from gcnii.files import Document, write_document
from gcnii.results.provenance import commit, versions
from gcnii.train.hardware import device_name
from gcnii_paper.bench.graphs import BenchGraph
from gcnii_paper.bench.measure import Measured, Timed
from gcnii_paper.bench.runners import plan_of

COUNTED = (
    "per layer and replica 13 passes over n·h numbers (training forward 4, backward 3, weight "
    "gradients 2, gradient of H0 1, evaluation 3) and 5 products of 2·n·h² operations; where n·h "
    "numbers do not fit into the cache, 3 times a row of h numbers for every entry of P̃; bandwidth "
    "and operations a second are those of a large copy and of a large matrix product on the same "
    "device"
)


def document(found: Measured) -> Document:
    """The case as a JSON document; times are in seconds per epoch."""
    case, device = found.case, found.device
    return {
        "case": case.name,
        "title": case.title,
        "command": f"gcnii bench {case.name} --device {device.type} --rounds {found.rounds}"
        + (f" --scale {case.scale:g}" if case.scale < 1 else ""),
        "device": device_name(device),
        "processor": processor(),
        "threads": torch.get_num_threads(),
        "versions": versions(),
        "commit": commit(),
        "graph": _graph(found.lines[0].bench_graph),
        "per": list(case.per),
        "rates": asdict(found.rates),
        "floor": COUNTED,
        "lines": [_line(found, line) for line in found.lines],
        "notes": found.notes,
    }


def write(folder: Path, record: Document) -> Path:
    """Write the document to `CASE-DEVICE.json` in the folder."""
    device = record["device"].split(":")[0]
    return write_document(folder / f"{record['case']}-{device}.json", record)


def _graph(bench_graph: BenchGraph) -> Document:
    graph, drawn, entries = bench_graph.graph, bench_graph.drawn, bench_graph.entries
    return {"name": graph.name, "drawn": drawn, "n": graph.n, "entries": entries}


def _line(found: Measured, timed: Timed) -> Document:
    line, settings = timed.line, plan_of(timed.line).model_settings
    return {
        "who": line.who,
        **({"label": line.label} if line.label else {}),
        "model": line.model,
        "layers": settings["layers"],
        "width": settings["width"],
        "precision": line.precision,
        "replicas": line.replicas,
        "entries": timed.bench_graph.entries,
        **_times(found, timed),
        "failed": timed.failed,
        **timed.facts,
    }


def _times(found: Measured, timed: Timed) -> Document:
    floor = found.floor(timed)
    return {
        "epochs_a_round": timed.chunk,
        "seconds": timed.seconds,
        "best": timed.best if timed.seconds else None,
        "median": timed.median if timed.seconds else None,
        "ratio": found.ratio(timed),
        "peak_bytes": timed.peak,
        "floor": asdict(floor) if floor else None,
    }


def processor() -> str | None:
    """The name of the CPU, where the system tells."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None
    )
