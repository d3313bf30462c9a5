"""Kernels that run in the interpreter may still fail to compile for a GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_every_kernel_compiles_for_a_gpu(tmp_path):
    pytest.importorskip("triton", reason="no Triton")
    quiet = {
        "TRITON_INTERPRET": "0",
        "TRITON_CACHE_DIR": str(tmp_path),
        "TRITON_DEFAULT_FP_FUSION": "1",
    }
    script = Path(__file__).with_name("compile_all.py")
    done = subprocess.run(
        [sys.executable, script], env=os.environ | quiet, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
