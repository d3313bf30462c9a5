"""Tables and figures of what the doctor found, and of the filters and the reach of networks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table

from gcnii.analysis.checkup import Checkup, Diagnosis, LayerReport
from gcnii.analysis.degree import span
from gcnii.analysis.filters import Floats, Influence, Learned, Response, gcn_filter, pagerank_filter
from gcnii.files import refuse_replacing
from gcnii.report.figures import (
    GREY,
    LineStyle,
    draw_bars,
    draw_line,
    figure,
    is_figure,
    panels,
    save,
    shared_legend,
    shared_scale,
    style_of,
    styles_of,
)
from gcnii.targets.objective import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


def write_figures(
    folder: Path, drawings: Mapping[str, Figure], *, overwrite: bool = False
) -> list[Path]:
    """Write every figure as SVG and PNG."""
    refuse_figures(folder, drawings, overwrite=overwrite)
    return [
        save(drawing, path, overwrite=overwrite)
        for name, drawing in drawings.items()
        for path in _files(folder, name)
    ]


def refuse_figures(folder: Path, names: Iterable[str], *, overwrite: bool = False) -> None:
    """Raise InputError if a figure of one of these names may not be written to the folder."""
    for name in names:
        for path in _files(folder, name):
            refuse_replacing(path, is_figure, overwrite=overwrite)


def _files(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.{kind}" for kind in ("svg", "png")]


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


def draw_response(found: Mapping[str, Response], *, layers: int, alpha: float) -> Figure:
    """One line per network, with bars of two standard errors; in grey a linear GCN and PageRank.

    layers  of the linear GCN
    alpha   of the PageRank
    """
    drawing = figure(1)
    (axes,) = drawing.axes
    first = next(iter(found.values()))
    fine = np.linspace(first.frequency[0], first.frequency[-1], 200)
    for dash, (label, curve) in zip((":", "--"), _known(fine, layers, alpha).items(), strict=True):
        axes.plot(fine, first.beside(curve), color=GREY, linestyle=dash, linewidth=3, label=label)
    styles = styles_of(found)
    for label, one in found.items():
        x, y, error = one.frequency, one.gain, 2 * one.error
        draw_bars(axes, x, y, error, styles[label], label, markersize=4, linewidth=1.2)
    axes.axhline(0, color=GREY, linewidth=0.8)
    axes.set(xlabel="frequency λ: 0 is the same on all neighbours", xlim=(0, None))
    axes.set(ylabel="g(λ), the largest is 1")
    axes.set_title("How much of a signal passes, by its frequency")
    shared_legend(drawing)
    return drawing


def response_table(found: Mapping[str, Response], *, layers: int, alpha: float) -> Table:
    """One row per band of frequencies: the known filters, then g and purity of each network."""
    first = next(iter(found.values()))  # networks on one graph have the same frequencies
    filters = _known(first.frequency, layers, alpha)
    known = {label: first.beside(curve) for label, curve in filters.items()}
    heads = ("λ", "share", *known, *(head for label in found for head in (label, "purity")))
    table = Table(*heads, title="The learned filter g(λ)", title_justify="left", box=None)
    for column in table.columns:
        column.justify = "right"
    for i, (frequency, share) in enumerate(zip(first.frequency, first.share, strict=True)):
        cells = [f"{curve[i]:+.3f}" for curve in known.values()]
        for one in found.values():
            cells += [f"{one.gain[i]:+.3f} ± {one.error[i]:.3f}", f"{one.purity[i]:.2f}"]
        table.add_row(f"{frequency:.3f}", f"{share:.1%}", *cells)
    return table


def _known(frequency: Floats, layers: int, alpha: float) -> dict[str, Floats]:
    return {
        f"(1-λ)^{layers}: GCN without ReLU": gcn_filter(frequency, layers),
        f"personalised PageRank, α = {alpha:g}": pagerank_filter(frequency, alpha),
    }


LEAST_SHARE = 0.005  # hops beyond the last one with this share are left out


def draw_influence(found: Mapping[str, Influence]) -> Figure:
    """One line per network, with bars of two standard errors and its mean in the legend."""
    drawing = figure(1)
    (axes,) = drawing.axes
    last, styles = _last(found), styles_of(found)
    for name, one in found.items():
        share, error = (100 * values[: last + 1] for values in (one.share, one.error))
        label = f"{name}, mean {one.reach:.1f}"
        draw_bars(axes, range(len(share)), share, 2 * error, styles[name], label)
    axes.set(xlabel="hops away; 0 is the node itself", ylabel="influence (%)", ylim=(0, None))
    axes.set_xticks(range(last + 1))
    axes.set_title("Where a node's score comes from")
    shared_legend(drawing)
    return drawing


def influence_table(found: Mapping[str, Influence]) -> Table:
    """One row per hop, and the mean distance."""
    table = Table(
        "hops away", *found, title="Influence by hop, in %", title_justify="left", box=None
    )
    for column in table.columns:
        column.justify = "right"
    for hop in range(_last(found) + 1):
        table.add_row(str(hop), *(_cell(one, hop) for one in found.values()))
    table.add_row("mean", *(f"{one.reach:.2f}" for one in found.values()))
    return table


def _cell(one: Influence, hop: int) -> str:
    if hop >= len(one.share):
        return "–"
    return f"{100 * one.share[hop]:.1f} ± {100 * one.error[hop]:.1f}"


def _last(found: Mapping[str, Influence]) -> int:
    """The last hop that is worth showing."""
    return int(
        max(np.flatnonzero(one.share >= LEAST_SHARE).max(initial=0) for one in found.values())
    )


def learned_tables(learned: Learned) -> Iterator[RenderableType]:
    """What there is to print; nothing if no question was asked."""
    if learned.responses:
        yield response_table(learned.responses, layers=learned.layers, alpha=learned.alpha)
        yield influence_table(learned.influences)


def draw_learned(learned: Learned) -> dict[str, Figure]:
    """One figure per question, by its name; none if no question was asked."""
    if not learned.responses:
        return {}
    layers, alpha = learned.layers, learned.alpha
    return {
        "filter": draw_response(learned.responses, layers=layers, alpha=alpha),
        "influence": draw_influence(learned.influences),
    }
