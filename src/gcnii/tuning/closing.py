"""Closing a study: the best few are confirmed, the winner is trained anew, and only then tested.

The best of many trials owes something to luck.  So the best few are trained with more seeds, still
without test nodes, and the best of them by validation wins.  All this takes no longer
than the search.

A study that goes on from the portfolio of `gcnii train` ends as an ensemble instead.  The portfolio
is trained first, exactly as `gcnii train` does, and its networks are the first trials of the study.
The best few settings of the search that follows are trained as members, too, on the same splits or
folds, and all are weighed by validation.  If that is no better on validation, the ensemble is that
of the portfolio.  Several splits choose each for itself: what joins because it was good on the
validation nodes of one has no weight on the others, where they may be test nodes.

What mattered is said with an error: PED-ANOVA over the trials of one model (Watanabe et al. 2023,
as Optuna has it), repeated on trials drawn with replacement.
"""

from __future__ import annotations

import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isnan, sqrt
from pathlib import Path
from typing import get_args

import numpy as np
import optuna
import torch
from optuna.study import Study as OptunaStudy
from optuna.trial import TrialState, create_trial

from gcnii.files import Document, json_value, write_document
from gcnii.graph import Graph
from gcnii.nn import MODELS
from gcnii.nn.settings import Settings
from gcnii.results.ensemble import Ensemble, Member, Networks
from gcnii.results.fit import SILENT, Session
from gcnii.results.result import Result
from gcnii.results.trained import Trained
from gcnii.targets.objective import Objective
from gcnii.targets.scores import ACCURACY, Answers, Score, sign_of
from gcnii.targets.target import Ints
from gcnii.train.group import interruptible
from gcnii.train.hardware import choose_device
from gcnii.train.presets import Point
from gcnii.tuning.portfolio import Course
from gcnii.tuning.proposals import distribution, quiet
from gcnii.tuning.question import BASELINES, FINAL, FRESH, STUDY, Question, parameter, parameters_of
from gcnii.tuning.trials import (
    FINALISTS,
    MEMBER,
    RULE,
    Outcome,
    Trial,
    best_on,
    fitted,
    joining,
    ranked,
    told_of,
    value_of,
    winner_of,
)

FEWEST = 10  # trials, below which nothing can be said
REPEATS = 10


@dataclass(frozen=True)
class Importance:
    """A setting's share in what sets the best tenth of the trials apart, and its standard error."""

    name: str
    share: float
    error: float

    def document(self) -> Document:
        return {"name": self.name, "share": round(self.share, 4), "error": round(self.error, 4)}


def importances(question: Question, trials: Sequence[Trial], model: str) -> list[Importance]:
    """Of each setting of a model that was searched, the most important first."""
    own = [trial for trial in trials if trial.model == model and trial.outcome != "lost"]
    space = question.space(model)
    if len(own) < FEWEST or not space:
        return []
    quiet()
    random = np.random.default_rng(0)
    shares: dict[str, list[float]] = {name: [] for name in space}
    for _ in range(REPEATS):
        drawn = [own[i] for i in random.integers(len(own), size=len(own))]
        for name, share in _shares(question, drawn, model).items():
            shares[name].append(share)
    found = (
        Importance(name, float(np.mean(each)), float(np.std(each, ddof=1)))
        for name, each in shares.items()
        if len(each) > 1
    )
    return sorted(found, key=lambda one: one.share, reverse=True)


