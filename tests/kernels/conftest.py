"""The kernels run on a GPU where there is one, else in Triton's interpreter."""

import os

import pytest
import torch
from support import knobs

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined


@pytest.fixture
def device(monkeypatch):
    """The device on which the kernels run."""
    pytest.importorskip("triton", reason="no Triton")
    if torch.cuda.is_available():
        return "cuda"
    monkeypatch.setattr(knobs.USABLE, lambda tensor: True)
    return "cpu"
