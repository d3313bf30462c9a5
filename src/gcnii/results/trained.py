"""Trained: what can be asked of anything that was trained, one model or an ensemble of several."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import GraphError, notice, visible
from gcnii.files import Document, user_path
from gcnii.graph import Features, Graph, Split
from gcnii.graph.columns import Columns
from gcnii.targets import Target, target_of
from gcnii.targets.kinds import Sets
from gcnii.targets.scores import mean_and_spread
from gcnii.train.recipe import Recipe
from gcnii.train.run import Run

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from pandas import DataFrame

    from gcnii.inference.evaluate import Evaluation
    from gcnii.inference.explain import Explanation

Floats: TypeAlias = NDArray[np.floating[Any]]
Labels: TypeAlias = NDArray[np.str_] | NDArray[np.int64]
NAMES = ("classes", "features")
REFITTED = "measured before it was trained on every label"


@dataclass(frozen=True)
class Origin:
    """What a result remembers of its graph, so that it opens without the data."""

    name: str
    fingerprint: str
    n: int
    d: int
    k: int
    multilabel: bool
    directed: bool
    classes: tuple[str, ...] | None
    source: str
    # bundles of older versions lack these
    features: tuple[str, ...] | None = None
    columns: Columns | None = None
    weighted: bool = False
    loaded_with: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph) -> Origin:
        return cls(**{one.name: getattr(graph, one.name) for one in fields(cls)})

    def document(self) -> Document:
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        options = {name: _storable(one) for name, one in self.loaded_with.items()}
        columns = self.columns and self.columns.document()
        return plain | {"columns": columns, "loaded_with": options}

    @classmethod
    def of_document(cls, document: Document) -> Origin:
        named = {name: document.get(name) and tuple(document[name]) for name in NAMES}
        columns = document.get("columns")
        made = {"columns": columns and Columns.of_document(columns)}
        options = document.get("loaded_with", {})
        options |= {name: one for name, one in made.items() if name in options}
        return cls(**document | named | made | {"loaded_with": options})


def _storable(option: object) -> object:
    """An option of `load` as JSON has it; columns that were given are X's own, and stored once."""
    if isinstance(option, Columns):
        return None
    return sorted(option) if isinstance(option, set | frozenset) else option


