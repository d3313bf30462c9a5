"""Both figures of the paper and depth.png, drawn from measured cells, and the paper's claims.

Figure 1: accuracy of a GCN with residual connections by degree and depth (section 5).  Figure 2:
GCN, initial residual or identity mapping alone, and both (section 6.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log2, nan, sqrt
from pathlib import Path
from statistics import fmean, stdev, variance
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from scipy.stats import ttest_ind

from gcnii.analysis.degree import HUB, Row, span
from gcnii.errors import InputError
from gcnii.report.figures import (
    LineStyle,
    depth_axis,
    figure,
    inline_svg,
    ramp_of,
    save,
    shared_legend,
    styles_of,
)
from gcnii.targets.interval import wilson
from gcnii_paper.tables.cells import Cell, MeasuredCell
from gcnii_paper.tables.registry import CELLS

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


class Interval(NamedTuple):
    """A number, in points, with its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.1f} ({self.low:+.1f} to {self.high:+.1f})"

    def above(self, points: float) -> bool | None:
        """None if the interval contains these points."""
        return None if self.low <= points <= self.high else self.mean > points


def slope(points: Iterable[tuple[float, float, float]]) -> Interval | None:
    """Through (x, y, variance of y), weighted by the inverse variance; None for a single x."""
    x, y, variances = np.array(list(points)).T
    if len(set(x)) < 2:
        return None
    (found, _), errors = np.polyfit(x, y, 1, w=variances**-0.5, cov="unscaled")
    reach = 1.959964 * sqrt(errors[0, 0])
    return Interval(float(found), float(found - reach), float(found + reach))


def above(a: Sequence[float], b: Sequence[float]) -> bool | None:
    """Whether a has the higher mean, by Welch's t-test, two-sided at 5 %; None if undecided."""
    if min(len(a), len(b)) < 2:
        return None
    if variance(a) + variance(b) == 0:  # a constant has no t
        return fmean(a) > fmean(b)
    return fmean(a) > fmean(b) if ttest_ind(a, b, equal_var=False).pvalue < 0.05 else None


Who = Literal["all", "test"]


@dataclass(frozen=True)
class DegreeGroup:
    """The nodes with a degree in [low, high), and the accuracy of each run on them."""

    low: int
    high: float
    nodes: int
    accuracies: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        """The mean over the runs."""
        return fmean(self.accuracies)

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval, over the nodes.

        More runs do not narrow it: they grade the same few nodes again.
        """
        return wilson(self.accuracy, self.nodes)


@dataclass(frozen=True)
class Curve:
    """One line of Figure 1: the groups [2^i, 2^(i+1)) by degree, and the hubs, if there are any."""

    graph: str
    layers: int
    who: Who
    groups: tuple[DegreeGroup, ...]
    hubs: DegreeGroup | None = None

    @property
    def collapsed(self) -> bool:
        """Whether at most half of the runs have distinct results, as when all predict one label."""
        results = list(zip(*(group.accuracies for group in self.groups), strict=True))
        return len(results) > 2 and 2 * len(set(results)) <= len(results)


def curves(graph: str, layers: int, runs: Sequence[Sequence[Row]]) -> list[Curve]:
    """The lines of one graph and depth, for all nodes and for test nodes, from each run's rows."""
    found: dict[tuple[str, int, float], list[Row]] = {}
    for row in (row for rows in runs for row in rows):
        found.setdefault((row["who"], row["from"], row["below"] or inf), []).append(row)
    lines = []
    for who in get_args(Who):
        groups = [
            DegreeGroup(low, high, rows[0]["nodes"], tuple(row["accuracy"] for row in rows))
            for (whose, low, high), rows in found.items()
            if whose == who
        ]
        bounded = tuple(group for group in groups if group.high < inf)
        hubs = next((group for group in groups if group.high == inf), None)
        if bounded:
            lines.append(Curve(graph, layers, who, bounded, hubs))
    return lines


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
            _draw_curve(axes, line, styles)
        _label(axes, lines)
        axes.set(title=f"{graph}: {WHO[who]}", ylim=(0, 103), ylabel="accuracy (%)")
        axes.set_xlabel("degree, and number of nodes")
    shared_legend(drawing)
    return drawing


