"""Run a command of the command line: in a process of its own, or faster, in this one."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import gcnii.cli
from support import knobs
from support.waiting import PATIENCE

SMALL = ("--layers", "2", "--width", "8", "--epochs", "3", "--device", "cpu")
BUNDLE_FILES = ["card.md", "curves.csv", "model.safetensors", "run.json"]
BUNDLE = (
    "bundles/of a name that is much longer than the eighty columns of a terminal "
    "[and has brackets] in it/pets"
)

# As `python -m gcnii`, but with a checkpoint after every epoch.
SAVING = "from gcnii.train import group; group.SAVE_EVERY = 0.0; from gcnii.cli import main; main()"


class Answer(NamedTuple):
    """The exit code of a command, and what it printed."""

    code: int
    out: str
    err: str


def start(*words, cwd, program=("-m", "gcnii"), **environment):
    """Start a process that runs the command line with these words."""
    return subprocess.Popen(
        [sys.executable, *program, *map(str, words)],
        cwd=cwd,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        preexec_fn=listen,
    )


def listen():
    """Receive Ctrl-C even if the tests run in the background of a shell that ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def finish(process):
    """Wait for the process, and return its answer."""
    out, err = process.communicate(timeout=PATIENCE)
    return Answer(process.returncode, out, err)


def run(*words, cwd, **environment):
    """Run a command in a process of its own, from start to end."""
    return finish(start(*words, cwd=cwd, **environment))


def call(*words, cwd, out=None):
    """Run a command in this process; what it sets in the environment ends with it."""
    out, err, code = out or io.StringIO(), io.StringIO(), 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("always")
        stack.enter_context(mock.patch.dict(os.environ))
        stack.enter_context(mock.patch.object(sys, "argv", ["gcnii", *map(str, words)]))
        stack.enter_context(contextlib.chdir(cwd))
        # However busy the machine is, no line of progress comes between the lines of an answer.
        stack.enter_context(mock.patch(knobs.LINES_EVERY, PATIENCE))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            gcnii.cli.main()
        except SystemExit as stop:
            code = stop.code or 0
    return Answer(code, out.getvalue(), err.getvalue())


def write_pets(folder, features=2, labels=True):
    """Write a graph as CSV: two rings of six nodes, cats and dogs, some of them labelled."""
    folder.mkdir(parents=True, exist_ok=True)
    roles = ("train", "train", "val", "test", "train", "")
    lines = [
        ",".join(
            ["id", *(f"x{j}" for j in range(features)), *(("label", "split") if labels else ())]
        )
    ]
    for i in range(12):
        kind, role = ("dog", "cat")[i % 2], roles[i // 2]
        words = (kind if role else "", role) if labels else ()
        lines.append(
            ",".join([f"pet{i}", *(str((i % 2) + i * j / 10) for j in range(features)), *words])
        )
    edges = [f"pet{i},pet{(i + 2) % 12}" for i in range(12)]
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    return folder


def files(folder):
    """The paths of all files below a folder, relative to it."""
    folder = Path(folder)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
