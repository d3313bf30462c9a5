"""Drawing neighbours on a GPU: of each node, the links with the smallest random numbers.

The numbers are those of numpy's PCG64, a linear congruential generator s → a s + c modulo 2¹²⁸: 2ᵏ
steps of it are such a map, too, so that each link finds its own number by the bits of its place.
"""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

# A link's number and its turn among its node's links are one word of 63 bits: 53 and 10 of them, or
# where there are more than LONG links, 39 and 24.
LONG, MOST = 1 << 10, 1 << 24
CLASSES = (64, 256, LONG)  # nodes of up to this many links are sorted in words side by side
WIDEST = 512  # links that are drawn of a node with more than LONG of them, at most
FILL = 64
FACTOR = 0x2360ED051FC65DA44385DF649FCCF645  # a of PCG64
PLACES = 40  # bits of a number's place in the stream


@dataclass(frozen=True, eq=False)
class CSRLinks:
    """The links of all nodes: of node i, count[i] from start[i] on.

    start, count  (n,) int64
    columns       (links,) int32
    values        (links,)
    """

    start: Tensor
    count: Tensor
    columns: Tensor
    values: Tensor


def can_draw(longest: int, fanout: int) -> bool:
    """Whether `draw` draws this many links of nodes that have up to `longest`."""
    return longest <= LONG or (fanout <= WIDEST and longest <= MOST)


def jumps(generator: np.random.PCG64) -> Tensor:
    """(1 + PLACES, 4) int64: the state, and a and c of 2ᵏ steps for each k, two words a number."""
    state = generator.state["state"]
    factor, step, rows = FACTOR, state["inc"], [(0, state["state"])]
    for _ in range(PLACES):
        rows.append((factor, step))
        factor, step = factor * factor % (1 << 128), (factor + 1) * step % (1 << 128)
    words = [[a >> 64, a % (1 << 64), c >> 64, c % (1 << 64)] for a, c in rows]
    return torch.from_numpy(np.array(words, np.uint64).view(np.int64))


