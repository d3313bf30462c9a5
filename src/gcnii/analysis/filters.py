"""The filter of a trained network, how far it reaches, and filters learnt from scratch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from torch import Tensor, nn

from gcnii.analysis.checkup import Checkup
from gcnii.errors import InputError
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.propagation import RelationalMatrix, Sparse
from gcnii.train.hardware import suited_threads
from gcnii.train.plan import Plan
from gcnii.train.task import make_adjacency

# number of nodes up to which all eigenvectors are computed: 128 MB; five seconds for Cora on two
# cores
SMALL = 4000
EQUAL = 1e-7  # eigenvalues closer than this count as one: P̃ may have been rounded to float32
ORDER = 160  # of the Chebyshev polynomials; the edges of a window are then about 0.04 wide
# number of lowest eigenvectors of a large graph that are bands of their own: communities are few,
# and a window would blur them
LOWEST = 4
AT_ONCE = 16  # polynomials per block, so that their sums are matrix products
# share of the spectrum: a window with less sees more of its neighbours' frequencies than of its own
FEWEST = 1e-4


@dataclass(frozen=True, eq=False)
class Band:
    """Signals (n, s) of norm 1 near one frequency, and the share of all eigenvectors near it."""

    frequency: float
    share: float
    signals: Tensor


def is_symmetric(P: Sparse) -> bool:
    """Whether P̃ is its own transpose, up to rounding: only then it has frequencies."""
    here, (other, order) = P.pattern, P.pattern.transposed
    alike = torch.equal(other.rows, here.rows) and torch.equal(other.columns, here.columns)
    return alike and torch.allclose(P.values[order], P.values, atol=1e-6)


def eigenspaces(P: Sparse) -> list[Band]:
    """All eigenvectors; those with the same eigenvalue are the signals of one band."""
    values, U = _eigenvectors(P)
    starts = np.flatnonzero(np.diff(values, prepend=-np.inf) > EQUAL)
    ends = (*starts[1:], len(values))
    return [
        Band(float(values[i:j].mean()), (j - i) / len(values), U[:, i:j])
        for i, j in zip(starts, ends, strict=True)
    ]


def random_bands(P: Sparse, bands: int, probes: int, seed: int = 0) -> list[Band]:
    """Random mixtures of the frequencies in each of `bands` equal parts of [0, λ_max].

    Parts without frequencies are left out.
    """
    random = torch.Generator().manual_seed(seed)
    Z = torch.randn(P.shape[0], probes, generator=random, dtype=torch.float64)
    return list(_mixed(P, bands, Z) if P.shape[0] <= SMALL else _windowed(P, bands, Z))


def _mixed(P: Sparse, bands: int, Z: Tensor) -> Iterator[Band]:
    """Mixtures of the eigenvectors themselves."""
    values, U = _eigenvectors(P)
    place = np.minimum((values / values[-1] * bands).astype(int), bands - 1)
    for band in np.unique(place):
        inside = np.flatnonzero(place == band)
        A = U[:, inside] @ (U[:, inside].T @ Z)
        yield Band(float(values[inside].mean()), len(inside) / len(values), A / A.norm(dim=0))


def _windowed(P: Sparse, bands: int, Z: Tensor) -> Iterator[Band]:
    """The lowest frequencies by Lanczos, the others by polynomials of P̃ near 1 within the band."""
    P, (n, probes) = P.to("cpu", torch.float64), Z.shape
    values, U = _lowest(P)
    for frequency, u in zip(values, U.T, strict=True):
        yield Band(float(frequency), 1 / n, u[:, None].expand(n, probes))
    Z = Z - U @ (U.T @ Z)
    edges = np.linspace(0, _largest_frequency(P, Z[:, :1]), bands + 1)
    edges[-1] = 2  # so that all of [-1, 1], where P̃ = I - L̃ has its eigenvalues, is in a band
    windows = torch.tensor(np.stack([_window(1 - high, 1 - low) for low, high in pairwise(edges)]))
    for signals in _polynomials(P, windows, Z):
        share = float(signals.pow(2).sum() / Z.pow(2).sum())
        if share > FEWEST:
            unit = signals / signals.norm(dim=0)
            yield Band(float(1 - (unit * (P @ unit)).sum(0).mean()), share, unit)


def _polynomials(P: Sparse, coefficients: Tensor, Z: Tensor) -> Tensor:
    """(bands, n, probes): Σ_j c_j T_j(P̃) Z for each row c of Chebyshev coefficients."""
    A, before, now = torch.zeros(len(coefficients), *Z.shape, dtype=Z.dtype), P @ Z, Z
    for block in coefficients.split(AT_ONCE, dim=1):
        waves = []
        for _ in range(block.shape[1]):
            waves.append(now)
            before, now = now, 2 * (P @ now) - before
        A += torch.tensordot(block, torch.stack(waves), 1)
    return A


def _lowest(P: Sparse) -> tuple[NDArray[np.float64], Tensor]:
    """Up to LOWEST frequencies, as many as Lanczos finds in time, and their eigenvectors."""
    columns, rows = P.pattern.columns.numpy(), P.pattern.rows.numpy()
    matrix = sp.csr_array((P.values.numpy(), columns, rows), P.shape)
    start = np.random.default_rng(0).standard_normal(P.shape[0])
    try:
        values, U = eigsh(matrix, LOWEST, which="LA", tol=1e-4, v0=start, maxiter=200)
    except ArpackNoConvergence as stopped:
        values, U = stopped.eigenvalues, stopped.eigenvectors
    order = np.argsort(-values)
    return np.maximum(1 - values[order], 0), torch.tensor(U[:, order])


def _window(low: float, high: float) -> NDArray[np.float64]:
    """(ORDER + 1,) Chebyshev coefficients of the step that is 1 on [low, high], Jackson-damped."""
    left, right = np.arccos(np.clip([high, low], -1, 1))
    j = np.arange(1, ORDER + 1)
    step = np.concatenate(
        [[(right - left) / np.pi], 2 / (np.pi * j) * (np.sin(j * right) - np.sin(j * left))]
    )
    j, angle = np.arange(ORDER + 1), np.pi / (ORDER + 2)
    damping = ((ORDER - j + 2) * np.cos(j * angle) + np.sin(j * angle) / np.tan(angle)) / (
        ORDER + 2
    )
    return np.asarray(step * damping)


def _largest_frequency(P: Sparse, z: Tensor, steps: int = 50) -> float:
    """A lower bound by powers of L̃, which is enough: the last band reaches to 2 anyway."""
    for _ in range(steps):
        z = z - P @ z
        z = z / z.norm()
    return float(1 - (z * (P @ z)).sum())


def _eigenvectors(P: Sparse) -> tuple[NDArray[np.float64], Tensor]:
    """All frequencies λ (n,) from low to high, and their eigenvectors U (n, n)."""
    if P.shape[0] > SMALL:
        raise InputError(
            f"all eigenvectors are computed for graphs of up to {SMALL} nodes, got {P.shape[0]};"
            " use probes instead"
        )
    values, U = torch.linalg.eigh(P.to("cpu", torch.float64).to_dense())
    return 1 - values.flip(0).numpy(), U.flip(1)


Pull = Callable[[Tensor], Tensor]


@contextmanager
def linearised(model: nn.Module, P: Sparse, X: Tensor | Sparse) -> Iterator[tuple[Tensor, Pull]]:
    """The scores (n, k) without dropout, and the product G (n, k) → Jᵀ G (n, d).

    Backwards from the scores, because there are fewer scores than features: k products give J at a
    node, where forward mode would need d.
    """
    training = {name: module.training for name, module in model.named_modules()}
    at = X.to_dense().detach().clone().requires_grad_()
    try:
        with suited_threads(at.numel()):
            with torch.enable_grad():
                scores: Tensor = model.eval()(P, at)

            def pull(G: Tensor) -> Tensor:
                (product,) = torch.autograd.grad(
                    scores, at, G.to(scores), retain_graph=True, materialize_grads=True
                )
                return product

            yield scores.detach(), pull
    finally:
        for name, module in model.named_modules():
            module.training = training[name]


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
    if probes is not None and (probes < 2 or bands < 1):
        raise InputError(
            f"an error bar needs at least 2 probes in at least 1 band, got {probes} in {bands}"
        )
    if not is_symmetric(P):
        raise InputError(
            "P̃ is not symmetric, so it has no frequencies;"
            " use norm symmetric, and both directions of a directed graph"
        )
    found = eigenspaces(P) if probes is None else random_bands(P, bands, probes, seed)
    with linearised(model, P, X) as (scores, pull):
        k = scores.shape[1]
        measured = [
            [_echoes(band, pull, W) for W in _weights(band, k, probes, seed)] for band in found
        ]
    return _separate(found, measured, exact=probes is None)


# What returns of signals at their own frequency: y (s, d), and its share of energy (s,).
Echoes = tuple[Tensor, Tensor]


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
    return torch.stack(y).double().cpu(), torch.stack(purity).double().cpu()


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
        torch.cat([y.mean(0, keepdim=True) for y, _ in band]) if exact else band[0][0]
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
        purity=np.array([float(torch.cat([own for _, own in band]).mean()) for band in measured]),
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


@dataclass(frozen=True, eq=False)
class Influence:
    """I_v(h): Σ |∂ s_v / ∂ x_u| over the nodes u exactly h hops from v, over the same for all u.

    s_v is v's highest score: the one that decides.

    share   (hops + 1,) the mean of I_v over the sampled nodes v; hop 0 is the node itself
    error   (hops + 1,) its standard error; 0 if all nodes were sampled
    nodes   the number of sampled nodes
    silent  the number of these that no feature influences, because every ReLU on the way is closed;
            they are left out of the mean
    """

    share: Floats
    error: Floats
    nodes: int
    silent: int

    @property
    def reach(self) -> float:
        """The mean distance that influence comes from, in hops."""
        return float(self.share @ np.arange(len(self.share)))

    def summary(self) -> Document:
        """The influence as a JSON object."""
        hops = {"share": self.share.tolist(), "error": self.error.tolist()}
        return {**hops, "nodes": self.nodes, "silent": self.silent}

    @classmethod
    def of(cls, summary: Document) -> Influence:
        """The influence that a `summary` was made from."""
        share, error = (np.array(summary[name], np.float64) for name in ("share", "error"))
        return cls(share, error, summary["nodes"], summary["silent"])


def influence(
    model: nn.Module, P: Sparse, X: Tensor | Sparse, *, nodes: int | None = 64, seed: int = 0
) -> Influence:
    """The influence of each hop, averaged over `nodes` random nodes, or over all if None.

    Each node costs one backward pass.
    """
    if nodes is not None and nodes < 2:
        raise InputError(f"an error bar needs at least 2 nodes, got {nodes}")
    A = _links(P)
    sampled = np.random.default_rng(seed).permutation(P.shape[0])[:nodes]
    found = []
    with linearised(model, P, X) as (scores, pull):
        for node in sampled:
            G = torch.zeros_like(scores)
            G[node, scores[node].argmax()] = 1
            strength = pull(G).abs().sum(1).double().cpu().numpy()
            found.append(_by_hop(dijkstra(A, unweighted=True, indices=node), strength))
    return _averaged(found, P.shape[0])


def _averaged(found: Sequence[Floats], n: int) -> Influence:
    """The mean over the sampled nodes that are influenced at all, of n nodes in the graph."""
    heard = [hops / hops.sum() for hops in found if hops.sum() > 0]
    if not heard:
        return Influence(np.zeros(1), np.zeros(1), len(found), len(found))
    shares = np.zeros((len(heard), max(map(len, heard))))
    for row, hops in zip(shares, heard, strict=True):
        row[: len(hops)] = hops
    # Sampling is without replacement: the larger the sample, the fewer nodes are left to vary.
    missing = np.sqrt((1 - len(found) / n) / max(len(heard) - 1, 1))
    return Influence(shares.mean(0), shares.std(0) * missing, len(found), len(found) - len(heard))


def _links(P: Sparse) -> sp.csr_array:
    """(n, n) a one where a node gathers from another."""
    columns, rows = (index.cpu().numpy() for index in (P.pattern.columns, P.pattern.rows))
    return sp.csr_array((np.ones(len(columns)), columns, rows), P.shape)


def _by_hop(distance: Floats, strength: Floats) -> Floats:
    """The sum of the nodes' strength at each distance, up to the last distance with any."""
    near = np.isfinite(distance)
    sums = np.bincount(distance[near].astype(int), strength[near])
    return sums[: np.flatnonzero(sums).max(initial=-1) + 1].astype(np.float64)