def _draw_curve(axes: Axes, line: Curve, styles: Mapping[int, LineStyle]) -> None:
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
    return [_rises_with_degree(shallow), _falls_fastest(shallow, deep), _fails(deep)]


def _rises_with_degree(line: Curve) -> Claim:
    """By the slope of a line through the groups; undecided if its 95 % interval contains 0."""
    text = f"With {line.layers} layers accuracy rises with the degree"
    points = ((log2(group.low), 100 * group.accuracy, _variance(group)) for group in line.groups)
    return _by_slope(text, slope(points), "", "one group of degrees only")


def _falls_fastest(shallow: Curve, deep: Curve) -> Claim:
    """Takes two depths on the same nodes as independent, which makes the interval too wide where
    nodes are easy for both.
    """
    text = f"From {shallow.layers} to {deep.layers} layers, nodes of a high degree lose most"
    if deep.collapsed:
        return Claim(text, None, ONE_LABEL)
    after = {group.low: group for group in deep.groups}
    losses = (
        (log2(low), 100 * (group.accuracy - after[low].accuracy), _variance(group, after[low]))
        for low, group in ((group.low, group) for group in shallow.groups)
    )
    return _by_slope(text, slope(losses), "loss ", "known of one group only")


def _by_slope(text: str, found: Interval | None, what: str, otherwise: str) -> Claim:
    """Held if it rises; `otherwise` is said where there is no slope."""
    if not found:
        return Claim(text, None, f"{what}{otherwise}")
    interval = f"95 %: {found.low:+.1f} to {found.high:+.1f}"
    doubled = f"{found.mean:+.1f} points each time the degree doubles ({interval})"
    return Claim(text, found.above(0), f"{what}{doubled}")


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


ARMS = {
    "gcnii": "GCNII: both",
    "gcn-initial": "GCN + initial residual",
    "gcn-identity": "GCN + identity mapping",
    "deep-gcn": "GCN",
}
EDGE = 1.2  # factor of room beside the shallowest and the deepest
FALL = 10  # points; a model that is further below its best has collapsed


@dataclass(frozen=True)
class Arm:
    """Test scores in per cent of one model on one graph: by depth, one per seed."""

    graph: str
    model: str
    test: dict[int, tuple[float, ...]]

    @property
    def means(self) -> dict[int, float]:
        """depth → mean over the seeds, from shallow to deep."""
        return {layers: fmean(self.test[layers]) for layers in sorted(self.test)}

    @property
    def best(self) -> int:
        """The depth with the highest mean."""
        return max(self.means, key=self.means.__getitem__)

    @property
    def collapse(self) -> int | None:
        """The first depth beyond the best that has lost more than FALL points."""
        means, best = self.means, self.best
        return next((d for d in means if d > best and means[d] < means[best] - FALL), None)


def draw_figure2(arms: Iterable[Arm]) -> Figure:
    """One panel per graph; bands are one standard deviation over the seeds."""
    arms, order = list(arms), list(ARMS)
    graphs = list(dict.fromkeys(arm.graph for arm in arms))
    depths = sorted({layers for arm in arms for layers in arm.test})
    # the same for all panels, though some may lack depths
    edges = (depths[0] / EDGE, depths[-1] * EDGE)
    drawing, styles = figure(len(graphs)), styles_of(ARMS)
    for axes, graph in zip(drawing.axes, graphs, strict=True):
        own = [arm for arm in arms if arm.graph == graph]
        for arm in sorted(own, key=lambda arm: order.index(arm.model)):
            _draw_arm(axes, arm, styles[arm.model])
        depth_axis(axes, depths)
        axes.set(title=graph, xlim=edges, ylim=(0, 95))
    shared_legend(drawing)
    return drawing


def _draw_arm(axes: Axes, arm: Arm, style: LineStyle) -> None:
    runs = [arm.test[layers] for layers in arm.means]
    spread = [stdev(some) if len(some) > 1 else 0 for some in runs]
    _draw_band(axes, list(arm.means), list(arm.means.values()), spread, style, ARMS[arm.model])


