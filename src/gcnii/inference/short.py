"""The short form at the end of a training: three scores beside accuracy, and two warnings.

It reads the scores that are at hand, and has no baseline but the majority.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import some_of
from gcnii.files import Document, json_value
from gcnii.results.outputs import KEPT
from gcnii.results.result import Result
from gcnii.targets import Target
from gcnii.targets.scores import Counts, percent
from gcnii.targets.target import FEW, LEAST, Floats, error_left
from gcnii.train.recipe import Recipe

COMMON = 0.75  # of an equal share of the nodes, above which a class is not rare
WEIGH = "--class-weight balanced (in Python, class_weight='balanced')"


@dataclass(frozen=True)
class ShortForm:
    """The mean over the runs, each on the test nodes of its own split.

    measured  what score and majority are: accuracy, or micro-F1 with several labels per node
    majority  the same, if each node has the labels that most training nodes have
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
        """As JSON."""
        return {name: json_value(value) for name, value in vars(self).items() if value is not None}

    def lines(self) -> list[str]:
        """For the terminal."""
        shown = [f"{self.measured} {percent(self.score)} (majority {percent(self.majority)})"]
        if self.balanced_accuracy is not None:
            shown.append(f"balanced accuracy {percent(self.balanced_accuracy)}")
        shown.append(f"macro-F1 {percent(self.macro_f1)}")
        words = [f"warning: {sentence}" for sentence in self.warnings]
        return [" · ".join(shown), *words, *filter(None, [self.calibration])]


def short_form(result: Result, device: str = "auto") -> ShortForm | None:
    """The short form of what has just been trained; None where nothing is tested."""
    graph = result.trained_on
    if graph is None or result.others:
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
        usual = np.broadcast_to(target.usual(graph.labels[split.train]), guess.shape)
        majority.append(target.counts(y, usual).micro_f1)
    return _summary(result, counts, majority)


def _summary(result: Result, counts: Sequence[Counts], majority: Sequence[float]) -> ShortForm:
    target = result.target
    score, usual = float(np.mean([one.micro_f1 for one in counts])), float(np.mean(majority))
    balanced = None
    if target.exclusive:
        balanced = float(np.mean([one.balanced_accuracy for one in counts]))
    never = np.sum([one.predicted for one in counts], 0) == 0
    there = np.mean([one.support for one in counts], 0)
    recipe = result.plan.recipe
    sentences = [never_predicted(target, never, there, recipe)]
    sentences.append("" if score > usual else unbeaten(score, usual, balanced, recipe))
    warnings = tuple(filter(None, sentences))
    macro_f1 = float(np.mean([one.macro_f1 for one in counts]))
    few = few_validation_nodes(result) or None
    measured = target.score("auto").name
    return ShortForm(score, usual, balanced, macro_f1, warnings, few, measured)


def few_validation_nodes(result: Result) -> str:
    """What is left to doubt in probabilities if few nodes calibrate them; else empty."""
    best, graph = result.runs[result.best], result.trained_on
    nodes = FEW if graph is None else int(graph.splits[best.split].val.sum())
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
