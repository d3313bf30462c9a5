"""What is known about a model's errors: scores with intervals, baselines, tables and warnings.

evaluate    measure a result on the test nodes of its own splits, beside baselines
Evaluation  all that was measured, as a value that prints itself: a LabelEvaluation or, of numbers,
            a NumberEvaluation
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import isnan, sqrt

import numpy as np
from rich.console import Console, Group
from rich.text import Text

from gcnii.errors import InputError, notice, visible
from gcnii.files import Document, json_value
from gcnii.graph import Graph
from gcnii.inference.baselines import (
    BOOSTED,
    BOOSTED_AROUND,
    FEATURES,
    GRAPH,
    LINEAR,
    MAJORITY,
    MEAN,
    baseline,
    baselines_of,
    notes,
    tie,
)
from gcnii.inference.decision import decision
from gcnii.inference.groups import NodeNeighbourhoods, by_target, error_groups, groups, twins
from gcnii.inference.tables import ShownScore, label_tables, number_tables, shortened, tables
from gcnii.inference.training_graph import is_training_graph, load_training_graph
from gcnii.results.card import never_predicted, nothing_found, unbeaten
from gcnii.results.ensemble import Ensemble
from gcnii.results.result import Result
from gcnii.results.trained import Trained
from gcnii.targets import LabelTarget, SeveralLabels, as_labels
from gcnii.targets.interval import DRAWS, Estimate, over_runs, percentiles, share_of
from gcnii.targets.objective import positive_class
from gcnii.targets.scores import SCORES, Answers, Score, confusion, sign_of
from gcnii.targets.target import Floats
from gcnii.train.plan import AUTO
from gcnii.train.stopping import Run

OF_A_THRESHOLD = ("decision", "unbeaten")  # which other evaluations do not have
WIDE = 1000  # columns, more than any table needs
Scores = Mapping[str, Estimate]


@dataclass(frozen=True)
class Help:
    """Whether the graph helps: the model's score less that of the features alone, paired."""

    sentence: str
    difference: Estimate

    def document(self) -> Document:
        own = self.difference.document()
        return {"sentence": self.sentence, "difference": own.pop("mean"), **own}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Evaluation(ABC):
    """What is known about the errors of a model on its test nodes.

    metric     the score that the training was judged by, a key of `scores`
    runs       the scores of each run, on the test nodes of its own split
    scores     their means, each with a 95 % interval
    interval   what it is over: "bootstrap over nodes" of one run, else "over runs"
    split, nodes   the split of the runs that predict, and how many test nodes it has; what follows
               is of what they predict there
    baselines  the same scores of the majority or the mean, which is the first, of the features
               alone, the graph alone, and trees
    differences   the score that the training was judged by, less that of each baseline, paired
    groups     accuracy by degree, by homophily of the neighbourhood, by distance to a training
               node; or errors by degree and by true number
    """

    graph: str
    model: str
    metric: str
    runs: tuple[Document, ...]
    scores: Scores
    interval: str
    split: int
    nodes: int
    baselines: Mapping[str, Scores]
    graph_helps: Help | None
    groups: Mapping[str, list[Document]]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    differences: Scores = field(default_factory=dict)

    def document(self) -> Document:
        own = {name: one for name, one in vars(self).items() if one or name not in OF_A_THRESHOLD}
        plain = {name: json_value(value) for name, value in own.items()}
        return plain | {
            "scores": _documents(self.scores),
            "differences": _documents(self.differences),
            "baselines": {name: _documents(one) for name, one in self.baselines.items()},
            "graph_helps": self.graph_helps and self.graph_helps.document(),
        }

    @property
    def shown_model(self) -> str:
        """What tables call it."""
        return "ensemble" if self.model == AUTO else self.model

    @property
    def usual(self) -> str:
        """The baseline that knows no node from another."""
        return next(iter(self.baselines))

    def called(self, name: str) -> str:
        """What a score is called."""
        return SCORES[name].name

    @abstractmethod
    def tables(self) -> Group:
        """What the terminal shows: tables and sentences, but for the warnings."""

    def __str__(self) -> str:
        """The tables as text, and the warnings."""
        console = Console(file=io.StringIO(), width=WIDE, color_system=None, highlight=False)
        with console.capture() as captured:
            console.print(self.tables())
        lines = (line.rstrip() for line in captured.get().splitlines())
        return "\n".join((*lines, *(f"warning: {one}" for one in self.warnings)))

    def __repr__(self) -> str:
        own = self.metric
        score = f"{self.called(own)} {ShownScore.named(own, self.scores[own]).cell}"
        count = f", {len(self.warnings)} warnings" if self.warnings else ""
        return f"Evaluation({self.shown_model} on {self.graph}: {score}{count})"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LabelEvaluation(Evaluation):
    """That of classes or labels.

    positive   the class that ROC AUC and average precision are of; None: the mean over all
    classes    precision, recall, F1 …, of each class, with intervals over the nodes
    confusion  rows are true classes, columns predicted ones; empty if a node can have several
    calibration   how often a probability is right; of each class, the rarest first: its mean
               probability and its share of the nodes
    decision   what a threshold of one of two classes finds, and the precision-recall curve
    unbeaten   the sentence that comes first, where no score tells a rare class from the other
    """

    classes: tuple[Document, ...]
    confusion: tuple[tuple[int, ...], ...]
    calibration: Document
    positive: str | None = None
    decision: Document | None = None
    unbeaten: str = ""

    def called(self, name: str) -> str:
        """With the class that an order is of: `average precision of class fraud`."""
        if not SCORES[name].ranks or self.positive is None:
            return super().called(name)
        return f"{SCORES[name].name} of {self.one_of} {shortened(self.positive)}"

    @property
    def one_of(self) -> str:
        """What one of the k is called."""
        return "class" if self.confusion else "label"

    def tables(self) -> Group:
        """Beside the scores: by class, probabilities, confusions and groups."""
        first = [Text(visible(self.unbeaten)), Text("")] if self.unbeaten else []
        return Group(*first, *tables(self, label_tables(self)))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class NumberEvaluation(Evaluation):
    """That of numbers, in their units.

    targets  the scores of each column, with intervals over the nodes, and the mean of its numbers
    """

    targets: tuple[Document, ...]

    def tables(self) -> Group:
        """Beside the scores: by column, and groups."""
        return Group(*tables(self, number_tables(self)))


