"""gcnii theory: the paper's theorems on a graph, with numbers, and where the paper slips."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from gcnii.analysis.report import theory as report
from gcnii.analysis.report.style import save
from gcnii.analysis.theory.errata import errata
from gcnii.analysis.theory.karate import karate_club
from gcnii.analysis.theory.spectrum import EXACT
from gcnii.analysis.theory.study import PARTS, Study
from gcnii.cli.console import table_console
from gcnii.cli.options import Json, Offline, load_graph, print_json, refuse_unwritable
from gcnii.cli.progress import counting_bar
from gcnii.errors import InputError

Source = Annotated[
    str | None,
    Parameter(
        help="A name of `gcnii data list`, or a folder with nodes.csv and edges.csv; by default Zachary's karate club."
    ),
]


def theory(
    graph: Source = None,
    /,
    *,
    theta: Annotated[
        str | None,
        Parameter(
            help="A filter of yours, Σ θ_k L̃^k, as coefficients with commas between: 1,-0.5,0.25."
        ),
    ] = None,
    plot: Annotated[Path | None, Parameter(help="A file for the figure, .png or .svg.")] = None,
    json: Json = False,
    offline: Offline = False,
) -> None:
    """Check theorems 1 and 2 and the LASSO view on a graph, and say where the paper slips."""
    own = _coefficients(theta) if theta else None
    if plot and plot.suffix not in (".png", ".svg"):
        raise InputError(f"--plot writes .png or .svg, got {plot.name}")
    if plot:
        refuse_unwritable(plot.parent, "--plot")
    study = Study(
        load_graph(graph, directed=False, offline=offline) if graph else karate_club(), own
    )
    with counting_bar(f"theory on {study.graph.name}", len(PARTS)) as show:
        study.complete(show)
    if plot:
        save(report.draw_study(study), plot)
    if json:
        print_json(report.study_document(study, plot))
    else:
        _print(study, plot)


def _coefficients(words: str) -> tuple[float, ...]:
    try:
        found = tuple(float(word) for word in words.split(","))
    except ValueError:
        found = ()
    if not found or not np.isfinite(found).all():
        raise InputError(
            f"--theta takes numbers with commas between, as in 1,-0.5,0.25, got {words!r}"
        )
    return found


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
        report.convergence_table(study.by_degree),
        report.filter_table(study.filters),
        report.epsilon_table(study.substitutes),
        report.lasso_table(study.lasso),
    ):
        console.print(table)
        print()
    print("Where the paper slips, with examples on the star 0–1, 0–2, 0–3:")
    for erratum in errata():
        print(f"- {erratum.where}: the paper says {erratum.says}; {erratum.holds}.")
    if plot:
        print(f"\nplot {plot}")
