"""Served: a trained model with its graph, whose answers are computed once and looked up.

New nodes are answered from their neighbourhood (`inference.neighbourhood`), or, if asked for or if
the model looks farther, by a pass over the whole graph.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gcnii.data.tables.assemble import EdgeList, Nodes
from gcnii.errors import GraphError, InputError, Problems, did_you_mean, notice
from gcnii.files import Document, json_value
from gcnii.graph import Graph
from gcnii.inference.explain import explain
from gcnii.inference.intervals import IntervalRule
from gcnii.inference.neighbourhood import RADIUS, Neighbourhoods
from gcnii.inference.new_nodes import Arrivals, OldNodes, refuse_another
from gcnii.inference.predict import (
    DECIMALS,
    FEATURES,
    Floats,
    SetRule,
    answered,
    label_table,
    say_by_features,
)
from gcnii.inference.training_graph import is_training_graph
from gcnii.nn.settings import whole
from gcnii.results.card import card
from gcnii.results.ensemble import Ensemble
from gcnii.results.trained import Trained
from gcnii.serving.records import Records

if TYPE_CHECKING:
    from pandas import Series

COVERAGE = 0.9
SAMPLE, PATIENCE = 16, 5.0  # nodes whose local answers are held against exact ones; and seconds
GUESSED = 2000  # names that a wrong one is compared with
MADE = "\n## How it was made"
CHANCE, VALUE = "p(", "value("  # with which the names of these columns begin

Answer = dict[str, object]
Covered = Floats | NDArray[np.bool_] | None  # ends of intervals, or who is in a set
Rule = SetRule | IntervalRule


@dataclass(frozen=True)
class NewAnswers:
    """What is said of new nodes.

    exact   whether it is what a pass over the whole graph would say
    radius  hops within which states were computed anew; None: everywhere
    """

    answers: list[Answer]
    exact: bool
    radius: int | None


@dataclass(frozen=True, eq=False)
class Served:
    """A model, the graph that it answers for, and all answers for that graph.

    name      of the model: it changes when another is trained
    columns   the answers: a list for each field
    P         (n, k) probabilities
    rule      of sets, or of the intervals of numbers; None: there are none
    near      what answers for new nodes; None: they are answered by the whole graph
    no_new    why new nodes cannot be answered; empty if they can
    """

    name: str
    result: Trained
    graph: Graph
    device: str
    columns: Mapping[str, list[object]]
    P: Floats
    rule: Rule | None
    near: Neighbourhoods | None
    no_new: str

    @classmethod
    def of(
        cls,
        result: Trained,
        graph: Graph,
        name: str,
        *,
        device: str = "auto",
        coverage: float | None = None,
        radius: int = RADIUS,
    ) -> Served:
        """Compute every answer for this graph.

        coverage  of sets and intervals; default: 0.9, where the model can have some
        radius    hops around a new node, within which states are computed anew
        """
        whole("radius", radius, 0)
        rule, near, no_new = None, None, ""
        if is_training_graph(result, graph):
            result = result.knowing(graph)
            rule = _rule(result, graph, coverage, device)
        elif coverage is not None:
            raise InputError(
                "sets and intervals need the training graph, and this is another; ask for "
                "none (no --coverage)"
            )
        result = result.scored(graph, device)
        table = label_table(result, graph, device)
        columns = {one: _cells(table[one]) for one in table if not one.startswith(CHANCE)}
        values = table[[one for one in table if one.startswith(VALUE)]].to_numpy(np.float64)
        if rule is not None:
            covered = rule(rule.P) if isinstance(rule, SetRule) else rule(values, graph)
            columns |= _beside(result, covered)
        P = table[[one for one in table if one.startswith(CHANCE)]].to_numpy(np.float64)
        try:
            refuse_another(result, graph)
            near = _near(result, graph, radius, rule)
        except InputError as error:
            no_new = str(error)
            notice(f"no new nodes are answered: {no_new}")
        made = cls(name, result, graph, device, columns, P, rule, near, no_new)
        made.rows, made.error, made.about, made._old.ids  # noqa: B018 - made before the first request, which would wait
        if near is not None:
            made._by_what_is_near(near, copied(graph, 0, links=False))
        return made

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each node, by its name as text."""
        return {str(node): i for i, node in enumerate(self.columns["node"])}

    def answers(self, ids: Sequence[str | int], *, every: bool = False) -> list[Answer]:
        """The answers for these nodes; InputError for what is none.

        every  whether to give the probability of every class
        """
        self._refuse_chances(every)
        rows = [self.rows.get(str(one), -1) for one in ids]
        if -1 in rows:
            raise self._unknown([str(one) for one, row in zip(ids, rows, strict=True) if row < 0])
        found = [{name: cells[i] for name, cells in self.columns.items()} for i in rows]
        if every:
            for answer, i in zip(found, rows, strict=True):
                answer["probabilities"] = self._every(self.P[i])
        return found

    def _unknown(self, ids: Sequence[str]) -> InputError:
        more = f" ({len(ids) - 1} more are unknown)" if len(ids) > 1 else ""
        guess = did_you_mean(ids[0], [*self.rows][:GUESSED])
        rest = guess or "a node that is not in it is for predict_new"
        return InputError(f"{self.graph.name} has no node {ids[0]!r}{more}; {rest}".rstrip())

    def _refuse_chances(self, every: bool) -> None:
        if every and self.result.origin.targets:
            raise InputError(
                "there are no probabilities of classes where numbers are predicted; ask without "
                "probabilities"
            )

    def _every(self, P: Floats) -> dict[str, float]:
        return dict(zip(self.result.target.names, P.round(DECIMALS).tolist(), strict=True))

    def new(self, nodes: Records, edges: Records, *, exact: bool, every: bool) -> NewAnswers:
        """The answers for new nodes; the graph stays as it is."""
        self._refuse_chances(every)
        if self.no_new:
            raise InputError(self.no_new)
        if not len(nodes):
            raise InputError("nodes has no rows; give one new node or more")
        edges = edges if len(edges) else Records("edges", dict.fromkeys(self._of_edges, ()))
        tables = Nodes(nodes, self._old.reading, Problems(), known=self.result.origin.columns)
        arrivals = self._old.read(*self._old.as_numbers((tables, edges)))
        near = None if exact else self.near
        if near is None:
            P, basis, covered = self._by_the_whole(arrivals)
        else:
            try:
                P, basis, covered = self._by_what_is_near(near, arrivals)
            except GraphError:
                arrivals.joined(self.graph)  # which calls nodes by their names
                raise
            if FEATURES in basis:
                say_by_features(basis.count(FEATURES))
        table = arrivals.table(self.result, P, basis).drop(columns="split")
        cells = {one: _cells(table[one]) for one in table if not one.startswith(CHANCE)}
        cells |= _beside(self.result, covered)
        if every:
            cells["probabilities"] = [self._every(row) for row in P]
        answers = [{one: cells[one][i] for one in cells} for i in range(len(P))]
        if near is None:
            return NewAnswers(answers, exact=True, radius=None)
        return NewAnswers(answers, near.exact, near.radius)

    @cached_property
    def _old(self) -> OldNodes:
        return OldNodes(self.graph)

    @property
    def _of_edges(self) -> list[str]:
        """The columns that edges must have, even if there are none."""
        graph, known = self.graph, self._old.reading
        columns = [known.edge_from or "source", known.edge_to or "target"]
        columns += [known.weight or "weight"] * (graph.weights is not None)
        return columns + [known.edge_type] * graph.typed

    def _by_the_whole(self, arrivals: Arrivals) -> tuple[Floats, list[str], Covered]:
        joined, graph, rule = arrivals.joined(self.graph), self.graph, self.rule
        P, basis = answered(self.result, joined, graph, self.device, ensemble=True)
        if isinstance(rule, IntervalRule):
            return P, basis, rule(P, joined, graph.n)
        return P, basis, None if rule is None else rule.of_graph(joined, self.device)[graph.n :]

    def _by_what_is_near(
        self, near: Neighbourhoods, arrivals: Arrivals
    ) -> tuple[Floats, list[str], Covered]:
        said, rule = near.said_of(arrivals), self.rule
        P, basis = near.probabilities(said)
        if rule is None:
            return P, basis, None
        if isinstance(rule, IntervalRule):
            return P, basis, rule(P, said.ball.graph, len(said.ball.old), said.alone)
        sets = rule(near.probabilities(said, rule.calibrated)[0])
        if said.alone.any():
            sets[said.alone] = rule.by_features(said.ball.alone, said.alone)
        return P, basis, sets

    @cached_property
    def error(self) -> Document:
        """What answers by the neighbourhood differ by from those by the whole graph; {} of none.

        A copy of a node that is drawn, with the same links, is asked for both ways: of at most
        SAMPLE nodes, and of no more after PATIENCE seconds.
        """
        near, start, errors = self.near, time.monotonic(), list[float]()
        if near is None or near.exact:
            return {}
        for node in np.random.default_rng(0).permutation(self.graph.n)[:SAMPLE].tolist():
            arrivals = copied(self.graph, node)
            P, _ = near.probabilities(near.said_of(arrivals))
            joined = arrivals.joined(self.graph)
            exact, _ = answered(self.result, joined, self.graph, self.device, ensemble=True)
            errors.append(float(np.abs(P - exact).max()))
            if time.monotonic() - start > PATIENCE:
                break
        mean, most = round(float(np.mean(errors)), DECIMALS), round(max(errors), DECIMALS)
        return {"nodes": len(errors), "mean": mean, "largest": most}

    def explanation(
        self, node: str | int, label: str | None, against: str | None, top: int
    ) -> Document:
        """Why a node has its label."""
        if str(node) not in self.rows:
            raise self._unknown([str(node)])
        about = {"label": label, "against": against}
        found = explain(self.result, self.graph, str(node), top=top, device=self.device, **about)
        return found.document()

    @cached_property
    def about(self) -> Document:
        """What is served: the model, how good it is, its classes and columns."""
        result, near = self.result, self.near
        columns = () if result.origin.columns is None else result.origin.columns.used
        kinds = {one.name: one.kind for one in columns}
        return {
            "model": self.name,
            "title": result.title,
            "graph": self.graph.name,
            "nodes": self.graph.n,
            "edges": self.graph.m,
            # Without the last part, which names folders.
            "card": card(result).partition(MADE)[0],
            "metric": result.measured,
            "test_mean": json_value(float(result.test.mean())),
            "val_mean": json_value(float(result.val.mean())),
            "classes": [] if result.origin.targets else list(result.target.names),
            "targets": list(result.origin.targets),
            "columns": kinds or dict.fromkeys(self.graph.features or (), "numeric"),
            "id_column": self._old.reading.id,
            "edge_columns": self._of_edges,
            "edge_types": list(self.graph.type_names),
            "coverage": None if self.rule is None else self.rule.coverage,
            "members": result.leaderboard() if isinstance(result, Ensemble) else [],
            "new_nodes": {
                "refused": self.no_new or None,
                "radius": None if near is None else near.radius,
                "exact": near is None or near.exact,
                "error": self.error or None,
            },
        }


