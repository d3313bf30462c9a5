"""Evaluation: all that was measured of a model's answers, as a value that prints itself."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.console import Console, Group

from gcnii.files import Document, json_value
from gcnii.targets.interval import Estimate

WIDE = 1000  # columns, more than any table needs
Scores = Mapping[str, Estimate]


@dataclass(frozen=True)
class Help:
    """Whether the graph helps: the model's score less that of the features alone, paired."""

    sentence: str
    difference: Estimate

    def document(self) -> Document:
        """As JSON."""
        own = self.difference.document()
        return {"sentence": self.sentence, "difference": own.pop("mean"), **own}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What is known about the errors of a model on its test nodes.

    metric     the score that the training was judged by, a key of `scores`
    positive   the class that ROC AUC and average precision are of; None: the mean over all
    runs       the scores of each run, on the test nodes of its own split
    scores     their means, each with a 95 % interval
    interval   what it is over: "bootstrap over nodes" of one run, else "over runs"
    split, nodes   the split of the runs that predict, and how many test nodes it has; what follows
               is of what they predict there
    classes    precision, recall, F1 …, of each class, with intervals over the nodes
    confusion  rows are true classes, columns predicted ones; empty if a node can have several
    baselines  the same scores of the majority, the features alone, the graph alone, and trees
    differences   the score that the training was judged by, less that of each baseline, paired
    groups     accuracy by degree, by homophily of the neighbourhood, by distance to a training node
    calibration   how often a probability is right; of each class, the rarest first: its mean
               probability and its share of the nodes
    """

    graph: str
    model: str
    metric: str
    runs: tuple[Document, ...]
    scores: Scores
    interval: str
    split: int
    nodes: int
    classes: tuple[Document, ...]
    confusion: tuple[tuple[int, ...], ...]
    baselines: Mapping[str, Scores]
    graph_helps: Help | None
    groups: Mapping[str, list[Document]]
    calibration: Document
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    positive: str | None = None
    differences: Scores = field(default_factory=dict)

    def document(self) -> Document:
        """As JSON."""
        plain = {name: json_value(value) for name, value in vars(self).items()}
        return plain | {
            "scores": _documents(self.scores),
            "differences": _documents(self.differences),
            "baselines": {name: _documents(one) for name, one in self.baselines.items()},
            "graph_helps": self.graph_helps and self.graph_helps.document(),
        }

    def tables(self) -> Group:
        """What the terminal shows: tables and sentences, but for the warnings."""
        from gcnii.inference.evaluation.tables import tables

        return Group(*tables(self))

    def __str__(self) -> str:
        """The tables as text, and the warnings."""
        console = Console(file=io.StringIO(), width=WIDE, color_system=None, highlight=False)
        with console.capture() as captured:
            console.print(self.tables())
        lines = (line.rstrip() for line in captured.get().splitlines())
        return "\n".join((*lines, *(f"warning: {one}" for one in self.warnings)))

    def __repr__(self) -> str:
        """One line."""
        from gcnii.inference.evaluation.tables import called, cell

        own = self.metric
        score = f"{called(self, own)} {cell(own, self.scores[own])}"
        count = f", {len(self.warnings)} warnings" if self.warnings else ""
        return f"Evaluation({self.model} on {self.graph}: {score}{count})"


def _documents(scores: Scores) -> Document:
    return {name: one.document() for name, one in scores.items()}
