"""Where and how training computes: device, precision, settings of the CPU, and memory."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gcnii.errors import InputError
from gcnii.nn import MODELS
from gcnii.train.recipe import Recipe
from gcnii.train.task import Task

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # glibc's names for mallopt
# bytes; what glibc allows for MMAP_THRESHOLD, and more than a layer's activations take on Pubmed
LARGEST = 32 << 20
POOL = 1 << 30  # bytes
SMALL = 1 << 16  # numbers of a layer's state, up to which one thread is enough
# Numbers that backward keeps of each activation: before the weights, after the ReLU, the mask (two
# of them where the layers are fused).
KEPT = 3
# Share of the free memory that they may take; weights, Adam's moments and the current layer need
# some too.
SHARE = 0.7


def choose_device(name: str = "auto") -> torch.device:
    """The torch device for auto, cpu, cuda or cuda:N."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise InputError(f"device must be auto, cpu or cuda, got {name!r}")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(
            "device cuda was asked for, but torch finds no CUDA device; use --device cpu or auto"
        )
    return torch.device(name)


def device_name(device: torch.device) -> str:
    """For the record: `cpu`, or `cuda: ` and the card's name."""
    return f"cuda: {torch.cuda.get_device_name(device)}" if device.type == "cuda" else "cpu"


@contextmanager
def arithmetic(recipe: Recipe, device: torch.device) -> Iterator[None]:
    """Within, numbers are multiplied and stored in the recipe's precision.

    tf32      float32 matrices are multiplied with 10 bits of mantissa and summed in float32
    bfloat16  the same, and activations have 7 bits; weights, sums and the loss stay float32

    On a CPU, which gains nothing by them, both are float32.
    """
    rounded = device.type == "cuda" and recipe.precision in ("tf32", "bfloat16")
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if rounded else "highest")
    try:
        # Without its cache of converted weights, which would outlive the CUDA graph it was made in.
        halves = rounded and recipe.precision == "bfloat16"
        with torch.autocast("cuda", torch.bfloat16, halves, cache_enabled=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def threads_for(task: Task, asked: int | None = None) -> int:
    """The number of CPU threads to train with: those asked for, or one where the work is small.

    Threads of small work wait for one another more than they compute.  On two idle cores one is as
    fast as two at 600 nodes × 64; beside two other busy processes, two took 44 s where one took
    0.5.
    """
    if asked is not None and asked < 1:
        raise InputError(f"threads must be an integer ≥ 1, got {asked}")
    small = task.graph.n * task.plan.model_settings.get("width", 1) <= SMALL
    return asked or (1 if small and task.device.type == "cpu" else torch.get_num_threads())


@contextmanager
def tuned_cpu(threads: int | None = None) -> Iterator[None]:
    """Within, denormals count as zero and torch has this number of threads.

    From now on, freed memory is kept for the next epoch.
    """
    _keep_memory()
    threads_before = torch.get_num_threads()
    torch.set_num_threads(threads or threads_before)
    # Dead layers underflow, and a CPU computes with denormal numbers many times slower.  Other
    # libraries need them: SciPy's KDTree may split a space forever where the next number after zero
    # is zero.
    smallest = torch.tensor(5e-324, dtype=torch.float64)
    flushed_before = bool(smallest * 1 == 0)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(flushed_before)
        torch.set_num_threads(threads_before)


def _keep_memory() -> None:
    # An epoch frees all its activations.  glibc would hand them back to the system and fault each
    # page in again: thousands of faults an epoch on Cora, a tenth of its time and more on virtual
    # machines.
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not in every C library
        if mallopt:
            mallopt(MMAP_THRESHOLD, LARGEST)
            mallopt(TRIM_THRESHOLD, POOL)


def recomputes(task: Task, replicas: int) -> bool:
    """Whether this number of replicas should recompute activations; no result depends on it."""
    recipe, settings = task.plan.recipe, task.plan.model_settings
    if not MODELS[task.plan.model].can_recompute or recipe.memory == "keep":
        return False
    if recipe.memory == "recompute":
        return True
    numbers = replicas * settings.get("layers", 0) * task.graph.n * settings["width"] * KEPT
    return bool(numbers * recipe.dtype.itemsize > SHARE * _free(task.device))


def lacks_memory(error: BaseException) -> bool:
    """torch has no MemoryError: it raises a RuntimeError, of a different wording on each device."""
    return (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or "out of memory" in str(error)
        or "allocate memory" in str(error)
    )


def _free(device: torch.device) -> float:
    """Bytes, as far as the system tells."""
    if device.type == "cuda":
        # What torch keeps of a training before counts as free: the next one is given it.
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + idle)
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # not every system has these
        return float("inf")
