"""Ensemble: several members, with weights that validation has chosen, predict as one.

Each member has the same runs, one for each split, or for each fold of a split that was drawn.  A
Blend says which of these runs answer together, and what each member weighs: the answer is the
weighted mean of the members' calibrated probabilities, after a temperature of its own.  Splits are
never mixed, so that each has a blend; the folds of one split are all in one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from statistics import fmean
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gcnii.data.splits import every_label, folded
from gcnii.errors import InputError, notice, suggestion
from gcnii.files import Document, json_value
from gcnii.graph import Features, Graph, Split
from gcnii.graph.arrays import Labels
from gcnii.graph.past import past
from gcnii.members.known import Known
from gcnii.members.linear import Linear
from gcnii.members.propagation import CorrectAndSmooth, LabelPropagation
from gcnii.members.trees import Trees
from gcnii.nn import MODELS
from gcnii.propagation import adjacency
from gcnii.results.outputs import Recomputed, calibrated
from gcnii.results.result import Result
from gcnii.results.trained import REFITTED, Answered, Floats, Probabilities, Trained, mean_weights
from gcnii.targets import LabelTarget, Target, as_labels, target_of
from gcnii.targets.scores import Answers
from gcnii.targets.target import LEAST, Bools
from gcnii.train.hardware import CPU_THREADS
from gcnii.train.plan import AUTO
from gcnii.train.recipe import Recipe
from gcnii.train.stopping import Run

Sees = Literal["graph and features", "features", "graph"]
REFIT = "refit"  # a setting, of an ensemble whose members were trained on every label
TINY = 1e-12  # 0 has no logarithm
# On 24 graphs, 25 steps or 20 halves of the nodes were no better.
STEPS, BAGS = 10, 10
BESIDE = ("roc_auc", "accuracy")  # in the leaderboard, where one of two classes is rare
Fit = TypeVar("Fit", Trees, Linear, LabelPropagation, CorrectAndSmooth)


@dataclass(frozen=True, eq=False)
class Asked:
    """A graph whose nodes are to be answered.

    known    the training graph, with the splits of the members' runs, whose nodes come first
             in `graph`; None where it is another graph, of which no label is known
    """

    graph: Graph
    known: Graph | None
    device: str = "auto"
    _said: dict[str, Probabilities | None] = field(default_factory=dict)

    @cached_property
    def earlier(self) -> Asked | None:
        """The graph of a training with times, as its validation nodes found it; else None."""
        if self.known is None or self.graph is not self.known or self.known.times is None:
            return None
        return Asked(past(self.known, "val"), self.known, self.device)

    def labels(self, run: Run) -> Known | None:
        """The labels that a run was trained on, of the nodes of this graph."""
        if self.known is None:
            return None
        return Known.of(self.known, self.known.splits[run.split]).reaching(self.graph.n)

    def of(self, member: Member) -> Probabilities | None:
        """What a member says, of which others may ask, too: computed once."""
        if member.name not in self._said:
            self._said[member.name] = member.answers(self)
        return self._said[member.name]

    @property
    def target(self) -> Target:
        return target_of(self.graph if self.known is None else self.known)


class Member(ABC):
    """What has a weight in an ensemble, under a name.

    runs          one for each run of the ensemble's layout, with its validation score and seconds
    kind          as a bundle calls it
    needs_labels  whether it cannot answer for a graph without known labels
    """

    kind: ClassVar[str]
    needs_labels: ClassVar[bool] = False
    name: str
    runs: tuple[Run, ...]

    @property
    @abstractmethod
    def sees(self) -> Sees:
        """What its answers rest on."""

    @abstractmethod
    def answers(self, asked: Asked) -> Probabilities | None:
        """(runs, n, k) calibrated probabilities; None where labels are needed and not known."""

    def unmeasured(self, run: Run, blend: Blend) -> Run:
        """The run of a blend as what is known of this member alone."""
        own = [self.runs[row] for row in blend.rows]
        val, loss = (fmean(getattr(one, name) for one in own) for name in ("val", "val_loss"))
        known = replace(run, val=val, val_loss=loss, seconds=sum(one.seconds for one in own))
        return replace(known, test=nan, temperature=None)

    @property
    def seconds(self) -> float:
        """How long its training took."""
        return sum(run.seconds for run in self.runs)


@dataclass(frozen=True, eq=False)
class Networks(Member):
    """The runs of one plan."""

    kind = "networks"
    name: str
    result: Result

    @property
    def runs(self) -> tuple[Run, ...]:  # type: ignore[override]
        """Those of the result."""
        return self.result.runs

    @property
    def sees(self) -> Sees:
        """Whether its model uses the graph."""
        return "graph and features" if MODELS[self.result.model].card.uses_graph else "features"

    def answers(self, asked: Asked) -> Probabilities:
        """Each run's, after its own temperature."""
        result = self.result.scored(asked.graph, asked.device)
        assert result.outputs is not None
        return self.of_scores(result.outputs.scores)

    def of_scores(self, scores: Tensor | Recomputed) -> Probabilities:
        """The same, of the scores (runs, n, k) of some nodes."""
        each = (calibrated(scores[i].double(), run) for i, run in enumerate(self.runs))
        return np.stack([self.result.target.answers(one) for one in each])


