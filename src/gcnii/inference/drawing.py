"""The neighbourhood of an explained node as a drawing: who, how strong, which label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import expm1
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gcnii.errors import InputError, visible
from gcnii.inference.explain import Explanation, NodeShare
from gcnii.report.figures import FAMILY, GREY, OTHERS, LineStyle, save
from gcnii.report.html import short
from gcnii.targets.scores import number_shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation


Positions = NDArray[np.float64]
LONGEST = 22  # letters of a name
STYLES = (*OTHERS[:2], FAMILY["gcnii"], *OTHERS[2:4], FAMILY["gcnii-star"])
REST = LineStyle(GREY, "h", "-")  # of the labels beyond these
SIZES = (60, 520)  # points², from a share of nothing to the largest
WIDTHS = (0.6, 7.0)  # points, of an edge that changes nothing, and of one that changes all
HOW_TO_READ = (
    "below a name: what its features add to the score\n"
    "width of an edge: how far the probability falls without it"
)
HOW_TO_READ_NUMBERS = (
    "below a name: what its features add to the number\n"
    "width of an edge: how far the number moves without it, beside the widest"
)
LITTLE = 1e-3  # of the probability: an edge that moves less is neither for nor against it
CLOSER = 0.75  # power of the hop that is its circle's radius: the first one needs most room
ROUNDS = 60  # of moving names apart
FOR, AGAINST, NEUTRAL = "#333333", "#C44E52", "#BBBBBB"


def write_drawing(found: Explanation, path: Path, *, overwrite: bool = False) -> Path:
    """Write the drawing to a .png or .svg file."""
    if path.suffix not in (".png", ".svg"):
        raise InputError(f"a drawing must end in .png or .svg, got {path.name}")
    return save(draw(found), path, overwrite=overwrite)


def draw(found: Explanation) -> Figure:
    """The explained node in the middle, each hop on a ring around it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 7.2), layout="constrained")
    axes = figure.add_subplot()
    nodes = found.surroundings
    places = layout(nodes, found.joined)
    most = max((abs(one[2]) for one in found.joined), default=0.0) if found.number else None
    _draw_links(axes, places, found.joined, most)
    styles = _styles(found.groups)
    _draw_nodes(axes, places, found, styles)
    names = _draw_names(axes, places, nodes)
    said = f", p = {found.probability:.2f}"
    how = HOW_TO_READ
    if found.number:
        said = f" = {number_shown(found.probability)}"
        how = HOW_TO_READ_NUMBERS
    title = f"{_short(found.node)}: {_short(found.label)}{said}"
    axes.set_title(f"{title}\n{how}", fontsize=10, parse_math=False)
    axes.set_aspect("equal")
    axes.margins(0.18)
    axes.axis("off")
    _legend(figure, styles, found)
    _part(figure, names)
    return figure


def layout(nodes: Sequence[NodeShare], joined: Sequence[tuple[int, int, float]]) -> Positions:
    """(nodes, 2) places: each hop on a circle of its own, each node in the sector of its parent.

    A sector is as wide as the number of nodes at the rim of its branch.
    """
    children = _tree(nodes, joined)
    places = np.zeros((len(nodes), 2))

    def rim(node: int) -> int:
        return sum(map(rim, children[node])) or 1

    def put(node: int, start: float, end: float, radius: int) -> None:
        middle = (start + end) / 2
        places[node] = radius**CLOSER * np.array([np.cos(middle), np.sin(middle)])
        whole = rim(node)
        for child in children[node]:
            stop = start + (end - start) * rim(child) / whole
            put(child, start, stop, radius + 1)
            start, whole = stop, whole - rim(child)

    put(0, np.pi / 2, np.pi / 2 + 2 * np.pi, 0)
    return places


def _tree(nodes: Sequence[NodeShare], joined: Sequence[tuple[int, int, float]]) -> list[list[int]]:
    """The children of each node: one hop further, and joined to it by their strongest such link."""
    parent: dict[int, tuple[float, int]] = {}
    for u, v, effect in joined:
        for near, far in ((u, v), (v, u)):
            hops = nodes[near].hop, nodes[far].hop
            if hops[0] is not None and hops[1] == hops[0] + 1:
                parent[far] = max(parent.get(far, (-1.0, near)), (abs(effect), near))
    children: list[list[int]] = [[] for _ in nodes]
    for far, (_, near) in sorted(parent.items()):
        children[near].append(far)
    return children


