"""Drawing neighbours on a GPU: of each node, the links with the smallest random numbers.

The numbers are those of numpy's PCG64, a linear congruential generator s → a s + c modulo 2¹²⁸: 2ᵏ
steps of it are such a map, too, so that each link finds its own number by the bits of its place:

    s_n = s_0 + S_n ((a - 1) s_0 + c)      S_n = 1 + a + … + a^(n-1)      S_(m+n) = a^m S_n + S_m
"""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

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
SCAN = 1024
FACTOR = 0x2360ED051FC65DA44385DF649FCCF645  # a of PCG64
SIGN, MASK = 1 << 63, (1 << 64) - 1
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


@cache  # a copy to a GPU waits for it
@torch.inference_mode(False)
def _powers(device: torch.device) -> Tensor:
    """(PLACES, 4) int64: a^n and S_n for each n = 2ᵏ, two words a number."""
    power, steps, rows = FACTOR, 1, []
    for _ in range(PLACES):
        rows.append([*_words(power), *_words(steps)])
        power, steps = power * power % (1 << 128), (power + 1) * steps % (1 << 128)
    return torch.tensor(rows, device=device)


def _words(number: int) -> tuple[int, int]:
    """The two halves of 128 bits, each as a signed number of 64."""
    high, low = number >> 64 & MASK, number & MASK
    return (high ^ SIGN) - SIGN, (low ^ SIGN) - SIGN


def ends(links: CSRLinks, loops: Tensor, nodes: Tensor, fanout: int) -> Tensor:
    """(b + 1, 2) int64: how many links these nodes have up to each, and how many entries.

    A node's entries are the links that are drawn, up to `fanout` (0: all), and its loop (n,), if
    that is not zero.
    """
    found = torch.empty(len(nodes) + 1, 2, dtype=torch.int64, device=nodes.device)
    _ends[(1,)](
        nodes, links.count, loops, found, len(nodes), fanout or MOST, BLOCK=SCAN, num_warps=8
    )
    return found


