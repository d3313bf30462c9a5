"""Labels that spread along the edges: label propagation, and Correct & Smooth.

Edges count in both directions, with what their weights count for a training (`auto`).  New nodes
with edges of one direction, beside a graph without directions, change nothing for its nodes.  Both
use the labels of the training nodes alone (`Known`); what is chosen is chosen on the validation
nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import ceil, log
from typing import Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from gcnii.errors import check_number
from gcnii.files import NOTHING, Document, Only, check
from gcnii.graph import Graph, Split
from gcnii.graph.past import past
from gcnii.members.known import Known
from gcnii.propagation.adjacency import adjacency
from gcnii.targets import LabelTarget, target_of
from gcnii.targets.target import Floats

Kind = TypeVar("Kind")

ALPHAS = (0.5, 0.9, 0.99)  # how much of a label is the neighbours'
CORRECT, SMOOTH = (0.5, 0.9), (0.2, 0.5, 0.8)
STEPS, LEFT = 50, 1e-7  # at most; and what is on its way after the last that matters
LINKS = 200_000_000  # edges × labels, beyond which there is little choice and few steps
TINY = 1e-12  # what rounding can leave
LARGEST = 1000  # by which a correction is multiplied, at most
UNSURE = 0.01  # of each probability that is judged, that it may be any label


@dataclass(frozen=True)
class LabelPropagation:
    """Y ← α S Y + (1 - α) Y0 from the training labels, with S = D^-½ A D^-½ (Zhou et al. 2003).

    A node that no label reaches has the shares of the training nodes.  Numbers spread as labels do:
    the answer is a mean of the training nodes' around it, by how near they are.  A training node is
    answered by the others: its own label is left out, also where it returns from a neighbour; what
    would return over a longer way than there and back is not, because finding it takes a solution
    for each node.
    """

    alpha: float

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, 0, 1)

    @classmethod
    def fit(cls, graph: Graph, split: Split) -> LabelPropagation:
        """That with the lowest log loss, or squared error, on the validation nodes."""
        known = Known.of(graph, split)
        S = symmetric(past(graph, "val"), known)
        tried = [cls(alpha) for alpha in _few(ALPHAS, S, known)]
        return _best(((one, one.spread(S, known)) for one in tried), graph, split)

    def __call__(self, graph: Graph, known: Known) -> Floats:
        """(n, k) probabilities, or values."""
        return self.spread(symmetric(graph, known), known.reaching(graph.n))

    def spread(self, S: sp.csr_array, known: Known) -> Floats:
        """The same over a matrix that is there already."""
        # The last column says how much of any training label has come to a node.
        start = np.column_stack([known.Y, known.train])
        Y = propagated(S, start, self.alpha)
        back = np.asarray(S.multiply(S).sum(1)).ravel()  # the diagonal of S²
        Y -= (1 - self.alpha) * (1 + self.alpha**2 * back)[:, None] * start
        return self.shares_of(Y, known)

    def shares_of(self, Y: Floats, known: Known) -> Floats:
        """(n, k) of what has come to nodes: of each label, and of any (n, k + 1)."""
        come = np.where(Y[:, -1:] > TINY, Y[:, -1:], 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            # Numbers can have any sign, and are turned back into units once they are means.
            if known.deviations is not None:
                return known.answers(np.where(come > 0, Y[:, :-1] / come, 0))
            return np.where(come > 0, np.maximum(Y[:, :-1], 0) / come, known.shares)

    def document(self) -> Document:
        return asdict(self)

    @classmethod
    def of(cls, document: Document) -> LabelPropagation:
        """What `document` gave; InputError for anything else."""
        check(document, Only({"alpha": float}))
        return cls(**document)


@dataclass(frozen=True)
class CorrectAndSmooth:
    """Another's answers, corrected and smoothed over the graph (Huang et al. 2021).

    Of numbers, correcting is the residual propagation of Jia and Benson (2020).

    Correct: the errors Y - P of the training nodes spread, and are added to P.  Smooth: the
    training nodes get their own labels, and the rows spread.  A training node's own label is
    therefore part of its answer; no other node's is.

    correct  α of the errors
    scale    by which the mean error around a node is multiplied; 0: no correction; None: errors
             have the mean size of those of the training nodes (autoscale)
    smooth   α of the probabilities; 0: no smoothing
    """

    correct: float = 0.9
    scale: float | None = None
    smooth: float = 0.8

    def __post_init__(self) -> None:
        check_number("correct", self.correct, 0, 1)
        check_number("smooth", self.smooth, 0, 1)
        if self.scale is not None:
            check_number("scale", self.scale, 0, LARGEST)

    @classmethod
    def fit(cls, P: Floats, graph: Graph, split: Split) -> CorrectAndSmooth:
        """The lowest log loss on the validation nodes: first of the corrections, then of both.

        P  (n, k) probabilities of all nodes
        """
        known = Known.of(graph, split)
        S = symmetric(past(graph, "val"), known)
        kinds = [cls(scale=0.0), cls(scale=1.0)]
        kinds += [cls(correct=alpha) for alpha in _few(CORRECT, S, known)]
        corrected = ((one, one.corrected(P, S, known)) for one in kinds)
        best = _best(corrected, graph, split)
        Z = best.corrected(P, S, known)
        both = [replace(best, smooth=alpha) for alpha in (0.0, *_few(SMOOTH, S, known))]
        return _best(((one, one.smoothed(Z, S, known)) for one in both), graph, split)

    def __call__(self, P: Floats, graph: Graph, known: Known) -> Floats:
        """(n, k) probabilities, of those that another gave."""
        S, known = symmetric(graph, known), known.reaching(graph.n)
        return self.smoothed(self.corrected(P, S, known), S, known)

    def corrected(self, P: Floats, S: Spreads, known: Known, size: float | None = None) -> Floats:
        """Z = P and the errors that have come to each node.

        size  of the training nodes' errors, the mean; default: those of the nodes that are here
        """
        if self.scale == 0 or (size is None and not known.train.any()):
            return P
        train, P = known.train[:, None], known.standard(P)
        E = (known.Y - P) * train
        if self.scale is None:
            error = propagated(S, E, self.correct)
            size = np.abs(E).sum() / known.train.sum() if size is None else size
            own = np.abs(error).sum(1, keepdims=True)
            grown = np.divide(size, own, out=np.zeros_like(own), where=own * LARGEST > size)
        else:
            error, grown = _mean_error(S, E, known, self.correct), np.float64(self.scale)
        Z = P + np.where(train, E, error * grown)
        if known.deviations is not None:
            return known.answers(Z)
        Z = np.clip(Z, 0, 1)
        return Z / np.maximum(Z.sum(1, keepdims=True), TINY) if known.exclusive else Z

    def smoothed(self, Z: Floats, S: Spreads, known: Known) -> Floats:
        """Rows that have spread, those of the training nodes being their labels."""
        start = np.where(known.train[:, None], known.Y, known.standard(Z))
        G = propagated(S, np.column_stack([start, np.ones(len(start))]), self.smooth)
        return known.answers(np.asarray(G[:, :-1] / G[:, -1:]))

    def document(self) -> Document:
        return asdict(self)

    @classmethod
    def of(cls, document: Document) -> CorrectAndSmooth:
        """What `document` gave; InputError for anything else."""
        check(document, Only({"correct": float, "scale": (float, NOTHING), "smooth": float}))
        return cls(**document)


def symmetric(graph: Graph, known: Known) -> sp.csr_array:
    """S = D^-½ A D^-½, without self-loops."""
    A = adjacency(graph, "both" if known.directed else "out", "remove", "auto")
    size = np.asarray(A.sum(1)).ravel()
    scale = sp.diags_array(np.divide(1, np.sqrt(size), out=np.zeros(graph.n), where=size > 0))
    return sp.csr_array(scale @ A @ scale)


class Spreads(Protocol):
    """What labels spread over: S, or some rows of it that know of the others."""

    @property
    def nnz(self) -> int:
        """The number of S's entries."""

    def __matmul__(self, Y: Floats, /) -> Floats: ...


