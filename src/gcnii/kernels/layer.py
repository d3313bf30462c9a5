"""A GCNII layer in one kernel: gather, initial residual, identity mapping, ReLU, dropout.

P̃(SM) = (P̃S)M, so what a program gathers for its rows goes straight into the product, and nothing
in between is stored; backward is one kernel, too.  All matrices have an axis of replicas in front,
(r, n, h) and (r, h, h), and may be slices of larger ones.
"""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from gcnii.kernels import gradients
from gcnii.kernels.gather import stride
from gcnii.kernels.layouts import Slots, SlottedMatrix
from gcnii.kernels.mask import kept_entries
from gcnii.memory import BUSY

INNER = 64  # columns of a product's inner dimension that are taken at once
PART = 32  # the same for GCNII*'s second product, which has fewer registers left
PARTS, ROWS = 8, 16  # into which the rows of a weight's gradient are cut, and rows taken at once
PROGRAMS = 128  # of one replica's products, at least


def forward_layer(
    P: SlottedMatrix, D: Tensor, H0: Tensor, M1: Tensor, M2: Tensor | None, keys: Tensor | None,
    out: Tensor, S: Tensor | None, *, alpha: float, skip: float, kept: Tensor, back: bool,
    starts: Tensor | None = None, source: Tensor | None = None, others: Tensor | None = None,
) -> None:  # fmt: skip
    """out = ReLU(S M1 [+ H0 M2] [+ skip D]) with S = P source + α H0 [+ others].

    keys    (r, 2) if given, `out` is dropped but not scaled
    kept    (1,) or (r,) of 65536 entries
    S       if given, the sums are stored there
    back    whether to begin with the last replica
    starts  (n,) numbers of the rows' first elements, for the mask; by default 0, h, 2h, …
    source  (r, columns of P, h), contiguous; what is gathered, by default D
    others  (r, n, h), contiguous; sums over other columns
    """
    (slots, weights), (replicas, _, width) = P, D.shape
    if not slots.blocks:
        return
    F = D if source is None else source
    second, key = M1 if M2 is None else M2, M1 if keys is None else keys
    sums, extra = out if S is None else S, D if others is None else others
    _forward[(slots.blocks, replicas)](
        slots.order, slots.owner, slots.offsets, slots.index, weights,
        F, D, H0, M1, second, key, extra, slots.order if starts is None else starts, sums, out,
        width, alpha, skip, kept, back * (replicas - 1),
        stride(weights), F.stride(0), D.stride(0), H0.stride(0), M1.stride(0), second.stride(0),
        key.stride(0), extra.stride(0), stride(kept), sums.stride(0), out.stride(0),
        STAR=M2 is not None, SKIP=skip != 0, DROP=keys is not None, KEEP=S is not None,
        SHARED=starts is not None, EXTRA=others is not None,
        PART=min(PART, _size(width)), **_cut(D, slots),
    )  # fmt: skip


def backward_layer(
    PT: SlottedMatrix, dZ: Tensor, M1: Tensor, D: Tensor | None, out: Tensor,
    *, skip: float, back: bool, source: Tensor | None = None, others: Tensor | None = None,
) -> None:  # fmt: skip
    """out = (Pᵀ source [+ others]) M1ᵀ [+ skip dZ]; if D is given, 0 where D is not positive.

    out     may be D
    source  (r, columns of Pᵀ, h), contiguous; what is gathered, by default dZ
    others  (r, n, h), contiguous; sums over other columns
    """
    (slots, weights), (replicas, _, width) = PT, dZ.shape
    if not slots.blocks:
        return
    F = dZ if source is None else source
    output, extra = out if D is None else D, dZ if others is None else others
    _backward[(slots.blocks, replicas)](
        slots.order, slots.owner, slots.offsets, slots.index, weights,
        F, dZ, M1, output, extra, out, width, skip, back * (replicas - 1),
        stride(weights), F.stride(0), dZ.stride(0), M1.stride(0), output.stride(0), extra.stride(0),
        out.stride(0), SKIP=skip != 0, MASK=D is not None, EXTRA=others is not None,
        **_cut(dZ, slots),
    )  # fmt: skip


