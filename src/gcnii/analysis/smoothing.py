"""How smooth a hidden state H (n, width) is on its graph: energy, cosine distances, ranks, limit.

`SmoothnessMeter` is made once for a graph and measures state after state.  Edges count in both
directions, with their weights if they have any, and self-loops not at all; Ã = A + I, D̃ its row
sums.  What would take long is sampled, with the same sample for every state, and has a standard
error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from math import exp, isnan, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from gcnii.errors import InputError
from gcnii.files import Document, json_value
from gcnii.graph import Graph
from gcnii.graph.weights import EdgeWeights
from gcnii.propagation import adjacency


class SampledValue(NamedTuple):
    """A number and its standard error, which is zero where nothing was sampled."""

    value: float
    error: float = 0.0

    def divided(self, by: float) -> SampledValue:
        """The estimate divided by an exact number."""
        return SampledValue(self.value / by, self.error / by)

    def less(self, other: SampledValue) -> SampledValue:
        """The difference of two independent estimates; NaN, without an error, if either is NaN."""
        value = self.value - other.value
        if isnan(value):
            return SampledValue(value)
        return SampledValue(value, sqrt(self.error**2 + other.error**2))


SOURCES, TARGETS = 128, 64  # number of nodes, and of partners of each kind drawn for each of them
NEAR, FAR = 3, 8  # hops: up to 3, and from 8 on (Chen et al. 2020b, who define MAD and MADGap)
WORD = 64  # bits
NUMBERS = 1 << 22  # numbers at a time, to save memory

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

    def cosine_distance(self, U: Tensor, zero: Tensor) -> SampledValue:
        """The mean of 1 - u·v over a source's partners, then over sources; NaN without pairs.

        U     (n, width) rows of length one or zero
        zero  (n,) which rows are zero: two of them are equal, hence 0 apart
        """
        if not len(self.source):
            return SampledValue(nan)
        ends = zip(
            *(end.split(max(1, NUMBERS // U.shape[1])) for end in (self.source, self.target)),
            strict=True,
        )
        dots = torch.cat([(U[one] * U[other]).sum(1) for one, other in ends]).double()
        apart = torch.where(zero[self.source] & zero[self.target], 0, 1 - dots.clamp(max=1))
        count = torch.bincount(self.number)
        means = (torch.bincount(self.number, apart) / count)[count > 0]
        error = 0.0 if self.whole or len(means) < 2 else float(means.std()) / sqrt(len(means))
        return SampledValue(float(means.mean()), error)


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


TOLERANCE = 1e-5  # of the largest singular value: below it lies what float32 rounds
NARROW, SKETCH = 512, 256  # a state wider than NARROW is projected on SKETCH random directions
# iterations that turn the directions towards the largest values (Halko et al. 2011, algorithm 4.4)
POWERS = 2
CHUNK = 1 << 16  # rows at a time, to save memory


@dataclass(frozen=True)
class SingularValues:
    """Singular values, largest first, and what the sketch of a wide state did not see.

    rest    the sum of squares of the values that were not seen
    others  the number of values that were not seen
    """

    values: Tensor
    rest: float = 0.0
    others: int = 0

    @classmethod
    def of(cls, H: Tensor) -> SingularValues:
        """Those of H (n, width): exact, or by a sketch if both sides are longer than NARROW."""
        H = H.T if len(H) < H.shape[1] else H
        if H.shape[1] <= NARROW:
            return cls(_values(H))
        directions = torch.randn(
            H.shape[1], SKETCH, dtype=H.dtype, generator=torch.Generator().manual_seed(0)
        )
        Q = torch.linalg.qr(H @ directions)[0]
        for _ in range(POWERS):
            Q = torch.linalg.qr(H @ (H.T @ Q))[0]
        values = _values(H.T @ Q)
        rest = float(H.double().square().sum() - values.square().sum())
        return cls(values, max(rest, 0.0), H.shape[1] - SKETCH)

    @property
    def rank(self) -> int:
        """The number of values seen that are above TOLERANCE of the largest."""
        return int((self.values > TOLERANCE * self.values[0]).sum())

    @property
    def effective_rank(self) -> SampledValue:
        """exp(-Σ p log p), p being the values as shares of their sum; 0 for a state that is zero.

        The values not seen are at one extreme all equal, and at the other as unequal as they can
        be, each as large as the last one seen or zero: the estimate is the middle of these two, its
        error half of their difference.
        """
        if not self.values[0]:
            return SampledValue(0.0)
        last = float(self.values[-1])
        if not self.others or last <= TOLERANCE * float(self.values[0]):
            return SampledValue(_effective(self.values))
        even = torch.full((self.others,), (self.rest / self.others) ** 0.5, dtype=torch.float64)
        uneven = torch.full(
            (min(self.others, round(self.rest / last**2)),), last, dtype=torch.float64
        )
        high, low = (_effective(torch.cat([self.values, tail])) for tail in (even, uneven))
        return SampledValue((high + low) / 2, abs(high - low) / 2)


def _values(H: Tensor) -> Tensor:
    """Singular values of a narrow matrix, by eigenvalues of HᵀH: exact to 1e-8 of the largest."""
    gram = torch.zeros(H.shape[1], H.shape[1], dtype=torch.float64)
    for part in H.split(CHUNK):
        rows = part.double()
        gram.addmm_(rows.T, rows)
    squares: Tensor = torch.linalg.eigvalsh(gram)
    return squares.clamp(min=0).sqrt().flip(0)


def _effective(values: Tensor) -> float:
    p = values / values.sum()
    return exp(float(torch.special.entr(p).sum()))


PAIRS = 1 << 17  # the largest number of edges whose ends are compared


@dataclass(frozen=True)
class Smoothness:
    """The measurements of one state.

    width           number of units
    norm            ‖H‖ / √n, the length of a typical row
    energy          Dirichlet energy of a node, tr(Hᵀ (I - P̃) H) / n
    roughness       the same as a share of the state, tr(Hᵀ (I - P̃) H) / ‖H‖²: between 0 and 2
    mad, mad_gap    mean cosine distance of two nodes; that of far nodes less that of near ones
                    (NaN where there are no such pairs)
    effective_rank  exp(entropy of the singular values as shares)
    rank            number of singular values that are not rounding
    distance        ‖H - ΠH‖ / ‖H‖, where ΠH is Theorem 1's limit
    dead            share of the units that are zero on all nodes
    """

    width: int
    norm: float
    energy: SampledValue
    roughness: SampledValue
    mad: SampledValue
    mad_gap: SampledValue
    effective_rank: SampledValue
    rank: int
    distance: float
    dead: float

    def summary(self) -> Document:
        """The measurements as a JSON object: estimates as [value, error], and null for NaN."""
        return {name: json_value(value) for name, value in asdict(self).items()}

    @classmethod
    def of(cls, summary: Document) -> Smoothness:
        """The measurements that a `summary` was made from."""
        return cls(**{name: _parsed(summary[name]) for name in cls.__dataclass_fields__})


class SmoothnessMeter:
    """A graph of n nodes with edges (2, m), made ready to measure states on it."""

    def __init__(
        self,
        edges: Tensor | NDArray[np.int64],
        n: int,
        seed: int = 0,
        weights: NDArray[np.float64] | None = None,
        edge_weights: EdgeWeights = "raw",
    ):
        random = np.random.default_rng(seed)
        graph = Graph(X=np.zeros((n, 1)), edges=np.asarray(edges), directed=True, weights=weights)
        A = sp.csr_array(adjacency(graph, "both", "remove", edge_weights) + sp.eye_array(n))
        degree, upper = A.sum(1), sp.triu(A, 1, "coo")
        self.n, self.m = n, upper.nnz
        self.sampled = self.m > PAIRS
        chosen = random.integers(self.m, size=PAIRS) if self.sampled else slice(None)
        self.pairs = torch.tensor(np.stack([upper.row, upper.col])[:, chosen]).long()
        self.pair_weights = torch.tensor(upper.data[chosen])
        self.root = torch.tensor(np.sqrt(degree))  # D̃^½ 1, the direction of Theorem 1's limit
        _, component = connected_components(A, directed=False)
        self.component = torch.tensor(component).long()
        self.weights = torch.tensor(np.bincount(component, degree))
        self.partners = sample_pairs(A, random)

    @classmethod
    def of(cls, graph: Graph, edge_weights: EdgeWeights = "raw") -> SmoothnessMeter:
        return cls(graph.edges, graph.n, weights=graph.weights, edge_weights=edge_weights)

    @torch.no_grad()
    def measure(self, H: Tensor) -> Smoothness:
        """Measure one state (n, width)."""
        if len(H) != self.n:
            raise InputError(
                f"a state needs one row for each of the graph's {self.n} nodes, got {len(H)}"
            )
        H = H.detach().cpu()
        square = torch.cat([part.double().square().sum(1) for part in H.split(CHUNK)])
        size = float(square.sum())
        energy, mad = self._energy(H), self._cosine_distances(H, square.sqrt())
        singular = SingularValues.of(H)
        return Smoothness(
            width=H.shape[1],
            norm=sqrt(size / self.n),
            energy=energy.divided(self.n),
            roughness=energy.divided(size) if size else SampledValue(0.0),
            mad=mad["any"],
            mad_gap=mad["far"].less(mad["near"]),
            effective_rank=singular.effective_rank,
            rank=singular.rank,
            distance=self._distance(H, size),
            dead=float((H == 0).all(0).double().mean()),
        )

    def _energy(self, H: Tensor) -> SampledValue:
        """Σ w_uv ‖h_u/√d̃_u - h_v/√d̃_v‖² over the edges, which is tr(Hᵀ (I - P̃) H)."""
        each = torch.cat([self._differences(H, part) for part in self.pairs.split(CHUNK, 1)])
        each = self.pair_weights * each
        if not self.sampled:
            return SampledValue(float(each.sum()))
        error = self.m * float(each.std()) / sqrt(len(each))
        return SampledValue(self.m * float(each.mean()), error)

    def _differences(self, H: Tensor, pairs: Tensor) -> Tensor:
        a, b = (H[end].double() / self.root[end, None] for end in pairs)
        return (a - b).square().sum(1)

    def _cosine_distances(self, H: Tensor, length: Tensor) -> dict[str, SampledValue]:
        U = H / torch.where(length > 0, length, 1).to(H.dtype)[:, None]
        return {
            kind: partners.cosine_distance(U, length == 0)
            for kind, partners in self.partners.items()
        }

    def _distance(self, H: Tensor, size: float) -> float:
        """‖H - ΠH‖ / ‖H‖: in each component, (ΠH)_i = √d̃_i Σ_j √d̃_j h_j / Σ_j d̃_j."""
        if not size:
            return 0.0
        sums = torch.zeros(len(self.weights), H.shape[1], dtype=torch.float64)
        for part, root, component in zip(
            *(x.split(CHUNK) for x in (H, self.root, self.component)), strict=True
        ):
            sums.index_add_(0, component, part.double() * root[:, None])
        limit = float((sums.square().sum(1) / self.weights).sum())
        return sqrt(max(size - limit, 0.0) / size)


def _parsed(value: Any) -> Any:
    if isinstance(value, list):
        return SampledValue(*map(_parsed, value))
    return nan if value is None else value
