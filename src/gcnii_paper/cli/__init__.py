"""The study's commands: reproduce, theory, bench, and the reports of what was measured."""

from __future__ import annotations

from cyclopts import App, Group


def register(app: App, report: App) -> None:
    """Add them to `gcnii` and to `gcnii report`; their files are imported when they are called."""
    paper = Group("Reproducing the paper", sort_key=1)
    app.command(
        "gcnii_paper.cli.reproduce:app",
        name="reproduce",
        group=paper,
        help="""Run the paper's tables and figures, and compare them with the printed numbers.

        Finished runs are kept in a ledger. Run the same command again to resume; processes that run
        it at the same time share the work.""",
    )
    app.command(
        "gcnii_paper.cli.theory:theory",
        name="theory",
        group=paper,
        help="""Check the paper's theorems on a graph, with numbers.

        Covers Theorems 1 and 2, Conjecture 1 and the LASSO view of Section 3, and lists errata.""",
    )
    app.command(
        "gcnii_paper.cli.bench:bench",
        name="bench",
        group=paper,
        help="""Measure speed and memory against PyG and the authors' layer, re-implemented.

        Prints the time and peak memory of an epoch, and the least time that the device allows.""",
    )
    report.command(
        "gcnii_paper.cli.report:html",
        name="html",
        help="Write one HTML page with every table, seed and figure; the figures as SVG and PNG.",
    )
    report.command(
        "gcnii_paper.cli.report:readme",
        name="readme",
        help="Rewrite the tables and figures of README.md and docs/ from results/.",
    )
