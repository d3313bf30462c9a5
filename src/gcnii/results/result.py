"""Result: the trained runs of a fit, their scores on one graph, and what they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.errors import InputError, notice
from gcnii.files import Document
from gcnii.graph import Features, Graph, Piece
from gcnii.graph.past import Past, past
from gcnii.nn import MODELS, Model
from gcnii.propagation import adjacency
from gcnii.results.outputs import KEPT, Inputs, Outputs, Recomputed, calibrated, scores_of, stacked
from gcnii.results.trained import Answered, Floats, Origin, Probabilities, Trained
from gcnii.targets import LabelTarget, Numbers, target_of
from gcnii.targets.scores import mean_and_spread
from gcnii.targets.target import LEAST, Bools
from gcnii.train.features import Scaling
from gcnii.train.hardware import choose_device
from gcnii.train.plan import Plan
from gcnii.train.recipe import Recipe, in_force
from gcnii.train.replicas import Stack
from gcnii.train.stopping import Run
from gcnii.train.task import LightTask, Task, learnt

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
            return stacked([self._output("forward", i, inputs) for i in range(len(self.runs))])
        parts: dict[int, torch.Tensor] = {}
        for setting in dict.fromkeys(run.setting for run in self.runs):
            rows = [i for i, run in enumerate(self.runs) if run.setting == setting]
            weights = {name: weight[rows] for name, weight in self.weights.items()}
            model = self.plans[setting].build(self.origin.d, self.origin.k)
            parts |= dict(zip(rows, scores_of(model, weights, inputs), strict=True))
        return stacked([parts[i] for i in range(len(self.runs))])

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

    @property
    def _uses_types(self) -> bool:
        return self.plan.types > 1

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
        same = replace(
            self, runs=self.runs + other.runs, weights=weights, together=None, outputs=None
        )
        mine, theirs = self._own, other._own
        if mine is None or theirs is None or mine.graph is not theirs.graph:
            return same
        if not (isinstance(mine.scores, Tensor) and isinstance(theirs.scores, Tensor)):
            return same
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
