"""explain: the Explanation of a node's label by the best run of a training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import InputError
from gcnii.graph import Graph
from gcnii.inference.explaining.explanation import (
    Explanation,
    FeatureShare,
    HopShare,
    LinkEffect,
    NodeShare,
    Proof,
)
from gcnii.inference.explaining.links import (
    Links,
    effects,
    strongest,
    what_links_are,
    why_unranked,
)
from gcnii.inference.explaining.network import Network, refuse_infinite
from gcnii.inference.explaining.question import Question, find_class, find_node
from gcnii.inference.explaining.removal import REMOVED, remove
from gcnii.inference.explaining.shares import Shares, shares
from gcnii.inference.explaining.surroundings import LEAST, choose_nodes
from gcnii.inference.labels import known_labels, table_of
from gcnii.inference.training_graph import load_training_graph
from gcnii.nn.settings import whole
from gcnii.train.hardware import ordinary_autograd, suited_threads
from gcnii.train.results.result import Result

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TOP = 10
REASONS = 3  # that the sentence names


def explain(
    result: Result,
    graph: Graph | None,
    node: str | int | None,
    *,
    label: str | int | None = None,
    against: str | int | None = None,
    top: int = TOP,
    device: str = "auto",
) -> Explanation:
    """Why the best run by validation gives a node its label.

    graph    default: the graph of the training, in memory or from where it was
    node     its name, or its number if the graph has no names
    label    the class to explain; default: the most probable one
    against  a class whose score is subtracted: the shares are then those of the difference
    top      how many nodes, features and links to name
    """
    whole("top", top, 1)
    data = load_training_graph(result) if graph is None else graph
    row = find_node(data, node)
    width = result.plan.model_settings.get("width", data.k)
    with ordinary_autograd(), suited_threads(data.n * width):
        return _Answer.of(result, data, row, label, against, device).explanation(top)


@dataclass(frozen=True, eq=False)
class _Answer:
    """All that is known of one question, as arrays."""

    result: Result
    graph: Graph
    network: Network
    question: Question
    P: Floats
    shares: Shares
    hops: Floats
    before: Ints
    links: Links
    effect: Floats
    unranked: str

    @classmethod
    def of(
        cls,
        result: Result,
        graph: Graph,
        row: int,
        label: str | int | None,
        against: str | int | None,
        device: str,
    ) -> _Answer:
        names = result.graph.classes or tuple(map(str, range(result.graph.k)))
        asked = [None if one is None else find_class(names, str(one)) for one in (label, against)]
        network = Network.of(result, graph, device)
        P = network.predict_proba()
        refuse_infinite(P, graph, row)
        question = Question(row, int(P[row].argmax()) if asked[0] is None else asked[0], asked[1])
        if question.label == question.against:
            raise InputError(
                f"{names[question.label]!r} is held against itself; name another class"
            )
        unranked, links = why_unranked(network.plan), Links.of(network)
        effect = np.zeros(len(links)) if unranked else effects(network, links, question)
        hops, before = network.paths(row)
        parts = (P, shares(network, question), hops, before, links, effect, unranked)
        return cls(result, graph, network, question, *parts)

    def explanation(self, top: int) -> Explanation:
        """In words and names."""
        result, question, own = self.result, self.question, self.shares
        run, classes = result.runs[result.best], result.graph.classes
        named = [str(i) if classes is None else classes[i] for i in range(result.graph.k)]
        (me,) = self._nodes([question.node])
        strong = strongest(self.effect, top)
        drawn = choose_nodes(
            own.nodes, self.hops, self.before, self.links.ends[:, _clear(self.effect, strong)]
        )
        return Explanation(
            graph=self.graph.name,
            model=self.network.plan.model,
            seed=run.seed,
            split=run.split,
            node=me.node,
            label=named[question.label],
            probability=float(self.P[question.node, question.label]),
            predicted=me.label,
            holds=bool(self._holds([question.node])[0]),
            known=me.known,
            against=None if question.against is None else named[question.against],
            score=own.score,
            nodes=self._nodes(_largest(own.nodes, top)),
            features=self._features(_largest(own.features, top)),
            hops=_hops(own.nodes, self.hops),
            bias=own.bias,
            reasons=self._reasons(),
            residual=own.residual,
            exact=own.exact,
            links=self._named(strong),
            unranked=self.unranked,
            removal=self._proof(strong[:REMOVED]),
            surroundings=(surroundings := self._nodes(drawn)),
            groups=self._groups(surroundings, drawn, named[question.label]),
            joined=self._joined(drawn),
            notes=tuple(self._notes()),
        )

    def _nodes(self, rows: Sequence[int] | Ints) -> tuple[NodeShare, ...]:
        """These nodes by name, with the label that the best run predicts."""
        names = [self._name(i) for i in rows]
        chosen = [self._known[i] for i in rows]
        about = (self.P[np.asarray(rows, np.int64)], names, chosen, [None] * len(names))
        labels = table_of(self.result, *about, ensemble=False)["label"]
        hops = (int(hop) if np.isfinite(hop) else None for hop in self.hops[list(rows)])
        added = self.shares.nodes[list(rows)].tolist()
        return tuple(map(NodeShare, names, labels, chosen, hops, added))

    def _holds(self, rows: Sequence[int] | Ints) -> NDArray[np.bool_]:
        """(rows,) whether the best run gives these nodes the label in question."""
        ids = self.result.decide(self.P[np.asarray(rows)], ensemble=False)
        label = self.question.label
        return np.asarray(ids[:, label] == 1 if ids.ndim == 2 else ids == label)

    def _groups(self, nodes: Sequence[NodeShare], rows: Ints, label: str) -> tuple[str, ...]:
        """What the colours of nodes say: their label; of several, whether they have this one."""
        if not self.result.graph.multilabel:
            return tuple(node.label for node in nodes)
        return tuple(label if has else f"not {label}" for has in self._holds(rows))

    @cached_property
    def _known(self) -> list[str | None]:
        return known_labels(self.graph)

    def _name(self, i: int) -> str | int:
        return int(i) if self.graph.nodes is None else self.graph.nodes[i]

    def _reasons(self) -> tuple[tuple[str, float], ...]:
        """What adds most to the score, by name: nodes, or the bias."""
        own, me = self.shares, self.question.node
        found = [
            ("its own features" if i == me else str(self._name(i)), float(own.nodes[i]))
            for i in np.argsort(-own.nodes, kind="stable")[:REASONS]
        ]
        order = sorted([*found, ("the model's bias", own.bias)], key=lambda one: -one[1])
        return tuple(one for one in order[:REASONS] if one[1] > 0)

    def _features(self, columns: Ints) -> tuple[FeatureShare, ...]:
        names, added = self.network.task.graph.features, self.shares.features
        return tuple(
            FeatureShare(int(j) if names is None else names[j], float(added[j])) for j in columns
        )

    def _named(self, some: Ints) -> tuple[LinkEffect, ...]:
        ends = (map(self._name, self._ends(i)) for i in some)
        return tuple(
            LinkEffect(source, target, float(self.effect[i]))
            for (source, target), i in zip(ends, some, strict=True)
        )

    def _ends(self, link: int) -> Ints:
        """An undirected link goes from its far end to the near one, as information does."""
        ends = self.links.ends[:, link]
        turned = not self.graph.directed and self.hops[ends[0]] < self.hops[ends[1]]
        return ends[::-1] if turned else ends

    def _proof(self, dropped: Ints) -> Proof | None:
        if not len(dropped):
            return None
        near = self.links.near(self.hops)
        found = remove(self.network, self.links, self.question, dropped, near)
        return Proof(self._named(dropped), found.before, found.after, tuple(found.random.tolist()))

    def _joined(self, drawn: Ints) -> tuple[tuple[int, int, float], ...]:
        """The links among these nodes: two places in `drawn`, and the effect."""
        place = np.full(self.graph.n, -1)
        place[drawn] = np.arange(len(drawn))
        u, v = place[self.links.ends]
        return tuple(
            (int(u[i]), int(v[i]), float(self.effect[i]))
            for i in np.flatnonzero((u >= 0) & (v >= 0))
        )

    def _notes(self) -> Iterable[str]:
        scaling, plan = self.network.task.scaling, self.network.plan
        if scaling is not None and scaling.kind != "none":
            yield (
                "features are as the model sees them, "
                f"scaled ({scaling.kind}), not as the graph has them"
            )
        if said := what_links_are(plan):
            yield said
        if not self.unranked and not np.isfinite(np.delete(self.hops, self.question.node)).any():
            yield "it has no links, so its own features and the bias are all there is"
        if self.result.graph.multilabel and self.question.against is None:
            yield "a node can have several labels; this one is explained by itself"


def _clear(effect: Floats, strong: Ints) -> Ints:
    """Those of the strongest links that are worth drawing."""
    return np.asarray(strong[effect[strong] > LEAST * effect[strong].max(initial=0)])


def _largest(added: Floats, top: int) -> Ints:
    """The places of the largest shares, by size; those that add nothing are left out."""
    order = np.argsort(-np.abs(added), kind="stable")[:top]
    return np.asarray(order[added[order] != 0])


def _hops(added: Floats, hops: Floats) -> tuple[HopShare, ...]:
    """The shares by distance, of the nodes that have one; those without a way come last."""
    some = added != 0
    found = []
    for hop in np.unique(hops[some]):
        there = some & (hops == hop)
        number = int(hop) if np.isfinite(hop) else None
        found.append(HopShare(number, int(there.sum()), float(added[there].sum())))
    return tuple(found)
