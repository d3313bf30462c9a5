"""Random splits of the labelled nodes, drawn class by class where a node has one label."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gcnii.errors import GraphError, check_number
from gcnii.graph import Graph, Split
from gcnii.graph.graph import ROLES, strata
from gcnii.graph.past import last_time
from gcnii.graph.times import Times, roles_by_cuts, roles_by_shares, shown

Ints = NDArray[np.int64]
Sizes = Callable[[int], tuple[int, int]]  # members of a class → how many to train and validate on

SHARES = TRAIN, VAL = 0.6, 0.2  # of a class, or of all nodes by time; test is the rest


def stratified_split(y: ArrayLike, seed: int = 0) -> Split:
    """Split the labelled nodes at random, 60/20/20, for training, validation and testing.

    Parameters
    ----------
    y : array
        (n,) class ids, -1 if unknown: each class is split separately, with at least one training
        node and, if it has three nodes or more, one validation node.  Or (n, k) zeros and ones,
        rows of -1 if unknown, or (n, q) numbers, NaN if unknown: all labelled nodes are split
        together.
    seed : int
        The seed of the split.

    Returns
    -------
    Split

    Examples
    --------
    >>> import gcnii
    >>> split = gcnii.stratified_split([0, 1] * 10, seed=0)
    >>> split.train.sum(), split.val.sum(), split.test.sum()
    (np.int64(12), np.int64(4), np.int64(4))
    """
    check_number("seed", seed, 0, whole=True)
    labels = np.asarray(y)
    if labels.ndim not in (1, 2) or labels.dtype.kind not in ("iu" if labels.ndim == 1 else "iuf"):
        raise GraphError(
            f"y must be (n,) class ids or (n, k) zeros and ones, -1 if unknown, "
            f"got {labels.dtype} of shape {labels.shape}"
        )
    labels = strata(labels)
    if np.bincount(labels[labels >= 0], minlength=1).max() < 3:
        few = "every class has" if np.ndim(y) == 1 else "there are"
        raise GraphError(
            f"{few} fewer than 3 labelled nodes, so none is left for validation; "
            "label more nodes, or give a split"
        )
    return stratified(labels, np.random.default_rng(seed), at_least_one)


def split_by_time(
    graph: Graph,
    train: float = TRAIN,
    val: float = VAL,
    *,
    cuts: tuple[float, float] | None = None,
) -> Graph:
    """Divide the labelled nodes of a graph by their times: train on the past, test on the last.

    Training sees the nodes and edges up to its last node, and validation those up to its own; all
    nodes of one time have one role, so that the shares are met as closely as times allow.  What
    the columns of a table are taken for is learnt again, on what training sees.

    Parameters
    ----------
    graph : Graph
        A graph with `times`.
    train, val : float
        The shares of the labelled nodes to train and to validate on.
    cuts : (float, float), optional
        The times at which validation and testing begin, in the place of shares.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import dataclasses, gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> graph = dataclasses.replace(graph, splits=(), times=range(60))
    >>> gcnii.split_by_time(graph).splits[0].test.sum()
    np.int64(12)
    """
    if graph.times is None:
        raise GraphError(f"{graph.name} has no times to divide it by; give it times")
    split = time_split(graph.times, graph.labelled, (train, val), cuts)
    return as_learnt_before(graph.with_splits([split]))


def time_split(
    times: Times,
    labelled: NDArray[np.bool_],
    shares: Sequence[float] = (),
    cuts: tuple[float, float] | None = None,
) -> Split:
    """The labelled nodes by their times, by cuts or else by shares; see `split_by_time`."""
    known = labelled & ~np.isnan(times)
    if cuts is not None:
        return Split.of_roles(roles_by_cuts(times, known, *cuts))
    train, val = shares or SHARES
    return Split.of_roles(roles_by_shares(times, known, train, val))


def as_learnt_before(graph: Graph) -> Graph:
    """A graph with times and a split, whose columns mean what they do up to its training nodes."""
    if graph.table is None or graph.columns is None or graph.times is None:
        return graph
    columns = graph.columns.learnt_again(graph.table, graph.times <= last_time(graph, "train"))
    X, features = columns.encode(graph.table, graph.name)
    again = replace(graph, X=X, features=features)._loaded_as(graph)
    return again._with_table(columns.sharing(graph.table, again.X), columns)


def about_times(graph: Graph) -> str:
    """How time divides a graph, in a sentence."""
    assert graph.times is not None
    (split,) = graph.splits
    total = sum(int(getattr(split, role).sum()) for role in ROLES)
    words = {"train": "train up to", "val": "validate up to", "test": "test up to"}
    parts = []
    for role in ROLES:
        if (mask := getattr(split, role)).any():
            end = shown(float(graph.times[mask].max()), dated=graph.dated)
            parts.append(f"{words[role]} {end} ({mask.sum():,}, {mask.sum() / total:.0%})")
    unknown = int(np.isnan(graph.times).sum())
    nodes = "1 node has" if unknown == 1 else f"{unknown:,} nodes have"
    return ", ".join(parts) + (f"; {nodes} no time and no role" if unknown else "")


def with_stratified_splits(graph: Graph, count: int = 10) -> Graph:
    """The graph with splits drawn by seeds 0 … count - 1: 60/20/20 of each class, rounded up.

    These are the splits of the paper's text; the ones it ran on are 48/32/20 and not stratified.
    A class of one or two nodes is used for training alone.
    """
    splits = (
        stratified(graph.labels, np.random.default_rng(seed), rounded_up) for seed in range(count)
    )
    # It is still the catalog's graph, to be trained with the settings published for it.
    return replace(graph, splits=tuple(splits))._with_origin(graph.source, graph.catalog_name)


def is_drawn(graph: Graph) -> bool:
    """Whether its one split, or which of its nodes validate, was drawn because none was given."""
    if len(graph.splits) != 1 or graph.catalog_name or graph.times is not None:
        return False
    if graph.validation_is_drawn(0):
        return True
    seed, split = graph.loaded_with.get("seed", 0), graph.splits[0]
    if (
        not isinstance(seed, int)
        or not (split.train | split.val | split.test)[graph.labelled].all()
    ):
        return False
    try:
        drawn = stratified_split(graph.labels, seed)
    except GraphError:  # there are too few labels to draw one
        return False
    return all(np.array_equal(getattr(drawn, role), getattr(split, role)) for role in ROLES)


def folded(graph: Graph, folds: int) -> Graph:
    """The graph with a split for each fold of the nodes that its first split does not test.

    The nodes of a fold validate and the others train; each class is spread evenly over the folds.
    Test nodes stay what they are.  The same graph gives the same folds, made once.
    """
    made = _FOLDED.setdefault(graph, {})
    if folds not in made:
        made[folds] = graph.with_splits(_folds(graph, folds))
    return made[folds]


def every_label(graph: Graph) -> Graph:
    """The graph with one split, in which every label trains; made once.

    The same nodes validate, because a training measures some: nothing may be chosen by it.  In a
    graph with times, a node without one has no role.
    """
    made = _FOLDED.setdefault(graph, {})
    if 1 not in made:
        known, none = graph.labelled, np.zeros(graph.n, bool)
        if graph.times is not None:
            known = known & ~np.isnan(graph.times)
        made[1] = graph._with_whole_splits(Split.of_some(train=known, val=known, test=none))
    return made[1]


_FOLDED: WeakKeyDictionary[Graph, dict[int, Graph]] = WeakKeyDictionary()


def _folds(graph: Graph, folds: int) -> Iterator[Split]:
    split, y = graph.splits[0], graph.labels
    known = np.flatnonzero(split.train | split.val)
    known = np.random.default_rng(0).permutation(known)
    if y.ndim == 1:
        known = known[np.argsort(y[known], kind="stable")]
    fold = np.full(graph.n, -1)
    fold[known] = np.arange(len(known)) % folds
    for i in range(folds):
        yield Split(train=(fold >= 0) & (fold != i), val=fold == i, test=split.test)


def rounded_up(members: int) -> tuple[int, int]:
    """The first 60 % of a class to train on, those up to 80 % to validate; both rounded up."""
    train, both = np.ceil(np.cumsum((TRAIN, VAL)) * members).astype(int)
    return int(train), int(both - train)


def at_least_one(members: int) -> tuple[int, int]:
    """60 % and 20 % of a class, rounded, but at least one each; none to validate on if under 3."""
    val = max(1, round(VAL * members)) if members >= 3 else 0
    return max(1, round(TRAIN * members)), val


def stratified(y: Ints, random: np.random.Generator, sizes: Sizes) -> Split:
    """Of each class `sizes` to train and validate on, the rest to test; -1 is in no mask."""
    roles = np.full(len(y), "", dtype=object)
    for label in range(y.max() + 1):
        members = random.permutation(np.flatnonzero(y == label))
        train, val = sizes(len(members))
        roles[members] = "test"
        roles[members[:train]], roles[members[train : train + val]] = "train", "val"
    return Split.of_roles(roles)


def per_class(
    y: Ints, count: int, random: np.random.Generator, *, val: int, test: int | None = None
) -> Split:
    """`count` nodes of each class for training; of the others `val` and `test` (None: the rest)."""
    order = random.permutation(len(y))
    train = np.concatenate([order[y[order] == label][:count] for label in range(y.max() + 1)])
    rest = order[~np.isin(order, train)]
    roles = np.full(len(y), "", dtype=object)
    roles[train], roles[rest[:val]] = "train", "val"
    roles[rest[val : None if test is None else val + test]] = "test"
    return Split.of_roles(roles)
