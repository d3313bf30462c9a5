"""GAT's attention over the rows of a matrix of one step: two launches, and two for its gradients.

    x_ij = a1·Z_i + a2·Z_j      α_ij = softmax_j(LeakyReLU(x_ij))      O_i = Σ_j m_ij α_ij Z_j

of each head by itself, where m is dropout.  Only L_i, the logarithm of the softmax's sum, is kept
for the gradients:

    dx_ij = α_ij (m_ij G_i·Z_j - G_i·O_i) LeakyReLU'(x_ij)
"""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from gcnii.kernels.gather import stride
from gcnii.kernels.mask import kept_entries

WIDEST = 128  # columns of a tile
PIECE = 16  # entries of it
ROWS = 64  # of a program that scores nodes


class Entries(NamedTuple):
    """A CSR matrix (n, d), of which an entry that is zero does not count."""

    rows: Tensor
    columns: Tensor
    values: Tensor


class Dropped(NamedTuple):
    """Keys (r, 2) of dropout and how much is kept, (1,) or (r,) of 65536; None: nothing drops."""

    keys: Tensor | None
    kept: Tensor | None


class Scores(NamedTuple):
    """a1·Z (r, n, h) of the rows, a2·Z (r, d, h) of the columns, and L (r, n, h)."""

    own: Tensor
    theirs: Tensor
    L: Tensor


def attend(
    M: Entries, Z: Tensor, a1: Tensor, a2: Tensor, slope: float, dropped: Dropped
) -> tuple[Tensor, Scores]:
    """O (r, n, h, w) for Z (r, d, h, w), contiguous, and a1, a2 (r, h, w), and what it is made of.

    slope  of LeakyReLU below zero
    """
    (r, d, h, w), n = Z.shape, len(M.rows) - 1
    sums = torch.float64 if Z.dtype == torch.float64 else torch.float32
    out, own = Z.new_empty(r, n, h, w), Z.new_empty(r, n, h, dtype=sums)
    theirs, L = Z.new_empty(r, d, h, dtype=sums), torch.empty_like(own)
    if d:
        _score[(triton.cdiv(d, ROWS), r, h)](
            Z, a1, a2, own, theirs, n, d, h, w, ROWS=ROWS, **_tile(Z)
        )
    if n:
        _attend[(n, r, h)](
            *M, Z, own, theirs, L, out, *_given(dropped, Z), n, d, h, w,
            SLOPE=slope, **_how(dropped), **_tile(Z),
        )  # fmt: skip
    return out, Scores(own, theirs, L)


