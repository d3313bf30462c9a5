"""GCNII as a scikit-learn estimator: of node ids with a graph, of rows without one.

GraphEstimator   what both share: how X is read, and how a graph is trained on
GCNIIClassifier  of classes
GCNIIRegressor   of numbers
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, TypeAlias, TypeVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from gcnii.errors import GraphError, InputError, some_of
from gcnii.graph import Features, Graph, Split
from gcnii.graph.arrays import known_rows, refuse_masked, target_array
from gcnii.graph.graph import hold_out, strata
from gcnii.graph.times import latest
from gcnii.nn.settings import Bounds, Setting, Settings, check_settings
from gcnii.results.ensemble import Ensemble
from gcnii.results.fit import Session, fit_plans
from gcnii.results.result import Result
from gcnii.targets import label_target_of
from gcnii.train.plan import Plan, chosen_model, combines, make_plan
from gcnii.tuning.portfolio import Effort, prepared

EXACT = 2**53  # below which float64 holds whole numbers exactly


def rows_of(graph: Graph, X: object) -> NDArray[np.int64]:
    """The row of each id in X: a list, a vector or one column of node names.

    A node of a graph without names is called by its row number.
    """
    ids = list(map(_name, _column(X)))
    names = graph.nodes or tuple(map(str, range(graph.n)))
    place = {name: row for row, name in enumerate(names)}
    missing = [name for name in dict.fromkeys(ids) if name not in place]
    if missing:
        what = "names of its nodes" if graph.nodes else "row numbers, for its nodes have no names"
        raise InputError(
            f"{graph.name} has no node {some_of(missing)}; X must hold {what}, "
            f"such as {names[0]!r} or {names[-1]!r}"
        )
    if len(place) < len(names):
        _refuse_twins(names, set(ids))
    return np.array([place[name] for name in ids])


def _column(X: object) -> list[object]:
    refuse_masked(X, "X")
    # As objects: beside a float, numpy would make floats of integers.
    ids = np.array(X, object) if isinstance(X, list | tuple) else np.asarray(X)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1:
        raise InputError(
            f"X must be one column of node ids, since a graph is given, got shape {ids.shape}"
        )
    if not len(ids):
        raise InputError("X holds no node ids; give at least one")
    return list(ids.tolist())


def _name(id: object) -> str:
    """The id as text; 3.0 is 3, for a table with gaps makes floats of integers."""
    if not isinstance(id, float) or not id.is_integer():
        return str(id)
    if abs(id) >= EXACT:
        raise InputError(
            f"X holds the id {id:.0f} as a float, which may be another id rounded; give ids as "
            "integers or texts"
        )
    return str(int(id))


def _refuse_twins(names: tuple[str, ...], asked: set[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1 and name in asked:
            raise InputError(
                f"several nodes are called {name!r}; give the nodes of the graph different names"
            )


Ints: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[np.generic]
Bools: TypeAlias = NDArray[np.bool_]

WRITTEN = ("-1", "nan", "None")  # what numpy and pandas make of an unknown label among texts


@dataclass(frozen=True, eq=False)
class EncodedLabels:
    """classes (k,), sorted and of y's own type; ids (n,) of each row's class, -1 if unknown."""

    classes: Values
    ids: Ints

    @classmethod
    def of(cls, y: object, unknown: object) -> EncodedLabels:
        """Read y; refuse labels that no classifier can be trained on."""
        values = column(y)
        known = known_labels(values, unknown)
        if not known.any():
            raise GraphError("no row has a known label; label at least two rows of each class")
        labels = plain(values[known])
        _refuse_mixed(labels)
        check_classification_targets(labels)
        classes, inverse = np.unique(labels, return_inverse=True)
        if len(classes) == 1:
            raise GraphError(_one_class(classes[0], values, unknown))
        ids = np.full(len(values), -1)
        ids[known] = inverse
        return cls(classes, ids)

    def on_nodes(self, graph: Graph, rows: Ints) -> EncodedLabels:
        """The same for each node of a graph, where these are its rows."""
        return replace(self, ids=on_nodes(graph, rows, self.ids, -1))

    def on(self, graph: Graph) -> Graph:
        """The graph with these labels alone, not divided."""
        names = tuple(map(str, self.classes))
        return replace(graph, y=self.ids, classes=names, targets=(), splits=())


@dataclass(frozen=True, eq=False)
class KnownNumbers:
    """values (n, q), NaN if unknown, of the columns that are called `names`.

    flat  whether y was a vector, and so is what is predicted
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]
    flat: bool = True

    @classmethod
    def of(cls, y: object, names: Sequence[str] = ()) -> KnownNumbers:
        """Read y; refuse what cannot be trained on."""
        refuse_masked(y, "y")
        given = np.array(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
        try:
            numbers = given.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"y must hold numbers, NaN or None where unknown: {error}") from None
        values = target_array(numbers)
        known = known_rows(values)
        if known.sum() < 2:
            few = "1 sample has a known number" if known.any() else "no row has a known number"
            raise GraphError(f"{few}; give at least two")
        q = values.shape[1]
        numbered = tuple(f"y{j}" for j in range(q)) if q > 1 else ("y",)
        return cls(values, tuple(names) or numbered, given.ndim == 1)

    def on_nodes(self, graph: Graph, rows: Ints) -> KnownNumbers:
        """The same for each node of a graph, where these are its rows."""
        return replace(self, values=on_nodes(graph, rows, self.values, np.nan))

    def on(self, graph: Graph) -> Graph:
        """The graph with these numbers alone, not divided."""
        return replace(graph, y=self.values, classes=None, targets=self.names, splits=())


