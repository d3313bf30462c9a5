"""What is predicted: its loss, scores, probabilities, calibration and prediction sets."""

from __future__ import annotations

from typing import Protocol

from gcnii.targets.classes import Classes as Classes
from gcnii.targets.labels import SeveralLabels as SeveralLabels
from gcnii.targets.target import Target as Target


class Labelled(Protocol):
    """A graph, or what a bundle remembers of one."""

    @property
    def k(self) -> int:
        """Number of classes, or of labels if a node can have several."""

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Their names."""

    @property
    def multilabel(self) -> bool:
        """Whether a node can have several labels."""


def target_of(graph: Labelled) -> Target:
    """What is predicted of the nodes of a graph."""
    return (SeveralLabels if graph.multilabel else Classes)(graph.k, graph.classes)
