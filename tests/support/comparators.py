"""What a skilled user of pandas and scikit-learn would try on a table before a neural network.

Logistic regression and gradient boosting, each on a node's own columns alone and with those of its
neighbourhood: means over the neighbours, shares of the training labels at one and two hops, and
degrees.  They are fitted on the graph's training nodes and chosen by its validation nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from gcnii.graph import Graph, Split
from support.tables import Table

TOPICS = 40  # components of a text, for trees
# How much words, topics (both of length 1 at most) and shares count beside standardised numbers.
WORD, TOPIC, SHARE = 5.0, 20.0, 4.0
PRIOR = 2.0  # neighbours of the overall shares that are added to each neighbourhood


def fitted(table: Table, graph: Graph, *, linear: bool = False) -> dict[str, np.ndarray]:
    """(n, classes) probabilities by each comparator, or by linear ones alone, which are fast."""
    part, columns = graph.splits[0], Encoded.of(table)
    y = np.where(part.train | part.val, graph.labels, -1)
    known = np.where(part.train, y, -1)
    found = {}
    with threadpool_limits(1):
        for model, dense in ((logistic, False), (boosting, True))[: 1 if linear else 2]:
            own, *around = features(columns, table, known, dense)
            found[model.__name__] = best_of(model(own, y, part), y, part)
            tried = chain.from_iterable(model(X, y, part) for X in around)
            found[f"{model.__name__} + neighbours"] = best_of(tried, y, part)
    return found


@dataclass(frozen=True)
class Encoded:
    """A table's own columns as features: dense ones, and the words of its texts."""

    numbers: np.ndarray
    words: sp.csr_array
    topics: np.ndarray

    @classmethod
    def of(cls, table: Table) -> Encoded:
        """Gaps become the median and have a column of their own; categories have one each."""
        nodes = table.nodes.drop(columns=["id", "label"])
        texts = [table.reading["text"]] if "text" in table.reading else []
        if "date" in table.reading:
            days = pd.to_datetime(nodes[table.reading["date"]]) - pd.Timestamp("2000-01-01")
            nodes[table.reading["date"]] = days.dt.days.astype(float)
        numeric = nodes.drop(columns=texts).select_dtypes("number").astype(float)
        names = [name for name in nodes if name not in (*texts, *numeric)]
        gaps = numeric.loc[:, numeric.isna().any()].isna().add_suffix(" missing").astype(float)
        filled = numeric.fillna(numeric.median())
        coded = pd.get_dummies(nodes[names], dummy_na=True, dtype=float) if names else nodes[[]]
        numbers = pd.concat([filled, gaps, coded], axis=1)
        numbers = numbers.loc[:, numbers.nunique() > 1].to_numpy()
        if not texts:
            return cls(numbers, sp.csr_array((len(nodes), 0)), np.zeros((len(nodes), 0)))
        words = TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(
            nodes[texts[0]].fillna("")
        )
        topics = TruncatedSVD(min(TOPICS, words.shape[1] - 1), random_state=0).fit_transform(words)
        return cls(numbers, sp.csr_array(words), topics)


def features(
    columns: Encoded, table: Table, known: np.ndarray, dense: bool
) -> Iterator[sp.csr_array | np.ndarray]:
    """Scaled numbers and words for a linear model, plain numbers and topics for trees.

    First without neighbours; then with means over them, with the shares of labels among them, and
    with means over two hops.
    """
    numbers = columns.numbers if dense else StandardScaler().fit_transform(columns.numbers)
    texts = [columns.topics] if dense else [columns.words * WORD, columns.topics * TOPIC]
    blocks = [numbers, *texts]
    ways = list(neighbourhoods(table))
    degrees = StandardScaler().fit_transform(np.column_stack([way.degree for way in ways]))
    means = [degrees, *(way.P @ block for way in ways for block in blocks)]
    hops = [Q for way in ways for Q in (way.P, two_hops(way.P, way.P), two_hops(way.P, way.back))]
    shares = [np.column_stack([counted(Q, known) for Q in hops]) * (1 if dense else SHARE)]
    further = [way.P @ (way.P @ block) for way in ways for block in blocks]
    for more in ([], means, [*means, *shares], [*means, *shares, *further]):
        beside = [*blocks, *more]
        yield np.column_stack(beside) if dense else sp.csr_array(sp.hstack(beside))


@dataclass(frozen=True)
class Way:
    """A way of reading the edges.

    P       (n, n) the neighbours' shares of a node, rows of sum 1
    back    the same for edges that are read from their other end
    degree  (n, 2) the logarithms of the number of neighbours and of the amounts
    """

    P: sp.csr_array
    back: sp.csr_array
    degree: np.ndarray


