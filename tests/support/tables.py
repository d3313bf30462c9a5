"""Five tables as users have them, each with its edges, and with the labels that are not told.

churn      customers with numbers, categories, dates, gaps and notes; amounts weigh the edges
papers     abstracts and citations, and 75 labels
fraud      accounts, 3 % of them fraudulent, which differ from others in whom they pay
bipartite  users and the items they bought, which tell the users' taste
no_graph   customers whose edges were drawn at random
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gcnii
from gcnii.graph import Graph


@dataclass(frozen=True)
class Table:
    """nodes and edges as in nodes.csv and edges.csv, where nodes without a label are to be told.

    truth    the label of every node, "" if it has none
    reading  what `gcnii.from_frames` and the flags of `gcnii train` must know
    metric   what predictions are graded by: accuracy, or ap of the rarer class
    """

    name: str
    nodes: pd.DataFrame
    edges: pd.DataFrame
    truth: np.ndarray
    reading: dict[str, Any] = field(default_factory=dict)
    metric: str = "accuracy"

    def graph(self, seed: int = 0) -> Graph:
        """The graph, whose labelled nodes are split by this seed."""
        return gcnii.from_frames(self.nodes, self.edges, **self.reading, seed=seed, name=self.name)

    def write(self, folder: Path) -> Path:
        """The folder, with nodes.csv and edges.csv."""
        folder.mkdir(parents=True, exist_ok=True)
        self.nodes.to_csv(folder / "nodes.csv", index=False)
        self.edges.to_csv(folder / "edges.csv", index=False)
        return folder


def churn(n: int = 2000, seed: int = 0) -> Table:
    """Customers who call each other: who leaves depends on their contract and on their friends.

    The larger the amount that two exchange, the more one follows the other.
    """
    random = np.random.default_rng(seed)
    plan = random.choice(["basic", "family", "student", "business"], n, p=[0.4, 0.3, 0.2, 0.1])
    tenure, calls = random.gamma(2, 15, n).round(), random.poisson(1.2, n)
    fee = random.lognormal(3.2, 0.5, n).round(2)
    mood = random.normal(size=n)  # told by the notes alone
    # Twice the tenure is half the risk; a high fee matters to those on the basic plan.
    own = 0.9 * calls - 0.8 * np.log1p(tenure) + 0.8 * mood
    own = own + (plan == "basic") * 1.5 * np.log(fee / 25) - (plan == "family")
    own = (own - own.mean()) / own.std()
    circle = random.integers(0, n // 12, n)
    pairs = _pairs(circle, 3 * n, random, within=0.7)
    amounts = random.lognormal(2 + 1.5 * (circle[pairs[0]] == circle[pairs[1]]), 1.2).round(2)
    around = _mean_over_neighbours(own, pairs, n, np.log1p(amounts))
    risk = own + 1.2 * around / around.std() + random.logistic(0, 0.5, n)
    leaves = risk > np.quantile(risk, 0.7)
    nodes = pd.DataFrame(
        {
            "id": _ids("c", n),
            "age": _with_gaps(random.normal(44, 15, n).clip(18, 95).round(), 0.1, random),
            "plan": plan,
            "region": _with_gaps(
                random.choice([f"region {i}" for i in range(12)], n), 0.05, random
            ),
            "tenure": tenure,
            "fee": _with_gaps(fee, 0.08, random),
            "support_calls": calls,
            "paperless": random.choice(["true", "false"], n),
            "signed_up": pd.Timestamp("2024-06-30") - pd.to_timedelta(30 * tenure, "D"),
            "note": _with_gaps(_notes(mood, random), 0.15, random),
        }
    ).assign(signed_up=lambda frame: frame["signed_up"].dt.date.astype(str))
    truth = np.where(leaves, "leaves", "stays")
    edges = _frame(nodes, pairs).assign(weight=amounts)
    return _table("churn", nodes, edges, truth, 0.7, random, text="note", date="signed_up")


def papers(n: int = 1500, labelled: int = 75, seed: int = 0) -> Table:
    """Papers with abstracts on six subjects, which cite papers of their own subject mostly."""
    random = np.random.default_rng(seed)
    subjects = np.array(["biology", "chemistry", "economics", "geology", "history", "physics"])
    subject = random.permutation(np.arange(n) % len(subjects))
    words = np.array([f"{a}{b}{c}" for a in "bdgklmnprstv" for b in "aeiou" for c in "lmnrst"])
    frequent = random.permutation(1 / np.arange(3, len(words) + 3))
    own = frequent * random.lognormal(0, 1.1, (len(subjects), len(words)))
    own /= own.sum(1, keepdims=True)
    general = frequent / frequent.sum()
    texts = [
        " ".join(random.choice(words, random.poisson(45) + 5, p=0.42 * own[k] + 0.58 * general))
        for k in subject
    ]
    pairs = _pairs(subject, 3 * n, random, within=0.75)
    nodes = pd.DataFrame(
        {"id": _ids("p", n), "year": random.integers(1990, 2024, n), "abstract": texts}
    )
    share = labelled / n
    edges = _frame(nodes, pairs)
    return _table("papers", nodes, edges, subjects[subject], share, random, text="abstract")


def fraud(n: int = 4000, seed: int = 0) -> Table:
    """Accounts and their payments: fraudulent ones pay what few others pay, never each other.

    The accounts that they pay look a little unusual, and are not fraudulent themselves.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(n)
    bad, outlets = order[: round(0.03 * n)], order[round(0.03 * n) : round(0.04 * n)]
    shops = order[round(0.04 * n) : round(0.3 * n)]
    is_bad, is_outlet = np.isin(np.arange(n), bad), np.isin(np.arange(n), outlets)
    is_shop = np.isin(np.arange(n), shops) | is_outlet
    payers = np.repeat(np.arange(n), random.poisson(4, n) + 1)
    # Half of what fraudulent accounts pay goes to outlets, as does 1 % of what others pay.
    to_outlet = random.random(len(payers)) < np.where(is_bad[payers], 0.5, 0.01)
    to_shop = random.random(len(payers)) < 0.7
    paid = random.choice(np.flatnonzero(~is_bad), len(payers))
    paid = np.where(to_shop, random.choice(shops, len(payers)), paid)
    paid = np.where(to_outlet, random.choice(outlets, len(payers)), paid)
    keep = payers != paid
    pairs, amounts = np.stack([payers, paid])[:, keep], random.lognormal(3, 1, keep.sum()).round(2)
    nodes = pd.DataFrame(
        {
            "id": _ids("a", n),
            "kind": np.where(is_shop, "merchant", "person"),
            "country": random.choice(
                ["NO", "IT", "PE", "JP", "KE"], n, p=[0.4, 0.3, 0.1, 0.1, 0.1]
            ),
            "age_days": random.gamma(np.where(is_outlet, 1.2, 2.0), 400).round(),
            "balance": _with_gaps(random.lognormal(7 + 0.2 * is_bad, 1.3).round(2), 0.1, random),
            "logins": random.poisson(np.where(is_bad, 7, 6)),
        }
    )
    edges = _frame(nodes, pairs).assign(weight=amounts)
    truth = np.where(is_bad, "fraud", "honest")
    return _table("fraud", nodes, edges, truth, 0.6, random, metric="ap", directed=True)


