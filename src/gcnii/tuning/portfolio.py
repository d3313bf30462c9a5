"""The portfolio: several members are trained, and weighed by validation, instead of one chosen.

Members come in the order of their worth per second.  Where the split was drawn, so that its
validation nodes need not stay apart, the labels that are not of test nodes are divided into folds:
members are first trained with one fold held out, and those that get a weight there with the
others.  The same folder is gone on from: what it holds of this portfolio is not trained again.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Literal, TypeAlias, TypeVar, get_args

import numpy as np
import torch

from gcnii.data.splits import folded, is_drawn
from gcnii.errors import GcniiError, InputError, is_one_of, notice
from gcnii.files import CHECKPOINT, Document
from gcnii.graph import Graph, Split
from gcnii.graph.arrays import Labels
from gcnii.members.forest import available
from gcnii.members.linear import Linear
from gcnii.members.propagation import CorrectAndSmooth, LabelPropagation
from gcnii.members.trees import Columns, Trees, refusal
from gcnii.nn import MODELS
from gcnii.nn.settings import Settings, whole_seeds
from gcnii.results.bundle import MEMBERS, read_member, save_member
from gcnii.results.ensemble import (
    Asked,
    Blend,
    Boosted,
    Ensemble,
    Fitted,
    May,
    Member,
    Networks,
    Propagated,
    Regressed,
    Said,
    Smoothed,
    about_member,
    badness,
    half_the_cores,
)
from gcnii.results.fit import SILENT, Session, fit_plans
from gcnii.results.outputs import KEPT
from gcnii.results.trained import Origin, Probabilities
from gcnii.targets import LabelTarget, target_of
from gcnii.targets.objective import positive_class
from gcnii.targets.scores import LOWER, Answers
from gcnii.targets.target import LEAST
from gcnii.train.checkpoint import Checkpoint, remove
from gcnii.train.group import Interrupt, interruptible
from gcnii.train.hardware import choose_device, device_name, lacks_memory
from gcnii.train.plan import Plan, about_rare, make_plan
from gcnii.train.presets import Point, portfolio
from gcnii.train.recipe import Recipe
from gcnii.train.stopping import Run, make_runs

Effort: TypeAlias = Literal["quick", "standard", "best"]
Show = Callable[[str], None]
One = TypeVar("One", Trees, Linear, LabelPropagation, CorrectAndSmooth)
Kind = TypeVar("Kind", Boosted, Regressed, Propagated, Smoothed)
Answered: TypeAlias = Mapping[int, Probabilities]


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Extent:
    """How much an effort takes.

    points  of networks, by name; None: all
    folds   that a drawn split is divided into
    least   seconds that may be used on any graph, on a CPU
    epochs  of the first network that uses the graph, which may be used if they take longer
    """

    points: tuple[str, ...] | None
    folds: int
    least: float = inf
    epochs: float = inf


QUICK = ("mlp", "features", "gcnii", "plus-small", "product-out")
STANDARD = (*QUICK, "appnp", "graphsage", "plus", "plus-out")
EXTENTS: Mapping[Effort, Extent] = {
    "quick": Extent(QUICK, 3, 15, 450),
    "standard": Extent(STANDARD, 5, 50, 1500),
    "best": Extent(None, 5),
}
CLOSING = 0.1  # share of a budget in which the ensemble is weighed, measured and written
FIRST = 0.6  # share of the time for members with one fold held out, the rest is for the others
SLICE = 0.5  # of the time that is left, which one network may take
FEWEST = 20  # labels, below which a drawn split stays as it is
LIGHT = 0.05  # weight below which a member leaves after the first fold
SPARE = 0.3  # weight of members that may leave, so that there is time for all folds
SMOOTHED = 2  # members over which Correct & Smooth is tried; of several splits, these
ALWAYS = ("mlp", "features", "linear")
PROBATION, FAR = 80, 0.1  # epochs after which a run leaves that is so far below another
TINY = 1e-12  # 0 has no logarithm
TREES, OWN_TREES, LABELS, LINEAR = "trees", "trees-own", "label-propagation", "linear"


def prepared(
    graph: Graph,
    given: Settings | None = None,
    session: Session = SILENT,
    *,
    effort: Effort = "standard",
    budget: str | float | None = None,
    seeds: Sequence[int] | None = None,
    split: int | None = None,
    began: float | None = None,
    points: Sequence[Point] | None = None,
) -> Course:
    """The portfolio of an effort, to be trained; an error, before any work, if that cannot be.

    given   settings that all members have, such as the metric
    budget  a time for all of it, from `began` on, by `time.monotonic`; default: what the effort
            takes
    seeds   of which each trains every split, or every fold; default: one
    points  networks that are the only members, in the place of the effort's
    """
    if not is_one_of(effort, get_args(Effort)):
        raise InputError(f"effort must be {', '.join(get_args(Effort))}, got {effort!r}")
    start = time.monotonic() if began is None else began
    extent, asked = EXTENTS[effort], given or {}
    device = choose_device(session.device)
    seconds = None if budget is None else seconds_of(budget)
    seeds = whole_seeds(seeds)
    whole_runs = make_runs(graph, seeds, split)
    folds = extent.folds if split is None and is_drawn(graph) and _labels(graph) >= FEWEST else 0
    divided = folded(graph, folds) if folds else graph
    layout = make_runs(divided, _per_fold(seeds or [0], folds), None) if folds else whole_runs
    clock = Clock(start, seconds, extent, 1 if folds else len(layout), device)
    where = {"seeds": seeds, "split": split}
    told = {name: one for name, one in where.items() if one is not None}
    settings: Document = json.loads(json.dumps({"effort": effort, **asked, **told}))
    course = Course(
        graph, divided, layout, split, folds, asked, settings, session, clock, extent, points
    )
    course.recipe.refuse_labels(divided, [run.split for run in layout])
    if sentence := about_rare(graph, course.recipe, asked):
        notice(sentence)
    return course


def seconds_of(budget: str | float, instead: str = "") -> float:
    """ "90s", "10m", "1.5h" or a number of seconds; InputError for anything else."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+) ?([smhd]?)", str(budget).strip())
    seconds = float(found[1]) * UNITS[found[2] or "s"] if found else 0.0
    if not 0 < seconds < sys.maxsize:
        raise InputError(
            f"budget must be a time such as 90s, 10m or 2h, got {str(budget)!r}{instead}"
        )
    return seconds


