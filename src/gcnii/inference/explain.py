"""Why a node has its label: the shares of its score, the links that matter, and a check by removal.

explain      the Explanation of one node, by the best run of a training, or by an ensemble
Explanation  a sentence, the shares and links behind it, a JSON document, a drawing
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, pstdev

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import GraphError, InputError
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.inference.attribution import (
    BestRun,
    EnsembleAnswer,
    ExplainedScore,
    find_class,
    find_node,
    near,
    strongest,
)
from gcnii.inference.predict import known_labels
from gcnii.inference.training_graph import load_training_graph
from gcnii.nn.settings import whole
from gcnii.results.ensemble import Ensemble
from gcnii.results.result import Result, Trained
from gcnii.train.features import COLUMNS
from gcnii.train.hardware import ordinary_autograd, suited_threads


@dataclass(frozen=True)
class NodeShare:
    """What a node's features add to the score.

    hop  links between it and the explained node, None if no path joins them
    """

    node: str | int
    label: str
    known: str | None
    hop: int | None
    share: float


@dataclass(frozen=True)
class FeatureShare:
    """What a feature adds to the score, over all nodes."""

    feature: str | int
    share: float


@dataclass(frozen=True)
class HopShare:
    """What the nodes at one distance add together."""

    hop: int | None
    nodes: int
    share: float


@dataclass(frozen=True)
class LinkEffect:
    """By how much the log-probability of the label would fall without a link, by a gradient.

    An undirected link is named from its far end to the one nearer to the explained node.
    """

    source: str | int
    target: str | int
    effect: float


@dataclass(frozen=True)
class Proof:
    """The probability of the label with all links, without some, and without random ones.

    links   that were dropped
    random  probabilities, one for each draw of as many links from the neighbourhood
    """

    links: tuple[LinkEffect, ...]
    before: float
    after: float
    random: tuple[float, ...]

    @property
    def random_mean(self) -> float:
        """The mean over the draws."""
        return fmean(self.random)

    @property
    def random_deviation(self) -> float:
        """The standard deviation over the draws."""
        return pstdev(self.random)

    def document(self) -> Document:
        drawn = {"after_mean": self.random_mean, "after_std": self.random_deviation}
        return {
            "links": [asdict(link) for link in self.links],
            "before": self.before,
            "after": self.after,
            "random": {**drawn, "draws": len(self.random)},
        }


@dataclass(frozen=True)
class Explanation:
    """Why a node has its label: the shares of its score, the links that matter, and a proof.

    label        whose score is explained, and its probability
    predicted    the label that the best run, or the ensemble, predicts; of several, joined by `;`
    holds        whether the label is predicted, or one of them
    known        its label in the graph, None if unknown
    against      the class whose score was subtracted, if any
    score        of the best run; of an ensemble, the weighted mean of its networks' log-odds, and
                 = sum of all shares of nodes (or of features, or of hops) + bias + residual
    nodes, features   those with the largest shares
    reasons      what adds most to the score, and how much: nodes, or the bias
    residual     what is left over: of rounding where `exact`, else because the model is not
                 piecewise linear
    links        those that support the label most; empty if `unranked` says why there are none
    removal      None where there is no link to remove
    surroundings, groups, joined   the nodes of the drawing, what their colours say, and the links
                 among them, which name places in surroundings
    notes        what else one should know, a sentence each
    weights      of the members of an ensemble whose shares these are, by name; empty of one model
    others       likewise of the members that have no shares
    """

    graph: str
    model: str
    seed: int
    split: int
    node: str | int
    label: str
    probability: float
    predicted: str
    holds: bool
    known: str | None
    against: str | None
    score: float
    nodes: tuple[NodeShare, ...]
    features: tuple[FeatureShare, ...]
    hops: tuple[HopShare, ...]
    bias: float
    reasons: tuple[tuple[str, float], ...]
    residual: float
    exact: bool
    links: tuple[LinkEffect, ...]
    unranked: str
    removal: Proof | None
    surroundings: tuple[NodeShare, ...]
    groups: tuple[str, ...]
    joined: tuple[tuple[int, int, float], ...]
    notes: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def attributed(self) -> bool:
        """Whether there are shares: an ensemble of trees alone has none."""
        return bool(self.weights) or not self.others

    @property
    def unit(self) -> str:
        """What the score is."""
        return "log-odds" if self.weights else "a score"

    @property
    def sentence(self) -> str:
        """`17 is labelled b (0.93) mostly because of …`."""
        verb = "is labelled" if self.holds else "is not labelled"
        head = f"{self.node} {verb} {self.label} ({self.probability:.2f})"
        if not self.attributed:
            return head
        # What rounds to +0.00 is not a reason that counts, unless there is no other.
        clear = [one for one in self.reasons if one[1] >= 0.005] or self.reasons[:1]
        named = [f"{name} ({share:+.2f})" for name, share in clear]
        if not named:
            return f"{head}; no node and no bias speaks for it"
        last = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
        why = " mostly because of" if self.holds else "; what speaks for it most is"
        whole = self.unit if self.against is None else f"a lead over {self.against}"
        some = f" in members of weight {sum(self.weights.values()):.2f}" if self.others else ""
        return f"{head}{why} {last} of {whole} of {self.score:.2f}{some}"

    def __str__(self) -> str:
        return self.sentence

    def document(self) -> Document:
        parts = ("nodes", "features", "hops")
        shares = {name: [asdict(one) for one in getattr(self, name)] for name in parts}
        about = ("graph", "model", "node", "label", "probability", "predicted", "known", "against")
        return {
            **{name: getattr(self, name) for name in about},
            "run": {"seed": self.seed, "split": self.split},
            "score": self.score,
            "shares": {**shares, "bias": self.bias, "residual": self.residual},
            "exact": self.exact,
            "links": [asdict(link) for link in self.links],
            "unranked": self.unranked or None,
            "removal": self.removal and self.removal.document(),
            "sentence": self.sentence,
            "notes": list(self.notes),
            "members": {"attributed": dict(self.weights), "not_attributed": dict(self.others)},
        }

    def draw(self, path: Path | str, *, overwrite: bool = False) -> Path:
        """Write a drawing of the neighbourhood to a .png or .svg file.

        overwrite  whether to replace a file that gcnii did not write
        """
        from gcnii.inference.drawing import write_drawing

        return write_drawing(self, Path(path), overwrite=overwrite)


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST = 16  # nodes in a drawing
LEAST = 0.01  # of the largest share: what adds less is not drawn


def choose_nodes(shares: Floats, hops: Floats, before: Ints, ends: Ints) -> Ints:
    """The explained node first, then the ends of links and the largest shares, with their ways.

    shares  (n,) of the score
    hops    (n,) from each node to the explained one, and `before` (n,) the next on the way there
    ends    (2, links) of the links that matter most, the strongest first
    """
    centre = int(np.flatnonzero(hops == 0)[0])
    size = np.abs(shares)
    largest = np.argsort(-size, kind="stable")[:MOST]
    matters = largest[size[largest] > LEAST * size.max()]
    chosen = [centre]
    for node in [*ends.T.ravel(), *matters]:
        way = _way(int(node), before, centre) if np.isfinite(hops[node]) else []
        more = [one for one in way if one not in chosen]
        if len(chosen) + len(more) <= MOST:
            chosen += more
    return np.array(chosen)


def _way(node: int, before: Ints, centre: int) -> list[int]:
    """The nodes from the explained one to this one, without the former."""
    way = []
    while node != centre:
        way.append(node)
        node = int(before[node])
    return way[::-1]


TOP = 10
REASONS = 3  # that the sentence names
REMOVED = 3  # links at most
DRAWS = 10  # of random links


def explain(
    result: Trained,
    graph: Graph | None,
    node: str | int | None,
    *,
    label: str | int | None = None,
    against: str | int | None = None,
    top: int = TOP,
    device: str = "auto",
) -> Explanation:
    """Why the best run by validation, or an ensemble, gives a node its label.

    graph    default: the graph of the training, in memory or from where it was
    node     its name, or its number if the graph has no names
    label    the class to explain; default: the most probable one
    against  a class whose score is subtracted: the shares are then those of the difference
    top      how many nodes, features and links to name
    """
    whole("top", top, 1)
    data = load_training_graph(result) if graph is None else graph
    row = find_node(data, node)
    with ordinary_autograd(), suited_threads(data.n * _width(result, data.k)):
        return _Answer(result, data, row, label, against, device).explanation(top)


def _width(result: Trained, k: int) -> int:
    """Of the widest network."""
    if isinstance(result, Ensemble):
        return max((_width(one.result, k) for one in result.networks), default=k)
    assert isinstance(result, Result)
    return int(result.plan.model_settings.get("width", k))


def _subject(result: Trained, graph: Graph, device: str) -> BestRun | EnsembleAnswer:
    if isinstance(result, Ensemble):
        return EnsembleAnswer(result, graph, device)
    assert isinstance(result, Result)
    return BestRun.of(result, graph, device)


class _Answer:
    """All that is known of one score, as arrays."""

    def __init__(
        self,
        result: Trained,
        graph: Graph,
        node: int,
        label: str | int | None,
        against: str | int | None,
        device: str,
    ):
        self.result, self.graph, self.names = result, graph, result.label_target.names
        chosen, other = (
            None if one is None else find_class(self.names, str(one)) for one in (label, against)
        )
        self.subject = _subject(result, graph, device)
        self.P, self.ends = self.subject.P, self.subject.links.ends
        if not np.isfinite(self.P[node]).all():
            raise GraphError(
                f"the scores of node {node} of {graph.name} are not finite; its features may be "
                "far larger than those of the training"
            )
        chosen = int(self.P[node].argmax()) if chosen is None else chosen
        if chosen == other:
            raise InputError(f"{self.names[chosen]!r} is held against itself; name another class")
        self.asked = ExplainedScore(node, chosen, other)
        self.known = known_labels(graph)
        self.unranked, self.effect = self.subject.unranked, np.zeros(self.ends.shape[1])
        if not self.unranked:
            self.effect = self.subject.effects(self.asked)
        self.shares = self.subject.shares(self.asked)
        self.hops, self.before = self.subject.paths(node)

    def explanation(self, top: int) -> Explanation:
        asked, own, strong = self.asked, self.shares, strongest(self.effect, top)
        run, label = self.result.runs[self.result.best], self.names[asked.label]
        (me,) = self._nodes([asked.node])
        ends = self.ends[:, _clear(self.effect, strong)]
        drawn = choose_nodes(own.nodes, self.hops, self.before, ends)
        surroundings = self._nodes(drawn)
        return Explanation(
            graph=self.graph.name,
            model=self.result.model,
            seed=run.seed,
            split=run.split,
            node=me.node,
            label=label,
            probability=float(self.P[asked.node, asked.label]),
            predicted=me.label,
            holds=bool(self._holds([asked.node])[0]),
            known=me.known,
            against=None if asked.against is None else self.names[asked.against],
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
            surroundings=surroundings,
            groups=self._groups(surroundings, drawn, label),
            joined=self._joined(drawn),
            notes=tuple(self._notes()),
            weights=self.subject.weights,
            others=self.subject.others,
        )

    def _nodes(self, rows: Sequence[int] | Ints) -> tuple[NodeShare, ...]:
        """These nodes by name, with the label that is predicted."""
        rows = np.asarray(rows, np.int64)
        labels = self.result.label_target.shown(self._decide(rows))
        hops = (int(hop) if np.isfinite(hop) else None for hop in self.hops[rows])
        known, added = (self.known[i] for i in rows), self.shares.nodes[rows].tolist()
        return tuple(map(NodeShare, map(self._name, rows), labels, known, hops, added))

    def _holds(self, rows: Sequence[int] | Ints) -> NDArray[np.bool_]:
        """(rows,) whether these nodes are given the explained label."""
        ids = self._decide(np.asarray(rows))
        return np.asarray(self.result.label_target.indicators(ids)[:, self.asked.label] == 1)

    def _decide(self, rows: Ints) -> Ints:
        """The labels of nodes: by the threshold and the class weights of what is explained."""
        return self.result.decide(self.P[rows], ensemble=False)

    def _groups(self, nodes: Sequence[NodeShare], rows: Ints, label: str) -> tuple[str, ...]:
        """What the colours of nodes say: their label; of several, whether they have this one."""
        if self.result.label_target.exclusive:
            return tuple(node.label for node in nodes)
        return tuple(label if has else f"not {label}" for has in self._holds(rows))

    def _name(self, i: int) -> str | int:
        return int(i) if self.graph.nodes is None else self.graph.nodes[i]

    def _reasons(self) -> tuple[tuple[str, float], ...]:
        """What adds most to the score, by name: nodes, or the bias."""
        own, me = self.shares, self.asked.node
        found = [
            ("its own features" if i == me else str(self._name(i)), float(own.nodes[i]))
            for i in np.argsort(-own.nodes, kind="stable")[:REASONS]
        ]
        order = sorted([*found, ("the model's bias", own.bias)], key=lambda one: -one[1])
        return tuple(one for one in order[:REASONS] if one[1] > 0)

    def _features(self, columns: Ints) -> tuple[FeatureShare, ...]:
        graph, added = self.subject.graph, self.shares.features
        names = [*(graph.features or range(graph.d)), *COLUMNS]  # of the structure, if it is added
        return tuple(FeatureShare(names[j], float(added[j])) for j in columns)

    def _named(self, some: Ints) -> tuple[LinkEffect, ...]:
        """These links; an undirected one goes from its far end to the near one."""
        found = []
        for i in some:
            source, target = self.ends[:, i]
            if not self.graph.directed and self.hops[source] < self.hops[target]:
                source, target = target, source
            found.append(LinkEffect(self._name(source), self._name(target), float(self.effect[i])))
        return tuple(found)

    def _proof(self, dropped: Ints) -> Proof | None:
        """Drop links, normalise anew and run again; beside as many links drawn at random."""
        if not len(dropped):
            return None
        around, random = near(self.ends, self.hops), np.random.default_rng(0)
        count = min(len(dropped), len(around))
        drawn = [random.choice(around, count, replace=False) for _ in range(DRAWS)]
        before, after, *others = (
            self.subject.probability(self.asked, some) for some in (dropped[:0], dropped, *drawn)
        )
        return Proof(self._named(dropped), before, after, tuple(others))

    def _joined(self, drawn: Ints) -> tuple[tuple[int, int, float], ...]:
        """The links among these nodes: two places in `drawn`, and the effect."""
        place = np.full(self.graph.n, -1)
        place[drawn] = np.arange(len(drawn))
        u, v = place[self.ends]
        return tuple(
            (int(u[i]), int(v[i]), float(self.effect[i]))
            for i in np.flatnonzero((u >= 0) & (v >= 0))
        )

    def _notes(self) -> Iterable[str]:
        yield from self.subject.notes()
        if not self.unranked and not np.isfinite(np.delete(self.hops, self.asked.node)).any():
            yield "it has no links, so its own features and the bias are all there is"
        if not self.result.label_target.exclusive and self.asked.against is None:
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
