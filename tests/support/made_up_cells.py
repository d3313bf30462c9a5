"""Cells with made-up runs, of every kind that a page can show."""

import numpy as np

from gcnii.analysis import by_degree
from gcnii.graph import Graph, Split
from gcnii_paper.tables.cells import MeasuredCell, MeasuredRun
from gcnii_paper.tables.registry import CELLS


def cell_of(name):
    """The declared cell of this id."""
    return next(cell for cells in CELLS.values() for cell in cells if cell.id == name)


def measured(name, scores, rows=None, **changes):
    """The cell with one run per score, in per cent; `rows` are its accuracy by degree."""
    cell = cell_of(name)
    runs = tuple(
        MeasuredRun(
            seed=seed,
            split=0,
            test=None if score is None else score / 100,
            val=0.8,
            val_loss=0.7,
            best_epoch=90,
            epochs=100 + seed,
            seconds=2.0,
            device="cpu",
            versions={"gcnii": "0.1", "torch": "2.13.0", "triton": None},
            commit="abc1234",
            by_degree=rows,
        )
        for seed, score in enumerate(scores)
    )
    fields = {
        "cell": cell.id,
        "table": cell.table,
        "row": cell.row,
        "column": cell.column,
        "graph": cell.graph,
        "model": cell.model,
        "settings": {"layers": 64, "alpha": 0.1} | dict(cell.settings),
        "settings_hash": cell.id,
        "command": cell.command,
        "printed": cell.printed,
        "note": cell.note,
        "extra": cell.extra,
        "stand_in": cell.stand_in,
        "runs": runs,
    }
    return MeasuredCell(**fields | changes)


def around(mean, n=10):
    """n scores around the mean."""
    return [mean + 0.1 * (i - (n - 1) / 2) for i in range(n)]


def degree_rows(seed):
    """Accuracy by degree of random labels on a random graph with a hub."""
    random = np.random.default_rng(seed)
    edges = np.concatenate(
        [random.integers(0, 400, (2, 900)), [np.zeros(150, int), np.arange(1, 151)]], 1
    )
    roles = random.permutation(["train"] * 100 + ["val"] * 100 + ["test"] * 200)
    graph = Graph(X=np.eye(400), edges=edges, y=np.zeros(400), splits=(Split.of_roles(roles),))
    return by_degree(graph, random.integers(0, 2, 400))


def a_page_of_everything():
    """Each word at least once, both figures, and most cells missing."""
    cells = [
        measured("table2/gcnii/cora", around(85.5, 100)),  # replicates
        measured("table2/gcn/cora", around(90, 100)),  # higher
        measured("table2/gat/cora", around(70, 100)),  # lower
        measured("table2/appnp/cora", [80, 86]),  # undecided
        measured("table2/gcnii-star-as-printed/cora", [84.9]),  # other settings
        measured("table3/cora-gcnii/64", [85.1, None]),  # failed
        measured("table3/pubmed-incep/64", around(77)),  # unprinted: the paper's OOM
        measured("table4/gcnii/ppi", [61.2], graph="ppi-like", stand_in=True),
    ]
    for layers in (2, 8, 64):
        cells.append(measured(f"figure1/cora/{layers}", around(80), rows=degree_rows(layers)))
        cells.append(measured(f"figure2/cora-gcnii/{layers}", around(82 + layers / 16)))
        cells.append(measured(f"figure2/cora-gcn/{layers}", around(82 - layers)))
    return cells
