"""Refit: the members of an ensemble that was measured, trained once more on every label.

Weights, temperatures, thresholds, epochs and rounds are those of the measured training, and so are
all scores: no label is left to choose or to measure by.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np

from gcnii.data.splits import every_label
from gcnii.errors import InputError, is_one_of
from gcnii.files import CHECKPOINT, Document
from gcnii.graph import Graph
from gcnii.members.linear import Linear
from gcnii.members.trees import FEWEST_ROUNDS, Trees
from gcnii.results.bundle import MEMBERS, read_member, save_member
from gcnii.results.ensemble import (
    REFIT,
    Blend,
    Boosted,
    Ensemble,
    Fitted,
    Member,
    Networks,
    Regressed,
    Smoothed,
)
from gcnii.results.fit import SILENT, Session, fit_plans
from gcnii.train.plan import Plan
from gcnii.train.stopping import Run
from gcnii.tuning.portfolio import Show, seconds_of

ALL = "all"  # what may be asked for


def budget_before(refit: str | None, budget: str | float | None) -> str | float | None:
    """What the measured training may take of a budget: half of it, where a refitting follows."""
    if refit is not None and not is_one_of(refit, [ALL]):
        raise InputError(f"refit must be {ALL}, or left out, got {refit!r}")
    return budget if budget is None or refit is None else seconds_of(budget) / 2


def refit_folder(folder: Path) -> Path:
    """That of the refitted ensemble, beside the folder of the one that was measured."""
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return named.with_name(f"{named.name}-refit")


def refitted(
    measured: Ensemble,
    graph: Graph,
    session: Session = SILENT,
    folder: Path | None = None,
    show: Show = lambda words: None,
) -> Ensemble:
    """The ensemble with members that are trained on every label; KeyboardInterrupt if stopped.

    graph   that of the training
    folder  that is claimed, where members are kept as they are done; default: nowhere
    show    called with the name of what is trained, once it is
    """
    again = _Again(measured, graph, every_label(graph), session, folder)
    members: dict[str, Member] = {}
    for member in measured.members:
        members[member.name] = again.member(member, members)
        if folder is not None:
            save_member(members[member.name], folder)
        show(member.name)
    weights = np.mean([blend.weights for blend in measured.blends], 0)
    run = replace(
        _typical(measured.runs)[0],
        test=float(measured.test.mean()),
        seconds=sum(one.seconds for one in members.values()),
    )
    return replace(
        measured,
        members=tuple(members.values()),
        blends=(Blend(tuple(range(len(again.rows))), tuple(map(float, weights / weights.sum()))),),
        runs=(run,),
        settings=measured.settings | {REFIT: ALL},
        trained_on=graph,
        kept=None,
        made=None,
    )


@dataclass(frozen=True, eq=False)
class _Again:
    """A refitting.

    whole  the graph, of which every label trains
    """

    measured: Ensemble
    graph: Graph
    whole: Graph
    session: Session
    folder: Path | None

    @property
    def rows(self) -> list[int]:
        """The runs of each member that answered."""
        return sorted({row for blend in self.measured.blends for row in blend.rows})

    def member(self, one: Member, earlier: dict[str, Member]) -> Member:
        """A member on every label; it may build on those before it."""
        runs = [one.runs[row] for row in self.rows]
        place = None if self.folder is None else self.folder / MEMBERS / one.name
        kept = None if place is None else read_member(place, earlier)
        seeds = [run.seed for run in runs]
        if kept is not None and [run.seed for run in kept.runs] != seeds:
            kept = None
        match one:
            case Networks():
                return self._networks(one, kept, runs, place)
            case Boosted():
                return self._trees(one, kept, runs)
            case Fitted():
                each = tuple(one.each[row] for row in self.rows)
                if isinstance(one, Regressed):
                    split = self.whole.splits[0]
                    each = tuple(Linear.fit(self.whole, split, line) for line in each)
                again = replace(one, runs=_typical(runs), each=each, said=None)
                if isinstance(again, Smoothed):
                    return replace(again, base=earlier[again.base.name])
                return again
        raise AssertionError(f"{one.name} is of a kind that is not known")

    def _networks(
        self, one: Networks, kept: Member | None, runs: list[Run], place: Path | None
    ) -> Networks:
        plan, whole = _without_stopping(one.result.plan, runs), self.whole
        result = kept.result if isinstance(kept, Networks) else None
        if (
            result is None
            or result.interrupted
            or result.plan != plan
            or result.origin.fingerprint != whole.fingerprint
        ):
            session = replace(
                self.session, checkpoint=place and place / CHECKPOINT, title=f"{one.name}, refit"
            )
            result = fit_plans(whole, [plan], session, [run.seed for run in runs], 0)
        if result.interrupted:
            raise KeyboardInterrupt
        return Networks(one.name, replace(result, runs=_typical(runs, result.runs)))

    def _trees(self, one: Boosted, kept: Member | None, runs: list[Run]) -> Boosted:
        stops, split = _rounds([one.each[row] for row in self.rows]), self.whole.splits[0]
        if isinstance(kept, Boosted) and all(_rounds([trees]) == stops for trees in kept.each):
            return replace(kept, runs=_typical(runs, kept.runs))
        each, own, columns = [], [], one.each[0].columns
        for run in runs:
            begun = time.monotonic()
            each.append(Trees.fit(self.whole, split, columns=columns, seed=run.seed, stops=stops))
            own.append(replace(run, seconds=time.monotonic() - begun))
        return Boosted(one.name, _typical(runs, own), tuple(each))


def _without_stopping(plan: Plan, runs: Sequence[Run]) -> Plan:
    """The plan with as many epochs as were best on validation, on average."""
    epochs = max(round(fmean(run.best_epoch + 1 for run in runs)), 1)
    recipe = replace(plan.recipe, epochs=epochs, longest=0, monitor="last", window=0, plateau=0)
    return replace(plan, recipe=recipe)


def _rounds(each: Sequence[Trees]) -> list[int]:
    """The mean number of rounds of each forest."""
    found = []
    for forests in zip(*(trees.forests for trees in each), strict=True):
        rounds = [len(one.trees) // one.outputs for one in forests if one is not None]
        found.append(max(round(fmean(rounds)), 1) if rounds else FEWEST_ROUNDS)
    return found


def _typical(measured: Sequence[Run], own: Sequence[Run] = ()) -> tuple[Run, ...]:
    """Runs on every label, with what those that were measured have on average; default: these."""
    temperatures = [one.temperature for one in measured if one.temperature is not None]
    thresholds = [one.threshold for one in measured if one.threshold is not None]
    weights = [one.weights for one in measured if one.weights is not None]
    mean: Document = {
        "split": 0,
        "temperature": float(np.exp(np.log(temperatures).mean())) if temperatures else None,
        "threshold": fmean(thresholds) if thresholds else None,
        "weights": np.exp(np.log(weights).mean(0)).tolist() if weights else None,
        "val": fmean(one.val for one in measured),
        "val_loss": fmean(one.val_loss for one in measured),
    }
    return tuple(replace(run, **mean) for run in own or measured)
