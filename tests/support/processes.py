"""Start processes that train together, by torchrun."""

import os
import subprocess
import sys
from pathlib import Path

from support.waiting import PATIENCE

TESTS = Path(__file__).parent.parent


def torchrun(size, *words):
    """Run `python WORDS` in so many processes, to their end."""
    process = started(size, *words)
    with process:
        out, errors = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(words, process.returncode, out, errors)


def started(size, *words):
    """Start `python WORDS` in so many processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(size)]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    path = os.pathsep.join([*sys.path, str(TESTS)])
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, *map(str, words)], env=env, **pipes)