Read = TypeVar("Read", EncodedLabels, KnownNumbers)
Known = TypeVar("Known", Ints, NDArray[np.float64])


def on_nodes(graph: Graph, rows: Ints, y: Known, unknown: float) -> Known:
    """(n, …) what is known of each node; `unknown` where no row says."""
    known = known_rows(y)
    rows, y = rows[known], y[known]
    found = np.full((graph.n, *y.shape[1:]), unknown, y.dtype)
    found[rows] = y
    wrong = rows[(found[rows] != y).reshape(len(y), -1).any(1)]
    if len(wrong):
        name = graph.nodes[wrong[0]] if graph.nodes else str(wrong[0])
        raise InputError(f"node {name!r} is in X more than once, with different labels")
    return found


def column(y: object) -> Values:
    """y as a vector; a list keeps the types of its items, which numpy would make texts of.

    A masked label is unknown.
    """
    values = np.array(y, dtype=object) if isinstance(y, list | tuple) else np.asarray(y)
    if isinstance(y, np.ma.MaskedArray) and np.ma.getmaskarray(y).any():
        values = values.astype(object)
        values[np.ma.getmaskarray(y)] = None
    return column_or_1d(values, warn=True)  # type: ignore[no-any-return]


def known_labels(values: Values, unknown: object) -> Bools:
    """(n,) whether a label is known: not None, not NaN, and not what `unknown` says."""
    known = ~np.asarray(pd.isna(values))
    if unknown is None or unknown is pd.NA:
        return known
    if np.ndim(unknown):  # type: ignore[arg-type]
        raise InputError(f"unknown must be one label, got {unknown!r}")
    if isinstance(unknown, str) and unknown == "auto":
        return known & ~_unknown_by_convention(values, known)
    return known & ~_equal(values, unknown)


def known_beside(classes: Values, values: Values, unknown: object) -> Bools:
    """`known_labels` of rows to score, by a classifier that was trained on these classes."""
    if isinstance(unknown, str) and unknown == "auto" and _equal(classes, -1).any():
        unknown = None
    both = np.concatenate([classes.astype(object), values.astype(object)])
    return known_labels(both, unknown)[len(classes) :]


def own_labels(graph: Graph) -> Values:
    """(n,) the names of the nodes' classes, or numbers where there are none; None if unknown."""
    if not label_target_of(graph, "GCNIIClassifier is").exclusive:
        raise InputError(
            f"a node of {graph.name} can have several labels, but GCNIIClassifier takes one; "
            "train with gcnii.fit"
        )
    labels = np.array([*(graph.classes or range(graph.k)), None], dtype=object)
    return np.asarray(labels[graph.labels])


