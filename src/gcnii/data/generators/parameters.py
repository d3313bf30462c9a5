"""Checks the parameters of generated graphs and of readers."""

import numpy as np

from gcnii.errors import DataError


def check(
    owner: str, name: str, value: float, low: float, high: float = np.inf, *, whole: bool = False
) -> None:
    """Raise DataError unless the value is a (whole) number in low…high."""
    kinds = (int, np.integer) if whole else (int, float, np.number)
    number = isinstance(value, kinds) and not isinstance(value, bool)
    if not number or not low <= value <= high or not np.isfinite(value):
        kind = "a whole number" if whole else "a number"
        bounds = f"of at least {low}" if high == np.inf else f"in {low}…{high}"
        raise DataError(f"{name} of {owner} must be {kind} {bounds}, got {value!r}")