def _per_fold(seeds: Sequence[int], folds: int) -> list[int]:
    """For each of these, one seed for each fold: seed s is on fold s modulo their number."""
    return [seed * folds + fold for seed in seeds for fold in range(folds)]


def _labels(graph: Graph) -> int:
    return int((graph.splits[0].train | graph.splits[0].val).sum())


class Clock:
    """How long members may be trained.

    Of a budget, all but what closing takes; else, on a CPU, what the effort allows: it grows with
    what the first network takes, so that a large graph gets more.
    """

    def __init__(
        self, start: float, budget: float | None, extent: Extent, runs: int, device: torch.device
    ):
        self.start, self.extent, self.runs = start, extent, runs
        self.limit = self.most = inf if budget is None else (1 - CLOSING) * budget
        self.fixed = budget is not None or device.type != "cpu"

    def measured(self, epoch: float) -> None:
        """Take the seconds of the first network's epochs for the measure of the graph."""
        if not self.fixed:
            each = max(self.extent.least, self.extent.epochs * epoch)
            self.limit, self.fixed = min(each * self.runs, self.most), True

    def at_most(self, seconds: float) -> None:
        """Let it take as long as the effort does, but no longer than this, closing included."""
        self.most = (1 - CLOSING) * seconds
        self.limit = min(self.limit, self.most)

    @property
    def spent(self) -> float:
        """The share of the time that is gone."""
        return (time.monotonic() - self.start) / self.limit

    @property
    def left(self) -> float:
        """Seconds."""
        return self.start + self.limit - time.monotonic()


