"""What a score is made of: the shares of nodes and features, and the links that matter.

Shares are exact: a network of ReLUs is piecewise linear.  With its biases b counted as inputs it is
homogeneous, s(tX, tb) = t s(X, b), and Euler's identity says s = Σ X · ∂s/∂X + Σ b · ∂s/∂b.  Links
are ranked by gradient × weight, taken through the normalisation, and checked by removal: drop some,
normalise anew, run again, beside as many links drawn at random.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from difflib import get_close_matches

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra
from torch import Tensor, nn

from gcnii.errors import GraphError, InputError, some_of
from gcnii.graph import Graph
from gcnii.nn import MODELS, Model
from gcnii.propagation import Sparse
from gcnii.results.result import Result, calibrated
from gcnii.targets import Target
from gcnii.train.plan import Plan
from gcnii.train.run import Run
from gcnii.train.task import Task

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_COMPARED = 200_000  # names that are searched for close ones, in about a second


@dataclass(frozen=True)
class ExplainedScore:
    """The score of `node` for the class `label`, less that for the class `against`, if any."""

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


def find_class(classes: Sequence[str], name: str) -> int:
    """The number of a class by its name."""
    if name not in classes:
        raise InputError(f"there is no class {name!r}; {_close(name, classes)}")
    return list(classes).index(name)


def _close(word: str, names: Sequence[str]) -> str:
    """The names that are closest to this one, else some of all."""
    close = get_close_matches(word, names, 3) if len(names) <= MOST_COMPARED else []
    return f"the closest are {some_of(close)}" if close else f"there are {some_of(names)}"


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
    def biases(self) -> list[Tensor]:
        """The weights that the model adds."""
        return [weight for weight in self.model.parameters() if weight.requires_grad]

    def scores(self, P: Sparse | None = None, X: Tensor | Sparse | None = None) -> Tensor:
        """Scores (n, k) of the graph, or with another P or X."""
        task = self.task
        return self.model(task.P if P is None else P, task.X if X is None else X)

    @torch.no_grad()
    def predict_proba(self, kept: Tensor | None = None) -> Floats:
        """(n, k) probabilities, of the links that `kept` (entries,) marks.

        The others are dropped, and the rest is normalised anew.
        """
        scores = self.scores() if kept is None else self.scores(self.task.adjacency.matrix(kept))
        warm = calibrated(scores.cpu().double(), self.run)
        return self.target.probabilities(warm)

    def probability(self, asked: ExplainedScore, kept: Tensor | None = None) -> float:
        """The probability of the class that is explained."""
        return float(self.predict_proba(kept)[asked.node, asked.label])

    def log_probability(self, asked: ExplainedScore, kept: Tensor) -> Tensor:
        """() its logarithm, with a gradient to `kept`."""
        row = calibrated(self.scores(self.task.adjacency.matrix(kept))[asked.node], self.run)
        return self.target.log_probabilities(row)[asked.label]

    def paths(self, node: int) -> tuple[Floats, Ints]:
        """`shortest_paths` along the links that information takes."""
        pattern = self.task.adjacency.pattern
        rows, columns = pattern.rows.cpu().numpy(), pattern.columns.cpu().numpy()
        return shortest_paths(
            sp.csr_array((np.ones(len(columns)), columns, rows), pattern.shape), node
        )


def shortest_paths(A: sp.csr_array, node: int) -> tuple[Floats, Ints]:
    """(n,) hops from each node to this one, and the next node on the way there, -1 if none.

    Infinitely many hops if there is no way.
    """
    hops, before = dijkstra(A, indices=node, unweighted=True, return_predecessors=True)
    return hops, np.maximum(before, -1).astype(np.int64)


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


def shares(network: BestRun, asked: ExplainedScore, seen: Seen = lambda row: row) -> Shares:
    """The shares of the score that is explained.

    A layer norm divides each row by its deviation, and what it gives does not change when a row is
    doubled: no input would have a share.  Deviations are held at what they are instead, so that the
    network is piecewise linear here.

    seen  what is made of the scores (k,) of the node, each a sum of them and of a number, which is
          part of the bias
    """
    X, values = _watched(network.task.X)
    with _fixed_deviations(network.model):
        scores = network.scores(X=X)[asked.node]
    row, alone = seen(scores), seen(torch.zeros_like(scores))
    score, constant = (_asked_of(one, asked) for one in (row, alone))
    inputs = [values, *network.biases]
    gradients = torch.autograd.grad(score, inputs, allow_unused=True)
    products = [
        torch.zeros_like(one).double() if slope is None else one.detach().double() * slope.double()
        for one, slope in zip(inputs, gradients, strict=True)
    ]
    nodes, features = _margins(X, products[0])
    bias = sum(float(one.sum()) for one in products[1:]) + float(constant)
    return Shares(float(score.detach()), nodes, features, bias, float(row.detach().abs().max()))


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
    if isinstance(X, Sparse):
        values = X.values.detach().clone().requires_grad_()
        return Sparse(X.pattern, values), values
    values = X.detach().clone().requires_grad_()
    return values, values


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
class ModelLinks:
    """The links that a model gathers over, each once; a node's link to itself is none.

    entries  the adjacency's entries off its diagonal
    link     (entries,) the link of each of these; both directions of an undirected one are one
    ends     (2, links) the nodes that it joins: in the direction of the graph's edge if it is
             one-way, else the lower number first
    total    the number of entries of the adjacency
    """

    entries: Tensor
    link: Tensor
    ends: Ints
    total: int

    @classmethod
    def of(cls, network: BestRun) -> ModelLinks:
        """The links of the graph that the network runs on."""
        task = network.task
        pattern, recipe = task.adjacency.pattern, network.plan.recipe
        rows, columns = pattern.row_of, pattern.columns.long()
        entries = torch.nonzero(rows != columns)[:, 0]
        one_way = task.graph.directed and recipe.direction != "both"
        if one_way:
            link = torch.arange(len(entries), device=entries.device)
        else:
            link = torch.unique(task.adjacency.pairs[entries], return_inverse=True)[1]
        count = int(link.max()) + 1 if len(link) else 0
        both = torch.stack([rows[entries], columns[entries]])
        if not one_way:
            both = both.sort(0)[0]  # so that either of two entries may be written last
            if task.graph.directed:
                back = torch.from_numpy(only_back(task.graph, both.cpu().numpy()))
                both = torch.where(back.to(both.device), both.flip(0), both)
        elif recipe.direction == "in":  # the entry (v, u) is of the edge u → v
            both = both.flip(0)
        ends = both.new_zeros(2, count)
        ends[:, link] = both
        return cls(entries, link, np.asarray(ends.cpu()), len(rows))

    def __len__(self) -> int:
        return int(self.ends.shape[1])

    def without(self, dropped: Ints) -> Tensor:
        """(total,) whether an entry is kept when these links are dropped."""
        gone = torch.zeros(len(self), dtype=torch.bool, device=self.link.device)
        gone[torch.as_tensor(dropped, device=gone.device)] = True
        kept = torch.ones(self.total, dtype=torch.bool, device=gone.device)
        kept[self.entries] = ~gone[self.link]
        return kept


def near(ends: Ints, hops: Floats) -> Ints:
    """The links (2, links) whose ends are both within NEAR of these `hops` (n,) of the node."""
    return np.flatnonzero((hops[ends] <= NEAR).all(0))


def only_back(graph: Graph, pairs: Ints) -> NDArray[np.bool_]:
    """(pairs,) whether a directed graph has an edge from the second node to the first alone."""
    edges, there, back = (u * graph.n + v for u, v in (graph.edges, pairs, pairs[::-1]))
    return np.isin(back, edges) & ~np.isin(there, edges)


def effects(network: BestRun, links: ModelLinks, asked: ExplainedScore) -> Floats:
    """(links,) by how much the log-probability would fall without each, by a gradient.

    The factor by which a link's weight is multiplied is 1 with it and 0 without it; the derivative
    by this factor is gradient × weight, and degrees are part of it: the rest is normalised anew.
    """
    kept = halfway(network, asked.node).requires_grad_()
    (slope,) = torch.autograd.grad(network.log_probability(asked, kept), kept)
    found = torch.zeros(len(links), dtype=torch.float64, device=slope.device)
    return np.asarray(found.index_add_(0, links.link, slope[links.entries].double()).cpu())


def halfway(network: BestRun, node: int) -> Tensor:
    """(total,) the factors at which the derivative is taken: ½ at the node's own links, else 1.

    To drop a link is a large change, and the slope halfway tells it better than the slope at one
    end: the midpoint rule.  On validation nodes of Cora it finds links that matter as much as those
    of a search by removal, and the slope at 1 finds weaker ones (docs/explaining.md).
    """
    pattern = network.task.adjacency.pattern
    rows, columns = pattern.row_of, pattern.columns
    own = ((rows == node) | (columns == node)) & (rows != columns)
    return 1 - 0.5 * own.to(network.task.adjacency.weights)


def strongest(effect: Floats, count: int) -> Ints:
    """The links that support the label most, at most `count`, the strongest first."""
    order = np.argsort(-effect, kind="stable")[:count]
    return order[effect[order] > 0]


def why_unranked(plan: Plan) -> str:
    """Why no gradient ranks the links of this model; empty where one does."""
    card = MODELS[plan.model].card
    if not card.uses_graph:
        return f"{plan.model} looks at the features alone, so no link matters"
    # Geom-GCN takes no weights from the graph, because its neighbours are of its own making, but it
    # multiplies by them.
    if not card.uses_weights and "geometry" not in card.recipe:
        return (
            f"{plan.model} looks at which links there are, not at their weights, in some layers or "
            "all, so no gradient says which link matters"
        )
    return ""


def what_links_are(plan: Plan) -> str:
    """What the links are where they are not the graph's own; else empty."""
    recipe = plan.recipe
    if recipe.geometry != "none":
        return f"links join neighbours in the graph and in the {recipe.geometry} plane"
    if recipe.diffusion != "none":
        return (
            f"links are those of the diffusion ({recipe.diffusion}), which the model gathers over"
        )
    return ""


