"""Curves for TensorBoard, an optional extra."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from gcnii.errors import InputError, UsageError
from gcnii.files import user_path
from gcnii.train.callbacks.report import EpochReport

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

FLUSH = 10  # seconds until a new point can be seen


class TensorBoard:
    """A callback that writes train_loss, val_loss and val of each run, to see with TensorBoard.

    Each seed is a run of its own, in folder/seed-SEED, so that the curves of all seeds share a
    chart. An older log in the folder is hidden by the new one.  `fit` closes it.

    Parameters
    ----------
    folder : str or Path

    Examples
    --------
    >>> import gcnii
    >>> from pathlib import Path
    >>> graph = gcnii.load("csbm", n=60)
    >>> result = gcnii.fit(graph, layers=2, epochs=3, callbacks=[gcnii.TensorBoard("logs")])
    >>> [path.name for path in Path("logs").iterdir()]
    ['seed-0']
    """

    def __init__(self, folder: Path | str):
        try:
            import torch.utils.tensorboard  # noqa: F401 - missing: said now, not after an epoch
        except ImportError:
            raise InputError(
                "TensorBoard needs the tensorboard package: pip install 'gcnii[tensorboard]', "
                "or use CsvLog"
            ) from None
        self.folder, self.closed = user_path(folder), False
        if os.path.exists(self.folder) and not self.folder.is_dir():
            raise InputError(f"{self.folder} is a file; give TensorBoard a folder")
        self.writers: dict[int, SummaryWriter] = {}

    def __call__(self, now: EpochReport) -> None:
        """Add a point to the curves of each run that took part in this epoch."""
        for seed in self.writers.keys() - now.measures.keys():  # those that have stopped
            self.writers.pop(seed).close()
        for seed, measures in now.measures.items():
            writer = self.writers.get(seed) or self._open(seed, now.epoch)
            for tag, value in measures._asdict().items():
                writer.add_scalar(tag, value, now.epoch)

    def _open(self, seed: int, epoch: int) -> SummaryWriter:
        from torch.utils.tensorboard import SummaryWriter

        if self.closed:
            raise UsageError(f"{self.folder} is complete; make a new TensorBoard for each fit")
        place = str(self.folder / f"seed-{seed}")
        # purge_step: what an earlier log has from this epoch on is no longer shown
        try:
            self.writers[seed] = SummaryWriter(place, purge_step=epoch, flush_secs=FLUSH)
        except (OSError, ValueError) as error:  # ValueError: of a name that no folder can have
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"the folder {place} cannot be written to: {reason}; give TensorBoard another"
            ) from None
        return self.writers[seed]

    def close(self) -> None:
        """Write what is left, and close the files."""
        self.closed = self.closed or bool(self.writers)
        for writer in self.writers.values():
            writer.close()
        self.writers.clear()
