"""Whether probabilities mean what they say: results/calibration as a table for docs/."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from gcnii.errors import InputError
from gcnii.files import Document, read_document

_SETS = {"coverage": float, "size": float}
_RUN = {"temperature": float, "before": float, "after": float, "after_20": float}
SHAPE = {
    **{"graph": str, "settings": dict, "validation": int, "coverage": float, "command": str},
    **{"test_mean": float, "redivisions": int},
    "sets": {"lac": _SETS, "aps": _SETS},
    "runs": [_RUN],
}
HEADS = (
    *("graph", "test", "T", "error before", "after", "after, by 20 nodes"),
    *("coverage, LAC", "size", "coverage, APS", "size"),
)
MOST_ERROR, COVERED = 0.05, 0.01  # the bars


def read_calibrations(folder: Path) -> list[Document]:
    """What benchmarks/calibrating.py wrote, in the order of the names."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise InputError(
            f"there is no {folder}/*.json; `python benchmarks/calibrating.py` makes it"
        )
    return [read_document(path, SHAPE, "measurement of calibration", dict) for path in paths]


def calibration_table(measured: list[Document]) -> str:
    """One row for each graph, and whether the bars are met."""
    lines = [f"|{'|'.join(HEADS)}|", f"|{'---|' * len(HEADS)}"]
    lines += [f"|{'|'.join(_cells(one))}|" for one in measured]
    first = measured[0]
    settings = ", ".join(f"{name} {value}" for name, value in first["settings"].items())
    about = (
        f"GCNII ({settings}, else the graph's default settings), mean over {len(first['runs'])} "
        f"seeds; coverage {first['coverage']} was asked for, and its means are over "
        f"{first['redivisions']} random redivisions of validation and test nodes."
    )
    commands = sorted({f"    {one['command']}" for one in measured})
    return "\n".join([*lines, "", about, "", _verdict(measured), "", *commands]) + "\n"


def _mean(one: Document, key: str) -> float:
    return fmean(run[key] for run in one["runs"])


def _cells(one: Document) -> list[str]:
    errors = (f"{_mean(one, key):.3f}" for key in ("before", "after", "after_20"))
    sets = (
        f"{one['sets'][kind][key]:.{digits}f}"
        for kind in ("lac", "aps")
        for key, digits in (("coverage", 3), ("size", 2))
    )
    temperature = f"{_mean(one, 'temperature'):.2f}"
    return [one["graph"], f"{100 * one['test_mean']:.1f}", temperature, *errors, *sets]


def _verdict(measured: list[Document]) -> str:
    """Which graphs miss a bar."""
    off = [one["graph"] for one in measured if _mean(one, "after") > MOST_ERROR]
    missed = [
        f"{one['graph']} ({kind.upper()})"
        for one in measured
        for kind, found in one["sets"].items()
        if abs(found["coverage"] - one["coverage"]) > COVERED
    ]
    return (
        f"The bars: an error of at most {MOST_ERROR} after calibration ({_met(off)}); a coverage "
        f"within {COVERED} of what was asked for ({_met(missed)})."
    )


def _met(missed: list[str]) -> str:
    return f"missed on {', '.join(missed)}" if missed else "met on all"
