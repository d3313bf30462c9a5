"""What a callback is told after each epoch, and how it stops training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import NamedTuple


class EpochMeasures(NamedTuple):
    """What an epoch measured on one run.  Not the test score: nothing may be chosen by it."""

    train_loss: float
    val_loss: float
    val: float


class EpochReport(NamedTuple):
    """One epoch of the runs that are trained together.

    Attributes
    ----------
    epoch : int
        Counts from 0.
    runs_done : int
        Runs that have stopped.
    runs : int
        All runs of the fit.
    measures : dict
        seed → what the epoch measured, for each run that took part in it.
    setting : int
        The place of the runs' settings, where a fit tries several: each has its own report.

    Examples
    --------
    >>> import gcnii
    >>> seen = []
    >>> graph = gcnii.load("csbm", n=60)
    >>> def note(now):
    ...     seen.append(now.epoch)
    >>> result = gcnii.fit(graph, layers=2, epochs=3, callbacks=[note])
    >>> seen
    [0, 1, 2]
    """

    epoch: int
    runs_done: int
    runs: int
    measures: Mapping[int, EpochMeasures]
    setting: int = 0

    @property
    def train_loss(self) -> float:
        """The mean over the runs."""
        return fmean(now.train_loss for now in self.measures.values())

    @property
    def val_loss(self) -> float:
        """The mean over the runs."""
        return fmean(now.val_loss for now in self.measures.values())

    @property
    def val(self) -> float:
        """The mean over the runs of the validation score, in [0, 1]."""
        return fmean(now.val for now in self.measures.values())


Callback = Callable[[EpochReport], object]


class StopTraining(Exception):
    """Raised by a callback to end all training now, as if patience had run out.

    Runs that have begun keep their best weights so far and are finished; runs that have not begun
    are absent from the result; the checkpoint is removed, since nothing is left to resume.  A GPU
    trains up to 64 epochs before it reports them, and these still count.

    An exception and not a return value, so that no lambda stops a training by what it happens to
    return.  Its text is logged.  Any other exception of a callback is raised by `fit`, once a
    checkpoint is saved.

    Examples
    --------
    >>> import gcnii
    >>> def enough(now):
    ...     if now.epoch == 1:
    ...         raise gcnii.StopTraining("two epochs are enough")
    >>> result = gcnii.fit(gcnii.load("csbm", n=60), layers=2, epochs=9, callbacks=[enough])
    >>> result.runs[0].epochs
    2
    """
