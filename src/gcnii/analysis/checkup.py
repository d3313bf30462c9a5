"""One model at one depth, examined before and after a short training, and a verdict on it.

Each layer is measured and probed: what can a linear map still read from its state?  Rules with
thresholds make a verdict of the numbers; docs/understand/over-smoothing.md explains them, and they
are tested where the truth is known.  Layers count from 0, the input of the first layer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import isnan, nan
from time import perf_counter
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

from gcnii.analysis.degree import Row, by_degree
from gcnii.analysis.regression import regression
from gcnii.analysis.smoothing import Smoothness, SmoothnessMeter
from gcnii.analysis.states import HiddenStates
from gcnii.files import Document, json_value
from gcnii.graph import Graph, Role
from gcnii.nn import Model
from gcnii.results.fit import Session, fit_plans
from gcnii.results.result import Result
from gcnii.targets import as_labels
from gcnii.targets.objective import Objective
from gcnii.train.features import Scale, Scaling, scaled_matrix
from gcnii.train.group import Diverged
from gcnii.train.hardware import choose_device
from gcnii.train.plan import Plan, make_plan
from gcnii.train.presets import uses_own_default
from gcnii.train.task import Task

PENALTY = 1e-3  # on ‖W‖²/2, beside the mean loss of a node
# of a state's size: smaller differences between nodes are float32's rounding, not information
ROUNDING = 1e-6
STEPS = 100  # of L-BFGS at most

Array = NDArray[np.float64]


class Probe:
    """The labels of a graph and one of its splits, made ready to probe state after state."""

    def __init__(self, graph: Graph, split: int = 0):
        self.train = graph.splits[split].train
        self.objective = Objective.of(graph, [split], torch.device("cpu"))
        self.target = as_labels(self.objective.target, "the doctor is")
        self.Y = self.target.indicators(graph.labels[self.train])
        self.over = len(self.Y) if self.target.exclusive else self.Y.size

    @property
    def chance(self) -> float:
        """The validation score of the most common label; 0 where nodes have several labels."""
        y = self.objective.y[self.objective.masks["val"][0]]
        return float(torch.bincount(y).max()) / len(y) if self.target.exclusive else 0.0

    def score(self, H: Tensor, role: Role = "val") -> float:
        """The score of the best linear map of H (n, width): the first of the target's scores."""
        Z = centred(H.detach().cpu().double().numpy())
        # On matrices this small BLAS threads wait for one another and block torch's threads.
        with threadpool_limits(1, user_api="blas"):
            Z = Z @ _span(Z[self.train])
            W, b = regression(
                Z[self.train], self.Y, self.target.exclusive, self.over, ridge=PENALTY, steps=STEPS
            )
            S = Z @ W + b
        return float(self.objective.score(torch.tensor(S)[None], role))


def centred(H: Array) -> Array:
    """The rows less their mean, scaled to mean square length 1; zero if they differ by rounding."""
    Z = H - H.mean(0)
    length, size = np.linalg.norm(Z), np.linalg.norm(H)
    return Z * np.sqrt(len(H)) / length if length > ROUNDING * size else np.zeros_like(H)


def _span(Z: Array) -> Array:
    """(width, ≤ rows) a basis that holds the best W: the span of the training nodes, if smaller."""
    return np.eye(Z.shape[1]) if len(Z) >= Z.shape[1] else np.linalg.qr(Z.T)[0]


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
        after = self._examine(network, task)
        degrees: tuple[Row, ...] = ()
        if result.label_target.exclusive:
            ids = result.predict_ids(self.graph)
            degrees = tuple(by_degree(self.graph, ids, self.split))
        return Checkup(*known, after, float(result.val[0]), float(result.test[0]), degrees, result)

    def layer_seconds(self) -> float:
        """How long an epoch of a layer takes here, by a few epochs of GCNII."""
        plan = make_plan("gcnii", {"layers": 8, "epochs": 10, "memory": "keep"}, self.graph)
        began = perf_counter()
        with suppress(Diverged):
            self._train(plan, verbose=False)
        return (perf_counter() - began) / (8 * 10)

    def _train(self, plan: Plan, verbose: bool | None) -> Result:
        title = f"{plan.model}, {plan.model_settings['layers']} layers, on {self.graph.name}"
        session = Session(device=self.device.type, verbose=verbose, title=title)
        result = fit_plans(self.graph, [plan], session, seeds=[self.seed], split=self.split)
        if result.interrupted:
            raise KeyboardInterrupt
        return result

    def _examine(self, network: Model, task: Task) -> tuple[LayerReport, ...]:
        objective = Objective.of(self.graph, [self.split], self.device)
        with HiddenStates(network) as states:
            scores = network(task.P, task.X)
            objective.loss(scores[None], "train").sum().backward()
        network.zero_grad()
        return examine(states, self.meter, self.probe)


