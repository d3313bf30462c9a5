"""Intervals that hold the true number with a chosen probability, by conformal prediction.

A node's interval is its value ± bound · spread.  The spread is the mean error of the held-out nodes
that are most like it, in their number of neighbours and in the value: on Twitch's views, intervals
of one width for all held 77 % of the quarter with the highest values and 98 % of the middle, and
these 82 to 94 %, in 6 % less width.  The bound is what the held-out nodes need.

Cross-conformal, so that each held-out node sets the bound and none judges itself: weights of
members and spreads come from one half of them for the errors of the other, and the other way round.
The promise is on average over nodes drawn as the held-out ones were, and of each number by itself.
Which epoch a network kept was chosen on them as well, as for sets of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt

import numpy as np

from gcnii.errors import InputError, notice
from gcnii.graph import Graph
from gcnii.inference.predict import FeaturesOnly, answered, halves, unknown_kind
from gcnii.inference.training_graph import training_graph
from gcnii.propagation import adjacency
from gcnii.results.trained import Trained
from gcnii.targets import Numbers
from gcnii.targets.target import FEW, Bools, Floats, largest_misfit, refuse_coverage

NEAREST = 100  # held-out nodes whose mean error is the spread of a node
FEWEST = 20  # held-out nodes, of which half tell the spread of the others
LEAST_SPREAD = 1e-3  # of the mean of all: a spread of 0 would make any error infinite


@dataclass(frozen=True, eq=False)
class Spread:
    """How far off values of one number are, by held-out nodes that are alike.

    places  (m, 2) of these nodes: the logarithm of their numbers of neighbours, and their values
    errors  (m,) the absolute errors
    """

    places: Floats
    errors: Floats

    def __call__(self, places: Floats) -> Floats:
        """(n,) the mean error of those nearest to each place."""
        from sklearn.neighbors import KDTree

        middle, scale = self.places.mean(0), self.places.std(0)
        scale = np.where(scale > 0, scale, 1.0)
        tree = KDTree((self.places - middle) / scale)
        near = tree.query(
            (places - middle) / scale, min(NEAREST, len(self.errors)), return_distance=False
        )
        least = max(LEAST_SPREAD * self.errors.mean(), np.finfo(np.float64).tiny)
        return np.asarray(np.maximum(self.errors[near].mean(1), least))


@dataclass(frozen=True, eq=False)
class IntervalRule:
    """The interval of a value: see above.

    part      what predicts
    known     the training graph
    held      (n,) the nodes that set the bounds
    spreads   of each number two, one of each half of these
    bounds    (q,) by which the mean of both is multiplied
    """

    part: Trained
    known: Graph
    held: Bools
    spreads: tuple[tuple[Spread, Spread], ...]
    bounds: Floats
    coverage: float
    device: str

    @classmethod
    def of(
        cls,
        result: Trained,
        known: Graph,
        coverage: float,
        device: str = "auto",
        *,
        ensemble: bool = True,
    ) -> IntervalRule:
        """What the held-out nodes of the training say; InputError where there are no intervals."""
        refuse_coverage(coverage, "lac")
        _refuse_others(result)
        part = result.knowing(known).part(result.predicting(ensemble)).scored(known, device)
        held = part.held_out(known)
        _few(held, coverage)
        first, second = halves(held)
        y, scores = known.labels, np.full(known.labels.shape, np.nan)
        spreads: list[list[Spread]] = [[] for _ in result.target.names]
        for own, other in ((first, second), (second, first)):
            values = part.recalibrated(own).answers(known, device, ensemble=ensemble)
            errors = np.abs(y - values)
            for j, each in enumerate(spreads):
                at = places(known, values[:, j])
                each.append(Spread(at[own], errors[own, j]))
                scores[other, j] = errors[other, j] / each[-1](at[other])
        bounds = np.array([largest_misfit(one, coverage) for one in scores[held].T])
        pairs = tuple((one, two) for one, two in spreads)
        return cls(part, known, held, pairs, bounds, coverage, device)

    def __call__(
        self, values: Floats, graph: Graph, first: int = 0, alone: Bools | None = None
    ) -> Floats:
        """(nodes, q, 2) around values (nodes, q) of the nodes of a graph from the `first` on.

        alone  (nodes,) those that are answered by their features alone; default: looked for
        """
        reach = np.empty_like(values)
        for j, (one, other) in enumerate(self.spreads):
            at = places(graph, values[:, j], first)
            reach[:, j] = self.bounds[j] * (one(at) + other(at)) / 2
        if alone is None:
            alone = unknown_kind(self.part, graph, self.known)[first:]
        if graph is not self.known and alone.any():
            reach[alone] = self._by_features
        return np.stack([values - reach, values + reach], -1)

    @cached_property
    def _by_features(self) -> Floats:
        """(q,) the reach of nodes that are answered by their features alone.

        That of such answers, on nodes that they were not fitted to.
        """
        known, said = self.known, self.part.answers(self.known, self.device)
        answer = FeaturesOnly.of(self.part, known, said, ~self.held)
        errors = np.abs(known.labels[self.held] - answer(known, self.held))
        return np.array([largest_misfit(one, self.coverage) for one in errors.T])


def places(graph: Graph, values: Floats, first: int = 0) -> Floats:
    """(nodes, 2) where nodes are, among others: see `Spread`."""
    neighbours = np.diff(adjacency(graph, "both", "remove").indptr)[first:]
    return np.column_stack([np.log1p(neighbours), values])


def predict_interval(
    result: Trained,
    graph: Graph | None = None,
    coverage: float = 0.9,
    device: str = "auto",
    *,
    ensemble: bool = True,
) -> Floats:
    """(n, q, 2) the ends of the interval of each number of each node.

    graph  default: that of the training, whose validation labels are needed in any case
    """
    _refuse_others(result)
    known = training_graph(result, graph)
    rule = IntervalRule.of(result, known, coverage, device, ensemble=ensemble)
    if graph is None or graph is known:
        return rule(result.knowing(known).answers(known, device, ensemble=ensemble), known)
    return rule(answered(result, graph, None, device, ensemble=ensemble)[0], graph)


def _refuse_others(result: Trained) -> None:
    if not isinstance(result.target, Numbers):
        raise InputError(
            f"intervals are of numbers, but nodes of {result.origin.name} have classes; ask "
            "predict_sets for sets of classes"
        )
    if result.refitted:
        raise InputError(
            "intervals rest on numbers that the members were not trained on, and these were "
            "trained on all; ask the bundle that was measured for intervals"
        )


def _few(held: Bools, coverage: float) -> None:
    """Refuse too few held-out nodes; of few, say how far off the coverage can be.

    Over draws of n of them, it has a Beta distribution of variance c (1 - c) / (n + 2).
    """
    least = max(ceil(coverage / (1 - coverage) - 1e-9), FEWEST)
    if (count := int(held.sum())) < least:
        raise InputError(
            f"intervals of coverage {coverage} need {least} validation nodes or more, there are "
            f"{count}; ask for less, or label more nodes"
        )
    if count < FEW:
        off = 2 * sqrt(coverage * (1 - coverage) / (count + 2))
        notice(
            f"the intervals are set by {count} validation nodes: from so few, the share of nodes "
            f"that are within theirs can be off by ± {off:.2f}; label more nodes for validation"
        )
