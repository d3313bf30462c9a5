"""How an epoch's time and memory grow in nodes, entries, layers and width, on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from gcnii.files import NOTHING, Document
from gcnii_paper.bench.scale.launch import launch
from gcnii_paper.bench.scale.single import Training

MODULE = "gcnii_paper.bench.scale.single"
ANSWER = {"best": float, "peak_bytes": (int, NOTHING), "rates": dict, "size": dict}
# The point that all lines go through: nodes, links of a node, layers and width.
BASE = {"n": 10_000, "degree": 10, "layers": 8, "width": 64}
STEPS = {
    "n": (5_000, 10_000, 20_000, 40_000),
    "degree": (5, 10, 20, 40),
    "layers": (4, 8, 16, 32),
    "width": (32, 64, 128, 256),
}
# Trainings to hold a plan against.
PLANNED = (
    Training(graph="cora", layers=64, width=64),
    Training(graph="pubmed", layers=16, width=256),
    Training(graph="amazon-photo", layers=8, width=128),
    Training(graph="coauthor-cs", layers=4, width=64),
    Training(graph="csbm", layers=8, width=64, parameters={"n": 200_000, "degree": 10}),
)
DRAWN = {"classes": 10, "features": 64}


def grown() -> Iterator[Document]:
    """Each of the four, the others as in BASE."""
    for what, values in STEPS.items():
        for value in values:
            point = BASE | {what: value}
            layers, width = point.pop("layers"), point.pop("width")
            found = measured(Training(graph="csbm", layers=layers, width=width, parameters=point))
            amount = found["size"]["entries"] if what == "degree" else value
            yield {"what": "entries" if what == "degree" else what, "value": amount, **found}


def planned() -> Iterator[Document]:
    """What the trainings of PLANNED took, and the rates of this CPU beside them."""
    return map(measured, PLANNED)


def measured(training: Training) -> Document:
    """In a process of its own."""
    order = asdict(training)
    order["parameters"] |= DRAWN if training.graph == "csbm" else {}
    return launch(MODULE, order, ANSWER)
