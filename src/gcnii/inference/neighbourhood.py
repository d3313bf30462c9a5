"""New nodes answered from their neighbourhood, so that an answer does not cost the whole graph.

A new node changes the rows of P̃ around it: its own, those of its neighbours, whose degrees change,
and those of their neighbours.  With every layer the change reaches one hop farther, and becomes
smaller.  Rows within `radius` hops of the new nodes are computed anew in every layer.  What they
gather from beyond is the state that it had without the new nodes, which is kept from one pass over
the whole graph: P̃ is cut as it is where several processes share a graph, and what others would send
is kept.

An answer is exact where the members look no farther than radius + 1 hops, so that no row beyond has
changed; else it is near, and `measured` says how near.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.errors import InputError
from gcnii.graph import Graph
from gcnii.inference.new_nodes import Arrivals, followed, stacked
from gcnii.inference.predict import FEATURES, MODEL, FeaturesOnly, Floats, knows_unlinked
from gcnii.members.known import Known
from gcnii.members.propagation import propagated, symmetric
from gcnii.nn import MODELS, Model
from gcnii.nn.settings import whole
from gcnii.propagation import Sparse
from gcnii.propagation.sparse import CutPattern, Pattern, Wait
from gcnii.results.ensemble import (
    Asked,
    Boosted,
    Ensemble,
    Member,
    Networks,
    Propagated,
    Regressed,
    Smoothed,
)
from gcnii.results.outputs import Outputs
from gcnii.results.result import Result
from gcnii.results.trained import Probabilities, Trained
from gcnii.targets import Target
from gcnii.train.distributed.shard import CutMatrix
from gcnii.train.features import scaled_matrix
from gcnii.train.hardware import CPU_THREADS
from gcnii.train.plan import Plan
from gcnii.train.task import Task, make_adjacency

Ints = NDArray[np.int64]
CPU = torch.device("cpu")
RADIUS = 2  # hops around a new node, within which states are computed anew
MOST_KEPT = 4 << 30  # bytes of states
TREES_SEE = 2  # hops


@dataclass(frozen=True, eq=False)
class Ball:
    """The part of a graph around new nodes.

    graph  the nodes `old` of the whole graph and, after them, the new ones, with every edge that
           touches a row or the rim, so that these have the degrees that they have in the whole
    old    (old,) numbers in the whole graph, sorted
    rows   (rows,) places in `graph` of what is computed anew; the new nodes are last
    rim    (rim,) places of the others that rows gather from
    new    the number of new nodes
    """

    graph: Graph
    old: Ints
    rows: Ints
    rim: Ints
    new: int

    @property
    def old_rows(self) -> Ints:
        """Those of `rows` that are not new."""
        return self.rows[: -self.new]

    def parts(self, M: sp.csr_array) -> tuple[sp.csr_array, sp.csr_array]:
        """The rows of a matrix of `graph`: on the columns of rows, and on those of the rim."""
        M = sp.csr_array(M[self.rows])
        return sp.csr_array(M[:, self.rows]), sp.csr_array(M[:, self.rim])

    @cached_property
    def alone(self) -> Graph:
        """The new nodes, without a link."""
        graph, first = self.graph, len(self.old)
        return replace(
            graph,
            X=graph.X[first:],
            edges=np.zeros((2, 0), np.int64),
            weights=None if graph.weights is None else np.zeros(0),
            y=graph.labels[first:],
        )


def once(numbers: Ints, size: int) -> Ints:
    """Each of these numbers below `size` once, sorted, in time that `size` does not change."""
    last, order = np.empty(size, np.int64), np.arange(len(numbers))
    last[numbers] = order
    return np.sort(numbers[last[numbers] == order])


class Surroundings:
    """A graph in which the edges of a node are found without looking at all."""

    def __init__(self, graph: Graph):
        self.graph = graph
        ends = graph.edges.ravel()
        self._edges = np.argsort(ends, kind="stable") % max(graph.edges.shape[1], 1)
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=graph.n))])

    def edges_of(self, nodes: Ints) -> Ints:
        """The numbers of the edges that touch these nodes; one that joins two of them is twice."""
        first, count = self._starts[nodes], self._starts[nodes + 1] - self._starts[nodes]
        before = np.repeat(first - np.cumsum(count) + count, count)
        return np.asarray(self._edges[before + np.arange(len(before))])

    def ball(self, arrivals: Arrivals, radius: int) -> Ball:
        """What lies around new nodes, of which rows within `radius` hops are computed anew."""
        graph, links = self.graph, arrivals.links.edges
        shells, touched = [once(links[links < graph.n], graph.n)], []
        seen = np.zeros(graph.n, bool)
        for _ in range(radius + 1):
            seen[shells[-1]] = True
            touched.append(self.edges_of(shells[-1]))
            ends = graph.edges[:, touched[-1]].ravel()
            shells.append(once(ends[~seen[ends]], graph.n))
        old = np.sort(np.concatenate(shells))
        edges = once(np.concatenate(touched), graph.edges.shape[1])
        part = self._graph(arrivals, old, edges)
        inner = np.concatenate([np.zeros(0, np.int64), *shells[:radius]])
        own = np.searchsorted(old, np.sort(inner))
        rows = np.concatenate([own, np.arange(len(old), part.n)])
        return Ball(part, old, rows, np.searchsorted(old, shells[radius]), arrivals.nodes.n)

    def _graph(self, arrivals: Arrivals, old: Ints, edges: Ints) -> Graph:
        graph, links, new = self.graph, arrivals.links.edges, arrivals.nodes
        place = np.empty(graph.n + new.n, np.int64)  # of which nothing else is read
        place[old], place[graph.n :] = np.arange(len(old)), len(old) + np.arange(new.n)
        weights = None if graph.weights is None else graph.weights[edges]
        part = Graph(
            X=stacked(graph.X[old], arrivals.X),
            edges=place[np.concatenate([graph.edges[:, edges], links], 1)],
            weights=followed(weights, arrivals.links.weights),
            y=np.concatenate([graph.labels[old], graph.unknown(new.n)]),
            directed=graph.directed,
            name=graph.name,
            classes=graph.classes,
            targets=graph.targets,
            features=graph.features,
        )
        if graph.weighted:  # what is much is told by all edges, and not by these few
            vars(part)["typical_weights"] = graph.typical_weights
        return part


class Past:
    """In the place of other processes: what a product would get from them is kept.

    states  what one product after the other multiplied in the pass over the whole graph
    rim     (rim,) which rows of these are asked for; None: they are recorded, and none is
    """

    def __init__(self, states: list[Tensor], rim: Tensor | None = None):
        self.states, self.rim, self._next = states, rim, iter(states)

    def fetch(self, H: Tensor) -> Wait:
        """H (1, rows, h): record it, or answer with the states of the rim (1, rim, h)."""
        if self.rim is None:
            self.states.append(H[0].clone())
            return lambda: H[:, :0]
        found = next(self._next).index_select(0, self.rim)[None]
        return lambda: found

    @property
    def collect(self) -> Pattern:
        """Nothing is trained here, and no gradient returns."""
        raise NotImplementedError

    def back(self, G: Tensor) -> Wait:
        """As `collect`."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Spread:
    """Label propagation's S on the rows of a ball, or on all of a graph while states are recorded.

    far  on the rim; None: all rows are near, and are recorded
    """

    near: sp.csr_array
    states: list[NDArray[np.float32]]
    nnz: int
    far: sp.csr_array | None = None
    rim: Ints | None = None
    _next: Iterator[NDArray[np.float32]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_next", iter(self.states))

    def __matmul__(self, Y: Floats) -> Floats:
        if self.far is None:
            self.states.append(Y.astype(np.float32))
            return np.asarray(self.near @ Y)
        return np.asarray(self.near @ Y + self.far @ next(self._next)[self.rim])


class Answering:
    """What answers for the new nodes of a request: balls and matrices are made once for all."""

    def __init__(self, around: Surroundings, arrivals: Arrivals):
        self.around, self.arrivals = around, arrivals
        self._balls: dict[int, Ball] = {}
        self._matrices: dict[object, tuple[Ball, Sparse]] = {}

    def ball(self, radius: int) -> Ball:
        """That of this radius."""
        if radius not in self._balls:
            self._balls[radius] = self.around.ball(self.arrivals, radius)
        return self._balls[radius]

    def matrix(self, plan: Plan, radius: int) -> Sparse:
        """P̃ of the ball's graph, as this plan has it."""
        recipe = plan.recipe
        key = recipe.direction, recipe.loops, recipe.norm, recipe.edge_weights, recipe.dtype, radius
        if key not in self._matrices:
            links = make_adjacency(self.ball(radius).graph, plan).to(CPU, recipe.dtype)
            self._matrices[key] = self.ball(radius), links.whole
        return self._matrices[key][1]


class Kept:
    """What one member, or one model, needs of the whole graph to answer for new nodes.

    hops  how many products reach beyond what is computed anew, if the ball ends before
    size  bytes of the states that are kept
    """

    hops: float = 0
    size: int = 0


class CutNetworks(Kept):
    """Networks that gather by products alone: they run on the rows of the ball."""

    def __init__(self, result: Result, graph: Graph):
        self.result, task = result, Task.of(graph, result.plan, CPU, result.scaling)
        none = Pattern.of(sp.csr_array((graph.n, 0)))
        self.runs: list[tuple[Model, list[Tensor]]] = []
        for i in range(len(result.runs)):
            model, states = result.alone(i).network(graph, task=task)[0], list[Tensor]()
            past = CutPattern(task.P.pattern, none, Past(states))
            model(CutMatrix.of(past, task.P.values), task.X)
            self.runs.append((model, states))
        every = [state for _, states in self.runs for state in states]
        self.size = sum(state.nbytes for state in every)
        self.hops = len(self.runs[0][1])

    def scores(self, asked: Answering, radius: int) -> Tensor:
        """(runs, new, k)."""
        ball, P = asked.ball(radius), asked.matrix(self.result.plan, radius)
        arrays = P.values, P.pattern.columns, P.pattern.rows
        M = sp.csr_array(tuple(one.numpy() for one in arrays), P.shape)
        near, far = (Sparse.from_scipy(one) for one in ball.parts(M))
        values, rim = torch.cat([near.values, far.values]), torch.from_numpy(ball.old[ball.rim])
        X = scaled_matrix(ball.graph.X[ball.rows], self.result.scaling, P.dtype)
        found = []
        for model, states in self.runs:
            cut = CutPattern(near.pattern, far.pattern, Past(states, rim))
            found.append(model(CutMatrix.of(cut, values), X)[-ball.new :])
        return torch.stack(found)


class NearNetworks(Kept):
    """Networks of few layers, or without a graph, which run on all that they look at."""

    def __init__(self, result: Result):
        card, settings = MODELS[result.model].card, result.plan.model_settings
        self.result, self.layers = result, settings["layers"] if card.uses_graph else 0

    def scores(self, asked: Answering, radius: int) -> Tensor:
        """(runs, new, k)."""
        ball = asked.ball(max(self.layers - 1, 0))
        graph = ball.graph if self.layers else ball.alone
        scores = self.result.scored(graph, "cpu").outputs.scores  # type: ignore[union-attr]
        return torch.stack([scores[i][-ball.new :] for i in range(len(self.result.runs))])


class NearTrees(Kept):
    """Trees, which look two hops far."""

    def __init__(self, member: Boosted, labels: Sequence[Known], target: Target):
        self.member, self.labels, self.target = member, labels, target

    def answers(self, asked: Answering) -> Probabilities:
        """(runs, new, k)."""
        ball, found = asked.ball(TREES_SEE - 1), []
        for i, trees in enumerate(self.member.each):
            known = near(self.labels[i], ball)
            P = trees.answers(ball.graph, known, first=len(ball.old))
            found.append(self.member.tempered(i, P, self.target))
        return np.stack(found)


class Alone(Kept):
    """Linear regression, which looks at the new nodes alone."""

    def __init__(self, member: Regressed):
        self.member = member

    def answers(self, asked: Answering) -> Probabilities:
        """(runs, new, k)."""
        new = asked.ball(0).alone
        return np.stack([one.answers(new.X) for one in self.member.each])


class Spreading(Kept):
    """Label propagation, or Correct & Smooth over what another member says.

    said  of Correct & Smooth: (runs, n, k) what the other says of the training graph
    """

    def __init__(
        self,
        member: Propagated | Smoothed,
        labels: Sequence[Known],
        asked: Asked,
        said: Probabilities | None = None,
    ):
        self.member, self.labels, self.said, self.target = member, labels, said, asked.target
        self.runs: list[tuple[list[NDArray[np.float32]], int]] = []
        for i, known in enumerate(labels):
            S, states = symmetric(asked.graph, known), list[NDArray[np.float32]]()
            self._spread(i, Spread(S, states, S.nnz), known, None if said is None else said[i])
            self.runs.append((states, S.nnz))
        self.size = sum(state.nbytes for states, _ in self.runs for state in states)
        # What another says of old nodes stays as it was, so that no radius makes it exact.
        self.hops = max(len(states) for states, _ in self.runs) if said is None else inf

    def answers(
        self, asked: Answering, radius: int, said: Probabilities | None = None
    ) -> Probabilities:
        """(runs, new, k).

        said  (runs, new, k) what the other member says of the new nodes
        """
        ball, found = asked.ball(radius), []
        for i, (states, nnz) in enumerate(self.runs):
            known = near(self.labels[i], ball)
            parts = ball.parts(symmetric(ball.graph, known))
            S = Spread(parts[0], states, nnz, parts[1], ball.old[ball.rim])
            some = replace(known, Y=known.Y[ball.rows], train=known.train[ball.rows])
            P = None
            if said is not None and self.said is not None:
                P = np.concatenate([self.said[i][ball.old[ball.old_rows]], said[i]])
            P = self._spread(i, S, some, P)[-ball.new :]
            found.append(self.member.tempered(i, P, self.target))
        return np.stack(found)

    def _spread(self, i: int, S: Spread, known: Known, P: Probabilities | None) -> Floats:
        """(rows, k) of run i; of nodes that trained, label propagation's own label counts."""
        member = self.member
        if isinstance(member, Propagated):
            one = member.each[i]
            start = np.column_stack([known.Y, known.train])
            return one.shares_of(propagated(S, start, one.alpha), known)
        assert P is not None
        size = None
        if self.said is not None:
            own, trained = self.labels[i], self.labels[i].train
            errors = np.abs(own.Y - own.standard(self.said[i]))[trained]
            size = float(errors.sum() / trained.sum())
        corrected = member.each[i].corrected(P, S, known, size)
        return member.each[i].smoothed(corrected, S, known)


def near(known: Known, ball: Ball) -> Known:
    """The labels of a ball, whose new nodes have none."""
    some = replace(known, Y=known.Y[ball.old], train=known.train[ball.old])
    return some.reaching(ball.graph.n)


class Neighbourhoods:
    """What a trained model says of new nodes, by what lies around them.

    result  what answers: the runs that predict
    also    the same runs otherwise calibrated, such as those of a SetRule, if it is to answer, too
    exact   whether no row beyond those that are computed anew would change
    """

    def __init__(
        self, result: Trained, graph: Graph, radius: int = RADIUS, also: Trained | None = None
    ):
        whole("radius", radius, 0)
        if graph.typed:
            raise InputError(f"{graph.name} has types of edges, which are gathered over as a whole")
        self.result = result.knowing(graph).part(result.predicting())
        self.graph, self.radius, self.around = graph, radius, Surroundings(graph)
        self._knows_unlinked = knows_unlinked(self.result, graph)
        self._kept = self._keep([self.result] if also is None else [self.result, also])
        # Weights may count by how they compare with all others, and new edges have some.
        self.exact = not graph.weighted and max(one.hops for one in self._kept.values()) <= (
            radius + 1
        )

    def _keep(self, asking: Sequence[Trained]) -> Mapping[str, Kept]:
        """By the names of members; of a single model, one without a name."""
        if isinstance(self.result, Result):
            return within([("", networks(self.result, self.graph))])
        asked = self.result.asked(self.graph, "cpu")  # type: ignore[attr-defined]
        weighty = [one for each in asking for one in each.weighty]  # type: ignore[attr-defined]
        bases = [one.base for one in weighty if isinstance(one, Smoothed)]
        members = {one.name: one for one in (*bases, *weighty)}  # a base before what it is part of
        return within((name, self._of_member(one, asked)) for name, one in members.items())

    def _of_member(self, member: Member, asked: Asked) -> Kept:
        if isinstance(member, Networks):
            return networks(member.result, self.graph)
        if isinstance(member, Regressed):
            return Alone(member)
        labels = [known for run in member.runs if (known := asked.labels(run)) is not None]
        if isinstance(member, Boosted):
            return NearTrees(member, labels, asked.target)
        assert isinstance(member, Propagated | Smoothed)
        said = asked.of(member.base) if isinstance(member, Smoothed) else None
        return Spreading(member, labels, asked, said)

    @torch.no_grad()
    def said_of(self, arrivals: Arrivals) -> SaidOfNew:
        """What the members say of new nodes; `probabilities` is of this."""
        with CPU_THREADS.at(1):  # of little work, a second thread makes it slower
            return self._said_of(Answering(self.around, arrivals))

    def _said_of(self, asked: Answering) -> SaidOfNew:
        said, scores = dict[str, Probabilities](), None
        for name, kept in self._kept.items():
            if isinstance(kept, CutNetworks | NearNetworks):
                scores = kept.scores(asked, self.radius)
                said[name] = Networks("", kept.result).of_scores(scores)
            elif isinstance(kept, NearTrees | Alone):
                said[name] = kept.answers(asked)
            elif isinstance(kept, Spreading):
                base = kept.member.base.name if isinstance(kept.member, Smoothed) else None
                said[name] = kept.answers(asked, self.radius, said[base] if base else None)
        ball, alone = asked.ball(0), np.zeros(asked.arrivals.nodes.n, bool)
        if not self._knows_unlinked:
            alone = self.result.unlinked(ball.graph)[-ball.new :]
        return SaidOfNew(ball, said, scores, alone)

    def probabilities(
        self, said: SaidOfNew, result: Trained | None = None
    ) -> tuple[Floats, list[str]]:
        """(new, k) of new nodes, and the basis of each, as `answered` has them.

        result  which of those that are to answer does
        """
        result = self.result if result is None else result
        new = said.ball.alone
        if isinstance(result, Result):
            assert said.scores is not None
            outputs = Outputs(new, result.weights, said.scores)
            P = replace(result, outputs=outputs).answers(new)
        else:
            assert isinstance(result, Ensemble)
            P = result.hearing(new, said.members).answers(new)
        if said.alone.any():
            P[said.alone] = self._features_only(new, said.alone)
        return P, [FEATURES if one else MODEL for one in said.alone]

    @cached_property
    def _features_only(self) -> FeaturesOnly:
        own = self.result.answers(self.graph)
        return FeaturesOnly.of(self.result, self.graph, own, np.ones(self.graph.n, bool))


@dataclass(frozen=True, eq=False)
class SaidOfNew:
    """What each member says of new nodes, (runs, new, k) each.

    ball    the smallest, which has all links of theirs
    scores  of a single model's runs, (runs, new, k)
    alone   (new,) those without links, if the training had next to none such
    """

    ball: Ball
    members: Mapping[str, Probabilities]
    scores: Tensor | None
    alone: NDArray[np.bool_]


def networks(result: Result, graph: Graph) -> CutNetworks | NearNetworks:
    """What these need of the whole graph; InputError where they look at all of it."""
    model, recipe = MODELS[result.model], result.plan.recipe
    if (recipe.geometry, recipe.diffusion, result.plan.structure) != ("none",) * 3:
        raise InputError(f"{result.model} looks at the whole graph by its settings")
    if model.can_be_cut:
        return CutNetworks(result, graph)
    if model.card.uses_graph and not model.supports_sampling:
        raise InputError(f"{result.model} looks at the whole graph, or does not say how far")
    return NearNetworks(result)


def within(each: Iterable[tuple[str, Kept]]) -> dict[str, Kept]:
    """What is kept, by name; InputError as soon as it is more than MOST_KEPT bytes."""
    kept = dict[str, Kept]()
    for name, one in each:
        kept[name] = one
        if sum(one.size for one in kept.values()) > MOST_KEPT:
            raise InputError(f"the states of all layers take more than {MOST_KEPT >> 30} GiB")
    return kept
