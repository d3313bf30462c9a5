"""Graph and Split, frozen and checked when they are made, so that all other code can trust them."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gcnii.errors import GraphError
from gcnii.graph.arrays import (
    Features,
    Labels,
    edge_array,
    feature_array,
    first,
    freeze,
    hand_back,
    integers,
    known_rows,
    mask,
    target_array,
    true_or_false,
)
from gcnii.graph.columns import Columns, Table, refuse_other_columns
from gcnii.graph.times import latest, only_times, refuse_disorder, time_array
from gcnii.graph.types import apart, together, type_array
from gcnii.graph.weights import sum_repeated, typical_weights, weighted_edges

Role = Literal["train", "val", "test"]
ROLES: tuple[Role, ...] = get_args(Role)
FIFTH = 0.2  # of the training nodes of a split without validation nodes, which validate
NAMED = ("nodes", "classes", "features", "edge_type_names")
SOME = 20  # nodes of a split that may be ours: fewer can be divided as we would by chance


@dataclass(frozen=True, eq=False, kw_only=True)
class Split:
    """Three disjoint boolean masks (n,): the nodes for training, for validation and for testing.

    Parameters
    ----------
    train, val, test : (n,) arrays of bool
        `val` and `test` may be empty, `train` may not.  Without validation nodes, a graph takes a
        fifth of the training nodes of each class for them.

    Examples
    --------
    >>> import gcnii
    >>> gcnii.Split(train=[True, False, False], val=[False, True, False], test=[False] * 3).val
    array([False,  True, False])
    """

    train: NDArray[np.bool_]
    val: NDArray[np.bool_]
    test: NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Turn the masks into frozen boolean arrays; refuse masks that overlap or are empty."""
        for role in ROLES:
            object.__setattr__(self, role, mask(getattr(self, role), role))
        if not len(self.train) == len(self.val) == len(self.test):
            lengths = f"{len(self.train)}, {len(self.val)} and {len(self.test)}"
            raise GraphError(
                f"the masks train, val and test must have one entry per node, got lengths {lengths}"
            )
        if not self.train.any():
            raise GraphError("the train mask is empty; put at least one node into it")
        for one, other in (("train", "val"), ("train", "test"), ("val", "test")):
            both = getattr(self, one) & getattr(self, other)
            if both.any():
                raise GraphError(
                    f"the masks {one} and {other} overlap, first at row {first(both)}; "
                    "put each node into one mask only"
                )

    @classmethod
    def of_roles(cls, roles: Sequence[str | None] | NDArray[np.object_]) -> Split:
        """The split in which node i is in the mask named roles[i].

        Parameters
        ----------
        roles : list of str or None
            train, val or test; any other value: in no mask.

        Returns
        -------
        Split
        """
        roles = np.asarray(roles, dtype=object)
        return cls(train=roles == "train", val=roles == "val", test=roles == "test")

    @classmethod
    def of_some(cls, **masks: NDArray[np.bool_]) -> Split:
        """The masks of some of a graph's nodes, as they are: any of them may be empty."""
        split = object.__new__(cls)
        for role in ROLES:
            object.__setattr__(split, role, freeze(masks[role]))
        return split

    def some(self, rows: NDArray[np.int64]) -> Split:
        """The masks of these nodes."""
        return Split.of_some(train=self.train[rows], val=self.val[rows], test=self.test[rows])

    def validating(self, y: Labels) -> Split:
        """The same, if it has validation nodes; else `with_validation`."""
        return self if self.val.any() else self.with_validation(y)

    def validating_last(self, times: NDArray[np.float64]) -> Split:
        """The same, if it has validation nodes; else the latest fifth of the others validates."""
        if self.val.any():
            return self
        held = latest(times, self.train, FIFTH)
        return replace(self, train=self.train & ~held, val=held)

    def with_validation(self, y: Labels) -> Split:
        """The same test nodes; of the others, a fifth of each class is drawn to validate on."""
        held = self._fifth(y)
        return replace(self, train=(self.train | self.val) & ~held, val=held)

    def _fifth(self, y: Labels) -> NDArray[np.bool_]:
        ids = np.where(self.train | self.val, strata(y), -1)
        return hold_out(ids, FIFTH, np.random.default_rng(0))


def strata(y: Labels) -> NDArray[np.int64]:
    """(n,) by which a split is drawn: the class; one for all, of several labels or of numbers."""
    return y if y.ndim == 1 else np.where(known_rows(y), 0, -1)


