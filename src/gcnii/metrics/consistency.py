"""How far several views' predictions are from what they agree on (GRAND; Feng et al. 2020)."""

from __future__ import annotations

from math import log

from torch import Tensor
from torch.nn.functional import logsigmoid


def disagreement(scores: Tensor, sharpen: Tensor, *, multilabel: bool) -> Tensor:
    """The mean over views and nodes of ‖p - sharp(p̄)‖², for scores (r, S, n, k): (r,).

    p̄ is the mean of the views' probabilities, and no gradient passes through sharp(p̄):

        sharp(p)_c = p_c^(1/T) / Σ_j p_j^(1/T)          one label per node
        sharp(p)   = p^(1/T) / (p^(1/T) + (1-p)^(1/T))  several, each by itself

    sharpen  (r,) T; its type is that of the numbers here
    """
    scores, T = scores.to(sharpen.dtype), sharpen[:, None, None]
    if multilabel:
        p = scores.sigmoid()
        odds = _log_mean(logsigmoid(scores)) - _log_mean(logsigmoid(-scores))
        target = (odds / T).sigmoid()
    else:
        log_p = scores.log_softmax(-1)
        p, target = log_p.exp(), (_log_mean(log_p) / T).softmax(-1)
    return (p - target.detach()[:, None]).square().sum(-1).mean((1, 2))


def _log_mean(log_p: Tensor) -> Tensor:
    """The logarithm of the mean over the views: (r, S, n, k) → (r, n, k)."""
    return log_p.detach().logsumexp(1) - log(log_p.shape[1])