def neighbourhoods(table: Table) -> Iterator[Way]:
    """Edges in each direction, if they have one, with and without the logarithms of amounts."""
    n = len(table.nodes)
    place = pd.Series(np.arange(n), table.nodes["id"])
    u, v = place[table.edges["source"]].to_numpy(), place[table.edges["target"]].to_numpy()
    amounts = table.edges.get("weight", pd.Series(np.ones(len(u)))).to_numpy()
    for weights in (np.ones(len(u)), np.log1p(amounts))[: 1 + ("weight" in table.edges)]:
        A, paid = (sp.csr_array((one, (u, v)), (n, n)) for one in (weights, amounts))
        if not table.reading.get("directed"):
            A, paid = A + A.T, paid + paid.T
        for one, sums in ((A, paid), (A.T, paid.T))[: 1 + bool(table.reading.get("directed"))]:
            degree = np.log1p(np.stack([one.sum(1), sums.sum(1)], 1))
            yield Way(row_means(one), row_means(one.T), degree)


def row_means(A: sp.sparray) -> sp.csr_array:
    return sp.csr_array(sp.diags_array(1 / np.maximum(A.sum(1), 1e-9)) @ A)


def two_hops(P: sp.csr_array, Q: sp.csr_array) -> sp.csr_array:
    """Without the way back to the node itself, whose label must not enter its features."""
    twice = sp.csr_array(P @ Q)
    twice = sp.csr_array(twice - sp.diags_array(twice.diagonal()))
    twice.eliminate_zeros()
    return twice


def counted(P: sp.csr_array, known: np.ndarray) -> np.ndarray:
    """(n, classes + 1) shares of each label among labelled neighbours, and their number."""
    told = np.flatnonzero(known >= 0)
    Y = np.zeros((len(known), known.max() + 1))
    Y[told, known[told]] = 1
    found = (sp.csr_array(P != 0).astype(float) @ Y).sum(1, keepdims=True)
    mass = (P @ Y).sum(1, keepdims=True)
    shares = np.where(mass > 0, (P @ Y) / np.maximum(mass, 1e-12), 0)
    return np.column_stack([(found * shares + PRIOR * Y[told].mean(0)) / (found + PRIOR), found])


def best_of(tried: Iterable[np.ndarray], y: np.ndarray, part: Split) -> np.ndarray:
    """The probabilities with the lowest log-loss on validation nodes."""
    return min(tried, key=lambda P: log_loss(y[part.val], P[part.val], labels=range(P.shape[1])))


def logistic(X: sp.csr_array | np.ndarray, y: np.ndarray, part: Split) -> Iterator[np.ndarray]:
    for C in (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0):
        model = LogisticRegression(C=C, max_iter=3000, tol=1e-3).fit(X[part.train], y[part.train])
        yield model.predict_proba(X)


def boosting(X: np.ndarray, y: np.ndarray, part: Split) -> Iterator[np.ndarray]:
    """Each size of tree with the number of trees that is best on validation."""
    for leaves in (3, 8, 20):
        model = HistGradientBoostingClassifier(
            learning_rate=0.06,
            max_iter=250,
            max_leaf_nodes=leaves,
            min_samples_leaf=10,
            early_stopping=False,
            random_state=0,
        )
        model.fit(X[part.train], y[part.train])
        yield best_of(islice(model.staged_predict_proba(X), 9, None, 10), y, part)


def graded_nodes(table: Table, graph: Graph) -> np.ndarray:
    """(n,) the nodes with a label, told or not, that no model was fitted or chosen by."""
    part = graph.splits[0]
    return (table.truth != "") & ~part.train & ~part.val


def grade(table: Table, graph: Graph, P: np.ndarray, nodes: np.ndarray) -> float:
    """The accuracy on these nodes (numbers, repeated or not), or the rarer class's precision."""
    truth = pd.Index(graph.classes).get_indexer(table.truth)
    if table.metric == "accuracy":
        return float((P[nodes].argmax(1) == truth[nodes]).mean())
    rare = np.bincount(truth[truth >= 0]).argmin()
    return float(average_precision_score(truth[nodes] == rare, P[nodes, rare]))


def standard_error(
    table: Table, graph: Graph, one: np.ndarray, other: np.ndarray, repeats: int = 200
) -> float:
    """The spread of the difference of two grades over nodes drawn with replacement."""
    random, nodes = np.random.default_rng(0), np.flatnonzero(graded_nodes(table, graph))
    drawn = [random.choice(nodes, len(nodes)) for _ in range(repeats)]
    return float(
        np.std([grade(table, graph, one, i) - grade(table, graph, other, i) for i in drawn])
    )