def copied(graph: Graph, node: int, *, links: bool = True) -> Arrivals:
    """A new node with the features and, if asked for, the links of another."""
    own = (graph.edges == node).any(0) & links
    edges = np.where(graph.edges[:, own] == node, graph.n, graph.edges[:, own])
    weights = None if graph.weights is None else graph.weights[own]
    X = graph.X[[node]]
    alone = Graph(X=X, edges=np.zeros((2, 0), np.int64), classes=graph.classes, nodes=("copy",))
    return Arrivals(alone, X, EdgeList(edges, weights))


def _cells(column: Series) -> list[object]:
    """As JSON has them, in which a number that is not known is null."""
    return [None if cell != cell else cell for cell in column.tolist()]


def _rule(result: Trained, graph: Graph, coverage: float | None, device: str) -> Rule | None:
    """None, and a notice, where no coverage is asked for and there can be no sets or intervals."""
    kind, what = (IntervalRule, "intervals") if result.origin.targets else (SetRule, "sets")
    try:
        return kind.of(result, graph, COVERAGE if coverage is None else coverage, device)
    except InputError as error:
        if coverage is not None:
            raise
        notice(f"no {what} are served: {error}")
        return None


def _near(result: Trained, graph: Graph, radius: int, rule: Rule | None) -> Neighbourhoods | None:
    """None, and a notice, where new nodes are answered by the whole graph."""
    also = rule.calibrated if isinstance(rule, SetRule) else None
    try:
        return Neighbourhoods(result, graph, radius, also)
    except InputError as error:
        notice(f"new nodes are answered by a pass over the whole graph each: {error}")
        return None


def _beside(result: Trained, covered: Covered) -> dict[str, list[object]]:
    """The names of the classes in each set, or the ends of the interval of each number."""
    names = result.target.names
    if covered is None:
        return {}
    if not result.origin.targets:
        return {"set": [[names[j] for j in np.flatnonzero(row)] for row in covered]}
    return {
        f"{end}({name})": covered[:, j, i].tolist()
        for j, name in enumerate(names)
        for i, end in enumerate(("low", "high"))
    }
