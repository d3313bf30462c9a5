"""The filter that a network has learned: how much of a signal of frequency λ passes through it.

Theorem 2 says that GCNII can be any polynomial filter of L̃ = I - P̃; this measures which one it
became.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from gcnii.analysis.filters.bands import Band, eigenspaces, random_bands, refuse_asymmetric
from gcnii.analysis.filters.jacobian import Pull, linearised
from gcnii.errors import InputError
from gcnii.propagation import Sparse

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Response:
    """g(λ), one entry per band of frequencies.

    Let J be the network linearised at X, and u_i the eigenvectors of L̃.  A signal u_i on the
    nodes, put on all features, comes out with the part G_i = u_iᵀ J(u_i ·) at its own frequency: a
    matrix (k, d) from features to scores.  g, and one matrix W for all frequencies, minimise
    Σ_i ‖G_i - g(λ_i) W‖².  Where the network is a filter, J V = g(L̃) V Wᵀ, they are its own.  g is
    known up to a factor, because W may take it: the largest |g| is set to 1, and is positive.

    frequency  (b,) λ
    gain       (b,) g(λ)
    error      (b,) its standard error, from the differences between probes; 0 where it is exact
    share      (b,) the band's share of all eigenvectors
    purity     (b,) the share of the response's energy that is the signal itself: 1 for a filter,
               less where ReLUs that are open at some nodes and closed at others send it to other
               frequencies
    """

    frequency: Floats
    gain: Floats
    error: Floats
    share: Floats
    purity: Floats

    def summary(self) -> dict[str, list[float]]:
        """The response as a JSON object."""
        return {field.name: getattr(self, field.name).tolist() for field in fields(self)}

    @classmethod
    def of(cls, summary: Mapping[str, Sequence[float]]) -> Response:
        """The response that a `summary` was made from."""
        return cls(
            **{field.name: np.array(summary[field.name], np.float64) for field in fields(cls)}
        )

    def beside(self, curve: ArrayLike) -> Floats:
        """Another filter's values at these frequencies, scaled in the same way."""
        return _scaled(np.asarray(curve, np.float64))[0]


def response(
    model: nn.Module,
    P: Sparse,
    X: Tensor | Sparse,
    *,
    bands: int = 24,
    probes: int | None = 8,
    seed: int = 0,
) -> Response:
    """The filter of `model` on this graph, at these features.

    bands   the number of equal parts of the spectrum, over each of which g is averaged
    probes  random signals per band, each of which costs one backward pass; None for every
            eigenvector and every score, which costs n·k passes and gives g(λ_i) itself, for graphs
            of up to 4000 nodes
    """
    _check(bands, probes)
    refuse_asymmetric(P)
    found = eigenspaces(P) if probes is None else random_bands(P, bands, probes, seed)
    with linearised(model, P, X) as (scores, pull):
        k = scores.shape[1]
        measured = [
            [_echoes(band, pull, W) for W in _weights(band, k, probes, seed)] for band in found
        ]
    return _separate(found, measured, exact=probes is None)


def _check(bands: int, probes: int | None) -> None:
    if probes is not None and (probes < 2 or bands < 1):
        raise InputError(
            f"an error bar needs at least 2 probes in at least 1 band, got {probes} in {bands}"
        )


@dataclass(frozen=True, eq=False)
class Echoes:
    """What returns of signals at their own frequency: y (s, d), and its share of energy (s,)."""

    y: Tensor
    purity: Tensor


def _echoes(band: Band, pull: Pull, W: Tensor) -> Echoes:
    """The rows aᵀ Jᵀ(a wᵀ) for the band's signals a (n,) and weights w (k,) of the scores."""
    y, purity = [], []
    for a, w in zip(band.signals.T, W, strict=True):
        Y = pull(torch.outer(a, w))
        echo = a.to(Y) @ Y
        y.append(echo)
        # In float32 the squares of what a deep GCN lets through underflow to 0.
        part, all_of_it = (torch.linalg.vector_norm(V, dtype=torch.float64) for V in (echo, Y))
        purity.append((part / all_of_it.clamp(min=1e-300)) ** 2)
    return Echoes(torch.stack(y).double().cpu(), torch.stack(purity).double().cpu())


def _weights(band: Band, k: int, probes: int | None, seed: int) -> list[Tensor]:
    """Weights (s, k) of the scores for the band's signals: random signs, or each score in turn."""
    if probes is not None:
        return [_signs(probes, k, seed)]
    return [one.expand(band.signals.shape[1], k) for one in torch.eye(k, dtype=torch.float64)]


def _signs(probes: int, k: int, seed: int) -> Tensor:
    """(probes, k) of 1 and -1, the same for all bands so that they add no error to g."""
    random = torch.Generator().manual_seed(seed)
    return torch.randint(2, (probes, k), generator=random).double() * 2 - 1


def _separate(bands: Sequence[Band], measured: Sequence[Sequence[Echoes]], exact: bool) -> Response:
    """The gain of each band, from its echoes for one or several weightings of the scores."""
    # Echoes of eigenvectors with one eigenvalue are averaged: the mean is the same in any basis.
    each = [
        torch.cat([e.y.mean(0, keepdim=True) for e in band]) if exact else band[0].y
        for band in measured
    ]
    share = torch.tensor([band.share for band in bands], dtype=torch.float64)
    gain, error = _gains(torch.stack(each), share)
    scaled, factor = _scaled(gain.numpy())
    return Response(
        frequency=np.array([band.frequency for band in bands]),
        gain=scaled,
        error=np.zeros(len(bands)) if exact else error.numpy() / abs(factor),
        share=share.numpy(),
        purity=np.array([float(torch.cat([e.purity for e in band]).mean()) for band in measured]),
    )


def _gains(Y: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """g (bands,) that minimises Σ ‖y_bj - g_b m_j‖² over g and m, and its standard error.

    Y      (bands, weightings, d) the echoes y_bj
    share  (bands,) the weight of each band
    """
    rows = share.sqrt()[:, None] * Y.flatten(1)
    m = torch.linalg.svd(rows, full_matrices=False).Vh[0].view(Y.shape[1:])
    along = (Y * m).sum(2)  # (bands, weightings)
    gain = along.sum(1)
    weight = m.pow(2).sum(1).clamp(min=1e-300)
    # of each weighting's own estimate along / weight, times its weight
    spread = along - weight * gain[:, None]
    return gain, spread.pow(2).sum(1).mul(len(m) / max(len(m) - 1, 1)).sqrt()


def _scaled(gain: Floats) -> tuple[Floats, float]:
    factor = float(gain[np.abs(gain).argmax()])
    return gain / factor if factor else gain, factor or 1.0


def gcn_filter(frequency: ArrayLike, layers: int) -> Floats:
    """(1-λ)^K: a GCN of K layers without its ReLUs, and SGC."""
    return np.asarray((1 - np.asarray(frequency, np.float64)) ** layers)


def pagerank_filter(frequency: ArrayLike, alpha: float, layers: int | None = None) -> Floats:
    """α / (1 - (1-α)(1-λ)), personalised PageRank; with `layers`, as many steps of APPNP."""
    kept = (1 - alpha) * (1 - np.asarray(frequency, np.float64))
    limit = alpha / (1 - kept)
    return np.asarray(limit if layers is None else limit * (1 - kept**layers) + kept**layers)
