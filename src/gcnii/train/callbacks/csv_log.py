"""Curves as CSV, written while training goes on."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TextIO

from gcnii.errors import InputError, UsageError
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

    Examples
    --------
    >>> import gcnii
    >>> from pathlib import Path
    >>> graph = gcnii.load("csbm", n=60)
    >>> result = gcnii.fit(graph, layers=2, epochs=3, callbacks=[gcnii.CsvLog("curves.csv")])
    >>> Path("curves.csv").read_text().splitlines()[0]
    'seed,epoch,train_loss,val_loss,val'
    """

    def __init__(self, path: Path | str):
        self.path, self.closed = Path(path), False
        self.file: TextIO | None = None
        _refuse_replacing(self.path)

    def __call__(self, now: EpochReport) -> None:
        """Add a row for each run that took part in this epoch."""
        if self.file is None:
            self.file = self._open()
        rows = ((seed, now.epoch, *measures) for seed, measures in now.measures.items())
        csv.writer(self.file, lineterminator="\n").writerows(rows)
        self.file.flush()

    def _open(self) -> TextIO:
        if self.closed:
            raise UsageError(f"{self.path} is complete; make a new CsvLog for each fit")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("w", encoding="ascii", newline="")
        file.write(",".join(HEADER) + "\n")
        return file

    def close(self) -> None:
        """Close the file."""
        self.closed = self.closed or self.file is not None
        if self.file:
            self.file.close()
            self.file = None


def _refuse_replacing(path: Path) -> None:
    """Raise InputError if the path is anything but a log, an empty file or nothing yet."""
    if not path.exists():
        return
    if not path.is_file():
        raise InputError(f"{path} is not a file; give the log the name of a .csv file")
    with path.open("rb") as file:
        first = file.readline(1000).rstrip()
    if first and first != ",".join(HEADER).encode():
        raise InputError(f"{path} was not written by CsvLog; choose another name, or remove it")