Show = Callable[[str], None]
ALPHA = 0.1  # of the PageRank beside the learned filters, if no model has an α of its own


@dataclass(frozen=True)
class Learned:
    """By model, the answers of its deepest network; empty where a question was not asked.

    layers, alpha  of the linear GCN and the PageRank that the filters are compared with
    """

    layers: int
    alpha: float
    responses: Mapping[str, Response]
    influences: Mapping[str, Influence]

    @classmethod
    def of(cls, document: Document, checkups: Sequence[Checkup]) -> Learned:
        """The answers that a `document` holds, of networks with these checkups."""
        return cls(
            layers=max(one.layers for one in checkups),
            alpha=_alpha(checkups),
            responses={name: Response.of(one) for name, one in document.get("filter", {}).items()},
            influences={
                name: Influence.of(one) for name, one in document.get("influence", {}).items()
            },
        )

    def document(self) -> Document:
        """The answers as a JSON object, without the questions that were not asked."""
        parts = {
            "filter": {model: one.summary() for model, one in self.responses.items()},
            "influence": {model: one.summary() for model, one in self.influences.items()},
        }
        return {name: part for name, part in parts.items() if part}


def _alpha(checkups: Sequence[Checkup]) -> float:
    own = (float(one.settings["alpha"]) for one in checkups if "alpha" in one.settings)
    return next(own, ALPHA)


