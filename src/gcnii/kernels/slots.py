"""The layout of a sparse matrix for the fused layers: one slot per row, several for a hub.

A program goes through the slots of its block side by side, so none should be much longer than the
others: rows are sorted by falling length, and the entries of a hub are spread over several slots,
whose sums are added up at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gcnii.kernels import offsets, row_and_step

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
    place    (entries · block,) int32 the position of the entry's value in CSR order, after whose
             last comes a 0
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
        """The number of blocks."""
        return len(self.offsets) - 1

    def with_values(self, values: Tensor) -> SlottedMatrix:
        """Add the values in CSR order: (1, entries), or (r, entries) where replicas differ."""
        padded = torch.cat([values, values.new_zeros(len(values), 1)], 1)
        return SlottedMatrix(self, padded[:, self.place])

    @classmethod
    def of(
        cls, rows: Tensor, columns: Tensor, block: int, longest: int, among: Tensor | None = None
    ) -> Slots | None:
        """The layout of a CSR pattern; None where a row does not fit into the slots of a block.

        A row of more than `longest` entries, or of 4 times the mean if that is more, is a hub.

        among  the rows to lay out, sorted; by default all
        """
        entries, length = len(columns), rows.diff().long()
        longest = max(longest, 4 * entries // max(len(length), 1))
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
        index, place = first.new_full((size + AHEAD * block,), -1), first.new_full((size,), entries)
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
