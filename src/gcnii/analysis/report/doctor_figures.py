"""The doctor's findings as figures, one per question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gcnii.analysis.layers.checkup import Checkup, LayerReport
from gcnii.analysis.report.style import (
    LineStyle,
    draw_line,
    figure,
    panels,
    save,
    shared_legend,
    shared_scale,
    style_of,
    styles_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACROSS = 3  # panels beside each other


@dataclass(frozen=True)
class Question:
    """One figure: a number of each layer, against the layer."""

    name: str
    title: str
    label: str
    number: Callable[[LayerReport], float | None]
    log: bool = True

    def draw(self, axes: Axes, rows: Iterable[LayerReport], label: str, style: LineStyle) -> None:
        """Draw the layers of one model as a line."""
        numbers = enumerate(map(self.number, rows))
        points = [(l, number) for l, number in numbers if number is not None]
        layers, values = zip(*points, strict=True) if points else ((), ())
        draw_line(axes, layers, values, style, label, every=max(1, len(points) // 8))
        if self.log:
            axes.set_yscale("log")
        axes.set(xlabel="layer", ylabel=self.label)


def _percent(row: LayerReport) -> float | None:
    return None if row.probe is None else 100 * row.probe


QUESTIONS = (
    Question(
        "energy",
        "Do neighbours become alike?",
        "Dirichlet energy / |H|²",
        lambda row: row.state.roughness.value,
    ),
    Question(
        "mad",
        "Do all nodes become alike?",
        "mean cosine distance (MAD)",
        lambda row: row.state.mad.value,
    ),
    Question(
        "rank",
        "How many directions are left?",
        "effective rank",
        lambda row: row.state.effective_rank.value,
    ),
    Question(
        "probe",
        "What can still be read?",
        "linear probe, val. accuracy (%)",
        _percent,
        log=False,
    ),
    Question(
        "gradient",
        "Does the loss reach the layer?",
        "norm of the gradient",
        lambda row: row.gradient,
    ),
)


def draw_question(question: Question, checkups: Sequence[Checkup]) -> Figure:
    """Before and after training, one line per model."""
    drawing, styles = figure(2), styles_of(checkup.model for checkup in checkups)
    for axes, when in zip(drawing.axes, ("before", "after"), strict=True):
        for checkup in checkups:
            rows = checkup.before if when == "before" else checkup.after
            question.draw(axes, rows, checkup.model, styles[checkup.model])
        axes.set(title=f"{when} training")
    shared_scale(drawing)
    drawing.suptitle(f"{question.title} ({checkups[0].graph}, {checkups[0].layers} layers)")
    shared_legend(drawing)
    return drawing


def draw_depths(checkups: Sequence[Checkup]) -> Figure:
    """Validation accuracy against the number of layers, one line per model."""
    drawing = figure(1)
    (axes,) = drawing.axes
    for model, style in styles_of(checkup.model for checkup in checkups).items():
        own = {one.layers: 100 * one.val for one in checkups if one.model == model}
        draw_line(axes, list(own), list(own.values()), style, model)
    depths = sorted({checkup.layers for checkup in checkups})
    axes.set_xscale("log", base=2)
    axes.set_xticks(depths, [str(depth) for depth in depths])
    axes.set(xlabel="layers", ylabel="validation accuracy (%)", ylim=(0, 100))
    axes.set_title(f"How deep can it be trained? ({checkups[0].graph})")
    shared_legend(drawing)
    return drawing


def draw_figures(checkups: Sequence[Checkup]) -> dict[str, Figure]:
    """Every figure by its name; those against the layer show the deepest models."""
    deepest = [one for one in checkups if one.layers == max(other.layers for other in checkups)]
    drawings = {question.name: draw_question(question, deepest) for question in QUESTIONS}
    return drawings | {"depth": draw_depths(checkups)}


def write_figures(folder: Path, drawings: Mapping[str, Figure]) -> list[Path]:
    """Write every figure as SVG and PNG."""
    return [
        save(drawing, folder / f"{name}.{kind}")
        for name, drawing in drawings.items()
        for kind in ("svg", "png")
    ]


def draw_layers(rows: Sequence[LayerReport], model: str = "") -> Figure:
    """Each question that these layers answer, in a panel of its own.

    model  its name in the registry, if it has one
    """
    asked = [
        question for question in QUESTIONS if any(question.number(row) is not None for row in rows)
    ]
    drawing = panels(len(asked), across=ACROSS)
    for axes, question in zip(drawing.axes, asked, strict=True):
        question.draw(axes, rows, question.label, style_of(model))
        axes.set(title=question.title)
    return drawing
