"""What a score is made of: the shares of nodes and features, and the links that matter.

Shares are exact: a network of ReLUs is piecewise linear.  With its biases b counted as inputs it is
homogeneous, s(tX, tb) = t s(X, b), and Euler's identity says s = Σ X · ∂s/∂X + Σ b · ∂s/∂b.  Links
are ranked by gradient × weight, taken through the normalisation, and checked by removal: drop some,
normalise anew, run again, beside as many links drawn at random.

`BestRun` answers for one model, `EnsembleAnswer` for several.  Both have what `explain` asks for:

graph     as the model sees it
P         (n, k) its probabilities
links     what they join, and which is which
unranked  why no link is ranked, or nothing
weights   of the members whose shares are added, by name; empty of one model
others    likewise of members that have no shares
shares, effects, probability, paths, notes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cached_property, partial
from math import log
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from torch import Tensor, nn

from gcnii.errors import GraphError, InputError, some_of
from gcnii.graph import Graph
from gcnii.nn import MODELS, Model
from gcnii.propagation import Sparse, adjacency
from gcnii.results.ensemble import Asked, Ensemble, Networks, Regressed, Smoothed
from gcnii.results.outputs import calibrated
from gcnii.results.result import Result
from gcnii.targets import LabelTarget, Target
from gcnii.train.features import COLUMNS
from gcnii.train.plan import Plan
from gcnii.train.stopping import Run
from gcnii.train.task import Task

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_COMPARED = 200_000  # names that are searched for close ones, in about a second


@dataclass(frozen=True)
class ExplainedScore:
    """The score of `node` for the class or the number `label`, less that for `against`, if any."""

    node: int
    label: int
    against: int | None = None


def find_node(graph: Graph, node: str | int | None) -> int:
    """The row of a node by its name, or by its number if the graph has no names."""
    if node is None:
        raise InputError("which node is to be explained? give its name: node=")
    if graph.nodes is None:
        return _numbered(graph, str(node))
    rows = [i for i, name in enumerate(graph.nodes) if name == str(node)]
    if len(rows) > 1:
        raise GraphError(f"{len(rows)} nodes of {graph.name} are called {str(node)!r}; rename them")
    if not rows:
        raise InputError(
            f"{graph.name} has no node {str(node)!r}; {_close(str(node), graph.nodes)}"
        )
    return rows[0]


def _numbered(graph: Graph, word: str) -> int:
    if not (word.isdecimal() and word.isascii() and len(word) <= 18 and int(word) < graph.n):
        raise InputError(
            f"the nodes of {graph.name} have no names; give a number from 0 to {graph.n - 1}, "
            f"got {word!r}"
        )
    return int(word)


def find_class(classes: Sequence[str], name: str, what: str = "class") -> int:
    """The place of a class, or of a number to predict, by its name."""
    if name not in classes:
        raise InputError(f"there is no {what} {name!r}; {_close(name, classes)}")
    return list(classes).index(name)


def _close(word: str, names: Sequence[str]) -> str:
    """The names that are closest to this one, else some of all."""
    close = get_close_matches(word, names, 3) if len(names) <= MOST_COMPARED else []
    return f"the closest are {some_of(close)}" if close else f"there are {some_of(names)}"


EXACT = 1e-4  # of the largest score: a larger residual is not of rounding


@dataclass(frozen=True, eq=False)
class Shares:
    """A score as a sum: `score` = Σ nodes + bias + residual = Σ features + bias + residual.

    nodes     (n,) what the features of each node add
    features  (d,) what each feature adds, over all nodes; then what each structure column adds
    bias      what the weights add that the model itself adds to its sums
    largest   the largest absolute score of the node, of any class
    """

    score: float
    nodes: Floats
    features: Floats
    bias: float
    largest: float

    @property
    def residual(self) -> float:
        """What is left over: rounding, or what is not piecewise linear."""
        return self.score - float(self.nodes.sum()) - self.bias

    @property
    def exact(self) -> bool:
        """Whether the residual is of rounding alone."""
        return abs(self.residual) <= EXACT * self.largest

    def __add__(self, other: Shares) -> Shares:
        """Of the sum of two scores."""
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return Shares(*(mine + theirs for mine, theirs in pairs))

    def times(self, weight: float) -> Shares:
        """Of the score times a weight."""
        return Shares(*(weight * getattr(self, one.name) for one in fields(self)))


Seen = Callable[[Tensor], Tensor]


# What the models call the weights that they add; a score is homogeneous in these and X together.
BIASES = frozenset({"bias", "b", "shift", "offset"})


@dataclass(frozen=True, eq=False)
class BestRun:
    """The model of the best run, and the graph made ready for it.

    plan         of that run
    run          that one, whose probabilities are calibrated
    """

    model: Model
    task: Task
    plan: Plan
    target: Target
    run: Run
    weights: ClassVar[Mapping[str, float]] = {}
    others: ClassVar[Mapping[str, float]] = {}

    @classmethod
    def of(
        cls, result: Result, graph: Graph, device: str = "auto", task: Task | None = None
    ) -> BestRun:
        """The best run of a result; only its biases can be differentiated by.

        task  the graph made ready already
        """
        model, task = result.network(graph, device, task)
        for name, weight in model.named_parameters():
            weight.requires_grad_(name.rpartition(".")[2] in BIASES)
        run = result.runs[result.best]
        plan = result.plans[run.setting]
        return cls(model, task, plan, result.target, run)

    @property
    def graph(self) -> Graph:
        return self.task.graph

    @cached_property
    def links(self) -> Links:
        """Those that it gathers over."""
        pattern, direction = self.task.adjacency.pattern, self.plan.recipe.direction
        u, v = (one.cpu().numpy().astype(np.int64) for one in (pattern.row_of, pattern.columns))
        if direction == "in":  # the entry (v, u) is of the edge u → v
            u, v = v, u
        return Links.of(self.graph, u, v, one_way=self.graph.directed and direction != "both")

    @cached_property
    def P(self) -> Floats:
        return self.predict_proba()

    @property
    def unranked(self) -> str:
        return why_unranked(self.plan)

    @property
    def biases(self) -> list[Tensor]:
        """The weights that the model adds."""
        return [weight for weight in self.model.parameters() if weight.requires_grad]

    def scores(self, P: Sparse | None = None, X: Tensor | Sparse | None = None) -> Tensor:
        """Scores (n, k) of the graph, or with another P or X."""
        task = self.task
        return self.model(task.P if P is None else P, task.X if X is None else X)

    @torch.no_grad()
    def predict_proba(self, kept: NDArray[np.bool_] | None = None) -> Floats:
        """(n, k) probabilities or values, of the links that `kept` (entries,) marks.

        The others are dropped, and the rest is normalised anew.
        """
        P = self.task.P
        if kept is not None:
            P = self.task.adjacency.matrix(torch.as_tensor(kept, device=self.task.device))
        warm = calibrated(self.scores(P).cpu().double(), self.run)
        return self.target.answers(warm)

    def without(self, node: int, dropped: Ints) -> Floats:
        """(k,) what is said of a node without some edges: the rest is normalised again."""
        return np.asarray(self.predict_proba(self.links.without(dropped))[node])

    def probability(self, asked: ExplainedScore, dropped: Ints | None = None) -> float:
        """Of the class that is explained, without some edges."""
        row = self.P[asked.node] if dropped is None else self.without(asked.node, dropped)
        return float(row[asked.label])

    def log_probability(self, asked: ExplainedScore, kept: Tensor) -> Tensor:
        """() its logarithm, with a gradient to `kept`; of a number, the value."""
        row = calibrated(self.scores(self.task.adjacency.matrix(kept))[asked.node], self.run)
        if isinstance(self.target, LabelTarget):
            row = self.target.log_probabilities(row)
        return row[asked.label]

    def in_units(self, row: Tensor) -> Tensor:
        """(k,) scores of a node, of numbers their values."""
        return row if isinstance(self.target, LabelTarget) else calibrated(row, self.run)

    def paths(self, node: int) -> tuple[Floats, Ints]:
        """`shortest_paths` along the links that information takes."""
        pattern = self.task.adjacency.pattern
        rows, columns = pattern.rows.cpu().numpy(), pattern.columns.cpu().numpy()
        return shortest_paths(
            sp.csr_array((np.ones(len(columns)), columns, rows), pattern.shape), node
        )

    def shares(self, asked: ExplainedScore, seen: Seen | None = None) -> Shares:
        """The shares of the score that is explained.

        A layer norm divides each row by its deviation, and what it gives does not change when a row
        is doubled: no input would have a share.  Deviations are held at what they are instead, so
        that the network is piecewise linear here.

        seen  what is made of the scores (k,) of the node, each a sum of them and of a number, which
              is part of the bias; default: the scores, or the values of numbers
        """
        seen = seen or self.in_units
        X, values = _watched(self.task.X)
        with _fixed_deviations(self.model):
            scores = self.scores(X=X)[asked.node]
        row, alone = seen(scores), seen(torch.zeros_like(scores))
        score, constant = (_asked_of(one, asked) for one in (row, alone))
        inputs = [values, *self.biases]
        slopes = torch.autograd.grad(score, inputs, materialize_grads=True)
        pairs = zip(inputs, slopes, strict=True)
        products = [one.detach().double() * slope.double() for one, slope in pairs]
        nodes, features = _margins(X, products[0])
        bias = sum(float(one.sum()) for one in products[1:]) + float(constant)
        return Shares(float(score.detach()), nodes, features, bias, float(row.detach().abs().max()))

    def effects(self, asked: ExplainedScore) -> Floats:
        """(links,) by how much the log-probability would fall without each, by a gradient.

        Of a number, the value.
        The factor by which a link's weight is multiplied is 1 with it and 0 without it; the
        derivative by this factor is gradient × weight, and degrees are part of it: the rest is
        normalised anew.
        """
        kept, links = self.halfway(asked.node).requires_grad_(), self.links
        (slope,) = torch.autograd.grad(self.log_probability(asked, kept), kept)
        return links.summed(slope)

    def halfway(self, node: int) -> Tensor:
        """(total,) the factors at which the derivative is taken: ½ at the node's own links, else 1.

        To drop a link is a large change, and the slope halfway tells it better than the slope at
        one end: the midpoint rule.  On validation nodes of Cora it finds links that matter as much
        as those of a search by removal, and the slope at 1 finds weaker ones
        (docs/understand/explanations.md).
        """
        pattern = self.task.adjacency.pattern
        rows, columns = pattern.row_of, pattern.columns
        own = ((rows == node) | (columns == node)) & (rows != columns)
        return 1 - 0.5 * own.to(self.task.adjacency.weights)

    def notes(self) -> Iterable[str]:
        """How features are scaled, and what the links are."""
        scaling = self.task.scaling
        if scaling is not None and scaling.kind != "none":
            yield (
                "features are as the model sees them, "
                f"scaled ({scaling.kind}), not as the graph has them"
            )
        if self.plan.structure != "none":
            yield "columns of the graph's structure stay as they are where edges are removed"
        if said := what_links_are(self.plan):
            yield said


def shortest_paths(A: sp.csr_array, node: int) -> tuple[Floats, Ints]:
    """(n,) hops from each node to this one, and the next node on the way there, -1 if none.

    Infinitely many hops if there is no way.
    """
    hops, before = dijkstra(A, indices=node, unweighted=True, return_predecessors=True)
    return hops, np.maximum(before, -1).astype(np.int64)


@contextmanager
def _fixed_deviations(model: Model) -> Iterator[None]:
    """Let no gradient pass through the deviations of layer norms."""

    def fixed(norm: nn.LayerNorm, inputs: tuple[Tensor], output: Tensor) -> Tensor:
        (H,) = inputs
        deviation = (H.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt().detach()
        return (H - H.mean(-1, keepdim=True)) / deviation * norm.weight + norm.bias

    norms = [one for one in model.modules() if isinstance(one, nn.LayerNorm)]
    hooks = [norm.register_forward_hook(fixed) for norm in norms]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _asked_of(row: Tensor, asked: ExplainedScore) -> Tensor:
    """() what is explained of the scores (k,) of a node."""
    own = row[asked.label]
    return own if asked.against is None else own - row[asked.against]


def _watched(X: Tensor | Sparse) -> tuple[Tensor | Sparse, Tensor]:
    """X, and its values, which gradients reach."""
    values = (X.values if isinstance(X, Sparse) else X).detach().clone().requires_grad_()
    return (X.with_values(values) if isinstance(X, Sparse) else values), values


def _margins(X: Tensor | Sparse, products: Tensor) -> tuple[Floats, Floats]:
    """Sums over the rows and over the columns of numbers at X's entries."""
    found = products.cpu().numpy()
    if not isinstance(X, Sparse):
        return found.sum(1), found.sum(0)
    rows, columns = X.pattern.row_of.cpu().numpy(), X.pattern.columns.cpu().numpy()
    n, d = X.shape
    by_row, by_column = np.bincount(rows, found, n), np.bincount(columns, found, d)
    return by_row.astype(np.float64), by_column.astype(np.float64)  # of no entry, they are integers


