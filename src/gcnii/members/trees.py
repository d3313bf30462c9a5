"""Trees: gradient boosting on a node's own columns, or on those and its neighbourhood.

A node's own label is never among its columns, in training either: not as a neighbour of itself, and
not as a neighbour of its neighbour.  Labels of validation and test nodes are nowhere (`Known`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, softmax

from gcnii.errors import BundleError, InputError
from gcnii.files import NOTHING, Document, Maybe, Only, check
from gcnii.graph import Features, Graph, Split
from gcnii.graph.arrays import Labels, known_rows
from gcnii.graph.past import features_there, past
from gcnii.members.forest import Forest, Table
from gcnii.members.known import Known
from gcnii.propagation.adjacency import Direction, adjacency
from gcnii.targets import Classes, Target, target_of
from gcnii.targets.target import Floats, Ints

Columns = Literal["own", "neighbourhood"]
COLUMNS: tuple[Columns, ...] = get_args(Columns)

WIDE, NARROW = 128, 64  # columns of X beyond which it is reduced, and to how many
ROWS, FEWEST = 20_000, 1000  # training nodes that are used: at most, and at least
# Training nodes × columns that a tree looks at × trees, and the rounds that it allows; labels of a
# node, of which each has trees of its own.
GROWTH, ROUNDS, FEWEST_ROUNDS, MOST_LABELS = 800_000_000, 400, 20, 50
UNKNOWN = 2  # nodes of no known label that are added to those of a known one
MOST_APART = 8  # types of edges with columns of their own
BLOCK = 16  # columns of which minima and maxima are taken at once
SETTINGS: dict[str, float | int] = {"max_bin": 63, "lambda_l2": 5.0}
PER_LEAF, LEAVES = 125, (4, 15)  # training nodes for each leaf of a tree, and the bounds of leaves
# By what few rounds have to learn faster, and the slowest and the fastest that they do.
LEARNT, SLOW, FAST = 15, 0.05, 0.3
LOOKED_AT, LEAST_PART = 60, 0.2  # columns that each tree looks at; of a wide table, this part
SHAPE = Only(
    {
        "columns": {*COLUMNS},
        "features": int,
        "components": (str, NOTHING),
        "directed": bool,
        "exclusive": bool,
        "shares": [float],
        "deviations": Maybe([float]),
        "types": Maybe(int),
        "forests": [(str, NOTHING)],
    }
)


def refusal(target: Target) -> str:
    """Why no trees are grown for what is predicted; "" if they can be."""
    if not isinstance(target, Classes) and target.k > MOST_LABELS:
        return f"trees would have to be grown for each of {target.k} {target.words[1]}"
    return ""


@dataclass(frozen=True, eq=False)
class Encoder:
    """X as columns for trees: as it is, or reduced where it is wide.

    d           columns of X
    components  (c, d) onto which X is projected, if it is reduced
    """

    d: int
    components: Table | None = None

    @classmethod
    def of(cls, X: Features) -> Encoder:
        """As it is up to WIDE columns; else by the NARROW singular vectors that hold most of it."""
        n, d = X.shape
        if d <= WIDE:
            return cls(d)
        from sklearn.decomposition import TruncatedSVD
        from threadpoolctl import threadpool_limits

        rows = np.sort(np.random.default_rng(0).permutation(n)[:ROWS])
        with threadpool_limits(1):  # of little work, a second thread makes it slower
            few = TruncatedSVD(min(NARROW, len(rows)), random_state=0).fit(X[rows])
        return cls(d, np.asarray(few.components_, np.float32))

    @property
    def width(self) -> int:
        return self.d if self.components is None else len(self.components)

    @property
    def text(self) -> str | None:
        """The components as float32 in base 64."""
        C = self.components
        return None if C is None else base64.b64encode(C.astype("<f4").tobytes()).decode()

    @classmethod
    def stored(cls, d: int, text: str | None) -> Encoder:
        """Of components in base 64; BundleError unless they are finite and fit the features."""
        if text is None:
            return cls(d)
        try:
            C = np.frombuffer(base64.b64decode(text, validate=True), "<f4").reshape(-1, d)
        except (binascii.Error, ValueError):
            C = np.empty((0, d), np.float32)
        if not len(C) or not np.isfinite(C).all():
            raise BundleError(f"the components of the trees are not numbers for {d} features")
        return cls(d, np.asarray(C, np.float32))

    def __call__(self, X: Features) -> Table:
        """(n, c) the columns of X (n, d)."""
        if X.shape[1] != self.d:
            raise InputError(f"the trees take {self.d} features, but X has {X.shape[1]}")
        if self.components is not None:
            X = X @ self.components.T
        return np.asarray(X.toarray() if isinstance(X, sp.csr_array) else X, np.float32)


def types_apart(graph: Graph) -> int:
    """The number of types of edges that have columns of their own; 0 of one type, or of many."""
    return graph.type_count if graph.typed and graph.type_count <= MOST_APART else 0


def neighbourhood(
    graph: Graph,
    X: Table,
    known: Known,
    *,
    directed: bool,
    extremes: bool = True,
    kind: int | None = None,
) -> Table:
    """(n, …) what is around each node; NaN for what has no neighbours, which trees can take.

    The mean of the neighbours' columns X, and if asked for their `extremes`, the least and the
    greatest; the mean of their means; shares of the known labels among neighbours, and among theirs
    without the node itself; numbers of neighbours, of those with known labels, and the sum of
    weights.  Edges count both ways; of `directed` ones, what a node points to and what points to it
    are apart as well.  Trees of a graph without directions take those of another as they point.

    kind  the type of edges that count; None: all
    """

    A = adjacency(graph, "both" if directed else "out", "remove", "auto", kind)
    known = known.reaching(graph.n)
    near = _mean(A, X)
    parts: list[Table | Floats] = [near, *(_extremes(A, X) if extremes else ())]
    parts += [_mean(A, np.nan_to_num(near)), *_labels(A, known), _further_labels(A, known)]
    parts += [np.diff(A.indptr)[:, None], A.sum(1)[:, None]]
    ways: tuple[Direction, ...] = ("out", "in") if directed else ()
    for way in ways:
        one = adjacency(graph, way, "remove", "auto", kind)
        parts += [_mean(one, X), *_labels(one, known), np.diff(one.indptr)[:, None]]
        parts += [_further_labels(one, known)]
    return np.column_stack([part.astype(np.float32) for part in parts])


def _mean(A: sp.csr_array, X: Table | Floats) -> Floats:
    """(n, c) the weighted mean of the neighbours' rows."""
    size = A.sum(1)[:, None]
    return np.asarray(np.divide(A @ X, size, out=np.full(X.shape, np.nan), where=size > 0))