@dataclass(eq=False)
class Course:
    """A portfolio in training.

    divided   the graph with the splits that members are trained on, `layout` their runs
    only      networks that are the only candidates, if they are given
    members   that are trained, by name
    tried     networks that were trained, those that have left among them
    rows      the places in `layout` that every member has
    departed  what the leaderboard says of those that were trained and have no weight
    left_out  sentences about those that were not trained
    waiting   those for which there was no time so far
    """

    graph: Graph
    divided: Graph
    layout: list[Run]
    split: int | None
    folds: int
    given: Settings
    settings: Document
    session: Session
    clock: Clock
    extent: Extent
    only: Sequence[Point] | None = None
    folder: Path | None = None
    show: Show = print
    members: dict[str, Member] = field(default_factory=dict)
    tried: dict[str, Networks] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)
    departed: list[Document] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    interrupted: bool = False
    interrupt: Interrupt = field(default_factory=Interrupt)

    def run(self, folder: Path | None = None, show: Show = lambda words: None) -> Ensemble:
        """Train, fold by fold where there are folds, and weigh what there is by validation.

        folder  that is claimed, where members are kept as they are done; default: nowhere
        show    called with the name of what is trained
        """
        with interruptible():
            self.train(folder, show)
            return self.combined().measured_on(self.graph)

    def train(self, folder: Path | None, show: Show) -> None:
        """Train the members of the effort."""
        self.folder, self.show = folder, show
        with interruptible() as self.interrupt:
            self._train_in_stages()

    def _stops(self) -> bool:
        """Whether someone has asked to stop before all was trained."""
        self.interrupted = self.interrupted or bool(self.interrupt)
        return self.interrupted

    def _train_in_stages(self) -> None:
        # A GPU takes as long for one fold as for all.
        staged = bool(self.folds) and choose_device(self.session.device).type == "cpu"
        rows = [0] if staged else list(range(len(self.layout)))
        self._train_all(self._candidates(), rows, until=FIRST if staged else 1.0)
        if not self.members:
            if self.interrupted:
                raise KeyboardInterrupt
            raise InputError(f"no member could be trained: {'; '.join(self.left_out)}")
        if staged and not self.interrupted:
            ensemble = self._ensemble(rows).weighed_on(self.graph)
            self._leave(ensemble, LIGHT)
            self._make_room(ensemble)
            rows = self._further()
            if len(rows) == 1:  # there is no time for another fold, but for some members
                names, self.waiting = self.waiting, []
                self._train_all(names, rows, until=1.0)
        if not self.interrupted:  # else what some members have more is kept, to go on from
            self.members = {name: _trimmed(one, rows) for name, one in self.members.items()}
        self.rows = rows

    def go_on(self, ensemble: Ensemble, folder: Path | None, show: Show) -> None:
        """Take the members of an ensemble that was saved in the place of training them."""
        self.folder, self.show = folder, show
        self.members = {one.name: one for one in ensemble.members}
        self.tried = {one.name: one for one in ensemble.members if isinstance(one, Networks)}
        self.departed, self.left_out = list(ensemble.departed), list(ensemble.left_out)
        self.rows = sorted({row for blend in ensemble.blends for row in blend.rows})

    def add(self, point: Point, seconds: float) -> Networks | None:
        """Train another member beside those that there are; None if it fails.

        seconds  that it may take
        """
        clock = self.clock
        clock.start, clock.limit, clock.fixed = time.monotonic(), seconds / SLICE, True
        self.points[point.name] = point
        self._train(point.name, self.rows)
        found = self.members.get(point.name)
        return found if isinstance(found, Networks) else None

    def combined(self, *choices: May) -> Ensemble:
        """The members, weighed by validation; those without a weight leave.

        choices  which members may have a weight on which split; of several choices, the one whose
                 validation loss is lowest there; default: all
        """
        self._smooth_best(self.rows)
        ensemble = self._ensemble(self.rows)
        ensemble = ensemble.weighed_on(self.graph, may=choices)
        self._leave(ensemble, 0.0)
        kept = [i for i, one in enumerate(ensemble.members) if one.name in self.members]
        return ensemble.of_members(kept, self.departed)

    def _ensemble(self, rows: list[int]) -> Ensemble:
        """Of all members, on these runs, not weighed yet."""
        folds = self.folds
        members = tuple(self.members.values())
        splits = dict.fromkeys(0 if folds else self.layout[i].split for i in rows)
        blends = tuple(
            Blend(
                tuple(i for i in rows if folds or self.layout[i].split == split),
                (1 / len(members),) * len(members),
            )
            for split in splits
        )
        device = choose_device(self.session.device)
        return Ensemble(
            origin=Origin.of(self.graph),
            members=members,
            blends=blends,
            runs=(),
            shared=self.recipe,
            folds=folds,
            device=device_name(device),
            interrupted=self.interrupted,
            left_out=(
                *self.left_out,
                *(f"{name} was left out: there was no time for it" for name in self.waiting),
            ),
            settings=self.settings,
            positive=self.positive,
            trained_on=self.graph,
        )

    @property
    def networks(self) -> list[Networks]:
        """The members that are networks."""
        return [one for one in self.members.values() if isinstance(one, Networks)]

    # Members, one after the other.

    def _train_all(self, names: Iterable[str], rows: list[int], until: float) -> None:
        """Train these on these runs; those for which there is no time wait."""
        for name in names:
            if self._stops():
                return
            if self.members and self.clock.spent > until:
                self.waiting.append(name)
                continue
            self._train(name, rows)

    def _candidates(self) -> Iterator[str]:
        """What may become a member."""
        if self.only is not None:
            yield from self.points
            return
        yield LABELS
        if self.graph.targets:
            yield LINEAR
        if why := available() or refusal(target_of(self.divided)):
            self.left_out.append(why)
        else:
            yield from (TREES, OWN_TREES)
        yield from self.points

    def _train(self, name: str, rows: list[int]) -> None:
        """Train a member on these runs, of which it may have some; name it if that fails."""
        own = self.members.get(name) or self._kept(name)
        missing = rows[len([i for i in rows if own and i < len(own.runs)]) :]
        if missing:
            self.show(name)
            try:
                more = self._trained(name, missing)
            except (GcniiError, MemoryError, RuntimeError) as error:
                if not isinstance(error, GcniiError) and not lacks_memory(error):
                    raise
                self.left_out.append(f"{name} was left out: {error}")
                self.members.pop(name, None)
                return
            if more is None:
                return
            own = more if own is None else joined(own, more)
            if self.folder is not None:
                save_member(own, self.folder)
        assert own is not None
        self.members[name] = own
        if isinstance(own, Networks):
            self.tried[name] = own

    def _trained(self, name: str, rows: list[int]) -> Member | None:
        if name in self.points:
            return self._networks(name, rows)
        if name == LABELS:
            spread = self._fits(rows, lambda split, run: LabelPropagation.fit(self.divided, split))
            return self._graded(Propagated(name, *spread))
        most = SLICE * self.clock.left
        if name == LINEAR:
            fitted = self._fits(rows, lambda split, run: Linear.fit(self.divided, split), most)
            return self._graded(Regressed(name, *fitted))
        columns: Columns = "own" if name == OWN_TREES else "neighbourhood"

        def grow(split: Split, run: Run) -> Trees:
            return Trees.fit(
                self.divided, split, columns=columns, seed=run.seed, threads=half_the_cores()
            )

        return self._graded(Boosted(name, *self._fits(rows, grow, most)))

    @cached_property
    def points(self) -> dict[str, Point]:
        """The networks, in their order."""
        if self.only is not None:
            return {point.name: point for point in self.only}
        found = {point.name: point for point in portfolio(self.divided)}
        names = self.extent.points or tuple(found)
        return {name: found[name] for name in names if name in found}

    def _kept(self, name: str) -> Member | None:
        """The member that the folder holds, if it is the one that would be trained."""
        if self.folder is None:
            return None
        member = read_member(self.folder / MEMBERS / name, self.members)
        if member is None:
            return None
        if isinstance(member, Networks):
            other = member.result.interrupted or member.result.plan != self._plan(name)
            if other or member.result.origin.fingerprint != self.divided.fingerprint:
                return None
            _forget_finished(self.folder / MEMBERS / name / CHECKPOINT, member.runs)
        found = [(run.seed, run.split) for run in member.runs]
        wanted = [(run.seed, run.split) for run in self.layout]
        return member if found == wanted[: len(found)] else None

    @cached_property
    def positive(self) -> int | None:
        """The class that ROC AUC and average precision are of."""
        return positive_class(self.graph, self.recipe.positive)

    @cached_property
    def recipe(self) -> Recipe:
        """What all members share."""
        return self._plan(next(iter(self.points))).recipe

    def _plan(self, name: str) -> Plan:
        """That of a point; a graph of the catalog is treated as if nobody had published on it."""
        point, graph = self.points[name], self.divided
        plain = graph._with_origin(graph.source, "", graph.loaded_with)
        settings = {**point.settings, "longest": 0, **self.given}
        return make_plan(point.model, settings, plain)

    def _networks(self, name: str, rows: list[int]) -> Networks | None:
        """These runs of a point; None if someone stopped them."""
        begun = time.monotonic()
        end = begun + SLICE * self.clock.left

        def leave(runs: Sequence[Run]) -> Sequence[Run]:
            return runs if time.monotonic() > end else [one for one in runs if self._behind(one)]

        blind = not MODELS[self.points[name].model].card.uses_graph  # it is compared with
        session = replace(
            self.session,
            leave=(lambda runs: runs if time.monotonic() > end else ()) if blind else leave,
            checkpoint=self.folder and self.folder / MEMBERS / name / CHECKPOINT,
            title=name,
        )
        result = fit_plans(
            self.divided,
            [self._plan(name)],
            session,
            seeds=[self.layout[i].seed for i in rows],
            split=self.split,
            calibrate="temperature",
        )
        if result.interrupted:
            self.interrupted = True
            return None
        if not blind:
            epochs = sum(run.epochs for run in result.runs)
            self.clock.measured((time.monotonic() - begun) / epochs)
        return Networks(name, result.scored(self.divided, self.session.device))

    def _behind(self, run: Run) -> bool:
        """Whether a run is far below what another member has on the same split."""
        if run.epochs < PROBATION or not run.curve or self.recipe.scored_by in LOWER:
            return False  # an error has no scale by which it is far
        others = [one.val for each in self.members.values() for one in each.runs]
        splits = [one.split for each in self.members.values() for one in each.runs]
        best = max((v for v, s in zip(others, splits, strict=True) if s == run.split), default=0.0)
        return max(val for *_, val in run.curve) < best - FAR

    def _fits(
        self, rows: list[int], fit: Callable[[Split, Run], One], most: float = inf
    ) -> tuple[tuple[Run, ...], tuple[One, ...]]:
        """The runs, each with its time, and what is fitted to the split of each.

        InputError if the first shows that all would take more than `most` seconds.
        """
        runs, each = list[Run](), list[One]()
        for i in rows:
            if len(runs) == 1 and runs[0].seconds * len(rows) > most:
                raise InputError(f"its {len(rows)} runs would take {runs[0].seconds:.0f} s each")
            run, begun = self.layout[i], time.monotonic()
            each.append(fit(self.divided.splits[run.split], run))
            runs.append(replace(run, seconds=time.monotonic() - begun, stopped=True))
        return tuple(runs), tuple(each)

    def _further(self) -> list[int]:
        """Train the members with the other folds held out, while there is time; all runs so far."""
        for i in range(1, len(self.layout)):
            expected = sum(one.seconds / len(one.runs) for one in self.members.values())
            if expected > self.clock.left:
                count = len(self.layout) - i
                self.left_out.append(
                    f"{count} of {len(self.layout)} folds were left out: there was no time for them"
                )
                return list(range(i))
            for name in list(self.members):
                if not self._stops():
                    self._train(name, list(range(i + 1)))
            if self.interrupted:
                return list(range(i))
        return list(range(len(self.layout)))

    def _leave(self, ensemble: Ensemble, least: float) -> None:
        """Let go of members whose weight is not above `least` in any blend."""
        most, needed = np.max([blend.weights for blend in ensemble.blends], 0), _needed(ensemble)
        for i, member in enumerate(ensemble.members):
            if most[i] <= least and member.name not in needed:
                self._depart(ensemble, i)

    def _depart(self, ensemble: Ensemble, i: int) -> None:
        """Let go of a member, which the leaderboard still lists."""
        member = ensemble.members[i]
        others = [row for row in self.departed if row["member"] != member.name]
        beside = ensemble.beside[i] if ensemble.beside else None
        self.departed = [*others, about_member(member, 0.0, ensemble.losses[i], beside)]
        del self.members[member.name]

    def _make_room(self, ensemble: Ensemble) -> None:
        """Let go of what costs most for its weight, where the other folds would take too long.

        A fold that is left out costs every member more than a light one adds.
        """
        weights, needed, spare = ensemble.blends[0].weights, _needed(ensemble), SPARE
        worth = {
            one.name: (weights[i] / max(one.seconds, TINY), i)
            for i, one in enumerate(ensemble.members)
            if one.name in self.members and one.name not in needed
        }
        each = sum(one.seconds / len(one.runs) for one in self.members.values())
        going = []
        for _, i in sorted(worth.values()):
            spare -= weights[i]
            if each * (len(self.layout) - 1) <= self.clock.left or spare < 0:
                break
            going.append(i)
            each -= ensemble.members[i].seconds / len(ensemble.members[i].runs)
        if each > self.clock.left:  # not even one fold more
            return
        for i in going:
            name = ensemble.members[i].name
            self._depart(ensemble, i)
            self.left_out.append(f"{name} left after the first fold: there was no time for it")

    def _smooth_best(self, rows: list[int]) -> None:
        """Correct & Smooth over the members with the lowest validation loss.

        Of several splits, over the same ones always: a node that validates one split may be tested
        in another, and must have no part in what is chosen there.
        """
        asked = Asked(self.divided, self.divided, self.session.device)
        plain = [one for one in self.members.values() if not isinstance(one, Smoothed)]
        able = [one for one in plain if one.sees != "graph"]
        able.sort(key=lambda one: fmean(run.val_loss for run in one.runs))
        if not self.folds and len({self.layout[i].split for i in rows}) > 1:
            able = [one for one in able if one.name in ALWAYS]
        else:
            able = able[:SMOOTHED]
        for base in able:
            said = (asked.earlier or asked).of(base)
            assert said is not None
            answers = {run.seed: P for run, P in zip(base.runs, said, strict=True)}

            def fit(split: Split, run: Run, answers: Answered = answers) -> CorrectAndSmooth:
                return CorrectAndSmooth.fit(answers[run.seed], self.divided, split)

            name = f"{base.name}-smoothed"
            member = self._graded(Smoothed(name, *self._fits(rows, fit), base))
            self.members[name] = member
            if self.folder is not None:
                save_member(member, self.folder)

    def _graded(self, member: Kind) -> Kind:
        """A member that is no network, of labels calibrated, and measured on validation nodes."""
        graph, target = self.divided, target_of(self.divided)
        asked = Asked(graph, graph, self.session.device)
        metric = target.score(self.recipe.scored_by).key
        runs, said = [], []
        for i, run in enumerate(member.runs):
            P, val, T = member.answer_in_time(i, asked), graph.splits[run.split].val, None
            assert P is not None
            said.append(P)
            y, P = graph.labels[val], P[val]
            guess: Labels = P
            if isinstance(target, LabelTarget):
                if target.exclusive and len(y) >= LEAST:
                    T = target.best_temperature(np.log(np.maximum(P, TINY)), y)
                    P = target.tempered(P, T)
                guess = target.decided(P, target.best_threshold(P, y))
            loss = badness(target, P, y)
            part = None if graph.part is None else graph.part[val]
            score = Answers(target, P, guess, y, part, self.positive).scores[metric]
            runs.append(replace(run, temperature=T, val=float(score), val_loss=loss))
        few = len(runs) * graph.n * graph.k <= KEPT
        return replace(member, runs=tuple(runs), said=Said(graph, tuple(said)) if few else None)