def bipartite(n: int = 1800, seed: int = 0) -> Table:
    """n users, whose taste is to be told, and n items; the columns of one are gaps of the other."""
    random = np.random.default_rng(seed)
    tastes = np.array(["classic", "modern", "outdoor"])
    taste = random.integers(0, len(tastes), 2 * n)  # users first
    users, items = np.arange(n), np.arange(n, 2 * n)
    buyers = np.repeat(users, random.poisson(3, n) + 1)
    wanted = np.where(
        random.random(len(buyers)) < 0.6, taste[buyers], random.integers(0, 3, len(buyers))
    )
    bought = np.zeros_like(buyers)
    for k in range(len(tastes)):
        mine = items[taste[items] == k]
        rank = np.minimum(random.exponential(len(mine) / 4, len(buyers)).astype(int), len(mine) - 1)
        bought = np.where(wanted == k, mine[rank], bought)
    known = random.random(n) < 0.5  # the department of half the items tells what it is
    department = np.where(known, taste[items], random.integers(0, 3, n))
    nodes = pd.DataFrame(
        {
            "id": [*_ids("u", n), *_ids("i", n)],
            "age": [*random.normal(40 + 3 * taste[users], 12).round(), *np.full(n, np.nan)],
            "city": [*random.choice(["Oslo", "Rome", "Lima"], n), *np.full(n, None)],
            "price": [*np.full(n, np.nan), *random.lognormal(3 + 0.2 * taste[items], 0.6).round(2)],
            "department": [*np.full(n, None), *np.array(["home", "design", "sport"])[department]],
        }
    )
    truth = np.where(np.arange(2 * n) < n, tastes[taste], "")
    edges = _frame(nodes, np.stack([buyers, bought])).drop_duplicates()
    return _table("bipartite", nodes, edges, truth, 0.6, random)


