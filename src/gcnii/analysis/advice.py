"""Advice: which model to use on a graph, how deep, and with which settings, by validation alone.

A small search tries the models, then the best setting at other depths.  It sees no test labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, zip_longest
from math import log2
from typing import TypeVar

from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.nn import MODELS
from gcnii.nn.settings import Choice, Settings
from gcnii.results.fit import Session
from gcnii.targets.scores import percent
from gcnii.train.plan import make_plan
from gcnii.tuning.proposals import quiet, sampler_of
from gcnii.tuning.question import BASELINES, Question, first_points, parameters_of
from gcnii.tuning.storage import open_study
from gcnii.tuning.trials import Trial, ranked, trials_of, winner_of
from gcnii.tuning.worker import Limits, search

LADDER = 4  # every fourth trial is the best setting at another depth
# Trainings of the search are shorter than those of `train`: they compare settings.
LENGTH: Settings = {"epochs": 200, "patience": 50}
START = 8  # layers, at most, that a model is tried with first: more take longer
RULE = "the shallowest, then the simplest setting within one standard error of the best"

Show = Callable[[str], None]
Key = TypeVar("Key", str, int)


@dataclass(frozen=True, eq=False)
class Advice:
    """What a small search found.

    trials  all settings that were tried
    close   those within one standard error of the highest validation score, that one first
    chosen  the one to use, by RULE
    """

    question: Question
    trials: tuple[Trial, ...]
    close: tuple[Trial, ...]
    chosen: Trial

    @classmethod
    def of(cls, question: Question, trials: Sequence[Trial]) -> Advice:
        """Choose; NothingFound if no training was finished."""
        best = winner_of(trials)
        node = 1 / min(split.val.sum() for split in question.hidden.splits)
        least = best.score - max(best.error, node)
        close = [trial for trial in ranked(trials) if trial.score >= least]
        return cls(question, tuple(trials), tuple(close), min(close, key=_complexity))

    @property
    def uses_graph(self) -> bool:
        """Whether the chosen model looks at more than the features."""
        return MODELS[self.chosen.model].card.uses_graph

    @cached_property
    def settings(self) -> Settings:
        """What to tell `train`, because it would not choose it for this graph by itself.

        It may train for longer than the search did, but not for less.
        """
        own = make_plan(self.chosen.model, {}, self.question.graph).settings
        return {
            name: value
            for name, value in self.chosen.settings.items()
            if value != own[name] and not (name in LENGTH and own[name] > value)
        }

    def by_model(self) -> dict[str, Trial | None]:
        """Each model's best trial, the best model first; None where none was finished."""
        return _best_of(self.trials, lambda trial: trial.model)

    def by_depth(self) -> dict[int, Trial | None]:
        """The same of each depth of the chosen model, from shallow to deep."""
        own = [trial for trial in self.trials if trial.model == self.chosen.model]
        return dict(sorted(_best_of(own, layers_of).items()))

    def summary(self) -> Document:
        chosen = self.chosen
        return {
            "model": chosen.model,
            "layers": chosen.settings.get("layers"),
            "settings": self.settings,
            "measured": self.question.measured,
            "val": chosen.score,
            "error": chosen.error,
            "uses_graph": self.uses_graph,
            "rule": RULE,
            "seeds": self.question.seeds,
            "chosen": chosen.number,
            "close": [trial.number for trial in self.close],
            "trials": [trial.document() for trial in self.trials],
        }


def layers_of(trial: Trial) -> int:
    """Its number of layers; 0 of a model that has none."""
    return int(trial.settings.get("layers", 0))


def _best_of(trials: Sequence[Trial], key: Callable[[Trial], Key]) -> dict[Key, Trial | None]:
    best: dict[Key, Trial | None] = {}
    for trial in ranked(trials):
        best.setdefault(key(trial), trial)
    return best | {key(trial): None for trial in trials if key(trial) not in best}


def _complexity(trial: Trial) -> tuple[int, int, float]:
    """Smaller is preferred: few layers, then a baseline, then a high score."""
    plain = trial.model in BASELINES
    return layers_of(trial), BASELINES.index(trial.model) if plain else len(BASELINES), -trial.score


def advise(
    graph: Graph,
    models: Sequence[str],
    trials: int,
    *,
    device: str = "auto",
    show: Show = lambda now: None,
) -> Advice:
    """Search with this number of trials among the models, mlp and gcn; then choose.

    show  told of each trial that is done
    """
    quiet()
    question = Question.of(graph, tuple(models), fixed=LENGTH)
    ladder = trials // LADDER
    found = _search(question, _first(question), trials - ladder, device, show, [])
    if deep := [trial for trial in ranked(found) if "layers" in question.space(trial.model)]:
        depths = _other_depths(question, deep[0])[:ladder]
        # A study of its own: beside quick learners, deep networks would be given up.
        more = _search(question, depths, len(depths), device, show, found)
        found += [replace(trial, number=trial.number + len(found)) for trial in more]
    return Advice.of(question, found)


