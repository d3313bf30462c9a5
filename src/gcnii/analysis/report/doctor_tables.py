"""The doctor's findings as tables for the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import isnan

from rich.console import Group
from rich.table import Table

from gcnii.analysis.layers.checkup import Checkup, LayerReport
from gcnii.analysis.layers.diagnosis import Diagnosis
from gcnii.metrics.degree import span
from gcnii.metrics.objective import percent

# layers that the table of a deep model shows, besides the last
SHOWN = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
LAYER_HEADS = (
    *("layer", "width", "energy", "of ‖H‖²", "MAD", "MADGap", "eff. rank", "rank", "limit"),
    *("dead", "gradient", "probe"),
)
DEPTH_HEADS = (
    *("model", "layers", "val", "probe", "best probe", "eff. rank", "energy", "MAD", "limit"),
    *("first gradient", "verdict"),
)


def layer_table(rows: Sequence[LayerReport], title: str) -> Group:
    """One row per layer; of a deep model only some layers, the last one among them."""
    table = _table(*LAYER_HEADS)
    for l, row in enumerate(rows):
        if l in SHOWN or l == len(rows) - 1:
            table.add_row(str(l), *_layer_cells(row))
    return Group(title, table)


def _layer_cells(row: LayerReport) -> Iterator[str]:
    state = row.state
    yield str(state.width)
    estimates = (state.energy, state.roughness, state.mad, state.mad_gap, state.effective_rank)
    for value, error in estimates:
        yield "–" if isnan(value) else f"{value:.3g}" + (f" ± {error:.1g}" if error else "")
    yield from (str(state.rank), f"{state.distance:.2g}", f"{state.dead:.0%}")
    yield "–" if row.gradient is None else f"{row.gradient:.1e}"
    yield "–" if row.probe is None else percent(row.probe)


def depth_table(found: Sequence[tuple[Checkup, Diagnosis]]) -> Group:
    """One row per model and depth, after training."""
    table = _table(*DEPTH_HEADS, left=("model", "verdict"))
    for checkup, diagnosis in found:
        table.add_row(*_depth_cells(checkup), diagnosis.verdict.kind)
    return Group("After training, at the last layer", table)


def _depth_cells(checkup: Checkup) -> Iterator[str]:
    rows = checkup.after
    last, best = rows[-1], max(rows, key=lambda row: row.probe or 0.0)
    yield from (checkup.model, str(checkup.layers), percent(checkup.val))
    yield percent(last.probe or 0.0)
    yield f"{percent(best.probe or 0.0)} at {rows.index(best)}"
    yield f"{last.state.effective_rank.value:.1f} of {last.state.width}"
    numbers = (last.state.roughness.value, last.state.mad.value, last.state.distance)
    yield from (f"{number:.2g}" for number in numbers)
    first = next((row.gradient for row in rows if row.gradient is not None), None)
    yield "–" if first is None else f"{first:.1e}"


def degree_table(checkups: Sequence[Checkup]) -> Group:
    """Accuracy on all labelled nodes by degree, for models of one depth."""
    groups = {
        row["from"]: row for row in checkups[0].degrees if row["who"] == "all" and row["below"]
    }
    heads = [f"{span(row['from'], row['below'])} ({row['nodes']})" for row in groups.values()]
    title = f"Accuracy by degree (nodes), {checkups[0].layers} layers, all nodes, in %"
    table = _table("model", *heads, left=("model",))
    for checkup in checkups:
        rows = (row for row in checkup.degrees if row["who"] == "all" and row["below"])
        table.add_row(checkup.model, *(percent(row["accuracy"]) for row in rows))
    return Group(title, table)


def _table(*heads: str, left: Collection[str] = ()) -> Table:
    """A table without lines; columns are aligned to the right, but for those named in `left`."""
    table = Table(*heads, box=None, header_style="bold")
    for column in table.columns:
        column.justify = "left" if column.header in left else "right"
    return table
