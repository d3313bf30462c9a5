"""The sparse product on a GPU: weighted sums of neighbours' rows, for all replicas at once."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from gcnii.kernels.layouts import PIECE, UNROLL, Cut, ScheduledMatrix
from gcnii.memory import BUSY

ELEMENTS = 2048  # elements of a program's tile
WIDEST = 128  # columns of it
ROW_PIECE = 8  # entries of a row that are fetched together, where there is no layout


def cut(H: Tensor) -> Cut:
    """For H (r, d, h), a block's rows and the longest row left whole: the fastest measured."""
    replicas, d, width = H.shape
    if replicas * d * triton.cdiv(width, WIDEST) < BUSY:
        return Cut(4, 32, 0)
    return Cut(ELEMENTS // WIDEST, 16 if replicas * d < BUSY else 32, 4)


def gather(
    M: ScheduledMatrix, H: Tensor, H0: Tensor | None = None, alpha: float = 0.0,
    out: Tensor | None = None, where: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """M H [+ α H0] for a sparse M (n, d) and H (r, d, h), whose rows must be contiguous.

    where  if given, entries at which it is not positive are set to zero; it may be `out`
    """
    (schedule, _, weights), (replicas, _, width) = M, H.shape
    out = H.new_empty(replicas, schedule.n, width) if out is None else out
    if len(schedule.offsets) == 1:  # no rows
        return out
    tile, B = min(triton.next_power_of_2(width), WIDEST), sum_pieces(M, H)
    initial, sign = H if H0 is None else H0, H if where is None else where
    _gather[(len(schedule.offsets) - 1, replicas, triton.cdiv(width, tile))](
        schedule.order, schedule.offsets, schedule.index, weights, B, H, initial, sign, out, width,
        stride(weights), B.stride(0), H.stride(0), initial.stride(0), sign.stride(0), out.stride(0),
        alpha, HUBS=schedule.hubs, INITIAL=H0 is not None, MASK=where is not None, TYPE=_type(H),
        BLOCK=schedule.block, COLUMNS=tile, UNROLL=UNROLL, EVEN=width % tile == 0,
    )  # fmt: skip
    return out


def gather_by_row(rows: Tensor, columns: Tensor, values: Tensor, H: Tensor) -> Tensor:
    """M H for a CSR M with values (1 or r, entries) and H (r, d, h), contiguous, without a layout.

    For matrices of one step: a program sums up a row, however long it is.
    """
    (replicas, _, width), n = H.shape, len(rows) - 1
    out = H.new_empty(replicas, n, width)
    tile = min(triton.next_power_of_2(width), WIDEST)
    if n:
        _sum_row[(n, replicas, triton.cdiv(width, tile))](
            rows, columns, values, H, out, width, stride(values), H.stride(0), out.stride(0),
            TYPE=_type(H), PIECE=ROW_PIECE, COLUMNS=tile, num_warps=2,
        )  # fmt: skip
    return out


def dots(rows: Tensor, columns: Tensor, G: Tensor, H: Tensor) -> Tensor:
    """G (r, n, h), H (r, d, h) → (r, entries): G_i · H_j at each entry (i, j)."""
    G, H = G.contiguous(), H.contiguous()
    replicas, _, width = G.shape
    out = G.new_empty(replicas, len(columns))
    tile = min(triton.next_power_of_2(width), WIDEST)
    block = ELEMENTS // tile
    _dots[(triton.cdiv(len(columns), block), replicas)](
        rows, columns, G, H, out, len(columns), width, G.stride(0), H.stride(0),
        TYPE=_type(H), BLOCK=block, COLUMNS=tile,
    )  # fmt: skip
    return out


def sum_pieces(M: ScheduledMatrix, H: Tensor) -> Tensor:
    """The sums of the hubs' pieces (r, pieces, h); H itself where there are no hubs."""
    (schedule, values, _), (replicas, _, width) = M, H.shape
    pieces = len(schedule.ends)
    if not pieces:
        return H
    B = H.new_empty(replicas, pieces, width)
    tile = min(triton.next_power_of_2(width), WIDEST)
    _sum_piece[(pieces, replicas, triton.cdiv(width, tile))](
        schedule.starts, schedule.ends, schedule.columns, values, H, B, width,
        stride(values), H.stride(0), B.stride(0),
        TYPE=_type(H), PIECE=PIECE, COLUMNS=tile, num_warps=2,
    )  # fmt: skip
    return B


def stride(values: Tensor) -> int:
    """The distance from one replica's values to the next one's; 0 where all share them."""
    return values.stride(0) if len(values) > 1 else 0


def _type(H: Tensor) -> tl.dtype:
    return tl.float64 if H.dtype == torch.float64 else tl.float32


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
def _gather(
    order, offsets, index, weights, B, H, H0, D, out, width,
    weights_r, B_r, H_r, H0_r, D_r, out_r, alpha,
    HUBS: tl.constexpr, INITIAL: tl.constexpr, MASK: tl.constexpr, TYPE: tl.constexpr,
    BLOCK: tl.constexpr, COLUMNS: tl.constexpr, UNROLL: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    column = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    row = tl.load(order + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    total = gathered(
        offsets, index, weights + replica * weights_r, B + replica * B_r, H + replica * H_r,
        column, width, HUBS, TYPE, BLOCK, UNROLL, EVEN,
    )  # fmt: skip
    at = row[:, None] * width + column[None, :]
    mask = (row >= 0)[:, None] & (column < width)[None, :]
    if INITIAL:
        total += alpha * tl.load(H0 + replica * H0_r + at, mask=mask, other=0.0).to(TYPE)
    if MASK:
        total = tl.where(tl.load(D + replica * D_r + at, mask=mask, other=0.0) > 0, total, 0.0)
    tl.store(out + replica * out_r + at, total, mask=mask)


@triton.jit
def _sum_row(
    rows, columns, values, H, out, width, values_r, H_r, out_r,
    TYPE: tl.constexpr, PIECE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row, replica = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    column = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    first, last = tl.load(rows + row), tl.load(rows + row + 1)
    total = tl.zeros((COLUMNS,), TYPE)
    for begin in tl.range(first, last, PIECE, num_stages=1):
        entry = begin + tl.arange(0, PIECE)
        here = entry < last
        at = tl.load(columns + entry, mask=here, other=0).to(tl.int64)
        value = tl.load(values + replica * values_r + entry, mask=here, other=0.0).to(TYPE)
        mask = here[:, None] & (column < width)[None, :]
        piece = tl.load(
            H + replica * H_r + at[:, None] * width + column[None, :], mask=mask, other=0.0
        ).to(TYPE)
        total += tl.sum(value[:, None] * piece, 0)
    tl.store(out + replica * out_r + row * width + column, total, mask=column < width)


@triton.jit
def _sum_piece(
    starts, ends, columns, values, H, B, width, values_r, H_r, B_r,
    TYPE: tl.constexpr, PIECE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    piece, replica = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    entry = tl.load(starts + piece) + tl.arange(0, PIECE)
    here = entry < tl.load(ends + piece)
    at = tl.load(columns + entry, mask=here, other=0)
    value = tl.load(values + replica * values_r + entry, mask=here, other=0.0).to(TYPE)
    mask = here[:, None] & (column < width)[None, :]
    rows = tl.load(
        H + replica * H_r + at[:, None] * width + column[None, :], mask=mask, other=0.0
    ).to(TYPE)
    total = tl.sum(value[:, None] * rows, 0)
    tl.store(B + replica * B_r + piece * width + column, total, mask=column < width)


@triton.jit
def _dots(
    rows, columns, G, H, out, entries, width, G_r, H_r,
    TYPE: tl.constexpr, BLOCK: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    replica = tl.program_id(1).to(tl.int64)
    entry = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(rows + entry, mask=entry < entries, other=0)
    other = tl.load(columns + entry, mask=entry < entries, other=0)
    total = tl.zeros((BLOCK,), TYPE)
    for first in tl.range(0, width, COLUMNS):
        column = first + tl.arange(0, COLUMNS)
        mask = (entry < entries)[:, None] & (column < width)[None, :]
        g = tl.load(
            G + replica * G_r + row[:, None] * width + column[None, :], mask=mask, other=0.0
        ).to(TYPE)
        h = tl.load(
            H + replica * H_r + other[:, None] * width + column[None, :], mask=mask, other=0.0
        ).to(TYPE)
        total += tl.sum(g * h, 1)
    tl.store(out + replica * entries + entry, total, mask=entry < entries)
