"""Time, peak memory, and the floor: the least time an epoch of GCNII can take on a device.

An epoch is a training step and an evaluation.  Per layer and replica, the numbers of passes over
matrices of n·h numbers are:

    training forward   4   read D and H0, write D and S    (D = dropped-out H;
                                                            S = (1-α) P̃ D + α H0)
    backward           3   read dZ and D, write dZ         (D's sign is the mask)
    weight gradients   2   read S and dZ                   (dW = β Sᵀ dZ)
    gradient of H0     1   read dZ                         (dH0 = α Σ dZ Mᵀ, M = (1-β) I + β W)
    evaluation         3   read H and H0, write H

There are five products of (n, h) by (h, h), 2·n·h² operations each: S M forward, dZ Mᵀ backward,
Sᵀ dZ, dZ Mᵀ for H0, and S M in evaluation.  The floor is the larger of bytes / bandwidth and
operations / rate, both measured.  Where a matrix of n·h numbers does not fit into the cache, each
of the three sparse products also fetches a row of h numbers for every entry of P̃.  The two dense
layers, Adam and the loss are left out.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import torch

from gcnii.nn.engine.fused import dense_product
from gcnii.train.hardware import trim_memory

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
    """Let torch multiply float32 matrices in TF32 if `precision` is `tf32`, else in full."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


Bound = Literal["bytes", "operations"]
TRAINING_PASSES, EVALUATION_PASSES = 4 + 3 + 2 + 1, 3
TRAINING_PRODUCTS, EVALUATION_PRODUCTS = 4, 1
SPARSE_PRODUCTS = 3
DTYPES = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,
}
COPIED = {"cuda": 1 << 30, "cpu": 1 << 28}  # bytes, more than any cache holds
SIDE = {"cuda": 8192, "cpu": 2048}  # of the two matrices that are multiplied
TRIES = 10
CPU_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class EpochWork:
    """The size of an epoch.

    trained, evaluated  the numbers of nodes that are trained on and evaluated
    at_once             the number of nodes in one product
    entries             of P̃
    """

    trained: int
    evaluated: int
    at_once: int
    entries: int
    h: int
    layers: int
    replicas: int


@dataclass(frozen=True)
class Floor:
    """Seconds per epoch, and what limits them."""

    seconds: float
    bound: Bound
    bytes: int
    operations: int


@dataclass(frozen=True)
class Rates:
    """The device's measured limits.

    bandwidth   bytes/s, read and written both counted
    operations  precision → operations/s of a large matrix product
    cache       bytes of the largest cache; None if the system does not tell
    """

    bandwidth: float
    operations: dict[str, float]
    cache: int | None

    def or_faster(self, again: Rates) -> Rates:
        """The better of two measurements, rate by rate: other load only makes them slower."""
        operations = {
            name: max(rate, again.operations[name]) for name, rate in self.operations.items()
        }
        return Rates(max(self.bandwidth, again.bandwidth), operations, self.cache)

    def floor(self, work: EpochWork, precision: str) -> Floor:
        """The least time for this work."""
        size = DTYPES[precision].itemsize
        many = work.h * work.layers * work.replicas
        passes = TRAINING_PASSES * work.trained + EVALUATION_PASSES * work.evaluated
        moved = passes * many * size
        # replicas are computed one after the other
        if self.cache is not None and work.at_once * work.h * size > self.cache:
            moved += SPARSE_PRODUCTS * work.entries * many * size
        products = TRAINING_PRODUCTS * work.trained + EVALUATION_PRODUCTS * work.evaluated
        operations = products * 2 * work.h * many
        by_bytes, by_operations = moved / self.bandwidth, operations / self.operations[precision]
        bound: Bound = "bytes" if by_bytes >= by_operations else "operations"
        return Floor(max(by_bytes, by_operations), bound, moved, operations)


def measure_rates(device: torch.device, precisions: list[str]) -> Rates:
    """By a large copy, and a large matrix product in each precision; the best of ten each."""
    return Rates(
        _bandwidth(device),
        {name: _product_rate(device, name) for name in precisions},
        _cache(device),
    )


def _bandwidth(device: torch.device) -> float:
    size = COPIED[device.type]
    source, target = (torch.zeros(size, dtype=torch.uint8, device=device) for _ in range(2))
    return 2 * size / _best(device, lambda: target.copy_(source))


def _product_rate(device: torch.device, precision: str) -> float:
    side = SIDE[device.type]
    # Random numbers: a GPU multiplies constants faster, because they take less power.
    A, B, C = (torch.randn(1, side, side, device=device).to(DTYPES[precision]) for _ in range(3))
    with products_in(precision):
        plain = _best(device, lambda: torch.bmm(A, B, out=C))
        # On a CPU another library may be the faster one.
        own = _best(device, lambda: dense_product(A, B)) if device.type == "cpu" else plain
        return float(2 * side**3 / min(plain, own))


def _best(device: torch.device, run: Callable[[], object]) -> float:
    return min(timed(device, run)[0] for _ in range(TRIES))


def _cache(device: torch.device) -> int | None:
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    sizes = [path.read_text().strip() for path in CPU_CACHES.glob("index*/size")]
    return max((int(size[:-1]) << {"K": 10, "M": 20}[size[-1]] for size in sizes), default=None)


STATUS, REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Peak:
    """Made before a line is built; `begin` after, because what only the building took does not
    count.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self.before = self._held_now()

    def begin(self) -> None:
        """Forget every peak so far."""
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        elif sys.platform == "linux":
            trim_memory()
            try:
                REFERENCES.write_text("5")  # resets the high-water mark of the process
            # Where this is not allowed, the mark is that of earlier lines.
            except OSError:
                self.before = None

    def bytes(self) -> int | None:
        """Allocated by torch on a GPU, resident memory on a CPU; None if that is not known."""
        if self.device.type == "cuda":
            found: int | None = torch.cuda.max_memory_allocated(self.device)
        else:
            found = highest()
        return None if found is None or self.before is None else found - self.before

    def _held_now(self) -> int | None:
        gc.collect()
        if self.device.type == "cuda":
            return torch.cuda.memory_allocated(self.device)
        trim_memory()
        return _status("VmRSS")


def highest() -> int | None:
    """The most resident memory that this process has had, in bytes, if the system tells."""
    return _status("VmHWM")


def _status(name: str) -> int | None:
    """A field of /proc/self/status, in bytes."""
    if not STATUS.exists():
        return None
    found = [
        line.split()[1] for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:")
    ]
    return 1024 * int(found[0]) if found else None