# Information is gone where a linear probe's lead over guessing is at most this share of its largest
# lead, at any layer or from the features alone.
GONE = 0.25
# Information fades where the last layer's probe is this much below the highest.
FADED = 0.05
# States are alike where the mean cosine distance is at most this share of layer 0's, and the
# effective rank at most 2 or this share of the width.
ALIKE, FLAT = 0.1, 0.05
# Where states are alike, the graph made them so if the last layer but one is this near to Theorem
# 1's limit.  On Cora the same row for all nodes, which biases lead to, is 0.29 away.
DRAWN = 0.15
# The first layer's gradient as a multiple of the last layer's.
VANISHED, EXPLODED = 1e-3, 1e3
# The share of units that are zero on all nodes, at the last layer but one.
DEAD = 0.9
NO_EDGES = "the graph has no edges, so nothing is smoothed; whatever is lost, the weights lose"

Kind = Literal["no edges", "gone", "alike", "faded", "kept", "dead", "vanished", "exploded"]
LayerReports = Sequence[LayerReport]


@dataclass(frozen=True)
class Finding:
    """The result of one rule, with a sentence for the reader."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Diagnosis:
    """The verdict, other findings, and what to try."""

    verdict: Finding
    others: tuple[Finding, ...]
    advice: tuple[str, ...]

    @property
    def text(self) -> str:
        """Findings and advice in a few sentences."""
        texts = [finding.text for finding in (self.verdict, *self.others)]
        found = ". ".join(text[0].upper() + text[1:] for text in texts)
        return f"{found}. Try {'; or '.join(self.advice)}." if self.advice else f"{found}."

    def summary(self) -> Document:
        """The diagnosis as a JSON object."""
        return {"kind": self.verdict.kind, "text": self.text, **asdict(self)}


@dataclass(frozen=True)
class ProbeBaseline:
    """A probe's score without any model: by guessing, and from the features alone."""

    chance: float
    features: float

    @classmethod
    def of(cls, graph: Graph, probe: Probe) -> ProbeBaseline:
        """The baseline of a graph, by a probe made for it; its features are scaled as for a fit."""
        own = uses_own_default(graph.catalog_name)
        scale: Scale = "auto" if own else "none"
        scaling = Scaling.learn(graph.X, scale, columns=graph.columns)
        X = scaled_matrix(graph.X, scaling, torch.float64).to_dense()
        return cls(probe.chance, probe.score(X))


def diagnose(
    rows: LayerReports,
    *,
    edges: int,
    baseline: ProbeBaseline | None = None,
    settings: Mapping[str, object] | None = None,
) -> Diagnosis:
    """Judge a model by its layers: the first rule that applies gives the verdict.

    rows      the layers of a model, layer 0 first
    edges     the number of edges of the graph
    baseline  what probes are compared with; without it they are not judged
    settings  the model's settings, on which the advice depends
    """
    alike = _alike(rows)
    verdict = (
        (Finding("no edges", NO_EDGES) if not edges else None)
        or (_gone(rows, baseline) if baseline else None)
        or alike
        or (_faded(rows, baseline) if baseline else None)
        or _kept(rows)
    )
    others = [alike if verdict.kind == "gone" else None, _gradient(rows), _dead(rows)]
    found = tuple(finding for finding in others if finding)
    return Diagnosis(verdict, found, _advice(verdict, found, rows, settings or {}))


def compare_models(found: Sequence[tuple[Checkup, Diagnosis]]) -> list[str]:
    """Sentences: which of the deepest models keep information, and each model's best depth."""
    models = dict.fromkeys(one.model for one, _ in found)
    depths = (_best_depth([one for one, _ in found if one.model == model]) for model in models)
    return [sentence for sentence in (_deepest(found), *depths) if sentence]


def _deepest(found: Sequence[tuple[Checkup, Diagnosis]]) -> str:
    """Which of the deepest models keep information and which lose it; empty unless both occur."""
    most = max(checkup.layers for checkup, _ in found)
    kinds = [(one, diagnosis.verdict.kind) for one, diagnosis in found if one.layers == most]
    kept = [f"{one.model} keeps {_percent(one.after[-1].probe)}" for one, k in kinds if k == "kept"]
    lost = [one.model for one, kind in kinds if kind != "kept"]
    if not kept or not lost:
        return ""
    return f"At {most} layers, where information is lost by {', '.join(lost)}: {', '.join(kept)}."


def _best_depth(checkups: Sequence[Checkup]) -> str:
    """The best depth of one model by validation; empty with fewer than two depths."""
    trained = [one for one in checkups if not isnan(one.val)]
    if len(trained) < 2:
        return ""
    best = max(trained, key=lambda one: one.val)
    return (
        f"After at most {EPOCHS} epochs {best.model} is best at {best.layers} layers "
        f"(validation {best.val:.1%})."
    )


def best_layer(rows: LayerReports) -> int:
    """The layer with the highest probe; the first of several."""
    return max(range(len(rows)), key=lambda l: (_probe(rows[l]), -l))


def _gone(rows: LayerReports, baseline: ProbeBaseline) -> Finding | None:
    best, where = _highest(rows, baseline)
    bound = baseline.chance + GONE * max(best - baseline.chance, 0)
    since = _since(rows, lambda row: _probe(row) <= bound)
    if since is None:
        return None
    reads = f"a linear probe reads {_percent(rows[-1].probe)} at the last layer, {best:.0%} {where}"
    guess = f"guessing gives {baseline.chance:.0%}"
    return Finding(
        "gone", f"information is gone from layer {since} on: {_size(rows, since)}; {reads}, {guess}"
    )


