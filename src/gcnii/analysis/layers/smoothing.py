"""How smooth a hidden state H (n, width) is on its graph: energy, cosine distances, ranks, limit.

`SmoothnessMeter` is made once for a graph and measures state after state.  Edges count in both
directions, with their weights if they have any, and self-loops not at all; Ã = A + I, D̃ its row
sums.  What would take long is sampled, with the same sample for every state, and has a standard
error.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import nan, sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from gcnii.analysis.layers.estimate import Estimate
from gcnii.analysis.layers.pair_sampling import sample_pairs
from gcnii.analysis.layers.rank import SingularValues
from gcnii.errors import InputError
from gcnii.files import Document, json_value
from gcnii.graph import Graph
from gcnii.propagation import adjacency

PAIRS = 1 << 17  # the largest number of edges whose ends are compared
CHUNK = 1 << 16  # rows at a time, to save memory


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
    energy: Estimate
    roughness: Estimate
    mad: Estimate
    mad_gap: Estimate
    effective_rank: Estimate
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
    ):
        random = np.random.default_rng(seed)
        graph = Graph(X=np.zeros((n, 1)), edges=np.asarray(edges), directed=True, weights=weights)
        A = sp.csr_array(adjacency(graph, "both", "remove") + sp.eye_array(n))
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
    def of(cls, graph: Graph) -> SmoothnessMeter:
        """The meter of a Graph."""
        return cls(graph.edges, graph.n, weights=graph.weights)

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
            roughness=energy.divided(size) if size else Estimate(0.0),
            mad=mad["any"],
            mad_gap=mad["far"].less(mad["near"]),
            effective_rank=singular.effective_rank,
            rank=singular.rank,
            distance=self._distance(H, size),
            dead=float((H == 0).all(0).double().mean()),
        )

    def _energy(self, H: Tensor) -> Estimate:
        """Σ w_uv ‖h_u/√d̃_u - h_v/√d̃_v‖² over the edges, which is tr(Hᵀ (I - P̃) H)."""
        each = torch.cat([self._differences(H, part) for part in self.pairs.split(CHUNK, 1)])
        each = self.pair_weights * each
        if not self.sampled:
            return Estimate(float(each.sum()))
        return Estimate(self.m * float(each.mean()), self.m * float(each.std()) / sqrt(len(each)))

    def _differences(self, H: Tensor, pairs: Tensor) -> Tensor:
        a, b = (H[end].double() / self.root[end, None] for end in pairs)
        return (a - b).square().sum(1)

    def _cosine_distances(self, H: Tensor, length: Tensor) -> dict[str, Estimate]:
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
        return Estimate(*map(_parsed, value))
    return nan if value is None else value
