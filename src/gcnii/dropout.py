"""Counter-based dropout: a mask is a hash of (seed, epoch, layer, element), not a stream of random
numbers.

So a run is its seed: the masks are the same on a CPU and on a GPU, alone and among a hundred
replicas, and again when
activations are recomputed.  It is also faster, because integer hashing runs in vector registers and
                             a stream does not.

The key of a mask is two 32-bit words, made from seed, epoch and site; a site is the how-manieth
dropout of a forward
pass.  Each 32-bit word of the hash decides two neighbouring elements, by its lower and its upper 16
       bits.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from gcnii import kernels
from gcnii.errors import InputError
from gcnii.propagation import Adjacency, Sparse, replicas_first

Matrix = TypeVar("Matrix", Tensor, Sparse)
DropForm = Literal["entries", "pairs"]

LEVELS = 1 << 16  # a 16-bit lane decides an element, so keep rates are multiples of 1/65536
# Numbers of the hash; as tensors, because torch would make one of each at every call.
FACTORS = torch.tensor([0x21F0AAAD, 0x735A2D97], dtype=torch.int32).unbind()
SHIFT, LOW = torch.tensor([15, 0x1FFFF], dtype=torch.int32).unbind()
# keys are made for so many sites at once, because each costs a dozen tiny operations
KEY_BLOCK = 64


class Dropout(nn.Module):
    """H → H · mask / keep while training, H otherwise; on a Sparse, the stored values are dropped."""

    def __init__(self, rate: float):
        super().__init__()
        if not 0 <= rate < 1:
            raise InputError(
                f"dropout is the share of entries set to zero and must lie in [0, 1), got {rate}"
            )
        self.kept = round((1 - rate) * LEVELS)
        if self.kept == 0:
            raise InputError(
                f"dropout keeps entries in steps of 1/{LEVELS}, and {rate} would keep none"
            )

    @property
    def active(self) -> bool:
        """Whether anything is dropped now."""
        return self.training and self.kept < LEVELS

    def forward(self, H: Matrix) -> Matrix:
        """The same matrix with some of its entries set to zero, the rest scaled up to keep the
        mean.
        """
        if not self.active:
            return H
        if isinstance(H, Sparse):
            return H.with_values(self.forward(H.values))
        key = next_key(H.device)
        if kernels.usable(H):
            return Drop.apply(H, key, self.kept)  # type: ignore[no-any-return, no-untyped-call]
        mask = keep_mask(key, H.numel(), self.kept).view(H.shape)
        return H * mask.to(H.dtype).mul_(LEVELS / self.kept)

    def each(self, H: Tensor, keys: Tensor) -> Tensor:
        """H (n, b, h) and keys (b, 2): each of the b matrices with the mask of its own key,
        whatever the others.
        """
        if not self.active:
            return H
        n, b, h = H.shape
        mask = keep_mask(keys, n * h, self.kept).view(b, n, h).transpose(0, 1)
        return H * mask.to(H.dtype).mul_(LEVELS / self.kept)

    def extra_repr(self) -> str:
        """Show the rate in `print(model)`."""
        return f"rate={1 - self.kept / LEVELS:.4g}"


class Mask(torch.autograd.Function):
    """key (2,) → (count,) zeros and ones, each one with probability kept / 65536."""

    @staticmethod
    def forward(key: Tensor, count: int, kept: int) -> Tensor:
        """Hash the element numbers; key may be (replicas, 2), then the mask is (replicas, count)."""
        if kernels.usable(key):
            from gcnii.kernels.mask import mask

            return mask(key.view(-1, 2), count, kept).view(*key.shape[:-1], count)
        lanes = _lanes(key, count)
        # Written into its own type, a comparison runs in vector registers; into booleans it takes
        # six times as long.
        return torch.lt(lanes, kept - LEVELS // 2, out=lanes)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Nothing to keep: a mask has no gradient."""
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], key: Tensor, count: int, kept: int
    ) -> tuple[Tensor, int]:
        """All replicas in one pass."""
        assert in_dims[0] is not None
        return keep_mask(key.movedim(in_dims[0], 0), count, kept), 0


