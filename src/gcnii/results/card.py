"""card.md: what a bundle is for, what it was measured on, and how it errs (Mitchell et al., 2019).

And its short form at the end of a training.  Both read the scores that are at hand, and have no
baseline but the majority.  Names come from the data, and a card may be shown as HTML: they are
written as plain text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from gcnii.errors import some_of, visible
from gcnii.files import Document, json_value
from gcnii.graph import Graph
from gcnii.report.tables import markdown_table
from gcnii.results.ensemble import BESIDE, Ensemble
from gcnii.results.outputs import KEPT
from gcnii.results.result import Result
from gcnii.results.trained import Trained
from gcnii.targets import LabelTarget
from gcnii.targets.objective import scarce_class
from gcnii.targets.scores import (
    SCORES,
    Answers,
    confusion,
    frequent_confusions,
    mean_and_spread,
    percent,
)
from gcnii.targets.target import FEW, LEAST, Bools, Floats, error_left
from gcnii.train.recipe import Recipe

IN_SHORT = ("average_precision", *BESIDE)  # where one of two classes is rare
RATES = ("precision", "recall")
CHANCES, BEYOND = 200, 0.975  # orders of the labels, and the share that a score must be above
COMMON = 0.75  # of an equal share of the nodes, above which a class is not rare
WEIGH = "--class-weight balanced (in Python, class_weight='balanced')"


@dataclass(frozen=True)
class ShortForm:
    """The mean over the runs, each on the test nodes of its own split.

    measured  what score and majority are: accuracy, or micro-F1 with several labels per node
    majority  the same, if each node has what most training and validation nodes have
    balanced_accuracy   None where a node can have several labels
    calibration   a sentence, where few validation nodes calibrate the probabilities
    found     of one of two classes, by its threshold: accuracy, ROC AUC, precision, recall, …
    first     of a rare class, what is said before anything else: that it is not found, or that
              naming the other one is as good
    """

    score: float
    majority: float
    balanced_accuracy: float | None
    macro_f1: float
    warnings: tuple[str, ...]
    calibration: str | None = None
    measured: str = "accuracy"
    found: Document | None = None
    first: str = ""

    def document(self) -> Document:
        known = {name: one for name, one in vars(self).items() if one not in (None, "")}
        return {name: json_value(value) for name, value in known.items()}

    def lines(self) -> list[str]:
        shown = [f"{self.measured} {percent(self.score)} (majority {percent(self.majority)})"]
        if self.found:
            beside = [name for name in IN_SHORT if not self.measured.startswith(SCORES[name].name)]
            shown += [f"{SCORES[name].name} {percent(self.found[name])}" for name in beside]
        if self.balanced_accuracy is not None:
            shown.append(f"balanced accuracy {percent(self.balanced_accuracy)}")
        if self.measured != "macro-F1":
            shown.append(f"macro-F1 {percent(self.macro_f1)}")
        words = [f"warning: {sentence}" for sentence in self.warnings if sentence != self.first]
        flagged = [flagged_sentence(self.found)] if self.found else []
        return [" · ".join(shown), *flagged, *words, *filter(None, [self.calibration])]


def short_form(result: Trained, device: str = "auto") -> ShortForm | None:
    """The short form of what has just been trained; None where nothing is tested."""
    graph = result.trained_on
    if graph is None or result.refitted or (isinstance(result, Result) and result.others):
        return None
    if not isinstance(result.target, LabelTarget):
        return None
    rows = [*range(len(result.runs))]
    if len(rows) * graph.n * graph.k > KEPT:
        rows = result.predicting()
    rows = [i for i in rows if graph.splits[result.runs[i].split].test.any()]
    if not rows:
        return None
    result, target, recipe = result.scored(graph, device), result.label_target, result.recipe
    said = [result.alone(i).graded(graph, device) for i in rows]
    usual = [_usual(own, graph, result.runs[i].split) for own, i in zip(said, rows, strict=True)]
    metric = target.score(recipe.scored_by if result.by_threshold else "auto")
    score, majority = _mean(said, metric.key), _mean(usual, metric.key)
    balanced = _mean(said, "balanced_accuracy") if target.exclusive else None
    never = np.sum([one.counts.predicted for one in said], 0) == 0
    there = np.mean([one.counts.support for one in said], 0)
    found = None
    if result.by_threshold:
        ours = [i for i in result.predicting() if i in rows] or rows[:1]
        found = _found(result, said, result.part(ours).graded(graph, device), metric.key)
    lost = never_predicted(target, never, there, recipe)
    if found:
        worse = found["unbeaten"]
    else:
        worse = "" if score > majority else unbeaten(score, majority, balanced, recipe)
    sentences = (worse, lost) if found else (lost, worse)
    return ShortForm(
        score,
        majority,
        balanced,
        _mean(said, "macro_f1"),
        tuple(filter(None, sentences)),
        few_validation_nodes(result) or None,
        result.measured if found else metric.name,
        found,
        worse if found or scarce_class(graph) is not None else "",
    )


def _mean(each: Sequence[Answers], name: str) -> float:
    return float(np.mean([one.score(name) for one in each]))


def _usual(said: Answers, graph: Graph, split: int) -> Answers:
    """The same, if each node had what most training and validation nodes have."""
    known = graph.splits[split].train | graph.splits[split].val
    shares = np.tile(said.labels.indicators(graph.labels[known]).mean(0), (said.m, 1))
    return replace(said, P=shares, guess=said.labels.decided(shares))


def _found(result: Trained, said: Sequence[Answers], together: Answers, metric: str) -> Document:
    """What the threshold finds of one of two classes.

    said      of each run; scores are their means
    together  of the mean of the runs that predict, to which `predict` applies the threshold
    """
    j = result.positive
    assert j is not None
    return {
        "class": result.positive_name,
        "threshold": result.threshold_of(j),
        **{name: _mean(said, name) for name in IN_SHORT},
        **{kind: json_value(float(getattr(together.counts, kind)[j])) for kind in RATES},
        "flagged": 1000 * float((together.guess == j).mean()),
        "unbeaten": nothing_found(result.measured, metric, said),
    }


def nothing_found(measured: str, metric: str, said: Sequence[Answers]) -> str:
    """That a rare class cannot be told from the other, if the test nodes cannot show that it can.

    An average precision above the share of the class may be luck: of few nodes it is higher by
    chance.  So the score must be above nearly all that the same answers have if labels are drawn in
    another order.

    said  of each run, on its own test nodes
    """
    random = np.random.default_rng(0)
    by_chance = np.zeros((len(said), min(CHANCES, said[0].ranking_draws)))
    for drawn, own in zip(by_chance, said, strict=True):
        for i in range(len(drawn)):
            other = replace(own, y=random.permutation(own.y))
            drawn[i] = other.score(metric)
    score = _mean(said, metric)
    if score > np.nanquantile(by_chance, BEYOND):
        return ""
    return (
        f"Nothing found: {measured} {percent(score)} is not above what chance gives, "
        f"{percent(float(np.nanmean(by_chance)))} on average, on {said[0].m:,} test nodes; columns "
        "that tell the classes apart, other edges or more labels are needed"
    )


def flagged_sentence(found: Document) -> str:
    """What the threshold does with a thousand nodes like the test nodes."""
    return (
        f"{visible(found['class'])} above {percent(found['threshold'])} %: of 1,000 nodes "
        f"{found['flagged']:.0f} are flagged, {_or_none(found['precision'])} % of them correctly, "
        f"and {_or_none(found['recall'])} % of the class is found"
    )


def _or_none(score: float | None) -> str:
    return "–" if score is None else percent(score)


def few_validation_nodes(result: Trained) -> str:
    """A warning if few nodes calibrate the probabilities; else empty."""
    best, graph = result.runs[result.best], result.trained_on
    if graph is None or result.refitted or not isinstance(result.target, LabelTarget):
        return ""
    nodes = int(result.held_out(graph).sum())
    if nodes >= FEW:
        return ""
    if nodes < LEAST:
        return (
            f"The probabilities are not calibrated: that takes {LEAST} validation nodes or more, "
            f"and there {'is' if nodes == 1 else 'are'} {nodes}."
        )
    if best.temperature is None:
        return ""
    # Of other scores than accuracy, the widest error is named.
    right = round(best.val * nodes) if result.metric == "accuracy" else nodes // 2
    return (
        f"The probabilities are calibrated by {nodes} validation nodes: from so few they can be "
        f"off by ± {error_left(right, nodes):.2f}; label more nodes for validation."
    )


def never_predicted(
    target: LabelTarget, never: NDArray[np.bool_], there: Floats, recipe: Recipe
) -> str:
    """A warning of classes that have a test node and are predicted for none; "" if there are none.

    there   (k,) the test nodes of each class, the mean over the runs
    recipe  of the training, whose settings are not advised again
    """
    lost = np.flatnonzero(never & (there >= 0.5)).tolist()
    if not lost:
        return ""
    which = f"{target.words[len(lost) > 1]} {some_of([target.names[j] for j in lost])}"
    are, have = ("is", "has it") if len(lost) == 1 else ("are", "have them")
    nodes = there[lost].sum()
    have = have if len(lost) > 1 or nodes == 1 else "have it"
    todo = f"label more nodes of {'it' if len(lost) == 1 else 'them'}"
    if target.exclusive and (there[lost] > COMMON * there.sum() / len(there)).all():
        todo = "search better settings with `gcnii tune`"
    elif recipe.class_weight == "none":
        todo = f"weigh rare classes in training: {WEIGH}"
    return (
        f"{which} {are} never predicted, though {nodes:,.0f} test "
        f"{'node' if nodes == 1 else 'nodes'} {have}; {todo}"
    )


def unbeaten(score: float, majority: float, balanced: float | None, recipe: Recipe) -> str:
    """A warning that the largest class alone does as well, as far as the test nodes can tell."""
    beat = "clearly beat" if score > majority else "beat"
    if balanced is None:
        return (
            f"micro-F1 {percent(score)} does not {beat} giving all nodes the most frequent labels "
            f"({percent(majority)}); look at the table by label"
        )
    return (
        f"accuracy {percent(score)} does not {beat} naming the largest class for every node "
        f"({percent(majority)}); go by balanced accuracy ({percent(balanced)}){_todo(recipe)}"
    )


def _todo(recipe: Recipe) -> str:
    """What may find more of the rare classes, of what the training has not been told already."""
    if recipe.class_weight != "none":
        return ", which weighed classes are for"
    other = " or --metric f1" if recipe.scored_by in ("auto", "accuracy") else ""
    return f" and train with {WEIGH}{other}"


MOST_CLASSES = 20  # in the table; of more, those that are found least often
MOST_CONFUSIONS = 3
MARKUP = re.compile(r"([\\`*_{}\[\]<>|&~$])")


def card(result: Trained) -> str:
    """The card as Markdown; without the training graph it has no part on errors."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    graph, best = result.trained_on, result.runs[result.best]
    device = "cuda" if result.device.startswith("cuda") else "cpu"
    held_out = errors = short = None
    if graph is not None:
        result = result.scored(graph, device)
        short = short_form(result, device)
    if graph is not None and not result.refitted:
        held_out = int(result.held_out(graph).sum())
        test = graph.splits[best.split].test
        labels = isinstance(result.target, LabelTarget)
        errors = _errors(result, graph, test, device) if test.any() and labels else None
    ensemble = result if isinstance(result, Ensemble) else None
    templates = Environment(
        loader=PackageLoader("gcnii.results"),
        autoescape=True,
        finalize=lambda value: Markup(plain(value)) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return templates.get_template("card.md").render(
        result=result,
        best=best,
        origin=result.origin,
        target=result.target,
        labels=isinstance(result.target, LabelTarget),
        most=MOST_CLASSES,
        runs=len(result.runs),
        splits=len({run.split for run in result.runs}),
        test=mean_and_spread(result.test, result.score),
        short=short,
        errors=errors,
        held_out=held_out,
        few=few_validation_nodes(result),
        board=ensemble and board(ensemble),
        how_weighed=ensemble and how_weighed(ensemble),
        made=_made(result),
        table=_table,
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    return Markup(markdown_table(heads, [tuple(map(plain, row)) for row in rows]).rstrip())


def plain(name: object) -> str:
    """A name as text that is neither Markdown nor HTML, on one line."""
    text = "".join(" " if unicodedata.category(sign)[0] == "C" else sign for sign in str(name))
    return MARKUP.sub(r"\\\1", text).replace("\\<", "&lt;").replace("\\&", "&amp;")


def _errors(result: Trained, graph: Graph, test: Bools, device: str) -> Document:
    """By class, of what `predict` answers on the split of the runs that predict."""
    P = result.part(result.predicting()).predict_proba(graph, device)[test]
    y, guess = graph.labels[test], result.decide(P)
    counts, names = result.label_target.counts(y, guess), result.label_target.names
    order = np.argsort(np.where(counts.support > 0, counts.recall, np.inf), kind="stable")
    found, right, nodes = counts.recall, counts.precision, counts.support
    mistakes = []
    if result.label_target.exclusive:
        C = confusion(y, guess, graph.k).astype(np.int64)
        frequent = frequent_confusions(C, MOST_CONFUSIONS)
        mistakes = [(names[i], names[j], count) for i, j, count in frequent]
    rarest = int(nodes.argmin())
    return {
        "nodes": len(y),
        "rows": [
            (names[j], f"{nodes[j]:.0f}", percent(found[j]), percent(right[j]))
            for j in sorted(order[:MOST_CLASSES])
        ],
        "mistakes": mistakes,
        "calibration": result.label_target.calibration_error(P, y),
        "rarest": names[rarest],
        "mean": percent(P[:, rarest].mean()),
        "share": percent(nodes[rarest] / len(y)),
    }


def board(ensemble: Ensemble) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The heads and the rows of the leaderboard, as texts."""
    rows: list[tuple[str, ...]] = [
        (
            row["member"],
            row["sees"],
            "" if row["val"] is None else ensemble.score.shown(row["val"]),
            *(percent(row[name]) for name in BESIDE if name in row),
            "" if row["val_loss"] is None else f"{row['val_loss']:.3f}",
            f"{row['weight']:.2f}",
            f"{row['seconds']:.1f}",
        )
        for row in ensemble.leaderboard()
    ]
    loss = "log loss" if isinstance(ensemble.target, LabelTarget) else "1 - R²"
    beside = [SCORES[name].name for name in BESIDE] if ensemble.beside else []
    return ("member", "sees", "val", *beside, loss, "weight", "seconds"), rows


def how_weighed(ensemble: Ensemble) -> str:
    """What the weights were chosen on."""
    runs = len(ensemble.blends[ensemble.best].rows)
    if not ensemble.folds:
        own = ", those of each split on its own" if len(ensemble.blends) > 1 else ""
        return f"Weights were chosen on the validation nodes{own}; test nodes had no part in it."
    times = "once, with one" if runs == 1 else f"{runs} times, each time with another"
    return (
        f"The labelled nodes that are not test nodes were divided into {ensemble.folds} folds, and "
        f"each member was trained {times} fold held out. Weights were chosen on the nodes held "
        "out; test nodes had no part in it."
    )


def _made(result: Trained) -> list[tuple[str, object]]:
    made = result.made or {}
    seeds = ", ".join(str(run.seed) for run in result.runs[:MOST_CLASSES])
    more = ", …" if len(result.runs) > MOST_CLASSES else ""
    facts = {
        "command": made.get("command"),
        "git state": made.get("git"),
        "graph": f"{result.origin.source or 'made in Python'} ({result.origin.fingerprint})",
        "seeds": seeds + more,
        "device": result.device,
        **{f"version of {name}": one for name, one in made.get("versions", {}).items()},
        **{name: json_value(one) for name, one in sorted(result.in_force().items())},
    }
    return [(name, one) for name, one in facts.items() if one is not None]
