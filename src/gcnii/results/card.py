"""card.md: what a bundle is for, what it was measured on, and how it errs (Mitchell et al., 2019).

And its short form at the end of a training.  Both read the scores that are at hand, and have no
baseline but the majority.  Names come from the data, and a card may be shown as HTML: they are
written as plain text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import some_of
from gcnii.files import Document, json_value
from gcnii.graph import Graph
from gcnii.report.tables import markdown_table
from gcnii.results.ensemble import Ensemble
from gcnii.results.result import KEPT, Result, Trained
from gcnii.targets import Target
from gcnii.targets.scores import (
    ClassCounts,
    confusion,
    frequent_confusions,
    mean_and_spread,
    percent,
)
from gcnii.targets.target import FEW, LEAST, Floats, error_left
from gcnii.train.recipe import Recipe

COMMON = 0.75  # of an equal share of the nodes, above which a class is not rare
WEIGH = "--class-weight balanced (in Python, class_weight='balanced')"


@dataclass(frozen=True)
class ShortForm:
    """The mean over the runs, each on the test nodes of its own split.

    measured  what score and majority are: accuracy, or micro-F1 with several labels per node
    majority  the same, if each node has what most training and validation nodes have
    balanced_accuracy   None where a node can have several labels
    calibration   a sentence, where few validation nodes calibrate the probabilities
    """

    score: float
    majority: float
    balanced_accuracy: float | None
    macro_f1: float
    warnings: tuple[str, ...]
    calibration: str | None = None
    measured: str = "accuracy"

    def document(self) -> Document:
        return {name: json_value(value) for name, value in vars(self).items() if value is not None}

    def lines(self) -> list[str]:
        shown = [f"{self.measured} {percent(self.score)} (majority {percent(self.majority)})"]
        if self.balanced_accuracy is not None:
            shown.append(f"balanced accuracy {percent(self.balanced_accuracy)}")
        shown.append(f"macro-F1 {percent(self.macro_f1)}")
        words = [f"warning: {sentence}" for sentence in self.warnings]
        return [" · ".join(shown), *words, *filter(None, [self.calibration])]


def short_form(result: Trained, device: str = "auto") -> ShortForm | None:
    """The short form of what has just been trained; None where nothing is tested."""
    graph = result.trained_on
    if graph is None or result.refitted or (isinstance(result, Result) and result.others):
        return None
    rows = [*range(len(result.runs))]
    if len(rows) * graph.n * graph.k > KEPT:
        rows = result.predicting()
    rows = [i for i in rows if graph.splits[result.runs[i].split].test.any()]
    if not rows:
        return None
    result, counts, majority = result.scored(graph, device), [], []
    for i in rows:
        split = graph.splits[result.runs[i].split]
        guess = result.alone(i).predict_ids(graph, device)[split.test]
        y, target = graph.labels[split.test], result.target
        counts.append(target.counts(y, guess))
        known = graph.labels[split.train | split.val]
        usual = np.broadcast_to(target.usual(known), guess.shape)
        majority.append(target.counts(y, usual).micro_f1)
    return _summary(result, counts, majority)


def _summary(
    result: Trained, counts: Sequence[ClassCounts], majority: Sequence[float]
) -> ShortForm:
    target = result.target
    score, usual = float(np.mean([one.micro_f1 for one in counts])), float(np.mean(majority))
    balanced = None
    if target.exclusive:
        balanced = float(np.mean([one.balanced_accuracy for one in counts]))
    never = np.sum([one.predicted for one in counts], 0) == 0
    there = np.mean([one.support for one in counts], 0)
    recipe = result.recipe
    sentences = [never_predicted(target, never, there, recipe)]
    sentences.append("" if score > usual else unbeaten(score, usual, balanced, recipe))
    warnings = tuple(filter(None, sentences))
    macro_f1 = float(np.mean([one.macro_f1 for one in counts]))
    few = few_validation_nodes(result) or None
    measured = target.score("auto").name
    return ShortForm(score, usual, balanced, macro_f1, warnings, few, measured)


def few_validation_nodes(result: Trained) -> str:
    """A warning if few nodes calibrate the probabilities; else empty."""
    best, graph = result.runs[result.best], result.trained_on
    if graph is None or result.refitted:
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


def never_predicted(target: Target, never: NDArray[np.bool_], there: Floats, recipe: Recipe) -> str:
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
    """The card as Markdown; without the graph of the training it has no part on errors."""
    graph = result.trained_on
    device = "cuda" if result.device.startswith("cuda") else "cpu"
    if graph is not None:
        result = result.scored(graph, device)
    parts = [_title(result), _purpose(result), _scores(result, device)]
    tested = graph is not None and graph.splits[_split(result)].test.any()
    if graph is not None and tested and not result.refitted:
        parts.append(_errors(result, graph, device))
    if isinstance(result, Ensemble):
        parts.append(_members(result))
    parts += [_trust(result), _made(result)]
    return "\n".join(line for part in parts for line in (*part, "")).rstrip() + "\n"


def plain(name: object) -> str:
    """A name as text that is neither Markdown nor HTML, on one line."""
    text = "".join(" " if unicodedata.category(sign)[0] == "C" else sign for sign in str(name))
    return MARKUP.sub(r"\\\1", text).replace("\\<", "&lt;").replace("\\&", "&amp;")


def _split(result: Trained) -> int:
    return result.runs[result.best].split


def _title(result: Trained) -> list[str]:
    return [
        f"# {plain(result.title)}, on {plain(result.origin.name)}",
        "",
        f"A node classifier: {plain(result.title)}, trained by gcnii.",
    ]


def _purpose(result: Trained) -> list[str]:
    graph, names = result.origin, result.target.names
    kind = result.target.described
    listed = ", ".join(map(plain, names[:MOST_CLASSES])) + (", …" * (graph.k > MOST_CLASSES))
    return [
        "## What it is for",
        "",
        f"To label the nodes of {plain(graph.name)} ({graph.n:,} nodes, {graph.d:,} features), and "
        "nodes that join it and are like them.",
        "",
        f"- {graph.k} {kind}: {listed}.",
        "- Not for graphs whose features or classes mean something else, and not for nodes of "
        "another kind than those it was measured on.",
        "- What it learnt from the labels, mistakes and prejudice among them, it repeats. Where "
        "labels decide about people, let people check them.",
    ]


def _scores(result: Trained, device: str) -> list[str]:
    splits = len({run.split for run in result.runs})
    runs = "1 run" if len(result.runs) == 1 else f"{len(result.runs)} runs"
    on = "1 split" if splits == 1 else f"{splits} splits"
    lines = [
        "## What it was measured on",
        "",
        f"Test nodes that had no part in training or in its choice, {runs} on {on}. In %: "
        f"{plain(result.measured)} {mean_and_spread(result.test)}.",
    ]
    if result.refitted:
        lines += [
            "",
            "This was measured before it was trained on every label, those of the test nodes among "
            "them. Weights, temperatures and numbers of epochs are those of the training that was "
            "measured.",
        ]
    if short := short_form(result, device):
        lines += ["", f"In comparison: {short.lines()[0]}."]
        for sentence in short.warnings:
            lines += ["", f"Warning: {plain(sentence)}."]
    return lines


def _errors(result: Trained, graph: Graph, device: str) -> list[str]:
    """By class, of what `predict` answers on the split of the runs that predict."""
    test = graph.splits[_split(result)].test
    P = result.part(result.predicting()).predict_proba(graph, device)[test]
    y, guess = graph.labels[test], result.decide(P)
    counts, names = result.target.counts(y, guess), result.target.names
    order = np.argsort(np.where(counts.support > 0, counts.recall, np.inf), kind="stable")
    few = f", the {MOST_CLASSES} that are found least often" if graph.k > MOST_CLASSES else ""
    found, right = counts.recall, counts.precision
    rows = [
        (plain(names[j]), f"{counts.support[j]:.0f}", percent(found[j]), percent(right[j]))
        for j in sorted(order[:MOST_CLASSES])
    ]
    mistakes = []
    if result.target.exclusive:
        C = confusion(y, guess, graph.k).astype(np.int64)
        mistakes = [
            f"- True class {plain(names[i])}, labelled {plain(names[j])}: {nodes} nodes."
            for i, j, nodes in frequent_confusions(C, MOST_CONFUSIONS)
        ]
    error, rarest = result.target.calibration_error(P, y), int(counts.support.argmin())
    mean, share = P[:, rarest].mean(), counts.support[rarest] / len(y)
    return [
        "## How it errs",
        "",
        f"On the {test.sum():,} test nodes of split {_split(result)}{few}:",
        "",
        markdown_table(("class", "nodes", "found", "right if predicted"), rows).rstrip(),
        "",
        *mistakes,
        f"- Expected calibration error there (15 bins): {error:.3f}.",
        f"- Of the rarest, {plain(names[rarest])}, the mean probability is {percent(mean)} %, and "
        f"{percent(share)} % of the nodes are of it.",
    ]


def board(ensemble: Ensemble) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The heads and the rows of the leaderboard, as texts."""
    rows: list[tuple[str, ...]] = [
        (
            row["member"],
            row["sees"],
            "" if row["val"] is None else percent(row["val"]),
            "" if row["val_loss"] is None else f"{row['val_loss']:.3f}",
            f"{row['weight']:.2f}",
            f"{row['seconds']:.1f}",
        )
        for row in ensemble.leaderboard()
    ]
    return ("member", "sees", "val", "log loss", "weight", "seconds"), rows


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


