"""What the theorems say about one graph, computed part by part; by default the karate club.

And how that is shown: as tables, as a JSON document, and as a figure with a panel per question.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from rich.console import Group
from rich.text import Text
from torch import Tensor

from gcnii.analysis.degree import span
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.propagation import Sparse
from gcnii.report.figures import OTHERS, STAR_STYLE, draw_line, figure, ramp_of, styles_of
from gcnii.report.tables import plain_table
from gcnii_paper.theory.errata import errata
from gcnii_paper.theory.filters import (
    BAND_PASS,
    FILTERS,
    Realised,
    Substitute,
    gain,
    horner,
    one_channel,
    realise,
    substitute,
    two_channels,
)
from gcnii_paper.theory.lasso import Iterate, iterates, sparse_coding
from gcnii_paper.theory.spectrum import (
    Convergence,
    DegreeErrors,
    Distance,
    Floats,
    LazyWalk,
    convergence_by_degree,
    distances,
    exact_matrix,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KARATE = Path(__file__).with_name("karate.csv")


def karate_club() -> Graph:
    """The club as a graph without labels; the features are one-hot node numbers."""
    return Graph(X=np.eye(34), edges=np.loadtxt(KARATE, int, delimiter=",").T, name="karate")


DEPTHS = (0, *(2**i for i in range(11)))
DEGREE_DEPTHS = (2, 8, 64)
EPSILONS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
STEPS = tuple(2**i for i in range(9))
POINTS = 24  # number of frequencies at which a filter is shown
PARTS = ("distances", "by_degree", "filters", "substitutes", "lasso")


@dataclass(frozen=True, eq=False)
class Study:
    """The paper's theorems on a graph; each part is computed when it is first asked for.

    theta  a filter Σ θ_k L̃^k of the user's own, to be realised beside FILTERS
    """

    graph: Graph
    theta: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Say so if the graph's edge weights are not used."""
        if self.graph.weighted:
            warnings.warn(
                f"the theorems are about edges without weights; those of {self.graph.name} "
                "are left out",
                stacklevel=3,
            )

    def complete(self, show: Callable[[str], None]) -> None:
        """Compute all PARTS now, announcing each to `show`: Lanczos is slow on a large graph."""
        for part in PARTS:
            show(part.replace("_", " "))
            getattr(self, part)

    @cached_property
    def walk(self) -> LazyWalk:
        """The lazy walk of theorem 1."""
        return LazyWalk.on(self.graph)

    @cached_property
    def matrix(self) -> Sparse:
        """P̃ for the networks of theorem 2."""
        return exact_matrix(self.graph, direction="both", loops="remove")

    @cached_property
    def distances(self) -> tuple[list[Distance], list[Distance]]:
        """Theorem 1 in the largest component: from e_i at its hub, and from e_i - e_j.

        j is a node of the lowest degree.
        """
        nodes = self.walk.components[0]
        falling = nodes[np.argsort(-self.walk.degree[nodes], kind="stable")]
        one, two = np.zeros((2, self.graph.n))
        one[falling[0]] = two[falling[-1]] = 1
        return distances(self.walk, one, DEPTHS), distances(self.walk, one - two, DEPTHS)

    @cached_property
    def by_degree(self) -> Convergence:
        """Conjecture 1: relative errors by degree."""
        return convergence_by_degree(self.graph, self.walk, DEGREE_DEPTHS)

    @cached_property
    def x(self) -> Tensor:
        """(n, 1) a signal, uniform in [0, 1]."""
        return torch.tensor(np.random.default_rng(0).random((self.graph.n, 1)))

    @cached_property
    def filters(self) -> list[Realised]:
        """Theorem 2: the errors of every network for each filter, the user's own last."""
        chosen = FILTERS | ({"yours": self.theta} if self.theta else {})
        return [realise(self.matrix, name, theta, self.x) for name, theta in chosen.items()]

    @cached_property
    def substitutes(self) -> list[Substitute]:
        """Theorem 2: what each ε costs for the band pass."""
        return [substitute(self.matrix, BAND_PASS, self.x, epsilon) for epsilon in EPSILONS]

    @cached_property
    def lasso(self) -> list[Iterate]:
        """Section 3: ISTA and the network that imitates it."""
        return iterates(sparse_coding(), STEPS)

    @property
    def shown(self) -> tuple[float, ...]:
        """θ of the filter whose `gains` are shown: the user's own, or the band pass."""
        return self.theta or BAND_PASS

    @cached_property
    def gains(self) -> tuple[Floats, dict[str, Floats]]:
        """POINTS frequencies λ, and by network what it multiplies signals of them by."""
        frequency, vectors = self.walk.tones(POINTS)
        U, count = torch.tensor(vectors), len(frequency)
        networks = {
            "GCNII, two channels": two_channels(self.shown, count),
            "GCNII*": horner(self.shown, count),
            "GCNII, one channel": one_channel(self.shown, count),
        }
        found = {name: gain(self.matrix, one, U).numpy() for name, one in networks.items()}
        found["GCN without weights"] = (1 - frequency) ** (len(self.shown) - 1)
        return frequency, found


