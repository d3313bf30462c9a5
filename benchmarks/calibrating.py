"""Do probabilities mean what they say, and do sets hold the true class as often as promised?

    python benchmarks/calibrating.py [GRAPH …] [--seeds 10] [--out results/calibration]

trains GCNII with 4 layers of width 64, and else the graph's default settings, once per seed.  Of
each run it measures the calibration error on the test nodes before and after the temperature of the
validation nodes, and after that of 20 of them.  Then validation and test nodes are divided anew at
random, 100 times: half of the new validation nodes set a temperature, half the bound of sets of
coverage 0.9, and the new test nodes are counted.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

import gcnii
from gcnii.files import Document, write_document
from gcnii.results.provenance import commit, versions
from gcnii.targets import Classes, target_of
from gcnii.targets.classes import Sets, conformal_sets

GRAPHS = ("cora", "citeseer", "pubmed", "amazon-photo")
SETTINGS = {"layers": 4, "width": 64}
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
    result = gcnii.fit(graph, seeds=range(seeds), device="cpu", threads=1, **SETTINGS)
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
    command = shlex.join(["python", *sys.argv])
    for name in given.graphs:
        found = measure(name, given.seeds) | {"command": command, **made}
        write_document(given.out / f"{name}.json", found)
        means = {
            key: np.mean([run[key] for run in found["runs"]])
            for key in ("temperature", "before", "after", "after_20")
        }
        words = "  ".join(f"{key} {value:.3f}" for key, value in means.items())
        sizes = "  ".join(
            f"{kind}: coverage {one['coverage']:.3f}, size {one['size']:.2f}"
            for kind, one in found["sets"].items()
        )
        print(f"{name}: test {found['test_mean']:.3f}  {words}  {sizes}", flush=True)


if __name__ == "__main__":
    main()