def _draw_band(
    axes: Axes, x: list[int], means: list[float], spread: list[float], style: LineStyle, label: str
) -> None:
    """A line, and one standard deviation to either side."""
    colour, marker, dash = style
    low, high = (
        [mean + sign * sd for mean, sd in zip(means, spread, strict=True)] for sign in (-1, 1)
    )
    axes.plot(x, means, color=colour, marker=marker, linestyle=dash, label=label)
    axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def ablation_claims(arms: Iterable[Arm]) -> list[Claim]:
    """The paper's sentences that the arms of one graph can answer, if they reach all depths."""
    by_model = {arm.model: arm for arm in arms if {SHALLOW, DEEP} <= arm.test.keys()}
    asked = (
        (_delays, ("deep-gcn", "gcn-identity")),
        (_relieves, ("deep-gcn", "gcn-initial")),
        (_shallow_is_best, ("gcn-initial",)),
        (_rises, ("gcnii",)),
    )
    return [
        claim(*(by_model[name] for name in names))
        for claim, names in asked
        if set(names) <= set(by_model)
    ]


def _delays(gcn: Arm, identity: Arm) -> Claim:
    """Marginally: GCN collapses, and identity mapping delays that by at most one doubling."""
    plain, put_off = gcn.collapse, identity.collapse
    held = plain is not None and put_off is not None and plain < put_off <= 2 * plain
    collapses = (
        f"more than {FALL} points below its best: GCN {_at(plain)}, "
        f"with identity mapping {_at(put_off)}"
    )
    return Claim("Identity mapping alone delays the collapse, but marginally", held, collapses)


def _at(depth: int | None) -> str:
    return "nowhere" if depth is None else f"at {depth} layers"


def _relieves(gcn: Arm, initial: Arm) -> Claim:
    """Greatly: less than half of GCN's loss is left."""
    plain, relieved = (arm.means[arm.best] - arm.means[DEEP] for arm in (gcn, initial))
    figures = (
        f"best to {DEEP} layers: GCN loses {plain:.1f} points, with initial residual {relieved:.1f}"
    )
    return Claim(
        "Initial residual alone relieves over-smoothing greatly", relieved < plain / 2, figures
    )


def _shallow_is_best(initial: Arm) -> Claim:
    """Better than the best of the other depths, if a t-test tells them apart."""
    means = initial.means
    other = max(means.keys() - {SHALLOW}, key=means.__getitem__)
    figures = (
        f"{means[SHALLOW]:.1f} at {SHALLOW} layers; "
        f"the best of the others {means[other]:.1f} at {other}"
    )
    text = f"With initial residual alone {SHALLOW} layers are still the best"
    return Claim(text, above(initial.test[SHALLOW], initial.test[other]), figures)


def _rises(both: Arm) -> Claim:
    """The deepest network is better than the shallowest, if a t-test tells them apart."""
    means = both.means
    best = f"best {means[both.best]:.1f} at {both.best}"
    figures = f"{means[SHALLOW]:.1f} at {SHALLOW} layers, {means[DEEP]:.1f} at {DEEP}; {best}"
    return Claim(
        "Both together: accuracy rises with depth",
        above(both.test[DEEP], both.test[SHALLOW]),
        figures,
    )


# A row of Table 3, what it is called here, and whose number the paper prints.
LINES = (("Cora GCNII", "GCNII", "GCNII"), ("Cora GCN, Kipf's", "Kipf's GCN", "DropEdge's GCN"))


def draw_depth(path: Path, cells: Iterable[MeasuredCell]) -> Path:
    """Our means with their standard deviation, and the numbers that Table 3 prints."""
    rows: dict[str, list[MeasuredCell]] = {row: [] for row, *_ in LINES}
    for cell in cells:
        if cell.table == "table3" and cell.row in rows:
            rows[cell.row].append(cell)
    if not any(rows.values()):
        raise InputError(
            "there is no run of GCNII or GCN on Cora by depth; "
            "`gcnii reproduce table3 --only cora-gcnii` trains some"
        )
    drawing = figure(1)
    (axes,) = drawing.axes
    styles = styles_of(name for _, name, _ in LINES)
    for row, ours, theirs in LINES:
        _draw_depths(axes, sorted(rows[row], key=_layers), styles[ours], ours, theirs)
    depth_axis(axes, {_layers(cell) for line in rows.values() for cell in line})
    axes.set(title="Cora: accuracy against depth", ylim=(0, 95))
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    return save(drawing, path)


