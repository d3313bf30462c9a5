"""`evaluate`: measure a result on the test nodes of its own splits, beside baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from gcnii.errors import InputError, notice
from gcnii.files import Document, json_value
from gcnii.graph import Graph
from gcnii.inference.evaluation.baselines import (
    FEATURES,
    MAJORITY,
    baseline,
    baselines_of,
    notes,
)
from gcnii.inference.evaluation.evaluation import Evaluation, Help
from gcnii.inference.evaluation.neighbourhood import groups
from gcnii.inference.evaluation.sentences import Found, help_sentence, warnings_of
from gcnii.inference.evaluation.short import class_names
from gcnii.inference.training_graph import is_training_graph, load_training_graph
from gcnii.targets.answers import Answers, Counts, confusion
from gcnii.targets.calibration import calibration_error, reliability
from gcnii.targets.interval import Estimate, over_runs, percentiles, share_of
from gcnii.targets.objective import positive_class
from gcnii.train.results.result import Result

BOOTSTRAP, RUNS = "bootstrap over nodes", "over runs"
BySplit = Mapping[int, Answers]  # of a baseline


def evaluate(
    result: Result,
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
    baselines  False: the majority alone, which costs nothing
    positive   the class that ROC AUC and average precision are of; default: that of the training,
               or of two classes the one of fewer training nodes
    show       called with words after each run and baseline, `steps` times in all
    """
    if graph is None:
        graph = load_training_graph(result)
    _refuse(result, graph)
    if positive is not None or result.positive is None:
        named = "" if positive is None else str(positive)
        result = replace(result, positive=positive_class(graph, named))
    every = baselines_of(multilabel=graph.multilabel) if baselines else (MAJORITY,)
    found = _measured(result, graph, device, every, show)
    said, answers, beside = found.said, found.answers, found.baselines
    evaluation = Evaluation(
        graph=graph.name,
        model=result.plan.model,
        metric=found.metric,
        positive=result.positive_name,
        runs=tuple(_run(result, i, one) for i, one in enumerate(answers)),
        scores=_estimates(answers),
        interval=BOOTSTRAP if len(answers) == 1 else RUNS,
        split=found.split,
        nodes=said.m,
        classes=tuple(_classes(said, class_names(result))),
        confusion=_confusion(said),
        baselines={name: _estimates([*one.values()]) for name, one in beside.items()},
        differences=found.differences,
        graph_helps=_help(found) if FEATURES in beside else None,
        groups=_groups(found),
        calibration=_calibration(said, class_names(result)),
        notes=tuple(_notes(graph, found)) if baselines else (),
        warnings=tuple(warnings_of(found)),
    )
    for sentence in evaluation.warnings:
        notice(sentence)
    return evaluation


def _measured(
    result: Result,
    graph: Graph,
    device: str,
    names: Iterable[str],
    show: Callable[[str], None],
) -> Found:
    """The answers of each run, of those that predict, and of these baselines."""
    answers = []
    for i, run in enumerate(result.runs):
        answers.append(graded(result.alone(i), graph, device))
        show(f"seed {run.seed}")
    best = result.part(result.predicting())
    said = answers[result.best] if len(best.runs) == 1 else graded(best, graph, device)
    beside = {}
    for name in names:
        beside[name] = _on_splits(name, result, graph)
        show(name)
    metric = result.metric.lower().replace("-", "_").replace(" ", "_")
    return Found(result, graph, best.runs[0].split, said, answers, beside, metric)


def steps(result: Result, *, baselines: bool = True) -> int:
    """How many steps `evaluate` shows."""
    every = baselines_of(multilabel=result.graph.multilabel)
    return len(result.runs) + (len(every) if baselines else 1)


def graded(result: Result, graph: Graph, device: str = "auto") -> Answers:
    """What the runs of one split say of its test nodes."""
    test = graph.splits[result.runs[0].split].test
    P = result.predict_proba(graph, device)[test]
    part = None if graph.part is None else graph.part[test]
    return Answers(P, result.decide(P), graph.labels[test], part, result.positive)