@dataclass(frozen=True, eq=False)
class Said:
    """What each run, or each blend, says of one graph, before its temperature: (n, k) each."""

    graph: Graph
    each: tuple[Probabilities, ...]


@dataclass(frozen=True, eq=False)
class Fitted(Member, Generic[Fit]):
    """A member that is no network, each of whose runs is kept as JSON.

    fits  the class of what answers for a run
    each  what answers for each run
    said  what they say of the training graph, where it is at hand
    """

    fits: ClassVar[type[Any]]
    name: str
    runs: tuple[Run, ...]
    each: tuple[Fit, ...]
    said: Said | None = field(default=None, repr=False, kw_only=True)

    def document(self) -> Document:
        """All of it, but its name."""
        return {
            "kind": self.kind,
            "runs": [run.summary() for run in self.runs],
            "each": [one.document() for one in self.each],
        }

    def answers(self, asked: Asked) -> Probabilities | None:
        """Each run's, after its own temperature."""
        at_hand = self.said is not None and self.said.graph is asked.graph
        found = []
        for i in range(len(self.runs)):
            P = self.said.each[i] if at_hand and self.said else self.answer_in_time(i, asked)
            if P is None:
                return None
            found.append(self.tempered(i, P, asked.target))
        return np.stack(found)

    def tempered(self, i: int, P: Probabilities, target: Target) -> Probabilities:
        """What run i says, after its own temperature."""
        T = self.runs[i].temperature
        return P if T is None else as_labels(target, "temperatures are").tempered(P, T)

    def answer_in_time(self, i: int, asked: Asked) -> Probabilities | None:
        """The same, where nodes that validated are answered by the graph as they found it."""
        P = self.answer(i, asked)
        if P is not None and asked.known is not None and asked.earlier is not None:
            val = asked.known.splits[self.runs[i].split].val
            then = self.answer(i, asked.earlier)
            assert then is not None
            P = np.where(val[:, None], then, P)
        return P

    @abstractmethod
    def answer(self, i: int, asked: Asked) -> Probabilities | None:
        """(n, k) of run i, before its temperature."""


@dataclass(frozen=True, eq=False)
class Boosted(Fitted[Trees]):
    """Trees."""

    kind, fits = "trees", Trees

    @property
    def sees(self) -> Sees:
        """By the columns that the trees look at."""
        return "features" if self.each[0].columns == "own" else "graph and features"

    def answer(self, i: int, asked: Asked) -> Probabilities:
        """Labels of another graph are not known, and are missing from the columns there."""
        trees, known = self.each[i], asked.labels(self.runs[i])
        if known is None:
            known = trees.elsewhere(asked.graph.n)
        return trees.answers(asked.graph, known, threads=CPU_THREADS.number())


@dataclass(frozen=True, eq=False)
class Regressed(Fitted[Linear]):
    """Linear regression of numbers."""

    kind, fits = "linear regression", Linear
    sees: ClassVar[Sees] = "features"

    def answer(self, i: int, asked: Asked) -> Probabilities:
        """By the columns alone, with or without labels."""
        return self.each[i].answers(asked.graph.X)