def own_numbers(graph: Graph) -> NDArray[np.float64]:
    """(n, q) the numbers of the nodes, NaN if unknown."""
    if not graph.targets:
        raise InputError(
            f"{graph.name} has classes, but GCNIIRegressor predicts numbers; give y, or load it "
            "with target="
        )
    return graph.labels


def _unknown_by_convention(values: Values, known: Bools) -> Bools:
    """(n,) where -1 means unknown, as in sklearn.semi_supervised; nowhere if it is a class.

    It is a class beside 1 alone, which are the names of two classes, and beside other negative
    numbers.
    """
    _refuse_written(values)
    marked = known & _equal(values, -1)
    others = plain(values[known & ~marked])
    if marked.any() and len(others) and others.dtype.kind in "biuf":
        found = np.unique(others).tolist()
        if found == [1] or found[0] < 0:
            return np.zeros_like(known)
        if found == [0, 1]:
            warnings.warn(
                "y holds -1, 0 and 1, and -1 is taken as an unknown label; "
                "say so with unknown=-1, or say unknown=None if -1 is a class",
                stacklevel=7,  # whoever calls fit
            )
    return marked


def _refuse_written(values: Values) -> None:
    if values.dtype.kind not in "OUT":
        return
    for text in WRITTEN:
        if _equal(values, text).any():
            raise InputError(
                f"y holds the text {text!r}, which may be an unknown label made into text; "
                f"say unknown={text!r}, or say unknown=None if it is a class"
            )


def _refuse_mixed(labels: Values) -> None:
    """Numbers and texts have no order among each other, in which classes stand."""
    texts = [isinstance(label, str) for label in labels] if labels.dtype == object else []
    if any(texts) and not all(texts):
        number, text = labels[texts.index(False)], labels[texts.index(True)]
        raise InputError(
            f"y holds labels of different types, such as {number!r} and {text!r}; make them all "
            "texts or all numbers"
        )


def _equal(values: Values, label: object) -> Bools:
    return np.asarray(values.astype(object) == label, dtype=bool)


def plain(labels: Values) -> Values:
    """Numbers in an array of objects as an array of numbers."""
    if labels.dtype != object:
        return labels
    plain = np.array(labels.tolist())
    return plain if plain.dtype.kind in "biuf" else labels


def _one_class(label: object, values: Values, unknown: object) -> str:
    sentence = f"all known labels are {label!s}, one class; a classifier needs two classes or more"
    if unknown != "auto" or not _equal(values, -1).any():
        return sentence
    return f"{sentence} (-1 is taken as unknown; say unknown=None if it is a class)"


@dataclass(frozen=True, eq=False)
class NearestRows:
    """Finds the nearest training rows of a row, by distances in X as given.

    The nodes' features are standardised, so that a network can be trained on columns of any scale.
    """

    search: NearestNeighbors
    scaler: StandardScaler

    @classmethod
    def of(cls, X: Features, neighbours: int) -> NearestRows:
        """This number of neighbours for each row of X, or all others where there are fewer."""
        search = NearestNeighbors(n_neighbors=min(neighbours, X.shape[0] - 1)).fit(X)
        return cls(search, StandardScaler(with_mean=not sp.issparse(X)).fit(X))

    def graph(self, X: Features) -> Graph:
        """The training rows, each joined to its nearest others."""
        edges = _edges(self.search.kneighbors(return_distance=False), first=0)
        return Graph(X=self.scaler.transform(X), edges=edges, name="nearest neighbours")

    def joined(self, graph: Graph, X: Features) -> Graph:
        """The training graph with new rows at its end, which gather from their nearest old rows.

        No old row gathers from a new one, and no new row from another: what is computed for a row
        does not depend on the rows that are asked about together.
        """
        new = self.scaler.transform(X)
        both = np.concatenate([graph.edges, graph.edges[::-1]], axis=1)
        links = _edges(self.search.kneighbors(X, return_distance=False), first=graph.n)
        stack = sp.vstack if sp.issparse(new) else np.concatenate
        return Graph(
            X=stack([graph.X, new]),
            edges=np.concatenate([both, links], axis=1),
            y=np.concatenate([graph.labels, graph.unknown(new.shape[0])]),
            classes=graph.classes,
            targets=graph.targets,
            directed=True,
            name=graph.name,
        )


