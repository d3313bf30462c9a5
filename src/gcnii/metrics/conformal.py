"""Conformal prediction: sets of classes that hold the true one with a chosen probability.

Split conformal prediction: how badly do the true classes of held-out nodes fit their probabilities?
A class is in a node's set if it fits no worse than all but a share 1 - coverage of those.  The
promise is on average over nodes that are drawn as the held-out ones were, and rests on nothing
else: a bad model has large sets.
"""

from __future__ import annotations

from math import ceil, inf
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import InputError

Sets: TypeAlias = Literal["lac", "aps"]


def refuse_coverage(coverage: float, kind: Sets) -> None:
    """Raise InputError if no set can have such a coverage, or be of this kind."""
    number = isinstance(coverage, int | float)
    if not number or not 0 < coverage < 1:
        raise InputError(f"coverage must be a number between 0 and 1, such as 0.9, got {coverage}")
    if kind not in get_args(Sets):
        raise InputError(f"kind must be lac or aps, got {kind!r}")


def misfit(P: NDArray[np.float64], kind: Sets, seed: int = 0) -> NDArray[np.float64]:
    """(n, k) how badly each class fits probabilities P.

    lac  1 - p of the class (Sadinle et al., 2019): the smallest sets on average
    aps  the probability of all classes that are likelier, and a random part of its own (Romano et
         al., 2020): larger sets, that adapt to the node
    """
    if kind == "lac":
        return 1 - P
    order = np.argsort(-P, axis=1, kind="stable")
    sums = np.take_along_axis(P, order, 1).cumsum(1)
    likelier = np.empty_like(P)
    np.put_along_axis(likelier, order, sums, 1)
    part = np.random.default_rng(seed).random((len(P), 1))
    return likelier - part * P


def largest_misfit(misfits: NDArray[np.float64], coverage: float) -> float:
    """The ⌈(n + 1) coverage⌉-th smallest of n misfits of true classes; infinite if n is too small.

    The 1 is the next node: it is as likely to fall into any of the n + 1 places between them.
    """
    # A product such as 1000 · 0.9 = 900.0000000000001 must not ask for one place more.
    place = ceil((len(misfits) + 1) * coverage - 1e-9)
    return inf if place > len(misfits) else float(np.sort(misfits)[place - 1])


def conformal_sets(
    P: NDArray[np.float64],
    held_out: NDArray[np.float64],
    y: NDArray[np.int64],
    coverage: float,
    kind: Sets = "lac",
    seed: int = 0,
) -> NDArray[np.bool_]:
    """(n, k) whether a class is in a node's set.

    held_out, y  probabilities (m, k) and true classes (m,) of the nodes that set the bound
    seed         of the random parts of aps, which are not those of the held-out nodes
    """
    true = misfit(held_out, kind, 2 * seed + 1)[np.arange(len(y)), y]
    return misfit(P, kind, 2 * seed) <= largest_misfit(true, coverage)