@dataclass(frozen=True, eq=False)
class Propagated(Fitted[LabelPropagation]):
    """Label propagation."""

    kind, fits = "label propagation", LabelPropagation
    sees: ClassVar[Sees] = "graph"
    needs_labels = True

    def answer(self, i: int, asked: Asked) -> Probabilities | None:
        """None without labels."""
        known = asked.labels(self.runs[i])
        return None if known is None else self.each[i](asked.graph, known)


@dataclass(frozen=True, eq=False)
class Smoothed(Fitted[CorrectAndSmooth]):
    """Correct & Smooth over the answers of another member."""

    kind, fits = "correct and smooth", CorrectAndSmooth
    sees: ClassVar[Sees] = "graph and features"
    needs_labels = True
    base: Member

    def document(self) -> Document:
        """With the name of the other."""
        return super().document() | {"base": self.base.name}

    def answer(self, i: int, asked: Asked) -> Probabilities | None:
        """None without labels."""
        known = asked.labels(self.runs[i])
        if known is None:
            return None
        said = asked.of(self.base)
        return None if said is None else self.each[i](said[i], asked.graph, known)


FITTED = {one.kind: one for one in (Boosted, Regressed, Propagated, Smoothed)}


@dataclass(frozen=True)
class Blend:
    """Runs that answer together, by their places in the layout, and the weight of each member."""

    rows: tuple[int, ...]
    weights: tuple[float, ...]


