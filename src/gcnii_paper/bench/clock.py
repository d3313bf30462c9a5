"""How time is measured: by the host's clock, until the device has done all its work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

Answer = TypeVar("Answer")


def timed(device: torch.device, run: Callable[[], Answer]) -> tuple[float, Answer]:
    """The seconds until the device is done, and what `run` returned."""
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
    """Within, torch multiplies float32 matrices in TF32 if `precision` is `tf32`, else in full."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