def _edges(nearest: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """(2, m) from row `first` + i to each of nearest[i]."""
    sources = np.repeat(first + np.arange(len(nearest)), nearest.shape[1])
    return np.stack([sources, nearest.ravel()])


def refuse_unjoinable(plan: Plan) -> None:
    """Refuse settings with which new rows would change what is computed for others."""
    needed = {"geometry": "none", "diffusion": "none", "direction": "out", "batch_norm": False}
    both = ("loops", "norm")  # with these, links to a row count for it as well
    if [plan.settings.get(name) for name in both] == ["none", "symmetric"]:
        needed["loops"] = "keep"
    for name, value in needed.items():
        found = plan.settings.get(name, value)
        if found != value:
            raise InputError(
                f"without a graph, {name} must be {value}, because new rows are joined to the "
                f"training rows one by one; got {found} for {plan.model}"
            )


OWN = {
    "seeds": Annotated[int, Setting("networks to average", Bounds(least=1))],
    "neighbours": Annotated[int, Setting("of each row", Bounds(least=1))],
    "validation": Annotated[float, Setting("share held out", Bounds(above=0, below=1))],
}
WEIGHT = Annotated[float, Setting("of a class", Bounds(above=0))]
TRAINING = (
    *("layers", "width", "alpha", "lam", "dropout"),
    *("lr", "decay_conv", "decay_dense", "epochs", "patience"),
    *("metric", "monitor"),
)
# Without a graph, X was standardised when the rows were joined, and new rows are joined one way.
# The default for graphs monitors the score, which was not measured on neighbours by distance.
JOINED = {"scale": "none", "direction": "out", "loops": "keep", "monitor": "val_loss"}
ALL_JOINED = {"scale": "none", "loops": "keep"}  # the same, for all members of a portfolio
EFFORT = ("effort", "budget")  # parameters of a portfolio
LARGEST_SEED = 2**31 - 1
LARGEST = 1e100  # the squares of whose differences add up in float64


@dataclass(eq=False, repr=False, kw_only=True)
class GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """What a classifier and a regressor share: how X is read, and how a graph is trained on."""

    training: ClassVar[tuple[str, ...]] = TRAINING

    graph: Graph | None = field(default=None, kw_only=False)
    model: str | None = None
    layers: int | None = None
    width: int | None = None
    alpha: float | None = None
    lam: float | None = None
    dropout: float | None = None
    lr: float | None = None
    decay_conv: float | None = None
    decay_dense: float | None = None
    epochs: int | None = None
    patience: int | None = None
    metric: str | None = None
    monitor: str | None = None
    settings: Mapping[str, object] | None = None
    validation: float = 0.2
    neighbours: int = 5
    seeds: int = 1
    effort: Effort | None = None
    budget: str | float | None = None
    random_state: int | np.random.RandomState | None = 0
    device: str = "auto"

    # What `fit` sets.
    graph_: Graph = field(init=False)
    result_: Result | Ensemble = field(init=False)
    _neighbours: NearestRows | None = field(init=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        on_ids = self.graph is not None
        tags.input_tags.sparse = not on_ids
        tags.input_tags.string = tags.input_tags.one_d_array = on_ids
        tags.target_tags.required = not on_ids
        return tags

    def _read(
        self, X: object, y: object, own: Callable[[Graph], Values], read: Callable[[object], Read]
    ) -> tuple[Graph, Read, NearestRows | None]:
        """The graph, what is known of its nodes, and how new rows join it.

        own   the labels of a graph, which are read where y is None
        read  what is known, of labels or of y
        """
        check_settings(OWN, {name: getattr(self, name) for name in OWN})
        if self.graph is None:
            if y is None:
                raise InputError(
                    f"{type(self).__name__} requires y to be passed, but the target y is None; "
                    "only a graph has labels of its own"
                )
            X = self._features(X, reset=True)
            check_consistent_length(X, y)
            labels = read(y)
            neighbours = NearestRows.of(X, int(self.neighbours))
            return neighbours.graph(X), labels, neighbours
        if not isinstance(self.graph, Graph):
            raise InputError(
                f"graph must be a gcnii.Graph or None, got {type(self.graph).__name__}; "
                "gcnii.load reads one"
            )
        rows = rows_of(self.graph, X)
        if y is not None:
            check_consistent_length(rows, y)
        labels = read(own(self.graph)[rows] if y is None else y)
        return self.graph, labels.on_nodes(self.graph, rows), None

    def _train(self, graph: Graph, labels: EncodedLabels | KnownNumbers, given: Settings) -> None:
        """Set `graph_` and `result_`: trained on what is known of the nodes of a graph."""
        several = combines(graph, self.model, "published", given)
        graph, first = labels.on(graph), self._first_seed()
        known = graph.labelled
        held = hold_out(strata(graph.labels), self.validation, np.random.default_rng(first))
        if graph.times is not None:
            held = latest(graph.times, known, self.validation)
        if several:  # which divide the known labels in their own way
            held = np.zeros_like(held)
        split = Split(train=known & ~held, val=held, test=np.zeros_like(held))
        graph, seeds = graph.with_splits([split]), range(first, first + int(self.seeds))
        train = self._portfolio if several else self._network
        result = train(graph, given, seeds)
        if result.interrupted:
            raise KeyboardInterrupt("training was stopped before it was done")
        self.graph_, self.result_ = graph, result

    def _portfolio(self, graph: Graph, given: Settings, seeds: range) -> Ensemble:
        """Several models, combined."""
        if self.graph is None:
            given = ALL_JOINED | given
        how = {name: one for name in EFFORT if (one := getattr(self, name)) is not None}
        return prepared(graph, given, Session(device=self.device), seeds=seeds, **how).run()

    def _network(self, graph: Graph, given: Settings, seeds: range) -> Result:
        """One model."""
        if wrong := [name for name in EFFORT if getattr(self, name) is not None]:
            raise InputError(f"{wrong[0]} is for a portfolio; leave it out, or the model")
        plan = self._plan(graph, given)
        if self.graph is None:
            refuse_unjoinable(plan)
        session = Session(device=self.device)
        return fit_plans(graph, [plan], session, seeds=seeds, split=0, calibrate="temperature")

    def _first_seed(self) -> int:
        if isinstance(self.random_state, int | np.integer) and self.random_state >= 0:
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(LARGEST_SEED))

    def _features(self, X: object, *, reset: bool) -> Features:
        refuse_masked(X, "X")
        checked: Features = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, reset=reset
        )
        values = checked.data if sp.issparse(checked) else checked
        if (np.abs(values) > LARGEST).any():
            raise InputError(
                f"X must hold numbers up to {LARGEST:g}, beyond which distances are infinite, got "
                f"{np.abs(values).max():g}; scale X first"
            )
        return checked

    def _given(self) -> Settings:
        """The parameters that were given, and `settings`."""
        if not isinstance(self.settings, Mapping | None):
            raise InputError(f"settings must be a dictionary, got {self.settings!r}")
        further = dict(self.settings or {})
        given = {name: getattr(self, name) for name in self.training}
        given = {name: x for name, x in given.items() if not isinstance(x, Mapping | None)}
        if twice := next((name for name in further if name in given), None):
            raise InputError(f"{twice} is a parameter of its own; take it out of settings")
        return given | further

    def _plan(self, graph: Graph, given: Settings) -> Plan:
        """What is given; the rest as `fit` chooses."""
        if self.graph is None:
            return make_plan(self.model or "gcnii", JOINED | given, graph)
        # The labels are others, but the settings published for a graph of the catalog are for it.
        graph = graph._with_origin("", self.graph.catalog_name)
        return make_plan(chosen_model(self.model, graph), given, graph)

    def _answers(self, X: object) -> NDArray[np.float64]:
        """(rows, k) probabilities or numbers, averaged over the networks."""
        check_is_fitted(self)
        if self._neighbours is None:
            graph, rows = self.graph_, rows_of(self.graph_, X)
        else:
            X = self._features(X, reset=False)
            graph = self._neighbours.joined(self.graph_, X)
            rows = np.arange(self.graph_.n, graph.n)
        result = self.result_
        if isinstance(result, Ensemble):
            result = result.with_results(_in_float64)
        else:
            result = _in_float64(result)
        return result.answers(graph, self.device)[rows]


