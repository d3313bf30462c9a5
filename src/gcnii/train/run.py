"""One run: a seed on a split, its curve, and its best epoch by validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import NamedTuple

from gcnii.errors import GraphError, InputError
from gcnii.files import Document, json_value
from gcnii.graph import Graph
from gcnii.targets import target_of


class Measures(NamedTuple):
    """What one epoch measured on one replica; the validation loss is the one monitored."""

    train_loss: float
    val_loss: float
    val: float
    test: float

    @property
    def finite(self) -> bool:
        """Whether training can go on."""
        return isfinite(self.train_loss) and isfinite(self.val_loss)


@dataclass(frozen=True)
class Patience:
    """What stopping remembers of a run, so that a checkpoint can resume it.

    lowest, highest   validation loss and score of any epoch
    fresh_epoch  when patience last started again
    lr_scale     by which a plateau has lowered the learning rate
    stale        with a plateau, epochs since validation improved or the learning rate fell
    """

    lowest: float = inf
    highest: float = -inf
    fresh_epoch: int = -1
    lr_scale: float = 1.0
    stale: int = 0


class Standing(NamedTuple):
    """Where a run in training stands: fields of `Run` that stopping decides."""

    val_loss: float
    val: float
    test: float
    best_epoch: int
    epochs: int
    stopped: bool
    patience: Patience


@dataclass
class Run:
    """One seed on one split.

    test         score of the weights that were best on validation, never used to choose them
    stopped      whether it is out of epochs or of patience
    curve        train_loss, val_loss and val of each epoch
    setting      the place of its settings, where a fit tries several
    threshold    the probability above which it predicts a label, where one was chosen
    temperature  by which its scores are divided before they become probabilities, where one was
                 found on its validation nodes
    weights      (k,) of the classes, by which its probabilities are divided, where its loss
                 weighed them; with several labels per node, the odds of each label are divided
    """

    seed: int
    split: int = 0
    test: float = nan
    val: float = nan
    val_loss: float = inf
    best_epoch: int = -1
    epochs: int = 0
    seconds: float = 0.0
    stopped: bool = False
    curve: list[tuple[float, float, float]] = field(default_factory=list, repr=False)
    setting: int = 0
    threshold: float | None = None
    temperature: float | None = None
    weights: Sequence[float] | None = None
    patience: Patience = field(default=Patience(), repr=False)

    def stand(self, now: Standing) -> None:
        """Update the record with where the run stands."""
        self.val_loss, self.val, self.test, self.best_epoch, *_ = now
        self.epochs, self.stopped, self.patience = now.epochs, now.stopped, now.patience

    @property
    def key(self) -> tuple[int, int]:
        """Which run of a fit it is."""
        return self.setting, self.seed

    def summary(self) -> Document:
        """The run without its curve, as JSON has it."""
        fields = ("seed", "split", "test", "val", "val_loss", "best_epoch", "epochs", "seconds")
        later = ("threshold", "temperature", "weights")  # found after training, if wanted
        found = {name: one for name in later if (one := getattr(self, name)) is not None}
        return {name: json_value(getattr(self, name)) for name in fields} | found


def make_runs(
    graph: Graph, seeds: Sequence[int] | None, split: int | None, settings: int = 1
) -> list[Run]:
    """A run for each seed; seed s is on split s modulo their number, unless a split is given.

    settings  the number of settings, of which each is trained with every seed
    """
    if not graph.has_labels:
        raise GraphError(
            f"no node of {graph.name} has a label; label some nodes, or say which column holds "
            "their labels: --label (in Python: label=)"
        )
    if graph.k == 1 and target_of(graph).exclusive:
        raise GraphError(
            f"all labels of {graph.name} are the same; a classifier needs two classes or more"
        )
    if not graph.splits:
        raise GraphError(f"{graph.name} has no split; give it train, val and test masks")
    splits = len(graph.splits)
    if split is not None and not 0 <= split < splits:
        raise GraphError(f"{graph.name} has splits 0 to {splits - 1}, got split {split}")
    seeds = list(range(splits) if seeds is None else seeds)
    if not seeds or len(set(seeds)) != len(seeds) or min(seeds) < 0:
        raise InputError(f"seeds must be one or more different integers ≥ 0, got {seeds}")
    return [
        Run(seed, seed % splits if split is None else split, setting=setting)
        for setting in range(settings)
        for seed in seeds
    ]
