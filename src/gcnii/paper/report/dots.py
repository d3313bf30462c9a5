"""A cell's seeds as dots, over the printed mean and its standard deviation: a drawing of a few
hundred bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isfinite

from markupsafe import Markup

from gcnii.paper.tables.printed import Printed

LEAST = 1.0  # points to either side: a narrower scale would make noise look like much


def dot_plot(
    scores: Sequence[float],
    mean: float,
    printed: Printed | None,
    width: int = 104,
    radius: float = 2,
) -> Markup:
    """An <svg>: a dot a seed, a tall line at the mean if there is one, a band and a dashed line for
    what is printed.
    """
    scores = sorted(filter(isfinite, scores))
    if not scores:
        return Markup()
    height, known = 12 * radius, isfinite(mean)  # there is none where a run has no score
    centre, sd = (printed.mean, printed.sd or 0) if printed else (mean if known else scores[0], 0)
    reach = 1.1 * max(abs(scores[0] - centre), abs(scores[-1] - centre), sd, LEAST)

    def x(score: float) -> float:
        return round(radius + (width - 2 * radius) * (score - centre + reach) / (2 * reach), 1)

    parts = []
    if printed:
        left, right = x(centre - sd), x(centre + sd)
        parts.append(
            f'<rect class="band" x="{left}" y="0" width="{right - left:.1f}" height="{height}"/>'
        )
        parts.append(f'<path class="printed" d="M{x(centre)} 0v{height}"/>')
    places = " ".join(
        f"M{a} {b}h0" for a, b in _stacked([x(score) for score in scores], height, radius)
    )
    parts.append(f'<path class="dots" stroke-width="{2 * radius}" d="{places}"/>')
    title = f"{_count(len(scores))} from {scores[0]:.1f} to {scores[-1]:.1f}"
    if known:
        parts.append(f'<path class="mean" d="M{x(mean)} 1v{height - 2}"/>')
        title += f", mean {mean:.1f}"
    if printed:
        title += f"; printed {printed.mean:g}" + (f" ± {printed.sd:g}" if printed.sd else "")
    size = f'viewBox="0 0 {width} {height:g}" width="{width}" height="{height:g}"'
    return Markup(
        f'<svg class="plot" {size} role="img"><title>{title}</title>{"".join(parts)}</svg>'
    )


def _stacked(places: Sequence[float], height: float, radius: float) -> list[tuple[float, float]]:
    """Dots that would hide one another go below and above the middle in turn, as far as there is
    room.
    """
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