@dataclass(eq=False, repr=False, kw_only=True)
class GCNIIClassifier(ClassifierMixin, GraphEstimator):  # type: ignore[misc]
    """A scikit-learn classifier for the nodes of a graph, or for rows of features.

    With a graph, X contains node ids: `GCNIIClassifier(graph).fit(ids, y).predict(other_ids)`.
    Cross-validation then splits the ids while the graph stays whole: a node that is not in X keeps
    its features and edges, but its label is never read.  An id is the name of a node, or its row
    number if the nodes have no names.  Without y the graph's own labels are used.

    With graph=None, X contains features, and the graph links each row to its `neighbours` nearest
    ones, by Euclidean distance in X as given: scale X first, for example with a StandardScaler in a
    Pipeline. (The network sees standardised features either way.)  A row to predict gathers from
    its nearest training rows and changes nothing for them or for others, so its prediction does not
    depend on the other rows; nothing is trained again.  Training rows are predicted in the same
    way.

    A label that is None or NaN is unknown: such a row is part of the graph, but is not trained on,
    and not counted in `score`.  -1 is unknown as well, as in sklearn.semi_supervised, unless the
    only other label is 1 or there are other negative numbers: then it is a class.  `unknown=-1`
    makes it always unknown, `unknown=None` always a class; beside 0 and 1, where both are common, a
    warning asks you to choose.

    As `gcnii.fit` does, it trains a portfolio, several models that are combined, unless a model is
    named, settings are given that one model has, such as layers, or some were published for the
    graph.  The rows with known labels are divided into folds, and each fold is held out once.
    Parameters of the training of one model that are left at None are what `gcnii.fit` would choose.

    Parameters
    ----------
    graph : Graph or None
        The graph whose node ids X contains; None: X contains features.
    model : str, optional
        A name from `gcnii models`, or "auto" for a portfolio; default: as `gcnii.fit` chooses.
    layers : int, optional
        Number of convolutions.
    width : int, optional
        Number of hidden units.
    alpha : float, optional
        Share of H0 in every layer (α).
    lam : float, optional
        Strength of the weights (λ).
    dropout : float, optional
        Share of entries set to zero while training, before every layer.
    lr : float, optional
        Learning rate of Adam.
    decay_conv : float, optional
        L2 penalty on the convolutions.
    decay_dense : float, optional
        L2 penalty on the two dense layers.
    epochs : int, optional
        Maximum number of epochs.
    patience : int, optional
        Epochs without improvement before stopping.
    class_weight : {"none", "balanced"} or dict, optional
        Whether to weigh rare classes more in the loss.  A dictionary of labels and weights, where
        others weigh 1, changes no training: `predict` multiplies the probabilities by it.
    metric : str, optional
        What validation scores measure, such as "f1", "auc" or "ap"; `score` is always accuracy.
    positive : str, optional
        The class of two that "auc" and "ap" rank; default: the rarer one.
    monitor : str, optional
        What decides when training stops, such as "val_loss" or "val_auc".
    settings : dict, optional
        Further settings of the model and the Recipe, such as {"norm": "walk"}.
    validation : float
        Share of the known labels of each class that is held out for early stopping of one model; of
        dated nodes, the latest.
    neighbours : int
        Number of neighbours of each row, without a graph.
    unknown : object
        The label of rows whose class is unknown; "auto": see above.
    seeds : int
        Number of networks, trained on the same rows, whose probabilities are averaged; of a
        portfolio, for each model and fold.
    effort : {"quick", "standard", "best"}, optional
        How much is trained for a portfolio; default: standard.
    budget : str or float, optional
        How long a portfolio may take in all, such as "5m", or seconds.
    random_state : int, RandomState or None
        An int is the seed of the first network, and the others take the next ones; it also draws
        the validation rows.  With a RandomState or None, the first seed is drawn.
    device : {"auto", "cpu", "cuda"}
        The device to train on.

    Attributes
    ----------
    classes_ : array
        The known labels, sorted.
    graph_ : Graph
        The graph that was trained on, with the labels of the rows of X only.
    result_ : Result or Ensemble
        The result of the training.
    n_features_in_ : int
        The number of features, without a graph.
    feature_names_in_ : array
        The names of the features, without a graph, if X has any.

    Examples
    --------
    >>> import gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> classifier = gcnii.GCNIIClassifier(graph, layers=2, epochs=3).fit(range(40))
    >>> classifier.predict([50, 51]).shape
    (2,)
    """

    training: ClassVar[tuple[str, ...]] = (*TRAINING, "class_weight", "positive")

    class_weight: str | Mapping[object, float] | None = None
    positive: str | None = None
    unknown: object = "auto"

    def fit(self, X: object, y: object = None) -> GCNIIClassifier:
        """Train on the rows of X whose label is known: node ids, or features without a graph."""
        own = y is None and self.graph is not None

        def read(y: object) -> EncodedLabels:
            return EncodedLabels.of(y, None if own else self.unknown)

        graph, labels, neighbours = self._read(X, y, own_labels, read)
        given, weights = self._given(), self._weights(labels.classes)
        self._train(graph, labels, given)
        self.classes_, self._neighbours, self._class_weights = labels.classes, neighbours, weights
        return self

    def _weights(self, classes: Values) -> NDArray[np.float64] | None:
        """(k,) what `predict` multiplies probabilities by; None: nothing."""
        if not isinstance(self.class_weight, Mapping):
            return None
        known = classes.tolist()
        for label, weight in self.class_weight.items():
            if label not in known:
                raise InputError(f"class_weight has {label!r}, which is not among the labels")
            check_settings({"class_weight": WEIGHT}, {"class_weight": weight})
        return np.array([float(self.class_weight.get(label, 1)) for label in known])

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """(rows, k) probabilities of the classes, averaged over the networks."""
        return self._answers(X)

    def predict(self, X: object) -> Values:
        """(rows,) the most probable class of each; where classes are weighed, the weighed one.

        Of two classes, one of them rare, that one above the threshold of its best F1.
        """
        P = self.predict_proba(X)
        weights = self._class_weights
        ids = self.result_.decide(P) if weights is None else (P * weights).argmax(1)
        return np.asarray(self.classes_[ids])

    def score(self, X: object, y: object = None, sample_weight: object = None) -> float:
        """Accuracy on the rows whose label is known; without y, on the graph's own labels."""
        predicted, unknown = self.predict(X), self.unknown
        if y is None and self.graph is not None:
            y, unknown = own_labels(self.graph)[rows_of(self.graph, X)], None
        values = column(y)
        check_consistent_length(predicted, values, sample_weight)
        known = known_beside(self.classes_, values, unknown)
        if not known.any():
            raise InputError("no row has a known label, so there is nothing to score")
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(plain(values[known]), predicted[known], sample_weight=weights))


