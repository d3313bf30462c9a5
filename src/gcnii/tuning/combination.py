"""A study that goes on from the portfolio of `gcnii train`, and ends as an ensemble of the best.

The portfolio is trained first, exactly as `gcnii train` does, and its networks are the first trials
of the study.  The best few settings of the search that follows are trained as members, too, on the
same splits or folds, and all are weighed by validation.  If that is no better on validation, the
ensemble is that of the portfolio.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import fmean

from optuna.study import Study as OptunaStudy
from optuna.trial import TrialState, create_trial

from gcnii.files import Document
from gcnii.results.ensemble import Ensemble, Networks, about_member
from gcnii.train.own import Point
from gcnii.tuning.closing import SLOWER, Tuned
from gcnii.tuning.portfolio import Course
from gcnii.tuning.question import Question
from gcnii.tuning.trials import MEMBER, Trial, joining, ranked, told_of, winner_of

FOUND = "trial-"  # and its number: the name of a member that a search has found


def note_members(study: OptunaStudy, course: Course) -> None:
    """Let the networks of a portfolio be trials of the study, if they are not yet."""
    known = {one.user_attrs.get(MEMBER) for one in study.get_trials(deepcopy=False)}
    for name, network in course.tried.items():
        if name in known or name.startswith(FOUND):
            continue
        runs = network.runs
        told = told_of(network.result.plan, runs, network.seconds, {})
        whole = told["lost"] or len(runs) >= len(course.rows)
        score = 0.0 if told["lost"] else fmean(told["val"])
        study.add_trial(
            create_trial(
                state=TrialState.COMPLETE if whole else TrialState.PRUNED,
                value=score,
                intermediate_values={} if whole else {max(told["epochs"]): score},
                user_attrs={MEMBER: name, "told": told},
            )
        )


@dataclass(eq=False)
class Combination:
    """The portfolio of `gcnii train`, which the best settings of a search join.

    base    the ensemble before any has joined
    joined  what became of the trials that were to join, by their numbers; None: it failed
    """

    course: Course
    base: Ensemble
    joined: dict[int, Networks | None]

    @classmethod
    def of(cls, course: Course) -> Combination:
        """Of a portfolio that is trained; it may be of an earlier command, with what joined it."""
        base = course.combined()
        names = {row["member"]: None for row in base.departed}
        found = names | {one.name: one for one in base.members if isinstance(one, Networks)}
        joined = {
            int(name.removeprefix(FOUND)): one
            for name, one in found.items()
            if re.fullmatch(rf"{FOUND}\d+", name)
        }
        return cls(course, base, joined)

    def join(self, trials: Sequence[Trial], deadline: float | None = None) -> None:
        """Train the best settings as members, while there is time, on each fold or split.

        Without a deadline that takes no more epochs than the search.
        """
        runs = len(self.course.rows)
        allowed = sum(trial.work * len(trial.val) for trial in trials if trial.epochs)
        for trial in joining(trials, self.joined):
            left = inf if deadline is None else (deadline - time.time()) / SLOWER
            if trial.final_seconds > left or (deadline is None and trial.work * runs > allowed):
                continue
            allowed -= trial.work * runs
            name = f"{FOUND}{trial.number}"
            point = Point(name, trial.model, trial.settings)
            self.joined[trial.number] = self.course.add(point, left)
            if self.course.interrupted:
                raise KeyboardInterrupt

    def closed(self, question: Question, trials: Sequence[Trial]) -> Tuned:
        """The better of both ensembles by validation, tested."""
        graph, base, notes = question.graph, self.base, tuple[str, ...]()
        larger = self.course.combined() if any(self.joined.values()) else base
        if larger is not base and larger.loss_on(graph) >= base.loss_on(graph):
            larger = replace(base, departed=(*base.departed, *_found_in(larger)))
            notes = ("What the search found does not improve the ensemble on validation.",)
        result = larger.measured_on(graph)
        without = [one for one in result.members if one.sees == "features"]
        losses = dict(zip(result.members, result.losses, strict=True))
        best = sorted(without, key=lambda one: losses[one])[:1]
        baselines = {one.name: result.member(one.name) for one in best}
        return Tuned(question, result, tuple(self._ordered(trials)), baselines, notes=notes)

    def _ordered(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those with the runs of a member first, the best first, then by what the search knows."""
        judged = [trial for trial in trials if trial.member]
        judged += [
            trial.judged_by(network.runs)
            for trial in trials
            if (network := self.joined.get(trial.number)) is not None
        ]
        known = {trial.number for trial in judged if trial.can_win}
        others = [trial for trial in trials if trial.number not in known]
        rest = [trial for trial in others if not trial.can_win]
        rest.sort(key=lambda trial: (trial.outcome == "lost", trial.number))
        found = [*ranked(judged), *ranked(others), *rest]
        winner_of(found)  # or an error, if there is none
        return found


def _found_in(ensemble: Ensemble) -> list[Document]:
    """Rows of the leaderboard of the members that a search has found, without a weight."""
    pairs = zip(ensemble.members, ensemble.losses, strict=True)
    rows = [*ensemble.departed, *(about_member(one, 0.0, loss) for one, loss in pairs)]
    return [row for row in rows if row["member"].startswith(FOUND)]
