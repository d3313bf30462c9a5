"""Dropout on a GPU in one pass: keys and masks of `dropout`, hashed where they are used."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from gcnii.kernels import HASH
from gcnii.kernels.gather import stride

BLOCK = 1024
FIRST, SECOND = (tl.constexpr(factor) for factor in HASH)  # kernels read no other globals


def epoch_keys(seeds: Tensor, epoch: Tensor, step: Tensor | None, first: Tensor) -> Tensor:
    """`dropout.epoch_key`: seeds (r,) int64, epochs () or (r, 1), a step () → (r, 2) int32.

    first  (2,) the words that all keys begin with
    """
    out = torch.empty(len(seeds), 2, dtype=torch.int32, device=seeds.device)
    _epoch_keys[(len(seeds),)](
        seeds.view(torch.int32), epoch, seeds if step is None else step, first, out,
        EACH=epoch.numel() > 1, STEP=step is not None,
    )  # fmt: skip
    return out


def key_run(keys: Tensor, start: int, end: int) -> Tensor:
    """`dropout.numbered_keys`: keys (r, 2) → (r, end - start, 2) of these numbers."""
    keys, count = keys.contiguous(), end - start
    out = torch.empty(len(keys), count, 2, dtype=torch.int32, device=keys.device)
    _key_run[(triton.cdiv(2 * count, BLOCK), len(keys))](keys, out, start, count, BLOCK=BLOCK)
    return out


def mask(keys: Tensor, count: int, kept: Tensor) -> Tensor:
    """keys (r, 2), kept (1,) or (r,) of 65536 → (r, count) int16 zeros and ones."""
    keys = keys.contiguous()
    out = torch.empty(len(keys), count, dtype=torch.int16, device=keys.device)
    _mask[(triton.cdiv(count, BLOCK), len(keys))](keys, out, count, kept, stride(kept), BLOCK=BLOCK)
    return out


def drop(
    H: Tensor, keys: Tensor, kept: Tensor, *, scaled: bool = False, out: Tensor | None = None,
    starts: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """H (r, …) with the entries that are not kept set to zero, and the rest as is, or scaled.

    kept    (1,) or (r,) of 65536
    out     may be H
    starts  (n,) numbers of the first elements of each H's n rows; by default they follow each other
    """
    H = H.contiguous()
    out = torch.empty_like(H) if out is None else out
    count = H[0].numel()
    _drop[(triton.cdiv(count, BLOCK), len(H))](
        keys, keys if starts is None else starts, H, out, count, _width(count, starts), kept,
        keys.stride(0), stride(kept), SCALED=scaled, SHARED=starts is not None, BLOCK=BLOCK,
    )  # fmt: skip
    return out


def finish_layer(
    Z: Tensor, D: Tensor | None, skip: float, keys: Tensor | None, kept: Tensor, out: Tensor,
    starts: Tensor | None = None,
) -> None:  # fmt: skip
    """The rest of a layer: out = ReLU(Z [+ skip D]); with keys (r, 2), dropped but not scaled."""
    count, key, add = Z[0].numel(), Z if keys is None else keys, Z if D is None else D
    _finish[(triton.cdiv(count, BLOCK), len(Z))](
        Z, add, key, key if starts is None else starts, out,
        count, _width(count, starts), skip, kept,
        Z.stride(0), add.stride(0), key.stride(0), stride(kept), out.stride(0),
        SKIP=D is not None, DROP=keys is not None, SHARED=starts is not None, BLOCK=BLOCK,
    )  # fmt: skip


def open_where(G: Tensor, H: Tensor, out: Tensor) -> None:
    """out = G where H is positive, else 0: the gradient that a ReLU lets through."""
    count = G[0].numel()
    _open_where[(triton.cdiv(count, BLOCK), len(G))](
        G, H, out, count, G.stride(0), H.stride(0), out.stride(0), BLOCK=BLOCK
    )  # fmt: skip


def _width(count: int, starts: Tensor | None) -> int:
    return count if starts is None else count // max(len(starts), 1)


@triton.jit
def mix(x):
    """`dropout.mix` of 32-bit words."""
    x = (x ^ (x >> 16)) * FIRST
    x = (x ^ (x >> 15)) * SECOND
    return x ^ (x >> 15)


@triton.jit
def kept_entries(element, key, kept):
    """Whether the mask of this key keeps each element: the bits of `dropout.keep_mask`."""
    word = mix((element >> 1).to(tl.uint32)) ^ tl.load(key).to(tl.uint32, bitcast=True)
    word = word * FIRST
    word = (word ^ (word >> 15)) + tl.load(key + 1).to(tl.uint32, bitcast=True)
    word = word * SECOND
    word = word ^ (word >> 15)
    lane = (word >> ((element & 1) * 16).to(tl.uint32)) & 0xFFFF
    return (lane ^ 0x8000) < kept.to(tl.uint32)


@triton.jit
def _epoch_keys(seeds, epoch, step, first, out, EACH: tl.constexpr, STEP: tl.constexpr):
    replica, lane = tl.program_id(0), tl.arange(0, 2)
    key = tl.load(first + lane).to(tl.uint32, bitcast=True)
    for half in tl.static_range(2):
        key = mix(key ^ tl.load(seeds + 2 * replica + half).to(tl.uint32, bitcast=True))
    now = tl.load(epoch + replica) if EACH else tl.load(epoch)
    key = mix(key ^ now.to(tl.int32).to(tl.uint32, bitcast=True))
    if STEP:
        number = tl.load(step).to(tl.int32)
        key = tl.where(number > 0, mix(key ^ number.to(tl.uint32, bitcast=True)), key)
    tl.store(out + 2 * replica + lane, key.to(tl.int32, bitcast=True))


@triton.jit
def _key_run(keys, out, start, count, BLOCK: tl.constexpr):
    replica = tl.program_id(1)
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(keys + 2 * replica + lane % 2).to(tl.uint32, bitcast=True)
    key = mix(word ^ (start + lane // 2).to(tl.uint32, bitcast=True))
    tl.store(
        out + 2 * count * replica + lane, key.to(tl.int32, bitcast=True), mask=lane < 2 * count
    )


@triton.jit
def _mask(keys, out, count, kept, kept_r, BLOCK: tl.constexpr):
    replica = tl.program_id(1).to(tl.int64)
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = kept_entries(element, keys + replica * 2, tl.load(kept + replica * kept_r))
    tl.store(out + replica * count + element, keep.to(tl.int16), mask=element < count)


@triton.jit
def _number(element, starts, count, width, SHARED: tl.constexpr):
    """The numbers of elements of rows of this width in the whole matrix."""
    number = element
    if SHARED:
        start = tl.load(starts + element // width, mask=element < count, other=0)
        number = start + element % width
    return number


@triton.jit
def _drop(
    keys, starts, H, out, count, width, kept, keys_r, kept_r,
    SCALED: tl.constexpr, SHARED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    share, number = tl.load(kept + replica * kept_r), _number(element, starts, count, width, SHARED)
    keep = kept_entries(number, keys + replica * keys_r, share)
    at = replica * count + element
    value = tl.load(H + at, mask=(element < count) & keep, other=0.0)
    if SCALED:
        value *= tl.div_rn(65536.0, share.to(tl.float32))
    tl.store(out + at, value, mask=element < count)


@triton.jit
def _finish(
    Z, D, keys, starts, out, count, width, skip, kept, Z_r, D_r, keys_r, kept_r, out_r,
    SKIP: tl.constexpr, DROP: tl.constexpr, SHARED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = element < count
    value = tl.load(Z + replica * Z_r + element, mask=inside, other=0.0).to(tl.float32)
    if SKIP:
        value += skip * tl.load(D + replica * D_r + element, mask=inside, other=0.0).to(tl.float32)
    value = tl.maximum(value, 0.0)
    if DROP:
        share = tl.load(kept + replica * kept_r)
        number = _number(element, starts, count, width, SHARED)
        value = tl.where(kept_entries(number, keys + replica * keys_r, share), value, 0.0)
    tl.store(out + replica * out_r + element, value, mask=inside)


@triton.jit
def _open_where(G, H, out, count, G_r, H_r, out_r, BLOCK: tl.constexpr):
    replica = tl.program_id(1).to(tl.int64)
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = element < count
    positive = tl.load(H + replica * H_r + element, mask=inside, other=0.0) > 0
    value = tl.load(G + replica * G_r + element, mask=inside & positive, other=0.0)
    tl.store(out + replica * out_r + element, value, mask=inside)
