"""How time is taken: on the host's clock, around all that the device was asked to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

Answer = TypeVar("Answer")


def timed(device: torch.device, run: Callable[[], Answer]) -> tuple[float, Answer]:
    """Seconds until the device is done, and what `run` gave."""
    wait_for(device)
    start = time.perf_counter()
    answer = run()
    wait_for(device)
    return time.perf_counter() - start, answer


def wait_for(device: torch.device) -> None:
    """Return when the device has nothing left to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextmanager
def products_in(precision: str) -> Iterator[None]:
    """Within, torch's own matrix products of float32 use TF32 for `tf32`, and full float32 for
    everything else.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
