"""How a GPU goes through a sparse matrix: blocks of rows, the entries of a block side by side, long
rows in pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

PIECE = 32  # entries a piece
UNROLL = 2  # entries of a row that are fetched together


class ScheduledMatrix(NamedTuple):
    """A sparse matrix for the kernels: its schedule, its values as the CSR has them, and in the
    order of `index`.
    """

    schedule: Schedule
    values: Tensor
    weights: Tensor


@dataclass(frozen=True, eq=False)
class Schedule:
    """A CSR pattern as the kernels take it: blocks of rows, in each of which entry e of all rows is
    stored together.

    block    rows in a block
    hubs     number of blocks that come first and hold the hubs; their entries are pieces, of weight
             1
    order    (blocks · block,) int32 the rows, -1 where a block has fewer
    offsets  (blocks + 1,) int32: the block's entries are offsets[b] … offsets[b + 1] of the next
             two
    index    (entries · block,) int32 the column, or of a hub the piece; -1 where a row has no more
             entries
    place    (entries · block,) int32 where the entry's value is among the CSR's; after the last one
             is a 1, for pieces, and then a 0, for entries that are none
    columns  (CSR's entries,) int32, for the pieces
    starts, ends  (pieces,) int32 the CSR's entries of each piece
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
        """With the CSR's values (1, entries), or (r, entries) where they differ from replica to
        replica.
        """
        rows = len(values)
        constants = values.new_ones(rows, 1), values.new_zeros(rows, 1)
        return ScheduledMatrix(self, values, torch.cat([values, *constants], 1)[:, self.place])

    @classmethod
    def of(cls, rows: Tensor, columns: Tensor, block: int, longest: int) -> Schedule:
        """Rows by falling length, so that those of a block are alike and the longest start first.

        A row of more than `longest` entries, or of 4 times the mean if that is more, is a hub.
        """
        length = rows.diff().long()
        longest = max(longest, 4 * len(columns) // max(len(length), 1))
        order = torch.argsort(length, descending=True, stable=True)
        many = int((length > longest).sum())
        hubs, others = order[:many], order[many:]
        pieces = (length[hubs] + PIECE - 1) // PIECE
        first = pieces.cumsum(0) - pieces
        owner = torch.repeat_interleave(pieces)
        starts = rows[hubs][owner] + PIECE * (
            torch.arange(len(owner), device=rows.device) - first[owner]
        )
        ends = torch.minimum(starts + PIECE, rows[1:][hubs][owner])
        front = _blocks(hubs, pieces, first, None, len(columns), block)
        back = _blocks(
            others, length[others], rows[:-1][others].long(), columns, len(columns), block
        )
        counts = torch.cat([front[1], back[1]])
        offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        joined = (
            torch.cat([one, other])
            for one, other in ((front[0], back[0]), *zip(front[2:], back[2:], strict=True))
        )
        order, index, place = (tensor.int() for tensor in joined)
        return cls(
            block,
            len(front[1]),
            order,
            offsets.int(),
            index,
            place,
            columns,
            starts.int(),
            ends.int(),
            len(length),
        )


def _blocks(
    order: Tensor, length: Tensor, first: Tensor, columns: Tensor | None, entries: int, block: int
) -> tuple[Tensor, ...]:
    """The rows, filled up to whole blocks; how many entries a block's rows have; index and place as
    in a Schedule.

    The entries of a row are first … first + length of the CSR, or without columns, these pieces.
    """
    blocks = -(-len(order) // block)
    filled = order.new_full((blocks * block,), -1)
    filled[: len(order)] = order
    longest = order.new_zeros(blocks * block)
    longest[: len(order)] = length
    counts = (
        (longest.view(blocks, block).amax(1) + UNROLL - 1) // UNROLL * UNROLL if blocks else longest
    )
    row = torch.repeat_interleave(length)
    step = torch.arange(len(row), device=row.device) - (length.cumsum(0) - length)[row]
    slot = ((counts.cumsum(0) - counts)[row // block] + step) * block + row % block
    size = int(counts.sum()) * block
    index, place = (
        torch.full((size,), fill, dtype=torch.int32, device=row.device)
        for fill in (-1, entries + 1)
    )
    entry = (first[row] + step).int()
    index[slot] = entry if columns is None else columns[entry]
    place[slot] = entries if columns is None else entry
    return filled, counts, index, place
