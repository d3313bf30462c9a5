"""A process that exchanges rows with itself, as if with others."""

from contextlib import contextmanager
from dataclasses import replace

import torch
import torch.distributed as dist

from gcnii.propagation.sparse import CutPattern, Pattern, RowNumbers
from gcnii.train.distributed.shard import CutMatrix, Halo
from gcnii.train.distributed.world import World


@contextmanager
def alone():
    """A world of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield World(0, 1, dist.HashStore(), hosted=True)
    finally:
        dist.destroy_process_group()


def numbered(P, nodes):
    """P, whose rows have these numbers in a larger graph."""
    return replace(P, pattern=replace(P.pattern, row_numbers=RowNumbers(nodes)))


def halved(P, world, strangers):
    """P, of which the columns of these nodes are a halo that comes from the process itself."""
    row, column = P.pattern.row_of, P.pattern.columns.long()
    strangers = torch.tensor(strangers, dtype=torch.int64, device=P.device)
    halo = Halo(world, strangers, [len(strangers)], strangers, [len(strangers)], P.shape[0])
    place = torch.full(P.shape[:1], -1, device=P.device)
    place[strangers] = torch.arange(len(strangers), device=P.device)
    far = place[column] >= 0
    near = Pattern.from_sorted(row[~far], column[~far], P.shape)
    near = replace(near, row_numbers=P.row_numbers)
    others = Pattern.from_sorted(row[far], place[column[far]], (P.shape[0], len(strangers)))
    values = torch.cat([P.values[~far], P.values[far]])
    return CutMatrix.of(CutPattern(near, others, halo), values)
