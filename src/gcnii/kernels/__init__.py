"""Hand-written GPU kernels (Triton): the same numbers as the plain code, only faster.

They know nothing but tensors.  A caller asks `usable` first and imports a kernel where it calls it,
because most machines have no Triton.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

# Factors of the hash that makes dropout's masks, the same on every device.
HASH = (0x21F0AAAD, 0x735A2D97)
NARROW = 128  # columns of a product; a batch of wider ones fills a GPU anyway
# products are faster one by one where each has at least this many rows per product in the batch
LONG = 1000
MANY = 64  # from this many products on, a batch is faster, however long they are


def usable(tensor: Tensor) -> bool:
    """Whether the kernels take this tensor: on a GPU, with Triton, < 2^31 entries per matrix."""
    return tensor.is_cuda and _triton() and tensor.shape[-2:].numel() < 1 << 31


@cache
def _triton() -> bool:
    return find_spec("triton") is not None


class Beside:
    """Launches on a second stream, beside what the current one goes on with; they join at the end.

    What is launched waits for all that the current stream was given before.
    """

    def __init__(self, device: torch.device):
        self.main = torch.cuda.current_stream(device) if device.type == "cuda" else None
        self.side: torch.cuda.Stream | None = None  # once something was launched on it

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *error: object) -> None:
        if self.main and self.side:
            self.main.wait_stream(self.side)

    def launch(self, work: Callable[[], object]) -> None:
        """Do the work with the second stream as the current one."""
        if not self.main:
            work()
            return
        self.side = _side_of(self.main)
        self.side.wait_stream(self.main)
        with torch.cuda.stream(self.side):
            work()


@cache
def _side_of(main: torch.cuda.Stream) -> torch.cuda.Stream:
    """Each stream has one of its own: another may be captured into a graph at the same time."""
    return torch.cuda.Stream(main.device)


# Index arithmetic of rows that differ in length and are stored one after the other.


def offsets(counts: Tensor) -> Tensor:
    """counts (n,) → (n + 1,): where each row begins, and after the last, where it ends."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def row_and_step(counts: Tensor) -> tuple[Tensor, Tensor]:
    """(0, 0), (0, 1), … (0, counts[0] - 1), (1, 0), …: two tensors of length Σ counts."""
    row = torch.repeat_interleave(counts)
    return row, torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]


def gradients(S: Tensor, dZ: Tensor) -> Tensor:
    """Sᵀ dZ for S (b, n, d) and dZ (b, n, h).

    A few long products go one by one, because cuBLAS splits only single ones into parts.
    """
    if len(S) < min(S.shape[1] // LONG, MANY) and dZ.shape[2] <= NARROW:
        return torch.stack([s.mT @ z for s, z in zip(S, dZ, strict=True)])
    return torch.bmm(S.mT, dZ)
