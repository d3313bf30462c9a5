"""Index arithmetic of rows that differ in length and are stored one after the other."""

import torch
from torch import Tensor


def offsets(counts: Tensor) -> Tensor:
    """counts (n,) → (n + 1,): where each row begins, and after the last, where it ends."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def row_and_step(counts: Tensor) -> tuple[Tensor, Tensor]:
    """(0, 0), (0, 1), … (0, counts[0] - 1), (1, 0), …: two tensors of length Σ counts."""
    row = torch.repeat_interleave(counts)
    return row, torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
