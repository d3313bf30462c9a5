"""A process that has imported everything and runs commands of gcnii in forks of itself.

A command costs a fraction of a second instead of the seconds that importing torch takes.  It reads
a list of JSON documents per line, {words, cwd, out, err, signals: [[seconds, number], …]}, starts
these commands at once, and answers with a line, the list of how they ended: the exit code, or minus
the number of the signal.  A command may have `env`, variables of its environment, and `patches`,
"module:name" → what takes its place.
"""

import importlib
import json
import os
import signal
import sys
import time
import traceback
from datetime import timedelta
from typing import Any

import torch
from support import tiny_cells

import gcnii.cli
import gcnii.cli.data
import gcnii.cli.predict
import gcnii.cli.train
from gcnii.data import load
from gcnii.results.fit import fit
from gcnii.train import group
from gcnii_paper.tables import registry

EPOCHS = 20
# What commands import when they come to it.
LATER = ("pandas", "matplotlib.pyplot", "matplotlib.backends.backend_agg", "sklearn.ensemble")
LATER += ("sklearn.linear_model", "optuna", "sqlalchemy", "torch.utils.tensorboard", "jinja2")
LATER += ("gcnii.cli.explain", "gcnii.cli.evaluate", "gcnii.cli.tune")
LATER += ("gcnii.cli.evaluate", "gcnii.inference.page", "gcnii.train.distributed.shard")


def prepare() -> None:
    """One thread, a checkpoint after every epoch, and a table that is trained in a second."""
    torch.set_num_threads(1)
    for name in LATER:
        importlib.import_module(name)
    fit(load("csbm", n=60), epochs=1, device="cpu")  # imports the rest of torch
    group.SAVE_EVERY = 0.0
    settings = {"epochs": EPOCHS, "patience": EPOCHS}
    rows = (("GCNII", "gcnii"), ("GCN", "deep-gcn"))
    registry.CELLS["table2"] = tuple(
        tiny_cells.cell(row, model, runs=2, settings=settings) for row, model in rows
    )


def obey(commands: list[dict[str, Any]]) -> list[int]:
    """Run commands in forks, send their signals, and return how they ended."""
    children = [_fork(command) for command in commands]
    left = [list(command["signals"]) for command in commands]
    codes: list[int | None] = [None] * len(commands)
    start = time.monotonic()
    while None in codes:
        for i, child in enumerate(children):
            if codes[i] is not None:
                continue
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                codes[i] = os.waitstatus_to_exitcode(status)
                continue
            while left[i] and time.monotonic() - start >= left[i][0][0]:
                os.kill(child, left[i].pop(0)[1])  # not waited for yet: its number is its own
        time.sleep(0.0005)
    return [code for code in codes if code is not None]


def _fork(command: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        _become(command)
    return child


def _become(command: dict[str, Any]) -> None:
    """The command line in this process, which ends with it."""
    code = 1
    try:
        os.chdir(command["cwd"])
        for place, number in (("out", 1), ("err", 2)):
            os.dup2(os.open(command[place], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.environ.update(command.get("env", {}))
        for place, value in command.get("patches", {}).items():
            _patch(place, value)
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


def _patch(place: str, value: Any) -> None:
    module, name = place.split(":")
    before = getattr(importlib.import_module(module), name)
    value = timedelta(seconds=value) if isinstance(before, timedelta) else value
    setattr(importlib.import_module(module), name, value)


if __name__ == "__main__":
    prepare()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(obey(json.loads(line))), flush=True)
