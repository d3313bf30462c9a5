"""Successive halving: the one rule by which a setting is given up before its training ends.

At epochs patience, 2 · patience, 4 · patience, … a setting stays if its highest validation score so
far is at least the median of all settings of the study that got there.  Settings are compared seed
by seed, because seeds have splits of their own.  No setting is given up earlier: before `patience`
epochs, stopping itself could not have spoken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import fmean, median
from typing import TypeAlias

from gcnii.train.results.run import Run

FEWEST = 4  # settings at a rung, below which a median says nothing

# rung → seed → setting → highest validation score up to that epoch
Standings: TypeAlias = dict[int, dict[int, dict[Hashable, float]]]


class Halving:
    """Which runs leave: asked by `fit` after some epochs.

    names    what each setting of the fit is called in `standings`
    over     whether there is no time left; then all runs leave
    behind   the places of the settings that were given up
    cut      the places of those that lacked time
    """

    def __init__(
        self,
        names: Sequence[Hashable],
        patience: int,
        standings: Standings | None = None,
        over: Callable[[], bool] = lambda: False,
    ):
        self.names, self.patience, self.over = names, patience, over
        self.standings: Standings = standings if standings is not None else {}
        self.judged: dict[int, int] = defaultdict(int)  # setting → the last rung it was judged at
        self.behind: set[int] = set()
        self.cut: set[int] = set()

    def __call__(self, runs: Sequence[Run]) -> list[Run]:
        """The runs in training that end now."""
        for run in runs:
            self._note(run)
        running = [run for run in runs if not run.stopped]
        if self.over():
            self.cut |= {run.setting for run in running} - self.behind
            return running
        for setting in sorted({run.setting for run in running}):
            own = [run for run in running if run.setting == setting]
            if self._is_behind(setting, min(run.epochs for run in own)):
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
        rung, name = self.patience, self.names[run.setting]
        while run.curve and (rung <= run.epochs or (run.stopped and rung <= self._furthest(run))):
            seen = self.standings.setdefault(rung, {}).setdefault(run.seed, {})
            if name not in seen:
                seen[name] = max(val for _, _, val in run.curve[:rung])
            rung *= 2

    def _furthest(self, run: Run) -> int:
        """The last rung that others have reached: a run that has stopped stays as good there."""
        return max((rung for rung, seeds in self.standings.items() if run.seed in seeds), default=0)

    def _is_behind(self, setting: int, epochs: int) -> bool:
        rung = self._rung(epochs)
        if rung <= self.judged[setting]:
            return False
        self.judged[setting] = rung
        name, gaps = self.names[setting], []
        for scores in self.standings.get(rung, {}).values():
            if name in scores and len(scores) >= FEWEST:
                gaps.append(scores[name] - median(scores.values()))
        return bool(gaps) and fmean(gaps) < 0

    def _rung(self, epochs: int) -> int:
        """The last rung at or before this epoch; 0 before the first."""
        if epochs < self.patience:
            return 0
        rung = self.patience
        while 2 * rung <= epochs:
            rung *= 2
        return rung