def _draw_links(
    axes: Axes,
    places: Positions,
    joined: Sequence[tuple[int, int, float]],
    most: float | None = None,
) -> None:
    """Edges by their effect on the logarithm of a probability; on a number, beside the largest."""
    for u, v, effect in sorted(joined, key=lambda link: abs(link[2])):
        strength = -expm1(-abs(effect)) if most is None else abs(effect) / (most or 1.0)
        against, matters = effect < 0, strength >= LITTLE
        colour = NEUTRAL if not matters else AGAINST if against else FOR
        axes.plot(
            *places[[u, v]].T,
            color=colour,
            linewidth=WIDTHS[0] + (WIDTHS[1] - WIDTHS[0]) * strength,
            linestyle="--" if matters and against else "-",
            alpha=0.4 + 0.4 * strength,
            zorder=1,
        )


def _draw_nodes(
    axes: Axes, places: Positions, found: Explanation, styles: Mapping[str, LineStyle]
) -> None:
    largest = max(abs(one.share) for one in found.surroundings) or 1
    for i, (place, one) in enumerate(zip(places, found.surroundings, strict=True)):
        style = styles[found.groups[i]]
        size = SIZES[0] + (SIZES[1] - SIZES[0]) * abs(one.share) / largest
        axes.scatter(
            [place[0]],
            [place[1]],
            size,
            c=style.colour,
            marker=style.marker,
            zorder=3,
            edgecolors="white" if i else "black",  # the explained node comes first
            linewidths=None if i else 2.2,
        )


def _draw_names(axes: Axes, places: Positions, nodes: Sequence[NodeShare]) -> list[Annotation]:
    """Each name outside of its node, away from the middle, with its share below it."""
    names, box = [], {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.8}
    for i, (place, one) in enumerate(zip(places, nodes, strict=True)):
        x, y = place / (np.hypot(*place) or 1) if i else (0.0, -1.0)
        name = axes.annotate(
            f"{_short(one.node)}\n{one.share:+.3f}",
            (place[0], place[1]),
            (13 * x, 13 * y),
            textcoords="offset points",
            ha="left" if x > 0.35 else "right" if x < -0.35 else "center",
            va="bottom" if y > 0.35 else "top" if y < -0.35 else "center",
            fontsize=8.5,
            parse_math=False,
            bbox=box,
            zorder=2,
        )
        names.append(name)
    return names


def _part(figure: Figure, names: Sequence[Annotation]) -> None:
    """Move names that overlap up and down until they do not."""
    figure.draw_without_rendering()
    boxes = [name.get_window_extent() for name in names]
    low = np.array([(box.x0, box.y0) for box in boxes])
    size = np.array([(box.width, box.height) for box in boxes])
    moved = np.zeros(len(names))
    for _ in range(ROUNDS):
        for i in range(len(names)):
            for j in range(i):
                apart = np.abs(low[i] + size[i] / 2 - low[j] - size[j] / 2)
                overlap = (size[i] + size[j]) / 2 - apart
                if (overlap > 0).all():
                    step = (overlap[1] + 1) / 2 * (1 if low[i, 1] >= low[j, 1] else -1)
                    low[i, 1], low[j, 1] = low[i, 1] + step, low[j, 1] - step
                    moved[i], moved[j] = moved[i] + step, moved[j] - step
    for name, by in zip(names, moved, strict=True):
        name.xyann = name.xyann[0], name.xyann[1] + by * 72 / figure.dpi


def _styles(groups: Sequence[str]) -> dict[str, LineStyle]:
    """A colour and a shape for each label; the most frequent ones get one of their own."""
    often = sorted(set(groups), key=lambda group: (-groups.count(group), group))
    return {group: STYLES[i] if i < len(STYLES) else REST for i, group in enumerate(often)}


def _legend(figure: Figure, styles: Mapping[str, LineStyle], found: Explanation) -> None:
    from matplotlib.lines import Line2D

    keys = [
        Line2D([], [], color=style.colour, marker=style.marker, linestyle="", markersize=8)
        for style in styles.values()
    ]
    names = [_short(group) for group in styles]
    if not found.unranked:
        keys.append(Line2D([], [], color=FOR, linewidth=2.5))
        keys.append(Line2D([], [], color=AGAINST, linestyle="--", linewidth=2.5))
        keys.append(Line2D([], [], color=NEUTRAL, linewidth=1))
        raising = ["edge that raises it", "edge that lowers it"]
        either = raising if found.number else ["edge for it", "edge against it"]
        names += [*either, "of little effect"]
    columns = min(len(keys), 4)
    legend = figure.legend(keys, names, loc="outside lower center", ncols=columns, frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _short(name: object) -> str:
    """A name on one line, cut in the middle if it is long."""
    return short(visible(" ".join(str(name).split())), LONGEST)
