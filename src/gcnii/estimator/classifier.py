"""GCNIIClassifier: fit, predict and predict_proba as scikit-learn has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import signature
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from gcnii.errors import InputError
from gcnii.estimator.labels import (
    Ints,
    Labels,
    Values,
    column,
    hold_out,
    known_beside,
    own_labels,
    plain,
)
from gcnii.estimator.neighbours import Neighbours, refuse_unjoinable
from gcnii.estimator.nodes import rows_of
from gcnii.graph import Features, Graph
from gcnii.nn.settings import Bounds, Setting, check_settings
from gcnii.train.fit import fit_plan
from gcnii.train.plan import Plan, known_model, make_plan, model_defaults
from gcnii.train.recipe import RECIPE_FIELDS
from gcnii.train.results.result import Result

OWN = {
    "seeds": Annotated[int, Setting("networks to average", Bounds(least=1))],
    "neighbours": Annotated[int, Setting("of each row", Bounds(least=1))],
    "validation": Annotated[float, Setting("share held out", Bounds(above=0, below=1))],
}
TRAINING = (
    *("layers", "width", "alpha", "lam", "dropout"),
    *("lr", "decay_conv", "decay_dense", "epochs", "patience"),
)
LARGEST_SEED = 2**31 - 1


class GCNIIClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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

    The defaults are meant for any graph: 8 layers instead of the paper's 64, and α = 0.2.  They are
    passed to every model; a shallow one, such as gcn, needs fewer `layers`.  Settings that are not
    parameters here, such as the scaling of a graph's features, are those of `gcnii.fit`.

    Parameters
    ----------
    graph : Graph or None
        The graph whose node ids X contains; None: X contains features.
    model : str
        A name from `gcnii models`.
    layers : int
        Number of convolutions.
    width : int
        Number of hidden units.
    alpha : float
        Share of H0 in every layer (α).
    lam : float
        Strength of the weights (λ).
    dropout : float
        Share of entries set to zero while training, before every layer.
    lr : float
        Step size of Adam.
    decay_conv : float
        L2 penalty on the convolutions.
    decay_dense : float
        L2 penalty on the two dense layers.
    epochs : int
        Maximum number of epochs.
    patience : int
        Epochs without improvement before stopping.
    settings : dict, optional
        Further settings of the model and the Recipe, such as {"norm": "walk"}.
    validation : float
        Share of the known labels of each class that is held out for early stopping.
    neighbours : int
        Number of neighbours of each row, without a graph.
    unknown : object
        The label of rows whose class is unknown; "auto": see above.
    seeds : int
        Number of networks, trained on the same rows, whose probabilities are averaged.
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
    result_ : Result
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

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        model: str = "gcnii",
        layers: int = 8,
        width: int = 64,
        alpha: float = 0.2,
        lam: float = 0.5,
        dropout: float = 0.5,
        lr: float = 0.01,
        decay_conv: float = 1e-3,
        decay_dense: float = 5e-4,
        epochs: int = 500,
        patience: int = 50,
        settings: Mapping[str, object] | None = None,
        validation: float = 0.2,
        neighbours: int = 5,
        unknown: object = "auto",
        seeds: int = 1,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
    ):
        self.graph = graph
        self.model = model
        self.layers = layers
        self.width = width
        self.alpha = alpha
        self.lam = lam
        self.dropout = dropout
        self.lr = lr
        self.decay_conv = decay_conv
        self.decay_dense = decay_dense
        self.epochs = epochs
        self.patience = patience
        self.settings = settings
        self.validation = validation
        self.neighbours = neighbours
        self.unknown = unknown
        self.seeds = seeds
        self.random_state = random_state
        self.device = device

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        on_ids = self.graph is not None
        tags.input_tags.sparse = not on_ids
        tags.input_tags.string = tags.input_tags.one_d_array = on_ids
        tags.target_tags.required = not on_ids
        return tags

    def fit(self, X: object, y: object = None) -> GCNIIClassifier:
        """Train on the rows of X whose label is known: node ids, or features without a graph."""
        check_settings(OWN, {name: getattr(self, name) for name in OWN})
        first = self._first_seed()
        read = self._read_features if self.graph is None else self._read_ids
        graph, labels, neighbours = read(X, y)
        split = hold_out(labels.ids, self.validation, np.random.default_rng(first))
        names = tuple(map(str, labels.classes))
        graph = replace(graph, y=labels.ids, classes=names, splits=(split,))
        plan = self._plan(graph)
        if neighbours:
            refuse_unjoinable(plan)
        seeds = range(first, first + int(self.seeds))
        where = {"split": 0, "device": self.device}
        result = fit_plan(graph, plan, seeds=seeds, **where, calibrate="temperature")
        if result.interrupted:
            raise KeyboardInterrupt("training was stopped before it was done")
        self.classes_, self.graph_, self.result_ = labels.classes, graph, result
        self._neighbours = neighbours
        return self

    def _first_seed(self) -> int:
        if isinstance(self.random_state, int | np.integer) and self.random_state >= 0:
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(LARGEST_SEED))

    def _read_features(self, X: object, y: object) -> tuple[Graph, Labels, Neighbours | None]:
        if y is None:
            raise InputError(
                "GCNIIClassifier requires y to be passed, but the target y is None; "
                "only a graph has labels of its own"
            )
        X = self._features(X, reset=True)
        check_consistent_length(X, y)
        labels = Labels.of(y, self.unknown)
        neighbours = Neighbours.of(X, int(self.neighbours))
        return neighbours.graph(X), labels, neighbours

    def _features(self, X: object, *, reset: bool) -> Features:
        checked: Features = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, reset=reset
        )
        return checked

    def _read_ids(self, X: object, y: object) -> tuple[Graph, Labels, Neighbours | None]:
        graph = self.graph
        if not isinstance(graph, Graph):
            raise InputError(
                f"graph must be a gcnii.Graph or None, got {type(graph).__name__}; "
                "gcnii.load reads one"
            )
        rows = rows_of(graph, X)
        if y is None:
            labels = Labels.of(own_labels(graph)[rows], None)
        else:
            check_consistent_length(rows, y)
            labels = Labels.of(y, self.unknown)
        return graph, Labels(labels.classes, _on_nodes(graph, rows, labels.ids)), None

    def _plan(self, graph: Graph) -> Plan:
        """The parameters that the model has, and those that were changed; then `settings`."""
        defaults = signature(type(self)).parameters
        known = (*model_defaults(known_model(self.model)), *RECIPE_FIELDS)
        given = {name: getattr(self, name) for name in TRAINING}
        given = {
            name: value
            for name, value in given.items()
            if name in known or value != defaults[name].default
        }
        further = dict(self.settings or {})
        for name in further:
            if name in TRAINING:
                raise InputError(f"{name} is a parameter of its own; take it out of settings")
        # Without a graph, X was standardised when the rows were joined; and the default for graphs
        # without published settings was not measured on neighbours by distance.
        joined = {"scale": "none", "monitor": "val_loss"} if self.graph is None else {}
        return make_plan(self.model, given | joined | further, graph)

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """(rows, k) probabilities of the classes, averaged over the networks."""
        check_is_fitted(self)
        if self._neighbours is None:
            graph, rows = self.graph_, rows_of(self.graph_, X)
        else:
            X = self._features(X, reset=False)
            graph = self._neighbours.joined(self.graph_, X)
            rows = np.arange(self.graph_.n, graph.n)
        return _in_float64(self.result_).predict_proba(graph, self.device)[rows]

    def predict(self, X: object) -> Values:
        """(rows,) the most probable class of each."""
        likeliest = self.predict_proba(X).argmax(1)
        return np.asarray(self.classes_[likeliest])

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


def _on_nodes(graph: Graph, rows: Ints, ids: Ints) -> Ints:
    """(n,) the class of each node, -1 where no row gives one."""
    rows, ids = rows[ids >= 0], ids[ids >= 0]
    found = np.full(graph.n, -1)
    found[rows] = ids
    wrong = rows[found[rows] != ids]
    if len(wrong):
        name = graph.nodes[wrong[0]] if graph.nodes else str(wrong[0])
        raise InputError(f"node {name!r} is in X more than once, with different labels")
    return found


def _in_float64(result: Result) -> Result:
    """The same networks, computed so that float32's rounding by batch size is not seen."""
    recipe = replace(result.plan.recipe, precision="float64")
    return replace(result, plan=replace(result.plan, recipe=recipe))