def hold_out(
    ids: NDArray[np.int64], share: float, random: np.random.Generator
) -> NDArray[np.bool_]:
    """(n,) the rows to validate on: of each class this share, rounded; -1 is in no class.

    A class keeps at least one row to train on.  Where the share rounds to nothing in every class,
    one row of the largest is held out.
    """
    counts = np.bincount(ids[ids >= 0])
    if counts.max() < 2:
        raise GraphError(
            "every class has a single known label, which leaves none to validate on; "
            "label at least two rows of a class"
        )
    held = np.minimum(np.round(share * counts).astype(int), counts - 1)
    if not held.any():
        held[counts.argmax()] = 1
    drawn = np.zeros(len(ids), bool)
    for label, count in enumerate(held):
        drawn[random.permutation(np.flatnonzero(ids == label))[:count]] = True
    return drawn


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph:
    """n nodes with features X (n, d), edges (2, m) and labels y; frozen, and checked when made.

    Parameters
    ----------
    X : (n, d) array or scipy sparse matrix
        CSR is best if most entries are zero.
    edges : (2, m) array of int
        Sources in row 0, targets in row 1; duplicates are counted once, and an undirected edge may
        be listed in one direction or in both.
    y : array, optional
        (n,) class ids, or (n, k) zeros and ones; -1 (or a row of -1) if unknown.  With `targets`,
        (n, q) numbers, NaN if unknown; a vector is one column.
    splits : tuple of Split
        Train/val/test masks to choose from.
    directed : bool
        Whether edges are one-way.
    name : str
    nodes, classes : tuple of str, optional
        Names, used when results are shown.
    features : tuple of str, optional
        Names of X's columns, by which a trained model finds them in another graph.
    part : (n,) array of int, optional
        The number of the graph that a node belongs to, if there are several (see `join`).
    source : str
        Where the graph came from: free text.
    weights : (m,) array, optional
        Of the edges, ≥ 0: those of duplicates add up, the two directions of an undirected edge must
        agree, and an edge of weight 0 is left out.
    times : (n,) array, optional
        When each node came, NaN if that is unknown.  A graph with times has one split at most, of
        which each role is earlier than the next, and training sees nothing later: see `Past`.
    edge_times : (m,) array, optional
        When each edge came; by default with the later of its two nodes.
    dated : bool
        Whether times are days since 1970-01-01, and messages show dates.
    targets : tuple of str, optional
        The names of the numbers to predict, one for each column of y, in the place of classes.  A
        node is labelled if all its numbers are known.
    edge_types : (m,) array of int, optional
        The type of each edge, from 0 on: duplicates are those of one type.  Where all edges are of
        one type, there are none.
    edge_type_names : tuple of str, optional
        Names of the types.

    Attributes
    ----------
    catalog_name : str
        Its name in the catalog, which selects published settings.
    loaded_with : dict
        The options that `load` was given, to load it again.
    table, columns
        What X was encoded from, and how, if the graph was made of a user's table.

    Notes
    -----
    The attributes, and `source`, are set by `load` and the converters; `dataclasses.replace` drops
    them, because a changed graph is neither the catalog's nor the table's.

    Examples
    --------
    >>> import gcnii
    >>> import numpy as np
    >>> gcnii.Graph(X=np.eye(3), edges=[[0, 1], [1, 2]], y=[0, 1, -1])
    Graph(graph: 3 nodes, 2 undirected edges, 3 features, 2 classes)
    """

    X: Features
    edges: NDArray[np.int64]
    y: Labels | None = None
    splits: tuple[Split, ...] = ()
    directed: bool = False
    name: str = "graph"
    nodes: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    part: NDArray[np.int64] | None = None
    source: str = ""
    weights: NDArray[np.float64] | None = None
    times: NDArray[np.float64] | None = None
    edge_times: NDArray[np.float64] | None = None
    dated: bool = False
    targets: tuple[str, ...] = ()
    edge_types: NDArray[np.int64] | None = None
    edge_type_names: tuple[str, ...] | None = None
    catalog_name: str = field(default="", init=False)
    loaded_with: Mapping[str, object] = field(default_factory=dict, init=False)
    table: Table | None = field(default=None, init=False)
    columns: Columns | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Convert every field to its standard form, check it, and freeze the arrays."""
        X = feature_array(self.X)
        n, one = X.shape[0], isinstance(self.targets, str)
        targets = _names([self.targets] if one else self.targets, "targets") or ()
        standard = {
            "X": X,
            "edges": edge_array(self.edges, n),
            "y": _labels_of(self.y, n, targets),
            "targets": targets,
            "splits": splits_of(self.splits),
            "directed": true_or_false(self.directed, "directed"),
            "name": str(self.name),
            "source": str(self.source),
            **{one: _names(getattr(self, one), one) for one in NAMED},
            "part": None if self.part is None else integers(self.part, "part"),
        }
        self._set(**standard)
        self._set_times()
        self._check()
        self._hold_validation_out()
        self._set_types()
        if self.weights is not None:
            self._set_weights(self.weights)

    def _set_types(self) -> None:
        types, names = type_array(self.edge_types, self.edge_type_names, self.edges.shape[1])
        self._set(edge_types=types, edge_type_names=names)

    def _set_weights(self, values: ArrayLike) -> None:
        """Check weights, type by type, and leave out the edges whose weight is 0."""
        called = self.nodes or (range(self.n) if self.typed else None)
        given, times = self.apart, self.edge_times
        edges, weights = weighted_edges(given, values, self.directed, called)
        if self.typed and not self.directed:  # in one direction, so that those of two types add up
            edges, weights = sum_repeated(edges, weights, directed=False)
        if times is not None:
            times = only_times(edges, given, times, directed=self.directed)
        self._set(weights=weights, edge_times=times)
        if self.edge_types is None:
            self._set(edges=edges)
        else:
            edges, types = together(edges, self.n)
            self._set(edges=edges, edge_types=types)

    def _set_times(self) -> None:
        sizes = {"times": self.n, "edge_times": self.edges.shape[1]}
        given = {name: getattr(self, name) for name in sizes}
        found = {
            name: time_array(own, sizes[name], name)
            for name, own in given.items()
            if own is not None
        }
        if set(found) == {"edge_times"}:
            raise GraphError("edge_times are given without times; give the times of the nodes, too")
        self._set(**found, dated=true_or_false(self.dated, "dated"))

    def _check(self) -> None:
        self._check_heights()
        self._check_features()
        (self._check_targets if self.targets else self._check_labels)()
        self._check_splits()

    @classmethod
    def _of_checked(cls, **values: object) -> Self:
        """Of values that were checked before and are used as they are: Graph(…) would copy them."""
        graph = object.__new__(cls)
        for one in fields(cls):
            made = one.default if one.default_factory is MISSING else one.default_factory()
            object.__setattr__(graph, one.name, values.get(one.name, made))
        return graph

    def _set(self, **values: object) -> Self:
        for name, value in values.items():
            object.__setattr__(self, name, freeze(value))
        return self

    def _with_origin(
        self, source: str, catalog_name: str = "", loaded_with: Mapping[str, object] | None = None
    ) -> Self:
        """The same graph, sharing its arrays, with what `load` knows about it."""
        options = {
            name: one.tolist() if isinstance(one, np.generic | np.ndarray) else one
            for name, one in (loaded_with or {}).items()  # numbers of numpy are not JSON
        }
        known = {"source": source, "catalog_name": catalog_name}
        return copy.copy(self)._set(**known, loaded_with=options)

    def _loaded_as(self, graph: Graph) -> Self:
        """The same graph, sharing its arrays, with what `load` knows about another."""
        known = ("source", "catalog_name", "loaded_with", "table", "columns")
        return copy.copy(self)._set(**{name: getattr(graph, name) for name in known})

    def _typed(self, types: NDArray[np.int64] | None, names: tuple[str, ...] | None) -> Self:
        """The same, with other types of edges."""
        return replace(self, edge_types=types, edge_type_names=names)._loaded_as(self)

    def with_splits(self, splits: Iterable[Split]) -> Self:
        """The same graph, sharing its arrays, divided in another way."""
        same = self._with_whole_splits(*splits_of(tuple(splits)))
        same._check_splits()
        same._hold_validation_out()
        return same

    def _with_whole_splits(self, *splits: Split) -> Self:
        """The same graph, sharing its arrays, with splits that are not checked."""
        same = copy.copy(self)._set(splits=splits)
        same.__dict__.pop("fingerprint", None)
        return same

    def _with_table(self, table: Table, columns: Columns) -> Graph:
        """The same graph, sharing its arrays, with what its X was encoded from."""
        return copy.copy(self)._set(table=table, columns=columns)

    def __sklearn_clone__(self) -> Graph:
        """Itself: scikit-learn copies the parameters of estimators; a frozen graph needs none."""
        return self

    def _check_heights(self) -> None:
        heights = {"y": self.y, "nodes": self.nodes, "part": self.part}
        for name, value in heights.items():
            if value is not None and len(value) != self.n:
                raise GraphError(
                    f"X has {self.n} rows but {name} has {len(value)}; both need one per node"
                )

    def _check_features(self) -> None:
        names = self.features
        if names is not None and len(names) != self.d:
            raise GraphError(f"X has {self.d} columns but {len(names)} features are named")
        if names is not None and len(set(names)) < len(names):
            raise GraphError("features must have different names; rename those that occur twice")

    def with_features(self, names: Sequence[str]) -> Graph:
        """The same graph with the columns of X in this order.

        Parameters
        ----------
        names : list of str
            All names of its features, in another order.

        Returns
        -------
        Graph
        """
        own = self.features or ()
        refuse_other_columns(self.name, own, names)
        if tuple(names) == own:
            return self
        place = {name: j for j, name in enumerate(own)}
        X = self.X[:, [place[name] for name in names]]
        found = replace(self, X=X, features=tuple(names))
        return found._with_origin(self.source, self.catalog_name)

    def _check_labels(self) -> None:
        y = self.labels
        if y.ndim > 2:
            raise GraphError(
                f"y must be (n,) class ids or (n, k) zeros and ones, got {y.ndim} dimensions"
            )
        low, high = -1, (1 if y.ndim == 2 else max(self.k - 1, -1))
        wrong = ((y < low) | (y > high)).reshape(self.n, -1).any(1)
        if wrong.any():
            row = first(wrong)
            raise GraphError(
                f"labels must lie in {low}…{high} (-1 = unknown), got {y[row]!s} at row {row} of y"
            )
        if self.classes is not None and len(set(self.classes)) < len(self.classes):
            raise GraphError("classes must have different names; rename those that occur twice")
        if y.ndim == 2 and self.classes is not None and len(self.classes) != y.shape[1]:
            raise GraphError(
                f"y has {y.shape[1]} columns but {len(self.classes)} classes are named"
            )

    def _check_targets(self) -> None:
        names, q = self.targets, self.labels.shape[1]
        if self.classes is not None:
            raise GraphError("a graph has classes or targets, got both; leave one of them out")
        if len(names) != q or len(set(names)) < q:
            raise GraphError(
                f"targets must be {q} different names, one for each column of y, got {names}"
            )

    def _check_splits(self) -> None:
        for i, split in enumerate(self.splits):
            if len(split.train) != self.n:
                raise GraphError(
                    f"split {i} has masks of {len(split.train)} nodes, but the graph has {self.n}"
                )
            unknown = (split.train | split.val | split.test) & ~self.labelled
            if unknown.any():
                raise GraphError(
                    f"split {i} uses node {first(unknown)}, whose label is unknown; "
                    "leave it out of the masks"
                )
        if self.times is None:
            return
        if len(self.splits) > 1:
            raise GraphError(
                f"times divide a graph once, but {self.name} has {len(self.splits)} splits; give "
                "one split, or leave the times out"
            )
        for split in self.splits:
            masks = [(role, getattr(split, role)) for role in ROLES]
            refuse_disorder(self.times, masks, dated=self.dated)

    def _hold_validation_out(self) -> None:
        """Take nodes to validate on from those to train on, where a split has none."""
        if self.times is not None:
            splits = tuple(split.validating_last(self.times) for split in self.splits)
        else:
            splits = tuple(split.validating(self.labels) for split in self.splits)
        self._set(splits=splits)

    def validation_is_drawn(self, split: int) -> bool:
        """Whether the validation nodes of this split were taken from those to train on, here."""
        given = self.splits[split]
        if self.times is not None or (given.train | given.val).sum() < SOME:
            return False
        try:
            return np.array_equal(given._fifth(self.labels), given.val)
        except GraphError:  # of classes of one node each, none can be drawn
            return False

    @property
    def n(self) -> int:
        """Number of nodes."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def m(self) -> int:
        """Number of edges without duplicates and self-loops; undirected ones count once.

        Edges of two types are two.
        """
        edges = self.apart
        u, v = edges[:, edges[0] != edges[1]]
        u, v = (u, v) if self.directed else (np.minimum(u, v), np.maximum(u, v))
        codes = np.sort(u * (self.n * self.type_count) + v)  # np.unique takes ten times as long
        return int((np.diff(codes, prepend=-1) > 0).sum())

    @property
    def k(self) -> int:
        """Number of classes, of labels if a node can have several, or of numbers to predict."""
        if self.labels.ndim == 2:
            return int(self.labels.shape[1])
        if self.classes is not None:
            return len(self.classes)
        return int(self.labels.max(initial=-1)) + 1

    @property
    def labels(self) -> Labels:
        """`y`, which is never None once the graph is made: int64, or float64 with `targets`."""
        assert self.y is not None
        return self.y

    @property
    def multilabel(self) -> bool:
        """Whether a node can have several labels at once."""
        return self.labels.ndim == 2 and not self.targets

    def unknown(self, count: int) -> Labels:
        """Labels of further nodes, none of which is known."""
        return np.full((count, *self.labels.shape[1:]), np.nan if self.targets else -1)

    @property
    def weighted(self) -> bool:
        """Whether its edges have weights."""
        return self.weights is not None

    @property
    def typed(self) -> bool:
        """Whether its edges are of several types."""
        return self.edge_types is not None

    def edges_kept(self, kept: NDArray[np.bool_]) -> dict[str, Any]:
        """What is known of some edges, by the names of its fields."""
        names = ("edges", "weights", "edge_times", "edge_types")
        given = {name: getattr(self, name) for name in names}
        return {name: one[..., kept] for name, one in given.items() if one is not None}

    @property
    def type_count(self) -> int:
        """Number of types of edges."""
        return 1 if self.edge_types is None else len(self.type_names)

    @property
    def type_names(self) -> tuple[str, ...]:
        """The names of the types of edges; where all are of one, its name, if it has one."""
        return self.edge_type_names or ()

    @property
    def apart(self) -> NDArray[np.int64]:
        """(2, m) the edges, those of type t between copies u + t n of the nodes."""
        return self.edges if self.edge_types is None else apart(self.edges, self.edge_types, self.n)

    @cached_property
    def typical_weights(self) -> NDArray[np.float64]:
        """Some weights of its edges, sorted, which tell what is much and what is little."""
        if self.weights is None:
            return np.ones(1)
        return freeze(typical_weights(self.apart, self.weights, directed=self.directed))

    @cached_property
    def labelled(self) -> NDArray[np.bool_]:
        """(n,) whether a node's label is known, or all its numbers."""
        return known_rows(self.labels)

    @property
    def has_labels(self) -> bool:
        """Whether any node's label is known."""
        return bool(self.labelled.any())

    def val_is_alike(self, split: int) -> bool:
        """Whether all validation nodes of this split have the same labels."""
        y = self.labels[self.splits[split].val]
        return not (y != y[0]).any()

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of what a model learns from, which are features, edges, labels and splits."""
        about: tuple[object, ...] = (self.n, self.d, self.directed, self.labels.shape)
        about = (*about, "targets") if self.targets else about
        digest = hashlib.sha256(repr(about).encode())
        for array in self._arrays():
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        hand_back(self.edges)
        return digest.hexdigest()

    def _arrays(self) -> Iterable[NDArray[np.generic]]:
        X = self.X
        if isinstance(X, sp.csr_array):
            yield from (X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data)
        else:
            yield X
        yield from (self.edges, self.labels)
        for split in self.splits:
            yield from (split.train, split.val, split.test)
        for more in (self.weights, self.times, self.edge_times, self.edge_types):
            if more is not None:
                yield more
        if self.edge_types is not None:
            yield np.frombuffer(repr(self.type_names).encode(), np.uint8)

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        edges = f"{self.m} {kind}{' weighted' if self.weighted else ''} edges"
        if self.typed:
            edges += f" of {self.type_count} types"
        what = f"{self.k} classes"
        if self.targets:
            what = "1 target" if self.k == 1 else f"{self.k} targets"
        return f"Graph({self.name}: {self.n} nodes, {edges}, {self.d} features, {what})"


def _labels_of(y: object, n: int, targets: Sequence[str]) -> Labels:
    """What is known of n nodes, in its standard form."""
    if y is None:
        return np.full((n, len(targets)), np.nan) if targets else np.full(n, -1)
    return target_array(y) if targets else integers(y, "y")  # type: ignore[arg-type]


def splits_of(values: object) -> tuple[Split, ...]:
    """One or several splits as a tuple; None for none."""
    if values is None or isinstance(values, Split):
        return () if values is None else (values,)
    listed = _listed(values, "splits must hold gcnii.Split")
    splits = [one for one in listed if isinstance(one, Split)]
    if odd := [one for one in listed if not isinstance(one, Split)]:
        raise GraphError(f"splits must hold gcnii.Split, got {type(odd[0]).__name__}")
    return tuple(splits)


def _names(values: object, field: str) -> tuple[str, ...] | None:
    if values is None:
        return None
    return tuple(map(str, _listed(values, f"{field} must be a list of names")))


def _listed(values: object, expected: str) -> list[object]:
    """The values; an array without dimensions looks like a list, and bytes are one of numbers."""
    try:
        return list(values if not isinstance(values, bytes) else None)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        raise GraphError(f"{expected}, got {type(values).__name__}") from None
