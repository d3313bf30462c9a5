"""What is predicted: its loss, scores, probabilities, calibration and prediction sets; numbers."""

from typing import Protocol

from gcnii.targets.numbers import Loss
from gcnii.targets.numbers import Numbers as Numbers
from gcnii.targets.target import Classes as Classes
from gcnii.targets.target import LabelTarget as LabelTarget
from gcnii.targets.target import SeveralLabels as SeveralLabels
from gcnii.targets.target import Target as Target
from gcnii.targets.target import as_labels as as_labels


class Labelled(Protocol):
    """A graph, or what a bundle remembers of one."""

    @property
    def k(self) -> int:
        """Number of classes, of labels if a node can have several, or of numbers to predict."""

    @property
    def classes(self) -> tuple[str, ...] | None: ...

    @property
    def multilabel(self) -> bool:
        """Whether a node can have several labels."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of numbers to predict, in the place of classes."""


def target_of(graph: Labelled, loss: Loss = "squared") -> Target:
    """What is predicted of the nodes of a graph; `loss` is that of numbers."""
    if graph.targets:
        return Numbers(graph.k, graph.targets, loss)
    return (SeveralLabels if graph.multilabel else Classes)(graph.k, graph.classes)


def label_target_of(graph: Labelled, what: str = "this is") -> LabelTarget:
    """The same, of a graph that has labels; else InputError: `what` is for classes alone."""
    return as_labels(target_of(graph), what)