def draw(
    links: CSRLinks, nodes: Tensor, rows: Tensor, before: Tensor, stream: Tensor | None,
    *, fanout: int, longest: int, entries: int, met: Tensor,
) -> Tensor:  # fmt: skip
    """(entries,) int64 the links that are drawn, of node i from rows[i] on; the rest is not set.

    nodes    (b,) int64
    rows     (b + 1,) where the entries of each begin
    before   (b,) where the numbers of its links begin
    stream   `jumps` of the numbers; None: all links are drawn, in their order
    longest  the most links that a node has
    met      (n,) uint8, is set to 1 at the columns of what is drawn
    """
    link = torch.empty(entries, dtype=torch.int64, device=nodes.device)
    own = nodes, links.start, links.count, before, rows
    if stream is None:
        _all[(len(nodes),)](*own, links.columns, link, met, BLOCK=FILL)
        return link
    low = 0
    for high in (*CLASSES, MOST):
        if low < longest:
            block = min(high, LONG)
            _draw[(len(nodes),)](
                *own, stream, links.columns, link, met, low, high, fanout, LONG=high > LONG,
                KEEP=triton.next_power_of_2(min(fanout, WIDEST)), BLOCK=block, PLACES=PLACES,
                num_warps=max(1, block // 128),
            )  # fmt: skip
        low = high
    return link


def fill(
    links: CSRLinks, nodes: Tensor, rows: Tensor, link: Tensor, loops: Tensor, place: Tensor,
    scale: Tensor, columns: Tensor, values: Tensor,
) -> None:  # fmt: skip
    """Write the columns, by `place` (n,), and the values of what is drawn, times `scale` (b,).

    After the links of a node comes its loop (n,), if that is not zero.
    """
    _fill[(len(nodes),)](
        nodes, rows, link, links.columns, links.values, loops, place, scale, columns, values,
        BLOCK=FILL,
    )  # fmt: skip


@triton.jit
def _all(nodes, start, count, before, rows, columns, link, met, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    node = tl.load(nodes + i)
    many, first, at = tl.load(count + node), tl.load(start + node), tl.load(rows + i)
    for begin in tl.range(0, many, BLOCK):
        turn = begin + tl.arange(0, BLOCK)
        here = turn < many
        tl.store(link + at + turn, first + turn, mask=here)
        tl.store(met + tl.load(columns + first + turn, mask=here, other=0), 1, mask=here)


@triton.jit
def _number(stream, place, PLACES: tl.constexpr):
    """53 bits of the numbers at these places of the stream, counted from 0."""
    high = tl.load(stream + 2).to(tl.uint64, bitcast=True) + tl.zeros_like(place).to(tl.uint64)
    low = tl.load(stream + 3).to(tl.uint64, bitcast=True) + tl.zeros_like(place).to(tl.uint64)
    for k in tl.range(0, PLACES):
        words = stream + 4 * (k + 1)
        a_high, a_low = tl.load(words).to(tl.uint64, bitcast=True), tl.load(words + 1)
        c_high, c_low = tl.load(words + 2).to(tl.uint64, bitcast=True), tl.load(words + 3)
        a_low, c_low = a_low.to(tl.uint64, bitcast=True), c_low.to(tl.uint64, bitcast=True)
        jump = ((place + 1) >> k) & 1 != 0
        next_low = low * a_low + c_low
        carry = (next_low < c_low).to(tl.uint64)
        next_high = tl.umulhi(low, a_low) + high * a_low + low * a_high + c_high + carry
        high, low = tl.where(jump, next_high, high), tl.where(jump, next_low, low)
    word, turn = high ^ low, high >> 58
    word = (word >> turn) | (word << ((64 - turn) & 63))
    return (word >> 11).to(tl.int64, bitcast=True)


@triton.jit
def _draw(
    nodes, start, count, before, rows, stream, columns, link, met, low, high, fanout,
    LONG: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr, PLACES: tl.constexpr,
):  # fmt: skip
    i, lane = tl.program_id(0), tl.arange(0, BLOCK)
    node = tl.load(nodes + i)
    many = tl.load(count + node)
    if (many > low) & (many <= high):
        first = tl.load(before + i)
        word = tl.full((BLOCK,), 0x7FFFFFFFFFFFFFFF, tl.int64)
        if LONG:  # the smallest so far, beside the next ones
            for begin in tl.range(0, many, BLOCK - KEEP):
                turn = (begin + lane - KEEP).to(tl.int64)
                fresh = (lane >= KEEP) & (turn < many)
                number = _number(stream, first + turn, PLACES) >> 14
                later = tl.where(fresh, (number << 24) | turn, 0x7FFFFFFFFFFFFFFF)
                word = tl.sort(tl.where(lane < KEEP, word, later))
            turn = word & 0xFFFFFF
        else:
            number = _number(stream, first + lane, PLACES)
            word = tl.sort(tl.where(lane < many, (number << 10) | lane, word))
            turn = word & 0x3FF
        kept = lane < tl.minimum(many, fanout)
        at = tl.load(start + node) + turn
        tl.store(link + tl.load(rows + i) + lane, at, mask=kept)
        tl.store(met + tl.load(columns + at, mask=kept, other=0), 1, mask=kept)


@triton.jit
def _fill(
    nodes, rows, link, columns, values, loops, place, factors, out, weights, BLOCK: tl.constexpr
):
    i = tl.program_id(0)
    first, last = tl.load(rows + i), tl.load(rows + i + 1)
    loop, factor = tl.load(loops + tl.load(nodes + i)), tl.load(factors + i)
    looped = loop != 0
    end = last - looped.to(tl.int64)
    for begin in tl.range(first, end, BLOCK):
        entry = begin + tl.arange(0, BLOCK)
        here = entry < end
        at = tl.load(link + entry, mask=here, other=0)
        column = tl.load(columns + at, mask=here, other=0)
        tl.store(out + entry, tl.load(place + column, mask=here, other=0), mask=here)
        value = tl.load(values + at, mask=here, other=0.0).to(tl.float64) * factor
        tl.store(weights + entry, value.to(weights.dtype.element_ty), mask=here)
    if looped:
        tl.store(out + end, i)
        tl.store(weights + end, loop)