NEAR = 2  # hops: the neighbourhood that random links are drawn from


@dataclass(frozen=True, eq=False)
class Links:
    """Links, each once; a node's link to itself is none.

    entries  the places of the entries that are links, among all
    link     (entries,) the link of each of these; both directions of an undirected one are one
    ends     (2, links) the nodes that it joins: in the direction of the graph's edge if it is
             one-way, else the lower number first
    total    the number of all entries
    """

    entries: Ints
    link: Ints
    ends: Ints
    total: int

    @classmethod
    def of(cls, graph: Graph, u: Ints, v: Ints, *, one_way: bool = False) -> Links:
        """Of entries that join u and v, two nodes of a graph.

        one_way  whether each is a link from u to v, and not one with that from v to u
        """
        entries = np.flatnonzero(u != v)
        ends = np.stack([u[entries], v[entries]])
        if one_way:
            return cls(entries, np.arange(len(entries)), ends, len(u))
        numbers, link = np.unique(pair_numbers(ends, graph.n), return_inverse=True)
        ends = np.stack(np.divmod(numbers, graph.n))
        if graph.directed:
            ends = np.where(only_back(graph, ends), ends[::-1], ends)
        return cls(entries, link, ends, len(u))

    def __len__(self) -> int:
        return int(self.ends.shape[1])

    def summed(self, values: Tensor) -> Floats:
        """(links,) the sums of numbers at all entries."""
        own = values.double().cpu().numpy()[self.entries]
        return np.bincount(self.link, own, len(self)).astype(np.float64)

    def without(self, dropped: Ints) -> NDArray[np.bool_]:
        """(total,) whether an entry is kept when these links are dropped."""
        gone, kept = np.zeros(len(self), bool), np.ones(self.total, bool)
        gone[dropped] = True
        kept[self.entries] = ~gone[self.link]
        return kept


