"""Result: the trained runs of a fit, their scores on one graph, and what they predict.

And Trained: what can be asked of anything that was trained, one model or an ensemble of several.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import isnan, nan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call, vmap

from gcnii.errors import GraphError, InputError, notice, visible
from gcnii.files import Document, json_value, user_path
from gcnii.graph import Features, Graph, Piece, Split
from gcnii.graph.arrays import Labels
from gcnii.graph.columns import Columns
from gcnii.graph.past import Past, past
from gcnii.graph.types import aligned
from gcnii.nn import MODELS, Model
from gcnii.propagation import adjacency
from gcnii.targets import LabelTarget, Numbers, Target, as_labels, target_of
from gcnii.targets.numbers import in_units
from gcnii.targets.scores import Answers, Score, mean_and_spread
from gcnii.targets.target import HALF, LEAST, Sets
from gcnii.train.adam import Stack
from gcnii.train.features import Scaling
from gcnii.train.hardware import choose_device
from gcnii.train.plan import Plan
from gcnii.train.recipe import Recipe, in_force
from gcnii.train.stopping import Run
from gcnii.train.task import LightTask, Task, learnt

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from pandas import DataFrame

    from gcnii.inference.evaluate import Evaluation
    from gcnii.inference.explain import Explanation

Floats: TypeAlias = NDArray[np.floating[Any]]
Probabilities: TypeAlias = NDArray[np.float64]
Answered: TypeAlias = NDArray[np.float64]  # probabilities, or values in units
Bools: TypeAlias = NDArray[np.bool_]
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
            A graph with the features of the training.
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
        """(runs,) test scores: in [0, 1], but for those of numbers."""
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
            The new nodes, with the columns of the training's nodes.
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
        nodes of a like degree and value were further off.

        Parameters
        ----------
        graph : Graph, optional
            A graph with the features of the training; default: the training graph, which is
            loaded again if needed.
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

    def _with_types(self, graph: Graph) -> Graph:
        """The graph whose types of edges are those of the training, in the same order."""
        known = self.origin.edge_type_names
        if known is None and graph.typed:
            notice(
                f"{graph.name} has types of edges, but the training graph had none; all "
                "edges count alike"
            )
            return replace(graph, edge_types=None, edge_type_names=None)
        if known is None or (graph.typed and graph.type_names == known):
            return graph
        if not graph.type_names and graph.edges.size:
            raise GraphError(
                f"the edges of {graph.name} have no types, but those of the training had: "
                f"{', '.join(known)}; give it a column of types (--edge-type)"
            )
        m, own = graph.edges.shape[1], graph.type_names
        types = aligned(graph.edge_types, m, own, known, graph.name)
        return replace(graph, edge_types=types, edge_type_names=known)

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


KEPT = 1 << 28  # numbers (1 GiB); of more, each run is computed again when it is asked for
AT_ONCE = 1 << 27  # numbers of a layer's states that a GPU computes at once


@dataclass(frozen=True)
class Recomputed:
    """Scores that are too many to be kept: those of run rows[i] are computed when asked for."""

    result: Result
    inputs: Inputs
    rows: Sequence[int]

    def __getitem__(self, i: int, /) -> Tensor:
        def scores(inputs: Task | LightTask) -> Tensor:
            return self.result._output("forward", self.rows[i], inputs)

        return self.inputs.answered(scores)


@dataclass(frozen=True, eq=False)
class Inputs:
    """A graph made ready for prediction.

    earlier  of the graph of a training with times: that graph up to its last validation node, and
             (n,) these nodes, which are answered as they were when they validated
    """

    whole: Task | LightTask
    earlier: tuple[Task | LightTask, Bools] | None = None

    def answered(self, scores: Callable[[Task | LightTask], Tensor]) -> Tensor:
        """(…, n, k) what is said of the graph."""
        found = scores(self.whole)
        if self.earlier:
            task, val = self.earlier
            nodes = torch.from_numpy(np.flatnonzero(val))
            found[..., nodes, :] = scores(task)[..., nodes, :]
        return found


@dataclass(frozen=True, eq=False)
class Outputs:
    """What all runs of a result say of one graph.

    weights  that gave these scores: those of another result are not of it
    scores   (runs, n, k) on the CPU, or what computes those of one run after another
    shared  whether several processes trained: the graph then has the labels of the nodes of all
            splits, and neither features nor edges
    """

    graph: Graph
    weights: Stack
    scores: Tensor | Recomputed
    shared: bool = False

    def of(self, rows: Sequence[int], weights: Stack) -> Outputs:
        """Of these runs, which have these weights."""
        if isinstance(self.scores, Tensor):
            return replace(self, weights=weights, scores=self.scores[list(rows)])
        own = [self.scores.rows[i] for i in rows]
        return replace(self, weights=weights, scores=replace(self.scores, rows=own))


@torch.no_grad()
def scores_of(model: Model, weights: Stack, task: Task, at_once: int | None = None) -> Tensor:
    """(r, n, k) on the CPU: the scores of r sets of weights (r, …) for one model.

    at_once  how many are computed together; default: one on a CPU, as it trains them, and on a GPU
             as many as have room
    """
    model, runs = model.to(task.device).eval(), len(next(iter(weights.values())))
    own = model.state_dict()  # whose precision may be another than that of the training
    stack = {name: weight.to(own[name]) for name, weight in weights.items()}
    if at_once is None:
        width = max(max(weight.shape[1:], default=1) for weight in weights.values())
        room = max(AT_ONCE // (task.P.shape[0] * width), 1)
        at_once = 1 if task.device.type == "cpu" else min(runs, room)

    def one(each: Stack) -> Tensor:
        return functional_call(model, each, (task.P, task.X))  # type: ignore[no-any-return]

    if at_once > 1:
        return vmap(one, chunk_size=at_once)(stack).cpu()
    each = ({name: weight[i] for name, weight in stack.items()} for i in range(runs))
    return _stacked([one(weights).cpu() for weights in each])


def _stacked(each: Sequence[Tensor]) -> Tensor:
    """(runs, …); the scores of a single run, which may be large, are not copied."""
    return each[0][None] if len(each) == 1 else torch.stack(list(each))


# Numbers of a layer's state, above which a CPU predicts a block of rows at a time: 64 MiB.
LARGE = 1 << 24


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result(Trained):
    """The runs of a fit and the best weights of each: their scores, what they predict, `save`.

    Several runs on one split are an ensemble: the mean of their probabilities predicts.

    Attributes
    ----------
    origin : Origin
        What is remembered of the graph: `name`, `n`, `classes`, `source`, …
    runs : tuple
        One for each seed: `seed`, `split`, `test`, `val`, `val_loss`, `best_epoch`, `epochs`,
        `seconds`.
    plan : Plan
        The model and every setting in force, `result.plan.settings`, of the runs of setting 0.
    interrupted : bool
        Whether it was stopped before its end.
    trained_on : Graph or None
        The graph, where the training was in this process; a bundle does not hold it.
    made : dict or None
        Versions, git state and command of a bundle that was opened.
    others : tuple
        The plans of settings 1, 2, …, where a fit tried several.
    together : float or None
        The temperature of the mean probability of the runs that predict, where there are several:
        it is less sure than each of them.
    positive : int or None
        The class that ROC AUC and average precision are of; None: all, or not known.
    outputs : Outputs or None
        The scores of all runs on one graph, that of the training after a fit: see `scored`.  Where
        several processes trained, `trained_on` has labels and splits alone.

    Examples
    --------
    >>> import gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> result = gcnii.fit(graph, layers=2, epochs=3)
    >>> result.predict_proba(graph).shape
    (60, 2)
    """

    plan: Plan
    weights: Stack
    scaling: Scaling | None
    others: tuple[Plan, ...] = ()
    together: float | None = None
    outputs: Outputs | None = None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of each setting."""
        return (self.plan, *self.others)

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.plan.model

    @property
    def title(self) -> str:
        """The model and how deep it is."""
        layers = self.plan.model_settings.get("layers")
        return self.plan.model + (f", {layers} layers" if layers else "")

    @property
    def recipe(self) -> Recipe:
        """That of the plan."""
        return self.plan.recipe

    def predicting(self, ensemble: bool = True) -> list[int]:
        """The runs that predict: those on the split of the best run, or the best run alone.

        Runs on different splits are never mixed: the test nodes of one may have trained another.
        """
        best = self.runs[self.best]
        alike = (best.split, best.setting)
        mates = [i for i, run in enumerate(self.runs) if (run.split, run.setting) == alike]
        return mates if ensemble else [self.best]

    def scored(
        self, graph: Graph, device: str = "auto", inputs: Task | LightTask | None = None
    ) -> Result:
        """The same, with the scores of all runs on a graph at hand: computed once, as one batch.

        inputs  the graph made ready already
        """
        if self._at_hand(graph):
            return self
        ready, count = self._ready(graph, device, inputs), len(self.runs)
        if count * graph.n * self.origin.k > KEPT:
            again = Recomputed(self, ready, range(count))
            return replace(self, outputs=Outputs(graph, self.weights, again))
        scores = ready.answered(self._every_score)
        return replace(self, outputs=Outputs(graph, self.weights, scores))

    def _ready(self, graph: Graph, device: str, inputs: Task | LightTask | None) -> Inputs:
        """The graph as it is asked, and as it was where nodes of the training validated."""
        whole = self._inputs(graph, device) if inputs is None else inputs
        if graph.times is None or not graph.splits or isinstance(graph, Past):
            return Inputs(whole)
        if self._known(graph).fingerprint != self.origin.fingerprint:
            return Inputs(whole)
        earlier = inputs.earlier if isinstance(inputs, Task) else None
        then = earlier.val if earlier else self._inputs(past(graph, "val"), device)
        return Inputs(whole, (then, graph.splits[0].val))

    def _at_hand(self, graph: Graph) -> bool:
        return self._own is not None and self._own.graph is graph

    @property
    def _own(self) -> Outputs | None:
        """The scores at hand, unless the weights were replaced since."""
        return self.outputs if self.outputs and self.outputs.weights is self.weights else None

    def _every_score(self, inputs: Task | LightTask) -> torch.Tensor:
        """(runs, n, k) on the CPU; the runs of one setting are one batch."""
        if not isinstance(inputs, Task):
            return _stacked([self._output("forward", i, inputs) for i in range(len(self.runs))])
        parts: dict[int, torch.Tensor] = {}
        for setting in dict.fromkeys(run.setting for run in self.runs):
            rows = [i for i, run in enumerate(self.runs) if run.setting == setting]
            weights = {name: weight[rows] for name, weight in self.weights.items()}
            model = self.plans[setting].build(self.origin.d, self.origin.k)
            parts |= dict(zip(rows, scores_of(model, weights, inputs), strict=True))
        return _stacked([parts[i] for i in range(len(self.runs))])

    def gathered(self, task: Task) -> Result:
        """The same, with the scores of each run for all nodes of splits, of several processes.

        All call this, and each has them all from then on.
        """
        shard, piece = task.shard, task.graph
        assert shard is not None
        assert isinstance(piece, Piece)
        roles = [mask for one in piece.splits for mask in (one.train, one.val, one.test)]
        own = np.flatnonzero(np.any(roles, 0))
        nodes = torch.from_numpy(piece.rows[own])

        def everywhere(rows: NDArray[Any]) -> NDArray[Any]:
            return shard.gathered(torch.tensor(rows), nodes).numpy()

        known = piece.labelled_only(everywhere, own)
        each = (self._output("forward", i, task)[own] for i in range(len(self.runs)))
        scores = torch.stack([shard.gathered(one, nodes) for one in each])
        return replace(
            self, trained_on=known, outputs=Outputs(known, self.weights, scores, shared=True)
        )

    def tuned(self, *, thresholds: bool, temperatures: bool) -> Result:
        """The same with these; a threshold of two classes is one of calibrated probabilities.

        Numbers have neither.
        """
        if not isinstance(self.target, LabelTarget):
            return self
        if thresholds and not self.target.exclusive:
            self = self.with_thresholds()
        if temperatures:
            self = self.with_temperatures()
        return self.with_thresholds() if thresholds and self.label_target.exclusive else self

    def with_thresholds(self) -> Result:
        """The same, with the threshold of each run that suits its validation nodes best.

        Scores that are made of labels are measured again, by the labels that are now predicted; on
        validation they flatter a little, because it chose the threshold.
        """
        return replace(self, runs=tuple(self._tuned(i) for i in range(len(self.runs))))

    def _tuned(self, i: int) -> Run:
        run, graph = self.runs[i], self._graded
        if isnan(run.val):  # it diverged, beside other settings that did not
            return run
        P, split, recipe = self._mean([i]), graph.splits[run.split], self.recipe
        target, by = self.label_target, (self.positive, recipe.price)
        threshold = target.best_threshold(P[split.val], graph.labels[split.val], *by)
        run = replace(run, threshold=threshold)
        if self.score.ranks:
            return run
        return self._measured(run, P, target.decided(P, threshold))

    def _measured(self, run: Run, P: Probabilities, guess: NDArray[np.int64]) -> Run:
        """The run with the scores of what it says of its validation and test nodes."""
        graph = self._graded
        split = graph.splits[run.split]
        val, test = (self._score(P, guess, graph, mask) for mask in (split.val, split.test))
        return replace(run, val=val, test=test)

    def with_temperatures(self) -> Result:
        """The same, with the temperature of each run that suits its validation nodes best.

        What its loss weighed the classes by is undone.  A threshold is a probability, too, and
        moves with them, so that every label stays; a score of an order of nodes is measured again.
        """
        runs = tuple(self._calibrated(i) for i in range(len(self.runs)))
        same = replace(self, runs=runs)
        runs = tuple(same._ranked(i) for i in range(len(runs)))
        return replace(same, runs=runs)._calibrated_together()

    def recalibrated(self, val: Bools) -> Result:
        """The same runs of one split, calibrated by these nodes in the place of all validation."""
        if not isinstance(self.target, LabelTarget):
            return self
        graph, outputs = self._graded, self.outputs
        split = replace(graph.splits[self.runs[0].split], val=val)
        only = replace(outputs, graph=replace(graph, splits=(split,)))  # type: ignore[type-var]
        runs = tuple(replace(run, split=0) for run in self.runs)
        return replace(replace(self, runs=runs, outputs=only).with_temperatures(), outputs=outputs)

    def uncalibrated(self) -> Result:
        """The mean of several runs has no temperature, either."""
        return replace(super().uncalibrated(), together=None)

    def _calibrated(self, i: int) -> Run:
        run, graph, target = self.runs[i], self._graded, self.label_target
        val, logs = graph.splits[run.split].val, self._log_weights(run, graph)
        if isnan(run.val):  # it diverged
            return run
        if val.sum() < LEAST:  # it would be calibrated by chance
            return run if logs is None else replace(run, weights=np.exp(logs).tolist())
        scores, y = self._scores(i).double().numpy()[val], graph.labels[val]
        if logs is None:
            T, weights = target.best_temperature(scores, y), None
        else:
            T, power = target.fitted(scores, y, logs)
            weights = np.exp(power * logs).tolist()
        threshold = run.threshold
        if threshold is not None and not target.exclusive:
            threshold = float(target.tempered(np.array(threshold), T))
        return replace(run, temperature=T, threshold=threshold, weights=weights)

    def _log_weights(self, run: Run, graph: Graph) -> Probabilities | None:
        """(k,) of the classes, or of the odds of each label, in the loss of a run."""
        if self.plans[run.setting].recipe.class_weight == "none":
            return None
        y = graph.labels[graph.splits[run.split].train]
        return self.label_target.log_odds(self.label_target.balanced_weights(y))

    def _ranked(self, i: int) -> Run:
        """The run with scores of an order of its probabilities, if those are its scores."""
        run = self.runs[i]
        if isnan(run.val) or not self.score.ranks:
            return run
        P = self._mean([i])
        return self._measured(run, P, self.label_target.decided(P))

    def _calibrated_together(self) -> Result:
        runs, graph = self.predicting(), self._graded
        val = graph.splits[self.runs[runs[0]].split].val
        # Of weighed classes the mean stays: a temperature would move the shares of rare ones.
        known = all(self.runs[i].temperature and not self.runs[i].weights for i in runs)
        if len(runs) < 2 or not self.label_target.exclusive or not known:
            return self
        P = self._mean(runs)[val]
        scores = np.log(np.maximum(P, np.finfo(P.dtype).tiny))  # a sure network's may be 0
        together = self.label_target.best_temperature(scores, graph.labels[val])
        return replace(self, together=together)

    @property
    def _graded(self) -> Graph:
        """The graph of the scores at hand, whose labels grade them."""
        assert self.outputs is not None
        return self.outputs.graph

    def _scores(self, i: int) -> torch.Tensor:
        """(n, k) the scores of run i on that graph."""
        assert self.outputs is not None
        return self.outputs.scores[i]

    def _mean(self, runs: Sequence[int]) -> Answered:
        """(n, k) the mean of the runs' answers there, each after its own temperature."""
        scores = (calibrated(self._scores(i).double(), self.runs[i]) for i in runs)
        return self.target.mean_answers(scores)

    def scores(self, graph: Graph, device: str = "auto") -> Probabilities:
        """The raw scores of the best run, before any temperature.

        Parameters
        ----------
        graph : Graph
            A graph with the features of the training.
        device : {"auto", "cpu", "cuda"}
            Where to compute.

        Returns
        -------
        (n, k) array
        """
        best = self if self._at_hand(graph) else self.alone(self.best).scored(graph, device)
        return best._scores(best.best).double().numpy()

    def deciding(self, ensemble: bool = True) -> tuple[list[Run], float]:
        """The runs that predict, and the mean of their thresholds, tempered as their mean is."""
        runs, threshold = super().deciding(ensemble)
        if self.together is not None and len(runs) > 1:
            pair = np.array([[1 - threshold, threshold]])
            threshold = float(self.label_target.tempered(pair, self.together)[0, 1])
        return runs, threshold

    def _answers(self, graph: Graph, device: str, ensemble: bool) -> tuple[Answered, float | None]:
        runs, splits = self.predicting(ensemble), {run.split for run in self.runs}
        if ensemble and len(splits) > 1:
            notice(self._who_predicts(runs))
        if self._at_hand(graph):
            P = self._mean(runs)
        else:
            P = self.part(runs).scored(graph, device)._mean(range(len(runs)))
        return P, self.together if len(runs) > 1 else None

    def _who_predicts(self, runs: list[int]) -> str:
        """A notice that some runs do not predict."""
        run, splits = self.runs[runs[0]], len({run.split for run in self.runs})
        who = f"the run of seed {run.seed}" if len(runs) == 1 else f"the mean of {len(runs)} runs"
        return (
            f"the {len(self.runs)} runs were trained on {splits} splits, which are never mixed; "
            f"{who} on split {run.split}, the best by validation, predicts"
        )

    def embed(self, graph: Graph, device: str = "auto") -> Floats:
        """The last hidden layer of the best run.

        Parameters
        ----------
        graph : Graph
            A graph with the features of the training.
        device : {"auto", "cpu", "cuda"}
            Where to compute.

        Returns
        -------
        (n, width) array
        """
        return self._output("embed", self.best, self._inputs(graph, device)).numpy()

    def network(
        self, graph: Graph, device: str = "auto", task: Task | None = None
    ) -> tuple[Model, Task]:
        """The model of the best run, in evaluation mode, and the graph made ready for it.

        task  the graph made ready already
        """
        task = self._task(graph, device) if task is None else task
        return self._model(self.best).to(task.device), task

    def _inputs(self, graph: Graph, device: str) -> Task | LightTask:
        """The graph made ready for prediction: in less memory, where it is large."""
        numbers = graph.n * self.plan.model_settings.get("width", 0)
        large = numbers > LARGE and choose_device(device).type == "cpu"
        if large and LightTask.suits(self.plan):
            graph = self._known(graph)
            return LightTask.of(graph, self.plan, learnt(graph, self.plan, self.scaling))
        return self._task(graph, device)

    def _task(self, graph: Graph, device: str) -> Task:
        """The graph made ready for the models."""
        return Task.of(self._known(graph), self.plan, choose_device(device), self.scaling)

    def features(self, graph: Graph) -> Features:
        """X of a graph as the models see it: the columns of the training, scaled; no structure."""
        graph = self._known(graph)
        scaling = learnt(graph, self.plan, self.scaling)
        return graph.X if scaling is None else scaling.apply(graph.X)

    @property
    def whole_graph(self) -> Graph | None:
        """None where several processes trained, of which each had a piece."""
        return None if self.outputs and self.outputs.shared else self.trained_on

    def unlinked(self, graph: Graph) -> Bools:
        """(n,) the nodes that the model sees without a neighbour; none, if it uses no edges."""
        if not MODELS[self.plan.model].card.uses_graph or self.recipe.geometry != "none":
            return np.zeros(graph.n, bool)
        A = adjacency(graph, self.recipe.direction, "remove")
        return np.asarray(np.asarray(A.sum(1)).ravel() == 0)

    def _model(self, i: int) -> Model:
        """The model of run i, in evaluation mode."""
        model = self.plans[self.runs[i].setting].build(self.origin.d, self.origin.k)
        model.load_state_dict({name: weight[i] for name, weight in self.weights.items()})
        return model.eval()

    @torch.no_grad()
    def _output(self, method: str, i: int, task: Task | LightTask) -> torch.Tensor:
        """What `forward` or `embed` of run i's model returns, on the CPU."""
        model = self._model(i).to(task.device)
        model.by_rows = not isinstance(task, Task)
        output: torch.Tensor = getattr(model, method)(task.P, task.X)
        return output.to_dense().cpu()

    @classmethod
    def of(
        cls,
        graph: Graph,
        plans: Sequence[Plan],
        runs: list[Run],
        weights: Stack,
        device: str,
        interrupted: bool,
        scaling: Scaling | None = None,
    ) -> Result:
        """Keep of the graph what a bundle needs, and in runs the units of what they predict."""
        target = target_of(graph)
        if isinstance(target, Numbers):
            trained = (graph.labels[graph.splits[run.split].train] for run in runs)
            units = (target.learnt(y).tolist() for y in trained)
            runs = [replace(run, units=own) for run, own in zip(runs, units, strict=True)]
        return cls(
            origin=Origin.of(graph),
            plan=plans[0],
            others=tuple(plans[1:]),
            runs=tuple(runs),
            weights=weights,
            scaling=scaling,
            device=device,
            interrupted=interrupted,
            trained_on=graph,
        )

    def at(self, setting: int) -> Result:
        """The result of one of several settings, without the others.

        Parameters
        ----------
        setting : int
            Its place among them.

        Returns
        -------
        Result
        """
        if not 0 <= setting < len(self.plans):
            raise InputError(f"settings are numbered 0 to {len(self.plans) - 1}, got {setting}")
        return self.part([i for i, run in enumerate(self.runs) if run.setting == setting])

    def joined(self, other: Result) -> Result:
        """The runs of two results of the same plan, on the same graph."""
        weights = {
            name: torch.cat([one, other.weights[name]]) for name, one in self.weights.items()
        }
        same = replace(self, runs=self.runs + other.runs, weights=weights, together=None)
        mine, theirs = self._own, other._own
        if mine is None or theirs is None or mine.graph is not theirs.graph:
            return replace(same, outputs=None)
        if not (isinstance(mine.scores, Tensor) and isinstance(theirs.scores, Tensor)):
            return replace(same, outputs=None)
        scores = torch.cat([mine.scores, theirs.scores])
        return replace(same, outputs=Outputs(mine.graph, weights, scores))

    def part(self, rows: list[int]) -> Result:
        """The result of these runs of one setting."""
        weights = {name: weight[rows] for name, weight in self.weights.items()}
        plan = self.plans[self.runs[rows[0]].setting]
        runs = tuple(replace(self.runs[i], setting=0) for i in rows)
        together = self.together if rows == self.predicting() else None
        same = replace(self, runs=runs, weights=weights, plan=plan, others=())
        return replace(same, together=together, outputs=self._own and self._own.of(rows, weights))

    def __repr__(self) -> str:
        """One line: what was trained, on what, how well."""
        if self.others:
            return f"{self.title}, on {self.origin.name}: {self._best_of_several()}"
        return super().__repr__()

    def _best_of_several(self) -> str:
        setting = self.runs[self.best].setting
        val = mean_and_spread(self.at(setting).val, self.score)
        count = len(self.plans)
        return f"{count} settings, the best run of setting {setting}, val {self.measured} {val}"

    def in_force(self) -> Document:
        """Every setting that counts."""
        return in_force(self.plan.settings)

    def summary(self) -> Document:
        """The one JSON document of `gcnii train --json`."""
        several = {"others": [plan.settings for plan in self.others]} if self.others else {}
        return several | super().summary() | {"settings": self.plan.settings}


def mean_weights(runs: Sequence[Run]) -> Probabilities | None:
    """(k,) the geometric mean of the class weights of the runs whose losses had some."""
    known = [run.weights for run in runs if run.weights is not None]
    return np.exp(np.log(known).mean(0)) if known else None


def calibrated(scores: torch.Tensor, run: Run) -> torch.Tensor:
    """Scores (…, k) of a run, as its probabilities are made of them; or values in units."""
    if run.units is not None:
        return in_units(scores, np.array(run.units))
    scores = scores / (run.temperature or 1.0)
    if run.weights is None:
        return scores
    return scores - torch.tensor(run.weights, dtype=scores.dtype, device=scores.device).log()
