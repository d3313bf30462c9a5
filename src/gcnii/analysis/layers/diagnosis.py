"""From numbers to a verdict: rules, each with its threshold, tried on graphs where the truth is
known (docs/doctor.md).

Layers count from 0, what the first layer reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from typing import Any, Literal

from gcnii.analysis.layers.checkup import EPOCHS, Checkup, LayerReport
from gcnii.analysis.layers.probe import Probe
from gcnii.analysis.layers.smoothing import Smoothness
from gcnii.graph import Graph
from gcnii.propagation import feature_matrix

# A linear probe reads no more above guessing than this share of the most it reads, at any layer or
# from the features alone: information is gone.
GONE = 0.25
# A probe of the last layer is so much below that most: it fades.
FADED = 0.05
# States are alike where the mean cosine distance is this share of layer 0's, and the effective rank
# at most 2, or this share of the width.
ALIKE, FLAT = 0.1, 0.05
# Alike, and so near Theorem 1's limit at the last layer but one: then it is the graph that made
# them so.  On Cora the same row for all nodes, which biases lead to, is 0.29 away.
DRAWN = 0.15
# The first layer's gradient is this share of the last layer's, or so many times as large.
VANISHED, EXPLODED = 1e-3, 1e3
# Share of units that are zero on all nodes, at the last layer but one.
DEAD = 0.9

Kind = Literal["no edges", "gone", "alike", "faded", "kept", "dead", "vanished", "exploded"]
Rows = Sequence[LayerReport]


@dataclass(frozen=True)
class Finding:
    """What one rule found, in plain words."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Diagnosis:
    """The verdict, whatever else was found, and what to try."""

    verdict: Finding
    others: tuple[Finding, ...]
    advice: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it in a few sentences."""
        found = ". ".join(_capital(finding.text) for finding in (self.verdict, *self.others))
        return f"{found}. Try {'; or '.join(self.advice)}." if self.advice else f"{found}."

    def summary(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"kind": self.verdict.kind, "text": self.text, **asdict(self)}


@dataclass(frozen=True)
class Baseline:
    """What a probe reads without any model: by guessing, and from the features alone."""

    chance: float
    features: float

    @classmethod
    def of(cls, graph: Graph, probe: Probe) -> Baseline:
        """Those of a graph."""
        return cls(probe.chance, probe.score(feature_matrix(graph).to_dense()))


def diagnose(
    rows: Rows,
    *,
    edges: int,
    baseline: Baseline | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Diagnosis:
    """The first rule that applies gives the verdict.

    rows      the layers of a model, layer 0 first
    edges     of the graph
    baseline  with what probes are compared, where the rows have them
    settings  of the model, which decide what there is to try
    """
    alike = _alike(rows)
    verdict = (
        (_no_edges() if not edges else None)
        or (_gone(rows, baseline) if baseline else None)
        or alike
        or (_faded(rows, baseline) if baseline else None)
        or _kept(rows)
    )
    others = [alike if verdict.kind == "gone" else None, _gradient(rows), _dead(rows)]
    found = tuple(finding for finding in others if finding)
    return Diagnosis(verdict, found, _advice(verdict, found, rows, settings or {}))


def compare(found: Sequence[tuple[Checkup, Diagnosis]]) -> list[str]:
    """Of models of one depth, what those keep that keep it; of models of several depths, the best
    one by validation.
    """
    sentences = []
    deepest = max(checkup.layers for checkup, _ in found)
    kept = [
        one
        for one, diagnosis in found
        if one.layers == deepest and diagnosis.verdict.kind == "kept"
    ]
    lost = [
        one.model
        for one, diagnosis in found
        if one.layers == deepest and diagnosis.verdict.kind != "kept"
    ]
    if lost and kept:
        keep = ", ".join(f"{one.model} keeps {_percent(one.after[-1].probe)}" for one in kept)
        sentences.append(
            f"At {deepest} layers, where information is lost by {', '.join(lost)}: {keep}."
        )
    for model in dict.fromkeys(one.model for one, _ in found):
        own = [one for one, _ in found if one.model == model and not isnan(one.val)]
        if len(own) < 2:
            continue
        best = max(own, key=lambda one: one.val)
        scores = f"validation {best.val:.1%}, test {best.test:.1%}"
        sentences.append(
            f"After at most {EPOCHS} epochs {model} is best at {best.layers} layers ({scores})."
        )
    return sentences


def best_layer(rows: Rows) -> int:
    """The first layer at which a probe reads most."""
    return max(range(len(rows)), key=lambda l: (_probe(rows[l]), -l))


def _no_edges() -> Finding:
    return Finding(
        "no edges",
        "the graph has no edges, so nothing is smoothed; whatever is lost, the weights lose",
    )


def _gone(rows: Rows, baseline: Baseline) -> Finding | None:
    best, whence = _most(rows, baseline)
    bound = baseline.chance + GONE * max(best - baseline.chance, 0)
    since = _since(rows, lambda row: _probe(row) <= bound)
    if since is None:
        return None
    reads = (
        f"a linear probe reads {_percent(rows[-1].probe)} at the last layer, {best:.0%} {whence}"
    )
    guess = f"guessing gives {baseline.chance:.0%}"
    return Finding(
        "gone", f"information is gone from layer {since} on: {_size(rows, since)}; {reads}, {guess}"
    )


def _alike(rows: Rows) -> Finding | None:
    since = alike_since(rows)
    if since is None:
        return None
    end = _last_hidden(rows).distance
    limit = (
        f"near Theorem 1's limit (distance {end:.2g} at the end)"
        if end <= DRAWN
        else "all along one direction"
    )
    return Finding(
        "alike", f"nodes are nearly alike from layer {since} on, {limit}: {_size(rows, since)}"
    )


def alike_since(rows: Rows) -> int | None:
    """From which layer on all nodes are nearly alike; the last layer may be scores, and is asked
    only if alone.
    """
    start = rows[0].state
    hidden = rows[1:-1] or rows[1:]

    def alike(row: LayerReport) -> bool:
        flat = row.state.effective_rank.value <= max(2.0, FLAT * row.state.width)
        return flat and row.state.mad.value <= ALIKE * start.mad.value

    since = _since(hidden, alike)
    return None if since is None else since + 1  # layer 0 is not hidden


def _faded(rows: Rows, baseline: Baseline) -> Finding | None:
    best, whence = _most(rows, baseline)
    if _probe(rows[-1]) >= best - FADED:
        return None
    reads = (
        f"a linear probe reads {best:.0%} {whence}, {_percent(rows[-1].probe)} at the last layer"
    )
    return Finding("faded", f"information fades: {reads}; {_size(rows, len(rows) - 1)}")


def _most(rows: Rows, baseline: Baseline) -> tuple[float, str]:
    """The most that a probe reads, and whence."""
    layer = best_layer(rows)
    if baseline.features > _probe(rows[layer]):
        return baseline.features, "from the features alone"
    return _probe(rows[layer]), f"at layer {layer}"


def _kept(rows: Rows) -> Finding:
    probe = rows[-1].probe
    reads = (
        f"a linear probe reads {_percent(probe)} at the last layer; " if probe is not None else ""
    )
    return Finding("kept", f"information is kept: {reads}{_size(rows, len(rows) - 1)}")


def _gradient(rows: Rows) -> Finding | None:
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


def _dead(rows: Rows) -> Finding | None:
    state = _last_hidden(rows)
    return (
        Finding("dead", f"{state.dead:.0%} of the units are zero on all nodes")
        if state.dead >= DEAD
        else None
    )


def _advice(
    verdict: Finding, others: Sequence[Finding], rows: Rows, settings: Mapping[str, Any]
) -> tuple[str, ...]:
    kinds = {verdict.kind, *(finding.kind for finding in others)}
    smoothed = bool(kinds & {"gone", "alike"})
    tries = []
    if smoothed:
        larger = f"a larger α than {settings['alpha']}" if "alpha" in settings else ""
        tries.append(larger or "an initial residual (gcnii, appnp)")
    if smoothed or "vanished" in kinds:
        smaller = f"a smaller λ than {settings['lam']}" if "lam" in settings else ""
        tries.append(smaller or "an identity mapping with a small λ (gcnii)")
    best = best_layer(rows) if rows[-1].probe is not None else alike_since(rows) or len(rows) - 1
    if kinds & {"gone", "alike", "faded"} and 0 < best < len(rows) - 1:
        tries.append(f"fewer layers, about {best}")
    if kinds & {"dead", "exploded"}:
        tries.append("a smaller step size")
    return tuple(tries)


def _last_hidden(rows: Rows) -> Smoothness:
    """The last state but one, because the last may be scores."""
    return (rows[-2] if len(rows) > 2 else rows[-1]).state


def _since(rows: Rows, holds: Callable[[LayerReport], bool]) -> int | None:
    """The first place from which on it holds for all rows."""
    fails = [place for place, row in enumerate(rows) if not holds(row)]
    place = fails[-1] + 1 if fails else 0
    return place if place < len(rows) else None


def _size(rows: Rows, l: int) -> str:
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


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