class Subject(ABC):
    """Whose answer about a graph is explained: that of one run, or of an ensemble.

    model     its name
    run       whose seed and split it has
    graph     as the model sees it
    P         (n, k) its probabilities
    ends      (2, links) the nodes that each link joins
    unranked  why no link is ranked, or nothing
    weights   of the members whose shares are added, by name; empty of one model
    others    likewise of members that have no shares
    """

    model: str
    run: Run
    graph: Graph
    P: Floats
    ends: Ints
    unranked: str
    weights: Mapping[str, float]
    others: Mapping[str, float]

    @abstractmethod
    def decide(self, P: Floats) -> Ints:
        """The labels of nodes with these probabilities."""

    @abstractmethod
    def shares(self, asked: ExplainedScore) -> Shares:
        """What adds up to the score that is explained."""

    @abstractmethod
    def effects(self, asked: ExplainedScore) -> Floats:
        """(links,) by how much the log-probability of the label would fall without each."""

    @abstractmethod
    def probability(self, asked: ExplainedScore, dropped: Ints) -> float:
        """Of the label, without some links: all is computed again."""

    @abstractmethod
    def paths(self, node: int) -> tuple[Floats, Ints]:
        """`shortest_paths` along its links."""

    @abstractmethod
    def notes(self) -> Iterable[str]:
        """What one should know about features, links and members."""


