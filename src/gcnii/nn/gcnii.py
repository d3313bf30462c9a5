"""GCNII (Chen et al. 2020): graph convolution with initial residual and identity mapping.

    GCNII             section 3, equation 5
    GCNIIStar         section 4: separate weights for P̃H and the initial residual
    GCNIIStarPrinted  the same as printed
    GCNIIPPI, GCNIIStarPPI   with a "skip connection from layer l to l+1" (section 6.2)

The two forms of GCNII* differ: in the authors' code, the weights act on P̃H and H0 without the
factors (1-α) and α that the equation prints.  The tables come from the code, so `gcnii-star` is the
code's form.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import log
from typing import Protocol, Self

import torch
from torch import Tensor

from gcnii.nn.engine.fused import Mappings
from gcnii.nn.engine.skeleton import Conv, GCNIISkeleton
from gcnii.nn.model import ModelCard, uniform
from gcnii.nn.settings import Alpha, Lam, Layers, Rate, Width


class GCNIIConv(Conv):
    """Equation 5 before σ:  ((1-α) P̃ H + α H0) ((1-β) I + β W)."""

    fusable = True

    def __init__(self, width: int, alpha: float, beta: float):
        super().__init__()
        self.alpha: float | Tensor = alpha
        self.beta: float | Tensor = beta
        self.W = uniform(width, width)

    def combine(self, PH: Tensor, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        S = blend(PH, H0, self.alpha)  # initial residual
        return S @ identity_mapping(self.W, self.beta)

    @classmethod
    def mappings(cls, convs: Sequence[Self]) -> Mappings:
        """The matrices of these layers, for `fused_layers`."""
        W = torch.stack([conv.W for conv in convs])
        M = identity_mapping(W, each_beta(convs, W))
        return Mappings(M, alpha=convs[0].alpha, skip=cls.skip)


class GCNII(GCNIISkeleton):
    """GCNII: initial residual and identity mapping, β_l = log(λ/l + 1).

    Its other forms replace `conv`.

    Parameters
    ----------
    d, k : int
        Number of features and of classes.
    layers, width : int
        Number of convolutions, and of hidden units.
    alpha : float
        Share of H0 in every layer (α).
    lam : float
        Strength of the weights (λ).
    dropout : float
        Share of entries set to zero while training, before every layer.

    Examples
    --------
    >>> import gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> model = gcnii.nn.GCNII(graph.d, graph.k, layers=4, width=8)
    >>> model(gcnii.propagation_matrix(graph), gcnii.feature_matrix(graph)).shape
    torch.Size([60, 2])
    """

    card = ModelCard(
        paper="Chen et al. 2020, equation 5",
        equation="H ← σ(((1-α) P̃ H + α H0) ((1-β) I + β W)), β_l = log(λ/l + 1)",
        when="start here",
    )
    conv: type[Conv] = GCNIIConv
    fused = True
    batched = frozenset({"alpha", "lam", "dropout"})

    def __init__(
        self,
        d: int,
        k: int,
        *,
        layers: Layers = 64,
        width: Width = 64,
        alpha: Alpha = 0.1,
        lam: Lam = 0.5,
        dropout: Rate = 0.6,
    ):
        super().__init__(
            d, k, (self.conv(width, alpha, beta) for beta in betas(layers, lam)), width, dropout
        )


def betas(layers: int, lam: float) -> list[float]:
    """β_1 … β_layers."""
    # paper: layers count from 0, which would divide by zero; here: from 1, as in the authors' code.
    return [log(lam / l + 1) for l in range(1, layers + 1)]


def blend(A: Tensor, B: Tensor, share: float | Tensor) -> Tensor:
    """(1 - share) A + share B; a share () is that of one replica among others that differ."""
    return torch.lerp(A, B, share.to(A.dtype) if isinstance(share, Tensor) else share)


def identity_mapping(W: Tensor, beta: float | Tensor, scale: float | Tensor = 1.0) -> Tensor:
    """(1-β) I + β W, or with the identity scaled: (1-β) scale I + β W.

    One small matrix instead of two passes over n rows: (1-β) S + β S W = S ((1-β) I + β W).
    """
    I = _identity(W.shape[-1], W.dtype, W.device)
    return blend(I if isinstance(scale, float) and scale == 1 else scale * I, W, beta)


@lru_cache(maxsize=16)  # made once, because a GPU would fill it in two launches for each pass
@torch.inference_mode(False)
def _identity(width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.eye(width, dtype=dtype, device=device)


class HasBeta(Protocol):
    """A convolution with a β."""

    beta: float | Tensor


def each_beta(convs: Sequence[HasBeta], like: Tensor) -> Tensor:
    """β of these convolutions: (layers, 1, 1), of the dtype and on the device of `like`."""
    betas = [conv.beta for conv in convs]
    if isinstance(betas[0], Tensor):
        return torch.stack([torch.as_tensor(beta) for beta in betas])[:, None, None].to(like.dtype)
    return _column(tuple(map(float, betas)), like.dtype, like.device)


@lru_cache(maxsize=64)  # a copy to a GPU waits for the GPU, and cannot be part of a CUDA graph
@torch.inference_mode(False)
def _column(numbers: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(numbers, dtype=dtype, device=device)[:, None, None]


class GCNIIStarConv(Conv):
    """As coded, before σ:  (1-β) ((1-α) P̃ H + α H0) + β (P̃ H W1 + H0 W2)."""

    fusable = True

    def __init__(self, width: int, alpha: float, beta: float):
        super().__init__()
        self.alpha: float | Tensor = alpha
        self.beta: float | Tensor = beta
        self.W1, self.W2 = uniform(width, width), uniform(width, width)

    def combine(self, PH: Tensor, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        M1, M2 = self.matrices(self.W1, self.W2, self.alpha, self.beta)
        return PH @ M1 + H0 @ M2

    @staticmethod
    def matrices(
        W1: Tensor, W2: Tensor, alpha: float | Tensor, beta: float | Tensor
    ) -> tuple[Tensor, Tensor]:
        """By which P̃ H and H0 are multiplied."""
        return identity_mapping(W1, beta, 1 - alpha), identity_mapping(W2, beta, alpha)

    @classmethod
    def mappings(cls, convs: Sequence[Self]) -> Mappings:
        """The matrices of these layers, for `fused_layers`."""
        W1, W2 = (torch.stack(each) for each in zip(*((c.W1, c.W2) for c in convs), strict=True))
        M = cls.matrices(W1, W2, convs[0].alpha, each_beta(convs, W1))
        return Mappings(*M, skip=cls.skip)


class GCNIIStarPrintedConv(GCNIIStarConv):
    """As printed, before σ:  (1-α) P̃ H ((1-β) I + β W1) + α H0 ((1-β) I + β W2)."""

    fusable = True

    @staticmethod
    def matrices(
        W1: Tensor, W2: Tensor, alpha: float | Tensor, beta: float | Tensor
    ) -> tuple[Tensor, Tensor]:
        """By which P̃ H and H0 are multiplied."""
        return (1 - alpha) * identity_mapping(W1, beta), alpha * identity_mapping(W2, beta)


class GCNIIStar(GCNII):
    """GCNII* as the authors coded it."""

    card = ModelCard(
        paper="Chen et al. 2020, section 4, as coded",
        equation="H ← σ((1-β) ((1-α) P̃ H + α H0) + β (P̃ H W1 + H0 W2))",
        when="as gcnii with twice the weights: better on the web graphs of the paper",
    )
    conv = GCNIIStarConv


class GCNIIStarPrinted(GCNII):
    """GCNII* as the paper prints it."""

    card = ModelCard(
        paper="Chen et al. 2020, section 4, as printed",
        equation="H ← σ((1-α) P̃ H ((1-β) I + β W1) + α H0 ((1-β) I + β W2))",
    )
    conv = GCNIIStarPrintedConv


class GCNIISkipConv(GCNIIConv):
    """Equation 5 before σ, + H."""

    fusable = skip = True

    def combine(self, PH: Tensor, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        # paper: does not say which H; here: the one after dropout, which the convolution reads, as
        # in the authors' code.
        return super().combine(PH, H, H0) + H


class GCNIIStarSkipConv(GCNIIStarConv):
    """GCNII* as coded, before σ, + H."""

    fusable = skip = True

    def combine(self, PH: Tensor, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        return super().combine(PH, H, H0) + H


class GCNIIPPI(GCNII):
    """GCNII with a skip connection around every layer."""

    card = ModelCard(
        paper="Chen et al. 2020, section 6.2",
        equation="H ← σ(((1-α) P̃ H + α H0) ((1-β) I + β W) + H)",
    )
    conv = GCNIISkipConv


class GCNIIStarPPI(GCNII):
    """GCNII*, as coded, with a skip connection around every layer."""

    card = ModelCard(
        paper="Chen et al. 2020, section 6.2, as coded",
        equation="H ← σ((1-β) ((1-α) P̃ H + α H0) + β (P̃ H W1 + H0 W2) + H)",
    )
    conv = GCNIIStarSkipConv
