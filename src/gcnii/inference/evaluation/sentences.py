"""What an evaluation says in words: whether the graph helps, and what to be warned of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import sqrt

import numpy as np

from gcnii.graph import Graph
from gcnii.inference.evaluation.baselines import (
    BOOSTED,
    BOOSTED_AROUND,
    FEATURES,
    GRAPH,
    MAJORITY,
)
from gcnii.inference.evaluation.neighbourhood import Neighbourhood
from gcnii.inference.evaluation.short import class_names, never_predicted, unbeaten
from gcnii.inference.evaluation.twins import twins
from gcnii.targets.answers import RANKINGS, Answers, Floats
from gcnii.targets.interval import DRAWS, Estimate, over_runs, percentiles
from gcnii.targets.objective import percent
from gcnii.train.results.result import Result

APART = 0.2  # Kolmogorov-Smirnov distance of two degree distributions that is worth a word
SURE = 0.001  # its p-value at most
HOMOPHILY = 0.1  # difference of mean homophily that is worth a word
ERRORS = 3.0  # standard errors that it must be


@dataclass(frozen=True, eq=False)
class Found:
    """What was measured.

    split      that of the runs that predict, `said` what they say of its test nodes
    answers    of each run, on its own split
    baselines  the answers of each, by split
    metric     the name of the score that the training was judged by
    """

    result: Result
    graph: Graph
    split: int
    said: Answers
    answers: Sequence[Answers]
    baselines: Mapping[str, Mapping[int, Answers]]
    metric: str

    @cached_property
    def splits(self) -> list[int]:
        """The split of each run."""
        return [run.split for run in self.result.runs]

    @cached_property
    def around(self) -> Neighbourhood:
        """What the graph is like around each node."""
        return Neighbourhood(self.graph)

    def mean(self, metric: str) -> float:
        """Of the runs."""
        return float(np.mean([one.scores[metric] for one in self.answers]))

    def baseline_mean(self, name: str, metric: str) -> float:
        """Of the splits."""
        return float(np.mean([one.scores[metric] for one in self.baselines[name].values()]))

    def lead(self, name: str, metric: str = "") -> Estimate:
        """The model's score less that of a baseline, paired by split; of one split, by node."""
        metric, beside = metric or self.metric, self.baselines[name]
        other = beside[self.split]
        if len(beside) > 1:
            leads = self.leads(name, metric)
            alike = percentiles(float(leads.mean()), leads, [other.m], -1.0)
            return over_runs(leads) if np.ptp(leads) else alike
        mine = [one.scored(metric) for one in self.answers]
        theirs = other.scored(metric)

        def gap(weights: Floats) -> dict[str, Floats]:
            return {"": np.mean([one(weights) for one in mine], 0) - theirs(weights)}

        draws = other.ranking_draws if metric in RANKINGS else DRAWS
        drawn = other.drawn(gap, max(draws // len(mine), 100))[""]
        mean = float(gap(np.ones((other.m, 1)))[""][0])
        return percentiles(mean, drawn, [other.m], -1.0)

    @cached_property
    def differences(self) -> dict[str, Estimate]:
        """The lead over each baseline in the score that the training was judged by."""
        return {name: self.lead(name) for name in self.baselines}

    def leads(self, name: str, metric: str) -> Floats:
        """The same on each split."""
        beside = self.baselines[name].items()
        return np.array([self._on(split, metric) - one.scores[metric] for split, one in beside])

    def _on(self, split: int, metric: str) -> float:
        """The mean of the runs on this split."""
        pairs = zip(self.splits, self.answers, strict=True)
        return float(np.mean([one.scores[metric] for there, one in pairs if there == split]))


def help_sentence(found: Found, lead: Estimate) -> str:
    """Whether the model is better than logistic regression, which knows no graph."""
    without = found.baseline_mean(FEATURES, found.metric)
    numbers = f"{percent(found.mean(found.metric))} against {percent(without)} without it"
    numbers = f"{found.result.measured} {numbers} ({FEATURES} on the features)"
    if lead.low > 0:
        return f"The graph helps: {numbers}, {_signed(lead)}."
    if lead.high < 0:
        return f"The graph does not help: {numbers}, {_signed(lead)}."
    splits = len(set(found.splits))
    these = f"{splits} splits" if splits > 1 else f"{found.said.m:,} test nodes"
    return (
        f"The graph makes no difference that these {these} could show: {numbers}, {_signed(lead)}."
    )


def _signed(lead: Estimate) -> str:
    """`a difference of +24.2 [21.0, 27.3]`."""
    if lead.low != lead.low:
        return f"a difference of {100 * lead.mean:+.1f}"
    ends = f"[{100 * lead.low:.1f}, {100 * lead.high:.1f}]"
    return f"a difference of {100 * lead.mean:+.1f} {ends}"


def warnings_of(found: Found) -> Iterator[str]:
    """One sentence for each thing that makes the scores worth less than they look."""
    counts = found.said.counts()
    several = found.said.multilabel
    yield from filter(
        None,
        (
            never_predicted(
                class_names(found.result),
                counts.predicted == 0,
                counts.support,
                found.result.plan.recipe,
                several,
            ),
            _majority(found),
            _propagation(found),
            *map(partial(_boosting, found), (BOOSTED, BOOSTED_AROUND)),
            _degrees(found),
            "" if several else _homophily(found),
        ),
    )
    for one in twins(found.graph, found.graph.splits[found.split]):
        if sentence := one.sentence(found.said.right):
            yield sentence


def _majority(found: Found) -> str:
    """Whether accuracy (of several labels, micro-F1) is that of the most frequent labels."""
    metric = "micro_f1" if found.said.multilabel else "accuracy"
    lead = found.lead(MAJORITY, metric)
    leads = found.leads(MAJORITY, metric)
    if lead.low > 0 or (len(leads) > 1 and (leads > 0).all()):
        return ""
    balanced = None if found.said.multilabel else found.mean("balanced_accuracy")
    usual, recipe = found.baseline_mean(MAJORITY, metric), found.result.plan.recipe
    return unbeaten(found.mean(metric), usual, balanced, recipe)


def _propagation(found: Found) -> str:
    """Whether the labels of the neighbours say as much as the model."""
    if GRAPH not in found.baselines or found.differences[GRAPH].mean > 0:
        return ""
    own, alone = found.mean(found.metric), found.baseline_mean(GRAPH, found.metric)
    return (
        f"{found.result.measured} {percent(own)} is not above {percent(alone)} of {GRAPH}, which "
        f"uses the graph and no features; {_better(found)}"
    )


def _boosting(found: Found, name: str) -> str:
    """Whether trees do better, on the columns alone or with what neighbours have."""
    lead = found.differences.get(name)
    if lead is None or not lead.high < 0:  # what chance may explain is in the table
        return ""
    own, other = found.mean(found.metric), found.baseline_mean(name, found.metric)
    return (
        f"{name} is better: {found.result.measured} {percent(other)} against {percent(own)}, "
        f"{_signed(lead)}; {_better(found)}, or use scikit-learn's trees"
    )


def _better(found: Found) -> str:
    """What to try, of what has not been tried."""
    searched = ((found.result.made or {}).get("command") or "").startswith("gcnii tune")
    return "label more nodes" if searched else "search better settings with `gcnii tune`"


def _degrees(found: Found) -> str:
    """Whether training nodes have other degrees than test nodes."""
    from scipy.stats import ks_2samp

    split, degree = found.graph.splits[found.split], found.around.degree
    train, test = degree[split.train], degree[split.test]
    distance, p = ks_2samp(train, test, method="asymp")
    if distance < APART or p > SURE:
        return ""
    return (
        f"training nodes have {train.mean():.1f} neighbours on average and test nodes "
        f"{test.mean():.1f} (Kolmogorov-Smirnov distance {distance:.2f}), so that test scores may "
        "not be those of other nodes; draw training nodes as the nodes to be labelled come"
    )


def _homophily(found: Found) -> str:
    """Whether training nodes agree more, or less, with their neighbours than test nodes do."""
    split, homophily = found.graph.splits[found.split], found.around.homophily
    train, test = (one[~np.isnan(one)] for one in (homophily[split.train], homophily[split.test]))
    if min(len(train), len(test)) < 2:
        return ""
    gap = abs(train.mean() - test.mean())
    error = sqrt(train.var(ddof=1) / len(train) + test.var(ddof=1) / len(test))
    if gap <= HOMOPHILY or gap <= ERRORS * error:
        return ""
    return (
        f"{train.mean():.0%} of the neighbours of training nodes have the node's own label, and "
        f"{test.mean():.0%} of those of test nodes, so that the graph says other things where it "
        "is tested; draw training nodes as the nodes to be labelled come"
    )