FLOOR = 1e-8  # smaller distances are not shown
FILTER_HEADS = (
    *("filter", "K", "size", "max |γ|", "GCNII, 1 channel", "2 channels", "4 channels"),
    *("α_l", "GCNII*", "proof's recurrence"),
)


def study_document(study: Study, plot: Path | None = None) -> Document:
    """All results of a study as a JSON object; `plot` is the file of its figure, if any."""
    spectral, printed = study.walk.depths_to(1e-3)
    one, two = (list(map(asdict, rows)) for rows in study.distances)
    return {
        "graph": study.graph.name,
        "nodes": study.graph.n,
        "edges": study.graph.m,
        "components": len(study.walk.components),
        "gap": study.walk.gap,
        "least_eigenvalue": study.walk.least,
        "depth_to_a_thousandth": {"spectral": spectral, "printed": printed},
        "distances": {"e_i": one, "e_i - e_j": two},
        "by_degree": asdict(study.by_degree),
        "filters": list(map(asdict, study.filters)),
        "epsilon": list(map(asdict, study.substitutes)),
        "lasso": list(map(asdict, study.lasso)),
        "slips": list(map(asdict, errata())),
        "plot": None if plot is None else str(plot),
    }


def distance_table(one: Sequence[Distance], two: Sequence[Distance]) -> Group:
    """Theorem 1 by depth: for a signal at one node, and for a difference of two nodes.

    The printed bound holds for the first only.
    """
    title = (
        "Theorem 1: max |h_K - π| and its bounds;"
        " x = e_i at the hub, and e_i - e_j with a node of the lowest degree"
    )
    heads = ("K", "e_i", "printed", "spectral", "e_i - e_j", "printed", "with ‖x‖₁", "spectral")
    table = plain_table(*heads)
    for left, right in zip(one, two, strict=True):
        numbers = (left.distance, left.printed, left.spectral, right.distance, right.printed)
        table.add_row(str(left.depth), *map(_short, (*numbers, right.corrected, right.spectral)))
    return Group(Text(title), table)


def convergence_table(found: Convergence) -> Group:
    """Conjecture 1 by degree."""
    title = "Conjecture 1: mean |h_K - π| / π by degree, x uniform in [0, 1], largest component"
    table = plain_table("degree", "nodes", *(f"K = {depth}" for depth in found.depths))
    for group in found.groups:
        table.add_row(span(group.low, group.high), f"{group.nodes:,}", *map(_short, group.errors))
    exponents = ("–" if one is None else f"{one:+.2f}" for one in found.exponents)
    table.add_row("exponent of d + 1", "", *exponents)
    return Group(Text(title), table)


def filter_table(rows: Sequence[Realised]) -> Group:
    """Theorem 2 by filter."""
    title = (
        "Theorem 2: largest error of the scores;"
        " K coefficients take K + 1 layers with α = ½, K or K - 1 with an α_l each, K - 1 of GCNII*"
    )
    table = plain_table(*FILTER_HEADS)
    for row in rows:
        halves = (row.one_channel, row.two_channels, row.four_channels)
        others = (row.own_alphas, row.horner, row.as_printed)
        numbers = map(_short, (row.size, row.largest, *halves, *others))
        table.add_row(row.name, str(len(row.theta)), *numbers)
    return Group(Text(title), table)


def epsilon_table(rows: Sequence[Substitute]) -> Group:
    """The cost of ε in place of zero partial sums."""
    title = "Band pass with ε for zero partial sums, 2 channels: error of the scores"
    table = plain_table("ε", "max |γ|", "float64", "float32")
    for row in rows:
        table.add_row(*map(_short, (row.epsilon, row.largest, row.float64, row.float32)))
    return Group(Text(title), table)


def lasso_table(rows: Sequence[Iterate]) -> Group:
    """Section 3 by number of steps."""
    title = "Section 3: ISTA on a small sparse-coding problem, and networks with a layer per step"
    heads = ("GCNII* - ISTA", "GCNII of twice the width - ISTA")
    table = plain_table("steps", "objective", "not zero", *heads)
    for row in rows:
        share = f"{100 * row.nonzero:.0f} %"
        off = map(_short, (row.difference, row.plain_difference))
        table.add_row(str(row.steps), f"{row.objective:.4f}", share, *off)
    return Group(Text(title), table)