def _documents(scores: Scores) -> Document:
    return {name: one.document() for name, one in scores.items()}


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

    result: Trained
    graph: Graph
    split: int
    said: Answers
    answers: Sequence[Answers]
    baselines: Mapping[str, Mapping[int, Answers]]
    metric: str

    @cached_property
    def splits(self) -> list[int]:
        return [run.split for run in self.result.runs]

    @cached_property
    def around(self) -> NodeNeighbourhoods:
        """What the graph is like around each node."""
        return NodeNeighbourhoods(self.graph)

    @property
    def score(self) -> Score:
        """The score that the training was judged by."""
        return SCORES[self.metric]

    def mean(self, metric: str) -> float:
        return float(np.mean([one.scores[metric] for one in self.answers]))

    def baseline_mean(self, name: str, metric: str) -> float:
        return float(np.mean([one.scores[metric] for one in self.baselines[name].values()]))

    def lead(self, name: str, metric: str = "") -> Estimate:
        """The model's score less that of a baseline, paired by split; of one split, by node."""
        metric, beside = metric or self.metric, self.baselines[name]
        other = beside[self.split]
        if len(beside) > 1:
            leads = self.leads(name, metric)
            alike = percentiles(float(leads.mean()), leads, self._sizes(metric), -1.0)
            return over_runs(leads) if np.ptp(leads) else alike
        mine = [one.scored(metric) for one in self.answers]
        theirs = other.scored(metric)

        def gap(weights: Floats) -> dict[str, Floats]:
            return {"": np.mean([one(weights) for one in mine], 0) - theirs(weights)}

        draws = other.ranking_draws if SCORES[metric].ranks else DRAWS
        drawn = other.drawn(gap, max(draws // len(mine), 100))[""]
        mean = float(gap(np.ones((other.m, 1)))[""][0])
        return percentiles(mean, drawn, self._sizes(metric), -1.0)

    def _sizes(self, metric: str) -> list[int]:
        """The nodes that a difference of shares rests on, if it is one."""
        return [] if SCORES[metric].plain else [self.said.m]

    def ahead(self, name: str) -> Estimate:
        """By how much the model is better: the lead, or its opposite where lower is better."""
        lead = self.differences[name]
        if sign_of(self.score.setting) > 0:
            return lead
        return Estimate(-lead.mean, -lead.high, -lead.low)

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


def help_sentence(found: Found, beside: str) -> str:
    """Whether the model is better than a baseline, or another, that knows no graph."""
    ahead, lead = found.ahead(beside), signed(found.differences[beside], found.score)
    without, shown = found.baseline_mean(beside, found.metric), found.score.shown
    numbers = f"{shown(found.mean(found.metric))} against {shown(without)} without it"
    numbers = f"{found.result.measured} {numbers} ({beside} on the features)"
    if ahead.low > 0:
        return f"The graph helps: {numbers}, {lead}."
    if ahead.high < 0:
        return f"The graph does not help: {numbers}, {lead}."
    splits = len(set(found.splits))
    these = f"{splits} splits" if splits > 1 else f"{found.said.m:,} test nodes"
    return f"The graph makes no difference that these {these} could show: {numbers}, {lead}."


def blind(found: Found) -> str:
    """The baseline of the features alone; of several, that with the best score; "" without one."""
    there = [one for one in (FEATURES, LINEAR) if one in found.baselines]
    if not isinstance(found.result.target, LabelTarget) and BOOSTED in found.baselines:
        there.append(BOOSTED)
    return min(there, key=lambda one: found.ahead(one).mean, default="")


def graph_helps(ensemble: Ensemble, device: str = "auto") -> Help | None:
    """The ensemble against its best member by validation that sees the features alone.

    None where there is no such member, no edge, or no test node that it was not trained on.
    """
    graph, order = ensemble.trained_on, np.argsort(ensemble.losses, kind="stable")
    blind = [one for i in order if (one := ensemble.members[i]).sees == "features"]
    if graph is None or ensemble.refitted or not blind or not graph.m:
        return None
    if not all(graph.splits[run.split].test.any() for run in ensemble.runs):
        return None
    name, alone = blind[0].name, ensemble.member(blind[0].name)
    mine, theirs = (
        [one.alone(i).graded(graph, device) for i in range(len(one.runs))]
        for one in (ensemble.scored(graph, device), alone)
    )
    beside = {run.split: said for run, said in zip(ensemble.runs, theirs, strict=True)}
    metric = ensemble.score.key
    best, split = ensemble.best, ensemble.runs[ensemble.best].split
    found = Found(ensemble, graph, split, mine[best], mine, {name: beside}, metric)
    return Help(help_sentence(found, name), found.lead(name))


def signed(lead: Estimate, score: Score) -> str:
    """`a difference of +24.2 [21.0, 27.3]`."""
    ends = "" if isnan(lead.low) else f" [{score.shown(lead.low)}, {score.shown(lead.high)}]"
    return f"a difference of {score.difference(lead.mean)}{ends}"


def warnings_of(found: Found) -> Iterator[str]:
    """One sentence for each thing that makes the scores worth less than they look."""
    target, recipe = found.said.target, found.result.recipe
    beaten = _propagation(found), *map(partial(_boosting, found), (BOOSTED, BOOSTED_AROUND))
    if not isinstance(target, LabelTarget):
        yield from filter(None, (_mean(found), *beaten, _degrees(found)))
        return
    counts = found.said.counts
    yield from filter(
        None,
        (
            never_predicted(target, counts.predicted == 0, counts.support, recipe),
            _majority(found),
            *beaten,
            _degrees(found),
            _homophily(found) if target.exclusive else "",
        ),
    )
    for one in twins(found.graph, found.graph.splits[found.split]):
        if sentence := one.sentence(found.said.right):
            yield sentence


def _unbeaten(found: Found) -> str:
    """Whether one of two classes, a rare one, is not found at all."""
    if not found.result.by_threshold:
        return ""
    return nothing_found(found.result.measured, found.metric, found.answers)


def _majority(found: Found) -> str:
    """Whether accuracy (of several labels, micro-F1) is that of the most frequent labels."""
    target = found.said.labels
    if found.result.by_threshold:  # accuracy is not what it was chosen for
        return ""
    metric = target.score("auto").key
    lead = found.lead(MAJORITY, metric)
    leads = found.leads(MAJORITY, metric)
    if lead.low > 0 or (len(leads) > 1 and (leads > 0).all()):
        return ""
    balanced = found.mean("balanced_accuracy") if target.exclusive else None
    usual, recipe = found.baseline_mean(MAJORITY, metric), found.result.recipe
    return unbeaten(found.mean(metric), usual, balanced, recipe)


def _mean(found: Found) -> str:
    """Whether the mean of all known numbers says as much as the model."""
    ahead = found.ahead(MEAN)
    if ahead.low > 0 or isnan(ahead.mean):
        return ""
    usual, shown = found.baseline_mean(MEAN, found.metric), found.score.shown
    beat = "clearly beat" if ahead.mean > 0 else "beat"
    return (
        f"{found.result.measured} {shown(found.mean(found.metric))} does not {beat} predicting the "
        f"mean for every node ({shown(usual)}); {_better(found)}"
    )


def _propagation(found: Found) -> str:
    """Whether what is known of the neighbours says as much as the model."""
    if GRAPH not in found.baselines or not found.ahead(GRAPH).mean <= 0:
        return ""
    own, alone = found.mean(found.metric), found.baseline_mean(GRAPH, found.metric)
    return (
        f"{GRAPH}, which ignores the features, does as well: {found.result.measured} "
        f"{found.score.shown(alone)} against {found.score.shown(own)}; {_better(found)}, or use it"
    )


def _boosting(found: Found, name: str) -> str:
    """Whether trees do better, on the columns alone or with what neighbours have."""
    # What chance may explain is in the table.
    if name not in found.baselines or not found.ahead(name).high < 0:
        return ""
    own, other = found.mean(found.metric), found.baseline_mean(name, found.metric)
    shown, lead = found.score.shown, found.differences[name]
    return (
        f"{name} is better: {found.result.measured} {shown(other)} against {shown(own)}, "
        f"{signed(lead, found.score)}; {_better(found)}, or use the trees"
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


BOOTSTRAP, RUNS = "bootstrap over nodes", "over runs"


def evaluate(
    result: Trained,
    graph: Graph | None = None,
    device: str = "auto",
    *,
    baselines: bool = True,
    positive: str | int | None = None,
    show: Callable[[str], None] = lambda words: None,
) -> Evaluation:
    """Measure each run on the test nodes of its own split, and what `predict` says on its own.

    graph      that of the training; default: the one that was trained on, or loaded from where it
               was
    baselines  False: the majority or the mean alone, which costs nothing
    positive   the class that ROC AUC and average precision are of; default: that of the training,
               or of two classes the one of fewer training nodes
    show       called with words after each run and baseline, `steps` times in all
    """
    if graph is None:
        graph = load_training_graph(result)
    _refuse(result, graph)
    labels = isinstance(result.target, LabelTarget)
    if positive is not None:
        as_labels(result.target, "positive is")
    if labels and (positive is not None or result.positive is None):
        named = "" if positive is None else str(positive)
        result = result.with_positive(positive_class(graph, named))
    every = baselines_of(result.target)
    found = _measured(result, graph, device, every if baselines else every[:1], show)
    split, beside = result.trainings(graph)[0], blind(found)
    helps = Help(help_sentence(found, beside), found.differences[beside]) if beside else None
    first = _unbeaten(found)
    shared: Document = {
        "graph": graph.name,
        "model": result.model,
        "metric": found.metric,
        "runs": tuple(map(_run, result.runs, found.answers)),
        "scores": _estimates(found.answers),
        "interval": BOOTSTRAP if len(found.answers) == 1 else RUNS,
        "split": found.split,
        "nodes": found.said.m,
        "baselines": {name: _estimates([*one.values()]) for name, one in found.baselines.items()},
        "differences": found.differences,
        "graph_helps": helps,
        "notes": tuple((notes if baselines else tie)(graph, split)),
        "warnings": tuple(filter(None, (first, *warnings_of(found)))),
    }
    for sentence in shared["warnings"]:
        notice(sentence)
    return _of_labels(found, shared, first) if labels else _of_numbers(found, shared)


def _of_labels(found: Found, shared: Document, unbeaten: str) -> LabelEvaluation:
    said, result = found.said, found.result
    exclusive, roles = said.labels.exclusive, result.roles(found.graph)
    C = confusion(said.y, said.guess, said.k).astype(int).tolist() if exclusive else []
    rows = _classes(said)
    return LabelEvaluation(
        **shared,
        positive=result.positive_name,
        classes=tuple(rows),
        decision=decision(result, said, rows[said.positive or 0]),
        unbeaten=unbeaten,
        confusion=tuple(map(tuple, C)),
        groups=groups(found.around, roles, said.right) if exclusive else {},
        calibration=_calibration(said),
    )


def _of_numbers(found: Found, shared: Document) -> NumberEvaluation:
    degree = found.around.degree[found.graph.splits[found.split].test]
    groups = error_groups(found.said, degree)
    return NumberEvaluation(**shared, targets=tuple(by_target(found.said)), groups=groups)


def _measured(
    result: Trained,
    graph: Graph,
    device: str,
    names: Iterable[str],
    show: Callable[[str], None],
) -> Found:
    """The answers of each run, of those that predict, and of these baselines."""
    result, answers = result.scored(graph, device), []
    for i, run in enumerate(result.runs):
        answers.append(result.alone(i).graded(graph, device))
        show(f"seed {run.seed}")
    best = result.part(result.predicting())
    said = answers[result.best] if len(best.runs) == 1 else best.graded(graph, device)
    splits = {run.split: result.alone(i).trainings(graph) for i, run in enumerate(result.runs)}
    beside = {}
    for name in names:
        beside[name] = {
            split: replace(baseline(name, graph, *splits[split]), positive=result.positive)
            for split in sorted(splits)
        }
        show(name)
    metric = result.score.key
    return Found(result, graph, best.runs[0].split, said, answers, beside, metric)


def steps(result: Trained, *, baselines: bool = True) -> int:
    """How many steps `evaluate` shows."""
    every = baselines_of(result.target)
    return len(result.runs) + (len(every) if baselines else 1)


def _refuse(result: Trained, graph: Graph) -> None:
    if isinstance(result, Result) and result.others:
        raise InputError(
            f"the result holds {len(result.plans)} settings; evaluate one of them: "
            f"result.at({result.runs[result.best].setting}).evaluate(), or another"
        )
    if result.refitted:
        raise InputError(
            "its members were trained on every label, those of the test nodes among them, so that "
            f"none can grade it; before that it had a test {result.measured} of "
            f"{result.score.shown(result.runs[0].test)}{'' if result.score.plain else ' %'}, which "
            "the bundle of that training explains"
        )
    if not is_training_graph(result, graph):
        raise InputError(
            f"{graph.name} is not the graph that the model was trained on, or has changed since, "
            "so that its splits do not say which nodes trained; restore it, or label it (predict)"
        )
    empty = [run.split for run in result.runs if not graph.splits[run.split].test.any()]
    if empty:
        raise InputError(
            f"split {empty[0]} of {graph.name} has no test nodes, and only they are graded; train "
            "with a split that has some"
        )


def _run(run: Run, answers: Answers) -> Document:
    scores = {name: json_value(score) for name, score in answers.scores.items()}
    return {"seed": run.seed, "split": run.split, "nodes": answers.m, **scores}


def _estimates(answers: Sequence[Answers]) -> dict[str, Estimate]:
    """Means with intervals: over the nodes of one, else over all."""
    names = answers[0].scores
    every = {name: np.array([one.scores[name] for one in answers]) for name in names}
    found = {
        name: over_runs(own, SCORES[name].least, SCORES[name].most) for name, own in every.items()
    }
    # Runs that are all alike, or one alone, say nothing of an interval, and nodes do.
    if alike := [name for name, own in every.items() if np.ptp(own) == 0]:
        drawn = answers[0].drawn_scores()
        found |= {name: answers[0].estimate(name, drawn[name]) for name in alike}
    return found


def _classes(said: Answers) -> list[Document]:
    """A row for each class, the label scores with intervals over the nodes."""
    counts, ones = said.counts, np.ones((said.m, 1))
    drawn = said.drawn(lambda weights: {"f1": replace(said, weights=weights).counts.f1})["f1"]
    ranked = {name: one[0] for name, one in said.rankings(ones).items()}
    rows = []
    for j, name in enumerate(said.labels.names):
        size = max(float(counts.support[j]), float(counts.predicted[j]), 1.0)  # what F1 rests on
        scores = {
            "precision": share_of(counts.hits[j], counts.predicted[j]),
            "recall": share_of(counts.hits[j], counts.support[j]),
            "f1": percentiles(float(counts.f1[j]), drawn[:, j], [size]),
        }
        numbers: dict[str, float] = {}
        for kind, one in scores.items():
            numbers |= {kind: one.mean, f"{kind}_low": one.low, f"{kind}_high": one.high}
        numbers |= {kind: values[j] for kind, values in ranked.items()}
        counted = {"support": int(counts.support[j]), "predicted": int(counts.predicted[j])}
        shown = {kind: json_value(float(number)) for kind, number in numbers.items()}
        rows.append({"name": name, **shown, **counted})
    return rows


def _calibration(said: Answers) -> Document:
    """Of what is most probable; and of each class, the rarest first."""
    bins = [vars(one) for one in said.labels.reliability(said.P, said.y)]
    truth = said.labels.indicators(said.y).astype(np.int64)
    rows = []
    for j in np.argsort(truth.sum(0), kind="stable"):
        P, own = said.P[:, [j]], truth[:, [j]]
        share = share_of(float(own.sum()), said.m)
        rows.append(
            {
                "name": said.labels.names[j],
                "nodes": int(own.sum()),
                "mean_probability": float(P.mean()),
                "share": share.mean,
                "low": share.low,
                "high": share.high,
                "error": SeveralLabels(1).calibration_error(P, own),
            }
        )
    return {"error": said.scores["calibration_error"], "bins": bins, "classes": rows}
