"""Counter-based dropout: a mask is a hash of (seed, epoch, layer, element), not a random stream.

So the seed alone decides the masks: they are the same on a CPU and on a GPU, alone and among a
hundred replicas, and again when activations are recomputed.  It is also faster, because integer
hashing runs in vector registers and a stream does not.

The key of a mask is two 32-bit words, made from the seed, the epoch and the index of the dropout
call in the forward pass.  Each 32-bit word of the hash decides two neighbouring elements, by its
lower and its upper 16 bits.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from gcnii import kernels
from gcnii.errors import InputError
from gcnii.propagation import Adjacency, Sparse
from gcnii.propagation.sparse import RowNumbers, VmapInfo, replicas_first

KEY_BLOCK = 128  # keys that are made at once, because a single one costs a dozen tiny operations


def epoch_key(seeds: Tensor, epoch: Tensor | int, step: Tensor | int = 0) -> Tensor:
    """seeds (replicas,) int64, an epoch and a step of it → (replicas, 2) int32: `keyed`'s keys."""
    number = step if isinstance(step, Tensor) else None
    if kernels.usable(seeds) and isinstance(epoch, Tensor) and (number is not None or not step):
        from gcnii.kernels.mask import epoch_keys

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
def keyed(key: Tensor, first: int = 0, rows: RowNumbers | None = None) -> Iterator[KeySequence]:
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


def current_rows() -> RowNumbers | None:
    """The rows that the forward pass under way has of the whole graph; None: all."""
    sequence = _sequence.get()
    return None if sequence is None else sequence.rows


class KeySequence:
    """The keys of the dropout calls of one forward pass, in the order of the calls."""

    def __init__(self, key: Tensor, first: int = 0, rows: RowNumbers | None = None):
        self.key, self.rows = key, rows
        self.used = first  # the number of keys used so far
        self.start, self.end = 0, 0  # the numbers of the keys that have been made
        self.keys = key

    def take(self, count: int) -> Tensor:
        """The keys (count, 2) of the next dropout calls."""
        if self.used + count > self.end:
            self.start, self.end = self.used, self.used + max(count, KEY_BLOCK)
            self.keys = key_run(self.key, self.start, self.end)
        first = self.used - self.start
        self.used += count
        return self.keys[first : first + count]


_sequence: ContextVar[KeySequence | None] = ContextVar("key_sequence", default=None)


def numbered_keys(key: Tensor, numbers: Tensor) -> Tensor:
    """A key (2,) and numbers (b,) int32 → (b, 2): a key of its own for each number."""
    return mix(key ^ numbers[:, None])


def key_run(key: Tensor, start: int, end: int) -> Tensor:
    """A key (2,) → (end - start, 2): `numbered_keys` of these numbers."""
    if kernels.usable(key):
        return KeyRun.apply(key, start, end)  # type: ignore[no-any-return, no-untyped-call]
    return numbered_keys(key, torch.arange(start, end, dtype=torch.int32, device=key.device))