class Drop(torch.autograd.Function):
    """H and a key (2,) → H · mask / keep in one pass on a GPU, and its gradient in another; nothing
    is kept of H.
    """

    @staticmethod
    def forward(H: Tensor, key: Tensor, kept: int) -> Tensor:
        """With keys (r, 2), H is (r, …)."""
        from gcnii.kernels.mask import drop

        if key.ndim == 2:
            return drop(H, key, kept, LEVELS / kept)
        return drop(H[None], key[None], kept, LEVELS / kept)[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, int], output: Tensor) -> None:
        """The mask is made again from its key."""
        _, key, ctx.kept = inputs
        ctx.save_for_backward(key)

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, None, None]:
        """The same mask."""
        return Drop.apply(G, *ctx.saved_tensors, ctx.kept), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], H: Tensor, key: Tensor, kept: int
    ) -> tuple[Tensor, int]:
        """All replicas in one pass."""
        H, key = (
            replicas_first(one, dim, info.batch_size)
            for one, dim in zip((H, key), in_dims, strict=False)
        )
        return Drop.apply(H, key, kept), 0  # type: ignore[no-untyped-call]


# torch asks for this at every call; made once instead of each time, it saves 15 µs.
Mask.forward.__signature__ = inspect.signature(Mask.forward)  # type: ignore[attr-defined]


def keep_mask(key: Tensor, count: int, kept: int) -> Tensor:
    """The mask of this key: (count,) int16 zeros and ones."""
    return Mask.apply(key, count, kept)  # type: ignore[no-any-return, no-untyped-call]


