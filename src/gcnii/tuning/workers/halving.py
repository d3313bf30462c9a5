"""Successive halving: the one rule by which a setting is given up before its training ends.

At epochs e, 2e, 4e, …, where e = patience + 1, a setting stays if its validation score so far, that
of the weights that would be kept, is at least the median of all settings of the study that got
there.  Settings are compared seed
by seed, because seeds have splits of their own, and judged by the mean of the differences.  No
setting is given up earlier: e is the first epoch after which patience itself can end a training.
The baselines stay: the winner will be compared with them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from statistics import fmean, median
from typing import TypeAlias

from gcnii.train.run import Run

FEWEST = 4  # settings at a rung, below which a median says nothing

# rung → seed → setting → validation score of the weights kept up to that epoch
Standings: TypeAlias = dict[int, dict[int, dict[Hashable, float]]]


class Halving:
    """Which runs leave: asked by `fit` after some epochs.

    names    what each setting of the fit is called in `standings`
    over     whether there is no time left; then all runs leave
    stay     the places of settings that are never given up
    by_score whether weights are kept by their score; else by their loss
    seen     all runs so far: those that have ended leave the fit's own list
    behind   the places of the settings that were given up
    cut      the places of those that lacked time
    """

    def __init__(
        self,
        names: Sequence[Hashable],
        patience: int,
        standings: Standings | None = None,
        over: Callable[[], bool] = lambda: False,
        stay: Collection[int] = (),
        by_score: bool = True,
    ):
        self.names, self.first, self.over, self.stay = names, patience + 1, over, stay
        self.by_score = by_score
        self.standings: Standings = standings if standings is not None else {}
        self.judged: dict[tuple[int, int], int] = defaultdict(int)  # run → its last rung
        self.seen: dict[tuple[int, int], Run] = {}
        self.behind: set[int] = set()
        self.cut: set[int] = set()

    def __call__(self, runs: Sequence[Run]) -> list[Run]:
        """The runs in training that end now."""
        self.seen |= {run.key: run for run in runs}
        for run in sorted(self.seen.values(), key=lambda run: run.stopped):
            self._note(run)
        running = [run for run in runs if not run.stopped]
        if self.over():
            self.cut |= {run.setting for run in running} - self.behind
            return running
        for setting in sorted({run.setting for run in running}):
            if self._is_behind(setting, [run for run in running if run.setting == setting]):
                self.behind.add(setting)
        return [run for run in running if run.setting in self.behind]

    def noted(self, setting: int) -> Mapping[int, Mapping[int, float]]:
        """rung → seed → the setting's standing, to be kept for other batches."""
        name = self.names[setting]
        return {
            rung: {seed: scores[name] for seed, scores in seeds.items() if name in scores}
            for rung, seeds in self.standings.items()
        }

    def _note(self, run: Run) -> None:
        """Write down where the run stood at each rung that it has reached or will not reach."""
        rung, name = self.first, self.names[run.setting]
        left = run.setting in self.behind | self.cut
        last = self._furthest(run) if run.stopped and not left else 0
        while run.curve and rung <= max(run.epochs, last):
            seen = self.standings.setdefault(rung, {}).setdefault(run.seed, {})
            if name not in seen:
                seen[name] = self._score(run, rung)
            rung *= 2

    def _score(self, run: Run, rung: int) -> float:
        """The score of the weights kept up to this epoch: what a finished run is compared by."""
        points = ((val if self.by_score else -loss, val) for _, loss, val in run.curve[:rung])
        return max(points, key=lambda point: point[0])[1]

    def _furthest(self, run: Run) -> int:
        """The last rung that others have reached: a run that has stopped stays as good there."""
        return max((rung for rung, seeds in self.standings.items() if run.seed in seeds), default=0)

    def _is_behind(self, setting: int, running: Sequence[Run]) -> bool:
        """Judge a setting when the last of its runs in training gets to another rung."""
        rung = self._rung(min(run.epochs for run in running))
        if setting in self.stay or all(rung <= self.judged[run.key] for run in running):
            return False
        self.judged |= {run.key: rung for run in running}
        name, gaps = self.names[setting], []
        for scores in self.standings.get(rung, {}).values():
            if name in scores and len(scores) >= FEWEST:
                gaps.append(scores[name] - median(scores.values()))
        return bool(gaps) and fmean(gaps) < 0

    def _rung(self, epochs: int) -> int:
        """The last rung at or before this epoch; 0 before the first."""
        if epochs < self.first:
            return 0
        rung = self.first
        while 2 * rung <= epochs:
            rung *= 2
        return rung
