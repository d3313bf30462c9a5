"""Do probabilities mean what they say, and do sets hold the true class as often as promised?

    python -m gcnii_paper.calibrating [GRAPH …] [--seeds 10] [--out results/calibration]

trains GCNII with 4 layers of width 64, and else the graph's default settings, once per seed.  Of
each run it measures the calibration error on the test nodes before and after the temperature of the
validation nodes, and after that of 20 of them; and the sets of coverage 0.9 as `predict_sets` gives
them, whose temperature and bound are those of the validation nodes, on the test nodes.
results/calibration becomes a table for docs/.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

import gcnii
from gcnii.errors import InputError
from gcnii.files import Document, write_document
from gcnii.nn.settings import Settings
from gcnii.report.tables import markdown_table
from gcnii.targets import label_target_of
from gcnii.targets.target import Sets
from gcnii.train.presets import SOME, uses_own_default
from gcnii_paper.documents import made_by, read_folder, run_script

_SETS = {"coverage": float, "size": float}
_ERRORS = {"temperature": float, "before": float, "after": float, "after_20": float}
SHAPE = {
    **{"graph": str, "settings": dict, "validation": int, "coverage": float, "command": str},
    "test_mean": float,
    "runs": [{**_ERRORS, "lac": _SETS, "aps": _SETS}],
}
HEADS = (
    *("graph", "test", "T", "error before", "after", "after, by 20 nodes"),
    *("coverage, LAC", "size", "coverage, APS", "size"),
)
KINDS: tuple[Sets, ...] = ("lac", "aps")
MOST_ERROR, COVERED = 0.05, 0.01  # the bars


def calibration_table(folder: Path) -> str:
    """One row for each graph that `main` measured, and whether the bars are met."""
    command = "python -m gcnii_paper.calibrating"
    measured = [*read_folder(folder, SHAPE, "measurement of calibration", dict, command).values()]
    table, first = markdown_table(HEADS, map(_cells, measured)), measured[0]
    settings = ", ".join(f"{name} {value}" for name, value in first["settings"].items())
    chance = ", ".join(f"{_by_chance(one):.3f} on {one['graph']}" for one in measured)
    about = (
        f"GCNII ({settings}, else the graph's default settings), mean over {len(first['runs'])} "
        f"seeds, ± their standard deviation; coverage {first['coverage']} was asked for. Half of "
        f"the validation nodes set the bound of sets, and all seeds of a split share them: by "
        f"chance alone the coverage of such a bound has a standard deviation of {chance}."
    )
    commands = sorted({f"    {one['command']}" for one in measured})
    return "\n".join([table, about, "", _verdict(measured), "", *commands]) + "\n"


def _mean(one: Document, key: str) -> float:
    return fmean(run[key] for run in one["runs"])


def _by_chance(one: Document) -> float:
    """Of the coverage of a bound from half of the validation nodes, a beta distribution's."""
    return float(np.sqrt(one["coverage"] * (1 - one["coverage"]) / (one["validation"] // 2 + 2)))


def _cells(one: Document) -> list[str]:
    errors = (f"{_mean(one, key):.3f}" for key in ("before", "after", "after_20"))
    temperature = f"{_mean(one, 'temperature'):.2f}"
    return [one["graph"], f"{100 * one['test_mean']:.1f}", temperature, *errors, *_set_cells(one)]


def _set_cells(one: Document) -> Iterable[str]:
    for kind in KINDS:
        spread = stdev(run[kind]["coverage"] for run in one["runs"])
        yield f"{_coverage(one, kind):.3f} ± {spread:.3f}"
        yield f"{fmean(run[kind]['size'] for run in one['runs']):.2f}"


def _coverage(one: Document, kind: Sets) -> float:
    return fmean(run[kind]["coverage"] for run in one["runs"])


def _verdict(measured: list[Document]) -> str:
    """Which graphs miss a bar."""
    off = [one["graph"] for one in measured if _mean(one, "after") > MOST_ERROR]
    missed = [
        f"{one['graph']} ({kind.upper()})"
        for one in measured
        for kind in KINDS
        if abs(_coverage(one, kind) - one["coverage"]) > COVERED
    ]
    return (
        f"The bars: an error of at most {MOST_ERROR} after calibration ({_met(off)}); a coverage "
        f"within {COVERED} of what was asked for ({_met(missed)})."
    )


def _met(missed: list[str]) -> str:
    return f"missed on {', '.join(missed)}" if missed else "met on all"


GRAPHS = ("cora", "citeseer", "pubmed", "amazon-photo")
SETTINGS: Settings = {"layers": 4, "width": 64}
COVERAGE, FEW = 0.9, 20
Floats = NDArray[np.float64]


def errors(scores: Floats, graph: gcnii.Graph, split: gcnii.Split) -> Document:
    """The calibration error on the test nodes, by three temperatures."""
    val, test, y = np.flatnonzero(split.val), split.test, graph.labels
    some = np.random.default_rng(0).choice(val, min(FEW, len(val)), replace=False)

    target = label_target_of(graph)

    def error(T: float) -> float:
        return target.calibration_error(softmax(scores[test] / T, axis=1), y[test])

    T = target.best_temperature(scores[val], y[val])
    few = target.best_temperature(scores[some], y[some])
    return {"temperature": T, "before": error(1.0), "after": error(T), "after_20": error(few)}


def covered(one: gcnii.Result, graph: gcnii.Graph, split: gcnii.Split, kind: Sets) -> Document:
    """How many test nodes have their class in their set, and the mean size of these sets."""
    sets = one.predict_sets(graph, COVERAGE, "cpu", kind=kind)[split.test]
    holds = sets[np.arange(len(sets)), graph.labels[split.test]]
    return {"coverage": float(holds.mean()), "size": float(sets.sum(1).mean())}


def measure(name: str, seeds: int) -> Document:
    """One graph: the errors and the sets of each run."""
    graph = gcnii.load(name)
    settings = (SOME if uses_own_default(name) else {}) | SETTINGS  # what was published, else SOME
    result = gcnii.fit(graph, "gcnii", seeds=range(seeds), device="cpu", threads=1, **settings)
    assert isinstance(result, gcnii.Result)
    if result.interrupted:  # some of its runs are missing, or not trained to their end
        raise InputError(f"the training on {name} was interrupted; nothing was measured")
    runs = []
    for i, run in enumerate(result.runs):
        split, one = graph.splits[run.split], result.alone(i)
        found: Document = {kind: covered(one, graph, split, kind) for kind in KINDS}
        found |= errors(one.scores(graph, "cpu"), graph, split)
        runs.append({"seed": run.seed, "split": run.split, **found})
    count = int(graph.splits[0].val.sum())
    about = {"graph": graph.name, "settings": SETTINGS, "validation": count, "coverage": COVERAGE}
    return about | {"test_mean": float(result.test.mean()), "runs": runs}


def main(*graphs: str, seeds: int = 10, out: Path = Path("results/calibration")) -> None:
    """Measure, print and write, one document a graph."""
    graphs = graphs or GRAPHS
    made = made_by("calibrating", *graphs, "--seeds", seeds)
    for name in graphs:
        found = measure(name, seeds) | made
        write_document(out / f"{name}.json", found)
        print(" ".join(_cells(found)), flush=True)


if __name__ == "__main__":
    run_script(main)
