"""Estimate: a number that may have been sampled."""

from __future__ import annotations

from math import isnan, sqrt
from typing import NamedTuple


class Estimate(NamedTuple):
    """A number and its standard error, which is zero where nothing was sampled."""

    value: float
    error: float = 0.0

    def divided(self, by: float) -> Estimate:
        """The estimate divided by an exact number."""
        return Estimate(self.value / by, self.error / by)

    def less(self, other: Estimate) -> Estimate:
        """The difference of two independent estimates; NaN, without an error, if either is NaN."""
        value = self.value - other.value
        if isnan(value):
            return Estimate(value)
        return Estimate(value, sqrt(self.error**2 + other.error**2))