def _extremes(A: sp.csr_array, X: Table) -> Iterator[Table]:
    """The least and the greatest of the neighbours' columns, each (n, c)."""
    some = np.flatnonzero(np.diff(A.indptr))
    for extreme in (np.minimum, np.maximum):
        found = np.full(X.shape, np.nan, np.float32)
        for first in range(0, X.shape[1] if len(some) else 0, BLOCK):
            block = np.s_[first : first + BLOCK]
            found[some, block] = extreme.reduceat(X[A.indices, block], A.indptr[some])
        yield found


def _labels(A: sp.csr_array, known: Known) -> tuple[Floats, Floats]:
    """(n, k) the shares of labels among the neighbours whose labels are known; how many these are.

    A has no loops: a node is not among them.  Edges count alike, whatever their weights: of few
    labels each one matters, and a weight can be of no meaning for them.
    """
    A = _alike(A)
    several = A @ known.train.astype(np.float64)[:, None]
    shares = np.divide(A @ known.Y, several, out=np.full(known.Y.shape, np.nan), where=several > 0)
    return shares, several


def _further_labels(A: sp.csr_array, known: Known) -> Floats:
    """(n, k) the shares of known labels among those who share a neighbour with a node.

    The mean over its neighbours j of the shares among all that have j as theirs, without the node
    that asks: what it has given to the sums of j is taken away again.  To those
    of each j are added UNKNOWN nodes of no label, so that a single one does not decide.
    """
    A, train = _alike(A), known.train.astype(np.float64)
    back, size = sp.csr_array(A.T), np.diff(A.indptr)
    i = np.repeat(np.arange(A.shape[0]), size)
    others = (back @ train)[A.indices] - train[i]
    found = np.full(known.Y.shape, np.nan)
    for label, Y in enumerate(known.Y.T):
        shares = ((back @ Y)[A.indices] - Y[i]) / (others + UNKNOWN)
        total = np.bincount(i, shares, A.shape[0])
        np.divide(total, size, out=found[:, label], where=size > 0)
    return found


