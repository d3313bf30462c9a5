"""A rare class: the default beside the trees that a skilled user would write, and what it promises.

    python -m gcnii_paper.rare [--seeds 3] [--nodes 20000] [--effort standard] [--out results/rare]

makes graphs of accounts, 3 % of which are fraud, hides the labels of a quarter of them, and trains
`gcnii.fit(graph)` on the rest.  On the test nodes it is compared with LightGBM on the columns of a
node and of its neighbours by type of edge, known labels among them; and the precision that
`evaluate` says there with the one that `predict` has on the nodes whose labels were hidden.
"""

from __future__ import annotations

import time
import warnings
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import gcnii
from gcnii.files import Document, read_document, write_document
from gcnii.inference.evaluate import LabelEvaluation
from gcnii.report.tables import markdown_table
from gcnii.targets.scores import percent
from gcnii_paper.documents import made_by, met, run_script

if TYPE_CHECKING:
    from pandas import DataFrame

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RARE, USUAL = "fraud", "usual"
CHANNELS = np.array(["app", "web", "branch", "phone"])
EXPOSED = 0.05  # share of the usual accounts that fraud is aimed at
AIMED = 0.7  # share of a fraud's payments that go to these; of others, EXPOSED
PAID, KNOWN = 5, 5  # mean numbers of payments that an account makes, and of acquaintances
MISSING = 0.08  # share of the cells of two columns


