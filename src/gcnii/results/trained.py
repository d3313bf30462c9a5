"""Trained: what can be asked of anything that was trained, one model or an ensemble of several."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import nan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import GraphError, InputError, notice, visible
from gcnii.files import Document, json_value, user_path
from gcnii.graph import Features, Graph, Split
from gcnii.graph.arrays import Labels
from gcnii.graph.columns import Columns
from gcnii.graph.types import aligned
from gcnii.targets import LabelTarget, Target, as_labels, target_of
from gcnii.targets.scores import Answers, Score, mean_and_spread
from gcnii.targets.target import HALF, Bools, Sets
from gcnii.train.recipe import Recipe
from gcnii.train.stopping import Run

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from pandas import DataFrame

    from gcnii.inference.evaluate import Evaluation
    from gcnii.inference.explain import Explanation


Floats: TypeAlias = NDArray[np.floating[Any]]
Probabilities: TypeAlias = NDArray[np.float64]
Answered: TypeAlias = NDArray[np.float64]  # probabilities, or values in units
Said: TypeAlias = NDArray[np.str_] | NDArray[np.int64] | NDArray[np.float64]
NAMES = ("classes", "features", "targets", "edge_type_names")
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
    targets: tuple[str, ...] = ()
    edge_type_names: tuple[str, ...] | None = None
    loaded_with: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph) -> Origin:
        known = {one.name: getattr(graph, one.name) for one in fields(cls)}
        return cls(**known | {"edge_type_names": graph.type_names if graph.typed else None})

    def document(self) -> Document:
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        options = {name: _storable(one) for name, one in self.loaded_with.items()}
        columns = self.columns and self.columns.document()
        if not self.targets:
            del plain["targets"]
        if self.edge_type_names is None:
            del plain["edge_type_names"]
        return plain | {"columns": columns, "loaded_with": options}

    @classmethod
    def of_document(cls, document: Document) -> Origin:
        named = {name: document.get(name) and tuple(document[name]) for name in NAMES}
        named["targets"] = named["targets"] or ()
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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Trained(ABC):
    """Runs of a training, each on the nodes of one split, that predict, are measured and saved.

    A Result has the runs of one model; an Ensemble combines those of several, and each of its runs
    is such a combination.

    Attributes
    ----------
    origin : Origin
        What is remembered of the graph: `name`, `n`, `classes`, `source`, …
    interrupted : bool
        Whether it was stopped before its end.
    positive : int or None
        The class that ROC AUC and average precision are of; None: all, or not known.
    trained_on : Graph or None
        The graph, where the training was in this process; a bundle does not hold it.
    made : dict or None
        Versions, git state and command of a bundle that was opened.
    """

    origin: Origin
    runs: tuple[Run, ...]
    device: str
    interrupted: bool = False
    positive: int | None = None
    trained_on: Graph | None = None
    made: Document | None = None

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
    def best(self) -> int:
        """The run that was best on validation."""
        return self.recipe.best(self.runs)

    @abstractmethod
    def predicting(self, ensemble: bool = True) -> list[int]:
        """The runs that predict: those on the split of the best run, or the best run alone."""

    @abstractmethod
    def part(self, rows: list[int]) -> Self:
        """These runs alone."""

    @abstractmethod
    def scored(self, graph: Graph, device: str = "auto") -> Self:
        """The same, with what all runs say of a graph at hand: computed once and kept."""

    def predict_proba(
        self, graph: Graph, device: str = "auto", *, ensemble: bool = True
    ) -> Probabilities:
        """Predict the probability of every class, for every node; of numbers, there are none.

        The scores of each run are divided by its temperature first, if it has one, and what its
        loss weighed the classes by is undone.  A mean of several runs has a temperature of its own.
        Of a portfolio, a node of the training whose label validated a fold is answered by the runs
        that did not train on it.  Where the training graph has times, its validation nodes
        are answered by the graph as they found it, all others by the whole.

        Parameters
        ----------
        graph : Graph
            A graph with the features of the training graph.
        device : {"auto", "cpu", "cuda"}
            Where to compute.
        ensemble : bool
            Whether to predict with all members, and with the mean of the runs on the split of the
            best run; or with the best run, or member, only.

        Returns
        -------
        (n, k) array
        """
        as_labels(self.target, "probabilities are")
        return self.answers(graph, device, ensemble=ensemble)

    def answers(self, graph: Graph, device: str = "auto", *, ensemble: bool = True) -> Answered:
        """(n, k) probabilities of all nodes, or values in the units of the numbers."""
        if not isinstance(graph, Graph):
            raise InputError(
                f"predict takes a gcnii.Graph, got {type(graph).__name__}; new nodes and their "
                "edges, as two tables, are for predict_new(nodes, edges)"
            )
        P, T = self._answers(graph, device, ensemble)
        if wrong := int((~np.isfinite(P).all(1)).sum()):
            nodes = "1 node" if wrong == 1 else f"{wrong} nodes"
            raise GraphError(
                f"the scores of {nodes} of {graph.name} are not finite; its features may be far "
                "larger than those of the training"
            )
        return P if T is None else self.label_target.tempered(P, T)

    @abstractmethod
    def _answers(self, graph: Graph, device: str, ensemble: bool) -> tuple[Answered, float | None]:
        """(n, k) the mean of the runs that predict, and the temperature that it still needs."""

    def decide(self, P: Answered, *, ensemble: bool = True) -> Labels:
        """Class ids (n,), or zeros and ones (n, k), of probabilities; numbers are as they are.

        The mean probability of several runs is held against the mean of their thresholds.  Where
        the loss weighed the classes, so does the choice: probabilities are times their weights,
        unless a threshold of one of two classes was chosen, by the probabilities as they are.
        """
        runs, threshold = self.deciding(ensemble)
        weights, by_class = mean_weights(runs), not self.recipe.has_threshold
        if weights is not None and (by_class or not self.label_target.exclusive):
            P = self.label_target.weighed(P, weights)
        return self.target.decided(P, threshold)

    def deciding(self, ensemble: bool = True) -> tuple[list[Run], float]:
        """The runs that predict, and the mean of their thresholds."""
        runs = [self.runs[i] for i in self.predicting(ensemble)]
        return runs, fmean(HALF if run.threshold is None else run.threshold for run in runs)

    @property
    def by_threshold(self) -> bool:
        """Whether one of two classes is named above a threshold that was chosen for it."""
        return self.target.binary and self.recipe.has_threshold and self.positive is not None

    def threshold_of(self, j: int) -> float | None:
        """The probability above which a node is of class j of two; None if none was chosen."""
        if not self.by_threshold:
            return None
        threshold = self.deciding()[1]
        return threshold if j == 1 else 1 - threshold

    def graded(self, graph: Graph, device: str = "auto") -> Answers:
        """What the runs of one split say of its test nodes."""
        P, test = self.answers(graph, device), graph.splits[self.runs[0].split].test
        return Answers.of(self.target, P, self.decide(P), graph, test, self.positive)

    def _score(self, P: Answered, guess: Labels, graph: Graph, mask: Bools) -> float:
        """The score of what is said of these nodes, in the metric of the training."""
        if not mask.any():
            return nan
        said = Answers.of(self.target, P, guess, graph, mask, self.positive)
        return said.score(self.score.key)

    @abstractmethod
    def recalibrated(self, val: Bools) -> Self:
        """The same runs of one split, calibrated by these nodes in the place of all validation."""

    def uncalibrated(self) -> Self:
        """The same runs without their temperatures and class weights."""
        runs = tuple(replace(run, temperature=None, weights=None) for run in self.runs)
        return replace(self, runs=runs)

    @abstractmethod
    def embed(self, graph: Graph, device: str = "auto") -> Floats:
        """(n, width) the last hidden layer."""

    @abstractmethod
    def features(self, graph: Graph) -> Features:
        """X of a graph as the models see it: the columns of the training, scaled."""

    @abstractmethod
    def unlinked(self, graph: Graph) -> Bools:
        """(n,) the nodes that are seen without a neighbour; none, if no edges are used."""

    def member(self, name: str) -> Trained:
        """One of several members alone; InputError where there are none."""
        raise InputError(f"this is one model, {self.title}, without members such as {name!r}")

    def knowing(self, graph: Graph) -> Self:
        """The same, which may use the labels of its training graph, where it needs them."""
        return self

    def trainings(self, graph: Graph) -> list[Split]:
        """The splits that the runs which predict were trained on, of the training graph."""
        return [graph.splits[self.runs[self.best].split]]

    def roles(self, graph: Graph) -> dict[str, Bools]:
        """`train`, `val` and `test`, (n,) each: what validates one fold and trains others trains.

        graph  that of the training
        """
        splits, held = self.trainings(graph), self.held_out(graph)
        train = np.any([split.train for split in splits], 0)
        return {"train": train, "val": held & ~train, "test": splits[0].test}

    def held_out(self, graph: Graph) -> Bools:
        """(n,) the nodes whose answers rest on runs that did not train on them: they calibrate."""
        return np.asarray(np.any([split.val for split in self.trainings(graph)], 0))

    @property
    def refitted(self) -> bool:
        """Whether it was trained on every label, and its scores were measured before that."""
        return False

    @property
    def whole_graph(self) -> Graph | None:
        """The training graph, where it is in memory with its features and edges."""
        return self.trained_on

    def with_positive(self, positive: int | None) -> Self:
        """The same, where ROC AUC and average precision are of this class."""
        return replace(self, positive=positive)

    @abstractmethod
    def in_force(self) -> Document:
        """The settings that decided the training, by name."""

    def summary(self) -> Document:
        """The one JSON document of `gcnii train --json`."""
        positive = {} if self.positive_name is None else {"positive": self.positive_name}
        return positive | {
            "graph": self.origin.name,
            "fingerprint": self.origin.fingerprint,
            "model": self.model,
            "metric": self.metric,
            "runs": [run.summary() for run in self.runs],
            "test_mean": json_value(self.test.mean()),
            "test_std": json_value(self.std),
            "device": self.device,
            "interrupted": self.interrupted,
        }

    @property
    def graph(self) -> Origin:
        """Deprecated: `origin`, which it is, or `trained_on`, the Graph."""
        warnings.warn("result.graph is result.origin now", DeprecationWarning, stacklevel=2)
        return self.origin

    @cached_property
    def target(self) -> Target:
        """What is predicted."""
        return target_of(self.origin)

    @property
    def label_target(self) -> LabelTarget:
        """The same, if it is of classes; else InputError."""
        return as_labels(self.target, "this is")

    def predict(self, graph: Graph, device: str = "auto", *, ensemble: bool = True) -> Said:
        """Predict the label of every node, or its numbers.

        Parameters
        ----------
        graph : Graph
            A graph with the features of the training graph.
        device : {"auto", "cpu", "cuda"}
            Where to compute.
        ensemble : bool
            Whether to predict with the mean of the runs on the split of the best run, or with the
            best run only.

        Returns
        -------
        (n,) array
            Class names, or class ids if the classes have no names.  If a node can have several
            labels: (n, k) zeros and ones, one column per label.  Numbers in their units, of several
            (n, q).
        """
        P = self.answers(graph, device, ensemble=ensemble)
        return self.target.named(self.decide(P, ensemble=ensemble))

    def predict_ids(
        self, graph: Graph, device: str = "auto", *, ensemble: bool = True
    ) -> NDArray[np.int64]:
        """(n,) class ids, or (n, k) zeros and ones if a node can have several labels."""
        P = self.predict_proba(graph, device, ensemble=ensemble)
        return self.decide(P, ensemble=ensemble)

    @property
    def test(self) -> Probabilities:
        """(runs,) test scores, in [0, 1] but for those of numbers."""
        return np.array([run.test for run in self.runs])

    @property
    def val(self) -> Probabilities:
        """(runs,) validation scores."""
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
            The training graph; default: the one it was trained on, loaded again if needed.
        device : {"auto", "cpu", "cuda"}
            Where to compute.
        baselines : bool
            Whether to measure logistic regression, label propagation and gradient boosting beside
            it, or the majority alone.
        positive : str or int, optional
            The class that ROC AUC and average precision are of; default: the one of training, or
            of two classes the one of fewer training nodes.

        Returns
        -------
        Evaluation
            Prints as tables; `document()` is the JSON of `gcnii evaluate --json`, `warnings` the
            sentences to read first.
        """
        from gcnii.inference.evaluate import evaluate

        return evaluate(self, graph, device, baselines=baselines, positive=positive)

    def report(
        self,
        path: Path | str,
        graph: Graph | None = None,
        device: str = "auto",
        *,
        overwrite: bool = False,
    ) -> Path:
        """Write an HTML page about it: one file, which loads nothing.

        It shows the scores beside those of baselines, the training, confusions, calibration, and
        the least certain and most surprising nodes, each with an explanation.

        Parameters
        ----------
        path : path
            The file to write.
        graph : Graph, optional
            The training graph; default: the one it was trained on, loaded again if needed.
        device : {"auto", "cpu", "cuda"}
            Where to compute.
        overwrite : bool
            Whether to replace a file that is not such a page.

        Returns
        -------
        Path
        """
        from gcnii.inference.page import write_page

        return write_page(self, path, graph, device, overwrite=overwrite)

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
            The training graph; default: the one it was trained on, loaded again if needed.
        node : str or int
            Its name, or its number if the graph has no names.
        label : str or int, optional
            The label whose score is explained; default: the predicted one.
        against : str or int, optional
            Another label: explain what sets the first one apart from it.
        top : int
            Number of nodes, features and edges to list.
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
        return self.score.name

    @property
    def score(self) -> Score:
        """What the scores are of."""
        return self.target.score(self.recipe.scored_by)

    @property
    def measured(self) -> str:
        """The metric, and the class that it is of: `average precision of class fraud`."""
        name = self.positive_name
        if name is None or not self.score.ranks:
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
        """Label nodes that were not in the training graph.

        Parameters
        ----------
        nodes : data frame
            The new nodes, with the columns of the training graph's nodes.
        edges : data frame
            Edges that link new nodes to old ones, or to each other.
        graph : Graph, optional
            The training graph; default: the one it was trained on, loaded again if needed.
        device : {"auto", "cpu", "cuda"}
            Where to compute.
        ensemble : bool
            Whether to predict with the mean of the runs on the split of the best run, or with the
            best run only.
        coverage : float, optional
            Add sets of classes that contain the true one with this probability; or intervals
            of numbers.
        kind : {"lac", "aps"}
            The smallest sets, or sets that are larger where the model is unsure.

        Returns
        -------
        pandas.DataFrame
            A row for each new node.  Where the model was trained on linked nodes, one without edges
            is answered by its features alone, and its `basis` is "features" instead of "model".
        """
        from gcnii.inference.new_nodes import predict_new

        how = (nodes, edges, graph, device)
        return predict_new(self, *how, ensemble=ensemble, coverage=coverage, kind=kind)

    def predict_sets(
        self,
        graph: Graph | None = None,
        coverage: float = 0.9,
        device: str = "auto",
        *,
        kind: Sets = "lac",
        ensemble: bool = True,
    ) -> Bools:
        """Predict sets of classes that contain the true one, by split conformal prediction.

        Numbers have intervals: `predict_interval`.

        Parameters
        ----------
        graph : Graph, optional
            The training graph; default: the one it was trained on, loaded again if needed.
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

    def predict_interval(
        self,
        graph: Graph | None = None,
        coverage: float = 0.9,
        device: str = "auto",
        *,
        ensemble: bool = True,
    ) -> Floats:
        """Predict intervals that contain the true number, by conformal prediction.

        The validation nodes of the runs that predict set their bounds; intervals are wider where
        nodes of a like degree and value were further off.  Where the model was trained on linked
        nodes, that of a node without edges is around an answer by its features alone.

        Parameters
        ----------
        graph : Graph, optional
            A graph with the features of the training graph, which is the default, loaded again
            if needed.
        coverage : float
            The share of nodes whose interval should contain the true number.
        device : {"auto", "cpu", "cuda"}
            Where to compute.
        ensemble : bool
            Whether to predict with the mean of the runs on the split of the best run, or with the
            best run only.

        Returns
        -------
        (n, 2) array
            The ends, in units; of several numbers (n, q, 2).
        """
        from gcnii.inference.intervals import predict_interval

        ends = predict_interval(self, graph, coverage, device, ensemble=ensemble)
        return ends[:, 0] if self.target.k == 1 else ends

    def save(self, folder: Path | str, *, overwrite: bool = False, command: str = "") -> Path:
        """Write the bundle; until it is whole, the folder keeps the one that it held.

        A bundle is replaced only by one of the same graph and settings that has all its runs, and a
        finished one only by a finished one.

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
                f"{graph.name} {has} edge weights, but the training graph had {others}; "
                "edges without a weight count 1"
            )
        graph = self._with_types(graph)
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

    @property
    def _uses_types(self) -> bool:
        """Whether types of edges are told apart."""
        return self.origin.edge_type_names is not None

    def _with_types(self, graph: Graph) -> Graph:
        """The graph whose types of edges are those of the training, in the same order, if used."""
        known, own = self.origin.edge_type_names, graph.type_names
        if not self._uses_types:
            if graph.typed and known is None:
                notice(
                    f"{graph.name} has types of edges, but the training graph had none; all "
                    "edges count alike"
                )
            return graph._typed(None, None) if graph.typed else graph
        assert known is not None
        if graph.typed and own == known:
            return graph
        if not own and graph.edges.size:
            raise GraphError(
                f"the edges of {graph.name} have no types, but those of the training had: "
                f"{', '.join(known)}; give it a column of types (--edge-type)"
            )
        m = graph.edges.shape[1]
        return graph._typed(aligned(graph.edge_types, m, own, known, graph.name), known)

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
        test = mean_and_spread(self.test, self.score)
        before = f", {REFITTED}" if self.refitted else ""
        return f"{self.title}, on {self.origin.name}: test {self.measured} {test}{before}"


def mean_weights(runs: Sequence[Run]) -> Probabilities | None:
    """(k,) the geometric mean of the class weights of the runs whose losses had some."""
    known = [run.weights for run in runs if run.weights is not None]
    return np.exp(np.log(known).mean(0)) if known else None