def _alike(A: sp.csr_array) -> sp.csr_array:
    """A with weights of 1, so that sums of labels are exact.

    A label that is taken from a sum then leaves no trace; otherwise rounding would tell it.
    """
    return sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), A.shape)


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees that answer for every node.

    columns    which they look at
    encoder    how X becomes columns
    directed   whether edges were one-way, so that columns tell their ways apart
    exclusive  whether a node has exactly one of the k
    shares     (k,) of the training nodes, or means: what is answered where there are no trees
    forests    one for all classes with training nodes, or one for each label or number; None where
               all training nodes are alike
    deviations (k,) by which the scores of numbers are multiplied; None of labels
    types      of edges that have columns of their own beside those of all; 0: none
    """

    columns: Columns
    encoder: Encoder
    directed: bool
    exclusive: bool
    shares: Floats
    forests: tuple[Forest | None, ...] = ()
    deviations: Floats | None = None
    types: int = 0

    @classmethod
    def fit(
        cls,
        graph: Graph,
        split: Split,
        *,
        columns: Columns = "neighbourhood",
        seed: int = 0,
        threads: int = 1,
        stops: Sequence[int] = (),
    ) -> Trees:
        """Grow trees on the training nodes, until the loss of the validation nodes rises.

        stops  the rounds of each forest, where none may validate
        """
        if why := refusal(target_of(graph)):
            raise InputError(why)
        known, seen = Known.of(graph, split), past(graph, "train")
        encoder = Encoder.of(features_there(seen))
        kind = columns, encoder, graph.directed, known.exclusive, known.shares
        bare = cls(*kind, deviations=known.deviations, types=types_apart(graph))
        X, val = bare.table(seen, known), np.flatnonzero(split.val)
        if seen is not graph and columns == "neighbourhood":
            X[val] = bare.table(past(graph, "val"), known)[val]
        rows, rounds = work(graph, split, columns)
        grow = partial(_grown, X, rows, val, rounds=rounds, seed=seed, threads=threads)
        each = zip_longest(bare.targets(graph.labels), stops)
        return replace(bare, forests=tuple(grow(y, stop=stop) for y, stop in each))

    @property
    def classes(self) -> Ints:
        """Those with training nodes."""
        return np.flatnonzero(self.shares)

    def targets(self, labels: Labels) -> Iterator[Labels]:
        """(n,) what each forest is to tell, from 0; -1 where it is unknown or was not learnt.

        Of numbers, deviations from the mean.
        """
        if self.deviations is not None:
            yield from ((labels - self.shares) / self.deviations).T
            return
        if not self.exclusive:
            yield from labels.T
            return
        place = np.full(len(self.shares) + 1, -1)  # the last is that of an unknown label, -1
        place[self.classes] = np.arange(len(self.classes))
        yield place[labels]

    def table(self, graph: Graph, known: Known) -> Table:
        """(n, …) the columns of each node."""
        X = self.encoder(graph.X)
        if self.columns == "own":
            return X
        whole = self.encoder.components is None  # of a projection, extremes say little
        ways = {"directed": self.directed, "extremes": whole}
        each = (neighbourhood(graph, X, known, kind=t, **ways) for t in range(self.types))
        return np.column_stack([X, neighbourhood(graph, X, known, **ways), *each])

    def elsewhere(self, n: int) -> Known:
        """What is known of another graph of n nodes."""
        return Known.elsewhere(n, self.shares, self.exclusive, self.deviations)

    def answers(self, graph: Graph, known: Known, *, threads: int = 1, first: int = 0) -> Floats:
        """(n, k) of each node of the graph from the `first` on, also of those trained on.

        Probabilities, or values.
        """
        X = self.table(graph, known)[first:]
        P = np.tile(self.shares, (len(X), 1))
        for j, forest in enumerate(self.forests):
            if forest is None:
                continue
            scores = forest.scores(X, threads)
            if self.deviations is not None:
                P[:, j] += self.deviations[j] * scores[:, 0]
            elif not self.exclusive:
                P[:, j] = expit(scores[:, 0])
            elif forest.outputs == 1:
                P[:, self.classes] = np.column_stack([expit(-scores), expit(scores)])
            else:
                P[:, self.classes] = softmax(scores, axis=1)
        return P

    def document(self) -> Document:
        """Everything as JSON: the forests as LightGBM's text, float32 arrays in base 64."""
        return {
            "columns": self.columns,
            "features": self.encoder.d,
            "components": self.encoder.text,
            "directed": self.directed,
            "exclusive": self.exclusive,
            "shares": self.shares.tolist(),
            "forests": [forest and forest.text for forest in self.forests],
            **({} if self.deviations is None else {"deviations": self.deviations.tolist()}),
            **({"types": self.types} if self.types else {}),
        }

    @classmethod
    def of(cls, document: Document) -> Trees:
        """What `document` gave; BundleError for anything else."""
        try:
            check(document, SHAPE)
        except InputError as error:
            raise BundleError(f"these are not trees that gcnii has written: {error}") from None
        encoder = Encoder.stored(document["features"], document["components"])
        shares = np.array(document["shares"], np.float64)
        kind = document["columns"], encoder, document["directed"], document["exclusive"]
        deviations = document.get("deviations")
        if deviations is not None:
            deviations = np.array(deviations, np.float64)
            if len(deviations) != len(shares) or deviations.min(initial=1) <= 0 or kind[3]:
                raise BundleError("deviations of trees must be above 0, one for each number")
        types, texts = document.get("types", 0), document["forests"]
        if not 0 <= types <= MOST_APART:
            raise BundleError(f"types of trees must be 0 to {MOST_APART}, got {types}")
        bare = cls(*kind, shares, deviations=deviations, types=types)
        many = len(bare.classes) if bare.exclusive else 2
        wanted = 1 if bare.exclusive else len(shares)
        if not many or len(texts) != wanted or (many == 1 and texts != [None]):
            raise BundleError(f"trees of {len(shares)} labels cannot have {len(texts)} forests")
        if deviations is None and not ((shares >= 0) & (shares <= 1)).all():
            raise BundleError("the shares of the trees' labels must lie between 0 and 1")
        outputs = 1 if many == 2 else many
        forests = (None if one is None else Forest.of(one, bare.width, outputs) for one in texts)
        return replace(bare, forests=tuple(forests))

    @property
    def width(self) -> int:
        """The number of columns of `table`."""
        reduced = self.encoder.components is not None
        about = len(self.shares), self.directed, reduced, self.types
        return width(self.columns, self.encoder.width, *about)