# Whether a member may have a weight on a split.
May: TypeAlias = Callable[[int, Member], bool]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ensemble(Trained):
    """Members with weights chosen on validation: it predicts, is measured and saved as a Result is.

    Attributes
    ----------
    origin : Origin
        What is remembered of the graph: `name`, `n`, `classes`, `source`, …
    members : tuple
        What was trained, the heaviest first.
    blends : tuple
        The weights of the members, for each split of the graph.
    runs : tuple
        One for each blend: `split`, `val`, `test`, `seconds`.  The weights were chosen on the
        validation nodes, so that `val` flatters a little.
    folds : int
        The number of folds that the labels which are not of test nodes were divided into; 0 where
        the validation nodes of each split were given.
    losses : tuple
        The log loss of each member, or 1 - R², on the validation nodes, the mean over the blends.
    left_out : tuple
        A sentence for each member that was not trained: there was no time for it, or it failed.
    departed : tuple
        Rows of the leaderboard of members that were trained and have no weight.
    beside : tuple
        Where one of two classes is rare: ROC AUC and accuracy of each member, the ensemble last, on
        the nodes that weighed them, the mean over the blends.
    """

    members: tuple[Member, ...]
    blends: tuple[Blend, ...]
    shared: Recipe
    folds: int
    left_out: tuple[str, ...] = ()
    departed: tuple[Document, ...] = ()
    losses: tuple[float, ...] = ()
    beside: tuple[Document, ...] = ()
    settings: Document = field(default_factory=dict)
    kept: Said | None = None

    @property
    def model(self) -> str:
        """`auto`, which is the name of no model; of one member alone, its name."""
        return AUTO if len(self.weighty) > 1 else self.title

    @property
    def recipe(self) -> Recipe:
        """What all members share: the metric, the class that counts as positive, …"""
        return self.shared

    @property
    def title(self) -> str:
        """How many members have a weight."""
        names = [member.name for member in self.weighty]
        return f"ensemble of {len(names)} members" if len(names) > 1 else names[0]

    @property
    def weighty(self) -> list[Member]:
        """The members that have a weight in a blend."""
        used = np.any([blend.weights for blend in self.blends], 0)
        return [member for member, one in zip(self.members, used, strict=True) if one]

    def predicting(self, ensemble: bool = True) -> list[int]:
        """The blend of the split that was best on validation: splits are never mixed."""
        return [self.best]

    def part(self, rows: list[int]) -> Ensemble:
        """These blends alone."""
        kept = self.kept and replace(self.kept, each=tuple(self.kept.each[i] for i in rows))
        blends = tuple(self.blends[i] for i in rows)
        return replace(self, blends=blends, runs=tuple(self.runs[i] for i in rows), kept=kept)

    def member(self, name: str) -> Ensemble:
        """The ensemble of one member alone; of a bundle, its test scores are not known.

        Parameters
        ----------
        name : str
            As the leaderboard has it.

        Returns
        -------
        Ensemble
        """
        names = [member.name for member in self.members]
        if name not in names:
            raise InputError(f"there is no member {name!r}; {suggestion(name, names)}")
        weights = tuple(float(one == name) for one in names)
        blends = tuple(replace(blend, weights=weights) for blend in self.blends)
        runs = tuple(map(self.members[names.index(name)].unmeasured, self.runs, blends))
        alone = replace(self, blends=blends, runs=runs, beside=(), kept=None)
        if self.trained_on is None or self.refitted:
            return alone
        return alone.measured_on(self.trained_on)

    def of_members(self, rows: Sequence[int], departed: Sequence[Document]) -> Ensemble:
        """The same without members that have no weight, which the leaderboard still lists."""
        blends = tuple(
            replace(blend, weights=tuple(blend.weights[i] for i in rows)) for blend in self.blends
        )
        same = replace(self, blends=blends, departed=tuple(departed), kept=None)
        if self.beside:
            same = replace(same, beside=(*(self.beside[i] for i in rows), self.beside[-1]))
        members = tuple(self.members[i] for i in rows)
        return replace(same, members=members, losses=tuple(self.losses[i] for i in rows))

    def with_results(self, change: Callable[[Result], Result]) -> Ensemble:
        """The same, with the networks of each member changed."""
        members = {one.name: one for one in self.members}
        for name, one in members.items():
            if isinstance(one, Networks):
                members[name] = replace(one, result=change(one.result))
        for name, one in members.items():
            if isinstance(one, Smoothed):
                members[name] = replace(one, base=members[one.base.name])
        return replace(self, members=tuple(members.values()))

    # What members say of a graph.

    @property
    def refitted(self) -> bool:
        """Whether its members were trained on every label after they had been measured."""
        return REFIT in self.settings

    def divided(self, graph: Graph) -> Graph:
        """The training graph with the splits that the members were trained on."""
        if self.refitted:
            return every_label(graph)
        return folded(graph, self.folds) if self.folds else graph

    def knowing(self, graph: Graph) -> Ensemble:
        """The same, whose members may use the labels of this graph, that of the training."""
        return self if self.trained_on is graph else replace(self, trained_on=graph)

    def asked(self, graph: Graph, device: str = "auto") -> Asked:
        """A graph with the columns of the training, and what is known of its labels."""
        if graph.fingerprint != self.origin.fingerprint:
            graph = self._known(graph)
        if graph.fingerprint == self.origin.fingerprint:
            known = self.divided(graph)
            return Asked(known, known, device)
        if self.trained_on is not None and extends(graph, self.trained_on):
            return Asked(graph, self.divided(self.trained_on), device)
        return Asked(graph, None, device)

    def scored(self, graph: Graph, device: str = "auto") -> Ensemble:
        """The same, with what each blend says of a graph at hand."""
        if self.kept is not None and self.kept.graph is graph:
            return self
        return replace(self, kept=Said(graph, self.said(self.asked(graph, device))))

    def said(self, asked: Asked) -> tuple[Probabilities, ...]:
        """What each blend says, before its temperature: (n, k) each."""
        blends = self.answering(asked)
        sums = [np.zeros((asked.graph.n, self.origin.k)) for _ in blends]
        for m, member in enumerate(self.members):
            if any(blend.weights[m] for blend in blends):
                answers = asked.of(member)
                assert answers is not None
                for blend, total in zip(blends, sums, strict=True):
                    if weight := blend.weights[m]:
                        total += weight * self._combined(answers, blend, asked)
        return tuple(sums)

    def hearing(self, graph: Graph, answers: Mapping[str, Probabilities]) -> Ensemble:
        """The same, with what each blend says of new nodes, which no run has trained on.

        graph    the new nodes
        answers  (runs, n, k) what each member of weight says of them, by its name
        """
        weights = {one.name: i for i, one in enumerate(self.members) if one in self.weighty}
        each = (
            sum(
                blend.weights[i] * answers[name][list(blend.rows)].mean(0)
                for name, i in weights.items()
            )
            for blend in self.blends
        )
        return replace(self, kept=Said(graph, tuple(map(np.asarray, each))))

    def answering(self, asked: Asked) -> Sequence[Blend]:
        """The blends; without members that need labels, where no label of a graph is known."""
        mute = [asked.known is None and one.needs_labels for one in self.members]
        silent = [one.name for one in self.weighty if asked.known is None and one.needs_labels]
        if not silent:
            return self.blends
        words = ", ".join(silent)
        notice(f"{words} would need labels of {asked.graph.name}; the others answer")
        able = np.where(mute, 0.0, 1.0)
        # Where no other has a weight, the best of them answers.
        best = np.zeros(len(able))
        best[np.argmin(np.where(mute, np.inf, self.losses))] = 1
        found = []
        for blend in self.blends:
            rest = able * blend.weights
            rest = rest / rest.sum() if rest.any() else best
            found.append(replace(blend, weights=tuple(map(float, rest))))
        return found

    def _combined(self, answers: Probabilities, blend: Blend, asked: Asked) -> Probabilities:
        """(n, k) what the runs of a blend say, of all that a member's runs (r, n, k) say."""
        splits = () if asked.known is None else self.splits(blend, asked.known)
        return combined(answers[list(blend.rows)], splits)

    def rows_for(self, node: int, blend: Blend, asked: Asked) -> list[int]:
        """The runs of a blend whose mean answers for a node, as `combined` has it."""
        if asked.known is None or node >= asked.known.n:
            return list(blend.rows)
        pairs = zip(blend.rows, self.splits(blend, asked.known), strict=True)
        return [row for row, split in pairs if split.val[node]] or list(blend.rows)

    def splits(self, blend: Blend, divided: Graph) -> list[Split]:
        """Those that the runs of a blend were trained on."""
        return [divided.splits[self.members[0].runs[row].split] for row in blend.rows]

    def _answers(
        self, graph: Graph, device: str, ensemble: bool
    ) -> tuple[Probabilities, float | None]:
        if not ensemble:
            best = self.members[int(np.argmin(self.losses))].name  # in the blend that predicts
            return self.member(best)._answers(graph, device, ensemble=True)
        if len(self.blends) > 1:
            notice(
                f"the {len(self.blends)} splits have weights of their own and are never mixed; "
                f"those of split {self.runs[self.best].split}, the best by validation, predict"
            )
        one = self.part([self.best]).scored(graph, device)
        assert one.kept is not None
        return one.kept.each[0].copy(), one.runs[0].temperature

    def trainings(self, graph: Graph) -> list[Split]:
        """One for each fold, where there are folds."""
        return self.splits(self.blends[self.best], self.divided(graph))

    def recalibrated(self, val: Bools) -> Ensemble:
        """The same blend of one split: weights and temperature are those of these nodes alone."""
        assert self.kept is not None
        graph = self.kept.graph
        return self.weighed_on(graph, val).measured_on(graph, val)

    def weighed_on(
        self, graph: Graph, val: Bools | None = None, may: Sequence[May] = ()
    ) -> Ensemble:
        """The same, with weights that are chosen anew for each blend.

        graph  that of the training
        val    the nodes that choose, in the place of all that were held out
        may    which members may have a weight on which split: of several choices, the one with the
               lowest loss; default: all
        """
        asked = self.asked(graph, self.device_word)
        y, known = graph.labels, asked.known
        assert known is not None
        chosen = [
            held_out(self.splits(blend, known)) if val is None else val for blend in self.blends
        ]
        said: list[list[Probabilities]] = [[] for _ in self.blends]
        for member in self.members:
            answers = asked.of(member)
            assert answers is not None  # it is the training graph
            for i, blend in enumerate(self.blends):
                said[i].append(self._combined(answers, blend, asked)[chosen[i]])
        blends, losses, beside = [], np.zeros(len(self.members)), list[list[Document]]()
        for blend, each, nodes in zip(self.blends, said, chosen, strict=True):
            split = self.members[0].runs[blend.rows[0]].split
            able = [[choice(split, one) for one in self.members] for choice in may]
            weights = _weights(np.stack(each), y[nodes], self.target, able)
            blends.append(replace(blend, weights=tuple(map(float, weights))))
            losses += [badness(self.target, P, y[nodes]) / len(self.blends) for P in each]
            if self.by_threshold:
                together: Probabilities = np.tensordot(weights, np.stack(each), 1)
                beside.append([self._beside(P, y[nodes]) for P in [*each, together]])
        means = tuple(
            {name: fmean(one[name] for one in own) for name in own[0]}
            for own in zip(*beside, strict=True)
        )
        known_losses = tuple(map(float, losses))
        return replace(self, blends=tuple(blends), losses=known_losses, beside=means, kept=None)

    def _beside(self, P: Probabilities, y: NDArray[np.int64]) -> Document:
        """Scores beside that of the training, of probabilities on the nodes that weigh members."""
        by, target = (self.positive, self.recipe.price), self.label_target
        guess = target.decided(P, target.best_threshold(P, y, *by))
        scores = Answers(target, P, guess, y, positive=self.positive).scores
        return {name: float(scores[name]) for name in BESIDE}

    def measured_on(self, graph: Graph, val: Bools | None = None) -> Ensemble:
        """The same, with temperature, threshold and scores of each blend.

        graph  that of the training
        val    the nodes that calibrate, in the place of all that were held out
        """
        same = self.scored(graph, self.device_word)
        divided = self.divided(graph)
        runs = tuple(same._graded(i, divided, val) for i in range(len(same.blends)))
        return replace(same, runs=runs, trained_on=graph)

    def _graded(self, i: int, graph: Graph, val: Bools | None) -> Run:
        """The run of blend i, of labels calibrated, and measured."""
        assert self.kept is not None
        rows, P = self.blends[i].rows, self.kept.each[i]
        mate, splits = self.members[0].runs[rows[0]], self.splits(self.blends[i], graph)
        chosen = held_out(splits) if val is None else val
        y = graph.labels
        P, T, threshold = self._tempered(P, y, chosen)
        weights = mean_weights([one.runs[row] for one in self.members for row in rows])
        run = Run(
            seed=mate.seed,
            split=0 if self.folds else mate.split,
            seconds=sum(one.runs[row].seconds for one in self.members for row in rows),
            temperature=T,
            threshold=threshold,
            weights=None if weights is None else weights.tolist(),
            stopped=True,
        )
        alone = replace(self, blends=(self.blends[i],), runs=(run,))
        loss = badness(self.target, P[chosen], y[chosen])
        guess = alone.decide(P)
        val_score, test = (alone._score(P, guess, graph, one) for one in (chosen, splits[0].test))
        return replace(run, val=val_score, test=test, val_loss=loss)

    def _tempered(
        self, P: Answered, y: Labels, chosen: Bools
    ) -> tuple[Answered, float | None, float | None]:
        """Probabilities, their temperature and threshold, as suits the labels of these nodes."""
        target, T, threshold = self.target, None, None
        if not isinstance(target, LabelTarget):
            return P, T, threshold
        if target.exclusive and chosen.sum() >= LEAST:
            logs = np.log(np.maximum(P[chosen], np.finfo(np.float64).tiny))
            T = target.best_temperature(logs, y[chosen])
            P = target.tempered(P, T)
        if not target.exclusive or self.recipe.has_threshold:
            by = self.positive, self.recipe.price
            threshold = target.best_threshold(P[chosen], y[chosen], *by)
        return P, T, threshold

    @property
    def device_word(self) -> str:
        """Where it was trained, as `scored` is told."""
        return "auto" if self.device.startswith("cuda") else "cpu"

    # What has one network for an answer: that of the heaviest that has one.

    @property
    def networks(self) -> list[Networks]:
        """The members that are networks."""
        return [member for member in self.members if isinstance(member, Networks)]

    def network_weights(self, blend: Blend) -> dict[Networks, float]:
        """What each network weighs in a blend: its own weight, and that of its Correct & Smooth."""
        found = dict.fromkeys(self.networks, 0.0)
        for member, weight in zip(self.members, blend.weights, strict=True):
            network = member.base if isinstance(member, Smoothed) else member
            if isinstance(network, Networks):
                found[network] = found.get(network, 0.0) + weight
        return found

    def heaviest(self) -> Networks:
        """The network that weighs most in the blend that predicts."""
        weights = self.network_weights(self.blends[self.best])
        if not weights:
            raise InputError("no member of this ensemble is a network, and only networks have this")
        return max(weights, key=lambda one: weights[one])

    def network_result(self) -> Result:
        """The heaviest networks as a Result of the runs that predict."""
        return self.heaviest().result.part(list(self.blends[self.best].rows))

    def embed(self, graph: Graph, device: str = "auto") -> Floats:
        """The last hidden layer of the heaviest network.

        Parameters
        ----------
        graph : Graph
            A graph with the features of the training.
        device : {"auto", "cpu", "cuda"}
            Where to compute.

        Returns
        -------
        (n, width) array
        """
        return self.network_result().embed(graph, device)

    def features(self, graph: Graph) -> Features:
        """X of a graph as the heaviest network sees it; without any, the columns themselves."""
        if self.networks:
            return self.heaviest().result.features(graph)
        return self._known(graph).X

    def unlinked(self, graph: Graph) -> Bools:
        """(n,) the nodes without a neighbour; none, where no member of weight uses edges."""
        if all(member.sees == "features" for member in self.weighty):
            return np.zeros(graph.n, bool)
        A = adjacency(graph, "both", "remove")
        return np.asarray(np.asarray(A.sum(1)).ravel() == 0)

    def leaderboard(self) -> list[Document]:
        """A row for each member, the best on validation first; the ensemble is the last.

        Returns
        -------
        list of dict
            `member`, `sees`, `val`, `val_loss`, `weight` (means over the splits) and `seconds`.
        """
        weights = np.mean([blend.weights for blend in self.blends], 0)
        beside = self.beside or (None,) * (len(self.members) + 1)
        own = zip(self.members, weights, self.losses, beside[:-1], strict=True)
        rows = [*(about_member(*one) for one in own), *self.departed]
        rows.sort(key=lambda row: (row["val_loss"] is None, row["val_loss"]))
        losses = fmean(run.val_loss for run in self.runs)
        every = {"val": json_value(fmean(self.val)), "val_loss": losses}
        seconds = round(sum(row["seconds"] for row in rows), 2)
        last = {"member": "ensemble", "sees": "graph and features", **every, "weight": 1.0}
        return [*rows, last | {"seconds": seconds} | (beside[-1] or {})]

    def in_force(self) -> Document:
        """What was asked for."""
        return self.settings

    def summary(self) -> Document:
        """The one JSON document of `gcnii train --json`."""
        refitted = {"scores": REFITTED} if self.refitted else {}
        own: Document = {
            "model": AUTO,
            "settings": self.settings,
            "folds": self.folds,
            "leaderboard": self.leaderboard(),
            "left_out": list(self.left_out),
        }
        return refitted | super().summary() | own