def pair_numbers(ends: Ints, n: int) -> Ints:
    """(links,) a number for the two of n nodes that each joins, whichever way."""
    low, high = np.sort(ends, 0)
    return np.asarray(low * n + high)


def near(ends: Ints, hops: Floats) -> Ints:
    """The links (2, links) whose ends are both within NEAR of these `hops` (n,) of the node."""
    return np.flatnonzero((hops[ends] <= NEAR).all(0))


def only_back(graph: Graph, pairs: Ints) -> NDArray[np.bool_]:
    """(pairs,) whether a directed graph has an edge from the second node to the first alone."""
    edges, there, back = (u * graph.n + v for u, v in (graph.edges, pairs, pairs[::-1]))
    return np.isin(back, edges) & ~np.isin(there, edges)


def strongest(effect: Floats, count: int, *, either: bool = False) -> Ints:
    """The links that support the label most, at most `count`, the strongest first.

    either  those that matter most, whichever way
    """
    effect = np.abs(effect) if either else effect
    order = np.argsort(-effect, kind="stable")[:count]
    return order[effect[order] > 0]


def why_unranked(plan: Plan) -> str:
    """Why no gradient ranks the links of this model; empty where one does."""
    card = MODELS[plan.model].card
    if not card.uses_graph:
        return f"{plan.model} looks at the features alone, so no edge matters"
    # Geom-GCN takes no weights from the graph, because its neighbours are of its own making, but it
    # multiplies by them.
    if not card.uses_weights and "geometry" not in card.recipe:
        return (
            f"{plan.model} looks at which edges there are, not at their weights, in some layers or "
            "all, so no gradient says which edge matters"
        )
    return ""


