"""Numbers to predict: the default beside trees and an MLP, on the views of Twitch's streamers.

    python -m gcnii_paper.views FOLDER [--splits 5] [--effort quick] [--out results/views]

FOLDER holds edges.csv, features.json and target.csv of MUSAE's Twitch EN-GB
(github.com/EdisonLeeeee/GraphData).  `gcnii.fit(graph)` predicts the logarithm of the views, on
splits 60/20/20 that are drawn by chance.  Beside it, on the same nodes: an MLP, which is its member
`mlp` alone; gradient boosting on the columns of a node and of its neighbours, known numbers among
them, and linear regression on a node's own, which are baselines of `evaluate`.  Intervals
of coverage 0.9 are those of `predict`.
"""

from __future__ import annotations

import csv
import json
import time
import warnings
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import scipy.sparse as sp

import gcnii
from gcnii.data.splits import stratified_split
from gcnii.files import Document, read_document, write_document
from gcnii.graph import Graph
from gcnii.inference.baselines import BOOSTED_AROUND, LINEAR, baseline
from gcnii.report.tables import markdown_table
from gcnii.results.ensemble import Ensemble
from gcnii.targets.interval import over_runs
from gcnii_paper.documents import made_by, met, run_script

COVERAGE, NEAR = 0.9, 0.02  # of the intervals, and how near to it the bar wants them
MLP = "mlp"


def views_graph(folder: Path, splits: int) -> Graph:
    """Streamers, friendships between them, what they play and where they live."""
    with (folder / "target.csv").open(encoding="utf-8") as file:
        views = {int(row["new_id"]): float(row["views"]) for row in csv.DictReader(file)}
    with (folder / "edges.csv").open(encoding="utf-8") as file:
        edges = np.array([list(map(int, row.values())) for row in csv.DictReader(file)])
    features = json.loads((folder / "features.json").read_text("utf-8"))
    n = len(views)
    rows = np.concatenate([[int(node)] * len(own) for node, own in features.items()]).astype(int)
    columns = np.concatenate(list(features.values())).astype(int)
    X = sp.csr_array((np.ones(len(rows), np.float32), (rows, columns)))
    X.sum_duplicates()
    X.data[:] = 1
    y = np.log([[views[i]] for i in range(n)])
    return Graph(
        X=X,
        edges=edges.T,
        y=y,
        targets=("log views",),
        splits=tuple(stratified_split(y, seed) for seed in range(splits)),
        name="twitch-engb",
    )


def measure(graph: Graph, effort: str) -> Document:
    """R² of the default, of trees and of an MLP on each split, and the coverage of intervals."""
    began = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ensemble = gcnii.fit(graph, effort=effort, device="cpu", verbose=False)
    seconds = time.monotonic() - began
    assert isinstance(ensemble, Ensemble)
    mlp = ensemble.member(MLP)
    rows = [
        {
            "r2": float(ensemble.test[i]),
            "mlp": float(mlp.test[i]),
            "trees": baseline(BOOSTED_AROUND, graph, graph.splits[run.split]).scores["r2"],
            "linear": baseline(LINEAR, graph, graph.splits[run.split]).scores["r2"],
            **_covered(ensemble.part([i]), graph, run.split),
        }
        for i, run in enumerate(ensemble.runs)
    ]
    return {"graph": graph.name, "effort": effort, "splits": rows, "seconds": round(seconds, 1)}


def _covered(one: Ensemble, graph: Graph, split: int) -> Document:
    """How many test nodes have their number in their interval, and how wide it is."""
    test = graph.splits[split].test
    low, high = one.predict_interval(graph, COVERAGE, "cpu")[test].T
    y = graph.labels[test, 0]
    holds = (low <= y) & (y <= high)
    return {"coverage": float(holds.mean()), "width": float((high - low).mean())}


_SCORES = dict.fromkeys(("r2", "mlp", "trees", "linear", "coverage", "width"), float)
SHAPE = {"graph": str, "effort": str, "command": str, "seconds": float, "splits": [_SCORES]}
BESIDE = {"trees": "gradient boosting", "mlp": "the MLP", "linear": "linear regression"}
HEADS = (
    *("split", "R² of the default", "gradient boosting", "MLP", "linear regression"),
    *("coverage", "width"),
)


def views_table(path: Path) -> str:
    """One row for each split, and whether the bars are met."""
    measured: Document = read_document(path, SHAPE, "measurement of numbers", dict)
    rows = measured["splits"]
    columns = {name: [row[name] for row in rows] for name in _SCORES}
    means = [f"{fmean(own):.3f} ± {stdev(own):.3f}" for own in columns.values()]
    order = ("r2", *BESIDE, "coverage", "width")
    mean = ["mean ± deviation", *(means[list(columns).index(name)] for name in order)]
    table = [[str(i), *(f"{row[name]:.3f}" for name in order)] for i, row in enumerate(rows)]
    leads = {name: over_runs(np.subtract(columns["r2"], columns[name])) for name in BESIDE}
    above = all(lead.mean >= 0 for lead in leads.values())
    beside = ", ".join(
        f"{lead.mean:+.3f} [{lead.low:+.3f}, {lead.high:+.3f}] against {BESIDE[name]}"
        for name, lead in leads.items()
    )
    coverage = fmean(columns["coverage"])
    kept = met(abs(coverage - COVERAGE) <= NEAR)
    lines = (
        f"Effort {measured['effort']}, {measured['seconds']:.0f} s for all splits; widths are of "
        f"the logarithm. Paired by split, R² differs by {beside} (95 % intervals).",
        f"The bars: R² no less than that of gradient boosting, the MLP and linear regression "
        f"({met(above)}); a coverage of {COVERAGE} ± {NEAR} on test nodes ({kept}: "
        f"{coverage:.3f}).",
        f"    {measured['command']}",
    )
    return markdown_table(HEADS, [*table, mean]) + "".join(f"\n{one}\n" for one in lines)


def main(
    folder: Path, /, *, splits: int = 5, effort: str = "quick", out: Path = Path("results/views")
) -> None:
    """Measure, print and write."""
    made = made_by("views", folder.name, "--splits", splits, "--effort", effort)
    found = measure(views_graph(folder, splits), effort) | made
    print(views_table(write_document(out / "twitch-engb.json", found)))


if __name__ == "__main__":
    run_script(main)
