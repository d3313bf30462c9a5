"""What the answer of an ensemble is made of: the shares of its networks, each times its weight.

The scores of networks differ in scale, so that shares are of log-odds, which are the same unit in
all: log p of the label, less the mean of log p over the classes.  They are linear in the scores, so
that Euler's identity (attribution.py) holds for them, too.  Correct & Smooth has the shares of the
network that it corrects.  Trees and label propagation have no gradient: they take part in the check
by removal alone, and where they weigh more than networks, links are ranked by removal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from math import log

import numpy as np
from torch import Tensor

from gcnii.graph import Graph
from gcnii.inference.attribution import (
    BestRun,
    ExplainedScore,
    Floats,
    Ints,
    ModelLinks,
    Shares,
    Subject,
    effects,
    only_back,
    shares,
    shortest_paths,
    what_links_are,
    why_unranked,
)
from gcnii.propagation import adjacency
from gcnii.results.ensemble import Asked, Ensemble, Networks, Smoothed
from gcnii.results.result import calibrated
from gcnii.train.plan import Plan
from gcnii.train.structure import COLUMNS

ENOUGH = 0.5  # weight of networks whose gradients rank links for all
MOST = 20  # links that are removed one by one where they do not
TINY = 1e-12  # 0 has no logarithm


class EnsembleAnswer(Subject):
    """The blend that predicts.

    A link joins two nodes, whichever way its edges go, since members differ in what they follow.
    """

    def __init__(self, ensemble: Ensemble, graph: Graph, device: str):
        self.ensemble = ensemble.part([ensemble.best])
        self.asked, self.model = ensemble.asked(graph, device), ensemble.model
        self.graph, self.run = self.asked.graph, self.ensemble.runs[0]
        (self.blend,) = self.ensemble.answering(self.asked)
        every = self.ensemble.network_weights(self.blend)
        self.networks = {network: weight for network, weight in every.items() if weight}
        self.weights, self.others = dict[str, float](), dict[str, float]()
        for member, weight in zip(ensemble.members, self.blend.weights, strict=True):
            network = member.base if isinstance(member, Smoothed) else member
            if weight:
                has = isinstance(network, Networks)
                (self.weights if has else self.others)[member.name] = weight
        kept = self.ensemble.scored(graph, device).kept  # which a page has at hand
        assert kept is not None
        self.blended = kept.blended[0]
        self.P = self._tempered(self.blended)
        ranking = sum(weight for one, weight in self.networks.items() if ranks(one.result.plan))
        self.by_removal = ranking < ENOUGH
        seeing = any(member.sees != "features" for member in self.ensemble.weighty)
        self.unranked = "" if seeing else "no member looks at links"

    def _tempered(self, P: Floats) -> Floats:
        T = self.run.temperature
        return P if T is None else self.ensemble.target.tempered(P, T)

    def decide(self, P: Floats) -> Ints:
        """By the threshold and the class weights of the blend."""
        return self.ensemble.decide(P)

    def _runs(self, node: int) -> Iterator[tuple[BestRun, float]]:
        """Each network that answers for a node, with its weight."""
        rows = self.ensemble.rows_for(node, self.blend, self.asked)
        for member, weight in self.networks.items():
            task = None
            for row in rows:
                one = BestRun.of(member.result.alone(row), self.graph, self.asked.device, task)
                task = one.task
                yield one, weight / len(rows)

    def shares(self, asked: ExplainedScore) -> Shares:
        """Of the weighted mean of the networks' log-odds."""
        d = self.graph.d + len(COLUMNS)
        none = Shares(0.0, np.zeros(self.graph.n), np.zeros(d), 0.0, 0.0)
        each = (
            _widened(shares(network, asked, partial(log_odds, network)).times(weight), d)
            for network, weight in self._runs(asked.node)
        )
        return sum(each, none)

    @cached_property
    def pairs(self) -> Ints:
        """(edges,) a number for the two nodes that each edge joins; -1 of a loop."""
        return self._numbered(self.graph.edges)

    def _numbered(self, ends: Ints) -> Ints:
        u, v = np.sort(ends, 0)
        return np.where(u == v, -1, u * self.graph.n + v)

    @cached_property
    def links(self) -> Ints:
        """(links,) the number of each pair that is joined, in order."""
        return np.unique(self.pairs[self.pairs >= 0])

    @cached_property
    def ends(self) -> Ints:  # type: ignore[override]
        """In the direction of the edge, where it is one-way."""
        ends = np.stack(np.divmod(self.links, self.graph.n))
        return (
            np.where(only_back(self.graph, ends), ends[::-1], ends) if self.graph.directed else ends
        )

    def effects(self, asked: ExplainedScore) -> Floats:
        """Of the blended probability, before its temperature; by the networks' gradients."""
        found = np.zeros(len(self.links))
        if self.by_removal:
            before = log(max(self.probability(asked, np.zeros(0, np.int64)), TINY))
            for i in np.flatnonzero((self.ends == asked.node).any(0))[:MOST]:
                found[i] = before - log(max(self.probability(asked, np.array([i])), TINY))
            return found
        whole = max(float(self.blended[asked.node, asked.label]), TINY)
        for network, weight in self._runs(asked.node):
            if not ranks(network.plan):
                continue
            links = ModelLinks.of(network)
            place = np.searchsorted(self.links, self._numbered(links.ends))
            # d log Σ w p = Σ (w p / Σ w p) d log p
            part = weight * network.probability(asked) / whole
            np.add.at(found, place, part * effects(network, links, asked))
        return found

    def probability(self, asked: ExplainedScore, dropped: Ints) -> float:
        """All members answer for the graph without these links."""
        P = self.P
        if len(dropped):
            kept, weights = ~np.isin(self.pairs, self.links[dropped]), self.graph.weights
            weights = None if weights is None else weights[kept]
            rest = replace(self.graph, edges=self.graph.edges[:, kept], weights=weights)
            again = Asked(rest, self.asked.known, self.asked.device)
            P = self._tempered(self.ensemble.said(again)[0])
        return float(P[asked.node, asked.label])

    def paths(self, node: int) -> tuple[Floats, Ints]:
        """Along edges in both directions."""
        return shortest_paths(adjacency(self.graph, "both", "remove"), node)

    def notes(self) -> Iterator[str]:
        """How features are scaled, and who has no shares."""
        scalings = {one.result.scaling for one in self.networks}
        if kinds := sorted({one.kind for one in scalings if one and one.kind != "none"}):
            yield (
                "features are as the members see them, "
                f"scaled ({', '.join(kinds)}), not as the graph has them"
            )
        if self.weights:
            yield f"shares are those of {_listed(self.weights)}, each times its weight"
        if {one.name for one in self.networks} - self.weights.keys():
            yield "of what Correct & Smooth corrects, they are those before it"
        if self.others:
            yield (
                f"not attributed: {_listed(self.others)}; they have no gradients, and take part in "
                "the check by removal alone"
            )
        if self.by_removal and not self.unranked:
            yield f"the links of the node itself, {MOST} at most, were removed one by one"


def _widened(own: Shares, d: int) -> Shares:
    """With zeros for the structure columns that a member does not have."""
    return replace(own, features=np.pad(own.features, (0, d - len(own.features))))


def _listed(weights: Mapping[str, float]) -> str:
    """The members with their weights, the heaviest first."""
    order = sorted(weights.items(), key=lambda one: -one[1])
    return ", ".join(f"{name} ({weight:.2f})" for name, weight in order)


def ranks(plan: Plan) -> bool:
    """Whether gradients of this model rank the links of the graph."""
    return not why_unranked(plan) and not what_links_are(plan)


def log_odds(network: BestRun, row: Tensor) -> Tensor:
    """(k,) of the scores of a node: of each label, or of each class against all on average."""
    row = calibrated(row, network.run)
    return row - row.mean() if network.target.exclusive else row
