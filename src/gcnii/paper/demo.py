"""The demo: over-smoothing on a graph that needs no download, in under a minute on two cores.

A plain GCN does well with 2 layers and guesses with 64; GCNII does as well with 64 as with 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gcnii.data import load
from gcnii.train.fit import fit_plan
from gcnii.train.plan import make_plan
from gcnii.train.presets import preset
from gcnii.train.results.result import Result

DEPTHS = (2, 4, 8, 16, 32, 64)
GRAPH = "digits"
EPOCHS = 60  # enough for every depth: the validation loss of GCNII is flat by then


class Step(NamedTuple):
    """One training of the demo."""

    model: str
    layers: int

    @property
    def title(self) -> str:
        """Its name in the table."""
        return f"{NAMES[self.model]}, {self.layers} layers"


NAMES = {"gcnii": "GCNII", "deep-gcn": "GCN"}
STEPS = tuple(Step(model, layers) for layers in DEPTHS[::-1] for model in NAMES)
MAIN = (Step("gcnii", 64), Step("deep-gcn", 2), Step("deep-gcn", 64))  # the rows of the table


def run(step: Step, device: str = "auto", verbose: bool | None = False) -> Result:
    """Train one of STEPS on `digits`; `verbose` as in `fit`."""
    settings = {"layers": step.layers, "epochs": EPOCHS}
    plan = make_plan(step.model, {**preset(GRAPH, step.model), **settings})
    return fit_plan(load(GRAPH), plan, device=device, verbose=verbose, title=step.title)


def sweeps(results: dict[Step, Result]) -> Iterator[tuple[str, list[Result]]]:
    """Each model's name, and its results in the order of DEPTHS."""
    for model, name in NAMES.items():
        yield name, [results[Step(model, layers)] for layers in DEPTHS]
