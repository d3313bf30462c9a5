"""Do probabilities mean what they say, and do sets hold the true class as often as promised?

    python -m gcnii_paper.calibrating [GRAPH …] [--seeds 10] [--out results/calibration]

trains GCNII with 4 layers of width 64, and else the graph's default settings, once per seed.  Of
each run it measures the calibration error on the test nodes before and after the temperature of the
validation nodes, and after that of 20 of them.  Then validation and test nodes are divided anew at
random, 100 times: half of the new validation nodes set a temperature, half the bound of sets of
coverage 0.9, and the new test nodes are counted.  results/calibration becomes a table for docs/.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

import gcnii
from gcnii.errors import InputError
from gcnii.files import Document, read_document, write_document
from gcnii.nn.settings import Settings
from gcnii.report.tables import markdown_table
from gcnii.results.provenance import commit, versions
from gcnii.targets import Classes, target_of
from gcnii.targets.kinds import Sets, conformal_sets
from gcnii.train.own import SOME
from gcnii.train.presets import uses_own_default

MOVED = ("benchmarks/calibrating.py", "-m gcnii_paper.calibrating")  # in older records
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
    """What `main` wrote, in the order of the names."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise InputError(
            f"there is no {folder}/*.json; `python -m gcnii_paper.calibrating` makes it"
        )
    return [read_document(path, SHAPE, "measurement of calibration", dict) for path in paths]


def calibration_table(measured: list[Document]) -> str:
    """One row for each graph, and whether the bars are met."""
    table, first = markdown_table(HEADS, map(_cells, measured)), measured[0]
    settings = ", ".join(f"{name} {value}" for name, value in first["settings"].items())
    about = (
        f"GCNII ({settings}, else the graph's default settings), mean over {len(first['runs'])} "
        f"seeds; coverage {first['coverage']} was asked for, and its means are over "
        f"{first['redivisions']} random redivisions of validation and test nodes."
    )
    commands = sorted({f"    {one['command'].replace(*MOVED)}" for one in measured})
    return "\n".join([table, about, "", _verdict(measured), "", *commands]) + "\n"


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


GRAPHS = ("cora", "citeseer", "pubmed", "amazon-photo")
SETTINGS: Settings = {"layers": 4, "width": 64}
COVERAGE, REDIVISIONS, FEW = 0.9, 100, 20
KINDS: tuple[Sets, ...] = ("lac", "aps")
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def errors(scores: Floats, graph: gcnii.Graph, split: gcnii.Split) -> Document:
    """The calibration error on the test nodes, by three temperatures."""
    val, test, y = np.flatnonzero(split.val), split.test, graph.labels
    some = np.random.default_rng(0).choice(val, min(FEW, len(val)), replace=False)

    target = target_of(graph)

    def error(T: float) -> float:
        return target.calibration_error(softmax(scores[test] / T, axis=1), y[test])

    T = target.best_temperature(scores[val], y[val])
    few = target.best_temperature(scores[some], y[some])
    return {"temperature": T, "before": error(1.0), "after": error(T), "after_20": error(few)}


def covered(scores: Floats, y: Ints, nodes: Ints, count: int, kind: Sets) -> tuple[float, float]:
    """Coverage and mean size of the sets, over redivisions of nodes: `count` of them validate."""
    shares, sizes = [], []
    for seed in range(REDIVISIONS):
        drawn = np.random.default_rng(seed).permutation(nodes)
        first, second, test = np.split(drawn, [count // 2, count])
        T = Classes(scores.shape[1]).best_temperature(scores[first], y[first])
        P, held = (softmax(scores[some] / T, axis=1) for some in (test, second))
        sets = conformal_sets(P, held, y[second], COVERAGE, kind, seed)
        shares.append(sets[np.arange(len(test)), y[test]].mean())
        sizes.append(sets.sum(1).mean())
    return float(np.mean(shares)), float(np.mean(sizes))


def measure(name: str, seeds: int) -> Document:
    """One graph: the errors of each run, and the sets of the first."""
    graph = gcnii.load(name)
    settings = (SOME if uses_own_default(name) else {}) | SETTINGS  # what was published, else SOME
    result = gcnii.fit(graph, "gcnii", seeds=range(seeds), device="cpu", threads=1, **settings)
    assert isinstance(result, gcnii.Result)
    runs, sets = [], {}
    for i, run in enumerate(result.runs):
        split = graph.splits[run.split]
        scores = result.alone(i).scores(graph, "cpu")
        runs.append({"seed": run.seed, "split": run.split, **errors(scores, graph, split)})
        if i == 0:
            nodes, count = np.flatnonzero(split.val | split.test), int(split.val.sum())
            for kind in KINDS:
                coverage, size = covered(scores, graph.labels, nodes, count, kind)
                sets[kind] = {"coverage": coverage, "size": size}
    about = {"graph": graph.name, "settings": SETTINGS, "validation": count, "coverage": COVERAGE}
    tested = {"test_mean": float(result.test.mean()), "redivisions": REDIVISIONS}
    return about | tested | {"sets": sets, "runs": runs}


def main() -> None:
    """Measure, print and write, one document a graph."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("graphs", nargs="*", default=GRAPHS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("results/calibration"))
    given = parser.parse_args()
    made = {"commit": commit(), "versions": versions()}
    command = shlex.join(["python", "-m", "gcnii_paper.calibrating", *sys.argv[1:]])
    for name in given.graphs:
        found = measure(name, given.seeds) | {"command": command, **made}
        write_document(given.out / f"{name}.json", found)
        words = "  ".join(f"{key} {_mean(found, key):.3f}" for key in _RUN)
        sizes = "  ".join(
            f"{kind}: coverage {one['coverage']:.3f}, size {one['size']:.2f}"
            for kind, one in found["sets"].items()
        )
        print(f"{name}: test {found['test_mean']:.3f}  {words}  {sizes}", flush=True)


if __name__ == "__main__":
    main()
