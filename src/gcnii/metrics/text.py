"""Scores and groups of degrees as text; scores are printed in per cent, as in the paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def percent(score: float) -> str:
    """0.8534 → 85.3; a dash for NaN, where there was nothing to score."""
    return "–" if score != score else f"{100 * score:.1f}"


def mean_and_spread(scores: NDArray[np.float64]) -> str:
    """`85.3 ± 0.4 (10 runs)`: mean and sample standard deviation (ddof 1) over the runs."""
    if len(scores) == 1:
        return f"{percent(scores[0])} (1 run)"
    return f"{percent(scores.mean())} ± {percent(scores.std(ddof=1))} ({len(scores)} runs)"


def span(low: int, below: float) -> str:
    """A group of degrees, `low` to below `below`: 1, 2–3, 4–7, …"""
    return str(low) if below == low + 1 else f"{low}–{below - 1:g}"
