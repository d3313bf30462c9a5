"""What the doctor found: tables for the terminal, and one figure a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table

from gcnii.analysis.layers.checkup import Checkup, LayerReport
from gcnii.analysis.layers.diagnosis import Diagnosis
from gcnii.analysis.report.style import STYLES, figure, save, shared_legend, shared_scale
from gcnii.metrics.degree import span
from gcnii.metrics.objective import percent

# layers that a table of a deep model shows
SHOWN = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
PANELS = 3  # beside each other


@dataclass(frozen=True)
class Question:
    """One figure: a number of each layer, against the layer."""

    name: str
    title: str
    label: str
    number: Callable[[LayerReport], float | None]
    log: bool = False


QUESTIONS = (
    Question(
        "energy",
        "Do neighbours become alike?",
        "Dirichlet energy / |H|²",
        lambda r: r.state.roughness.value,
        True,
    ),
    Question(
        "mad",
        "Do all nodes become alike?",
        "mean cosine distance (MAD)",
        lambda r: r.state.mad.value,
        True,
    ),
    Question(
        "rank",
        "How many directions are left?",
        "effective rank",
        lambda r: r.state.effective_rank.value,
        True,
    ),
    Question(
        "probe",
        "What can still be read?",
        "linear probe, val. accuracy (%)",
        lambda r: _percent(r.probe),
    ),
    Question(
        "gradient",
        "Does the loss reach the layer?",
        "norm of the gradient",
        lambda r: r.gradient,
        True,
    ),
)


def layer_table(rows: Sequence[LayerReport], title: str) -> Group:
    """A row a layer; of a deep model some layers, the last one among them."""
    heads = (
        "layer",
        "width",
        "energy",
        "of ‖H‖²",
        "MAD",
        "MADGap",
        "eff. rank",
        "rank",
        "limit",
        "dead",
        "gradient",
    )
    table = Table(*heads, "probe", box=None, header_style="bold")
    for column in table.columns:
        column.justify = "right"
    for l, row in enumerate(rows):
        if l in SHOWN or l == len(rows) - 1:
            table.add_row(str(l), *_cells(row))
    return Group(title, table)


def _cells(row: LayerReport) -> Iterator[str]:
    state = row.state
    yield str(state.width)
    for value, error in (
        state.energy,
        state.roughness,
        state.mad,
        state.mad_gap,
        state.effective_rank,
    ):
        yield "–" if isnan(value) else f"{value:.3g}" + (f" ± {error:.1g}" if error else "")
    yield from (str(state.rank), f"{state.distance:.2g}", f"{state.dead:.0%}")
    yield "–" if row.gradient is None else f"{row.gradient:.1e}"
    yield "–" if row.probe is None else percent(row.probe)


def depth_table(found: Sequence[tuple[Checkup, Diagnosis]]) -> Group:
    """A row for each model and depth, after training."""
    heads = (
        "model",
        "layers",
        "test",
        "probe",
        "best probe",
        "eff. rank",
        "energy",
        "MAD",
        "limit",
        "first gradient",
    )
    table = Table(*heads, "verdict", box=None, header_style="bold")
    for column in table.columns[1:-1]:
        column.justify = "right"
    for checkup, diagnosis in found:
        last = checkup.after[-1]
        best = max(checkup.after, key=lambda row: row.probe or 0.0)
        first = next((row.gradient for row in checkup.after if row.gradient is not None), None)
        table.add_row(
            *(
                checkup.model,
                str(checkup.layers),
                percent(checkup.test),
                percent(last.probe or 0.0),
            ),
            f"{percent(best.probe or 0.0)} at {checkup.after.index(best)}",
            f"{last.state.effective_rank.value:.1f} of {last.state.width}",
            *(
                f"{number:.2g}"
                for number in (
                    last.state.roughness.value,
                    last.state.mad.value,
                    last.state.distance,
                )
            ),
            *("–" if first is None else f"{first:.1e}", diagnosis.verdict.kind),
        )
    return Group("After training, at the last layer", table)


def degree_table(checkups: Sequence[Checkup]) -> Group:
    """Accuracy on all labelled nodes, by degree, of models of one depth."""
    groups = {
        row["from"]: row for row in checkups[0].degrees if row["who"] == "all" and row["below"]
    }
    heads = [f"{span(row['from'], row['below'])} ({row['nodes']})" for row in groups.values()]
    title = f"Accuracy by degree (nodes), {checkups[0].layers} layers, all nodes, in %"
    table = Table("model", *heads, box=None, header_style="bold")
    for checkup in checkups:
        rows = (row for row in checkup.degrees if row["who"] == "all" and row["below"])
        table.add_row(checkup.model, *(percent(row["accuracy"]) for row in rows))
    for column in table.columns[1:]:
        column.justify = "right"
    return Group(title, table)


def draw_question(question: Question, checkups: Sequence[Checkup]) -> Any:
    """Before and after training, a line a model."""
    drawing = figure(2)
    for axes, when in zip(drawing.axes, ("before", "after"), strict=True):
        for style, checkup in zip(_styles(), checkups, strict=False):
            _line(
                axes, [question.number(row) for row in getattr(checkup, when)], checkup.model, style
            )
        if question.log:
            axes.set_yscale("log")
        axes.set(xlabel="layer", ylabel=question.label, title=f"{when} training")
    shared_scale(drawing)
    drawing.suptitle(f"{question.title} ({checkups[0].graph}, {checkups[0].layers} layers)")
    shared_legend(drawing)
    return drawing


def draw_depths(checkups: Sequence[Checkup]) -> Any:
    """Test accuracy against the number of layers, a line a model."""
    drawing = figure(1)
    (axes,) = drawing.axes
    models = list(dict.fromkeys(checkup.model for checkup in checkups))
    for (colour, marker, dash), model in zip(_styles(), models, strict=False):
        own = [checkup for checkup in checkups if checkup.model == model]
        tests = [100 * checkup.test for checkup in own]
        axes.plot(
            [one.layers for one in own],
            tests,
            color=colour,
            marker=marker,
            linestyle=dash,
            label=model,
        )
    depths = sorted({checkup.layers for checkup in checkups})
    axes.set_xscale("log", base=2)
    axes.set_xticks(depths, [str(depth) for depth in depths])
    axes.set(
        xlabel="layers",
        ylabel="test accuracy (%)",
        title=f"How deep can it be trained? ({checkups[0].graph})",
        ylim=(0, 100),
    )
    shared_legend(drawing)
    return drawing


def draw_figures(checkups: Sequence[Checkup]) -> dict[str, Any]:
    """Every figure by its name; those against the layer are of the deepest models."""
    deepest = [one for one in checkups if one.layers == max(other.layers for other in checkups)]
    drawings = {question.name: draw_question(question, deepest) for question in QUESTIONS}
    return drawings | {"depth": draw_depths(checkups)}


def write_figures(folder: Path, drawings: Mapping[str, Any]) -> list[Path]:
    """Every figure as SVG and PNG."""
    return [
        save(drawing, folder / f"{name}.{kind}")
        for name, drawing in drawings.items()
        for kind in ("svg", "png")
    ]


def draw_layers(rows: Sequence[LayerReport]) -> Any:
    """Each question that these layers answer, in a panel of its own."""
    asked = [
        question for question in QUESTIONS if any(question.number(row) is not None for row in rows)
    ]
    drawing = figure(min(len(asked), PANELS), -(-len(asked) // PANELS))
    for spare in drawing.axes[len(asked) :]:
        spare.remove()
    for axes, question in zip(drawing.axes, asked, strict=True):
        _line(axes, [question.number(row) for row in rows], question.label, STYLES[0])
        if question.log:
            axes.set_yscale("log")
        axes.set(xlabel="layer", ylabel=question.label, title=question.title)
    return drawing


def _line(
    axes: Any, numbers: Iterable[float | None], label: str, style: tuple[str, str, str]
) -> None:
    colour, marker, dash = style
    points = [(l, number) for l, number in enumerate(numbers) if number is not None]
    every = max(1, len(points) // 8)
    layers, values = zip(*points, strict=True) if points else ((), ())
    axes.plot(
        layers, values, color=colour, marker=marker, linestyle=dash, markevery=every, label=label
    )


def _styles() -> Iterator[tuple[str, str, str]]:
    while True:
        yield from STYLES


def _percent(score: float | None) -> float | None:
    return None if score is None else 100 * score