def _layers(cell: MeasuredCell) -> int:
    return int(cell.column)


def _draw_depths(
    axes: Axes, line: Sequence[MeasuredCell], style: LineStyle, ours: str, theirs: str
) -> None:
    depths, means = [_layers(cell) for cell in line], [cell.mean for cell in line]
    _draw_band(axes, depths, means, [cell.sd or 0 for cell in line], style, f"{ours}, here")
    printed = [cell.printed.mean if cell.printed else nan for cell in line]
    colour, marker, _ = style
    (circles,) = axes.plot(depths, printed, marker, color=colour, label=f"{theirs}, paper")
    circles.set(markerfacecolor="none", markersize=10)


def degree_curves(measured: Iterable[MeasuredCell]) -> list[Curve]:
    """Figure 1's lines, from the cells whose runs have accuracies by degree."""
    cells = _declared("figure1", measured)
    graded = [(cell, [run.by_degree for run in one.runs if run.by_degree]) for cell, one in cells]
    return [
        line
        for cell, rows in graded
        if rows
        for line in curves(cell.graph, cell.settings["layers"], rows)
    ]


def ablation_arms(measured: Iterable[MeasuredCell]) -> list[Arm]:
    """Figure 2's lines."""
    tests: dict[tuple[str, str], dict[int, tuple[float, ...]]] = {}
    for cell, one in _declared("figure2", measured):
        if one.mean != one.mean:
            continue
        tests.setdefault((cell.graph, cell.model), {})[cell.settings["layers"]] = one.test
    return [Arm(graph, model, by_depth) for (graph, model), by_depth in tests.items()]


def _declared(figure: str, measured: Iterable[MeasuredCell]) -> list[tuple[Cell, MeasuredCell]]:
    """The figure's cells that were measured, in the order of their declaration."""
    found = {one.cell: one for one in measured}
    return [(cell, found[cell.id]) for cell in CELLS[figure] if cell.id in found]


@dataclass(frozen=True)
class PaperFigure:
    """A drawing, and what the paper says of it, by graph."""

    name: str
    title: str
    caption: str
    drawing: Figure | None
    claims: dict[str, list[Claim]]

    def svg(self) -> Markup:
        """The drawing as SVG to include in the page."""
        assert self.drawing is not None
        return inline_svg(self.drawing, self.name, self.title)


def figures(measured: Iterable[MeasuredCell]) -> list[PaperFigure]:
    """Both figures, with a drawing if there is anything to draw."""
    measured = list(measured)
    return [_figure1(degree_curves(measured)), _figure2(ablation_arms(measured))]


def _figure1(lines: list[Curve]) -> PaperFigure:
    panels = [(graph, who) for graph in dict.fromkeys(line.graph for line in lines) for who in WHO]
    claims = {
        f"{graph}, {WHO[who]}": degree_claims(
            line for line in lines if (line.graph, line.who) == (graph, who)
        )
        for graph, who in panels
    }
    return PaperFigure(
        "figure1",
        "Figure 1: accuracy of a GCN with residual connections, by degree and depth",
        "Below each group of degrees: its number of nodes. "
        "Bands and bars: 95 % intervals over a group's nodes.",
        draw_figure1(lines) if lines else None,
        claims,
    )


def _figure2(arms: list[Arm]) -> PaperFigure:
    claims = {
        graph: ablation_claims(arm for arm in arms if arm.graph == graph)
        for graph in dict.fromkeys(arm.graph for arm in arms)
    }
    return PaperFigure(
        "figure2",
        "Figure 2: initial residual and identity mapping, alone and together, by depth",
        "Mean over the seeds; bands: one standard deviation.",
        draw_figure2(arms) if arms else None,
        claims,
    )
