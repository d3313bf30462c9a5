"""A process that has imported everything and runs commands of gcnii in forks of itself.

A command costs a fraction of a second instead of the seconds that importing torch takes.  It reads
one JSON document per line, {words, cwd, out, err, signals: [[seconds, number], …]}, and answers
each with a line: the exit code, or minus the number of the signal that ended the command.
"""

import json
import os
import signal
import sys
import time
import traceback
from typing import Any

import pandas  # noqa: F401 - which the first table would import
import torch
from support import tiny_cells

import gcnii.cli
import gcnii.cli.bundles.predict
import gcnii.cli.data
import gcnii.cli.paper.reproduce
import gcnii.cli.train
import gcnii.paper.ledger.ledger_io
import gcnii.paper.report.terminal
import gcnii.paper.reproduce
from gcnii.data import load
from gcnii.paper.tables import registry
from gcnii.train.fit import fit
from gcnii.train.replicas import training

EPOCHS = 20


def prepare() -> None:
    """One thread, a checkpoint after every epoch, and a table that is trained in a second."""
    torch.set_num_threads(1)
    fit(load("csbm", n=60), epochs=1, device="cpu")  # imports the rest of torch
    training.SAVE_EVERY = 0.0
    settings = {"epochs": EPOCHS, "patience": EPOCHS}
    rows = (("GCNII", "gcnii"), ("GCN", "deep-gcn"))
    registry.CELLS["table2"] = tuple(
        tiny_cells.cell(row, model, runs=2, settings=settings) for row, model in rows
    )


def obey(command: dict[str, Any]) -> int:
    """Run a command in a fork, send its signals, and return how it ended."""
    child = os.fork()
    if child == 0:
        _become(command)
    start, left = time.monotonic(), list(command["signals"])
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        while left and time.monotonic() - start >= left[0][0]:
            os.kill(child, left.pop(0)[1])  # it is not waited for yet, so its number is its own
        time.sleep(0.0005)


def _become(command: dict[str, Any]) -> None:
    """The command line in this process, which ends with it."""
    code = 1
    try:
        os.chdir(command["cwd"])
        for place, number in (("out", 1), ("err", 2)):
            os.dup2(os.open(command[place], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["gcnii", *command["words"]]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            gcnii.cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    except KeyboardInterrupt:
        pass  # before or after `main`, which answers those within it
    except BaseException:
        traceback.print_exc()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    prepare()
    print("ready", flush=True)
    for line in sys.stdin:
        print(obey(json.loads(line)), flush=True)
