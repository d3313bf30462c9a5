"""Parts of the kernels: the hash of a dropout mask, and the sums over rows' neighbours."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

import triton
import triton.language as tl


@triton.jit
def mix(x):
    """`dropout.keys.mix` of 32-bit words."""
    x = (x ^ (x >> 16)) * 0x21F0AAAD
    x = (x ^ (x >> 15)) * 0x735A2D97
    return x ^ (x >> 15)


@triton.jit
def kept_entries(element, key, kept):
    """Whether the mask of this key keeps each element: the bits of `dropout.keep_mask`."""
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
    HUBS: tl.constexpr, TYPE: tl.constexpr, BLOCK: tl.constexpr, UNROLL: tl.constexpr,
    EVEN: tl.constexpr,
):  # fmt: skip
    """Σ weights · rows of H over this program's rows, of B for the hubs: (block, columns)."""
    block = tl.program_id(0)
    source = H
    if HUBS > 0:
        source = tl.where(block < HUBS, B, H)
    total = tl.zeros((BLOCK, column.shape[0]), TYPE)
    for entry in tl.range(
        tl.load(offsets + block), tl.load(offsets + block + 1), UNROLL, num_stages=1
    ):
        for step in tl.static_range(UNROLL):
            slot = (entry + step) * BLOCK + tl.arange(0, BLOCK)
            where = tl.load(index + slot)
            mask = (
                (where >= 0)[:, None] if EVEN else (where >= 0)[:, None] & (column < width)[None, :]
            )
            row = tl.load(source + where[:, None] * width + column[None, :], mask=mask, other=0.0)
            total += tl.load(weights + slot).to(TYPE)[:, None] * row.to(TYPE)
    return total


@triton.jit
def summed_slots(
    owner, offsets, index, weights, H, column, width,
    HUBS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Σ weights · rows of H over this program's slots, added up by row: (block, columns)."""
    block, lane = tl.program_id(0), tl.arange(0, BLOCK)
    first, last = tl.load(offsets + block), tl.load(offsets + block + 1)
    inside = (column < width)[None, :]
    total = tl.zeros((BLOCK, column.shape[0]), tl.float32)
    # The columns of the next two entries are fetched while the rows of these two are.
    one, two = tl.load(index + first * BLOCK + lane), tl.load(index + (first + 1) * BLOCK + lane)
    for entry in tl.range(first, last, 2, num_stages=1):
        slot = entry * BLOCK + lane
        third, fourth = tl.load(index + slot + 2 * BLOCK), tl.load(index + slot + 3 * BLOCK)
        there, others = (one >= 0)[:, None], (two >= 0)[:, None]
        row = tl.load(
            H + one[:, None] * width + column[None, :],
            mask=there if EVEN else there & inside,
            other=0.0,
        )
        other = tl.load(
            H + two[:, None] * width + column[None, :],
            mask=others if EVEN else others & inside,
            other=0.0,
        )
        total += tl.load(weights + slot)[:, None] * row.to(tl.float32)
        total += tl.load(weights + slot + BLOCK)[:, None] * other.to(tl.float32)
        one, two = third, fourth
    if HUBS > 0:  # noqa: SIM102 (this is known when the kernel is compiled)
        if block < HUBS:
            mine = (tl.load(owner + block * BLOCK + lane)[None, :] == lane[:, None]).to(tl.float32)
            if PRECISION == "tf32":
                total = tl.dot(mine, total, input_precision="tf32")
            # Ones are exact in 10 bits of mantissa, so a second product makes up for what the first
            # cuts off.
            else:
                high = (total.to(tl.uint32, bitcast=True) & 0xFFFFE000).to(tl.float32, bitcast=True)
                total = tl.dot(
                    mine,
                    total - high,
                    tl.dot(mine, high, input_precision="tf32"),
                    input_precision="tf32",
                )
    return total
