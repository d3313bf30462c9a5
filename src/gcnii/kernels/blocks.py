"""What the kernels are made of: the hash of a dropout mask, and the sum of a row's neighbours."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

import triton
import triton.language as tl


@triton.jit
def mix(x):
    """`dropout._mix` of 32-bit words."""
    x = (x ^ (x >> 16)) * 0x21F0AAAD
    x = (x ^ (x >> 15)) * 0x735A2D97
    return x ^ (x >> 15)


@triton.jit
def kept_entries(element, key, kept):
    """Whether each element of a matrix is kept by the mask of this key: the bits that `dropout.keep_mask` has."""
    word = mix((element >> 1).to(tl.uint32)) ^ tl.load(key).to(tl.uint32, bitcast=True)
    word = word * 0x21F0AAAD
    word = (word ^ (word >> 15)) + tl.load(key + 1).to(tl.uint32, bitcast=True)
    word = word * 0x735A2D97
    word = word ^ (word >> 15)
    lane = (word >> ((element & 1) * 16).to(tl.uint32)) & 0xFFFF
    return (lane ^ 0x8000) < kept.to(tl.uint32)


@triton.jit
def gathered(
    offsets, index, weights, B, H, column, width,
    HUBS: tl.constexpr, TYPE: tl.constexpr, BLOCK: tl.constexpr, UNROLL: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Σ of weights · rows of H over the entries of this program's rows, of B over their pieces: (block, columns)."""
    block = tl.program_id(0)
    source = H
    if HUBS > 0:
        source = tl.where(block < HUBS, B, H)
    total = tl.zeros((BLOCK, column.shape[0]), TYPE)
    for entry in tl.range(tl.load(offsets + block), tl.load(offsets + block + 1), UNROLL, num_stages=1):
        for step in tl.static_range(UNROLL):
            slot = (entry + step) * BLOCK + tl.arange(0, BLOCK)
            where = tl.load(index + slot)
            mask = (where >= 0)[:, None] if EVEN else (where >= 0)[:, None] & (column < width)[None, :]
            row = tl.load(source + where[:, None] * width + column[None, :], mask=mask, other=0.0)
            total += tl.load(weights + slot).to(TYPE)[:, None] * row.to(TYPE)
    return total
