"""What the paper says of its figures, and whether our numbers agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance

from scipy.stats import ttest_ind

SHALLOW, DEEP = 2, 64  # layers; the paper's sentences are of these two


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, whether it held (None: undecided), and the figure behind that."""

    text: str
    held: bool | None
    figure: str

    @property
    def word(self) -> str:
        """`held`, `not held` or `undecided`."""
        return {True: "held", False: "not held", None: "undecided"}[self.held]


@dataclass(frozen=True)
class Slope:
    """A straight line through weighted points: its slope, and the slope's 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def rises(self) -> bool | None:
        """None if the interval contains 0."""
        return None if self.low <= 0 <= self.high else self.value > 0

    def __str__(self) -> str:
        interval = f"95 %: {self.low:+.1f} to {self.high:+.1f}"
        return f"{self.value:+.1f} points each time the degree doubles ({interval})"


def slope(points: Iterable[tuple[float, float, float]]) -> Slope | None:
    """Through (x, y, variance of y), weighted by the inverse variance; None for a single x."""
    points = [(x, y, 1 / variance) for x, y, variance in points]
    if len({x for x, _, _ in points}) < 2:
        return None
    weight = sum(w for _, _, w in points)
    middle = sum(w * x for x, _, w in points) / weight
    spread = sum(w * (x - middle) ** 2 for x, _, w in points)
    value = sum(w * (x - middle) * y for x, y, w in points) / spread
    reach = 1.959964 / sqrt(spread)
    return Slope(value, value - reach, value + reach)


def above(a: Sequence[float], b: Sequence[float]) -> bool | None:
    """Whether a has the higher mean, by Welch's t-test, two-sided at 5 %; None if undecided."""
    if min(len(a), len(b)) < 2:
        return None
    if variance(a) + variance(b) == 0:  # a constant has no t
        return fmean(a) > fmean(b)
    return fmean(a) > fmean(b) if ttest_ind(a, b, equal_var=False).pvalue < 0.05 else None


def first(depths: Iterable[int], fallen: Callable[[int], bool]) -> int | None:
    """The first depth for which `fallen` is true; None if there is none."""
    return next((depth for depth in depths if fallen(depth)), None)