def _forget_finished(path: Path, runs: Sequence[Run]) -> None:
    """Remove a checkpoint of runs that are saved: a process was killed before it did so."""
    saved, seeds = Checkpoint.load(path, torch.device("cpu")), {run.seed for run in runs}
    if saved and {run.seed for run in saved.runs} <= seeds:
        remove(path)


def _needed(ensemble: Ensemble) -> set[str]:
    """Members that stay whatever they weigh.

    What others build on; the best without the graph, to be compared with; and a network, to be
    embedded by.
    """
    order = [ensemble.members[i] for i in np.argsort(ensemble.losses)]
    found = {one.base.name for one in order if isinstance(one, Smoothed)}
    found |= {one.name for one in [one for one in order if one.sees == "features"][:1]}
    return found | {one.name for one in [one for one in order if isinstance(one, Networks)][:1]}


def joined(one: Member, other: Member) -> Member:
    """A member with more of its runs."""
    match one, other:
        case Networks(name, result), Networks(_, more):
            return Networks(name, result.joined(more))
        case Fitted(_, runs, each, said=said), Fitted(_, more, others, said=also):
            return replace(one, runs=runs + more, each=each + others, said=_both(said, also))
    raise AssertionError(f"{one.name} and {other.name} are of different kinds")


def _both(one: Said | None, other: Said | None) -> Said | None:
    """What the runs of two say of one graph, if it is at hand."""
    if one is None or other is None or one.graph is not other.graph:
        return None
    return Said(one.graph, one.each + other.each)


def _trimmed(member: Member, rows: list[int]) -> Member:
    """A member with these runs alone."""
    if len(member.runs) == len(rows):
        return member
    match member:
        case Networks(name, result):
            return Networks(name, result.part(rows))
        case Fitted(_, runs, each):
            runs, each = (tuple(own[i] for i in rows) for own in (runs, each))
            return replace(member, runs=runs, each=each, said=None)
    raise AssertionError(f"{member.name} is of a kind that is not known")
