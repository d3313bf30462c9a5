"""Pairs of nodes whose states are compared: any two, near ones, far ones; drawn once per graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii.analysis.layers.estimate import Estimate

SOURCES, TARGETS = 128, 64  # number of nodes, and of partners of each kind drawn for each of them
NEAR, FAR = 3, 8  # hops: up to 3, and from 8 on (Chen et al. 2020b, who define MAD and MADGap)
WORD = 64  # bits
CHUNK = 1 << 22  # numbers at a time, to save memory

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class NodePairs:
    """Pairs of nodes of one kind.

    source, target  (pairs,) the two nodes
    number          (pairs,) the index of the source among the sources drawn
    whole           whether these are all pairs of their kind
    """

    source: Tensor
    target: Tensor
    number: Tensor
    whole: bool

    def cosine_distance(self, U: Tensor, zero: Tensor) -> Estimate:
        """The mean of 1 - u·v over a source's partners, then over sources; NaN without pairs.

        U     (n, width) rows of length one or zero
        zero  (n,) which rows are zero: two of them are equal, hence 0 apart
        """
        if not len(self.source):
            return Estimate(nan)
        ends = zip(
            *(end.split(max(1, CHUNK // U.shape[1])) for end in (self.source, self.target)),
            strict=True,
        )
        dots = torch.cat([(U[one] * U[other]).sum(1) for one, other in ends]).double()
        apart = torch.where(zero[self.source] & zero[self.target], 0, 1 - dots.clamp(max=1))
        count = torch.bincount(self.number)
        means = (torch.bincount(self.number, apart) / count)[count > 0]
        error = 0.0 if self.whole or len(means) < 2 else float(means.std()) / sqrt(len(means))
        return Estimate(float(means.mean()), error)


def sample_pairs(A: sp.csr_array, random: np.random.Generator) -> dict[str, NodePairs]:
    """Pairs of the kinds "any", "near" and "far", for a symmetric A (n, n) with a diagonal."""
    n = A.shape[0]
    sources = np.sort(random.permutation(n)[:SOURCES])
    near, within = _reached(A, sources, (NEAR, FAR - 1))
    itself = [np.arange(n) == source for source in sources]
    return {
        "any": _draw(sources, (~own for own in itself), n, random),
        "near": _draw(
            sources, (row & ~own for row, own in zip(near, itself, strict=True)), n, random
        ),
        "far": _draw(sources, (~row for row in within), n, random),
    }


def _draw(sources: Ints, masks: Iterable[Mask], n: int, random: np.random.Generator) -> NodePairs:
    """Up to TARGETS partners per source, as its mask (n,) allows; all if all nodes are sources."""
    whole = len(sources) == n
    chosen = []
    for mask in masks:
        candidates = np.flatnonzero(mask)
        few = whole or len(candidates) <= TARGETS
        chosen.append(candidates if few else random.choice(candidates, TARGETS, replace=False))
    number = np.repeat(np.arange(len(sources)), [len(one) for one in chosen])
    source, target = sources[number], np.concatenate(chosen)
    return NodePairs(torch.tensor(source), torch.tensor(target), torch.tensor(number), whole)


def _reached(A: sp.csr_array, sources: Ints, hops: tuple[int, ...]) -> list[Iterator[Mask]]:
    """For each number of hops and each source, which nodes (n,) are reached within it.

    64 sources walk at once, one bit each.
    """
    walks: list[list[NDArray[np.uint64]]] = []
    for start in range(0, len(sources), WORD):
        seen = np.zeros(A.shape[0], np.uint64)
        group = sources[start : start + WORD]
        seen[group] = np.uint64(1) << np.arange(len(group), dtype=np.uint64)
        walk = []
        for hop in range(1, max(hops) + 1):
            # the diagonal leaves no row empty
            seen = np.bitwise_or.reduceat(seen[A.indices], A.indptr[:-1])
            if hop in hops:
                walk.append(seen)
        walks.append(walk)
    return [_rows([walk[i] for walk in walks], len(sources)) for i in range(len(hops))]


def _rows(words: list[NDArray[np.uint64]], count: int) -> Iterator[Mask]:
    for i in range(count):
        yield (words[i // WORD] >> np.uint64(i % WORD) & np.uint64(1)).astype(bool)