def no_graph(n: int = 1500, seed: int = 0, edges: int = 4500) -> Table:
    """Customers of four segments told by their own columns alone; the edges are drawn at random."""
    random = np.random.default_rng(seed)
    x, job = random.normal(size=(n, 6)), random.choice(["clerk", "nurse", "cook", "none"], n)
    income = random.lognormal(10 + 0.3 * x[:, 0], 0.4).round(-2)
    likes = np.stack(
        [
            x[:, 1] + (job == "clerk"),
            np.log(income / 22_000) * 2 + (job == "nurse"),
            x[:, 2] * x[:, 3] + 0.5,  # no column alone tells it
            1.2 * (np.abs(x[:, 4]) > 1) + (job == "none"),
        ],
        1,
    )
    segment = (likes + random.gumbel(0, 0.35, likes.shape)).argmax(1)
    columns = {f"score_{j}": _with_gaps(x[:, j].round(3), 0.03, random) for j in range(1, 6)}
    nodes = pd.DataFrame({"id": _ids("c", n), "job": job, "income": income, **columns})
    pairs = random.integers(0, n, (2, edges))
    links = _frame(nodes, pairs[:, pairs[0] != pairs[1]])
    return _table("no_graph", nodes, links, np.array(list("ABCD"))[segment], 0.7, random)


TABLES = {make.__name__: make for make in (churn, papers, fraud, bipartite, no_graph)}


def _table(
    name: str,
    nodes: pd.DataFrame,
    edges: pd.DataFrame,
    truth: np.ndarray,
    share: float,
    random: np.random.Generator,
    metric: str = "accuracy",
    **reading: Any,
) -> Table:
    """Tell the labels of this share of the nodes that have one."""
    own = np.flatnonzero(truth != "")
    told = np.isin(np.arange(len(nodes)), random.permutation(own)[: round(share * len(own))])
    labelled = nodes.assign(label=np.where(told, truth, None))
    return Table(name, labelled, edges, truth, reading, metric)


def _ids(letter: str, n: int) -> list[str]:
    return [f"{letter}{i:04d}" for i in range(n)]


def _pairs(group: np.ndarray, count: int, random: np.random.Generator, within: float) -> np.ndarray:
    """(2, at most count) pairs of two nodes, each pair once, this share of them within a group."""
    n = len(group)
    one, other = random.integers(0, n, (2, count))
    by_group = np.argsort(group, kind="stable")
    start, size = np.searchsorted(group[by_group], group), np.bincount(group)[group]
    mate = by_group[start[one] + random.integers(0, size[one])]
    other = np.where(random.random(count) < within, mate, other)
    low, high = np.minimum(one, other), np.maximum(one, other)
    return np.unique(np.stack([low, high])[:, low < high], axis=1)


def _mean_over_neighbours(
    values: np.ndarray, pairs: np.ndarray, n: int, weights: np.ndarray
) -> np.ndarray:
    ends, others = np.append(pairs[0], pairs[1]), np.append(pairs[1], pairs[0])
    weights = np.append(weights, weights)
    total = np.bincount(ends, weights, n)
    return np.bincount(ends, weights * values[others], n) / np.maximum(total, 1e-9)


def _frame(nodes: pd.DataFrame, pairs: np.ndarray) -> pd.DataFrame:
    ids = nodes["id"].to_numpy()
    return pd.DataFrame({"source": ids[pairs[0]], "target": ids[pairs[1]]})


def _with_gaps(
    cells: Sequence[Any] | np.ndarray, share: float, random: np.random.Generator
) -> pd.Series:
    column = pd.Series(cells)
    return column.mask(random.random(len(column)) < share)


def _notes(mood: np.ndarray, random: np.random.Generator) -> list[str]:
    """Words that are the worse the worse the mood is, among words of no meaning."""
    bad = ["complains", "angry", "late", "cancel", "refund", "unhappy"]
    good = ["pleased", "thanks", "happy", "renewed", "praise", "recommends"]
    dull = [
        "called",
        "about",
        "invoice",
        "address",
        "line",
        "email",
        "wrote",
        "visit",
        "again",
        "shop",
    ]
    said = random.random((len(mood), 3)) < 1 / (1 + np.exp(-2 * mood))[:, None]
    return [
        " ".join([*random.choice(dull, 4), *(random.choice(bad if one else good) for one in row)])
        for row in said
    ]