class Trained(ABC):
    """Runs of a training, each on the nodes of one split, that predict, are measured and saved.

    A Result has the runs of one model; an Ensemble combines those of several, and each of its runs
    is such a combination.
    """

    origin: Origin
    runs: tuple[Run, ...]
    device: str
    interrupted: bool
    positive: int | None
    trained_on: Graph | None
    made: Document | None

    @property
    @abstractmethod
    def title(self) -> str:
        """What was trained, in a few words: `gcnii, 8 layers`."""

    @property
    @abstractmethod
    def model(self) -> str:
        """The name by which a record knows what was trained: a model, or auto."""

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """How it was trained; of several members, what they share."""

    @property
    @abstractmethod
    def best(self) -> int:
        """The run that was best on validation."""

    @abstractmethod
    def predicting(self, ensemble: bool = True) -> list[int]:
        """The runs that predict: those on the split of the best run, or the best run alone."""

    @abstractmethod
    def part(self, rows: list[int]) -> Self:
        """These runs alone."""

    @abstractmethod
    def scored(self, graph: Graph, device: str = "auto") -> Self:
        """The same, with what all runs say of a graph at hand: computed once and kept."""

    @abstractmethod
    def predict_proba(
        self, graph: Graph, device: str = "auto", *, ensemble: bool = True
    ) -> NDArray[np.float64]:
        """(n, k) the probability of every class, for every node."""

    @abstractmethod
    def decide(self, P: NDArray[np.float64], *, ensemble: bool = True) -> NDArray[np.int64]:
        """Class ids (n,), or zeros and ones (n, k), of probabilities that `predict_proba` gave."""

    @abstractmethod
    def recalibrated(self, val: NDArray[np.bool_]) -> Self:
        """The same runs of one split, calibrated by these nodes in the place of all validation."""

    def uncalibrated(self) -> Self:
        """The same runs without their temperatures and class weights."""
        runs = tuple(replace(run, temperature=None, weights=None) for run in self.runs)
        return replace(self, runs=runs)  # type: ignore[type-var]

    @abstractmethod
    def embed(self, graph: Graph, device: str = "auto") -> Floats:
        """(n, width) the last hidden layer."""

    @abstractmethod
    def features(self, graph: Graph) -> Features:
        """X of a graph as the models see it: the columns of the training, scaled."""

    @abstractmethod
    def unlinked(self, graph: Graph) -> NDArray[np.bool_]:
        """(n,) the nodes that are seen without a neighbour; none, if no edges are used."""

    @abstractmethod
    def member(self, name: str) -> Trained:
        """One of several members alone."""

    def knowing(self, graph: Graph) -> Self:
        """The same, which may use the labels of the graph of its training, where it needs them."""
        return self

    def trainings(self, graph: Graph) -> list[Split]:
        """The splits that the runs which predict were trained on, of the graph of the training."""
        return [graph.splits[self.runs[self.best].split]]

    def roles(self, graph: Graph) -> dict[str, NDArray[np.bool_]]:
        """`train`, `val` and `test`, (n,) each: what validates one fold and trains others trains.

        graph  that of the training
        """
        splits, held = self.trainings(graph), self.held_out(graph)
        train = np.any([split.train for split in splits], 0)
        return {"train": train, "val": held & ~train, "test": splits[0].test}

    def held_out(self, graph: Graph) -> NDArray[np.bool_]:
        """(n,) the nodes whose answers rest on runs that did not train on them: they calibrate."""
        return np.asarray(np.any([split.val for split in self.trainings(graph)], 0))

    @property
    def refitted(self) -> bool:
        """Whether it was trained on every label, and its scores were measured before that."""
        return False

    @property
    def whole_graph(self) -> Graph | None:
        """The graph of the training, where it is in memory with its features and edges."""
        return self.trained_on

    def with_positive(self, positive: int | None) -> Self:
        """The same, where ROC AUC and average precision are of this class."""
        return replace(self, positive=positive)  # type: ignore[type-var]

    @abstractmethod
    def in_force(self) -> Document:
        """The settings that decided the training, by name."""

    @abstractmethod
    def summary(self) -> Document:
        """The one JSON document of `gcnii train --json`."""

    @property
    def graph(self) -> Origin:
        """Deprecated: `origin`, which it is, or `trained_on`, the Graph."""
        warnings.warn("result.graph is result.origin now", DeprecationWarning, stacklevel=2)
        return self.origin

    @cached_property
    def target(self) -> Target:
        """What is predicted."""
        return target_of(self.origin)

    def predict(self, graph: Graph, device: str = "auto", *, ensemble: bool = True) -> Labels:
        """Predict the label of every node.

        Parameters
        ----------
        graph : Graph
            A graph with the features of the training.
        device : {"auto", "cpu", "cuda"}
            Where to compute.
        ensemble : bool
            Whether to predict with the mean of the runs on the split of the best run, or with the
            best run only.

        Returns
        -------
        (n,) array
            Class names, or class ids if the classes have no names.  If a node can have several
            labels: (n, k) zeros and ones, one column per label.
        """
        ids = self.predict_ids(graph, device, ensemble=ensemble)
        return self.target.named(ids)

    def predict_ids(
        self, graph: Graph, device: str = "auto", *, ensemble: bool = True
    ) -> NDArray[np.int64]:
        """(n,) class ids, or (n, k) zeros and ones if a node can have several labels."""
        P = self.predict_proba(graph, device, ensemble=ensemble)
        return self.decide(P, ensemble=ensemble)

    @property
    def test(self) -> NDArray[np.float64]:
        """(runs,) test scores in [0, 1]."""
        return np.array([run.test for run in self.runs])

    @property
    def val(self) -> NDArray[np.float64]:
        """(runs,) validation scores in [0, 1]."""
        return np.array([run.val for run in self.runs])

    @property
    def std(self) -> float:
        """The sample standard deviation of the test scores (ddof 1); NaN of a single run."""
        return float(self.test.std(ddof=1)) if len(self.runs) > 1 else nan

    def evaluate(
        self,
        graph: Graph | None = None,
        device: str = "auto",
        *,
        baselines: bool = True,
        positive: str | int | None = None,
    ) -> Evaluation:
        """What is known about its errors on the test nodes.

        Parameters
        ----------
        graph : Graph, optional
            The graph of the training; default: the one it was trained on, loaded again if needed.
        device : {"auto", "cpu", "cuda"}
            Where to compute.
        baselines : bool
            Whether to measure logistic regression, label propagation and gradient boosting beside
            it, or the majority alone.
        positive : str or int, optional
            The class that ROC AUC and average precision are of; default: that of the training, or
            of two classes the one of fewer training nodes.

        Returns
        -------
        Evaluation
            Prints as tables; `document()` is the JSON of `gcnii evaluate --json`, `warnings` the
            sentences to read first.
        """
        from gcnii.inference.evaluate import evaluate

        return evaluate(self, graph, device, baselines=baselines, positive=positive)

    def explain(
        self,
        graph: Graph | None = None,
        node: str | int | None = None,
        *,
        label: str | int | None = None,
        against: str | int | None = None,
        top: int = 10,
        device: str = "auto",
    ) -> Explanation:
        """Why a node has its label: by the best run of one model, or by the members of an ensemble.

        Of an ensemble, shares are of log-odds, each network's times its weight; members that are no
        networks are named, and take part in the check by removal alone.

        Parameters
        ----------
        graph : Graph, optional
            The graph of the training; default: the one it was trained on, loaded again if needed.
        node : str or int
            Its name, or its number if the graph has no names.
        label : str or int, optional
            The label whose score is explained; default: the predicted one.
        against : str or int, optional
            Another label: explain what sets the first one apart from it.
        top : int
            Number of nodes, features and links to list.
        device : {"auto", "cpu", "cuda"}
            Where to compute.

        Returns
        -------
        Explanation
            Prints as a sentence; `nodes`, `features`, `hops`, `links`, `removal`; `draw(path)`.
        """
        from gcnii.inference.explain import explain

        asked = {"label": label, "against": against}
        return explain(self, graph, node, **asked, top=top, device=device)

    @property
    def metric(self) -> str:
        """The name of the metric of the test scores, such as accuracy."""
        return self.target.score(self.recipe.scored_by).name

    @property
    def measured(self) -> str:
        """The metric, and the class that it is of: `average precision of class fraud`."""
        name = self.positive_name
        if name is None or not self.target.score(self.recipe.scored_by).ranks:
            return self.metric
        return f"{self.metric} of {self.target.words[0]} {visible(name)}"

    @property
    def positive_name(self) -> str | None:
        """The class that ROC AUC and average precision are of; None: all, or not known."""
        if self.positive is None:
            return None
        return self.target.names[self.positive]

    def predict_new(
        self,
        nodes: IntoDataFrame,
        edges: IntoDataFrame,
        graph: Graph | None = None,
        device: str = "auto",
        *,
        ensemble: bool = True,
        coverage: float | None = None,
        kind: Sets = "lac",
    ) -> DataFrame:
        """Label nodes that were not in the graph of the training.

        Parameters
        ----------
        nodes : data frame
            The new nodes, with the columns of the training's nodes.
        edges : data frame
            Edges that link new nodes to old ones, or to each other.
        graph : Graph, optional
            The graph of the training; default: the one it was trained on, loaded again if needed.
        device : {"auto", "cpu", "cuda"}
            Where to compute.
        ensemble : bool
            Whether to predict with the mean of the runs on the split of the best run, or with the
            best run only.
        coverage : float, optional
            Add sets of classes that contain the true one with this probability.
        kind : {"lac", "aps"}
            The smallest sets, or sets that are larger where the model is unsure.

        Returns
        -------
        pandas.DataFrame
            A row for each new node.  Where the model was trained on linked nodes, one without links
            is answered by its features alone, and its `basis` is "features" instead of "model".
        """
        from gcnii.inference.new_nodes import predict_new

        sets: dict[str, Any] = {"coverage": coverage, "kind": kind}
        return predict_new(self, nodes, edges, graph, device, ensemble=ensemble, **sets)

    def predict_sets(
        self,
        graph: Graph | None = None,
        coverage: float = 0.9,
        device: str = "auto",
        *,
        kind: Sets = "lac",
        ensemble: bool = True,
    ) -> NDArray[np.bool_]:
        """Predict sets of classes that contain the true one, by split conformal prediction.

        Parameters
        ----------
        graph : Graph, optional
            The graph of the training; default: the one it was trained on, loaded again if needed.
        coverage : float
            The share of nodes whose set should contain the true class.
        device : {"auto", "cpu", "cuda"}
            Where to compute.
        kind : {"lac", "aps"}
            The smallest sets, or sets that are larger where the model is unsure.
        ensemble : bool
            Whether to predict with the mean of the runs on the split of the best run, or with the
            best run only.

        Returns
        -------
        (n, k) array of bool
        """
        from gcnii.inference.predict import predict_sets

        return predict_sets(self, graph, coverage, device, kind=kind, ensemble=ensemble)

    def save(self, folder: Path | str, *, overwrite: bool = False, command: str = "") -> Path:
        """Write the bundle; until it is whole, the folder keeps the one that it held.

        A bundle is replaced only by one of the same training that has all its runs, and a finished
        one only by a finished one.

        Parameters
        ----------
        folder : path
        overwrite : bool
            Replace any bundle, but nothing else.
        command : str
            That trained it, to be found in the bundle.

        Returns
        -------
        Path
            The folder.
        """
        from gcnii.results.bundle import save

        return save(self, user_path(folder), overwrite=overwrite, command=command)

    def _aligned(self, graph: Graph) -> Graph:
        """The graph with the features of the training: encoded again, or found by their names."""
        if graph.weighted != self.origin.weighted:
            has, others = ("has", "none") if graph.weighted else ("has no", "some")
            notice(
                f"{graph.name} {has} edge weights, but the graph of the training had {others}; "
                "edges without a weight count 1"
            )
        if self.origin.columns is not None and graph.table is not None:
            X, features = self.origin.columns.encode(graph.table, graph.name)
            return replace(graph, X=X, features=features)
        if self.origin.features is not None and graph.features is not None:
            return graph.with_features(self.origin.features)
        if self.origin.features is not None or graph.features is not None:
            who = "the bundle" if self.origin.features is None else graph.name
            notice(
                f"{who} does not name its feature columns, so they are matched by position; "
                "check that both have them in the same order",
            )
        return graph

    def _known(self, graph: Graph) -> Graph:
        """The graph with the features of the training."""
        graph = self._aligned(graph)
        if graph.d != self.origin.d:
            raise GraphError(
                f"the model was trained on {self.origin.d} features per node, "
                f"but {graph.name} has {graph.d}"
            )
        return graph

    def alone(self, i: int) -> Self:
        """The result of one run, without the others.

        Parameters
        ----------
        i : int
            The place of the run.

        Returns
        -------
        Result or Ensemble
        """
        return self.part([i])

    def __repr__(self) -> str:
        """One line: what was trained, on what, how well."""
        test = mean_and_spread(self.test)
        before = f", {REFITTED}" if self.refitted else ""
        return f"{self.title}, on {self.origin.name}: test {self.measured} {test}{before}"