def _search(
    question: Question,
    points: Sequence[Settings],
    count: int,
    device: str,
    show: Show,
    earlier: Sequence[Trial],
) -> list[Trial]:
    """Try the points, and what is proposed after them."""
    if not count:
        return []
    with open_study(question.name, "", sampler_of(question)) as study:
        for point in points[:count]:
            study.enqueue_trial(point)
        told = 0

        def tell() -> None:
            nonlocal told
            done = trials_of(study)
            best = next(iter(ranked([*earlier, *done])), None)
            for _ in done[told:]:
                show(f"best {percent(best.score)} ({best.model})" if best else "")
            told = len(done)

        search(question, study, Limits(count), Session(device=device), tell)
        return trials_of(study)


def _first(question: Question) -> list[Settings]:
    """Each model as `train` would have it but for its depth; then good points, model by model."""
    good = first_points(question)
    known = dict.fromkeys(point["model"] for point in good)  # the baselines first
    own = [_default(question, model) for model in dict.fromkeys((*known, *question.models))]
    rest: dict[str, list[Settings]] = {}
    for point in good:
        if point not in own:
            rest.setdefault(point["model"], []).append(point)
    turns = chain.from_iterable(zip_longest(*rest.values()))
    return own + [point for point in turns if point is not None]


def _default(question: Question, model: str) -> Settings:
    """Optuna's parameters of a model by itself, with START layers at most."""
    settings, space = question.plan(model, {}).settings, question.space(model)
    if isinstance(choice := space.get("layers"), Choice):
        depths = [int(one) for one in choice.values]
        most = min(settings["layers"], START)
        settings["layers"] = max((one for one in depths if one <= most), default=min(depths))
    return {"model": model, **parameters_of(model, space, settings)}


def _other_depths(question: Question, best: Trial) -> list[Settings]:
    """The best trial at the other depths of its model, the nearest first."""
    space, own = question.space(best.model), layers_of(best)
    choice = space["layers"]
    assert isinstance(choice, Choice)
    depths = sorted(map(int, choice.values), key=lambda one: (abs(log2(one / own)), one))
    return [
        {"model": best.model, **parameters_of(best.model, space, {**best.settings, "layers": one})}
        for one in depths
        if one != own
    ]


def use_line(advice: Advice) -> str:
    """`use: gcnii (validation accuracy 95.3 ± 0.4; gcn 94.1, mlp 80.2 without the graph)`."""
    chosen, models = advice.chosen, advice.by_model()
    del models[chosen.model]
    close = {trial.model for trial in advice.close}
    scores = {model: _named(model, one) for model, one in models.items() if one}
    words = [
        f"validation {advice.question.measured} {percent(chosen.score)} ± {percent(chosen.error)}",
        _list(
            "no better within the error: ", [scores[model] for model in scores if model in close]
        ),
        _list("", [scores[model] for model in scores if model not in close]),
        _list("given up: ", [model for model in models if model not in scores]),
    ]
    why = "" if advice.uses_graph else ", because the graph does not help"
    return f"use: {chosen.model}{why} ({'; '.join(filter(None, words))})"


def depth_line(advice: Advice) -> str:
    """`depth: 8 layers (2: 91.0, 4: 94.1, 32: 94.9)`."""
    chosen, tried = advice.chosen, advice.by_depth()
    layers = layers_of(chosen)
    if not layers:
        return f"depth: {chosen.model} has no layers over the graph"
    others = [f"{depth}: {_score(one)}" for depth, one in tried.items() if depth != layers]
    within = [str(depth) for depth in _close_depths(advice) if depth > layers]
    words = [
        _list("", others) or "no other depth was tried",
        _list("no better within the error: ", within),
        "more layers were not tried" if others and layers == max(tried) else "",
    ]
    return f"depth: {layers} layers ({'; '.join(filter(None, words))})"


def _named(model: str, trial: Trial) -> str:
    alone = "" if MODELS[model].card.uses_graph else " without the graph"
    return f"{model} {percent(trial.score)}{alone}"


def _score(trial: Trial | None) -> str:
    return percent(trial.score) if trial else "given up"


def _list(head: str, words: Sequence[str]) -> str:
    return f"{head}{', '.join(words)}" if words else ""


def _close_depths(advice: Advice) -> list[int]:
    """The depths of the chosen model within the error of the best."""
    own = (trial for trial in advice.close if trial.model == advice.chosen.model)
    return sorted({layers_of(trial) for trial in own})