def propagated(S: Spreads, start: Floats, alpha: float) -> Floats:
    """(1 - α) (I - α S)⁻¹ start, by as many steps as matter."""
    if alpha == 0:
        return start.copy()
    Y = start
    most = STEPS // 5 if S.nnz * start.shape[1] > LINKS else STEPS
    for _ in range(min(most, ceil(log(LEFT) / log(alpha))) if alpha < 1 else most):
        Y = alpha * (S @ Y) + (1 - alpha) * start
    return Y


def _mean_error(S: Spreads, E: Floats, known: Known, alpha: float) -> Floats:
    """The mean of the training nodes' errors around each node."""
    weight = propagated(S, known.train[:, None].astype(np.float64), alpha)
    return np.divide(propagated(S, E, alpha), weight, out=np.zeros_like(E), where=weight > TINY)


def _few(alphas: tuple[float, ...], S: sp.csr_array, known: Known) -> tuple[float, ...]:
    """All choices, or the middle one where each takes long."""
    return alphas if S.nnz * known.Y.shape[1] <= LINKS else alphas[len(alphas) // 2 :][:1]


def _best(tried: Iterator[tuple[Kind, Floats]], graph: Graph, split: Split) -> Kind:
    """The first of those with the lowest log loss on the validation nodes, if there are any."""
    y, target = graph.labels[split.val], target_of(graph)

    def loss(P: Floats) -> float:
        if not isinstance(target, LabelTarget):
            return float(target.badness(P[split.val], y).sum())
        even = 1 / target.k if target.exclusive else 0.5
        # One label that was thought impossible must not decide.
        sure = (1 - UNSURE) * P[split.val] + UNSURE * even
        return float(target.log_losses(sure, y).sum())

    return min(((loss(P), i, one) for i, (one, P) in enumerate(tried)), key=lambda it: it[:2])[2]
