"""One model at one depth, examined layer by layer before and after a short training."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Any

from gcnii.analysis.layers.probe import Probe
from gcnii.analysis.layers.smoothing import Smoothness, SmoothnessMeter
from gcnii.analysis.layers.states import Watch, watch
from gcnii.graph import Graph
from gcnii.metrics.degree import Row, by_degree
from gcnii.metrics.objective import Objective
from gcnii.nn import Model
from gcnii.train.fit import EpochReport, fit
from gcnii.train.hardware import choose_device
from gcnii.train.plan import make_plan
from gcnii.train.replicas.group import Diverged
from gcnii.train.result import Result
from gcnii.train.task import Task

EPOCHS = 60  # enough to see where a training goes; a doctor does not wait for the last per cent


@dataclass(frozen=True)
class LayerReport:
    """One layer: how smooth its state is, the norm of the loss's gradient there, and what a linear
    probe reads.
    """

    name: str
    state: Smoothness
    gradient: float | None = None
    probe: float | None = None

    def summary(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": self.name,
            **self.state.summary(),
            "gradient": self.gradient,
            "probe": self.probe,
        }

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> LayerReport:
        """What `summary` gave."""
        return cls(summary["name"], Smoothness.of(summary), summary["gradient"], summary["probe"])


@dataclass(frozen=True)
class Checkup:
    """A model of so many layers, before and after training."""

    graph: str
    model: str
    layers: int
    settings: dict[str, Any]
    before: tuple[LayerReport, ...]
    after: tuple[LayerReport, ...]
    val: float
    test: float
    degrees: tuple[Row, ...]
    # None where the training diverged
    result: Result | None = field(default=None, repr=False, compare=False)

    def summary(self) -> dict[str, Any]:
        """As JSON has it."""
        head = {
            "model": self.model,
            "layers": self.layers,
            "val": _number(self.val),
            "test": _number(self.test),
        }
        rows = {
            "before": [row.summary() for row in self.before],
            "after": [row.summary() for row in self.after],
        }
        return {**head, "settings": self.settings, **rows, "by_degree": list(self.degrees)}

    @classmethod
    def of(cls, graph: str, summary: Mapping[str, Any]) -> Checkup:
        """What `summary` gave, of this graph."""
        before, after = (tuple(map(LayerReport.of, summary[when])) for when in ("before", "after"))
        val, test = (
            nan if summary[role] is None else float(summary[role]) for role in ("val", "test")
        )
        model, layers, settings = summary["model"], summary["layers"], summary["settings"]
        return cls(
            graph, model, layers, settings, before, after, val, test, tuple(summary["by_degree"])
        )


def examine(
    watched: Watch, meter: SmoothnessMeter, probe: Probe | None = None
) -> tuple[LayerReport, ...]:
    """Every layer that was caught."""
    return tuple(
        LayerReport(
            name=name,
            state=meter.measure(H),
            gradient=None if gradient is None else float(gradient.double().norm()),
            probe=None if probe is None else probe.score(H),
        )
        for (name, H), gradient in zip(watched.layers, watched.gradients, strict=True)
    )


class Doctor:
    """A graph with a split, made ready to examine model after model on it."""

    def __init__(self, graph: Graph, *, split: int = 0, seed: int = 0, device: str = "auto"):
        self.graph, self.split, self.seed, self.device = graph, split, seed, choose_device(device)
        self.meter, self.probe = SmoothnessMeter.of(graph), Probe(graph, split)

    def check(
        self, model: str, layers: int, on_epoch: Callable[[EpochReport], None] | None = None
    ) -> Checkup:
        """Build, examine, train for EPOCHS at most, examine again."""
        settings: dict[str, Any] = {"layers": layers, "epochs": EPOCHS, "memory": "keep"}
        plan = make_plan(model, settings, self.graph)
        task = Task.of(self.graph, plan, self.device)
        network = plan.build(self.graph.d, self.graph.k, self.seed).to(self.device).eval()
        before = self._examine(network, task)
        known = (self.graph.name, model, layers, plan.settings, before)
        try:
            result = self._train(model, settings, on_epoch)
        except Diverged as error:
            warnings.warn(
                f"{model}, {layers} layers: {error}; what follows is of the untrained model",
                stacklevel=2,
            )
            return Checkup(*known, after=before, val=nan, test=nan, degrees=())
        network.load_state_dict({name: weight[0] for name, weight in result.weights.items()})
        after = self._examine(network, task)
        degrees = (
            ()
            if self.graph.multilabel
            else tuple(by_degree(self.graph, result.predict(self.graph)))
        )
        return Checkup(*known, after, float(result.val[0]), float(result.test[0]), degrees, result)

    def _train(
        self, model: str, settings: dict[str, Any], on_epoch: Callable[[EpochReport], None] | None
    ) -> Result:
        where: dict[str, Any] = {
            "seeds": [self.seed],
            "split": self.split,
            "device": self.device.type,
        }
        result = fit(self.graph, model, on_epoch=on_epoch, **where, **settings)
        if result.interrupted:
            raise KeyboardInterrupt
        return result

    def _examine(self, network: Model, task: Task) -> tuple[LayerReport, ...]:
        objective = Objective.of(self.graph, [self.split], self.device)
        with watch(network) as watched:
            scores = network(task.P, task.X)
            objective.loss(scores[None], "train").sum().backward()
        network.zero_grad()
        return examine(watched, self.meter, self.probe)


def _number(score: float) -> float | None:
    return None if score != score else score  # JSON has no NaN
