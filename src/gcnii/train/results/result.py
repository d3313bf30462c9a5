"""Result: what a fit gives, and a bundle holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import InputError
from gcnii.files import Document, json_value, user_path, visible
from gcnii.graph import Graph
from gcnii.graph.columns import Columns
from gcnii.targets.calibration import Sets
from gcnii.targets.objective import RANKINGS, mean_and_spread, metric_name
from gcnii.train.adam import Stack
from gcnii.train.plan import Plan
from gcnii.train.results.predictor import Predictor
from gcnii.train.results.run import Run
from gcnii.train.scaling import Scaling

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from pandas import DataFrame

    from gcnii.inference.evaluate import Evaluation
    from gcnii.inference.explain import Explanation

NAMES = ("classes", "features")


@dataclass(frozen=True)
class Origin:
    """What a result remembers of its graph, so that it opens where the data is not."""

    name: str
    fingerprint: str
    n: int
    d: int
    k: int
    multilabel: bool
    directed: bool
    classes: tuple[str, ...] | None
    source: str
    # A bundle from before there were these has none of them.
    features: tuple[str, ...] | None = None
    columns: Columns | None = None
    weighted: bool = False
    loaded_with: Mapping[str, object] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes, or their numbers."""
        return self.classes or tuple(map(str, range(self.k)))

    def document(self) -> Document:
        """As JSON."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        options = {name: _storable(one) for name, one in self.loaded_with.items()}
        columns = self.columns and self.columns.document()
        return plain | {"columns": columns, "loaded_with": options}

    @classmethod
    def of_document(cls, document: Document) -> Origin:
        """From JSON."""
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


@dataclass(frozen=True, eq=False)
class Result(Predictor):
    """The runs of a fit and the best weights of each: their scores, what they predict, `save`.

    Attributes
    ----------
    runs : tuple
        One for each seed: `seed`, `split`, `test`, `val`, `val_loss`, `best_epoch`, `epochs`,
        `seconds`.
    plan
        The model and every setting in force: `result.plan.settings`.
    interrupted : bool
        Whether it was stopped before its end.
    trained_on : Graph or None
        The graph, where the training was in this process; a bundle does not hold it.
    made : dict or None
        Versions, git state and command of a bundle that was opened.

    Examples
    --------
    >>> import gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> result = gcnii.fit(graph, layers=2, epochs=3)
    >>> result.predict_proba(graph).shape
    (60, 2)
    """

    device: str
    interrupted: bool = False
    made: Document | None = field(default=None, repr=False, kw_only=True)

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
        """Keep of the graph what a bundle needs."""
        origin = Origin(**{field.name: getattr(graph, field.name) for field in fields(Origin)})
        result = cls(origin, plans[0], tuple(runs), weights, scaling, device, interrupted)
        return replace(result, others=tuple(plans[1:]), trained_on=graph)

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

    def alone(self, i: int) -> Result:
        """The result of one run, without the others.

        Parameters
        ----------
        i : int
            The place of the run.

        Returns
        -------
        Result
        """
        return self.part([i])

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
        """Why the best run gives a node its label.

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

    def part(self, rows: list[int]) -> Result:
        """The result of these runs of one setting."""
        weights = {name: weight[rows] for name, weight in self.weights.items()}
        plan = self.plans[self.runs[rows[0]].setting]
        runs = tuple(replace(self.runs[i], setting=0) for i in rows)
        together = self.together if rows == self.predicting() else None
        answers = None if self.answers is None else self.answers[rows]
        same = replace(self, runs=runs, weights=weights, plan=plan, others=())
        return replace(same, together=together, answers=answers)

    @property
    def metric(self) -> str:
        """The name of the metric of the test scores, such as accuracy."""
        return metric_name(self.plan.recipe.scored_by, multilabel=self.graph.multilabel)

    @property
    def measured(self) -> str:
        """The metric, and the class that it is of: `average precision of class fraud`."""
        name = self.positive_name
        if name is None or self.plan.recipe.scored_by not in RANKINGS:
            return self.metric
        what = "label" if self.graph.multilabel else "class"
        return f"{self.metric} of {what} {visible(name)}"

    @property
    def positive_name(self) -> str | None:
        """The class that ROC AUC and average precision are of; None: all, or not known."""
        if self.positive is None:
            return None
        return self.graph.names[self.positive]

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

    def __repr__(self) -> str:
        """One line: what was trained, on what, how well."""
        layers = self.plan.model_settings.get("layers")
        model = self.plan.model + (f", {layers} layers" if layers else "")
        if self.others:
            return f"{model}, on {self.graph.name}: {self._best_of_several()}"
        test = mean_and_spread(self.test)
        return f"{model}, on {self.graph.name}: test {self.measured} {test}"

    def _best_of_several(self) -> str:
        setting = self.runs[self.best].setting
        val = mean_and_spread(self.at(setting).val)
        count = len(self.plans)
        return f"{count} settings, the best run of setting {setting}, val {self.measured} {val}"

    def summary(self) -> Document:
        """The one JSON document of `gcnii train --json`."""
        several: Document = {}
        if self.others:
            several["others"] = [plan.settings for plan in self.others]
        if self.positive_name is not None:
            several["positive"] = self.positive_name
        return several | {
            "graph": self.graph.name,
            "fingerprint": self.graph.fingerprint,
            "model": self.plan.model,
            "settings": self.plan.settings,
            "metric": self.metric,
            "runs": [run.summary() for run in self.runs],
            "test_mean": json_value(self.test.mean()),
            "test_std": json_value(self.std),
            "device": self.device,
            "interrupted": self.interrupted,
        }

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
        from gcnii.train.results.saving import save

        return save(self, user_path(folder), overwrite=overwrite, command=command)
