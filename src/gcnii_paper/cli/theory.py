"""gcnii theory: the paper's theorems checked on a graph, and where the paper slips."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gcnii.cli.options import Json, Offline, Overwrite, load_graph, print_json, refuse_unwritable
from gcnii.cli.terminal import counting_bar, table_console
from gcnii.errors import InputError
from gcnii.files import refuse_replacing
from gcnii.report.figures import is_figure, save
from gcnii_paper.theory.errata import errata
from gcnii_paper.theory.spectrum import EXACT
from gcnii_paper.theory.study import (
    PARTS,
    Study,
    convergence_table,
    distance_table,
    draw_study,
    epsilon_table,
    filter_table,
    karate_club,
    lasso_table,
    study_document,
)


def theory(
    graph: str | None = None,
    /,
    *,
    theta: str | None = None,
    plot: Path | None = None,
    overwrite: Overwrite = False,
    json: Json = False,
    offline: Offline = False,
) -> None:
    """Check theorems 1 and 2 and the LASSO view on a graph, and list where the paper slips.

    Parameters
    ----------
    graph
        A name from `gcnii data list`, or a folder with nodes.csv and edges.csv; default: Zachary's
        karate club.
    theta
        Also realise your own filter Σ θ_k L̃^k; its coefficients, separated by commas, such as
        1,-0.5,0.25.
    plot
        Write the figure to this .png or .svg file.
    """
    own = _coefficients(theta) if theta else None
    _refuse_plot(plot, overwrite)
    study = _study(graph, own, offline)
    if plot:
        save(draw_study(study), plot, overwrite=overwrite)
    if json:
        print_json(study_document(study, plot))
    else:
        _print(study, plot)


def _coefficients(words: str) -> tuple[float, ...]:
    try:
        found = tuple(float(word) for word in words.split(","))
    except ValueError:
        found = ()
    if not found or not np.isfinite(found).all():
        raise InputError(
            f"--theta must be numbers separated by commas, such as 1,-0.5,0.25, got {words!r}"
        )
    return found


def _refuse_plot(plot: Path | None, overwrite: bool) -> None:
    if plot and plot.suffix not in (".png", ".svg"):
        raise InputError(f"--plot must end in .png or .svg, got {plot.name}")
    if plot:
        refuse_unwritable(plot.parent, "--plot")
        refuse_replacing(plot, is_figure, overwrite=overwrite)


def _study(source: str | None, theta: tuple[float, ...] | None, offline: bool) -> Study:
    graph = load_graph(source, offline=offline) if source else karate_club()
    study = Study(graph, theta)
    with counting_bar(f"theory on {graph.name}", len(PARTS)) as show:
        study.complete(show)
    return study


def _print(study: Study, plot: Path | None) -> None:
    print(_spectrum(study))
    console = table_console()
    for table in (
        distance_table(*study.distances),
        convergence_table(study.by_degree),
        filter_table(study.filters),
        epsilon_table(study.substitutes),
        lasso_table(study.lasso),
    ):
        console.print(table)
        print()
    print("Where the paper slips, with examples on the star 0–1, 0–2, 0–3:")
    for erratum in errata():
        print(f"- {erratum.where}: the paper says {erratum.says}; {erratum.holds}.")
    if plot:
        print(f"\nplot {plot}")


def _spectrum(study: Study) -> str:
    """The graph, its spectral gap, and the depth at which Theorem 1's bound falls to 0.001."""
    graph, walk = study.graph, study.walk
    parts, largest = len(walk.components), len(walk.components[0])
    pieces = "connected" if parts == 1 else f"{parts} components, the largest of {largest:,} nodes"
    how = "all eigenvalues" if largest <= EXACT else "Lanczos"
    spectral, printed = walk.depths_to(1e-3)
    return (
        f"{graph.name}: {graph.n:,} nodes, {graph.m:,} edges, {pieces}\n"
        f"λ = {walk.gap:.6f} ({how}); P̃'s eigenvalues lie in [{walk.least:.3f}, 1]\n"
        f"layers K until the bound falls to 0.001: {spectral:,} by (1 - λ/2)^K, "
        f"{printed:,} by the printed (1 - λ²/2)^K\n"
    )