def _refuse(result: Result, graph: Graph) -> None:
    if result.others:
        raise InputError(
            f"the result holds {len(result.plans)} settings; evaluate one of them: "
            f"result.at({result.runs[result.best].setting}).evaluate(), or another"
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


def _on_splits(name: str, result: Result, graph: Graph) -> BySplit:
    """A baseline on each split of the runs."""
    splits = sorted({run.split for run in result.runs})
    said = {split: baseline(name, graph, graph.splits[split]) for split in splits}
    return {split: replace(one, positive=result.positive) for split, one in said.items()}


def _run(result: Result, i: int, answers: Answers) -> Document:
    run = result.runs[i]
    scores = {name: json_value(score) for name, score in answers.scores.items()}
    return {"seed": run.seed, "split": run.split, "nodes": answers.m, **scores}


def _estimates(answers: Sequence[Answers]) -> dict[str, Estimate]:
    """Means with intervals: over the nodes of one, else over all."""
    names = answers[0].scores
    every = {name: np.array([one.scores[name] for one in answers]) for name in names}
    most = {"log_loss": inf}  # the others are shares
    found = {name: over_runs(own, 0.0, most.get(name, 1.0)) for name, own in every.items()}
    # Runs that are all alike, or one alone, say nothing of an interval, and nodes do.
    if alike := [name for name, own in every.items() if np.ptp(own) == 0]:
        drawn = answers[0].drawn_scores()
        found |= {name: answers[0].estimate(name, drawn[name]) for name in alike}
    return found


def _classes(said: Answers, names: Sequence[str]) -> list[Document]:
    """A row for each class, the label scores with intervals over the nodes."""
    counts, ones = said.counts(), np.ones((said.m, 1))
    drawn = said.drawn(lambda weights: {"f1": said.counts(weights).f1})["f1"]
    ranked = {name: one[0] for name, one in said.rankings(ones).items()}
    rows = []
    for j, name in enumerate(names):
        scores = {
            "precision": share_of(counts.hits[j], counts.predicted[j]),
            "recall": share_of(counts.hits[j], counts.support[j]),
            "f1": percentiles(float(counts.f1[j]), drawn[:, j], _size(counts, j)),
        }
        row: Document = {"name": name}
        for kind, one in scores.items():
            ends = {f"{kind}_low": one.low, f"{kind}_high": one.high}
            row |= {place: json_value(float(x)) for place, x in {kind: one.mean, **ends}.items()}
        row |= {kind: json_value(float(values[j])) for kind, values in ranked.items()}
        row |= {"support": int(counts.support[j]), "predicted": int(counts.predicted[j])}
        rows.append(row)
    return rows


def _size(counts: Counts, j: int) -> list[float]:
    """The nodes that the F1 of a class rests on."""
    return [max(float(counts.support[j]), float(counts.predicted[j]), 1.0)]


def _confusion(said: Answers) -> tuple[tuple[int, ...], ...]:
    if said.multilabel:
        return ()
    C = confusion(said.y, said.guess, said.k)
    return tuple(tuple(map(int, row)) for row in C)


def _groups(found: Found) -> dict[str, list[Document]]:
    if found.said.multilabel:
        return {}
    split = found.graph.splits[found.split]
    return groups(found.around, split, np.flatnonzero(split.test), found.said.right)


def _calibration(said: Answers, names: Sequence[str]) -> Document:
    """Of what is most probable; and of each class, the rarest first."""
    bins = [vars(one) for one in reliability(said.P, said.y)]
    truth = said.y if said.multilabel else np.eye(said.k, dtype=np.int64)[said.y]
    rows = []
    for j in np.argsort(truth.sum(0), kind="stable"):
        P, own = said.P[:, [j]], truth[:, [j]]
        share = share_of(float(own.sum()), said.m)
        rows.append(
            {
                "name": names[j],
                "nodes": int(own.sum()),
                "mean_probability": float(P.mean()),
                "share": share.mean,
                "low": share.low,
                "high": share.high,
                "error": calibration_error(P, own),
            }
        )
    return {"error": said.scores["calibration_error"], "bins": bins, "classes": rows}


def _notes(graph: Graph, found: Found) -> list[str]:
    found_out = [*notes(graph, graph.splits[found.split])]
    if found.said.multilabel:
        sentence = "accuracy by degree, homophily and distance is for nodes with one label each"
        found_out.append(sentence)
    return found_out


def _help(found: Found) -> Help:
    difference = found.differences[FEATURES]
    return Help(help_sentence(found, difference), difference)
