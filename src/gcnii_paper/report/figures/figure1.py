"""Figure 1: accuracy of a GCN with residual connections by degree and depth; section 5's claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log2
from typing import TYPE_CHECKING

from gcnii.analysis import Curve, DegreeGroup
from gcnii.analysis.degree import HUB, span
from gcnii.report.figures import LineStyle, figure, ramp_of, shared_legend
from gcnii_paper.report.figures.claims import DEEP, SHALLOW, Claim, slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Its accuracy by degree is then merely the share of that label.
ONE_LABEL = "the deep network has collapsed: it gives all nodes one label"
WHO = {"all": "all nodes", "test": "test nodes"}


def draw_figure1(curves: Iterable[Curve]) -> Figure:
    """One column per graph; all nodes above, test nodes below.  Bands and bars: 95 % intervals."""
    curves = list(curves)
    graphs = list(dict.fromkeys(line.graph for line in curves))
    styles = ramp_of(line.layers for line in curves)
    drawing: Figure = figure(len(graphs), rows=len(WHO))
    panels = [(who, graph) for who in WHO for graph in graphs]
    for axes, (who, graph) in zip(drawing.axes, panels, strict=True):
        lines = [line for line in curves if (line.graph, line.who) == (graph, who)]
        for line in sorted(lines, key=lambda one: one.layers):
            _draw(axes, line, styles)
        _label(axes, lines)
        axes.set(title=f"{graph}: {WHO[who]}", ylim=(0, 103), ylabel="accuracy (%)")
        axes.set_xlabel("degree, and number of nodes")
    shared_legend(drawing)
    return drawing


def _draw(axes: Axes, line: Curve, styles: Mapping[int, LineStyle]) -> None:
    depths = list(styles)
    place = depths.index(line.layers)
    colour, marker, dash = styles[line.layers]
    shift = 0.07 * (place - len(depths) / 2)
    places = [log2(group.low) + shift for group in line.groups]
    means = [100 * group.accuracy for group in line.groups]
    low, high = ([100 * group.interval[i] for group in line.groups] for i in (0, 1))
    label = f"{line.layers} layers"
    axes.plot(places, means, color=colour, marker=marker, linestyle=dash, label=label)
    # Six bands over one another would be one: the depths between have bars, side by side.
    if line.layers in (depths[0], depths[-1]):
        axes.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
    else:
        axes.vlines(places, low, high, color=colour, alpha=0.5, linewidth=1)


def _label(axes: Axes, lines: Sequence[Curve]) -> None:
    groups = {group.low: group for line in lines for group in line.groups}
    ticks = [f"{span(group.low, group.high)}\n{group.nodes:,}" for group in groups.values()]
    axes.set_xticks([log2(low) for low in groups], ticks, fontsize=8)


def degree_claims(curves: Iterable[Curve]) -> list[Claim]:
    """The paper's sentences that the lines of one graph and one set of nodes can answer."""
    lines = {line.layers: line for line in curves}
    if not {SHALLOW, DEEP} <= lines.keys():
        return []
    shallow, deep = lines[SHALLOW], lines[DEEP]
    return [_rises(shallow), _falls_fastest(shallow, deep), _fails(deep)]


def _rises(line: Curve) -> Claim:
    """By the slope of a line through the groups; undecided if its 95 % interval contains 0."""
    text = f"With {line.layers} layers accuracy rises with the degree"
    found = slope(
        (log2(group.low), 100 * group.accuracy, _variance(group)) for group in line.groups
    )
    return Claim(text, found.rises if found else None, str(found or "one group of degrees only"))


def _falls_fastest(shallow: Curve, deep: Curve) -> Claim:
    """Takes two depths on the same nodes as independent, which makes the interval too wide where
    nodes are easy for both.
    """
    text = f"From {shallow.layers} to {deep.layers} layers, nodes of a high degree lose most"
    if deep.collapsed:
        return Claim(text, None, ONE_LABEL)
    after = {group.low: group for group in deep.groups}
    losses = [
        (
            log2(group.low),
            100 * (group.accuracy - after[group.low].accuracy),
            _variance(group, after[group.low]),
        )
        for group in shallow.groups
    ]
    found = slope(losses)
    return Claim(text, found.rises if found else None, f"loss {found or 'known of one group only'}")


def _fails(line: Curve) -> Claim:
    """Not classified: fewer than half are right; undecided if the 95 % interval contains 50 %."""
    text = f"With {line.layers} layers, nodes of more than {HUB} neighbours are not classified"
    if not line.hubs:
        return Claim(text, None, "there is no such node")
    if line.collapsed:
        return Claim(text, None, ONE_LABEL)
    low, high = (100 * bound for bound in line.hubs.interval)
    interval = f"95 %: {low:.0f} to {high:.0f}"
    figures = f"{100 * line.hubs.accuracy:.1f} % right, of {line.hubs.nodes} ({interval})"
    return Claim(text, None if low <= 50 <= high else high < 50, figures)


def _variance(*groups: DegreeGroup) -> float:
    """Of an accuracy in points, or of the difference of two.

    Laplace's rule keeps it above 0 where all labels were right.
    """
    shares = ((g.accuracy * g.nodes + 1) / (g.nodes + 2) for g in groups)
    return sum(1e4 * p * (1 - p) / g.nodes for p, g in zip(shares, groups, strict=True))
