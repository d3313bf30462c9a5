"""Do types of edges help?  ACM, DBLP and IMDB of the HGB benchmark (Lv et al. 2021).

    python -m gcnii_paper.hgb FOLDER [GRAPH …] [--seeds 5] [--out results/typed]

trains GCNII with 4 layers, else the settings that a graph of one's own has, on ACM.zip, DBLP.zip
and IMDB.zip of FOLDER (github.com/CrawlScript/gnn_datasets, HGB/): with `edge_types use` and with
`ignore`, once per seed.  Training and test labels are the benchmark's, and each seed draws its own
fifth of the training labels to validate on.  results/typed becomes a table for docs/.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import gcnii
from gcnii.errors import InputError
from gcnii.files import Document, write_document
from gcnii.graph import Graph, Split
from gcnii.graph.arrays import known_rows
from gcnii.graph.graph import FIFTH, hold_out, strata
from gcnii.graph.types import EdgeTypes
from gcnii.nn.settings import Settings
from gcnii.report.tables import markdown_table
from gcnii.targets.interval import over_runs
from gcnii.targets.scores import percent
from gcnii_paper.documents import made_by, met, read_folder, run_script


def hgb_graph(path: Path, seeds: int = 5) -> Graph:
    """The graph of a zip file of HGB, with a split for each seed.

    Links have the types of link.dat, each with its reverse as another, so that a node gathers from
    what its links of a type point to.  X has a block of columns for each type of nodes, as tables
    of several types have: a column of ones, and those that they have in node.dat.
    """
    with zipfile.ZipFile(path) as archive:
        folder = path.stem

        def table(name: str) -> list[list[str]]:
            text = archive.read(f"{folder}/{name}").decode("utf-8", "replace")
            return [line.split("\t") for line in text.splitlines() if line]

        nodes, links = table("node.dat"), np.array([row[:3] for row in table("link.dat")], np.int64)
        labels = {role: table(name) for role, name in LABELS.items()}
        about = json.loads(archive.read(f"{folder}/info.dat"))
    kinds = about["link.dat"]["link type"]
    names = tuple(kinds[str(t)]["meaning"] for t in range(len(kinds)))
    y, train = _labels(labels, len(nodes))
    tested = known_rows(y) & ~train
    return Graph(
        X=_features(nodes),
        edges=links[:, :2].T,
        edge_types=links[:, 2],
        edge_type_names=names,
        directed=True,
        y=y,
        splits=tuple(_split(y, train, tested, seed) for seed in range(seeds)),
        name=folder,
    )


# Those of label.dat.test_full are drawn by chance: no model finds more than frequencies in them.
LABELS = {"train": "label.dat", "test": "label.dat.test"}


def _labels(
    tables: dict[str, list[list[str]]], n: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """y, (n,) or (n, k) where nodes have several labels; (n,) which nodes are for training."""
    found = {
        role: {int(row[0]): [int(one) for one in row[3].split(",")] for row in rows}
        for role, rows in tables.items()
    }
    each = {node: own for by_node in found.values() for node, own in by_node.items()}
    k = 1 + max(max(own) for own in each.values())
    several = any(len(own) > 1 for own in each.values())
    y = np.full((n, k) if several else n, -1)
    for node, own in each.items():
        y[node] = np.isin(np.arange(k), own) if several else own[0]
    train = np.zeros(n, bool)
    train[list(found["train"])] = True
    return y, train


def _split(
    y: NDArray[np.int64], train: NDArray[np.bool_], test: NDArray[np.bool_], seed: int
) -> Split:
    """A fifth of the training nodes of each class, drawn by the seed, validates."""
    val = hold_out(np.where(train, strata(y), -1), FIFTH, np.random.default_rng((seed, 1)))
    return Split(train=train & ~val, val=val, test=test)


def _features(nodes: list[list[str]]) -> sp.csr_array:
    """(n, …) a block of columns for each type of nodes: a one, and what they have in node.dat."""
    kinds = np.array([int(row[2]) for row in nodes])
    order, blocks = [], []
    for kind in range(kinds.max() + 1):
        own = np.flatnonzero(kinds == kind)
        order.append(own)
        given = [row.split(",") for row in (nodes[i][3] for i in own if len(nodes[i]) > 3)]
        X = np.array(given if len(given) == len(own) else [[]] * len(own), np.float32)
        blocks.append(sp.csr_array(np.column_stack([np.ones(len(own), np.float32), X])))
    stacked = sp.block_diag(blocks, "csr")
    return sp.csr_array(stacked[np.argsort(np.concatenate(order))])


SETTINGS: Settings = {"layers": 4, "epochs": 100}
GRAPHS, AT_LEAST = ("ACM", "DBLP", "IMDB"), 2  # on so many of them, types must help
_SCORES = {"val": [float], "test": [float], "seconds": float}
SHAPE = {
    **{"graph": str, "edge_types": int, "edges": int, "measured": str, "settings": dict},
    **{"seeds": int, "command": str, "use": _SCORES, "ignore": _SCORES},
}
HEADS = ("graph", "edges", "types", "with types", "types ignored", "difference")


def typed_table(folder: Path) -> str:
    """One row for each graph that `main` measured, and whether types help on most of them."""
    command = "python -m gcnii_paper.hgb"
    measured = [*read_folder(folder, SHAPE, "measurement of types", dict, command).values()]
    first = measured[0]
    settings = ", ".join(f"{name} {value}" for name, value in first["settings"].items())
    better = [one["graph"] for one in measured if fmean(_gains(one)) > 0]
    lines = (
        f"Micro-F1 on the test nodes in %, GCNII ({settings}, else the settings of a graph of "
        f"one's own), mean ± deviation of {first['seeds']} seeds; the difference is paired by "
        "seed, with its 95 % interval.",
        f"With types it is above on {len(better)} of {len(measured)} "
        f"(the bar: {AT_LEAST} of {len(GRAPHS)}, {met(len(better) >= AT_LEAST)}).",
        *sorted({f"    {one['command']}" for one in measured}),
    )
    return markdown_table(HEADS, map(_cells, measured)) + "".join(f"\n{one}\n" for one in lines)


def _gains(one: Document) -> list[float]:
    """What types add to the test score of each seed."""
    pairs = zip(one["use"]["test"], one["ignore"]["test"], strict=True)
    return [with_types - without for with_types, without in pairs]


def _cells(one: Document) -> list[str]:
    scores = (
        f"{percent(fmean(own))} ± {percent(stdev(own))}"
        for own in (one["use"]["test"], one["ignore"]["test"])
    )
    gap = over_runs(np.array(_gains(one)))
    mean, low, high = (f"{100 * end:+.1f}" for end in (gap.mean, gap.low, gap.high))
    row = (one["graph"], f"{one['edges']:,}", str(one["edge_types"]))
    return [*row, *scores, f"{mean} [{low}, {high}]"]


def measure(graph: Graph, seeds: int) -> Document:
    """The scores of each seed, with types and without."""
    found: Document = {}
    kinds: Iterable[EdgeTypes] = ("use", "ignore")
    for kind in kinds:
        began = time.monotonic()
        result = gcnii.fit(
            graph, "gcnii", seeds=range(seeds), edge_types=kind, device="cpu", threads=1, **SETTINGS
        )
        if result.interrupted:  # some of its runs are missing, or not trained to their end
            raise InputError(f"the training on {graph.name} was interrupted; nothing was measured")
        found[kind] = {
            "val": [run.val for run in result.runs],
            "test": [float(one) for one in result.test],
            "seconds": round(time.monotonic() - began, 1),
        }
        found["measured"] = result.measured
    about = {"graph": graph.name, "edge_types": graph.type_count, "edges": graph.m}
    return about | {"settings": SETTINGS, "seeds": seeds} | found


def main(folder: Path, /, *graphs: str, seeds: int = 5, out: Path = Path("results/typed")) -> None:
    """Measure, print and write, one document a graph."""
    graphs = graphs or GRAPHS
    made = made_by("hgb", folder.name, *graphs, "--seeds", seeds)
    for name in graphs:
        found = measure(hgb_graph(folder / f"{name}.zip", seeds), seeds)
        write_document(out / f"{name}.json", found | made)
        print(" ".join(_cells(found)), flush=True)


if __name__ == "__main__":
    run_script(main)
