"""How much a random split of dated nodes flatters: one model, trained on both splits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnii.errors import InputError
from gcnii.files import Document
from gcnii.graph import ROLES, Graph, Split
from gcnii.inference.evaluate import signed
from gcnii.results.fit import Session, fit_plans
from gcnii.results.result import Result
from gcnii.targets.interval import DRAWS, Estimate, Floats, bootstrap_weights, percentiles
from gcnii.targets.scores import Score
from gcnii.train.plan import Plan, make_plan

# A small model with settings that are the same for every graph, so that `train` repeats it:
# --model gcnii --layers 4 --epochs 100 --runs 3
MODEL, SETTINGS, SEEDS = "gcnii", {"layers": 4, "epochs": 100}, (0, 1, 2)
LARGE = 500_000  # nodes and edges, beyond which that takes long


@dataclass(frozen=True)
class Flattery:
    """The test scores of one model on a random split and on a split by time of the same sizes.

    score       what they are, `measured` its name
    at_random, by_time   means over the seeds, with intervals over the test nodes
    difference  the first less the second
    """

    score: Score
    measured: str
    at_random: Estimate
    by_time: Estimate
    difference: Estimate

    def document(self) -> Document:
        names = ("at_random", "by_time", "difference")
        own = {name: getattr(self, name).document() for name in names}
        return {"metric": self.measured, "sentence": self.sentence, **own}

    @property
    def sentence(self) -> str:
        """What the difference says, for a user."""
        gap, both = self.difference, (self.at_random, self.by_time)
        scores = " against ".join(self.score.shown(one.mean) for one in both)
        numbers = f"{self.measured} {scores} by time, {signed(gap, self.score)} ({MODEL})"
        if gap.low > 0:
            return f"A random split of these nodes flatters: {numbers}."
        if gap.high < 0:
            return f"A random split of these nodes does not flatter: {numbers}."
        return f"A random split makes no difference that these nodes could show: {numbers}."


def flattery(graph: Graph, undated: Graph, device: str = "auto") -> Flattery:
    """Measure it.

    graph    with times and the split by them
    undated  the same nodes without times, in any split, which is not used: a random one of the same
             sizes takes its place
    """
    if graph.times is None or not graph.splits or not graph.splits[0].test.any():
        raise InputError(
            f"what a random split of {graph.name} flatters can be measured with times and labels "
            "of test nodes alone"
        )
    both = drawn_like(graph, undated), graph
    results = [
        fit_plans(one, [plan], Session(device=device), SEEDS, calibrate="temperature")
        for one, plan in zip(both, _plans(*both), strict=True)
    ]
    draws = [_draws(*pair, seed) for seed, pair in enumerate(zip(results, both, strict=True))]
    means = [float(result.test.mean()) for result in results]
    at_random, by_time = (percentiles(*pair) for pair in zip(means, draws, strict=True))
    gap = percentiles(means[0] - means[1], draws[0] - draws[1], least=-1.0)
    score = results[0].target.score(results[0].recipe.scored_by)
    return Flattery(score, results[0].measured, at_random, by_time, gap)


def drawn_like(graph: Graph, undated: Graph) -> Graph:
    """The undated graph with a random split of the nodes and of the sizes that a graph's has."""
    (split,) = graph.splits
    sizes = [int(getattr(split, role).sum()) for role in ROLES]
    nodes = np.random.default_rng(0).permutation(
        np.flatnonzero(split.train | split.val | split.test)
    )
    roles = np.full(graph.n, None, object)
    roles[nodes] = np.repeat(np.array(ROLES, object), sizes)
    return undated.with_splits([Split.of_roles(roles)])


def _plans(at_random: Graph, by_time: Graph) -> tuple[Plan, Plan]:
    """Of both trainings, judged by one metric: a class may be rare in one of the splits alone."""
    drawn, timed = (make_plan(MODEL, SETTINGS, one) for one in (at_random, by_time))
    if (metric := timed.recipe.scored_by) != drawn.recipe.scored_by:
        drawn = make_plan(MODEL, {**SETTINGS, "metric": metric}, at_random)
    return drawn, timed


def _draws(result: Result, graph: Graph, seed: int) -> Floats:
    """(b,) the mean score of the runs, of test nodes drawn with replacement."""
    runs = [result.alone(i).graded(graph) for i in range(len(result.runs))]
    metric = result.target.score(result.recipe.scored_by)
    weights = bootstrap_weights(runs[0].m, runs[0].ranking_draws if metric.ranks else DRAWS, seed)
    scored = [one.scored(metric.key) for one in runs]
    return np.concatenate([np.mean([one(each) for one in scored], 0) for each in weights])