def _members(ensemble: Ensemble) -> list[str]:
    heads, rows = board(ensemble)
    table = markdown_table(heads, [tuple(map(plain, row)) for row in rows]).rstrip()
    return [
        "## Members",
        "",
        f"{how_weighed(ensemble)} In the table, val is {plain(ensemble.measured)} in % there, "
        "which flatters the ensemble a little, because it was combined by these nodes.",
        "",
        table,
        *(["", *(f"- {plain(one)}." for one in ensemble.left_out)] if ensemble.left_out else []),
    ]


def _trust(result: Trained) -> list[str]:
    T, graph, few = result.runs[result.best].temperature, result.trained_on, ""
    if T is None:
        words = "They are not calibrated: no temperature was looked for on validation nodes."
    else:
        words = f"Scores are divided by a temperature first, in the best run {T:.3g}."
        if isinstance(result, Ensemble):
            words = (
                "The probabilities of each member are calibrated, and so is their weighted mean, "
                f"by a temperature of {T:.3g}."
            )
        if result.runs[result.best].weights is not None:
            words += " What the training weighed the classes by is undone in probabilities alone."
        if graph is not None and not result.refitted:
            nodes = int(result.held_out(graph).sum())
            what = "Weights and temperature were" if isinstance(result, Ensemble) else "It was"
            words += f" {what} found on {nodes:,} validation nodes."
        few = few_validation_nodes(result)
    return ["## How far to trust its probabilities", "", words, *(["", few] if few else [])]


def _made(result: Trained) -> list[str]:
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
    rows = [(plain(name), plain(one)) for name, one in facts.items() if one is not None]
    return ["## How it was made", "", markdown_table(("what", "value"), rows).rstrip()]
