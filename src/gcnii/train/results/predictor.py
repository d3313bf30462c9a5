"""Predictor: the trained runs of a fit, and what they say of a graph."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isnan, nan
from statistics import fmean
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from gcnii.errors import GraphError, InputError, notice
from gcnii.graph import Features, Graph, Piece
from gcnii.nn import Model
from gcnii.targets.answers import Answers
from gcnii.targets.calibration import (
    HALF,
    LEAST,
    best_temperature,
    best_threshold,
    decided,
    fitted,
    mean_probabilities,
    probabilities,
    tempered,
    warmed,
    weighed,
)
from gcnii.targets.objective import RANKINGS, Metric, Objective, balanced_weights
from gcnii.train.adam import Stack
from gcnii.train.hardware import choose_device
from gcnii.train.plan import Plan
from gcnii.train.results.run import Run
from gcnii.train.scaling import Scaling
from gcnii.train.task import Task, learnt

if TYPE_CHECKING:
    from gcnii.train.results.light import LightTask
    from gcnii.train.results.result import Origin

Floats: TypeAlias = NDArray[np.floating[Any]]
Labels: TypeAlias = NDArray[np.str_] | NDArray[np.int64]
# Numbers of a layer's state, above which a CPU predicts a block of rows at a time: 64 MiB.
LARGE = 1 << 24
ORDERS: dict[Metric, str] = {"auc": "roc_auc", "ap": "average_precision"}  # as Answers names them


@dataclass(frozen=True, eq=False)
class Predictor:
    """The best weights of each run, stacked in the order of the runs, and what they predict.

    Several runs on one split are an ensemble: the mean of their probabilities predicts.

    plan    of the runs of setting 0, which are all where only one setting was tried
    others  of the runs of setting 1, 2, …
    together   the temperature of the mean probability of the runs that predict, where there are
               several: it is less sure than each of them
    positive   the class that ROC AUC and average precision are of; None: all, or not known
    trained_on the graph, where the training was in this process; a bundle does not hold it
    answers    (runs, nodes, k) scores, where several processes trained: `trained_on` then has the
               labels of the nodes of all splits, and neither features nor links
    """

    graph: Origin
    plan: Plan
    runs: tuple[Run, ...]
    weights: Stack
    scaling: Scaling | None
    others: tuple[Plan, ...] = field(default=(), kw_only=True)
    together: float | None = field(default=None, kw_only=True)
    positive: int | None = field(default=None, kw_only=True)
    trained_on: Graph | None = field(default=None, repr=False, kw_only=True)
    answers: torch.Tensor | None = field(default=None, repr=False, kw_only=True)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan of each setting."""
        return (self.plan, *self.others)

    @property
    def best(self) -> int:
        """The run that was best on validation."""
        return self.plan.recipe.best(self.runs)

    def predicting(self, ensemble: bool = True) -> list[int]:
        """The runs that predict: those on the split of the best run, or the best run alone.

        Runs on different splits are never mixed: the test nodes of one may have trained another.
        """
        best = self.runs[self.best]
        alike = (best.split, best.setting)
        mates = [i for i, run in enumerate(self.runs) if (run.split, run.setting) == alike]
        return mates if ensemble else [self.best]

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
        named = self.graph.classes is not None and not self.graph.multilabel
        return np.array(self.graph.classes)[ids] if named else ids

    def predict_ids(
        self, graph: Graph, device: str = "auto", *, ensemble: bool = True
    ) -> NDArray[np.int64]:
        """(n,) class ids, or (n, k) zeros and ones if a node can have several labels."""
        P = self.predict_proba(graph, device, ensemble=ensemble)
        return self.decide(P, ensemble=ensemble)

    def decide(self, P: NDArray[np.float64], *, ensemble: bool = True) -> NDArray[np.int64]:
        """Class ids (n,), or zeros and ones (n, k), of probabilities that `predict_proba` gave.

        The mean probability of several runs is held against the mean of their thresholds.  Where
        the loss weighed the classes, so does the choice: probabilities are times their weights.
        """
        runs, several = [self.runs[i] for i in self.predicting(ensemble)], self.graph.multilabel
        threshold = fmean(HALF if run.threshold is None else run.threshold for run in runs)
        if weights := [run.weights for run in runs if run.weights is not None]:
            P = weighed(P, np.exp(np.log(weights).mean(0)), multilabel=several)
        return decided(P, multilabel=several, threshold=threshold)

    def answered(self, task: Task) -> Self:
        """The same, with the scores of each run for all nodes of splits, of several processes.

        All call this, and each has them all from then on.
        """
        shard, piece = task.shard, task.graph
        assert shard is not None
        assert isinstance(piece, Piece)
        roles = [mask for one in piece.splits for mask in (one.train, one.val, one.test)]
        own = np.flatnonzero(np.any(roles, 0))
        nodes = torch.from_numpy(piece.rows[own])

        def gathered(rows: NDArray[Any]) -> NDArray[Any]:
            return shard.gathered(torch.tensor(rows), nodes).numpy()

        known = piece.labelled_only(gathered, own)
        outputs = (self._output("forward", i, task)[own] for i in range(len(self.runs)))
        answers = torch.stack([shard.gathered(one, nodes) for one in outputs])
        return replace(self, trained_on=known, answers=answers)

    def with_thresholds(self, task: Task) -> Self:
        """The same, with the threshold of each run that suits its validation nodes best.

        Scores that are made of labels are measured again, by the labels that are now predicted; on
        validation they flatter a little, because it chose the threshold.
        """
        return replace(self, runs=tuple(self._tuned(i, task) for i in range(len(self.runs))))

    def _tuned(self, i: int, task: Task) -> Run:
        run, graph, metric = self.runs[i], self._graded(task), self.plan.recipe.scored_by
        if isnan(run.val):  # it diverged, beside other settings that did not
            return run
        P = probabilities(self._output("forward", i, task), multilabel=True)
        val = graph.splits[run.split].val
        threshold = best_threshold(P[val], graph.labels[val])
        if metric in RANKINGS:
            return replace(run, threshold=threshold)
        objective = Objective.of(graph, [run.split], torch.device("cpu"), metric)  # of labels
        scores = torch.from_numpy(P - threshold)[None]
        new = {role: float(objective.score(scores, role)) for role in ("val", "test")}
        return replace(run, threshold=threshold, val=new["val"], test=new["test"])

    def with_temperatures(self, task: Task) -> Self:
        """The same, with the temperature of each run that suits its validation nodes best.

        What its loss weighed the classes by is undone.  A threshold is a probability, too, and
        moves with them, so that every label stays; a score of an order of nodes is measured again.
        """
        runs = tuple(self._calibrated(i, task) for i in range(len(self.runs)))
        same = replace(self, runs=runs)
        runs = tuple(same._ranked(i, task) for i in range(len(runs)))
        return replace(same, runs=runs)._calibrated_together(task)

    def _calibrated(self, i: int, task: Task) -> Run:
        run, graph = self.runs[i], self._graded(task)
        val, logs = graph.splits[run.split].val, self._log_weights(run, graph)
        if isnan(run.val):  # it diverged
            return run
        if val.sum() < LEAST:  # it would be calibrated by chance
            return run if logs is None else replace(run, weights=np.exp(logs).tolist())
        scores, y = self._double(i, task)[val], graph.labels[val]
        if logs is None:
            T, weights = best_temperature(scores, y), None
        else:
            T, power = fitted(scores, y, logs)
            weights = np.exp(power * logs).tolist()
        threshold = None if run.threshold is None else warmed(run.threshold, T)
        return replace(run, temperature=T, threshold=threshold, weights=weights)

    def _log_weights(self, run: Run, graph: Graph) -> NDArray[np.float64] | None:
        """(k,) of the classes, or of the odds of each label, in the loss of a run."""
        if self.plans[run.setting].recipe.class_weight == "none":
            return None
        logs = np.log(balanced_weights(graph, graph.splits[run.split].train))
        return np.asarray(logs[1] - logs[0] if graph.multilabel else logs)

    def _ranked(self, i: int, task: Task) -> Run:
        """The run with scores of an order of its probabilities, if those are its scores."""
        run, graph, metric = self.runs[i], self._graded(task), self.plan.recipe.scored_by
        if metric not in RANKINGS or isnan(run.val):
            return run
        P, split = self._mean([i], task), graph.splits[run.split]

        def score(mask: NDArray[np.bool_]) -> float:
            y = graph.labels[mask]
            said = Answers(P[mask], y, y, positive=self.positive)
            return float(said.scored(ORDERS[metric])(np.ones((said.m, 1)))[0]) if said.m else nan

        return replace(run, val=score(split.val), test=score(split.test))

    def _calibrated_together(self, task: Task) -> Self:
        runs, graph = self.predicting(), self._graded(task)
        val = graph.splits[self.runs[runs[0]].split].val
        # Of weighed classes the mean stays: a temperature would move the shares of rare ones.
        known = all(self.runs[i].temperature and not self.runs[i].weights for i in runs)
        if len(runs) < 2 or graph.multilabel or not known:
            return self
        P = self._mean(runs, task)[val]
        scores = np.log(np.maximum(P, np.finfo(P.dtype).tiny))  # a sure network's may be 0
        return replace(self, together=best_temperature(scores, graph.labels[val]))

    def _graded(self, task: Task) -> Graph:
        """The graph whose labels go with what `_output` gives for this task."""
        return task.graph if self.trained_on is None or self.answers is None else self.trained_on

    def _mean(self, runs: list[int], task: Task | LightTask | None) -> NDArray[np.float64]:
        """(n, k) the mean of the runs' probabilities, each after its own temperature."""
        raw = ((self._output("forward", i, task).double(), self.runs[i]) for i in runs)
        scores = (calibrated(one, run) for one, run in raw)
        return mean_probabilities(scores, multilabel=self.graph.multilabel)

    def scores(self, graph: Graph, device: str = "auto") -> NDArray[np.float64]:
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
        return self._double(self.best, self._inputs(graph, device))

    def predict_proba(
        self, graph: Graph, device: str = "auto", *, ensemble: bool = True
    ) -> NDArray[np.float64]:
        """Predict the probability of every class, for every node.

        The scores of each run are divided by its temperature first, if it has one, and what its
        loss weighed the classes by is undone.  A mean of several runs has a temperature of its own,
        which changes no label.

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
        (n, k) array
        """
        if not isinstance(graph, Graph):
            raise InputError(
                f"predict takes a gcnii.Graph, got {type(graph).__name__}; new nodes and their "
                "edges, as two tables, are for predict_new(nodes, edges)"
            )
        runs, splits = self.predicting(ensemble), {run.split for run in self.runs}
        if ensemble and len(splits) > 1:
            notice(self._who_predicts(runs))
        known = self.answers is not None and graph is self.trained_on
        P = self._mean(runs, None if known else self._inputs(graph, device))
        if wrong := int((~np.isfinite(P).all(1)).sum()):
            nodes = "1 node" if wrong == 1 else f"{wrong} nodes"
            raise GraphError(
                f"the scores of {nodes} of {graph.name} are not finite; its features may be far "
                "larger than those of the training"
            )
        if self.together is None or len(runs) == 1:
            return P
        return tempered(P, self.together)

    def _double(self, i: int, task: Task | LightTask) -> NDArray[np.float64]:
        return np.asarray(self._output("forward", i, task).double())

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

    def network(self, graph: Graph, device: str = "auto") -> tuple[Model, Task]:
        """The model of the best run, in evaluation mode, and the graph made ready for it."""
        task = self._task(graph, device)
        return self._model(self.best).to(task.device), task

    def _inputs(self, graph: Graph, device: str) -> Task | LightTask:
        """The graph made ready for prediction: in less memory, where it is large."""
        numbers = graph.n * self.plan.model_settings.get("width", 0)
        if numbers > LARGE and choose_device(device).type == "cpu":
            from gcnii.train.results import light  # few predictions need it

            if light.suits(self.plan):
                graph = self._known(graph)
                return light.LightTask.of(graph, self.plan, learnt(graph, self.plan, self.scaling))
        return self._task(graph, device)

    def _task(self, graph: Graph, device: str) -> Task:
        """The graph made ready for the models."""
        return Task.of(self._known(graph), self.plan, choose_device(device), self.scaling)

    def features(self, graph: Graph) -> Features:
        """X of a graph as the models see it: the columns of the training, scaled."""
        graph = self._known(graph)
        scaling = learnt(graph, self.plan, self.scaling)
        return graph.X if scaling is None else scaling.apply(graph.X)

    def _known(self, graph: Graph) -> Graph:
        """The graph with the features of the training."""
        graph = self._aligned(graph)
        if graph.d != self.graph.d:
            raise GraphError(
                f"the model was trained on {self.graph.d} features per node, "
                f"but {graph.name} has {graph.d}"
            )
        return graph

    def _model(self, i: int) -> Model:
        """The model of run i, in evaluation mode."""
        model = self.plans[self.runs[i].setting].build(self.graph.d, self.graph.k)
        model.load_state_dict({name: weight[i] for name, weight in self.weights.items()})
        return model.eval()

    def _aligned(self, graph: Graph) -> Graph:
        """The graph with the features of the training: encoded again, or found by their names."""
        if graph.weighted != self.graph.weighted:
            has, others = ("has", "none") if graph.weighted else ("has no", "some")
            notice(
                f"{graph.name} {has} edge weights, but the graph of the training had {others}; "
                "edges without a weight count 1"
            )
        if self.graph.columns is not None and graph.table is not None:
            X, features = self.graph.columns.encode(graph.table, graph.name)
            return replace(graph, X=X, features=features)
        if self.graph.features is not None and graph.features is not None:
            return graph.with_features(self.graph.features)
        if self.graph.features is not None or graph.features is not None:
            who = "the bundle" if self.graph.features is None else graph.name
            notice(
                f"{who} does not name its feature columns, so they are matched by position; "
                "check that both have them in the same order",
            )
        return graph

    @torch.no_grad()
    def _output(self, method: str, i: int, task: Task | LightTask | None) -> torch.Tensor:
        """What `forward` or `embed` of run i's model returns, on the CPU; without a task, answers.

        Where several processes have some rows each: what it gave for the nodes of splits.
        """
        if self.answers is not None and (task is None or (isinstance(task, Task) and task.shard)):
            return self.answers[i]
        assert task is not None
        model = self._model(i).to(task.device)
        model.by_rows = not isinstance(task, Task)
        output: torch.Tensor = getattr(model, method)(task.P, task.X)
        return output.to_dense().cpu()


def calibrated(scores: torch.Tensor, run: Run) -> torch.Tensor:
    """Scores (…, k) of a run, as its probabilities are made of them."""
    scores = scores / (run.temperature or 1.0)
    if run.weights is None:
        return scores
    return scores - torch.tensor(run.weights, dtype=scores.dtype, device=scores.device).log()
