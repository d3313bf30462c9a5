"""The kernels' layouts of a sparse matrix, made once per pattern and kept as long as it lives.

A captured CUDA graph reads a layout whenever it is replayed, and making one waits for the GPU.

    Schedule  for products: rows in blocks, long rows in pieces
    Slots     for the fused layers: one slot per row, several for a hub

A program goes through the slots of its block side by side, so none should be much longer than the
others: rows are sorted by falling length, and the entries of a hub are spread over several slots,
whose sums are added up at the end.
"""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, misc"

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

import torch
import triton
import triton.language as tl
from torch import Tensor

from gcnii.kernels import offsets, row_and_step

PIECE = 32  # entries per piece
UNROLL = 2  # entries of a row that are fetched together
PADDING, ONE = -1, -2  # in the place of an entry's position: its value is 0, or 1
PLACED = 1024  # values that a program puts in their places


def _placed(values: Tensor, place: Tensor) -> Tensor:
    """values (r, entries) in the order of `place` (places,), with its zeros and ones."""
    values, out = values.contiguous(), values.new_empty(len(values), len(place))
    if out.numel():
        _place[(triton.cdiv(len(place), PLACED), len(values))](
            values, place, out, len(place), values.stride(0), BLOCK=PLACED
        )
    return out


@triton.jit
def _place(values, place, out, places, values_r, BLOCK: tl.constexpr):
    replica = tl.program_id(1).to(tl.int64)
    to = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(place + to, mask=to < places, other=-1)
    value = tl.load(values + replica * values_r + at, mask=at >= 0, other=0.0)
    tl.store(out + replica * places + to, tl.where(at == -2, 1.0, value), mask=to < places)