def rare_graph(n: int = 20_000, share: float = 0.03, seed: int = 0) -> tuple[DataFrame, DataFrame]:
    """Accounts, of which a share is fraud, and the edges between them: (nodes, edges).

    Frauds pay usual accounts, and often the same exposed ones, which are told from others by their
    columns; whom an account knows says nothing.  So edges of the type `pays` tell more than the
    columns of the account itself, those of the type `knows` blur them, and neighbours are seldom of
    one class.
    """
    import pandas as pd

    random = np.random.default_rng(seed)
    y = np.zeros(n, bool)
    y[random.choice(n, round(share * n), replace=False)] = True
    exposed = ~y & (random.random(n) < EXPOSED)
    nodes = pd.DataFrame(_columns(random, y, exposed))
    ends = [_payments(random, y, exposed), random.integers(n, size=(2, KNOWN * n // 2))]
    kinds = np.repeat(["pays", "knows"], [one.shape[1] for one in ends])
    source, target = np.concatenate(ends, 1)
    edges = pd.DataFrame({"source": source, "target": target, "type": kinds})
    return nodes, edges[source != target].sample(frac=1, random_state=seed, ignore_index=True)


def _columns(random: np.random.Generator, y: Bools, exposed: Bools) -> dict[str, object]:
    """What is known of each account; each column says a little of what it is."""
    n = len(y)
    lure = 1.5 * exposed + 0.35 * y + random.normal(size=n)
    balance = np.exp(6 + 0.8 * lure + 0.5 * random.normal(size=n)).round(2)
    days = random.gamma(2.0, 400 * np.where(y, 0.8, 1.0)).round()
    for column in (balance, days):
        column[random.random(n) < MISSING] = np.nan
    by_phone = random.random(n) < np.where(exposed, 0.5, 0.15)
    return {
        "id": np.arange(n),
        "label": np.where(y, RARE, USUAL),
        "balance": balance,
        "days": days,
        "channel": np.where(by_phone, "phone", random.choice(CHANNELS, n)),
        "verified": np.where(random.random(n) < np.where(y, 0.6, 0.75), "yes", "no"),
        "region": np.char.add("r", random.integers(12, size=n).astype(str)),
    }


def _payments(random: np.random.Generator, y: Bools, exposed: Bools) -> Ints:
    """(2, m) who pays whom: anyone but a fraud."""
    payer = np.repeat(np.arange(len(y)), random.poisson(PAID, len(y)))
    aimed = random.random(len(payer)) < np.where(y[payer], AIMED, EXPOSED)
    chosen = (random.choice(np.flatnonzero(own), len(payer)) for own in (exposed, ~y))
    return np.stack([payer, np.where(aimed, *chosen)])


HIDDEN = 0.25  # share of the accounts whose label nobody is told
FOLDS, LEAVES, ROUNDS, PATIENCE = 5, (7, 15, 31), 2000, 100
KINDS = (("pays",), ("knows",), ("pays", "knows"))


def neighbourhood(nodes: DataFrame, edges: DataFrame, known: Bools, fraud: Bools) -> Floats:
    """(n, …) what a skilled user makes of the neighbours, for each type of edge and for both.

    Their number, means and maxima of their columns, how many of them have a known label, and how
    many are known to be fraud.

    known, fraud  the labels that may be used; a node's own is never among its columns
    """
    n, said = len(nodes), np.column_stack([known, known & fraud]).astype(float)
    H = np.column_stack([_numbers(nodes), *(nodes["channel"] == one for one in CHANNELS)])
    H = np.nan_to_num(H.astype(float), nan=0.0)
    found = []
    for kinds in KINDS:
        own = edges[edges["type"].isin(kinds)]
        u, v = (np.concatenate(ends) for ends in _both_ways(own))
        A = sp.csr_array((np.ones(len(u)), (u, v)), (n, n))
        A.data[:] = 1
        degree = A.sum(1)
        highest = np.column_stack([(A * column).max(1).toarray() for column in H.T[:2]])
        found += [degree, A @ H / np.maximum(degree, 1)[:, None], highest, A @ said]
    return np.column_stack(found)


def _both_ways(edges: DataFrame) -> tuple[list[Ints], list[Ints]]:
    ends = [edges[name].to_numpy() for name in ("source", "target")]
    return ends, ends[::-1]


def _numbers(nodes: DataFrame) -> Floats:
    numbers = np.column_stack([np.log(nodes["balance"]), nodes["days"], nodes["verified"] == "yes"])
    return np.asarray(numbers, np.float64)


def trees(nodes: DataFrame, edges: DataFrame, labelled: Bools, *, alone: bool = False) -> Floats:
    """(n,) the probability of fraud, of trees on each node's columns and its neighbourhood.

    The labelled nodes are divided into folds; of those outside a fold the labels are known, and
    the fold says when to stop and, of all, how many leaves are best.

    alone  without the neighbourhood
    """
    import lightgbm
    from sklearn.metrics import average_precision_score
    from sklearn.model_selection import StratifiedKFold

    y, rows = (nodes["label"] == RARE).to_numpy(), np.flatnonzero(labelled)
    kinds = [nodes[name].astype("category").cat.codes for name in ("channel", "region")]
    own = np.column_stack([_numbers(nodes), *kinds])
    divided = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(rows, y[rows])
    found = {leaves: (np.zeros(len(y)), np.zeros(len(y))) for leaves in LEAVES}
    for kept, held in ((rows[a], rows[b]) for a, b in divided):
        known = np.isin(np.arange(len(y)), kept)
        X = own if alone else np.column_stack([own, neighbourhood(nodes, edges, known, y)])
        for leaves, (out, everywhere) in found.items():
            how: dict[str, object] = {"num_leaves": leaves, "learning_rate": 0.05}
            how |= {
                "feature_fraction": 0.8,
                "num_threads": 1,
                "objective": "binary",
                "metric": "average_precision",
                "verbosity": -1,
            }
            train, val = lightgbm.Dataset(X[kept], y[kept]), lightgbm.Dataset(X[held], y[held])
            stop = lightgbm.early_stopping(PATIENCE, verbose=False)
            model = lightgbm.train(how, train, ROUNDS, [val], callbacks=[stop])
            p = np.asarray(model.predict(X))
            out[held], everywhere[:] = p[held], everywhere + p / FOLDS
    return max(found.values(), key=lambda one: average_precision_score(y[rows], one[0][rows]))[1]


def measure(seed: int, n: int, effort: str) -> Document:
    """The default and trees on one graph, of which some labels are hidden, and then looked up."""
    import pandas as pd
    from sklearn.metrics import average_precision_score as ap

    nodes, edges = rare_graph(n, seed=seed)
    fraud, hidden = (nodes["label"] == RARE).to_numpy(), _hidden(n, seed)
    shown = nodes.assign(label=pd.Series(nodes["label"]).mask(hidden))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph, began = gcnii.from_frames(shown, edges, name=f"rare-{seed}"), time.monotonic()
        result = gcnii.fit(graph, effort=effort, device="cpu", verbose=False)
        seconds, evaluation = time.monotonic() - began, result.evaluate(baselines=False)
        called = result.predict(graph, "cpu")[hidden] == RARE
    test, labelled = graph.splits[0].test, ~hidden & ~graph.splits[0].test
    assert isinstance(evaluation, LabelEvaluation)
    said, found = evaluation.decision, evaluation.scores["average_precision"]
    assert said is not None
    right = int((called & fraud[hidden]).sum())
    around, alone = (
        ap(fraud[test], trees(nodes, edges, labelled, alone=one)[test]) for one in (False, True)
    )
    return {
        "seed": seed,
        "ap": found.mean,
        "auc": evaluation.scores["roc_auc"].mean,
        "trees": float(around),
        "trees_own": float(alone),
        "threshold": said["threshold"],
        "promised": {name: said[name] for name in PROMISED},
        "test_flagged": round(said["flagged"] * int(test.sum()) / 1000),
        "flagged": int(called.sum()),
        "right": right,
        "positives": int(fraud[hidden].sum()),
        "seconds": round(seconds, 1),
    }


def _hidden(n: int, seed: int) -> Bools:
    return np.asarray(np.random.default_rng((seed, 1)).random(n) < HIDDEN)


PROMISED = ("precision", "precision_low", "precision_high", "recall")
SHAPE = {
    **{"nodes": int, "effort": str, "command": str},
    "graphs": [
        {
            **dict.fromkeys(("seed", "test_flagged", "flagged", "right", "positives"), int),
            **dict.fromkeys(("ap", "auc", "trees", "trees_own", "threshold", "seconds"), float),
            "promised": dict.fromkeys(PROMISED, float),
        }
    ],
}
HEADS = (
    *("graph", "average precision", "trees, with neighbours", "trees, own columns", "above, in %"),
    *("precision promised", "precision", "found", "s"),
)


def rare_table(path: Path) -> str:
    """One row for each graph, the means, and whether the bars are met."""
    measured: Document = read_document(path, SHAPE, "measurement of a rare class", dict)
    rows = measured["graphs"]
    ours, theirs = (fmean(one[name] for one in rows) for name in ("ap", "trees"))
    had = sum(one["right"] for one in rows) / sum(one["flagged"] for one in rows)
    found = sum(one["right"] for one in rows) / sum(one["positives"] for one in rows)
    precisions = [one["promised"]["precision"] for one in rows]
    said = float(np.average(precisions, weights=[one["test_flagged"] for one in rows]))
    inside = sum(map(_as_promised, rows))
    counts = (sum(one[name] for one in rows) for name in ("test_flagged", "flagged"))
    chance = sqrt(sum(had * (1 - had) / count for count in counts))
    lines = (
        f"{measured['nodes']:,} nodes each, effort {measured['effort']}; the precision that is "
        "promised is that of the test nodes, with its interval; the next two columns are of the "
        "nodes whose labels were hidden.",
        f"Average precision is {percent(ours)} on average, that of the trees {percent(theirs)}. Of "
        f"all hidden nodes that were flagged {percent(had)} % are fraud, where {percent(said)} % "
        f"were promised (inside the interval on {inside} of {len(rows)} graphs), and "
        f"{percent(found)} % of the hidden fraud is found.",
        f"The bars: no less than the trees ({met(ours >= theirs)}); half of the fraud "
        f"({met(found >= HALF_FOUND)}), at the precision that was promised ± 3 points "
        f"({met(abs(had - said) <= KEPT)}; so few flagged nodes differ by {percent(chance)} "
        "points by chance, which is the standard error).",
        f"    {measured['command']}",
    )
    return markdown_table(HEADS, map(_cells, rows)) + "\n".join(f"\n{one}" for one in lines) + "\n"


def _as_promised(one: Document) -> bool:
    """Whether the precision on hidden nodes is inside the interval of the test nodes."""
    low, high = (one["promised"][f"precision_{end}"] for end in ("low", "high"))
    return bool(low <= one["right"] / max(one["flagged"], 1) <= high)


HALF_FOUND, KEPT = 0.5, 0.03  # the bars


def _cells(one: Document) -> list[str]:
    said = one["promised"]
    mean, low, high = (percent(said[name]) for name in PROMISED[:3])
    scores = [percent(one[name]) for name in ("ap", "trees", "trees_own", "threshold")]
    had, found = one["right"] / max(one["flagged"], 1), one["right"] / one["positives"]
    return [
        str(one["seed"]),
        *scores,
        f"{mean} ({low} to {high})",
        percent(had),
        percent(found),
        f"{one['seconds']:.0f}",
    ]


def main(
    *,
    seeds: int = 3,
    nodes: int = 20_000,
    effort: str = "standard",
    out: Path = Path("results/rare"),
) -> None:
    """Measure, print and write."""
    graphs = list[Document]()
    for seed in range(seeds):
        words = ("--seeds", seed + 1, "--nodes", nodes, "--effort", effort)
        about = {"nodes": nodes, "effort": effort, **made_by("rare", *words)}
        graphs.append(measure(seed, nodes, effort))
        print(" ".join(_cells(graphs[-1])), flush=True)
        # so that it can be ended early
        write_document(out / "default.json", {**about, "graphs": graphs})


if __name__ == "__main__":
    run_script(main)
