"""Masks: zeros and ones, hashed from a key and the numbers of the elements."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from gcnii import kernels
from gcnii.dropout.keys import mix
from gcnii.propagation import Rows, VmapInfo

LEVELS = 1 << 16  # a 16-bit lane decides an element, so keep rates are multiples of 1/65536
CHUNK = 1 << 20  # words that are hashed at once, where several processes share the elements
# Constants of the hash; as tensors, because torch would make one of each at every call.
FACTORS = torch.tensor([0x21F0AAAD, 0x735A2D97], dtype=torch.int32).unbind()
SHIFT, LOW = torch.tensor([15, 0x1FFFF], dtype=torch.int32).unbind()


class Mask(torch.autograd.Function):
    """key (2,) → (count,) zeros and ones, each one with probability kept / 65536."""

    @staticmethod
    def forward(key: Tensor, count: int, kept: int | Tensor, words: Words | None = None) -> Tensor:
        """Hash the element numbers; for keys (r, 2) and kept () or (r,): (r, count)."""
        if kernels.usable(key) and words is None:
            from gcnii.kernels.mask import mask

            every = levels(kept, key.device)
            return mask(key.view(-1, 2), count, every).view(*key.shape[:-1], count)
        lanes = lanes_of(key, count) if words is None else words.lanes(key)
        if isinstance(kept, Tensor):
            return (lanes < kept[..., None] - LEVELS // 2).to(lanes.dtype)
        # Written into its own type, a comparison runs in vector registers; into booleans it takes
        # six times as long.
        return torch.lt(lanes, kept - LEVELS // 2, out=lanes)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save nothing: a mask has no gradient."""
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...],
        key: Tensor, count: int, kept: int | Tensor, words: Words | None = None,
    ) -> tuple[Tensor, int]:  # fmt: skip
        """The masks of all replicas in one pass."""
        assert in_dims[0] is not None
        return keep_mask(key.movedim(in_dims[0], 0), count, kept, words), 0


# torch asks for this at every call; made once instead of each time, it saves 15 µs.
Mask.forward.__signature__ = inspect.signature(Mask.forward)  # type: ignore[attr-defined]


def keep_mask(key: Tensor, count: int, kept: int | Tensor, words: Words | None = None) -> Tensor:
    """The mask of this key: (count,) int16 zeros and ones; of the first elements, or of `words`."""
    return Mask.apply(key, count, kept, words)  # type: ignore[no-any-return, no-untyped-call]


def levels(kept: int | Tensor, device: torch.device) -> Tensor:
    """`kept` as kernels take it: (r,) int32 of replicas that differ, (1,) of those that do not."""
    return kept.reshape(-1) if isinstance(kept, Tensor) else _levels(kept, device)


@lru_cache(maxsize=64)  # a copy to a GPU waits for the GPU, and cannot be part of a CUDA graph
@torch.inference_mode(False)
def _levels(kept: int, device: torch.device) -> Tensor:
    return torch.tensor([kept], dtype=torch.int32, device=device)


def kept_of(rate: float) -> int:
    """How many of LEVELS a dropout of this rate keeps."""
    return round((1 - rate) * LEVELS)


@dataclass(frozen=True)
class Words:
    """What is hashed for some of the elements of a matrix that several processes share.

    hashed  (rows · words,) int32: the numbers of their words, hashed
    width   elements a row
    odd     (rows, 1) whether a row begins in the upper half of its first word; None: none does
    """

    hashed: Tensor
    width: int
    odd: Tensor | None

    @classmethod
    def of(cls, starts: Tensor, width: int) -> Words:
        """Of rows of `width` elements, from the number of the first element of each."""
        even = width % 2 == 0  # then all rows begin with a word
        count = width // 2 if even else width // 2 + 1
        odd = None if even else (starts % 2 == 1)[:, None]
        hashed = torch.empty(len(starts), count, dtype=torch.int32, device=starts.device)
        steps, height = torch.arange(count, device=starts.device), max(1, CHUNK // max(count, 1))
        for first, rows in zip(starts.split(height), hashed.split(height), strict=True):
            # Beyond 2³² words the numbers begin again.
            rows.copy_(mix(((first // 2)[:, None] + steps).to(torch.int32)))
        return cls(hashed.flatten(), width, odd)

    def lanes(self, key: Tensor, words: Tensor | None = None, high: Tensor | None = None) -> Tensor:
        """(elements,) uniform int16; for keys (r, 2), (r, elements).

        words, high  buffers of the size of `hashed`, which may be given
        """
        lanes = lanes_of(key, 2 * len(self.hashed), words, high, self.hashed)
        if self.odd is None:
            return lanes
        each = lanes.unflatten(-1, (len(self.odd), -1))
        later, sooner = each[..., 1 : self.width + 1], each[..., : self.width]
        return torch.where(self.odd, later, sooner).flatten(-2)


_WORDS: WeakKeyDictionary[Rows, dict[tuple[int, ...], Words]] = WeakKeyDictionary()


def words_of(rows: Rows | None, shape: tuple[int, ...]) -> Words | None:
    """What is hashed for a matrix of these rows, made once; None where all rows are at hand."""
    if rows is None:
        return None
    known = _WORDS.setdefault(rows, {})
    if shape not in known:
        known[shape] = Words.of(*rows.starts(shape))
    return known[shape]


def lanes_of(
    key: Tensor, count: int, words: Tensor | None = None, high: Tensor | None = None,
    hashed: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """(count,) uniform int16; for keys (r, 2), (r, count).

    words, high  buffers, which may be given; the result is a view of `words`
    hashed       the numbers of the words, hashed; by default those of the first elements
    """
    first, second = key.unsqueeze(-1).unbind(-2)
    # What a CUDA graph reads must live as long as the graph; what it makes itself does.
    fresh = key.is_cuda and torch.cuda.is_current_stream_capturing()
    if hashed is None:
        hashed = (_words.__wrapped__ if fresh else _words)((count + 1) // 2, key.device)
    words = torch.bitwise_xor(hashed, first, out=words)
    words.mul_(FACTORS[0])
    high = torch.bitwise_right_shift(words, SHIFT, out=high)
    words.bitwise_xor_(high.bitwise_and_(LOW))
    # (words + second) · factor in one pass
    torch.add(second * FACTORS[1], words, alpha=0x735A2D97, out=words)
    torch.bitwise_right_shift(words, SHIFT, out=high)
    return words.bitwise_xor_(high.bitwise_and_(LOW)).view(torch.int16)[..., :count]


@lru_cache(maxsize=8)
def _words(count: int, device: torch.device) -> Tensor:
    """The element numbers, hashed once, so that less is left to do for each key."""
    return mix(torch.arange(count, dtype=torch.int32, device=device))
