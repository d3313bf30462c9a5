"""Results as tables for the terminal; scores are printed in per cent, as in the paper."""

from __future__ import annotations

from rich.table import Table

from gcnii.train.result import Result


def runs_table(result: Result) -> Table:
    """A row a run."""
    table = Table(
        "seed",
        "split",
        "val",
        "test",
        "best epoch",
        "epochs",
        "seconds",
        box=None,
        header_style="bold",
    )
    for column in table.columns:
        column.justify = "right"
    for run in result.runs:
        scores = (percent(run.val), percent(run.test))
        counts = (str(run.best_epoch + 1), str(run.epochs), f"{run.seconds:.1f}")
        table.add_row(str(run.seed), str(run.split), *scores, *counts)
    return table


def headline(result: Result) -> str:
    """One line: what was trained, on what, how well."""
    plan = result.plan
    layers = f", {plan.model_settings['layers']} layers" if "layers" in plan.model_settings else ""
    return f"{plan.model}{layers}, on {result.graph.name}: test {result.metric} {mean_and_spread(result)}"


def mean_and_spread(result: Result) -> str:
    """`85.3 ± 0.4 (10 runs)`: mean and sample standard deviation over the runs."""
    count = len(result.runs)
    if count == 1:
        return f"{percent(result.test[0])} (1 run)"
    return f"{percent(result.test.mean())} ± {percent(result.test.std(ddof=1))} ({count} runs)"


def span(low: int, below: float) -> str:
    """A group of degrees: 1, 2–3, 4–7, …"""
    return str(low) if below == low + 1 else f"{low}–{below - 1:g}"


def percent(score: float) -> str:
    """0.8534 → 85.3; a dash where there is nothing to grade."""
    return "–" if score != score else f"{100 * score:.1f}"
