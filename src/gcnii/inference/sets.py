"""Sets of classes that hold a node's true class with a chosen probability.

Half of the validation nodes of the runs that predict set the temperature, the other half the bound
of `targets.calibration`: the promise rests on nodes that had no part in the probabilities, but for
the epoch at which training stopped.  It is made on average over nodes that are drawn as the
validation nodes were: not for each class or each node, and not for new nodes of another kind.
Nodes without links, which are answered by their features alone, have a bound of their own.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import InputError
from gcnii.graph import Graph
from gcnii.inference.training_graph import training_graph
from gcnii.inference.unlinked import FeaturesOnly, unknown_kind
from gcnii.targets.calibration import Sets, conformal_sets, refuse_coverage
from gcnii.train.results.result import Result

HALVING = 0  # the seed that divides the validation nodes


def predict_sets(
    result: Result,
    graph: Graph | None = None,
    coverage: float = 0.9,
    device: str = "auto",
    *,
    kind: Sets = "lac",
    ensemble: bool = True,
    trained_on: Graph | None = None,
) -> NDArray[np.bool_]:
    """(n, k) whether a class is in a node's set; a set may be empty, or hold all classes.

    graph     default: that of the training
    coverage  the probability that a set holds the true class
    kind      lac: the smallest sets; aps: sets that are larger where the model is unsure
    trained_on  the graph of the training, whose validation labels are needed, if `graph` is not it;
              default: the one in memory, or from where it was
    """
    refuse_coverage(coverage, kind)
    if result.graph.multilabel:
        raise InputError(
            f"sets are of one true class, but a node of {result.graph.name} can have several labels"
        )
    known = training_graph(result, graph if trained_on is None else trained_on)
    part = result.part(result.predicting(ensemble))
    split = known.splits[part.runs[0].split]
    first, second = halves(split.val)
    _refuse_few(second, coverage)
    # The temperature of the first half alone, in the place of that of all validation nodes.
    only = replace(known, splits=(replace(split, val=first),))
    alike = replace(part, runs=tuple(replace(run, split=0) for run in part.runs))
    calibrated = alike.with_temperatures(alike.network(only, device)[1])
    P = calibrated.predict_proba(known, device)
    y = known.labels[second]
    if graph is None or graph is known:
        return conformal_sets(P, P[second], y, coverage, kind)
    sets = conformal_sets(calibrated.predict_proba(graph, device), P[second], y, coverage, kind)
    alone = unknown_kind(part, graph, known)
    if alone.any():
        # The bound is that of the features alone, on nodes that it was not fitted to.
        answer = FeaturesOnly.of(calibrated, known, P, ~second)
        sets[alone] = conformal_sets(answer(graph, alone), answer(known, second), y, coverage, kind)
    return sets


def halves(val: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Two masks of n, by chance: the first and the second half of the validation nodes."""
    nodes = np.random.default_rng(HALVING).permutation(np.flatnonzero(val))
    first = np.zeros_like(val)
    first[nodes[: len(nodes) // 2]] = True
    return first, val & ~first


def _refuse_few(held_out: NDArray[np.bool_], coverage: float) -> None:
    least = ceil(coverage / (1 - coverage) - 1e-9)
    if (count := int(held_out.sum())) < least:
        raise InputError(
            f"sets of coverage {coverage} need {2 * least} validation nodes or more, half of them "
            f"for the temperature; there are {count} for the bound; ask for less, or label more"
        )