@dataclass(eq=False, repr=False, kw_only=True)
class GCNIIRegressor(RegressorMixin, GraphEstimator):  # type: ignore[misc]
    """A scikit-learn regressor for the nodes of a graph, or for rows of features.

    With a graph, X contains node ids: `GCNIIRegressor(graph).fit(ids, y).predict(other_ids)`, as in
    `GCNIIClassifier`; without y, the graph's own numbers are used.  With graph=None, X contains
    features, and each row is linked to its `neighbours` nearest ones, as there.

    A number that is None or NaN is unknown: such a row is part of the graph, but is not trained on,
    and not counted in `score`, which is R².  y (n, q) holds several numbers for each row; a row is
    trained on if all of them are known.

    Parameters
    ----------
    graph : Graph or None
        The graph whose node ids X contains; None: X contains features.
    model : str, optional
        A name from `gcnii models`, or "auto" for a portfolio; default: as `gcnii.fit` chooses.
    layers : int, optional
        Number of convolutions.
    width : int, optional
        Number of hidden units.
    alpha : float, optional
        Share of H0 in every layer (α).
    lam : float, optional
        Strength of the weights (λ).
    dropout : float, optional
        Share of entries set to zero while training, before every layer.
    lr : float, optional
        Learning rate of Adam.
    decay_conv : float, optional
        L2 penalty on the convolutions.
    decay_dense : float, optional
        L2 penalty on the two dense layers.
    epochs : int, optional
        Maximum number of epochs.
    patience : int, optional
        Epochs without improvement before stopping.
    metric : str, optional
        What validation scores measure: "r2", "mae" or "rmse"; `score` is always R².
    monitor : str, optional
        What decides when training stops: "val_loss" or "val_score".
    settings : dict, optional
        Further settings of the model and the Recipe, such as {"loss": "huber"}.
    validation : float
        Share of the known numbers that is held out for early stopping of one model; of dated nodes,
        the latest.
    neighbours : int
        Number of neighbours of each row, without a graph.
    seeds : int
        Number of networks, trained on the same rows, whose answers are averaged; of a
        portfolio, for each model and fold.
    effort : {"quick", "standard", "best"}, optional
        How much is trained for a portfolio; default: standard.
    budget : str or float, optional
        How long a portfolio may take in all, such as "5m", or seconds.
    random_state : int, RandomState or None
        An int is the seed of the first network, and the others take the next ones; it also draws
        the validation rows.  With a RandomState or None, the first seed is drawn.
    device : {"auto", "cpu", "cuda"}
        The device to train on.

    Attributes
    ----------
    graph_ : Graph
        The graph that was trained on, with the numbers of the rows of X only.
    result_ : Result or Ensemble
        The result of the training.
    n_features_in_ : int
        The number of features, without a graph.
    feature_names_in_ : array
        The names of the features, without a graph, if X has any.

    Examples
    --------
    >>> import gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> regressor = gcnii.GCNIIRegressor(graph, layers=2, epochs=3).fit(range(40), graph.X[:40, 0])
    >>> regressor.predict([50, 51]).shape
    (2,)
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: object, y: object = None) -> GCNIIRegressor:
        """Train on the rows of X whose number is known: node ids, or features without a graph."""
        names = self.graph.targets if y is None and isinstance(self.graph, Graph) else ()

        def read(y: object) -> KnownNumbers:
            return KnownNumbers.of(y, names)

        graph, numbers, neighbours = self._read(X, y, own_numbers, read)
        self._train(graph, numbers, self._given())
        self._neighbours, self._flat = neighbours, numbers.flat or len(names) == 1
        return self

    def predict(self, X: object) -> NDArray[np.float64]:
        """(rows,) the number of each, or (rows, q), averaged over the networks."""
        values = self._answers(X)
        return values[:, 0] if self._flat else values

    def score(self, X: object, y: object = None, sample_weight: object = None) -> float:
        """R² on the rows whose numbers are known; without y, on the graph's own."""
        predicted = self.predict(X)
        if y is None and self.graph is not None:
            y = own_numbers(self.graph)[rows_of(self.graph, X)]
        values = KnownNumbers.of(y).values
        check_consistent_length(predicted, values, sample_weight)
        known = known_rows(values)
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(r2_score(values[known], predicted[known], sample_weight=weights))


def _in_float64(result: Result) -> Result:
    """The same networks, computed so that float32's rounding by batch size is not seen."""
    recipe = replace(result.plan.recipe, precision="float64")
    return replace(result, plan=replace(result.plan, recipe=recipe))
