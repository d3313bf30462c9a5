"""gcnii theory: the paper's theorems on a graph, with numbers, and where the paper slips."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from cyclopts import Parameter
from torch import Tensor

from gcnii.analysis.filter_errors import BAND_PASS, FILTERS, Realised, Substitute, realise, response, substitute
from gcnii.analysis.filters import horner, one_channel, two_channels
from gcnii.analysis.karate import karate_club
from gcnii.analysis.lasso import Iterate, iterates, sparse_coding
from gcnii.analysis.slips import slips
from gcnii.analysis.spectrum import EXACT, Convergence, Distance, LazyWalk, convergence_by_degree, distances
from gcnii.cli.options import Json, Offline, load_graph, print_json, refuse_unwritable
from gcnii.graph import Graph
from gcnii.propagation import Sparse, propagation_matrix
from gcnii.report import theory as report
from gcnii.report.console import table_console
from gcnii.report.figure import save
from gcnii.report.progress import counting_bar

Source = Annotated[
    str | None,
    Parameter(
        help="A name of `gcnii data list`, or a folder with nodes.csv and edges.csv; by default Zachary's karate club."
    ),
]
DEPTHS = (0, *(2**i for i in range(11)))
DEGREE_DEPTHS = (2, 8, 64)
EPSILONS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
STEPS = tuple(2**i for i in range(9))
POINTS = 24  # frequencies at which a filter is shown


def theory(
    graph: Source = None,
    /,
    *,
    theta: Annotated[
        str | None, Parameter(help="A filter of yours, Σ θ_k L̃^k, as coefficients with commas between: 1,-0.5,0.25.")
    ] = None,
    plot: Annotated[Path | None, Parameter(help="A file for the figure, .png or .svg.")] = None,
    json: Json = False,
    offline: Offline = False,
) -> None:
    """Check theorems 1 and 2 and the LASSO view on a graph, and say where the paper slips."""
    own = _coefficients(theta) if theta else None
    if plot and plot.suffix not in (".png", ".svg"):
        raise ValueError(f"--plot writes .png or .svg, got {plot.name}")
    if plot:
        refuse_unwritable(plot.parent, "--plot")
    study = Study(load_graph(graph, directed=False, offline=offline) if graph else karate_club(), own)
    study.complete()
    if plot:
        save(study.drawing(), plot)
    if json:
        print_json(study.document(plot))
    else:
        _print(study, plot)


def _coefficients(words: str) -> tuple[float, ...]:
    try:
        found = tuple(float(word) for word in words.split(","))
    except ValueError:
        found = ()
    if not found or not np.isfinite(found).all():
        raise ValueError(f"--theta takes numbers with commas between, as in 1,-0.5,0.25, got {words!r}")
    return found


@dataclass(frozen=True, eq=False)
class Study:
    """What the command finds out about a graph; `theta` is the user's own filter."""

    graph: Graph
    theta: tuple[float, ...] | None

    def complete(self) -> None:
        """Find out all of it now, under a bar: Lanczos takes a while on a large graph."""
        parts = ("distances", "by_degree", "filters", "substitutes", "lasso")
        with counting_bar(f"theory on {self.graph.name}", len(parts)) as show:
            for part in parts:
                show(part.replace("_", " "))
                getattr(self, part)

    @cached_property
    def walk(self) -> LazyWalk:
        """Of theorem 1."""
        return LazyWalk.on(self.graph)

    @cached_property
    def matrix(self) -> Sparse:
        """P̃, as theorem 2's networks take it."""
        return propagation_matrix(self.graph, direction="both", loops="remove")

    @cached_property
    def distances(self) -> tuple[list[Distance], list[Distance]]:
        """Of a signal at the largest component's hub, and of its difference from one at a node of the lowest degree."""
        nodes = self.walk.components[0]
        falling = nodes[np.argsort(-self.walk.degree[nodes], kind="stable")]
        one, two = np.zeros((2, self.graph.n))
        one[falling[0]] = two[falling[-1]] = 1
        return distances(self.walk, one, DEPTHS), distances(self.walk, one - two, DEPTHS)

    @cached_property
    def by_degree(self) -> Convergence:
        """Conjecture 1."""
        return convergence_by_degree(self.graph, self.walk, DEGREE_DEPTHS)

    @cached_property
    def x(self) -> Tensor:
        """(n, 1) uniform in [0, 1]."""
        return torch.tensor(np.random.default_rng(0).random((self.graph.n, 1)))

    @cached_property
    def filters(self) -> list[Realised]:
        """Theorem 2, the user's own filter last."""
        chosen = FILTERS | ({"yours": self.theta} if self.theta else {})
        return [realise(self.matrix, name, theta, self.x) for name, theta in chosen.items()]

    @cached_property
    def substitutes(self) -> list[Substitute]:
        """Of the band pass."""
        return [substitute(self.matrix, BAND_PASS, self.x, epsilon) for epsilon in EPSILONS]

    @cached_property
    def lasso(self) -> list[Iterate]:
        """Section 3."""
        return iterates(sparse_coding(), STEPS)

    def drawing(self) -> Any:
        """The figure."""
        theta = self.theta or BAND_PASS
        values, vectors = self.walk.tones(POINTS)
        U = torch.tensor(vectors)
        networks = {
            "GCNII, two channels": two_channels(theta, len(values)),
            "GCNII*": horner(theta, len(values)),
            "GCNII, one channel": one_channel(theta, len(values)),
        }
        found = {name: response(self.matrix, network, U).numpy() for name, network in networks.items()}
        found["GCN without weights"] = (1 - values) ** (len(theta) - 1)
        return report.draw_theory(self.graph.name, self.distances[1], self.by_degree, theta, values, found, self.lasso)

    def document(self, plot: Path | None) -> dict[str, Any]:
        """All of it for JSON."""
        spectral, printed = self.walk.depths_to(1e-3)
        one, two = self.distances
        return {
            "graph": self.graph.name,
            "nodes": self.graph.n,
            "edges": self.graph.m,
            "components": len(self.walk.components),
            "gap": self.walk.gap,
            "least_eigenvalue": self.walk.least,
            "depth_to_a_thousandth": {"spectral": spectral, "printed": printed},
            "distances": {"e_i": [asdict(row) for row in one], "e_i - e_j": [asdict(row) for row in two]},
            "by_degree": asdict(self.by_degree),
            "filters": [asdict(row) for row in self.filters],
            "epsilon": [asdict(row) for row in self.substitutes],
            "lasso": [asdict(row) for row in self.lasso],
            "slips": [asdict(slip) for slip in slips()],
            "plot": None if plot is None else str(plot),
        }