def learn(
    graph: Graph, checkups: Sequence[Checkup], *, filters: bool, seed: int, show: Show
) -> Learned:
    """Ask the deepest network of each model that did not diverge.

    filters  whether to ask; else there are no answers
    seed     of the random signals and nodes
    show     told what is computed next
    """
    ordered = sorted(checkups, key=lambda one: one.layers) if filters else ()
    deepest = {one.model: one.result for one in ordered if one.result is not None}
    responses, influences = {}, {}
    for model, result in deepest.items():
        network, task = result.network(graph)
        show(f"{model}: filter")
        responses[model] = response(network, task.P, task.X, seed=seed)
        show(f"{model}: influence of each hop")
        influences[model] = influence(network, task.P, task.X, seed=seed)
    layers = max(one.layers for one in checkups)
    return Learned(layers, _alpha(checkups), responses, influences)


def refuse_filters(graph: Graph, plans: Sequence[Plan]) -> None:
    """Refuse, before any training, models without frequencies or with different ones."""
    matrices = [make_adjacency(graph, plan).whole for plan in plans]
    for plan, P in zip(plans, matrices, strict=True):
        if isinstance(P, RelationalMatrix):
            raise InputError(
                f"{plan.model} has several propagation matrices, and a filter is of one;"
                " leave out the model or the filter (--filter)"
            )
        if not is_symmetric(P):
            raise InputError(
                f"{plan.model}'s P̃ on {graph.name} is not symmetric, which a filter needs;"
                " leave out the filter (--filter)"
            )
        if not torch.equal(P.values, matrices[0].values):
            raise InputError(
                f"filters are compared on one P̃, and {', '.join(plan.model for plan in plans)}"
                " have different ones; ask for one model at a time"
            )
