"""Why a node has its label: the shares of its score, the links that matter, and a check by removal.

Of a number, the score is its value, in units.

explain      the Explanation of one node, by the best run of a training, or by an ensemble
Explanation  a sentence, the shares and links behind it, a JSON document, a drawing
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isnan
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
from gcnii.results.result import Result
from gcnii.results.trained import Trained
from gcnii.targets import LabelTarget, Numbers
from gcnii.targets.scores import number_shown
from gcnii.train.features import COLUMNS
from gcnii.train.hardware import ordinary_autograd, suited_threads

OWN, BIAS = "its own features", "the model's bias"
MOSTLY = 0.5  # of all that speaks for a label: what gives less is not why it has it
NAMED = 0.1  # of the score: a bias that adds less is left to the table
ROUNDS = 0.005  # of the score: less is 0 %
CLEAR = 0.1  # a fall of the probability


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

    Of a number, its value.

    An undirected link is named from its far end to the one nearer to the explained node.
    """

    source: str | int
    target: str | int
    effect: float


@dataclass(frozen=True)
class Proof:
    """The probability of the label, or the value, with all links, without some, or random ones.

    links   that were dropped
    random  probabilities, one for each draw of as many edges from the neighbourhood
    change  what their removal changes of the prediction, in words; empty if it stays
    number  whether it is a value
    """

    links: tuple[LinkEffect, ...]
    before: float
    after: float
    random: tuple[float, ...]
    change: str
    number: bool = False

    def sentence(self, label: str, holds: bool) -> str:
        """`Removing the 3 strongest edges lowers the probability of 7 from … to …: …`."""
        several = len(self.links) > 1
        what = f"the {len(self.links)} strongest edges" if several else "the strongest edge"
        if self.number:
            ends = number_shown(self.before), number_shown(self.after)
            if ends[0] == ends[1]:
                return f"Removing {what} leaves {label} at {ends[0]}."
            return f"Removing {what} changes {label} from {ends[0]} to {ends[1]}."
        before, after = f"{self.before:.3f}", f"{self.after:.3f}"
        if self.after > self.before and before != after:
            how = f"raises the probability of {label} from {before} to {after}"
            return f"Removing {what} {how}: the estimate by gradient does not hold here."
        lowers = f"lowers the probability of {label} from {before} to {after}"
        how = lowers if before != after else f"leaves the probability of {label} at {before}"
        if self.change:
            how += (
                f", and {self.change}: {'these edges decide' if several else 'this edge decides'}"
            )
        elif holds and self.before - self.after < CLEAR:
            how += ": no single edge decides"
        return f"Removing {what} {how}."

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

    label        whose score is explained, and its probability; or the number, and its value
    predicted    the label that the best run, or the ensemble, predicts; of several, joined by `;`
    holds        whether the label is predicted, or one of them
    known        its label in the graph, None if unknown
    against      the class whose score was subtracted, if any
    score        of the best run; of an ensemble, the weighted mean of its networks' log-odds; of a
                 number, its value by these; and
                 = sum of all shares of nodes (or of features, or of hops) + bias + residual
    nodes, features   those with the largest shares
    reasons      what adds most to the score, and how much: nodes, or the bias
    support      the sum of all that adds to it: of nodes, and the bias
    residual     what is left over: of rounding where `exact`, else because the model is not
                 piecewise linear
    links        those that support the label most; empty if `unranked` says why there are none
    removal      None where there is no link to remove
    surroundings, groups, joined   the nodes of the drawing, what their colours say, and the links
                 among them, which name places in surroundings
    notes        what else one should know, a sentence each
    weights      of the members of an ensemble whose shares these are, by name; empty of one model
    others       likewise of the members that have no shares
    number       whether a number is explained, in its units
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
    support: float
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
    number: bool = False

    @property
    def attributed(self) -> bool:
        """Whether there are shares: an ensemble of trees alone has none."""
        return bool(self.weights) or not self.others

    @property
    def unit(self) -> str:
        """What the score is."""
        if self.number:
            return self.label
        return "log-odds" if self.weights else "score"

    @property
    def sentence(self) -> str:
        """`Node 17 is predicted as b (probability 0.930). Nodes …` and what the check showed."""
        return " ".join(self.sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is predicted; where its score comes from; what happens without the edges."""
        who = f"Node {self.node}" if isinstance(self.node, int) else str(self.node)
        check = self.removal and self.removal.sentence(self.label, self.holds)
        if self.number:
            head = f"{who}: {self.label} is predicted as {number_shown(self.probability)}."
            return tuple(one for one in (head, self._shares(None), check) if one)
        verb = "is predicted" if self.holds else "is not predicted"
        head = f"{who} {verb} as {self.label} (probability {self.probability:.3f})"
        main = self.main_reason if self.holds else None
        if main:
            name, share = main
            head += f", mostly because of {name} ({self._amount(share)} of {self._whole})"
        parts = (f"{head}.", self._shares(main), check)
        return tuple(one for one in parts if one)

    @property
    def main_reason(self) -> tuple[str, float] | None:
        """The node, or the bias, that gives at least half of all that speaks for the label."""
        if not self.attributed or not self.reasons or self.number:
            return None
        name, share = self.reasons[0]
        return (name, share) if share >= MOSTLY * self.support else None

    @property
    def _in_percent(self) -> bool:
        """Whether shares are parts of the score: it is positive, and nothing exceeds it."""
        if self.number:
            return False
        parts = (*(one.share for one in self.hops), self.bias)
        return self.score > 0 and all(-ROUNDS * self.score <= one <= self.score for one in parts)

    def _amount(self, share: float) -> str:
        if self._in_percent:
            return f"{100 * share / self.score:.0f} %".removeprefix("-")  # of 0
        if self.number:
            return f"{'-' if share < 0 else '+'}{number_shown(abs(share))}"
        return f"{share:+.2f}".replace("-0.00", "+0.00")

    @property
    def _whole(self) -> str:
        unit = self.unit
        name = unit if self.against is None else f"lead over {self.against}"
        some = f" in members of weight {sum(self.weights.values()):.2f}" if self.others else ""
        if self._in_percent:
            return f"the {name}{some}"
        if self.number:
            return f"{name} {number_shown(self.score)}{some}"
        return f"{'a ' if name != 'log-odds' else ''}{name} of {self.score:.2f}{some}"

    def _shares(self, main: tuple[str, float] | None) -> str:
        """`Nodes 2 and 3 hops away give 64 % of the score, its own features 8 %.`"""
        if not self.attributed:
            return ""
        parts = [] if (far := _most_of_the_others(self.hops)) is None else [far]
        parts += [(OWN, one.share) for one in self.hops if one.hop == 0]
        if abs(self.bias) >= NAMED * abs(self.score):
            parts.append((f"the mean and {BIAS}" if self.number else BIAS, self.bias))
        # What the first sentence has named already is not named again.
        parts = [one for one in parts if main is None or one[0] != main[0]]
        if not parts:
            return "" if main else f"No node and no bias adds to {self._whole}."
        first, *rest = [(name, self._amount(share)) for name, share in parts]
        verb = "give" if first[0].endswith(("away", OWN)) else "gives"
        named = f"{first[0][:1].upper()}{first[0][1:]} {verb} {first[1]} of {self._whole}"
        return f"{', '.join([named, *(f'{name} {amount}' for name, amount in rest)])}."

    def __str__(self) -> str:
        return self.sentence

    def document(self) -> Document:
        parts = ("nodes", "features", "hops")
        shares = {name: [asdict(one) for one in getattr(self, name)] for name in parts}
        about = ("graph", "model", "node", "label", "predicted", "known", "against")
        return {
            **{name: getattr(self, name) for name in about},
            ("value" if self.number else "probability"): self.probability,
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

    graph    default: the training graph, in memory or from where it was
    node     its name, or its number if the graph has no names
    label    the class to explain; default: the predicted one, of several labels the likeliest
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
        self.result, self.graph, self.names = result, graph, result.target.names
        self.number = isinstance(result.target, Numbers)
        if self.number and against is not None:
            raise InputError("against is another class, but a number is explained; leave it out")
        what = "number" if self.number else "class"
        chosen, other = (
            None if one is None else find_class(self.names, str(one), what)
            for one in (label, against)
        )
        self.subject: BestRun | EnsembleAnswer
        if isinstance(result, Ensemble):
            self.subject = EnsembleAnswer(result, graph, device)
        else:
            assert isinstance(result, Result)
            self.subject = BestRun.of(result, graph, device)
        self.P, self.ends = self.subject.P, self.subject.links.ends
        if not np.isfinite(self.P[node]).all():
            raise GraphError(
                f"the scores of node {node} of {graph.name} are not finite; its features may be "
                "far larger than those of the training"
            )
        if chosen is None and not self.number and result.label_target.exclusive:
            chosen = int(self._decided(self.P[[node]])[0])
        elif chosen is None:
            chosen = 0 if self.number else int(self.P[node].argmax())
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
        asked, own = self.asked, self.shares
        strong = strongest(self.effect, top, either=self.number)
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
            holds=bool(self._holds(self.P[[asked.node]])[0]),
            known=me.known,
            against=None if asked.against is None else self.names[asked.against],
            score=own.score,
            nodes=self._nodes(_largest(own.nodes, top)),
            features=self._features(_largest(own.features, top)),
            hops=_hops(own.nodes, self.hops),
            bias=own.bias,
            reasons=self._reasons(),
            support=float(own.nodes.clip(0).sum()) + max(own.bias, 0.0),
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
            number=self.number,
        )

    def _nodes(self, rows: Sequence[int] | Ints) -> tuple[NodeShare, ...]:
        """These nodes by name, with the label that is predicted."""
        rows = np.asarray(rows, np.int64)
        hops = (int(hop) if np.isfinite(hop) else None for hop in self.hops[rows])
        added, known = self.shares.nodes[rows].tolist(), [self.known[i] for i in rows]
        if self.number:
            own = self.graph.labels[rows, self.asked.label].tolist()
            labels = [number_shown(one) for one in self.P[rows, self.asked.label].tolist()]
            known = [None if isnan(one) else number_shown(one) for one in own]
        else:
            labels = self.result.label_target.shown(self._decided(self.P[rows]))
        return tuple(map(NodeShare, map(self._name, rows), labels, known, hops, added))

    def _holds(self, P: Floats) -> NDArray[np.bool_]:
        """(nodes,) whether nodes with answers P (nodes, k) are given the explained label."""
        if self.number:
            return np.ones(len(P), bool)
        truth = self.result.label_target.indicators(self._decided(P))
        return np.asarray(truth[:, self.asked.label] == 1)

    def _decided(self, P: Floats) -> Ints:
        """By the threshold and the class weights of what is explained."""
        return self.result.decide(P, ensemble=False)

    def _groups(self, nodes: Sequence[NodeShare], rows: Ints, label: str) -> tuple[str, ...]:
        """What the colours of nodes say: their label; of several, whether they have this one.

        Of a number, whether theirs is higher than the node's.
        """
        if self.number:
            own = self.P[rows, self.asked.label]
            return tuple("predicted lower" if one < own[0] else "as high or higher" for one in own)
        if self.result.label_target.exclusive:
            return tuple(node.label for node in nodes)
        return tuple(label if has else f"not {label}" for has in self._holds(self.P[rows]))

    def _name(self, i: int) -> str | int:
        return int(i) if self.graph.nodes is None else self.graph.nodes[i]

    def _reasons(self) -> tuple[tuple[str, float], ...]:
        """What adds most to the score, by name: nodes, or the bias."""
        own, me = self.shares, self.asked.node
        found = [
            (OWN if i == me else str(self._name(i)), float(own.nodes[i]))
            for i in np.argsort(-own.nodes, kind="stable")[:REASONS]
        ]
        order = sorted([*found, (BIAS, own.bias)], key=lambda one: -one[1])
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
        rows = [self.subject.without(self.asked.node, some) for some in (dropped, *drawn)]
        after, *others = (float(row[self.asked.label]) for row in rows)
        before = float(self.P[self.asked.node, self.asked.label])
        change = self._change(rows[0])
        return Proof(self._named(dropped), before, after, tuple(others), change, self.number)

    def _change(self, row: Floats) -> str:
        """What differs in the prediction where the explained label no longer holds; else empty."""
        before, after = self._holds(np.stack([self.P[self.asked.node], row]))
        if after or not before:
            return ""
        if (target := self.result.label_target).exclusive:
            return f"{target.shown(self._decided(row[None]))[0]} is predicted"
        return f"{self.names[self.asked.label]} is no longer predicted"

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
            yield "it has no edges, so its own features and the bias are all there is"
        target = self.result.target
        if isinstance(target, LabelTarget) and not target.exclusive and self.asked.against is None:
            yield "a node can have several labels; this one is explained by itself"


def _clear(effect: Floats, strong: Ints) -> Ints:
    """Those of the strongest links that are worth drawing."""
    size = np.abs(effect[strong])
    return np.asarray(strong[size > LEAST * size.max(initial=0)])


def _largest(added: Floats, top: int) -> Ints:
    """The places of the largest shares, by size; those that add nothing are left out."""
    order = np.argsort(-np.abs(added), kind="stable")[:top]
    return np.asarray(order[added[order] != 0])


def _most_of_the_others(hops: Sequence[HopShare]) -> tuple[str, float] | None:
    """The fewest neighbouring hops that give at least half of what other nodes give, in words.

    All of them where other nodes speak against the label.
    """
    others = [one for one in hops if one.hop]
    if not others:
        return None
    total, some = _sum_of(others), others
    for count in range(len(others), 0, -1):
        spans = [others[i : i + count] for i in range(len(others) - count + 1)]
        best = max(spans, key=_sum_of)
        if total > 0 and _sum_of(best) >= total / 2:
            some = best
    near, far = some[0].hop, some[-1].hop
    joined = {1: f"{near}", 2: f"{near} and {far}"}.get(len(some), f"{near} to {far}")
    return f"nodes {joined} {'hop' if far == 1 else 'hops'} away", _sum_of(some)


def _sum_of(hops: Sequence[HopShare]) -> float:
    return sum(one.share for one in hops)


def _hops(added: Floats, hops: Floats) -> tuple[HopShare, ...]:
    """The shares by distance, of the nodes that have one; those without a way come last."""
    some = added != 0
    found = []
    for hop in np.unique(hops[some]):
        there = some & (hops == hop)
        number = int(hop) if np.isfinite(hop) else None
        found.append(HopShare(number, int(there.sum()), float(added[there].sum())))
    return tuple(found)