def initial_gradient(dZ: Tensor, M: Tensor, scale: float, out: Tensor, *, add: bool) -> None:
    """out [+]= scale Σ_l dZ_l M_lᵀ for dZ (r, L, n, h), M (L, r, h, h) and out (r, n, h)."""
    replicas, layers, n, width = dZ.shape
    size, block = _size(width), 64 if replicas * n >= BUSY else 32
    _initial[(triton.cdiv(n, block), replicas)](
        dZ, M, out, n, width, layers, scale,
        dZ.stride(0), dZ.stride(1), M.stride(1), M.stride(0), out.stride(0),
        ADD=add, WIDTH=size, PRECISION=precision(), BLOCK=block, INNER=min(INNER, size),
        EVEN=width == size, STAGES=3 if size <= 64 else 1, num_warps=4 if size <= 64 else 8,
    )  # fmt: skip


def weight_gradients(S: Tensor, dZ: Tensor, out: Tensor) -> None:
    """out = S_lᵀ dZ_l (L, r, h, h) for S and dZ (r, L, n, h).

    A product of a few layers is cut into parts, which cuBLAS does not do in a batch; where many
    replicas fill the GPU, its products are faster.
    """
    replicas, layers, n, width = dZ.shape
    if width > INNER or replicas * n >= BUSY:
        products = gradients(S.flatten(0, 1), dZ.flatten(0, 1)).unflatten(0, S.shape[:2])
        out.copy_(products.transpose(0, 1))
        return
    size, exact = _size(width), precision()
    part = triton.cdiv(n, max(PARTS, PROGRAMS // layers) * ROWS) * ROWS
    sums = torch.empty(triton.cdiv(n, part), *out.shape, device=out.device)
    _products[(len(sums), layers, replicas)](
        S, dZ, sums, n, width, part, S.stride(0), S.stride(1), dZ.stride(0), dZ.stride(1),
        WIDTH=size, BLOCK=ROWS, EVEN=width == size,
        PRECISION="ieee" if exact == "tf32x3" else exact, num_warps=4, num_stages=3,
    )  # fmt: skip
    torch.sum(sums, 0, out=out)


def _size(width: int) -> int:
    """The next width that tensor cores take."""
    return max(16, int(triton.next_power_of_2(width)))


def precision() -> str:
    """How to multiply float32: torch's own switch says whether 10 bits of mantissa are enough."""
    return "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def _cut(H: Tensor, slots: Slots) -> dict[str, object]:
    """The kernels' constants, and the launch options that were measured to be fastest."""
    width = H.shape[2]
    size, exact = _size(width), precision()
    warps = 4 if slots.block >= 32 and size <= 64 else 8
    inner = size if H.dtype == torch.bfloat16 else min(INNER, size)
    constants: dict[str, object] = {
        "HUBS": slots.hubs, "BLOCK": slots.block, "WIDTH": size, "INNER": inner,
        "EVEN": width == size, "PRECISION": exact, "num_warps": warps,
    }  # fmt: skip
    # Fewer registers than three products at once would take leave room for a fourth program.
    return constants | ({"maxnreg": 128} if exact == "tf32x3" and warps == 4 else {})


@triton.jit
def _rows_of(M, column, to, width, TRANSPOSED: tl.constexpr, EVEN: tl.constexpr):
    """The rows `column` of M, or of Mᵀ."""
    at = (
        to[None, :] * width + column[:, None]
        if TRANSPOSED
        else column[:, None] * width + to[None, :]
    )
    if EVEN:
        return tl.load(M + at)
    return tl.load(M + at, mask=(column < width)[:, None] & (to < width)[None, :], other=0.0)


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


@triton.jit
def _initial_product(
    H0, base, there, M2, to, width, Z, WIDTH: tl.constexpr, PART: tl.constexpr,
    EVEN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Z + H0 M2, for this program's rows."""
    for k in tl.range(0, WIDTH, PART, num_stages=1):
        column = k + tl.arange(0, PART)
        mask = there if EVEN else there & (column < width)[None, :]
        initial = tl.load(H0 + base + column[None, :], mask=mask, other=0.0)
        m = _rows_of(M2, column, to, width, False, EVEN)
        Z = tl.dot(initial.to(m.dtype), m, Z, input_precision=PRECISION)
    return Z


@triton.jit(do_not_specialize=["last"])
def _forward(
    order, owner, offsets, index, weights, F, D, H0, M1, M2, key, extra, starts, S, out,
    width, alpha, skip, kept, last,
    weights_r, F_r, D_r, H0_r, M1_r, M2_r, key_r, extra_r, kept_r, S_r, out_r,
    STAR: tl.constexpr, SKIP: tl.constexpr, DROP: tl.constexpr, KEEP: tl.constexpr,
    SHARED: tl.constexpr, EXTRA: tl.constexpr, HUBS: tl.constexpr, BLOCK: tl.constexpr,
    WIDTH: tl.constexpr, INNER: tl.constexpr, EVEN: tl.constexpr, PRECISION: tl.constexpr,
    PART: tl.constexpr,
):  # fmt: skip
    replica = tl.abs(last - tl.program_id(1)).to(tl.int64)
    weights, F = weights + replica * weights_r, F + replica * F_r
    D, H0 = D + replica * D_r, H0 + replica * H0_r
    M1, M2, key = M1 + replica * M1_r, M2 + replica * M2_r, key + replica * key_r
    S, out, extra = S + replica * S_r, out + replica * out_r, extra + replica * extra_r
    to = tl.arange(0, WIDTH)
    row = tl.load(order + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    there, base = (row >= 0)[:, None], row[:, None] * width
    inside = there if EVEN else there & (to < width)[None, :]
    Z = tl.zeros((BLOCK, WIDTH), tl.float32)
    if STAR:
        # First, and in a loop: beside the other product it would need twice the registers we have.
        Z = _initial_product(H0, base, there, M2, to, width, Z, WIDTH, PART, EVEN, PRECISION)
    for k in tl.static_range(0, WIDTH, INNER):
        column = k + tl.arange(0, INNER)
        mask = there if EVEN else there & (column < width)[None, :]
        A = summed_slots(
            owner, offsets, index, weights, F, column, width, HUBS, BLOCK, EVEN, PRECISION
        )
        # Fetched no earlier, because they would only take up registers until here.
        if not STAR:
            initial = tl.load(H0 + base + column[None, :], mask=mask, other=0.0).to(tl.float32)
        m = _rows_of(M1, column, to, width, False, EVEN)
        if not STAR:
            A += alpha * initial
        if EXTRA:
            A += tl.load(extra + base + column[None, :], mask=mask, other=0.0).to(tl.float32)
        if KEEP:
            tl.store(S + base + column[None, :], A, mask=mask)
        Z = tl.dot(A.to(m.dtype), m, Z, input_precision=PRECISION)
    if SKIP:
        Z += skip * tl.load(D + base + to[None, :], mask=inside, other=0.0).to(tl.float32)
    Z = tl.maximum(Z, 0.0)
    if DROP:
        share = tl.load(kept + replica * kept_r)
        number = base
        if SHARED:
            number = tl.load(starts + row, mask=row >= 0, other=0)[:, None]
        Z = tl.where(kept_entries(number + to[None, :], key, share), Z, 0.0)
    tl.store(out + base + to[None, :], Z, mask=inside)


@triton.jit(do_not_specialize=["last"])
def _backward(
    order, owner, offsets, index, weights, F, dZ, M1, D, extra, out, width, skip, last,
    weights_r, F_r, dZ_r, M1_r, D_r, extra_r, out_r,
    SKIP: tl.constexpr, MASK: tl.constexpr, EXTRA: tl.constexpr,
    HUBS: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr, INNER: tl.constexpr,
    EVEN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    replica = tl.abs(last - tl.program_id(1)).to(tl.int64)
    weights, M1 = weights + replica * weights_r, M1 + replica * M1_r
    dZ, D, out = dZ + replica * dZ_r, D + replica * D_r, out + replica * out_r
    F, extra = F + replica * F_r, extra + replica * extra_r
    to = tl.arange(0, WIDTH)
    row = tl.load(order + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    at = row[:, None] * width + to[None, :]
    mask = (row >= 0)[:, None] if EVEN else (row >= 0)[:, None] & (to < width)[None, :]
    Z = tl.zeros((BLOCK, WIDTH), tl.float32)
    for k in tl.static_range(0, WIDTH, INNER):
        column = k + tl.arange(0, INNER)
        A = summed_slots(
            owner, offsets, index, weights, F, column, width, HUBS, BLOCK, EVEN, PRECISION
        )
        if EXTRA:
            inside = (row >= 0)[:, None] & (column < width)[None, :]
            at_row = extra + row[:, None] * width + column[None, :]
            A += tl.load(at_row, mask=inside, other=0.0).to(tl.float32)
        m = _rows_of(M1, column, to, width, True, EVEN)
        Z = tl.dot(A.to(m.dtype), m, Z, input_precision=PRECISION)
    if SKIP:
        Z += skip * tl.load(dZ + at, mask=mask, other=0.0).to(tl.float32)
    if MASK:
        Z = tl.where(tl.load(D + at, mask=mask, other=0.0) > 0, Z, 0.0)
    tl.store(out + at, Z, mask=mask)


@triton.jit
def _initial(
    dZ, M, out, n, width, layers, scale, dZ_r, dZ_l, M_r, M_l, out_r,
    WIDTH: tl.constexpr, PRECISION: tl.constexpr, BLOCK: tl.constexpr, INNER: tl.constexpr,
    EVEN: tl.constexpr, STAGES: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    to, base = tl.arange(0, WIDTH), row[:, None] * width
    dZ, M = dZ + replica * dZ_r, M + replica * M_r
    Z = tl.zeros((BLOCK, WIDTH), tl.float32)
    for _ in tl.range(0, layers, num_stages=STAGES):
        for k in tl.static_range(0, WIDTH, INNER):
            column = k + tl.arange(0, INNER)
            mask = (row < n)[:, None] & (column < width)[None, :]
            A = tl.load(dZ + base + column[None, :], mask=mask, other=0.0)
            Z = tl.dot(A, _rows_of(M, column, to, width, True, EVEN), Z, input_precision=PRECISION)
        dZ += dZ_l
        M += M_l
    at = out + replica * out_r + base + to[None, :]
    mask = (row < n)[:, None] & (to < width)[None, :]
    Z *= scale
    if ADD:
        Z += tl.load(at, mask=mask, other=0.0).to(tl.float32)
    tl.store(at, Z, mask=mask)


@triton.jit
def _products(
    S, dZ, out, n, width, part, S_r, S_l, dZ_r, dZ_l,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    first, layer, replica = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    S, dZ = S + replica * S_r + layer * S_l, dZ + replica * dZ_r + layer * dZ_l
    to = tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH, WIDTH), tl.float32)
    for start in tl.range(first * part, tl.minimum((first + 1) * part, n), BLOCK):
        row = start + tl.arange(0, BLOCK)
        there = row < n
        across = there[None, :] if EVEN else there[None, :] & (to < width)[:, None]
        down = there[:, None] if EVEN else there[:, None] & (to < width)[None, :]
        s = tl.load(S + row[None, :] * width + to[:, None], mask=across, other=0.0)
        z = tl.load(dZ + row[:, None] * width + to[None, :], mask=down, other=0.0)
        total = tl.dot(s, z, total, input_precision=PRECISION)
    block = (first * tl.num_programs(1) + layer) * tl.num_programs(2) + replica
    at = (block * width + to[:, None]) * width + to[None, :]
    tl.store(out + at, total, mask=(to < width)[:, None] & (to < width)[None, :])
