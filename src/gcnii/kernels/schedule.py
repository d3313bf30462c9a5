"""The layout of a sparse matrix for the product kernel: rows in blocks, long rows in pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gcnii.kernels import offsets, row_and_step

PIECE = 32  # entries per piece
UNROLL = 2  # entries of a row that are fetched together


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
    place    (entries · block,) int32 the position of the entry's value in CSR order; after the last
             value come a 1, for pieces, and a 0, for padding
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
        rows = len(values)
        constants = values.new_ones(rows, 1), values.new_zeros(rows, 1)
        return ScheduledMatrix(self, values, torch.cat([values, *constants], 1)[:, self.place])

    @classmethod
    def of(
        cls, rows: Tensor, columns: Tensor, block: int, longest: int, among: Tensor | None = None
    ) -> Schedule:
        """Sort rows by falling length: a block's rows are alike, and the longest start first.

        A row of more than `longest` entries, or of 4 times the mean if that is more, is a hub.

        among  the rows to compute, sorted; by default all
        """
        length = rows.diff().long()
        longest = max(longest, 4 * len(columns) // max(len(length), 1))
        chosen = length if among is None else length[among]
        order = torch.argsort(chosen, descending=True, stable=True)
        order = order if among is None else among[order]
        many = int((chosen > longest).sum())
        hubs, others = order[:many], order[many:]
        pieces = (length[hubs] + PIECE - 1) // PIECE
        starts, ends = _pieces(rows, hubs, pieces)
        front = _blocks(hubs, pieces, pieces.cumsum(0) - pieces, None, len(columns), block)
        first = rows[:-1][others].long()
        back = _blocks(others, length[others], first, columns, len(columns), block)
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
    order: Tensor, length: Tensor, first: Tensor, columns: Tensor | None, entries: int, block: int
) -> tuple[Tensor, ...]:
    """The rows padded to whole blocks, each block's entries, and a Schedule's index and place.

    The entries of a row are first … first + length of the CSR, or without columns, these pieces.
    """
    filled, counts = _padded(order, length, block)
    row, step = row_and_step(length)
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
