"""What a linear map can read from a hidden state: logistic regression on the training nodes."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax
from threadpoolctl import threadpool_limits
from torch import Tensor

from gcnii.graph import Graph, Role
from gcnii.targets.objective import Objective

PENALTY = 1e-3  # on ‖W‖²/2, beside the mean loss of a node
# of a state's size: smaller differences between nodes are float32's rounding, not information
ROUNDING = 1e-6
STEPS = 100  # of L-BFGS at most

Array = NDArray[np.float64]


class Probe:
    """The labels of a graph and one of its splits, made ready to probe state after state."""

    def __init__(self, graph: Graph, split: int = 0):
        self.train = graph.splits[split].train
        self.objective = Objective.of(graph, [split], torch.device("cpu"))
        y = graph.labels[self.train]
        self.Y: Array = (y if graph.multilabel else np.eye(graph.k)[y]).astype(np.float64)

    @property
    def chance(self) -> float:
        """The validation score of the most common label; 0 where nodes have several labels."""
        y = self.objective.y[self.objective.masks["val"][0]]
        return float(torch.bincount(y).max()) / len(y) if y.ndim == 1 else 0.0

    def score(self, H: Tensor, role: Role = "val") -> float:
        """The score of the best linear map of H (n, width): accuracy, or micro-F1 if multilabel."""
        Z = centred(H.detach().cpu().double().numpy())
        # On matrices this small BLAS threads wait for one another and block torch's threads.
        with threadpool_limits(1, user_api="blas"):
            Z = Z @ _span(Z[self.train])
            W, b = _regression(Z[self.train], self.Y, one_of_many=self.objective.y.ndim == 1)
            S = Z @ W + b
        return float(self.objective.score(torch.tensor(S)[None], role))


def centred(H: Array) -> Array:
    """The rows less their mean, scaled to mean square length 1; zero if they differ by rounding."""
    Z = H - H.mean(0)
    length, size = np.linalg.norm(Z), np.linalg.norm(H)
    return Z * np.sqrt(len(H)) / length if length > ROUNDING * size else np.zeros_like(H)


def _span(Z: Array) -> Array:
    """(width, ≤ rows) a basis that holds the best W: the span of the training nodes, if smaller."""
    return np.eye(Z.shape[1]) if len(Z) >= Z.shape[1] else np.linalg.qr(Z.T)[0]


def _regression(Z: Array, Y: Array, one_of_many: bool) -> tuple[Array, Array]:
    """W (width, k) and b (k,) that minimise the mean cross-entropy + PENALTY/2 ‖W‖²."""
    width, k = Z.shape[1], Y.shape[1]

    def loss(weights: Array) -> tuple[float, Array]:
        W, b = weights[:-k].reshape(width, k), weights[-k:]
        S = Z @ W + b
        if one_of_many:
            value, G = -(Y * log_softmax(S, 1)).sum() / len(Z), (softmax(S, 1) - Y) / len(Z)
        else:
            value, G = (np.logaddexp(0, S) - Y * S).sum() / Y.size, (expit(S) - Y) / Y.size
        return value + PENALTY / 2 * (W**2).sum(), np.append(Z.T @ G + PENALTY * W, G.sum(0))

    found = minimize(
        loss, np.zeros(width * k + k), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
    )
    return found.x[:-k].reshape(width, k), found.x[-k:]