def _weights(
    P: Probabilities, y: NDArray[np.int64], target: Target, choices: Sequence[Sequence[bool]]
) -> Floats:
    """(m,) those of members with probabilities P (m, nodes, k), by the best of these choices."""
    found = []
    for able in np.array(choices or [[True] * len(P)]):
        weights = np.zeros(len(P))
        weights[able] = greedy(P[able], y, target)
        found.append((badness(target, np.tensordot(weights, P, 1), y), weights))
    return min(found, key=lambda one: one[0])[1]


def half_the_cores() -> int:
    """Threads of trees: more of them wait for each other on a busy machine."""
    return max(CPU_THREADS.number() // 2, 1)


def about_member(
    member: Member, weight: float, loss: float, beside: Document | None = None
) -> Document:
    """A row of the leaderboard."""
    return {
        "member": member.name,
        "sees": member.sees,
        "val": json_value(fmean(run.val for run in member.runs)),
        **(beside or {}),
        "val_loss": json_value(float(loss)),
        "weight": round(float(weight), 4),
        "seconds": round(member.seconds, 2),
    }


def badness(target: Target, answers: Answered, y: Labels) -> float:
    """The mean over nodes: the log loss of probabilities, 1 - R² of values."""
    return float(target.badness(answers, y).mean())


def held_out(splits: Iterable[Split]) -> Bools:
    """(n,) the nodes that validate in one of these splits."""
    return np.asarray(np.any([split.val for split in splits], 0))


def combined(answers: Probabilities, splits: Sequence[Split]) -> Probabilities:
    """(n, k) the mean of runs (r, n, k), of which each was trained on a split.

    Nodes that validate in some of the splits are answered by the runs on these alone, for the
    others have trained on them.  Nodes beyond those of the splits are new.
    """
    mean = np.asarray(answers.mean(0))
    if splits:
        held = np.stack([split.val for split in splits])
        times = held.sum(0)
        some = np.flatnonzero((times > 0) & (times < len(splits)))
        own = np.einsum("rn,rnk->nk", held[:, some], answers[:, some])
        mean[some] = own / times[some, None]
    return mean


def extends(graph: Graph, known: Graph) -> bool:
    """Whether the nodes and edges of `known` are the first of a graph."""
    return bool(
        graph.n >= known.n
        and graph.m >= known.m
        and np.array_equal(graph.edges[:, : known.edges.shape[1]], known.edges)
        and np.array_equal(graph.labels[: known.n], known.labels, equal_nan=True)
    )


def greedy(P: Answered, y: Labels, target: Target, *, bags: int = BAGS, seed: int = 0) -> Floats:
    """(m,) weights, summing to 1, of members with calibrated probabilities P (m, nodes, k).

    Or with values.

    Greedy forward selection with replacement (Caruana, 2004): members are added one at a time, each
    time the one with which the log loss, or the squared error, of the weighted mean is lowest on
    validation nodes, and a member's weight is how often it was added.  Few nodes would be
    overfitted: so the selection is repeated on random halves of the nodes, and the weights are the
    mean of all (bagging).

    y     the labels of these nodes, all known
    bags  halves of the nodes on which members are selected
    seed  of the halves
    """
    labels = isinstance(target, LabelTarget)
    q = likelihoods(P, y, target) if isinstance(target, LabelTarget) else residuals(P, y)
    worth, nodes = (likelihood if labels else closeness), len(y)
    random, counts = np.random.default_rng(seed), np.zeros(len(P))
    for _ in range(bags):
        half = random.choice(nodes, (nodes + 1) // 2, replace=False)
        counts += selected(q[:, half].reshape(len(P), -1), worth)
    return np.asarray(counts / counts.sum())


def residuals(values: Answered, y: NDArray[np.float64]) -> Floats:
    """(m, nodes, q) by how many deviations of y each member is off."""
    deviation = y.std(0)
    return np.asarray((values - y) / np.where(deviation > 0, deviation, 1.0))


def closeness(sums: Floats) -> Floats:
    """(m,) of sums of residuals: the mean of members is off by them."""
    return np.asarray(-np.square(sums).sum(1))


def likelihood(sums: Floats) -> Floats:
    """(m,) of sums of likelihoods, which the mean of members gives to what is true."""
    return np.asarray(np.log(sums).sum(1))


def likelihoods(P: Probabilities, y: NDArray[np.int64], target: LabelTarget) -> Probabilities:
    """(m, nodes, 1 or k) what each member gives to what is true, of each class or each label."""
    true = target.indicators(y)
    given = (P * true).sum(2, keepdims=True) if target.exclusive else np.where(true, P, 1 - P)
    return np.asarray(np.maximum(given, TINY))


def selected(q: Floats, worth: Callable[[Floats], Floats] = likelihood) -> Probabilities:
    """(m,) how often each member is added, each time the one with which the sum is worth most."""
    counts, total = np.zeros(len(q)), np.zeros(q.shape[1])
    for _ in range(STEPS):
        best = int(worth(total + q).argmax())
        counts[best] += 1
        total += q[best]
    return counts