def draw(
    links: CSRLinks, nodes: Tensor, ends: Tensor, generator: np.random.PCG64,
    *, fanout: int, longest: int, entries: int, met: Tensor,
) -> Tensor:  # fmt: skip
    """(entries,) int64 the links that are drawn, of node i from ends[i, 1] on; the rest is not set.

    nodes      (b,) int64
    ends       of these nodes
    generator  whose next numbers decide; it is not advanced
    fanout     0: all links are drawn, in their order
    longest    the most links that a node has
    met        (n,) uint8, is set to 1 at the columns of what is drawn
    """
    link = torch.empty(entries, dtype=torch.int64, device=nodes.device)
    own = nodes, links.start, links.count, ends
    if not fanout:
        _all[(len(nodes),)](*own, links.columns, link, met, BLOCK=FILL)
        return link
    now = generator.state["state"]
    stream = (*_words(now["state"]), *_words((FACTOR - 1) * now["state"] + now["inc"]))
    powers, low = _powers(nodes.device), 0
    for high in (*CLASSES, MOST):
        if low < longest:
            block = min(high, LONG)
            _draw[(len(nodes),)](
                *own, powers, *stream, links.columns, link, met, low, high, fanout,
                LONG=high > LONG, KEEP=triton.next_power_of_2(min(fanout, WIDEST)), BLOCK=block,
                PLACES=PLACES, num_warps=max(1, block // 128),
            )  # fmt: skip
        low = high
    return link


def reach(nodes: Tensor, met: Tensor) -> tuple[Tensor, Tensor]:
    """The nodes, followed by the others that were met; and the position of each of them (n,)."""
    strange = met.index_fill_(0, nodes, 0).nonzero()  # waits for the device
    count = len(nodes) + len(strange)
    reached, place = nodes.new_empty(count), nodes.new_empty(len(met), dtype=torch.int32)
    _reach[(triton.cdiv(count, SCAN),)](
        nodes, strange, reached, place, len(nodes), count, BLOCK=SCAN
    )
    return reached, place


def fill(
    links: CSRLinks, nodes: Tensor, ends: Tensor, link: Tensor, loops: Tensor, place: Tensor,
    rows: Tensor, row_of: Tensor, columns: Tensor, values: Tensor, *, fanout: int, root: bool,
) -> None:  # fmt: skip
    """Write what is drawn as a CSR matrix: rows, the row of each entry, columns by `place`, values.

    After the links of a node comes its loop (n,), if that is not zero.  The values of links are
    scaled up by links / drawn, or by the root of that.
    """
    _fill[(len(nodes),)](
        nodes, ends, link, links.columns, links.values, loops, place, rows, row_of, columns, values,
        fanout or MOST, ROOT=root, BLOCK=FILL,
    )  # fmt: skip


@triton.jit
def _ends(nodes, count, loops, ends, b, fanout, BLOCK: tl.constexpr):
    """One program: b is some thousand, and a scan over several would be two launches."""
    links, entries = tl.zeros((), tl.int64), tl.zeros((), tl.int64)
    tl.store(ends + tl.arange(0, 2), tl.zeros((2,), tl.int64))
    for begin in tl.range(0, b, BLOCK):
        i = begin + tl.arange(0, BLOCK)
        node = tl.load(nodes + i, mask=i < b, other=0)
        many = tl.load(count + node, mask=i < b, other=0)
        looped = tl.load(loops + node, mask=i < b, other=0.0) != 0
        own = tl.minimum(many, fanout) + looped.to(tl.int64)
        at = ends + 2 * (i + 1)
        tl.store(at, links + tl.cumsum(many, 0), mask=i < b)
        tl.store(at + 1, entries + tl.cumsum(own, 0), mask=i < b)
        links += tl.sum(many, 0)
        entries += tl.sum(own, 0)


@triton.jit
def _reach(nodes, strange, reached, place, b, total, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    own = tl.load(nodes + i, mask=i < b)
    other = tl.load(strange + (i - b), mask=(i >= b) & (i < total))
    node = tl.where(i < b, own, other)
    tl.store(reached + i, node, mask=i < total)
    tl.store(place + node, i, mask=i < total)


@triton.jit
def _all(nodes, start, count, ends, columns, link, met, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    node = tl.load(nodes + i)
    many, first, at = tl.load(count + node), tl.load(start + node), tl.load(ends + 2 * i + 1)
    for begin in tl.range(0, many, BLOCK):
        turn = begin + tl.arange(0, BLOCK)
        here = turn < many
        tl.store(link + at + turn, first + turn, mask=here)
        tl.store(met + tl.load(columns + first + turn, mask=here, other=0), 1, mask=here)


@triton.jit
def _scaled(high, low, a_high, a_low, c_high, c_low):
    """a s + c modulo 2¹²⁸: two words a number, as those of s."""
    next_low = low * a_low + c_low
    carry = (next_low < c_low).to(tl.uint64)
    return tl.umulhi(low, a_low) + high * a_low + low * a_high + c_high + carry, next_low


@triton.jit
def _number(powers, s_high, s_low, t_high, t_low, place, PLACES: tl.constexpr):
    """53 bits of the numbers at these places of the stream, counted from 0."""
    zero = tl.zeros_like(place).to(tl.uint64)
    high, low = zero, zero
    for k in tl.range(0, PLACES):
        a_high, a_low = tl.load(powers + 4 * k), tl.load(powers + 4 * k + 1)
        c_high, c_low = tl.load(powers + 4 * k + 2), tl.load(powers + 4 * k + 3)
        next_high, next_low = _scaled(
            high, low, a_high.to(tl.uint64, bitcast=True), a_low.to(tl.uint64, bitcast=True),
            c_high.to(tl.uint64, bitcast=True), c_low.to(tl.uint64, bitcast=True),
        )  # fmt: skip
        jump = ((place + 1) >> k) & 1 != 0
        high, low = tl.where(jump, next_high, high), tl.where(jump, next_low, low)
    high, low = _scaled(
        high, low, zero + t_high.to(tl.uint64), zero + t_low.to(tl.uint64),
        zero + s_high.to(tl.uint64), zero + s_low.to(tl.uint64),
    )  # fmt: skip
    word, turn = high ^ low, high >> 58
    word = (word >> turn) | (word << ((64 - turn) & 63))
    return (word >> 11).to(tl.int64, bitcast=True)


@triton.jit(do_not_specialize=["s_high", "s_low", "t_high", "t_low"])  # they are random
def _draw(
    nodes, start, count, ends, powers, s_high, s_low, t_high, t_low,
    columns, link, met, low, high, fanout,
    LONG: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr, PLACES: tl.constexpr,
):  # fmt: skip
    i, lane = tl.program_id(0), tl.arange(0, BLOCK)
    node = tl.load(nodes + i)
    many = tl.load(count + node)
    if (many > low) & (many <= high):
        first = tl.load(ends + 2 * i)
        word = tl.full((BLOCK,), 0x7FFFFFFFFFFFFFFF, tl.int64)
        if LONG:  # the smallest so far, beside the next ones
            for begin in tl.range(0, many, BLOCK - KEEP):
                turn = (begin + lane - KEEP).to(tl.int64)
                fresh = (lane >= KEEP) & (turn < many)
                number = _number(powers, s_high, s_low, t_high, t_low, first + turn, PLACES) >> 14
                later = tl.where(fresh, (number << 24) | turn, 0x7FFFFFFFFFFFFFFF)
                word = tl.sort(tl.where(lane < KEEP, word, later))
            turn = word & 0xFFFFFF
        else:
            number = _number(powers, s_high, s_low, t_high, t_low, first + lane, PLACES)
            word = tl.sort(tl.where(lane < many, (number << 10) | lane, word))
            turn = word & 0x3FF
        kept = lane < tl.minimum(many, fanout)
        at = tl.load(start + node) + turn
        tl.store(link + tl.load(ends + 2 * i + 1) + lane, at, mask=kept)
        tl.store(met + tl.load(columns + at, mask=kept, other=0), 1, mask=kept)


@triton.jit
def _fill(
    nodes, ends, link, columns, values, loops, place, rows, row_of, out, weights, fanout,
    ROOT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0)
    many = tl.load(ends + 2 * i + 2) - tl.load(ends + 2 * i)
    first, last = tl.load(ends + 2 * i + 1), tl.load(ends + 2 * i + 3)
    tl.store(rows + i, first.to(tl.int32))
    tl.store(rows + i + 1, last.to(tl.int32))  # by its neighbour too, which stores the same
    factor = many.to(tl.float64) / tl.maximum(tl.minimum(many, fanout), 1).to(tl.float64)
    if ROOT:
        factor = tl.sqrt(factor)
    loop = tl.load(loops + tl.load(nodes + i))
    looped = loop != 0
    end = last - looped.to(tl.int64)
    for begin in tl.range(first, last, BLOCK):
        entry = begin + tl.arange(0, BLOCK)
        here = entry < end
        at = tl.load(link + entry, mask=here, other=0)
        column = tl.load(columns + at, mask=here, other=0)
        reached = tl.load(place + column, mask=here, other=0)
        value = tl.load(values + at, mask=here, other=0.0).to(tl.float64) * factor
        weight = tl.where(here, value.to(weights.dtype.element_ty), loop)
        tl.store(row_of + entry, (i + tl.zeros_like(entry)).to(tl.int64), mask=entry < last)
        tl.store(out + entry, tl.where(here, reached, i), mask=entry < last)
        tl.store(weights + entry, weight, mask=entry < last)