class RunAnswer(Subject):
    """The best run of a result."""

    def __init__(self, result: Result, graph: Graph, device: str):
        self.result, self.network = result, BestRun.of(result, graph, device)
        self.links = ModelLinks.of(self.network)
        self.model, self.run = self.network.plan.model, self.network.run
        self.graph, self.ends = self.network.task.graph, self.links.ends
        self.P, self.unranked = self.network.predict_proba(), why_unranked(self.network.plan)
        self.weights, self.others = dict[str, float](), dict[str, float]()

    def decide(self, P: Floats) -> Ints:
        """By the threshold and the class weights of the run."""
        return self.result.decide(P, ensemble=False)

    def shares(self, asked: ExplainedScore) -> Shares:
        """Of its score, as it comes from the network."""
        return shares(self.network, asked)

    def effects(self, asked: ExplainedScore) -> Floats:
        """By a gradient."""
        return effects(self.network, self.links, asked)

    def probability(self, asked: ExplainedScore, dropped: Ints) -> float:
        """Without links, the rest is normalised anew."""
        return self.network.probability(asked, self.links.without(dropped))

    def paths(self, node: int) -> tuple[Floats, Ints]:
        """Along the links that information takes."""
        return self.network.paths(node)

    def notes(self) -> Iterable[str]:
        """How features are scaled, and what the links are."""
        scaling = self.network.task.scaling
        if scaling is not None and scaling.kind != "none":
            yield (
                "features are as the model sees them, "
                f"scaled ({scaling.kind}), not as the graph has them"
            )
        if self.network.plan.structure != "none":
            yield "columns of the graph's structure stay as they are where links are removed"
        if said := what_links_are(self.network.plan):
            yield said
