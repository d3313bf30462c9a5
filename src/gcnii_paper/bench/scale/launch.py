"""Start processes that measure: an order goes in as JSON, and an answer comes out."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from gcnii.errors import GcniiError
from gcnii.files import Document, Shape, read_document, write_document

TORCHRUN = (
    *("-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"),
    "--nproc-per-node",
)


def launch(module: str, order: Document, shape: Shape, size: int = 0) -> Document:
    """The answer of `python -m MODULE ORDER ANSWER` with one thread.

    size  how many processes torchrun starts; 0: one, without torchrun
    """
    start = (*TORCHRUN, str(size)) if size else ()
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder) / "order.json", Path(folder) / "answer.json"
        write_document(asked, order)
        words = [sys.executable, *start, "-m", module, str(asked), str(answer)]
        env = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(words, env=env, capture_output=True, text=True)
        if done.returncode:
            last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
            raise GcniiError(f"{size or 1} processes could not be measured: {last[0]}")
        return read_document(answer, shape, "answer of a process", dict)
