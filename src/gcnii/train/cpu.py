"""Two settings of the process that training on a CPU is faster with.  Neither changes a result worth having."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # glibc's names for mallopt
LARGEST = 32 << 20  # bytes; what glibc allows for MMAP_THRESHOLD, and more than a layer's activations take on Pubmed
KEPT = 1 << 30  # bytes


@contextmanager
def tuned_cpu() -> Iterator[None]:
    """Within, count denormal numbers as zero; and from now on keep freed memory for the next epoch."""
    _keep_memory()
    # Dead layers underflow, and a CPU computes with denormal numbers many times slower.  Other libraries need them:
    # SciPy's KDTree may split a space forever where the next number after zero is zero.
    smallest = torch.tensor(5e-324, dtype=torch.float64)
    flushed_before = bool(smallest * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed_before)


def _keep_memory() -> None:
    # An epoch frees all its activations.  glibc would hand them back to the system and fault each page in again:
    # thousands of faults an epoch on Cora, a tenth of its time and more on virtual machines.
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not in every C library
        if mallopt:
            mallopt(MMAP_THRESHOLD, LARGEST)
            mallopt(TRIM_THRESHOLD, KEPT)
