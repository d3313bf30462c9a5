"""The demo: over-smoothing on a graph that needs no download.  Under a minute on two cores.

A plain GCN is good with 2 layers and guesses with 64; GCNII is as good with 64 as with 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gcnii.data import load
from gcnii.train.fit import EpochReport, fit
from gcnii.train.result import Result

DEPTHS = (2, 4, 8, 16, 32, 64)
EPOCHS = 60  # enough for every depth: the validation loss of GCNII is flat by then


class Step(NamedTuple):
    """One training of the demo."""

    model: str
    layers: int

    @property
    def title(self) -> str:
        """As it stands in the table."""
        return f"{NAMES[self.model]}, {self.layers} layers"


NAMES = {"gcnii": "GCNII", "deep-gcn": "GCN"}
STEPS = tuple(Step(model, layers) for layers in DEPTHS[::-1] for model in NAMES)
MAIN = (Step("gcnii", 64), Step("deep-gcn", 2), Step("deep-gcn", 64))  # the rows of the table


def run(
    step: Step, device: str = "auto", on_epoch: Callable[[EpochReport], None] | None = None
) -> Result:
    """Train one of STEPS on `digits`."""
    return fit(
        load("digits"),
        step.model,
        layers=step.layers,
        epochs=EPOCHS,
        device=device,
        on_epoch=on_epoch,
    )


def sweeps(results: dict[Step, Result]) -> Iterator[tuple[str, list[Result]]]:
    """For each model its results by depth."""
    for model, name in NAMES.items():
        yield name, [results[Step(model, layers)] for layers in DEPTHS]