def gradients(
    M: Entries, other: Entries, order: Tensor, G: Tensor, out: Tensor,
    Z: Tensor, a1: Tensor, a2: Tensor, slope: float, dropped: Dropped, scores: Scores,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """dZ, and Σ_j dx_ij (r, n, h) and Σ_i dx_ij (r, d, h), from which follow those of a1 and a2.

    other  the transpose, whose values are not read
    order  (entries,) which entry of M each of the transpose is
    G      (r, n, h, w), contiguous
    """
    (r, d, h, w), n = Z.shape, len(M.rows) - 1
    dx, dZ = scores.own.new_empty(r, len(M.columns), h), torch.empty_like(Z)
    down, dtheirs = torch.empty_like(scores.own), torch.empty_like(scores.theirs)
    about, how = (*_given(dropped, Z), n, d, h, w), {**_how(dropped), **_tile(Z), "SLOPE": slope}
    if n:
        _by_row[(n, r, h)](*M, Z, *scores, out, G, dx, down, len(M.columns), *about, **how)
    if d:
        _by_column[(d, r, h)](
            other.rows, other.columns, order, M.values, *scores, G, a1, a2, dx, down, dtheirs, dZ,
            len(M.columns), *about, **how,
        )  # fmt: skip
    return dZ, down, dtheirs


def _given(dropped: Dropped, like: Tensor) -> tuple[Tensor, Tensor, int]:
    """What kernels take; any tensor stands for what is not read."""
    if dropped.keys is None or dropped.kept is None:
        return like, like, 0
    return dropped.keys, dropped.kept, stride(dropped.kept)


def _how(dropped: Dropped) -> dict[str, object]:
    return {"DROP": dropped.keys is not None, "PIECE": PIECE}


def _tile(Z: Tensor) -> dict[str, object]:
    columns = min(triton.next_power_of_2(Z.shape[3]), WIDEST)
    sums = tl.float64 if Z.dtype == torch.float64 else tl.float32
    return {"TYPE": sums, "COLUMNS": columns, "num_warps": 1 if columns <= 32 else 2}


@triton.jit
def _score(
    Z, a1, a2, own, theirs, n, d, heads, width,
    TYPE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    replica, head = tl.program_id(1).to(tl.int64), tl.program_id(2)
    node = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    first, second = tl.zeros((ROWS,), TYPE), tl.zeros((ROWS,), TYPE)
    for begin in tl.range(0, width, COLUMNS):
        column = begin + tl.arange(0, COLUMNS)
        at = (replica * heads + head) * width + column
        one = tl.load(a1 + at, mask=column < width, other=0.0).to(TYPE)
        other = tl.load(a2 + at, mask=column < width, other=0.0).to(TYPE)
        mask = (node < d)[:, None] & (column < width)[None, :]
        places = ((replica * d + node) * heads + head)[:, None] * width + column[None, :]
        z = tl.load(Z + places, mask=mask, other=0.0).to(TYPE)
        first += tl.sum(z * one[None, :], 1)
        second += tl.sum(z * other[None, :], 1)
    tl.store(own + (replica * n + node) * heads + head, first, mask=node < n)
    tl.store(theirs + (replica * d + node) * heads + head, second, mask=node < d)


@triton.jit
def _drop(weight, entry, key, kept, heads, head, DROP: tl.constexpr):
    """These weights of these entries after dropout of a matrix (entries, heads)."""
    if DROP:
        share = tl.load(kept)
        scale = tl.div_rn(65536.0, share.to(tl.float32))
        weight = tl.where(kept_entries(entry * heads + head, key, share), weight * scale, 0.0)
    return weight


@triton.jit
def _leaky(x, SLOPE: tl.constexpr):
    return tl.where(x > 0, x, x * SLOPE)


@triton.jit
def _attend(
    rows, columns, values, Z, own, theirs, L, out, keys, kept, kept_r, n, d, heads, width,
    SLOPE: tl.constexpr, DROP: tl.constexpr, PIECE: tl.constexpr, TYPE: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    i, replica = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    head, low = tl.program_id(2), float("-inf")
    key, share, node = keys + 2 * replica, kept + kept_r * replica, (replica * n + i) * heads + head
    first, last, mine = tl.load(rows + i), tl.load(rows + i + 1), tl.load(own + node)
    theirs += replica * d * heads + head
    top = tl.full((PIECE,), low, TYPE)
    for begin in tl.range(first, last, PIECE):
        entry = (begin + tl.arange(0, PIECE)).to(tl.int64)
        there = tl.load(values + entry, mask=entry < last, other=0.0) != 0
        j = tl.load(columns + entry, mask=there, other=0).to(tl.int64)
        x = mine + tl.load(theirs + j * heads, mask=there, other=0.0)
        top = tl.maximum(top, tl.where(there, _leaky(x, SLOPE), low))
    highest = tl.max(top, 0)
    highest = tl.where(highest == low, 0.0, highest)  # a row with nothing in it
    sums = tl.zeros((PIECE,), TYPE)
    for start in tl.range(0, width, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        total, sums = tl.zeros((COLUMNS,), TYPE), tl.zeros((PIECE,), TYPE)
        for begin in tl.range(first, last, PIECE):
            entry = (begin + tl.arange(0, PIECE)).to(tl.int64)
            there = tl.load(values + entry, mask=entry < last, other=0.0) != 0
            j = tl.load(columns + entry, mask=there, other=0).to(tl.int64)
            x = mine + tl.load(theirs + j * heads, mask=there, other=0.0)
            weight = tl.where(there, tl.exp(_leaky(x, SLOPE) - highest), 0.0)
            sums += weight
            weight = _drop(weight, entry, key, share, heads, head, DROP)
            places = ((replica * d + j) * heads + head)[:, None] * width + column[None, :]
            mask = there[:, None] & (column < width)[None, :]
            total += tl.sum(weight[:, None] * tl.load(Z + places, mask=mask, other=0.0).to(TYPE), 0)
        whole = tl.sum(sums, 0)
        total /= tl.where(whole > 0, whole, 1.0)
        tl.store(out + node * width + column, total, mask=column < width)
    whole = tl.sum(sums, 0)
    tl.store(L + node, highest + tl.log(tl.where(whole > 0, whole, 1.0)))


@triton.jit
def _by_row(
    rows, columns, values, Z, own, theirs, L, out, G, dx, down, entries,
    keys, kept, kept_r, n, d, heads, width,
    SLOPE: tl.constexpr, DROP: tl.constexpr, PIECE: tl.constexpr, TYPE: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    i, replica, head = (
        tl.program_id(0).to(tl.int64),
        tl.program_id(1).to(tl.int64),
        tl.program_id(2),
    )
    key, share, node = keys + 2 * replica, kept + kept_r * replica, (replica * n + i) * heads + head
    first, last, mine = tl.load(rows + i), tl.load(rows + i + 1), tl.load(own + node)
    theirs += replica * d * heads + head
    dx += replica * entries * heads + head
    whole, all_columns = tl.load(L + node), tl.zeros((COLUMNS,), TYPE)
    for start in tl.range(0, width, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        g = tl.load(G + node * width + column, mask=column < width, other=0.0).to(TYPE)
        o = tl.load(out + node * width + column, mask=column < width, other=0.0).to(TYPE)
        all_columns += g * o
    shared, total = tl.sum(all_columns, 0), tl.zeros((PIECE,), TYPE)
    for begin in tl.range(first, last, PIECE):
        entry = (begin + tl.arange(0, PIECE)).to(tl.int64)
        there = tl.load(values + entry, mask=entry < last, other=0.0) != 0
        j = tl.load(columns + entry, mask=there, other=0).to(tl.int64)
        dot = tl.zeros((PIECE,), TYPE)
        for start in tl.range(0, width, COLUMNS):
            column = start + tl.arange(0, COLUMNS)
            g = tl.load(G + node * width + column, mask=column < width, other=0.0).to(TYPE)
            places = ((replica * d + j) * heads + head)[:, None] * width + column[None, :]
            mask = there[:, None] & (column < width)[None, :]
            z = tl.load(Z + places, mask=mask, other=0.0).to(TYPE)
            dot += tl.sum(g[None, :] * z, 1)
        x = mine + tl.load(theirs + j * heads, mask=there, other=0.0)
        dot = _drop(dot, entry, key, share, heads, head, DROP) - shared
        slant = tl.where(there, tl.exp(_leaky(x, SLOPE) - whole) * dot, 0.0)
        slant = tl.where(x > 0, slant, slant * SLOPE)
        tl.store(dx + entry * heads, slant, mask=entry < last)
        total += slant
    tl.store(down + node, tl.sum(total, 0))


@triton.jit
def _by_column(
    rows, others, order, values, own, theirs, L, G, a1, a2, dx, down, dtheirs, dZ, entries,
    keys, kept, kept_r, n, d, heads, width,
    SLOPE: tl.constexpr, DROP: tl.constexpr, PIECE: tl.constexpr, TYPE: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    j, replica, head = (
        tl.program_id(0).to(tl.int64),
        tl.program_id(1).to(tl.int64),
        tl.program_id(2),
    )
    key, share, node = keys + 2 * replica, kept + kept_r * replica, (replica * d + j) * heads + head
    first, last, mine = tl.load(rows + j), tl.load(rows + j + 1), tl.load(theirs + node)
    dx += replica * entries * heads + head
    total = tl.zeros((PIECE,), TYPE)
    for begin in tl.range(first, last, PIECE):
        place = begin + tl.arange(0, PIECE)
        entry = tl.load(order + place, mask=place < last, other=0)
        total += tl.load(dx + entry * heads, mask=place < last, other=0.0)
    slant, here = tl.sum(total, 0), (replica * n + j) * heads + head
    own_slant = tl.load(down + here, mask=j < n, other=0.0)
    tl.store(dtheirs + node, slant)
    for start in tl.range(0, width, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        at = (replica * heads + head) * width + column
        one = tl.load(a1 + at, mask=column < width, other=0.0).to(TYPE)
        other = tl.load(a2 + at, mask=column < width, other=0.0).to(TYPE)
        gradient = own_slant * one + slant * other
        for begin in tl.range(first, last, PIECE):
            place = begin + tl.arange(0, PIECE)
            entry = tl.load(order + place, mask=place < last, other=0)
            there = (place < last) & (tl.load(values + entry, mask=place < last, other=0.0) != 0)
            i = tl.load(others + place, mask=there, other=0).to(tl.int64)
            at_row = (replica * n + i) * heads + head
            x = mine + tl.load(own + at_row, mask=there, other=0.0)
            whole = tl.load(L + at_row, mask=there, other=0.0)
            weight = tl.where(there, tl.exp(_leaky(x, SLOPE) - whole), 0.0)
            weight = _drop(weight, entry, key, share, heads, head, DROP)
            mask = there[:, None] & (column < width)[None, :]
            g = tl.load(G + at_row[:, None] * width + column[None, :], mask=mask, other=0.0)
            gradient += tl.sum(weight[:, None] * g.to(TYPE), 0)
        tl.store(dZ + node * width + column, gradient, mask=column < width)
