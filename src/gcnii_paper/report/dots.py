"""A cell's seeds as dots, over the printed mean and its standard deviation, in a small drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import isfinite

from markupsafe import Markup

from gcnii_paper.tables.printed import Printed

HEIGHT = 12  # radii of a dot
LEAST = 1.0  # points to either side: a narrower scale would make noise look large

Scale = Callable[[float], float]  # from a score to a place on the x axis


def dot_plot(
    scores: Sequence[float],
    mean: float,
    printed: Printed | None,
    width: int = 104,
    radius: float = 2,
) -> Markup:
    """An <svg> with one dot per seed, a tall line at the mean, and what the paper prints.

    The printed mean is a dashed line, its standard deviation a band.  There is no line at a mean
    that is NaN, as it is if a run has no score.
    """
    scores = sorted(filter(isfinite, scores))
    if not scores:
        return Markup()
    height, x = HEIGHT * radius, _scale(scores, mean, printed, width, radius)
    parts = "".join(_parts(scores, mean, printed, x, radius))
    size = f'viewBox="0 0 {width} {height:g}" width="{width}" height="{height:g}"'
    title = _title(scores, mean, printed)
    return Markup(f'<svg class="plot" {size} role="img"><title>{title}</title>{parts}</svg>')


def _scale(
    scores: Sequence[float], mean: float, printed: Printed | None, width: int, radius: float
) -> Scale:
    """The printed mean is in the middle, else our own, else the lowest score."""
    own = mean if isfinite(mean) else scores[0]
    centre, sd = (printed.mean, printed.sd or 0) if printed else (own, 0)
    reach = 1.1 * max(abs(scores[0] - centre), abs(scores[-1] - centre), sd, LEAST)

    def x(score: float) -> float:
        return round(radius + (width - 2 * radius) * (score - centre + reach) / (2 * reach), 1)

    return x


def _parts(
    scores: Sequence[float], mean: float, printed: Printed | None, x: Scale, radius: float
) -> Iterator[str]:
    height = HEIGHT * radius
    if printed:
        sd = printed.sd or 0
        left, right = x(printed.mean - sd), x(printed.mean + sd)
        size = f'width="{right - left:.1f}" height="{height}"'
        yield f'<rect class="band" x="{left}" y="0" {size}/>'
        yield f'<path class="printed" d="M{x(printed.mean)} 0v{height}"/>'
    dots = _stacked([x(score) for score in scores], height, radius)
    places = " ".join(f"M{a} {b}h0" for a, b in dots)
    yield f'<path class="dots" stroke-width="{2 * radius}" d="{places}"/>'
    if isfinite(mean):
        yield f'<path class="mean" d="M{x(mean)} 1v{height - 2}"/>'


def _title(scores: Sequence[float], mean: float, printed: Printed | None) -> str:
    title = f"{_count(len(scores))} from {scores[0]:.1f} to {scores[-1]:.1f}"
    if isfinite(mean):
        title += f", mean {mean:.1f}"
    if printed:
        title += f"; printed {printed.mean:g}" + (f" ± {printed.sd:g}" if printed.sd else "")
    return title


def _stacked(places: Sequence[float], height: float, radius: float) -> list[tuple[float, float]]:
    """The dots' (x, y); those that would overlap go below and above the middle in turn."""
    seen: Counter[int] = Counter()
    dots = []
    for place in places:
        column = round(place / (2 * radius))
        step = seen[column]
        seen[column] += 1
        away = (step + 1) // 2 * radius * (1 if step % 2 else -1)
        dots.append((place, round(min(max(height / 2 + away, radius), height - radius), 1)))
    return dots


def _count(seeds: int) -> str:
    return "1 seed" if seeds == 1 else f"{seeds} seeds"