def what_links_are(plan: Plan) -> str:
    """What the links are where they are not the graph's own; else empty."""
    recipe = plan.recipe
    if recipe.geometry != "none":
        return f"edges join neighbours in the graph and in the {recipe.geometry} plane"
    if recipe.diffusion != "none":
        return (
            f"edges are those of the diffusion ({recipe.diffusion}), which the model gathers over"
        )
    return ""


ENOUGH = 0.5  # weight of networks whose gradients rank links for all
MOST = 20  # links that are removed one by one where they do not
TINY = 1e-12  # 0 has no logarithm


class EnsembleAnswer:
    """The blend that predicts: its shares are those of its networks, each times its weight.

    The scores of networks differ in scale, so that shares are of log-odds, which are the same unit
    in all: log p of the label, less the mean of log p over the classes.  They are linear in the
    scores, so that Euler's identity holds for them, too.  Of numbers, shares are of values, in
    their units, and linear regression has those of its columns.  Correct & Smooth has the shares of
    what it corrects.  Trees and label propagation have no gradient: they take part in the check by
    removal alone, and where they weigh more than the others, links are ranked by removal.

    A link joins two nodes, whichever way its edges go, since members differ in what they follow.
    """

    def __init__(self, ensemble: Ensemble, graph: Graph, device: str):
        self.ensemble = ensemble.part([ensemble.best])
        self.asked = ensemble.asked(graph, device)
        self.graph = self.asked.graph
        self.links = Links.of(self.graph, *self.graph.edges)
        (self.blend,) = self.ensemble.answering(self.asked)
        every = self.ensemble.network_weights(self.blend)
        self.networks = {network: weight for network, weight in every.items() if weight}
        self.lines = dict[Regressed, float]()
        self.weights, self.others = dict[str, float](), dict[str, float]()
        for member, weight in zip(ensemble.members, self.blend.weights, strict=True):
            base = member.base if isinstance(member, Smoothed) else member
            if weight:
                has = isinstance(base, Networks | Regressed)
                (self.weights if has else self.others)[member.name] = weight
                if isinstance(base, Regressed):
                    self.lines[base] = self.lines.get(base, 0.0) + weight
        kept = self.ensemble.scored(graph, device).kept  # which a page has at hand
        assert kept is not None
        self.blended = kept.each[0]
        self.P = self._tempered(self.blended)
        ranking = sum(weight for one, weight in self.networks.items() if ranks(one.result.plan))
        ranking += sum(self.weights.get(one.name, 0.0) for one in self.lines)  # links say nothing
        self.by_removal = ranking < ENOUGH
        seeing = any(member.sees != "features" for member in self.ensemble.weighty)
        self.unranked = "" if seeing else "no member looks at edges"

    def _tempered(self, P: Floats) -> Floats:
        T = self.ensemble.runs[0].temperature
        return P if T is None else self.ensemble.label_target.tempered(P, T)

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
        """Of the weighted mean of the networks' log-odds, or of their values."""
        d = self.graph.d + len(COLUMNS)
        none = Shares(0.0, np.zeros(self.graph.n), np.zeros(d), 0.0, 0.0)
        each = (
            _widened(network.shares(asked, partial(log_odds, network)).times(weight), d)
            for network, weight in self._runs(asked.node)
        )
        return sum([*each, *self._shares_of_lines(asked, d)], none)

    def _shares_of_lines(self, asked: ExplainedScore, d: int) -> Iterator[Shares]:
        """Those of linear regression, whose terms are all of the node itself."""
        rows = self.ensemble.rows_for(asked.node, self.blend, self.asked)
        for member, weight in self.lines.items():
            for row in rows:
                one, nodes = member.each[row], np.zeros(self.graph.n)
                terms = one.terms(self.graph.X[[asked.node]], asked.label)
                nodes[asked.node] = terms.sum()
                score, bias = float(terms.sum() + one.b[asked.label]), float(one.b[asked.label])
                own = Shares(score, nodes, terms, bias, abs(score)).times(weight / len(rows))
                yield _widened(own, d)

    def effects(self, asked: ExplainedScore) -> Floats:
        """Of the blended probability, before its temperature, or value; by the gradients."""
        found = np.zeros(len(self.links))
        labels = isinstance(self.ensemble.target, LabelTarget)
        if self.by_removal:
            said = (lambda p: log(max(float(p), TINY))) if labels else float
            before = said(self.P[asked.node, asked.label])
            for i in np.flatnonzero((self.links.ends == asked.node).any(0))[:MOST]:
                found[i] = before - said(self.without(asked.node, np.array([i]))[asked.label])
            return found
        whole = max(float(self.blended[asked.node, asked.label]), TINY)
        for network, weight in self._runs(asked.node):
            if not ranks(network.plan):
                continue
            theirs = pair_numbers(network.links.ends, self.graph.n)
            place = np.searchsorted(pair_numbers(self.links.ends, self.graph.n), theirs)
            # d log Σ w p = Σ (w p / Σ w p) d log p
            part = weight * network.probability(asked) / whole if labels else weight
            np.add.at(found, place, part * network.effects(asked))
        return found

    def without(self, node: int, dropped: Ints) -> Floats:
        """(k,) all members answer for a node of the graph without these edges."""
        rest = replace(self.graph, **self.graph.edges_kept(self.links.without(dropped)))
        again = Asked(rest, self.asked.known, self.asked.device)
        return np.asarray(self._tempered(self.ensemble.said(again)[0])[node])

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
        if {one.name for one in (*self.networks, *self.lines)} - self.weights.keys():
            yield "of what Correct & Smooth corrects, they are those before it"
        if self.others:
            yield (
                f"not attributed: {_listed(self.others)}; they have no gradients, and take part in "
                "the check by removal alone"
            )
        if self.by_removal and not self.unranked:
            yield f"the edges of the node itself, {MOST} at most, were removed one by one"


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
    """(k,) of the scores of a node: of each label, or of each class against all on average.

    Of numbers, their values.
    """
    row, target = calibrated(row, network.run), network.target
    return row - row.mean() if isinstance(target, LabelTarget) and target.exclusive else row
