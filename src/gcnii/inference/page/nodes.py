"""The least certain and the most surprising nodes, each with a short explanation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import GcniiError
from gcnii.graph import Graph
from gcnii.inference.evaluation.short import class_names
from gcnii.inference.explaining import Explanation
from gcnii.inference.labels import known_labels, table_of
from gcnii.train.results.result import Result

SHOWN = 5  # nodes of each kind
REASONS = 3  # nodes, links and features that are named
CHANCES = 3  # classes whose probabilities are shown
PATIENCE = 60.0  # seconds for the explanations of one kind, after which no other begins

TOO_SLOW = "explanations take long on this graph; ask for this one with `gcnii explain`"

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Show = Callable[[str], None]  # is told what has been done
Asked = tuple[int, int]  # a node, and the class that it is asked about


@dataclass(frozen=True)
class Card:
    """A node as the page shows it.

    asked     the class that is explained
    chances   the most probable classes; where a node can have several, the one that is asked
    why_not   why there is no explanation, if there is none
    """

    node: str | int
    label: str
    known: str | None
    asked: str
    chances: tuple[tuple[str, float], ...]
    explanation: Explanation | None
    why_not: str = ""


def quietly(words: str) -> None:
    """Show nothing."""


def cards(
    result: Result, graph: Graph, device: str = "auto", show: Show = quietly
) -> tuple[list[Card], list[Card]]:
    """The least certain test or unlabelled nodes; the surest of the wrongly labelled test nodes."""
    P = result.predict_proba(graph, device)
    guess = result.decide(P)
    split = graph.splits[result.runs[result.best].split]
    open_ones = np.flatnonzero(~(split.train | split.val))
    tested = np.flatnonzero(split.test & graph.labelled)
    if graph.multilabel:
        chosen = _unsure_labels(P, open_ones), _wrong_labels(P, guess, graph.labels, tested)
    else:
        chosen = _unsure(P, open_ones), _wrong(P, guess, graph.labels, tested)
    unsure, wrong = (_cards(result, graph, P, some, device, show) for some in chosen)
    return unsure, wrong


def _unsure(P: Floats, nodes: Ints) -> list[Asked]:
    """The nodes whose most probable class is least probable."""
    order = np.argsort(P[nodes].max(1), kind="stable")[:SHOWN]
    return [(int(i), int(P[i].argmax())) for i in nodes[order]]


def _wrong(P: Floats, guess: Ints, y: Ints, nodes: Ints) -> list[Asked]:
    """The nodes whose wrong class is most probable."""
    wrong = nodes[guess[nodes] != y[nodes]]
    order = np.argsort(-P[wrong].max(1), kind="stable")[:SHOWN]
    return [(int(i), int(guess[i])) for i in wrong[order]]


def _unsure_labels(P: Floats, nodes: Ints) -> list[Asked]:
    """The nodes of which most labels are open, and the most open one of each."""
    doubt = np.abs(P[nodes] - 0.5)
    order = np.argsort(doubt.mean(1), kind="stable")[:SHOWN]
    return [(int(nodes[row]), int(doubt[row].argmin())) for row in order]


def _wrong_labels(P: Floats, guess: Ints, y: Ints, nodes: Ints) -> list[Asked]:
    """The nodes with the label that is given or denied most surely, and wrongly."""
    sure = np.where(guess[nodes] == 1, P[nodes], 1 - P[nodes])
    sure[guess[nodes] == y[nodes]] = -1
    order = np.argsort(-sure.max(1, initial=-1), kind="stable")[:SHOWN]
    return [(int(nodes[row]), int(sure[row].argmax())) for row in order if sure[row].max() >= 0]


def _cards(
    result: Result, graph: Graph, P: Floats, chosen: Sequence[Asked], device: str, show: Show
) -> list[Card]:
    rows = [node for node, _ in chosen]
    names = [graph.nodes[i] if graph.nodes else int(i) for i in rows]
    every = known_labels(graph)
    known = [every[i] for i in rows]
    given = table_of(result, P[rows], names, known, [None] * len(rows))["label"]
    began = monotonic()
    found: list[Card] = []
    for (node, asked), name, label, own in zip(chosen, names, given, known, strict=True):
        called = class_names(result)[asked]
        late = bool(found) and monotonic() - began > PATIENCE
        reasons = (None, TOO_SLOW) if late else _explained(result, graph, name, called, device)
        found.append(Card(name, label, own, called, _chances(result, P[node], asked), *reasons))
        show(f"node {name}")
    return found


def _chances(result: Result, p: Floats, asked: int) -> tuple[tuple[str, float], ...]:
    several = result.graph.multilabel
    order = [asked] if several else np.argsort(-p, kind="stable")[:CHANCES].tolist()
    return tuple((class_names(result)[j], float(p[j])) for j in order)


def _explained(
    result: Result, graph: Graph, node: str | int, label: str, device: str
) -> tuple[Explanation | None, str]:
    """The explanation, or why there is none."""
    try:
        return result.explain(graph, node, label=label, top=REASONS, device=device), ""
    except GcniiError as error:
        return None, str(error)