def _print(study: Study, plot: Path | None) -> None:
    walk, console = study.walk, table_console()
    parts, largest = len(walk.components), len(walk.components[0])
    how = "all eigenvalues" if largest <= EXACT else "Lanczos"
    spectral, printed = walk.depths_to(1e-3)
    print(
        f"{study.graph.name}: {study.graph.n:,} nodes, {study.graph.m:,} edges, "
        f"{'connected' if parts == 1 else f'{parts} components, the largest of {largest:,} nodes'}\n"
        f"λ = {walk.gap:.6f} ({how}); P̃'s eigenvalues lie in [{walk.least:.3f}, 1]\n"
        f"to a thousandth: K = {spectral:,} by (1 - λ/2)^K, {printed:,} by the printed (1 - λ²/2)^K\n"
    )
    for table in (
        report.distance_table(*study.distances),
        report.degree_table(study.by_degree),
        report.filter_table(study.filters),
        report.epsilon_table(study.substitutes),
        report.lasso_table(study.lasso),
    ):
        console.print(table)
        print()
    print("Where the paper slips, with examples on the star 0–1, 0–2, 0–3:")
    for slip in slips():
        print(f"- {slip.where}: the paper says {slip.says}; {slip.holds}.")
    if plot:
        print(f"\nplot {plot}")
