"""Figure 2: GCN, initial residual or identity mapping alone, and both; section 6.4's claims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from gcnii.report.figures import LineStyle, depth_axis, figure, shared_legend, styles_of
from gcnii_paper.report.figures.claims import DEEP, SHALLOW, Claim, above, first

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
        return first((d for d in means if d > best), lambda d: means[d] < means[best] - FALL)


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
            _draw(axes, arm, styles[arm.model])
        depth_axis(axes, depths)
        axes.set(title=graph, xlim=edges, ylim=(0, 95))
    shared_legend(drawing)
    return drawing


def _draw(axes: Axes, arm: Arm, style: LineStyle) -> None:
    colour, marker, dash = style
    depths, means = list(arm.means), list(arm.means.values())
    spread = [stdev(arm.test[layers]) if len(arm.test[layers]) > 1 else 0 for layers in depths]
    low, high = (
        [mean + sign * sd for mean, sd in zip(means, spread, strict=True)] for sign in (-1, 1)
    )
    axes.plot(depths, means, color=colour, marker=marker, linestyle=dash, label=ARMS[arm.model])
    axes.fill_between(depths, low, high, color=colour, alpha=0.15, linewidth=0)


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
