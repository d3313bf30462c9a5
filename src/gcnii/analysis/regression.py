"""Linear maps from features or hidden states to labels: what a probe reads, and a stand-in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax

from gcnii.graph import Features

Floats = NDArray[np.float64]


def regression(
    X: Features, Y: Floats, exclusive: bool, over: int, *, ridge: float, steps: int
) -> tuple[Floats, Floats]:
    """Weights W (d, k) and bias (k,) that minimise cross-entropy / over + ridge/2 ‖W‖²; convex.

    Y          (n, k) labels, or probabilities
    exclusive  whether a row has one label (softmax), or several (a sigmoid of each)
    steps      of L-BFGS, at most
    """
    from scipy.optimize import minimize  # takes a quarter of a second

    d, k = X.shape[1], Y.shape[1]

    def loss(numbers: Floats) -> tuple[float, Floats]:
        W, b = numbers[: d * k].reshape(d, k), numbers[d * k :]
        scores = X @ W + b
        if exclusive:
            logs = log_softmax(scores, 1)
            entropy = -(Y * logs).sum() / over
            error = (np.exp(logs) - Y) / over
        else:
            entropy = -(Y * log_expit(scores) + (1 - Y) * log_expit(-scores)).sum() / over
            error = (expit(scores) - Y) / over
        slope = np.concatenate([(X.T @ error + ridge * W).ravel(), error.sum(0)])
        return entropy + ridge / 2 * (W**2).sum(), slope

    start, options = np.zeros((d + 1) * k), {"maxiter": steps}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return found[: d * k].reshape(d, k), found[d * k :]
