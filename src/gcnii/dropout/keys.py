"""Keys: what tells the masks of one seed, epoch and dropout call from those of another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

import torch
from torch import Tensor

from gcnii import kernels
from gcnii.propagation import Rows

KEY_BLOCK = 64  # keys that are made at once, because a single one costs a dozen tiny operations


def epoch_key(seeds: Tensor, epoch: Tensor | int, step: Tensor | int = 0) -> Tensor:
    """seeds (replicas,) int64, an epoch and a step of it → (replicas, 2) int32: `keyed`'s keys."""
    number = step if isinstance(step, Tensor) else None
    if kernels.usable(seeds) and isinstance(epoch, Tensor) and (number is not None or not step):
        from gcnii.kernels.keys import epoch_keys

        return epoch_keys(seeds, epoch, number, _first_key(seeds.device))
    halves = seeds.view(torch.int32).unflatten(-1, (-1, 2))
    key = _first_key(seeds.device)
    for word in (halves[..., :1], halves[..., 1:], epoch):
        key = mix(key ^ word)
    if isinstance(step, Tensor):
        return torch.where(step > 0, mix(key ^ step), key)
    return mix(key ^ step) if step else key


def view_keys(keys: Tensor, views: int) -> Tensor:
    """Keys (r, 2) of passes → (r · views, 2): those of each pass's random views.

    The first view has the key of the pass itself; the others are numbered below zero, where neither
    a step nor a dropout call is.
    """
    if views == 1:
        return keys
    numbers = -torch.arange(1, views, dtype=torch.int32, device=keys.device)
    return torch.cat([keys[:, None], mix(keys[:, None] ^ numbers[:, None])], 1).flatten(0, 1)


@cache  # a copy to a GPU would wait for it, and cannot be part of a CUDA graph
def _first_key(device: torch.device) -> Tensor:
    return torch.tensor([0x3C6EF372, 0x1B873593], dtype=torch.int32, device=device)


@contextmanager
def keyed(key: Tensor, first: int = 0, rows: Rows | None = None) -> Iterator[KeySequence]:
    """Within this context, each dropout call takes the next of the keys made from this one (2,).

    first  the index of the first dropout call, where a part of a forward pass is run again
    rows   of the whole graph that are at hand; None: all
    """
    sequence = KeySequence(key, first, rows)
    token = _sequence.set(sequence)
    try:
        yield sequence
    finally:
        _sequence.reset(token)


def current_keys() -> KeySequence | None:
    """The keys of the forward pass under way; None outside of `keyed`."""
    return _sequence.get()


def current_rows() -> Rows | None:
    """The rows that the forward pass under way has of the whole graph; None: all."""
    sequence = _sequence.get()
    return None if sequence is None else sequence.rows


class KeySequence:
    """The keys of the dropout calls of one forward pass, in the order of the calls."""

    def __init__(self, key: Tensor, first: int = 0, rows: Rows | None = None):
        self.key, self.rows = key, rows
        self.used = first  # the number of keys used so far
        self.block, self.keys = -1, key  # the block of keys made last: its number, and the keys

    def next(self) -> Tensor:
        """The key (2,) of the next dropout call."""
        block, at = divmod(self.used, KEY_BLOCK)
        if block != self.block:
            numbers = torch.arange(
                block * KEY_BLOCK,
                (block + 1) * KEY_BLOCK,
                dtype=torch.int32,
                device=self.key.device,
            )
            self.block, self.keys = block, numbered_keys(self.key, numbers)
        self.used += 1
        return self.keys[at]

    def take(self, count: int) -> Tensor:
        """The keys (count, 2) of the next dropout calls."""
        numbers = torch.arange(
            self.used, self.used + count, dtype=torch.int32, device=self.key.device
        )
        self.used += count
        return numbered_keys(self.key, numbers)


_sequence: ContextVar[KeySequence | None] = ContextVar("key_sequence", default=None)


def numbered_keys(key: Tensor, numbers: Tensor) -> Tensor:
    """A key (2,) and numbers (b,) int32 → (b, 2): a key of its own for each number."""
    return mix(key ^ numbers[:, None])


def next_key(device: torch.device) -> Tensor:
    """The key (2,) of the next dropout call of this forward pass."""
    sequence = _sequence.get()
    if sequence is not None:
        return sequence.next()
    # In a training loop that is not ours, the user's torch.manual_seed decides.
    return torch.randint(-(1 << 31), 1 << 31, (2,), dtype=torch.int64).to(torch.int32).to(device)


def next_keys(count: int, device: torch.device) -> Tensor:
    """The keys (count, 2) of the next dropout calls."""
    sequence = _sequence.get()
    if sequence is None:
        return torch.stack([next_key(device) for _ in range(count)])
    return sequence.take(count)


def mix(x: Tensor) -> Tensor:
    """A bijection of 32-bit words: each bit of x flips about half of the result's bits."""
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        x = (x ^ (x >> shift & (1 << 32 - shift) - 1)) * factor
    return x ^ (x >> 15 & 0x1FFFF)
