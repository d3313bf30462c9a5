"""Estimate: a number that may have been sampled."""

from typing import NamedTuple


class Estimate(NamedTuple):
    """A number and its standard error, which is zero where nothing was sampled."""

    value: float
    error: float = 0.0
