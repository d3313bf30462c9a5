"""Curves as CSV, written while training goes on."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TextIO

from gcnii.errors import InputError, UsageError
from gcnii.files import first_bytes, naming, refuse_replacing, user_path
from gcnii.train.callbacks.report import EpochMeasures, EpochReport

HEADER = ("seed", "epoch", *EpochMeasures._fields)  # as in the curves.csv of a bundle


class CsvLog:
    """A callback that writes a row per epoch and run: seed, epoch, train_loss, val_loss, val.

    Rows are in the file as soon as an epoch is reported.  The file is opened at the first report,
    and an older log of this name is then replaced; any other file is refused.  `fit` closes it.

    Parameters
    ----------
    path : str or Path
        A .csv file.
    overwrite : bool
        Replace a file that is not a log, too; a file of a bundle is never replaced.

    Examples
    --------
    >>> import gcnii
    >>> from pathlib import Path
    >>> graph = gcnii.load("csbm", n=60)
    >>> result = gcnii.fit(graph, layers=2, epochs=3, callbacks=[gcnii.CsvLog("curves.csv")])
    >>> Path("curves.csv").read_text().splitlines()[0]
    'seed,epoch,train_loss,val_loss,val'
    """

    def __init__(self, path: Path | str, *, overwrite: bool = False):
        self.path, self.overwrite, self.closed = user_path(path), overwrite, False
        self.file: TextIO | None = None

    def __call__(self, now: EpochReport) -> None:
        """Add a row for each run that took part in this epoch."""
        if self.file is None:
            self.file = self._open()
        rows = ((seed, now.epoch, *measures) for seed, measures in now.measures.items())
        with naming(self.path):
            csv.writer(self.file, lineterminator="\n").writerows(rows)
            self.file.flush()

    def _open(self) -> TextIO:
        if self.closed:
            raise UsageError(f"{self.path} is complete; make a new CsvLog for each fit")
        refuse_replacing(self.path, is_log, overwrite=self.overwrite)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = self.path.open("w", encoding="ascii", newline="")
        except (OSError, ValueError) as error:  # ValueError: of a name that no file can have
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"the log {self.path} cannot be written: {reason}; choose another name"
            ) from None
        file.write(",".join(HEADER) + "\n")
        return file

    def close(self) -> None:
        """Close the file."""
        self.closed = self.closed or self.file is not None
        if self.file:
            self.file.close()
            self.file = None


def is_log(path: Path) -> bool:
    """Whether a file is a log, judged by its first line."""
    return first_bytes(path).partition(b"\n")[0].rstrip() == ",".join(HEADER).encode()