def _shares(question: Question, trials: Sequence[Trial], model: str) -> dict[str, float]:
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances  # slow

    space = question.space(model)
    kinds = {parameter(model, name): distribution(search) for name, search in space.items()}
    study = optuna.create_study(direction="maximize")
    for trial in trials:
        own = parameters_of(model, space, trial.settings)
        study.add_trial(create_trial(params=own, distributions=kinds, value=trial.rank[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            shares = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
        except (RuntimeError, ValueError):  # all drawn trials are alike
            return {}
    return {name: shares.get(parameter(model, name), 0.0) for name in space}


FORMAT = 1
FEWEST_PAIRS = 3  # runs, without which a difference has no error worth the name
SLOWER = 1.15  # by which the final training may be slower than the search
ROUNDED = 1e-9  # so that a number of seeds that just fits is not rounded down
SURE = 2.0  # standard errors, beyond which a difference is called one
DRAWN = 200  # times that the test nodes of a single run are drawn, for the error of a difference
# by the sign of the lead over what does not see the graph
HELPS = {1: "The graph helps", 0: "It is open whether the graph helps", -1: "The graph does harm"}


@dataclass(frozen=True)
class Difference:
    """The test scores less those of a baseline, run by run on the same splits.

    A single run's error is over its test nodes, drawn with replacement.
    """

    mean: float
    error: float
    score: Score = ACCURACY

    @classmethod
    def of(cls, one: Trained, other: Trained) -> Difference:
        """Paired by seed, and so by split."""
        gaps = one.test - other.test
        mean, error = float(gaps.mean()), 0.0
        if len(gaps) > 1:
            error = float(gaps.std(ddof=1) / sqrt(len(gaps)))
        elif isinstance(one, Ensemble) and isinstance(other, Ensemble) and not isnan(mean):
            error = _error_over_nodes(one, other)
        return cls(mean, error, one.score)

    @property
    def measured(self) -> bool:
        """Whether there are test nodes."""
        return not isnan(self.mean)

    @property
    def sign(self) -> int:
        """1 or -1 where it is more than SURE standard errors better or worse, else 0."""
        better = sign_of(self.score.setting) * int(np.sign(self.mean))
        return 0 if abs(self.mean) <= SURE * self.error else better

    def __str__(self) -> str:
        return f"{self.score.difference(self.mean)} ± {self._error}"

    @property
    def _error(self) -> str:
        return self.score.shown(self.error) + ("" if self.score.plain else " points")

    def beside(self, metric: str, other: str) -> str:
        """`3.1 ± 0.4 points of accuracy above gcn`."""
        side = "above" if self.mean >= 0 else "below"
        return f"{self.score.shown(abs(self.mean))} ± {self._error} of {metric} {side} {other}"

    def document(self) -> Document:
        return {"mean": self.mean, "error": self.error}


def _error_over_nodes(one: Ensemble, other: Ensemble) -> float:
    """The standard error of the difference on the test nodes of the one split, paired by node."""
    graph = one.trained_on
    assert graph is not None
    nodes = np.flatnonzero(graph.splits[one.runs[0].split].test)
    metric, random = one.target.score(one.recipe.scored_by).key, np.random.default_rng(0)
    part = None if graph.part is None else graph.part

    def said(each: Ensemble) -> Answers:
        P = each.answers(graph, each.device_word)
        return Answers(each.target, P, each.decide(P), graph.labels, part, each.positive)

    both = said(one), said(other)

    def score(said: Answers, drawn: Ints) -> float:
        return float(said.among(drawn).scores[metric])

    draws = (random.choice(nodes, len(nodes)) for _ in range(DRAWN))
    gaps = [score(both[0], drawn) - score(both[1], drawn) for drawn in draws]
    return float(np.nanstd(gaps, ddof=1))


def _helps(lead: Difference, leader: str, metric: str, other: str, about: str) -> str:
    """Whether the graph helps, by a lead over what does not see it."""
    if not lead.measured:
        return "There are no test nodes, so whether the graph helps is not measured."
    return f"{HELPS[lead.sign]}: {leader} is {lead.beside(metric, other)}{about}."


@dataclass(frozen=True, eq=False)
class Tuned:
    """A finished study: what it ends with, the baselines and all trials.

    Attributes
    ----------
    result : Ensemble or Result
        The members of `gcnii train` and the best settings of the search, weighed by validation;
        on a single split where models are named or settings were published, the winner, trained
        again with new seeds.  Tested in either case.
    trials : tuple
        All settings that were tried, the best first.
    baselines : dict
        What the result is compared with: the best member that does not see the graph; for a single
        winner, mlp and gcn at their best settings, with the same seeds.
    """

    question: Question
    result: Trained
    trials: tuple[Trial, ...]
    baselines: Mapping[str, Trained]
    seconds: float = 0.0
    command: str = ""
    notes: tuple[str, ...] = ()

    @property
    def winner(self) -> Trial:
        """The best trial by validation."""
        return self.trials[0]

    @property
    def runner_up(self) -> Trial | None:
        """The second best by validation, if there is one."""
        second = self.trials[1] if len(self.trials) > 1 else None
        return second if second and second.can_win else None

    @property
    def fresh(self) -> bool:
        """Whether the winner was trained anew; else there was no time, and its runs were kept."""
        return all(run.seed >= FRESH for run in self.result.runs)

    @property
    def model(self) -> str:
        """The winner's model."""
        return self.winner.model

    @property
    def settings(self) -> Settings:
        """All settings of the winner, for `fit(graph, best.model, **best.settings)`."""
        return self.winner.settings

    def differences(self) -> dict[str, Difference]:
        """baseline → the winner's lead over it on test nodes."""
        others = {name: one for name, one in self.baselines.items() if name != self.model}
        return {name: Difference.of(self.result, one) for name, one in others.items()}

    @property
    def verdict(self) -> str:
        """Whether the graph helps, in one sentence."""
        leads, metric = self.differences(), self.result.measured
        if isinstance(self.result, Ensemble):
            if not leads:
                return "Whether the graph helps is not measured: no member without it was trained."
            ((name, lead),) = leads.items()
            return _helps(lead, "the ensemble", metric, name, ", the best member without it")
        if not leads and all(one.model == "mlp" for one in ranked(self.trials)):
            how = "no training run of a model that sees it was finished"
            return f"Whether the graph helps is not measured: {how}; give the search more time."
        if self.model == "mlp" and (few := self._too_few()):
            return few
        if self.model == "mlp":
            gap = leads.get("gcn")
            test = (
                f", and on test it is {gap.beside(metric, 'gcn')}" if gap and gap.measured else ""
            )
            how = "an MLP on the features alone was best on validation"
            return f"The graph does not help: {how}{test}."
        if "mlp" not in leads:
            how = "no training run of an MLP was finished"
            if any(one.model == "mlp" for one in ranked(self.trials)):
                how = "there was no time to train an MLP again with new seeds"
            return f"Whether the graph helps is not measured: {how}; give the search more time."
        tuned = sum(one.model == "mlp" for one in self.trials)
        share = f", which had {tuned} of the {len(self.trials)} settings tried"
        return _helps(leads["mlp"], self.model, metric, "an MLP", share)

    def _too_few(self) -> str:
        """Why the models that see the graph were not given the chance that an MLP had, if so."""
        counts = Counter(one.model for one in self.trials if one.can_win)
        own = {one.model for one in self.trials if one.default}
        searched = [one for one in counts if one not in BASELINES or one in own]
        most = max((counts[one] for one in searched if MODELS[one].card.uses_graph), default=0)
        if most >= counts["mlp"]:
            return ""
        return (
            f"{HELPS[0]}: an MLP on the features alone was best on validation, but no model for "
            f"graphs was finished with as many settings ({most} against {counts['mlp']}); give the "
            "search more time."
        )

    @cached_property
    def importances(self) -> list[Importance]:
        """What mattered among the winner's model's settings."""
        return importances(self.question, self.trials, self.model)

    def document(self) -> Document:
        """study.json."""
        counts = Counter(trial.outcome for trial in self.trials)
        second, leads = self.runner_up, self.differences()
        return {
            "format": FORMAT,
            "graph": self.question.graph.name,
            **self.question.asked,
            "measured": self.question.measured,
            "divided_anew": self.question.divided_anew,
            "nested": self.question.nested,
            "rule": RULE,
            "searched": {model: list(self.question.space(model)) for model in self.question.models},
            "tried": len(self.trials),
            "outcomes": {outcome: counts[outcome] for outcome in get_args(Outcome)},
            "winner": self._of(self.winner),
            "runner_up": self._of(second) if second else None,
            "final": _scores(self.result),
            "baselines": {name: _scores(one) for name, one in self.baselines.items()},
            "lead": {name: lead.document() for name, lead in leads.items() if lead.measured},
            "leaderboard": self.leaderboard,
            "verdict": self.verdict,
            "notes": list(self.notes),
            "importances": [one.document() for one in self.importances],
            "seconds": round(self.seconds, 1),
            "command": self.command,
            "device": self.result.device,
            "trials": [trial.document() for trial in self.trials],
        }

    @property
    def leaderboard(self) -> list[Document]:
        """A row for each member of the ensemble; none of a single winner."""
        return self.result.leaderboard() if isinstance(self.result, Ensemble) else []

    def _of(self, trial: Trial) -> Document:
        about = {"number": trial.number, "model": trial.model, "val": trial.score}
        return about | {"error": trial.error, "settings": trial.settings}

    def lines(self) -> list[str]:
        """What the search found, in sentences."""
        second, result = self.runner_up, self.result
        where = " over all splits" if self.question.nested else ""
        shown = self.question.score.shown
        best = f"the best by validation{where}: {self.model}, {shown(self.winner.score)}"
        after = f"; the runner-up: {second.model}, {shown(second.score)}" if second else ""
        leads = [f"{lead} against {name}" for name, lead in self.differences().items()]
        tried = "1 setting" if len(self.trials) == 1 else f"{len(self.trials)} settings"
        return [
            f"{tried} tried; {best}{after}",
            f"{result!r}{', trained anew with fresh seeds' if self.fresh else ''}",
            *self.notes,
            *([f"on test: {', '.join(leads)}"] if leads else []),
            self.verdict,
        ]

    def save(self, folder: Path) -> None:
        """Write study.json, by which the folder is known as a study's, and the bundle."""
        write_document(folder / STUDY, self.document())
        self.result.save(folder, overwrite=True, command=self.command)


def _scores(result: Trained) -> Document:
    runs = [run.summary() for run in result.runs]
    return {
        "model": result.model,
        "settings": result.plan.settings if isinstance(result, Result) else result.in_force(),
        "test_mean": json_value(float(result.test.mean())),
        "test_std": json_value(result.std),
        **{name: [run[name] for run in runs] for name in ("seed", "split", "val", "test")},
    }


def reserve(
    trials: Sequence[Trial],
    most: float = inf,
    joined: frozenset[int] | None = None,
    splits: int = 1,
) -> float:
    """Seconds that closing may take, judged by the trials so far.

    most    if it is so long, closing does less; but a single winner is trained once in any case
    joined  where the best are combined, those that need no more time
    """
    if joined is not None:
        best = joining(trials, joined, splits)
        return min(sum(trial.final_seconds for trial in best), most)
    best = ranked(trials)
    confirming = best[:FINALISTS] if len(best) > 1 else []
    whole = sum(trial.final_seconds for trial in (*confirming, *_chosen(best)))
    return min(whole, max(most, best[0].final_seconds / FINAL if best else 0.0))


def _chosen(trials: Sequence[Trial]) -> list[Trial]:
    """What is trained anew, of trials in their order: the best, and the best of each baseline."""
    best = [trial for trial in trials if trial.can_win]
    found = {trial.number: trial for trial in best[:1]}
    for model in BASELINES:
        found |= {one.number: one for one in [one for one in best if one.model == model][:1]}
    return list(found.values())


Train = Callable[[Graph, Trial, range], Result | None]


class Allowance:
    """What closing may take: seconds up to a deadline, or else as much work as the search.

    Work is counted in epochs, so that a study is closed alike on any machine.

    runs      of each that is trained anew
    deadline  by `time.time`
    """

    def __init__(self, trials: Sequence[Trial], runs: int, deadline: float | None):
        self.runs, self.deadline = runs, deadline
        self.known = {trial.number: len(trial.val) for trial in trials}
        self.work = sum(trial.work * len(trial.val) for trial in trials if trial.epochs)

    def cost(self, trials: Sequence[Trial]) -> float:
        """Of training these anew."""
        if self.deadline is None:
            return sum(trial.work * self.runs for trial in trials)
        return sum(trial.final_seconds for trial in trials)

    def left(self, confirmed: Sequence[Trial] = ()) -> float:
        """What is left, if these trials have more runs than in the search."""
        if self.deadline is not None:
            return (self.deadline - time.time()) / SLOWER
        more = ((one, len(one.val) - self.known[one.number]) for one in confirmed)
        return self.work - sum(one.work * runs for one, runs in more if runs > 0)


def confirmed(
    question: Question, trials: Sequence[Trial], train: Train, allowance: Allowance | None = None
) -> list[Trial]:
    """All trials, the best first: the finalists, by more seeds; then those that did not get there.

    train      trains a trial's setting on a graph with these seeds; None where it is lost
    allowance  by which there are fewer finalists; the default stays among them
    """
    seeds = question.seeds
    best, more = ranked(trials), range(seeds, seeds + max(FINAL - seeds, seeds))
    finalists = best[:FINALISTS]
    finalists += [one for one in best[FINALISTS:] if one.default]
    left = inf if allowance is None else allowance.left() - allowance.cost(_chosen(best))
    while len(finalists) > 1 and allowance and allowance.cost(finalists) > left:
        del finalists[-2 if finalists[-1].default else -1]
    if len(finalists) > 1:
        others = [one for one in best if one not in finalists]
        finalists = [trial.more(train(question.hidden, trial, more)) for trial in finalists]
    else:
        finalists, others = best, []
    rest = [one for one in (*trials, *finalists) if not one.can_win]
    rest.sort(key=lambda trial: (trial.outcome == "lost", trial.number))
    return [*ranked(finalists), *others, *rest]


def close(
    question: Question,
    trials: Sequence[Trial],
    session: Session = SILENT,
    show: Callable[[str], None] = lambda words: None,
    deadline: float | None = None,
    kept: Sequence[Result] = (),
) -> Tuned:
    """Train the winner and the baselines of a single split with fresh seeds, and test them.

    session   where; its checkpoint is the winner's
    show      told what is trained now
    deadline  by `time.time`, for which seeds are left out, then baselines; without one, closing
              takes no more work than the search
    kept      the default's runs in the search: what there is if it wins and no time is left

    If the winner is lost, because a fresh seed diverges, the next best takes its place.
    """
    winner_of(trials)  # or an error
    on_cpu = choose_device(session.device).type == "cpu"
    allowance = Allowance(trials, len(question.final_seeds), deadline)
    results: dict[int, Result] = {}

    def train(graph: Graph, trial: Trial, seeds: range, saves: bool = False) -> Result | None:
        plan, at_once = question.plan(trial.model, trial.settings), 1 if on_cpu else len(seeds)
        own = session if saves else replace(session, checkpoint=None)
        result = fitted(graph, [plan], at_once, own, seeds, "temperature")
        if interrupt or (result is not None and result.interrupted):
            raise KeyboardInterrupt
        return result

    with interruptible() as interrupt:
        show("confirming the best few")
        ordered = confirmed(question, trials, train, allowance)
        winner_of(ordered)  # or an error, if all were lost
        has_own = bool(kept) and ordered[0].default and not question.divided_anew
        costs = [allowance.cost([one]) for one in _chosen(ordered)]
        left = allowance.left(ordered)
        if deadline is None:  # a verdict needs some runs in any case
            left = max(left, FEWEST_PAIRS / allowance.runs * sum(costs))
        counts = _counts(costs, left, allowance.runs, on_cpu or deadline is None, 1 - has_own)
        if not counts[0]:
            results[ordered[0].number] = _tested(question.graph, kept, session.device)
        while todo := [one for one in _chosen(ordered)[: len(counts)] if one.number not in results]:
            show(f"final training: {todo[0].model}")
            seeds = question.final_seeds[: counts[0]]
            result = train(question.graph, todo[0], seeds, saves=not results)
            if result is not None:
                results[todo[0].number] = result
            else:
                ordered.remove(todo[0])
                ordered.append(replace(todo[0], outcome="lost"))
    winner_of(ordered)  # or an error, if all were lost
    best = {one.model: one for one in reversed(_chosen(ordered)) if one.number in results}
    baselines = {name: results[best[name].number] for name in BASELINES if name in best}
    why = "so that it takes no longer than the search" if deadline is None else "to keep the budget"
    notes = _shortened(why, question, trials, ordered, counts)
    return Tuned(question, results[ordered[0].number], tuple(ordered), baselines, notes=notes)


def _counts(
    costs: Sequence[float], left: float, seeds: int, by_run: bool, least: int = 1
) -> list[int]:
    """The final seeds of each that is trained anew, the winner first: the same number for all.

    Baselines are left out where the differences to them would be of too few runs.

    costs   of all seeds of each
    by_run  whether fewer seeds cost less; a GPU trains one or all in the same time
    least   for the winner alone
    """

    def within(cost: float) -> int:
        if cost <= left:
            return seeds
        return int(seeds * max(left, 0.0) / cost + ROUNDED) if by_run else 0

    if (some := within(sum(costs))) >= min(FEWEST_PAIRS, seeds):
        return [some] * len(costs)
    return [max(within(costs[0]), least)]


def _tested(graph: Graph, kept: Sequence[Result], device: str) -> Result:
    """Runs that were trained without test nodes, as `fit` would have returned them."""
    runs = [run for result in kept for run in result.runs]
    weights = {name: torch.cat([one.weights[name] for one in kept]) for name in kept[0].weights}
    plan, recipe, cpu = kept[0].plan, kept[0].plan.recipe, torch.device("cpu")
    result = Result.of(graph, [plan], runs, weights, kept[0].device, False, kept[0].scaling)
    result = replace(result, positive=kept[0].positive).scored(graph, device)
    assert result.outputs is not None
    for i, run in enumerate(runs):
        how = (graph, [run.split], cpu, recipe.scored_by)
        objective = Objective.of(*how, positive=recipe.positive)
        run.test = float(objective.score(result.outputs.scores[i][None], "test"))
    return result.tuned(thresholds=recipe.has_threshold, temperatures=True)


def _shortened(
    why: str,
    question: Question,
    trials: Sequence[Trial],
    ordered: Sequence[Trial],
    counts: Sequence[int],
) -> tuple[str, ...]:
    """What closing left out, in one sentence."""
    seeds, most = counts[0], len(question.final_seeds)
    known = {trial.number: len(trial.val) for trial in trials}
    words = [
        *(["the winner's runs in the search were kept"] if not seeds else []),
        *([f"fresh seeds: {seeds} instead of {most}"] if 0 < seeds < most else []),
        *(["the baselines were not trained anew"] if len(counts) < len(_chosen(ordered)) else []),
        *(
            ["the best few were not confirmed with more seeds"]
            if len(ranked(trials)) > 1 and len(ordered[0].val) == known[ordered[0].number]
            else []
        ),
    ]
    return (f"Shortened {why}: {'; '.join(words)}.",) if words else ()


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
        score = value_of(told)
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