def _alike(rows: LayerReports) -> Finding | None:
    since = alike_since(rows)
    if since is None:
        return None
    end, limit = _last_hidden(rows).distance, "all along one direction"
    if end <= DRAWN:
        limit = f"near Theorem 1's limit (distance {end:.2g} at the end)"
    return Finding(
        "alike", f"nodes are nearly alike from layer {since} on, {limit}: {_size(rows, since)}"
    )


def alike_since(rows: LayerReports) -> int | None:
    """The layer from which on all nodes are nearly alike, or None.

    The last layer may be scores, and counts only if there is no other.
    """
    start = rows[0].state
    hidden = rows[1:-1] or rows[1:]

    def alike(row: LayerReport) -> bool:
        flat = row.state.effective_rank.value <= max(2.0, FLAT * row.state.width)
        return flat and row.state.mad.value <= ALIKE * start.mad.value

    since = _since(hidden, alike)
    return None if since is None else since + 1  # layer 0 is not hidden


def _faded(rows: LayerReports, baseline: ProbeBaseline) -> Finding | None:
    best, where = _highest(rows, baseline)
    if _probe(rows[-1]) >= best - FADED:
        return None
    reads = f"a linear probe reads {best:.0%} {where}, {_percent(rows[-1].probe)} at the last layer"
    return Finding("faded", f"information fades: {reads}; {_size(rows, len(rows) - 1)}")


def _highest(rows: LayerReports, baseline: ProbeBaseline) -> tuple[float, str]:
    """The highest probe, and where it is."""
    layer = best_layer(rows)
    if baseline.features > _probe(rows[layer]):
        return baseline.features, "from the features alone"
    return _probe(rows[layer]), f"at layer {layer}"


def _kept(rows: LayerReports) -> Finding:
    probe = rows[-1].probe
    reads = "" if probe is None else f"a linear probe reads {probe:.0%} at the last layer; "
    return Finding("kept", f"information is kept: {reads}{_size(rows, len(rows) - 1)}")


def _gradient(rows: LayerReports) -> Finding | None:
    norms = [row.gradient for row in rows if row.gradient is not None]
    if len(norms) < 2 or not norms[-1]:
        return None
    share = norms[0] / norms[-1]
    if VANISHED < share < EXPLODED:
        return None
    kind: Kind = "vanished" if share <= VANISHED else "exploded"
    return Finding(
        kind, f"the gradient has {kind} at the first layer: {share:.1g} of the last layer's"
    )


def _dead(rows: LayerReports) -> Finding | None:
    dead = _last_hidden(rows).dead
    found = Finding("dead", f"{dead:.0%} of the units are zero on all nodes")
    return found if dead >= DEAD else None


def _advice(
    verdict: Finding, others: Sequence[Finding], rows: LayerReports, settings: Mapping[str, object]
) -> tuple[str, ...]:
    kinds = {verdict.kind, *(finding.kind for finding in others)}
    smoothed = bool(kinds & {"gone", "alike"})
    tries = []
    if smoothed:
        larger = f"a larger α than {settings['alpha']}" if "alpha" in settings else ""
        tries.append(larger or "an initial residual (gcnii, appnp)")
    if smoothed or "vanished" in kinds:
        smaller = f"a smaller λ than {settings['lam']}" if "lam" in settings else ""
        smaller = smaller or ("a smaller λ" if "beta" in settings else "")
        tries.append(smaller or "an identity mapping with a small λ (gcnii)")
    best = best_layer(rows) if rows[-1].probe is not None else alike_since(rows) or len(rows) - 1
    if kinds & {"gone", "alike", "faded"} and 0 < best < len(rows) - 1:
        tries.append(f"fewer layers, about {best}")
    if kinds & {"dead", "exploded"}:
        tries.append("a lower learning rate")
    return tuple(tries)


def _last_hidden(rows: LayerReports) -> Smoothness:
    """The last state but one, because the last may be scores; or the last of two."""
    return (rows[-2] if len(rows) > 2 else rows[-1]).state


def _since(rows: LayerReports, holds: Callable[[LayerReport], bool]) -> int | None:
    """The first index from which on `holds` is true of all rows, or None."""
    fails = [place for place, row in enumerate(rows) if not holds(row)]
    place = fails[-1] + 1 if fails else 0
    return place if place < len(rows) else None


def _size(rows: LayerReports, l: int) -> str:
    """Rank and energy at a layer."""
    start, state = rows[0].state, rows[l].state
    rank = f"effective rank {state.effective_rank.value:.1f} of {state.width}"
    if not start.roughness.value:
        return rank
    return f"{rank}, energy {state.roughness.value / start.roughness.value:.2g} of the start"


def _probe(row: LayerReport) -> float:
    return -1.0 if row.probe is None else row.probe


def _percent(score: float | None) -> str:
    return "–" if score is None else f"{score:.0%}"
