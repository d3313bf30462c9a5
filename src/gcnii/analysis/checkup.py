"""One model at one depth, examined layer by layer before and after a short training."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from math import nan

from gcnii.analysis.degree import Row, by_degree
from gcnii.analysis.probe import Probe
from gcnii.analysis.smoothing import Smoothness, SmoothnessMeter
from gcnii.analysis.states import HiddenStates
from gcnii.files import Document, json_value
from gcnii.graph import Graph
from gcnii.nn import Model
from gcnii.targets.objective import Objective
from gcnii.train.fit import fit_plan
from gcnii.train.hardware import choose_device
from gcnii.train.plan import Plan, make_plan
from gcnii.train.replicas.group import Diverged
from gcnii.train.results.result import Result
from gcnii.train.task import Task

EPOCHS = 60  # enough to see where a training goes; a doctor does not wait for the last per cent


@dataclass(frozen=True)
class LayerReport:
    """One layer: how smooth its state is, the loss's gradient there, and what a probe reads.

    gradient  the norm of the gradient; None where no backward pass reached the layer
    probe     the validation score of a linear probe; None without labels
    """

    name: str
    state: Smoothness
    gradient: float | None = None
    probe: float | None = None

    def summary(self) -> Document:
        """The report as a JSON object."""
        numbers = {"gradient": self.gradient, "probe": self.probe}
        return {"name": self.name, **self.state.summary(), **numbers}

    @classmethod
    def of(cls, summary: Document) -> LayerReport:
        """The report that a `summary` was made from."""
        return cls(summary["name"], Smoothness.of(summary), summary["gradient"], summary["probe"])


@dataclass(frozen=True)
class Checkup:
    """One model at one depth, before and after training; scores are NaN where it diverged."""

    graph: str
    model: str
    layers: int
    settings: Document
    before: tuple[LayerReport, ...]
    after: tuple[LayerReport, ...]
    val: float
    test: float
    degrees: tuple[Row, ...]
    # None where the training diverged
    result: Result | None = field(default=None, repr=False, compare=False)

    def summary(self) -> Document:
        """The checkup as a JSON object."""
        return {
            "model": self.model,
            "layers": self.layers,
            "val": json_value(self.val),
            "test": json_value(self.test),
            "settings": self.settings,
            "before": [row.summary() for row in self.before],
            "after": [row.summary() for row in self.after],
            "by_degree": list(self.degrees),
        }

    @classmethod
    def of(cls, graph: str, summary: Document) -> Checkup:
        """The checkup that a `summary` was made from, on this graph."""
        before, after = (tuple(map(LayerReport.of, summary[when])) for when in ("before", "after"))
        val, test = (
            nan if summary[role] is None else float(summary[role]) for role in ("val", "test")
        )
        head = (graph, summary["model"], summary["layers"], summary["settings"])
        return cls(*head, before, after, val, test, tuple(summary["by_degree"]))


def examine(
    states: HiddenStates, meter: SmoothnessMeter, probe: Probe | None = None
) -> tuple[LayerReport, ...]:
    """Measure every layer of a forward pass."""
    return tuple(
        LayerReport(
            name=name,
            state=meter.measure(H),
            gradient=None if gradient is None else float(gradient.double().norm()),
            probe=None if probe is None else probe.score(H),
        )
        for (name, H), gradient in zip(states.layers, states.gradients, strict=True)
    )


class Doctor:
    """A graph with a split, made ready to examine model after model on it."""

    def __init__(self, graph: Graph, *, split: int = 0, seed: int = 0, device: str = "auto"):
        self.graph, self.split, self.seed, self.device = graph, split, seed, choose_device(device)
        kind = make_plan("gcnii", {}, graph).recipe.edge_weights
        self.meter, self.probe = SmoothnessMeter.of(graph, kind), Probe(graph, split)

    def check(self, model: str, layers: int, verbose: bool | None = False) -> Checkup:
        """Build a model, examine it, train it for at most EPOCHS epochs, examine it again.

        `verbose` is that of `fit`.
        """
        settings = {"layers": layers, "epochs": EPOCHS, "memory": "keep"}
        plan = make_plan(model, settings, self.graph)
        task = Task.of(self.graph, plan, self.device)
        network = plan.build(self.graph.d, self.graph.k, self.seed).to(self.device).eval()
        before = self._examine(network, task)
        known = (self.graph.name, model, layers, plan.settings, before)
        try:
            result = self._train(plan, verbose)
        except Diverged as error:
            text = f"{model}, {layers} layers: {error}; what follows is of the untrained model"
            warnings.warn(text, stacklevel=2)
            return Checkup(*known, after=before, val=nan, test=nan, degrees=())
        network.load_state_dict({name: weight[0] for name, weight in result.weights.items()})
        after, degrees = self._examine(network, task), self._by_degree(result)
        return Checkup(*known, after, float(result.val[0]), float(result.test[0]), degrees, result)

    def _train(self, plan: Plan, verbose: bool | None) -> Result:
        result = fit_plan(
            self.graph,
            plan,
            seeds=[self.seed],
            split=self.split,
            device=self.device.type,
            verbose=verbose,
            title=f"{plan.model}, {plan.model_settings['layers']} layers, on {self.graph.name}",
        )
        if result.interrupted:
            raise KeyboardInterrupt
        return result

    def _by_degree(self, result: Result) -> tuple[Row, ...]:
        if self.graph.multilabel:
            return ()
        return tuple(by_degree(self.graph, result.predict_ids(self.graph)))

    def _examine(self, network: Model, task: Task) -> tuple[LayerReport, ...]:
        objective = Objective.of(self.graph, [self.split], self.device)
        with HiddenStates(network) as states:
            scores = network(task.P, task.X)
            objective.loss(scores[None], "train").sum().backward()
        network.zero_grad()
        return examine(states, self.meter, self.probe)
