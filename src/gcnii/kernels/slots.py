"""A sparse matrix as the fused layers gather it: rows in slots, one each, and hubs in several of a
block.

A program goes through the slots of its block side by side, so none should be much longer than the
others: rows come by falling length, and the entries of a hub are dealt out over slots whose sums
are added up in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

AHEAD = 2  # entries of a slot that are fetched together
# times the length at which a row becomes a hub: a slot may have so many entries where all are taken
TOO_LONG = 4


class SlottedMatrix(NamedTuple):
    """Slots with the values of their entries (r or 1, entries), in the order of `index`."""

    slots: Slots
    weights: Tensor


@dataclass(frozen=True, eq=False)
class Slots:
    """A CSR pattern in blocks of `block` slots; entry e of all slots of a block is stored together.

    hubs     number of blocks that come first, and in which a row may have several slots
    order    (blocks · block,) int32 the rows, those of a block first; -1 where there are fewer than
             slots
    owner    (hubs · block,) int32 of each slot the place of its row in the block, -1 where there is
             none
    offsets  (blocks + 1,) int32: the block's entries are offsets[b] … offsets[b + 1] of the next
             two
    index    (entries · block,) int32 columns, -1 where a slot has no more; and AHEAD more, to be
             read ahead
    place    (entries · block,) int32 where the entry's value is among the CSR's, after whose last
             comes a 0
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
        """How many there are."""
        return len(self.offsets) - 1

    def with_values(self, values: Tensor) -> SlottedMatrix:
        """With the CSR's values (1, entries), or (r, entries) where they differ from replica to
        replica.
        """
        return SlottedMatrix(
            self, torch.cat([values, values.new_zeros(len(values), 1)], 1)[:, self.place]
        )

    @classmethod
    def of(cls, rows: Tensor, columns: Tensor, block: int, longest: int) -> Slots | None:
        """Of a CSR pattern; None where all slots of a block are too few for a row.

        A row of more than `longest` entries, or of 4 times the mean if that is more, is a hub.
        """
        entries, length = len(columns), rows.diff().long()
        longest = max(longest, 4 * entries // max(len(length), 1))
        if not entries or int(length.max()) > TOO_LONG * longest * block:
            return None
        length, order = length.sort(descending=True, stable=True)
        starts = rows[:-1][order].long()
        # A power of two for each hub: by falling number, none then crosses the border of a block.
        pieces = (length - 1).clamp(min=0) // longest + 1
        taken = (1 << pieces.double().log2().ceil().long()).clamp(max=block)
        many = taken > 1
        hubs = -(-int(taken[many].sum()) // block)
        first = taken.cumsum(0) - taken  # the slot of each row
        first += ~many * (hubs * block - taken[many].sum())
        at = first // block
        blocks = int(at[-1]) + 1
        # its place in the block
        rank = torch.arange(len(at), device=at.device) - torch.searchsorted(at, at)
        filled, owner = (at.new_full((count * block,), -1) for count in (blocks, hubs))
        filled[at * block + rank] = order
        row, turn = _each(taken[many])
        owner[first[row] + turn] = rank[row]
        share = (length + taken - 1) // taken  # entries of a slot
        most = at.new_zeros(blocks).scatter_reduce(
            0, at, (share + AHEAD - 1) // AHEAD * AHEAD, "amax"
        )
        offsets = torch.cat([most.new_zeros(1), most.cumsum(0)])
        row, turn = _each(length)
        slot, step = first[row] + turn // share[row], turn % share[row]
        where = (offsets[slot // block] + step) * block + slot % block
        size, entry = int(offsets[-1]) * block, starts[row] + turn
        index, place = at.new_full((size + AHEAD * block,), -1), at.new_full((size,), entries)
        index[where], place[where] = columns[entry].long(), entry
        return cls(
            block, hubs, *(tensor.int() for tensor in (filled, owner, offsets, index, place))
        )


def _each(counts: Tensor) -> tuple[Tensor, Tensor]:
    """(0, 0), (0, 1), … (0, counts[0] - 1), (1, 0), …: two tensors of Σ counts."""
    which = torch.repeat_interleave(counts)
    return which, torch.arange(len(which), device=which.device) - (counts.cumsum(0) - counts)[which]