def width(columns: Columns, c: int, k: int, directed: bool, reduced: bool, types: int = 0) -> int:
    """The number of columns, of which c are a node's own."""
    if columns == "own":
        return c
    around = (2 if reduced else 4) * c + 2 * k + 3 + 2 * directed * (c + 2 * k + 2)
    return c + (1 + types) * around


def _part(columns: int) -> float:
    """The part of the columns that each tree looks at."""
    return float(np.clip(LOOKED_AT / max(columns, 1), LEAST_PART, 1))


def work(graph: Graph, split: Split, columns: Columns) -> tuple[Ints, int]:
    """The training nodes that are used, all or a sample of what takes long, and the most rounds."""
    rows, c = np.flatnonzero(split.train), graph.d if graph.d <= WIDE else NARROW
    every = width(columns, c, graph.k, graph.directed, c < graph.d, types_apart(graph))
    each = GROWTH / max(graph.k * every * _part(every), 1)
    most = int(np.clip(each / FEWEST_ROUNDS, FEWEST, ROWS))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
    return rows, int(np.clip(each / len(rows), FEWEST_ROUNDS, ROUNDS))


def _grown(
    X: Table,
    rows: Ints,
    val: Ints,
    y: Labels,
    *,
    rounds: int,
    seed: int,
    threads: int,
    stop: int | None = None,
) -> Forest | None:
    """The forest of some training rows; None where they are all alike, or have no columns."""
    val = val[known_rows(y[val])] if stop is None else val[:0]
    found = y[rows]
    if (found == found[0]).all() or not X.shape[1]:  # nothing to tell apart, or to tell it by
        return None
    own = {
        "learning_rate": float(np.clip(LEARNT / rounds, SLOW, FAST)),
        "num_leaves": int(np.clip(len(rows) // PER_LEAF, *LEAVES)),
        "min_data_in_leaf": int(np.clip(len(rows) // 50, 2, 20)),
        "feature_fraction": _part(X.shape[1]),
    }
    return Forest.fit(
        X[rows],
        found,
        (X[val], y[val]),
        settings={**SETTINGS, **own},
        rounds=rounds if stop is None else stop,
        seed=seed,
        threads=threads,
    )
