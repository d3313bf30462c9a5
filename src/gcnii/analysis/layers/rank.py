"""How many directions a state fills: effective rank (Roy & Vetterli 2007) and numerical rank."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import torch
from torch import Tensor

from gcnii.analysis.layers.estimate import Estimate

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
    def effective_rank(self) -> Estimate:
        """exp(-Σ p log p), p being the values as shares of their sum; 0 for a state that is zero.

        The values not seen are at one extreme all equal, and at the other as unequal as they can
        be, each as large as the last one seen or zero: the estimate is the middle of these two, its
        error half of their difference.
        """
        if not self.values[0]:
            return Estimate(0.0)
        last = float(self.values[-1])
        if not self.others or last <= TOLERANCE * float(self.values[0]):
            return Estimate(_effective(self.values))
        even = torch.full((self.others,), (self.rest / self.others) ** 0.5, dtype=torch.float64)
        uneven = torch.full(
            (min(self.others, round(self.rest / last**2)),), last, dtype=torch.float64
        )
        high, low = (_effective(torch.cat([self.values, tail])) for tail in (even, uneven))
        return Estimate((high + low) / 2, abs(high - low) / 2)


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