class Cut(NamedTuple):
    """How a matrix is laid out.

    block    rows of a block, or slots
    longest  entries of the longest row that is left whole; longer ones are hubs
    times    the mean number of entries, if that is more
    """

    block: int
    longest: int
    times: int

    def longest_of(self, entries: int, rows: int) -> int:
        """The entries of the longest row of a matrix that is not a hub."""
        return max(self.longest, self.times * entries // max(rows, 1))


class ScheduledMatrix(NamedTuple):
    """A schedule with the matrix's values in CSR order, and again in the order of `index`."""

    schedule: Schedule
    values: Tensor
    weights: Tensor


@dataclass(frozen=True, eq=False)
class Schedule:
    """A CSR pattern in blocks of rows; entry e of all rows of a block is stored together.

    block    number of rows in a block
    hubs     number of blocks that hold the hubs; they come first, and their entries are pieces of
             weight 1
    order    (blocks · block,) int32 the rows, -1 where a block has fewer
    offsets  (blocks + 1,) int32: block b's entries are offsets[b] … offsets[b + 1] of the next two
    index    (entries · block,) int32 the column, or of a hub the piece; -1 where a row has ended
    place    (entries · block,) int32 the position of the entry's value in CSR order; -1: a 0, for
             padding; -2: a 1, for pieces
    columns  (CSR's entries,) int32, for the pieces
    starts, ends  (pieces,) int32 the range of CSR entries of each piece
    """

    block: int
    hubs: int
    order: Tensor
    offsets: Tensor
    index: Tensor
    place: Tensor
    columns: Tensor
    starts: Tensor
    ends: Tensor
    n: int

    def with_values(self, values: Tensor) -> ScheduledMatrix:
        """Add the values in CSR order: (1, entries), or (r, entries) where replicas differ."""
        return ScheduledMatrix(self, values, _placed(values, self.place))

    @classmethod
    def of(cls, rows: Tensor, columns: Tensor, cut: Cut, among: Tensor | None = None) -> Schedule:
        """Sort rows by falling length: a block's rows are alike, and the longest start first.

        cut    which rows are hubs

        among  the rows to compute, sorted; by default all
        """
        length, block = rows.diff().long(), cut.block
        longest = cut.longest_of(len(columns), len(length))
        chosen = length if among is None else length[among]
        order = torch.argsort(chosen, descending=True, stable=True)
        order = order if among is None else among[order]
        many = int((chosen > longest).sum())
        hubs, others = order[:many], order[many:]
        pieces = (length[hubs] + PIECE - 1) // PIECE
        starts, ends = _pieces(rows, hubs, pieces)
        front = _blocks(hubs, pieces, pieces.cumsum(0) - pieces, None, block)
        back = _blocks(others, length[others], rows[:-1][others].long(), columns, block)
        order, counts, index, place = (torch.cat(both) for both in zip(front, back, strict=True))
        where = order.int(), offsets(counts).int(), index.int(), place.int()
        return cls(block, len(front[1]), *where, columns, starts, ends, len(length))


def _pieces(rows: Tensor, hubs: Tensor, pieces: Tensor) -> tuple[Tensor, Tensor]:
    """The first CSR entry of each piece of each hub, and the one after its last."""
    hub, step = row_and_step(pieces)
    starts = rows[hubs][hub] + PIECE * step
    ends = torch.minimum(starts + PIECE, rows[1:][hubs][hub])
    return starts.int(), ends.int()


def _blocks(
    order: Tensor, length: Tensor, first: Tensor, columns: Tensor | None, block: int
) -> tuple[Tensor, ...]:
    """The rows padded to whole blocks, each block's entries, and a Schedule's index and place.

    The entries of a row are first … first + length of the CSR, or without columns, these pieces.
    """
    filled, counts = _padded(order, length, block)
    row, step = row_and_step(length)
    slot = ((counts.cumsum(0) - counts)[row // block] + step) * block + row % block
    size = int(counts.sum()) * block
    index, place = torch.full((2, size), PADDING, dtype=torch.int32, device=row.device)
    entry = (first[row] + step).int()
    index[slot] = entry if columns is None else columns[entry]
    place[slot] = ONE if columns is None else entry
    return filled, counts, index, place


def _padded(order: Tensor, length: Tensor, block: int) -> tuple[Tensor, Tensor]:
    """The rows with -1 up to whole blocks, and the number of entries of each block's longest."""
    blocks = -(-len(order) // block)
    filled = order.new_full((blocks * block,), -1)
    filled[: len(order)] = order
    longest = order.new_zeros(blocks * block)
    longest[: len(order)] = length
    if not blocks:
        return filled, longest
    return filled, (longest.view(blocks, block).amax(1) + UNROLL - 1) // UNROLL * UNROLL


AHEAD = 2  # entries of a slot that are fetched together
# A row that takes all slots of a block may put up to TOO_LONG · `longest` entries into each.
TOO_LONG = 4


class SlottedMatrix(NamedTuple):
    """Slots with the values of their entries (r or 1, entries), in the order of `index`."""

    slots: Slots
    weights: Tensor


@dataclass(frozen=True, eq=False)
class Slots:
    """A CSR pattern in blocks of `block` slots; entry e of all slots of a block is stored together.

    hubs     number of blocks in which a row may have several slots; they come first
    order    (blocks · block,) int32 the rows of each block, then -1 up to the number of slots
    owner    (hubs · block,) int32 for each slot, the position of its row in the block, or -1
    offsets  (blocks + 1,) int32: block b's entries are offsets[b] … offsets[b + 1] of the next two
    index    (entries · block,) int32 columns, -1 where a slot has ended; and AHEAD more, to be read
             ahead
    place    (entries · block,) int32 the position of the entry's value in CSR order; -1: a 0
    """

    block: int
    hubs: int
    order: Tensor
    owner: Tensor
    offsets: Tensor
    index: Tensor
    place: Tensor

    @property
    def blocks(self) -> int:
        return len(self.offsets) - 1

    def with_values(self, values: Tensor) -> SlottedMatrix:
        """Add the values in CSR order: (1, entries), or (r, entries) where replicas differ."""
        return SlottedMatrix(self, _placed(values, self.place))

    @classmethod
    def of(
        cls, rows: Tensor, columns: Tensor, cut: Cut, among: Tensor | None = None
    ) -> Slots | None:
        """The layout of a CSR pattern; None where a row does not fit into the slots of a block.

        cut    which rows are hubs

        among  the rows to lay out, sorted; by default all
        """
        entries, length, block = len(columns), rows.diff().long(), cut.block
        longest = cut.longest_of(entries, len(length))
        if len(length) and int(length.max()) > TOO_LONG * longest * block:
            return None
        length = length if among is None else length[among]
        length, order = length.sort(descending=True, stable=True)
        order = order if among is None else among[order]
        hubs, taken, first = _slots_of_rows(length, longest, block)
        filled, owner = _rows_of_slots(order, taken, first, hubs, block)
        share = (length + taken - 1) // taken  # entries of a slot
        starts = offsets(_longest(share, first // block, len(filled) // block))
        where, entry = _entries(length, share, first, starts, rows[:-1][order].long(), block)
        size = int(starts[-1]) * block
        index, place = (first.new_full((count,), PADDING) for count in (size + AHEAD * block, size))
        index[where], place[where] = columns[entry].long(), entry
        return cls(block, hubs, *(one.int() for one in (filled, owner, starts, index, place)))


def _slots_of_rows(length: Tensor, longest: int, block: int) -> tuple[int, Tensor, Tensor]:
    """The number of hubs' blocks; for each row, the number of its slots, and the first of them."""
    # A power of two for each hub: sorted by falling number, none crosses the border of a block.
    pieces = (length - 1).clamp(min=0) // longest + 1
    taken = (1 << pieces.double().log2().ceil().long()).clamp(max=block)
    many = taken > 1
    hubs = -(-int(taken[many].sum()) // block)
    first = taken.cumsum(0) - taken
    first += ~many * (hubs * block - taken[many].sum())
    return hubs, taken, first


def _rows_of_slots(
    order: Tensor, taken: Tensor, first: Tensor, hubs: int, block: int
) -> tuple[Tensor, Tensor]:
    """The rows of each block, and for each slot of a hubs' block, the position of its row."""
    at = first // block
    blocks = int(at[-1]) + 1 if len(at) else 0
    rank = torch.arange(len(at), device=at.device) - torch.searchsorted(at, at)
    filled, owner = (at.new_full((count * block,), -1) for count in (blocks, hubs))
    filled[at * block + rank] = order
    row, turn = row_and_step(taken[taken > 1])
    owner[first[row] + turn] = rank[row]
    return filled, owner


def _longest(share: Tensor, at: Tensor, blocks: int) -> Tensor:
    """The number of entries of each block's longest slot, rounded up to multiples of AHEAD."""
    rounded = (share + AHEAD - 1) // AHEAD * AHEAD
    return at.new_zeros(blocks).scatter_reduce(0, at, rounded, "amax")


def _entries(
    length: Tensor, share: Tensor, first: Tensor, starts: Tensor, row_starts: Tensor, block: int
) -> tuple[Tensor, Tensor]:
    """Where each entry is stored in the blocks, and where in CSR order."""
    row, turn = row_and_step(length)
    slot, step = first[row] + turn // share[row], turn % share[row]
    return (starts[slot // block] + step) * block + slot % block, row_starts[row] + turn


class CSR(Protocol):
    """The index arrays of a sparse matrix: row i's entries are rows[i] … rows[i + 1]."""

    @property
    def rows(self) -> Tensor:
        """(n + 1,) int32."""

    @property
    def columns(self) -> Tensor:
        """(entries,) int32."""


class CutCSR(Protocol):
    """The index arrays of a sparse matrix whose rows several processes share."""

    @property
    def near(self) -> CSR:
        """(n, n): the columns of this process."""

    @property
    def arriving(self) -> CSR:
        """(n, arriving): the rows that come from others."""


_SCHEDULES: WeakKeyDictionary[CSR, dict[Cut, Schedule]] = WeakKeyDictionary()
_SLOTS: WeakKeyDictionary[CSR, dict[Cut, Slots | None]] = WeakKeyDictionary()
_CUTS: WeakKeyDictionary[CutCSR, dict[tuple[Cut, Cut], CutSlots | None]] = WeakKeyDictionary()


def schedule_of(pattern: CSR, cut: Cut) -> Schedule:
    """The layout for a sparse product."""
    known = _SCHEDULES.setdefault(pattern, {})
    if cut not in known:
        known[cut] = Schedule.of(pattern.rows, pattern.columns, cut)
    return known[cut]


def slots_of(pattern: CSR, cut: Cut) -> Slots | None:
    """The layout for the fused layers; None where a row is too long for them."""
    known = _SLOTS.setdefault(pattern, {})
    if cut not in known:
        known[cut] = Slots.of(pattern.rows, pattern.columns, cut)
    return known[cut]


class CutSlots(NamedTuple):
    """Three layouts for the fused layers of a matrix whose rows several processes share.

    inner     rows to which nothing arrives, on near columns
    border    the others, on near columns
    arriving  the others, on what arrives
    """

    inner: Slots
    border: Schedule
    arriving: Slots

    @classmethod
    def of(cls, pattern: CutCSR, slots: Cut, product: Cut) -> CutSlots | None:
        """None where a row is too long for the fused layers.

        slots, product  of the fused layers, and of products
        """
        near, arriving = pattern.near, pattern.arriving
        waits = arriving.rows.diff() > 0
        rows, border = (torch.nonzero(side)[:, 0] for side in (~waits, waits))
        inner = Slots.of(near.rows, near.columns, slots, rows)
        outer = Slots.of(arriving.rows, arriving.columns, slots, border)
        if inner is None or outer is None:
            return None
        return cls(inner, Schedule.of(near.rows, near.columns, product, border), outer)


def cut_slots_of(pattern: CutCSR, slots: Cut, product: Cut) -> CutSlots | None:
    """The layouts for the fused layers; None where a row is too long for them."""
    known = _CUTS.setdefault(pattern, {})
    if (slots, product) not in known:
        known[slots, product] = CutSlots.of(pattern, slots, product)
    return known[slots, product]