def _short(number: float) -> str:
    if number == 0:
        return "0"
    return f"{number:.3f}" if 0.01 <= abs(number) < 1000 else f"{number:.1e}"


def draw_study(study: Study) -> Figure:
    """Four questions, one panel each."""
    drawing = figure(2, rows=2)
    first, second, third, fourth = drawing.axes
    graph = study.graph.name
    _draw_distances(first, study.distances[1])
    first.set_title(f"How fast is a signal gone? {graph}, x = e_i - e_j")
    _draw_degrees(second, study.by_degree)
    second.set_title(f"Do hubs arrive first? {graph}")
    _draw_filter(third, study.shown, *study.gains)
    third.set_title(f"Can the network be this filter? {graph}")
    _draw_lasso(fourth, study.lasso)
    fourth.set_title("Are its layers ISTA's steps? sparse coding")
    return drawing


def _draw_distances(axes: Axes, rows: Sequence[Distance]) -> None:
    depths = [row.depth for row in rows]
    lines = {
        "|h_K - π|": [row.distance for row in rows],
        "‖x‖₁ (1 - λ²/2)^K": [row.corrected for row in rows],
        "‖x‖₂ (1 - λ/2)^K": [row.spectral for row in rows],
    }
    for style, (label, values) in zip(OTHERS, lines.items(), strict=False):
        draw_line(axes, depths, np.maximum(values, FLOOR / 10), style, label)
    axes.plot([], [], color="grey", label="as printed: Σx = 0 at every K")
    axes.set_xscale("symlog", base=2, linthresh=1)
    axes.set_xticks(depths, [str(depth) for depth in depths])
    axes.set_yscale("log")
    axes.set(xlabel="K", ylabel="largest distance")
    axes.set_ylim(max(FLOOR, min(row.distance for row in rows) / 3), 4)
    axes.legend(frameon=False, fontsize=8, loc="lower left")


def _draw_degrees(axes: Axes, found: Convergence) -> None:
    places, groups = range(len(found.groups)), found.groups
    for i, (depth, style) in enumerate(ramp_of(found.depths).items()):
        errors = [group.errors[i] for group in groups]
        draw_line(axes, places, errors, style, f"K = {depth}")
        bound = [errors[0] * (_middle(group) / _middle(groups[0])) ** -0.5 for group in groups]
        axes.plot(places, bound, color=style.colour, alpha=0.3, linewidth=1)
    axes.plot([], [], color="grey", alpha=0.5, linewidth=1, label="∝ 1/√(d + 1)")
    labels = [f"{span(group.low, group.high)}\n{group.nodes:,}" for group in groups]
    axes.set_xticks(places, labels, fontsize=8)
    axes.set_yscale("log")
    axes.set(xlabel="degree, and number of nodes", ylabel="mean |h_K - π| / π")
    axes.legend(frameon=False, fontsize=8)


def _middle(group: DegreeErrors) -> float:
    """d + 1 of a node in the middle of the group on a logarithmic axis."""
    return sqrt(group.low * (group.high - 1)) + 1


def _draw_filter(
    axes: Axes, theta: Sequence[float], frequency: Floats, gains: Mapping[str, Floats]
) -> None:
    grid = np.linspace(0, max(2.0, frequency.max()), 200)
    wanted = np.polynomial.polynomial.polyval(grid, theta)
    axes.plot(grid, wanted, color="black", linewidth=1, label="Σ θ_k λ^k")
    _draw_gains(axes, frequency, gains)
    axes.set(xlabel="eigenvalue λ of L̃", ylabel="response")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.35 * (high - low))  # room for the legend
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper right")


def _draw_gains(axes: Axes, frequency: Floats, gains: Mapping[str, Floats]) -> None:
    for i, (label, (colour, marker, _)) in enumerate(styles_of(gains).items()):
        (dots,) = axes.plot(
            frequency, gains[label], color=colour, marker=marker, linestyle="none", label=label
        )
        if i == 1:  # the first two lie on each other: a ring around a dot shows both
            dots.set(marker="o", markersize=11, fillstyle="none", markeredgewidth=1.5)
        else:
            dots.set_alpha(0.8)


def _draw_lasso(axes: Axes, rows: Sequence[Iterate]) -> None:
    steps = [row.steps for row in rows]
    draw_line(axes, steps, [row.objective for row in rows], STAR_STYLE, "objective")
    axes.set_xscale("log", base=2)
    axes.set_xticks(steps, [str(count) for count in steps])
    axes.set(xlabel="layers", ylabel="LASSO's objective")
    worst = max(max(row.difference, row.plain_difference) for row in rows)
    text = f"networks and ISTA differ by {worst:.0e} at most"
    axes.annotate(text, (0.97, 0.92), xycoords="axes fraction", ha="right")