class KeyRun(torch.autograd.Function):
    """The same in one launch instead of a dozen, and under vmap for all replicas."""

    @staticmethod
    def forward(key: Tensor, start: int, end: int) -> Tensor:
        """The keys of these numbers; for keys (r, 2), (r, end - start, 2)."""
        from gcnii.kernels.mask import key_run

        return key_run(key.view(-1, 2), start, end).view(*key.shape[:-1], -1, 2)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save nothing: a key has no gradient."""
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...], key: Tensor, start: int, end: int
    ) -> tuple[Tensor, int]:
        assert in_dims[0] is not None
        return KeyRun.apply(key.movedim(in_dims[0], 0), start, end), 0  # type: ignore[no-untyped-call]


# torch asks for this at every call; made once instead of each time, it saves 15 µs.
KeyRun.forward.__signature__ = inspect.signature(KeyRun.forward)  # type: ignore[attr-defined]


def next_key(device: torch.device) -> Tensor:
    """The key (2,) of the next dropout call of this forward pass."""
    sequence = _sequence.get()
    if sequence is not None:
        return sequence.take(1)[0]
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
    for shift, factor in zip((16, 15), kernels.HASH, strict=True):
        x = (x ^ (x >> shift & (1 << 32 - shift) - 1)) * factor
    return x ^ (x >> 15 & 0x1FFFF)


LEVELS = 1 << 16  # a 16-bit lane decides an element, so keep rates are multiples of 1/65536
CHUNK = 1 << 20  # words that are hashed at once, where several processes share the elements
# Constants of the hash; as tensors, because torch would make one of each at every call.
FACTORS = torch.tensor(kernels.HASH, dtype=torch.int32).unbind()
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


_WORDS: WeakKeyDictionary[RowNumbers, dict[tuple[int, ...], Words]] = WeakKeyDictionary()


def words_of(rows: RowNumbers | None, shape: tuple[int, ...]) -> Words | None:
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
    torch.add(second * FACTORS[1], words, alpha=kernels.HASH[1], out=words)
    torch.bitwise_right_shift(words, SHIFT, out=high)
    return words.bitwise_xor_(high.bitwise_and_(LOW)).view(torch.int16)[..., :count]


@lru_cache(maxsize=8)
def _words(count: int, device: torch.device) -> Tensor:
    """The element numbers, hashed once, so that less is left to do for each key."""
    return mix(torch.arange(count, dtype=torch.int32, device=device))


Matrix = TypeVar("Matrix", Tensor, Sparse)
DropForm = Literal["entries", "pairs"]


class Dropout(nn.Module):
    """H → H · mask / keep while training, else H; of a Sparse, the stored values are dropped."""

    def __init__(self, rate: float):
        super().__init__()
        if not 0 <= rate < 1:
            raise InputError(
                f"dropout is the share of entries set to zero and must lie in [0, 1), got {rate}"
            )
        # A tensor () within a batch of replicas whose rates differ.
        self.kept: int | Tensor = kept_of(rate)
        if self.kept == 0:
            raise InputError(
                f"dropout keeps entries in steps of 1/{LEVELS}, and {rate} would keep none"
            )

    @property
    def active(self) -> bool:
        """Whether the next call drops anything."""
        return self.training and (isinstance(self.kept, Tensor) or self.kept < LEVELS)

    def scale(self, dtype: torch.dtype) -> float | Tensor:
        """By how much entries that are kept are scaled, in numbers of this type."""
        kept = self.kept.to(dtype) if isinstance(self.kept, Tensor) else self.kept
        return LEVELS / kept

    def forward(self, H: Matrix) -> Matrix:
        """H with some of its entries set to zero, and the rest scaled up to keep the mean."""
        if not self.active:
            return H
        if isinstance(H, Sparse):
            return H.with_values(self.forward(H.values))
        key, rows = next_key(H.device), current_rows()
        if kernels.usable(H):
            kept, starts = levels(self.kept, H.device), rows and rows.starts(H.shape)[0]
            return Drop.apply(H, key, kept, starts)  # type: ignore[no-any-return, no-untyped-call]
        mask = keep_mask(key, H.numel(), self.kept, words_of(rows, H.shape)).view(H.shape)
        factors = mask.to(H.dtype).mul_(self.scale(H.dtype))
        # Features have no gradient, and are large: one matrix of their size less.
        return H * factors if H.requires_grad else factors.mul_(H)

    def each(self, H: Tensor, keys: Tensor) -> Tensor:
        """H (n, b, h) and keys (b, 2): each of the b matrices with the mask of its own key."""
        if not self.active:
            return H
        n, b, h = H.shape
        mask = keep_mask(keys, n * h, self.kept).view(b, n, h).transpose(0, 1)
        return H * mask.to(H.dtype).mul_(self.scale(H.dtype))

    def extra_repr(self) -> str:
        """Show the rate in `print(model)`."""
        return f"rate={1 - float(self.kept) / LEVELS:.4g}"


class Drop(torch.autograd.Function):
    """H, key (2,), kept (1,) → H · mask / keep in one pass on a GPU; only the key is saved.

    starts  of the rows of H, where several processes share a matrix
    """

    @staticmethod
    def forward(H: Tensor, key: Tensor, kept: Tensor, starts: Tensor | None) -> Tensor:
        """Drop from H; with keys (r, 2), H is (r, …), and kept (1,) or (r,)."""
        from gcnii.kernels.mask import drop

        if key.ndim == 2:
            return drop(H, key, kept, scaled=True, starts=starts)
        return drop(H[None], key[None], kept, scaled=True, starts=starts)[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor | None, ...], output: Tensor) -> None:
        """Save the key, from which backward makes the mask again."""
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, None, None, None]:
        """G with the same mask."""
        return Drop.apply(G, *ctx.saved_tensors), None, None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(
        info: VmapInfo, in_dims: tuple[int | None, ...],
        H: Tensor, key: Tensor, kept: Tensor, starts: Tensor | None,
    ) -> tuple[Tensor, int]:  # fmt: skip
        """Drop from all replicas in one pass."""
        H, key = (
            replicas_first(one, dim, info.batch_size)
            for one, dim in zip((H, key), in_dims, strict=False)
        )
        if in_dims[2] is not None:
            kept = kept.movedim(in_dims[2], 0).flatten()
        return Drop.apply(H, key, kept, starts), 0  # type: ignore[no-untyped-call]


class InplaceDropout:
    """Drops in place, from one H (r, …) after the other; torch records nothing.

    It reuses its buffers: new ones for each H would not be in the CPU's caches, and would cost more
    than the hash.

    rows  of the whole graph that each H has; None: all
    """

    def __init__(self, like: Tensor, kept: int, rows: RowNumbers | None = None):
        self.kept, self.words = kept, words_of(rows, like.shape[1:])
        self.count = like[0].numel()
        count = (self.count + 1) // 2 if self.words is None else len(self.words.hashed)
        self.buffers = like.new_empty(2, len(like), count, dtype=torch.int32).unbind()
        self.lanes = torch.empty_like(like, memory_format=torch.contiguous_format)

    def __call__(self, H: Tensor, keys: Tensor) -> Tensor:
        """Set to zero what the masks of these keys (r, 2) drop; the rest is not scaled."""
        if self.words is None:
            lanes = lanes_of(keys, self.count, *self.buffers)
        else:
            lanes = self.words.lanes(keys, *self.buffers)
        self.lanes.view(len(H), -1).copy_(lanes)
        # Whatever its name says, this is "zero where the lane is not below", in one pass.
        return torch.ops.aten.hardtanh_backward.grad_input(  # type: ignore[no-any-return]
            H, self.lanes, -torch.inf, self.kept - LEVELS // 2, grad_input=H
        )


def drop_edges(adjacency: Adjacency, kept: int | Tensor, form: DropForm) -> Sparse:
    """DropEdge (Rong et al. 2020): P of the links that are kept in this forward pass.

    The next key decides which ones are kept; self-loops always are.  Of LEVELS links, `kept` are.

    entries  the authors' form: u may lose v while v keeps u; degrees count the links that are left
    pairs    a link is lost at both ends
    """
    # authors: exactly ⌊keep · entries⌋ are drawn; here: each is kept with that probability, which
    # needs no sorting.
    if isinstance(kept, int) and kept == LEVELS:
        return adjacency.whole
    weights, key = adjacency.weights, next_key(adjacency.weights.device)
    if rows := adjacency.entries if form == "entries" else adjacency.paired:
        words = words_of(rows, (len(weights),))
        return adjacency.matrix(keep_mask(key, len(weights), kept, words))
    mask = keep_mask(key, len(weights), kept)
    return adjacency.matrix(mask if form == "entries" else mask[adjacency.pairs])


def drop_nodes(X: Tensor | Sparse, kept: int | Tensor) -> Tensor | Sparse:
    """DropNode (Feng et al. 2020): X with some rows set to zero, and the rest scaled up.

    The next key decides which ones are kept.  Of LEVELS rows, `kept` are.
    """
    if isinstance(kept, int) and kept == LEVELS:
        return X
    words = words_of(current_rows(), (X.shape[0], 1))
    mask = keep_mask(next_key(X.device), X.shape[0], kept, words).to(X.dtype)
    rows = mask * (LEVELS / (kept.to(X.dtype) if isinstance(kept, Tensor) else kept))
    if isinstance(X, Sparse):
        return X.with_values(X.values * rows[X.pattern.row_of])
    return X * rows[:, None]