class InplaceDropout:
    """Sets to zero, in place, what the masks of its keys drop, for one H (r, …) after the other;
    torch records nothing.

    It keeps its buffers: new ones for each H would be far from the CPU's caches, and cost more than
    the hash.
    """

    def __init__(self, like: Tensor, kept: int):
        self.count, self.kept = like[0].numel(), kept
        self.words = like.new_empty(2, len(like), (self.count + 1) // 2, dtype=torch.int32).unbind()
        self.lanes = torch.empty_like(like, memory_format=torch.contiguous_format)

    def __call__(self, H: Tensor, keys: Tensor) -> Tensor:
        """H, with the entries at zero that the mask of its key drops; keys (r, 2).  The rest is not
        scaled.
        """
        self.lanes.view(len(H), -1).copy_(_lanes(keys, self.count, *self.words))
        # The name is another, but this is "zero where the lane is not below", in one pass.
        return torch.ops.aten.hardtanh_backward.grad_input(  # type: ignore[no-any-return]
            H, self.lanes, -torch.inf, self.kept - LEVELS // 2, grad_input=H
        )


def epoch_key(seeds: Tensor, epoch: Tensor | int, step: Tensor | int = 0) -> Tensor:
    """seeds (replicas,) int64, an epoch and a step of it → (replicas, 2) int32, the keys that
    `keyed` takes.
    """
    halves = seeds.view(torch.int32).unflatten(-1, (-1, 2))
    key = _first_key(seeds.device)
    for word in (halves[..., :1], halves[..., 1:], epoch):
        key = _mix(key ^ word)
    if isinstance(step, Tensor):
        return torch.where(step > 0, _mix(key ^ step), key)
    return _mix(key ^ step) if step else key


@cache  # a copy to a GPU would wait for it, and cannot be part of a CUDA graph
def _first_key(device: torch.device) -> Tensor:
    return torch.tensor([0x3C6EF372, 0x1B873593], dtype=torch.int32, device=device)


@contextmanager
def keyed(key: Tensor, first: int = 0) -> Iterator[KeySequence]:
    """Within, the dropouts of a forward pass draw their masks from this key (2,), each from a site
    of its own.

    first  the number of the first site, where a part of a pass is run again
    """
    sites = KeySequence(key, first)
    token = _sites.set(sites)
    try:
        yield sites
    finally:
        _sites.reset(token)


def current_keys() -> KeySequence | None:
    """Those of the forward pass that is under way, if its masks come from a key."""
    return _sites.get()


class KeySequence:
    """Hands the dropouts of one forward pass their keys, in the order in which they come."""

    def __init__(self, key: Tensor, first: int = 0):
        self.key = key
        self.passed = first  # sites so far
        self.made, self.keys = -1, key  # the block of sites that has its keys, and they

    def next(self) -> Tensor:
        """The key (2,) of the next site."""
        block, at = divmod(self.passed, KEY_BLOCK)
        if block != self.made:
            numbers = torch.arange(
                block * KEY_BLOCK,
                (block + 1) * KEY_BLOCK,
                dtype=torch.int32,
                device=self.key.device,
            )
            self.made, self.keys = block, numbered_keys(self.key, numbers)
        self.passed += 1
        return self.keys[at]

    def take(self, count: int) -> Tensor:
        """The keys (count, 2) of the next sites."""
        numbers = torch.arange(
            self.passed, self.passed + count, dtype=torch.int32, device=self.key.device
        )
        self.passed += count
        return numbered_keys(self.key, numbers)


_sites: ContextVar[KeySequence | None] = ContextVar("sites", default=None)


def numbered_keys(key: Tensor, numbers: Tensor) -> Tensor:
    """A key (2,) and numbers (b,) int32 → (b, 2): a key for each number."""
    return _mix(key ^ numbers[:, None])


def next_key(device: torch.device) -> Tensor:
    """The key (2,) of the next site of this forward pass."""
    sites = _sites.get()
    if sites is not None:
        return sites.next()
    # In a training loop that is not ours, the user's torch.manual_seed decides.
    return torch.randint(-(1 << 31), 1 << 31, (2,), dtype=torch.int64).to(torch.int32).to(device)


def next_keys(count: int, device: torch.device) -> Tensor:
    """The keys (count, 2) of the next sites."""
    sites = _sites.get()
    return (
        torch.stack([next_key(device) for _ in range(count)])
        if sites is None
        else sites.take(count)
    )


def _lanes(
    key: Tensor, count: int, words: Tensor | None = None, high: Tensor | None = None
) -> Tensor:
    """(count,) int16, uniform; for keys (r, 2), (r, count).  They lie in `words`; both buffers may
    be given.
    """
    first, second = key.unsqueeze(-1).unbind(-2)
    # What a CUDA graph reads must last as long as it; what it makes itself does.
    fresh = key.is_cuda and torch.cuda.is_current_stream_capturing()
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
    """The element numbers, hashed once; what depends on the key is cheaper for it."""
    return _mix(torch.arange(count, dtype=torch.int32, device=device))


def _mix(x: Tensor) -> Tensor:
    """A bijection of 32-bit words in which every bit of x moves about half of the result's
    (multiply, xor-shift).
    """
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        x = (x ^ (x >> shift & (1 << 32 - shift) - 1)) * factor
    return x ^ (x >> 15 & 0x1FFFF)


def drop_edges(adjacency: Adjacency, rate: float, form: DropForm) -> Sparse:
    """DropEdge (Rong et al. 2020): P of the links that are kept in this forward pass.

    Which ones are kept is drawn from the next key; self-loops always stay.

    entries  the authors' form: u may lose v while v keeps u, and degrees are counted over what u
             has left
    pairs    a link is lost at both ends
    """
    # authors: exactly ⌊keep · entries⌋ are drawn; here: each is kept with that probability, which
    # needs no sorting.
    kept = round((1 - rate) * LEVELS)
    if kept == LEVELS:
        return adjacency.whole
    weights = adjacency.weights
    mask = keep_mask(next_key(weights.device), len(weights), kept)
    return adjacency.matrix(mask if form == "entries" else mask[adjacency.pairs])
