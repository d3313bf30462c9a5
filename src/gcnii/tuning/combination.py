"""A study that goes on from the portfolio of `gcnii train`, and ends as an ensemble of the best.

The portfolio is trained first, exactly as `gcnii train` does, and its networks are the first trials
of the study.  The best few settings of the search that follows are trained as members, too, on the
same splits or folds, and all are weighed by validation.  If that is no better on validation, the
ensemble is that of the portfolio.

Several splits choose each for itself: what joins because it was good on the validation nodes of one
has no weight on the others, where they may be test nodes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean

from optuna.study import Study as OptunaStudy
from optuna.trial import TrialState, create_trial

from gcnii.results.ensemble import Ensemble, Member, Networks
from gcnii.train.presets import Point
from gcnii.tuning.closing import SLOWER, Tuned
from gcnii.tuning.portfolio import Course
from gcnii.tuning.question import Question
from gcnii.tuning.trials import MEMBER, Trial, best_on, joining, ranked, told_of, winner_of

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
    """The members that are trained before a search, which its best settings join.

    joined  what became of the trials that were to join, by their numbers; None: it failed
    """

    course: Course
    joined: dict[int, Networks | None]

    @classmethod
    def of(cls, course: Course) -> Combination:
        """Of a course that is trained; it may be of an earlier command, with what joined it."""
        names = {row["member"]: None for row in course.departed}
        found = names | {one.name: one for one in course.networks}
        joined = {_number(name): one for name, one in found.items() if _is_found(name)}
        return cls(course, joined)

    def join(
        self, question: Question, trials: Sequence[Trial], deadline: float | None = None
    ) -> None:
        """Train the best settings as members, while there is time, on each fold or split.

        Without a deadline that takes no more epochs than the search.
        """
        runs = len(self.course.rows)
        allowed = sum(trial.work * len(trial.val) for trial in trials if trial.epochs)
        for trial in joining(trials, self.joined, len(question.graph.splits)):
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
        """The ensemble, tested: on each split, by validation, with what was found or without."""
        splits = len(question.graph.splits)
        own = [{one.number for one in best_on(trials, i, splits)} for i in range(splits)]

        def without(split: int, member: Member) -> bool:
            return not _is_found(member.name)

        def chosen(split: int, member: Member) -> bool:
            return without(split, member) or splits == 1 or _number(member.name) in own[split]

        ensemble = self.course.combined(without, chosen)
        result = ensemble.measured_on(question.graph)
        features = [one for one in result.members if one.sees == "features"]
        losses = dict(zip(result.members, result.losses, strict=True))
        best = sorted(features, key=lambda one: losses[one])[:1]
        baselines = {one.name: result.member(one.name) for one in best}
        notes = _notes(result, splits, any(self.joined.values()))
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


def _notes(result: Ensemble, splits: int, found: bool) -> tuple[str, ...]:
    """How was chosen, where it is not plain."""
    notes = []
    if splits > 1:
        notes.append(
            f"Nested selection: settings were drawn without regard to scores, and each of the "
            f"{splits} splits chose by its own validation nodes."
        )
    if found and not any(_is_found(one.name) for one in result.weighty):
        notes.append("What the search found does not improve the ensemble on validation.")
    return tuple(notes)


def _is_found(member: str) -> bool:
    """Whether a search has found it, or what it is smoothed over."""
    return re.match(rf"{FOUND}\d+", member) is not None


def _number(member: str) -> int:
    """That of the trial which a member was."""
    return int(member.removeprefix(FOUND).partition("-")[0])
