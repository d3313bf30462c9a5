"""The rates of this CPU, measured in less than a second on layers of the size in question."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
from torch import Tensor

from gcnii.cost.estimate import Network, Rates
from gcnii.data.catalog import Size
from gcnii.dropout import InplaceDropout, epoch_key
from gcnii.propagation import Pattern
from gcnii.propagation.product import multiply_each
from gcnii.train.hardware import hand_back, tuned_cpu

NUMBERS = 1 << 24  # of a matrix, at most: 64 MB, more than malloc keeps
ALL = 1 << 25  # of all matrices together
LEAST = 1000  # nodes
KEPT = 32 << 20  # bytes of a block, from which on malloc hands it back to the system
SPENT = 0.08  # seconds on each of the five rates
LAYER, EPOCH = 100e-6, 1e-3  # seconds of Python, for a layer and for the rest of an epoch


def calibrate(size: Size, network: Network) -> Rates:
    """The rates of one thread, on a drawn graph of this degree and at most this number of nodes.

    Matrices take turns, as many as a training keeps: what it reads was written long before, and is
    in no cache any more.
    """
    h = network.width
    n = min(size.n, max(LEAST, NUMBERS // h))
    entries = max(1, round(n * size.degree))
    dtype = torch.float64 if network.precision == "float64" else torch.float32
    with tuned_cpu(1), torch.no_grad():
        hand_back()
        turn = _Turns(n, h, min(2 * network.layers, max(2, ALL // (n * h))), dtype)
        W, out = torch.rand(1, h, h, dtype=dtype), torch.empty(1, h, h, dtype=dtype)
        drop, key = InplaceDropout(turn(), 1 << 15), epoch_key(torch.zeros(1).long(), 0)
        pattern, values = _links(n, entries), torch.ones(1, entries, dtype=dtype)
        numbers, item = n * h, W.element_size()
        typical = partial(_typical, size=numbers * item)
        return Rates(
            bandwidth=3 * numbers * item / typical(lambda: turn().add_(turn.last, alpha=0.1)),
            gather=(speed := entries * h / typical(lambda: turn.put(pattern, values))),
            beyond=speed * item,
            cache=float("inf"),  # measured as it is, in the cache or not
            operations=2 * numbers * h / typical(lambda: turn.multiply(W)),
            gradient=2 * numbers * h / typical(lambda: torch.bmm(turn().mT, turn.last, out=out)),
            mask=typical(lambda: drop(turn(), key)) / numbers,
            layer=LAYER,
            epoch=EPOCH,
        )


class _Turns:
    """Matrices (1, n, h) that take turns."""

    def __init__(self, n: int, h: int, count: int, dtype: torch.dtype):
        self.matrices = [torch.rand(1, n, h, dtype=dtype) for _ in range(count)]
        self.now = 0

    def __call__(self) -> Tensor:
        """The next one."""
        self.now = (self.now + 1) % len(self.matrices)
        return self.matrices[self.now]

    @property
    def last(self) -> Tensor:
        """The one before the present one."""
        return self.matrices[self.now - 1]

    def put(self, pattern: Pattern, values: Tensor) -> None:
        """A sparse product in the place of the oldest matrix, as new memory."""
        result = multiply_each(pattern, values, self.matrices[self.now])
        self.now = (self.now + 1) % len(self.matrices)
        self.matrices[self.now] = result

    def multiply(self, W: Tensor) -> None:
        """A dense product in the place of the oldest matrix, as new memory."""
        result = torch.bmm(self.matrices[self.now], W)
        self.now = (self.now + 1) % len(self.matrices)
        self.matrices[self.now] = result


def _links(n: int, entries: int) -> Pattern:
    rows = torch.linspace(0, entries, n + 1, dtype=torch.float64).int()
    generator = torch.Generator().manual_seed(0)
    columns = torch.randint(n, (entries,), generator=generator, dtype=torch.int32)
    return Pattern(rows, columns, (n, n))


def _typical(run: Callable[[], object], size: int) -> float:
    """CPU seconds of a call that makes a matrix of `size` bytes: of five or more, the least.

    Of large matrices it is the median: malloc may have such a block at hand for one call, but asks
    the system for those of a training.  Smaller ones it keeps, once a few calls have been made.
    """
    run()
    times: list[float] = []
    end = time.process_time() + SPENT
    while len(times) < 5 or time.process_time() < end:
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) if size < KEPT else median(times)
