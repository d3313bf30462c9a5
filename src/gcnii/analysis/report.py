"""Tables and figures: what the doctor found, filters and their reach, and a search of settings.

And `gcnii.watch`: the hidden states of any model, as a table and as a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from torch import nn

from gcnii.analysis.checkup import (
    Checkup,
    Diagnosis,
    LayerReport,
    Probe,
    ProbeBaseline,
    diagnose,
    examine,
)
from gcnii.analysis.degree import span
from gcnii.analysis.filters import Floats, Influence, Learned, Response, gcn_filter, pagerank_filter
from gcnii.analysis.smoothing import SmoothnessMeter
from gcnii.analysis.states import HiddenStates
from gcnii.errors import InputError
from gcnii.files import Document, refuse_replacing
from gcnii.graph import Graph
from gcnii.nn import MODELS, Model
from gcnii.nn.model import numbers_of
from gcnii.report.figures import (
    GREY,
    LineStyle,
    depth_axis,
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
from gcnii.report.tables import plain_table
from gcnii.targets.scores import EVERY, Score, percent

if TYPE_CHECKING:
    import pandas as pd
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
    table = plain_table(*LAYER_HEADS, numbers=slice(None))
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
    table = plain_table(*DEPTH_HEADS, numbers=slice(1, -1))
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
    table = plain_table("model", *heads)
    for checkup in checkups:
        rows = (row for row in checkup.degrees if row["who"] == "all" and row["below"])
        table.add_row(checkup.model, *(percent(row["accuracy"]) for row in rows))
    return Group(title, table)


ACROSS = 3  # panels beside each other


@dataclass(frozen=True)
class LayerPlot:
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


LAYER_PLOTS = (
    LayerPlot(
        "energy",
        "Do neighbours become alike?",
        "Dirichlet energy / |H|²",
        lambda row: row.state.roughness.value,
    ),
    LayerPlot(
        "mad",
        "Do all nodes become alike?",
        "mean cosine distance (MAD)",
        lambda row: row.state.mad.value,
    ),
    LayerPlot(
        "rank",
        "How many directions are left?",
        "effective rank",
        lambda row: row.state.effective_rank.value,
    ),
    LayerPlot(
        "probe",
        "What can still be read?",
        "linear probe, val. accuracy (%)",
        lambda row: None if row.probe is None else 100 * row.probe,
        log=False,
    ),
    LayerPlot(
        "gradient",
        "Does the loss reach the layer?",
        "norm of the gradient",
        lambda row: row.gradient,
    ),
)


def _draw_plot(plot: LayerPlot, checkups: Sequence[Checkup]) -> Figure:
    """Before and after training, one line per model."""
    drawing, styles = figure(2), styles_of(checkup.model for checkup in checkups)
    for axes, when in zip(drawing.axes, ("before", "after"), strict=True):
        for checkup in checkups:
            rows = checkup.before if when == "before" else checkup.after
            plot.draw(axes, rows, checkup.model, styles[checkup.model])
        axes.set(title=f"{when} training")
    shared_scale(drawing)
    drawing.suptitle(f"{plot.title} ({checkups[0].graph}, {checkups[0].layers} layers)")
    shared_legend(drawing)
    return drawing


def draw_depths(checkups: Sequence[Checkup]) -> Figure:
    """Validation accuracy against the number of layers, one line per model."""
    drawing = figure(1)
    (axes,) = drawing.axes
    for model, style in styles_of(checkup.model for checkup in checkups).items():
        own = {one.layers: 100 * one.val for one in checkups if one.model == model}
        draw_line(axes, list(own), list(own.values()), style, model)
    depth_axis(axes, {checkup.layers for checkup in checkups})
    axes.set(ylabel="validation accuracy (%)", ylim=(0, 100))
    axes.set_title(f"How deep can it be trained? ({checkups[0].graph})")
    shared_legend(drawing)
    return drawing


def draw_figures(checkups: Sequence[Checkup]) -> dict[str, Figure]:
    """Every figure by its name; those against the layer show the deepest models."""
    deepest = [one for one in checkups if one.layers == max(other.layers for other in checkups)]
    drawings = {plot.name: _draw_plot(plot, deepest) for plot in LAYER_PLOTS}
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
    """Each number that these layers have, in a panel of its own.

    model  its name in the registry, if it has one
    """
    plots = [plot for plot in LAYER_PLOTS if any(plot.number(row) is not None for row in rows)]
    drawing = panels(len(plots), across=ACROSS)
    for axes, plot in zip(drawing.axes, plots, strict=True):
        plot.draw(axes, rows, plot.label, style_of(model))
        axes.set(title=plot.title)
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


def response_table(found: Mapping[str, Response], *, layers: int, alpha: float) -> Group:
    """One row per band of frequencies: the known filters, then g and purity of each network."""
    first = next(iter(found.values()))  # networks on one graph have the same frequencies
    filters = _known(first.frequency, layers, alpha)
    known = {label: first.beside(curve) for label, curve in filters.items()}
    heads = ("λ", "share", *known, *(head for label in found for head in (label, "purity")))
    table = plain_table(*heads, numbers=slice(None))
    for i, (frequency, share) in enumerate(zip(first.frequency, first.share, strict=True)):
        cells = [f"{curve[i]:+.3f}" for curve in known.values()]
        for one in found.values():
            cells += [f"{one.gain[i]:+.3f} ± {one.error[i]:.3f}", f"{one.purity[i]:.2f}"]
        table.add_row(f"{frequency:.3f}", f"{share:.1%}", *cells)
    return Group("The learned filter g(λ)", table)


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


def influence_table(found: Mapping[str, Influence]) -> Group:
    """One row per hop, and the mean distance."""
    table = plain_table("hops away", *found, numbers=slice(None))
    for hop in range(_last(found) + 1):
        table.add_row(str(hop), *(_cell(one, hop) for one in found.values()))
    table.add_row("mean", *(f"{one.reach:.2f}" for one in found.values()))
    return Group("Influence by hop, in %", table)


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


BEST_TRIALS = 10  # trials in the table
MOST_BARS = 12  # settings in the picture
SYMBOLS = {
    **{"decay_conv": "L2_c", "decay_dense": "L2_d", "alpha": "α", "lam": "λ"},
    **{"input_dropout": "dropout of X", "product_first": "product first", "consistency": "λ_c"},
    **{"drop_node": "nodes dropped", "sharpen": "T", "warm_up": "warm-up", "row_norm": "rows"},
}
SETTINGS_SHOWN = (
    *("layers", "width", "alpha", "lam", "dropout", "input_dropout", "lr", "decay_conv"),
    *("decay_dense", "scale", "norm", "direction", "loops", "class_weight", "batch_norm"),
    *("self_weight", "product_first", "row_norm", "head", "residual"),
    *("views", "drop_node", "consistency", "sharpen", "warm_up"),
)


def trial_table(document: Document) -> Group:
    """The ten best trials."""
    table = plain_table("", "val", "±", "model", "settings", numbers=slice(3))
    trials, won, measured = document["trials"], document["winner"]["number"], _score(document)
    # The default may win without having been trained with all seeds.
    best = [one for one in trials if one["outcome"] == "complete" or one["number"] == won]
    for place, trial in enumerate(best[:BEST_TRIALS], 1):
        score, spread = map(measured.shown, _mean_and_error(trial["val"]))
        settings = words(trial["settings"], trial["model"], document)
        table.add_row(str(place), score, spread, trial["model"], settings)
    return Group(f"The best settings by validation ({measured.name}{measured.in_percent})", table)


def _score(document: Document) -> Score:
    """What the trials of a study are compared by."""
    return next(one for one in EVERY if one.name == document["measured"])


def _mean_and_error(val: list[float]) -> tuple[float, float]:
    error = float(np.std(val, ddof=1) / np.sqrt(len(val))) if len(val) > 1 else 0.0
    return fmean(val), error


def words(settings: Mapping[str, object], model: str, document: Document) -> str:
    """`layers 8, width 64, α 0.1, …`: what was searched; a switch is named where it is on."""
    searched = document["searched"].get(model, SETTINGS_SHOWN)
    names = [name for name in SETTINGS_SHOWN if name in settings and name in searched]
    told = {SYMBOLS.get(name, name): settings[name] for name in names}
    return ", ".join(
        name if value is True else f"{name} {_short(value)}"
        for name, value in told.items()
        if value is not False
    )


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def importance_table(document: Document) -> Group:
    """The share of each setting in what sets the best trials apart."""
    model = document["winner"]["model"]
    if not document["importances"]:
        return Group(f"What mattered: too few trials of {model} to say")
    table = plain_table("setting", "share", "±")
    for one in document["importances"]:
        table.add_row(one["name"], f"{one['share']:.0%}", f"{one['error']:.0%}")
    return Group(f"What mattered among the settings of {model} (share in the best tenth)", table)


def draw_study(document: Document) -> Figure:
    """Left: the score of each trial and the best so far; right: what mattered."""
    drawing = figure(2)
    left, right = drawing.axes
    trials = sorted(document["trials"], key=lambda trial: trial["number"])
    styles = styles_of(trial["model"] for trial in trials)
    _draw_trials(left, document, trials, styles)
    _draw_importances(right, document, styles[document["winner"]["model"]].colour)
    shared_legend(drawing)
    return drawing


def _draw_trials(
    axes: Axes, document: Document, trials: list[Document], styles: Mapping[str, LineStyle]
) -> None:
    scored, measured = [one for one in trials if one["outcome"] != "lost"], _score(document)
    for model in dict.fromkeys(trial["model"] for trial in scored):
        style = styles[model]
        for outcome, face in (("complete", style.colour), ("given up", "none")):
            own = [one for one in scored if (one["model"], one["outcome"]) == (model, outcome)]
            x, y = [one["number"] for one in own], _heights(own, measured)
            label = model if outcome == "complete" else None
            axes.scatter(
                x,
                y,
                s=18,
                label=label,
                marker=style.marker,
                edgecolors=style.colour,
                facecolors=face,
            )
    _draw_best(axes, [one for one in scored if one["outcome"] == "complete"], measured)
    axes.set_xlabel("trial (hollow: given up early)")
    axes.set_ylabel(f"validation {measured.name}{measured.in_percent}")
    axes.set_title(f"{document['graph']}: {document['tried']} settings")


def _heights(trials: list[Document], measured: Score) -> list[float]:
    return [measured.scale * fmean(one["val"]) for one in trials]


def _draw_best(axes: Axes, complete: list[Document], measured: Score) -> None:
    """The best so far; a lower end that hides the worst trials."""
    if complete:
        sign = -1 if measured.lower_is_better else 1
        scores = sign * np.array(_heights(complete, measured))
        best = np.maximum.accumulate(scores)
        numbers = [one["number"] for one in complete]
        axes.step(numbers, sign * best, where="post", color=GREY, label="best so far", zorder=0)
        low = float(np.percentile(scores, 10))
        span = max(best[-1] - low, measured.scale / 100 if sign > 0 else 1e-9)
        axes.set_ylim(*sorted((sign * (low - 0.35 * span), sign * (best[-1] + 0.1 * span))))


def _draw_importances(axes: Axes, document: Document, colour: str) -> None:
    shares = document["importances"][:MOST_BARS][::-1]
    axes.set_title(f"What mattered for {document['winner']['model']}")
    if not shares:
        axes.text(0.5, 0.5, "too few trials to say", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    names, values = [one["name"] for one in shares], [100 * one["share"] for one in shares]
    errors = [100 * one["error"] for one in shares]
    axes.barh(names, values, xerr=errors, color=colour, alpha=0.8, ecolor=GREY, capsize=2)
    axes.set_xlabel("share in what sets the best tenth apart, in %")


def watch(
    model: nn.Module, graph: Graph | None = None, *, layers: Iterable[nn.Module] | None = None
) -> Watch:
    """Record the hidden states of a model's last forward pass, in a `with` block.

    Call `model.eval()` first: dropout would change the states.

    Parameters
    ----------
    model : torch.nn.Module
        A model of `gcnii.nn`, of PyG, or your own.
    graph : Graph, optional
        The graph, whose labels and split the probes need.  Without it, the edges are taken from the
        model's inputs, and there are no probes.
    layers : list of modules, optional
        The layers of a model that is not in the registry; default: PyG's convolutions, or else the
        members of the longest ModuleList or Sequential.

    Returns
    -------
    Watch
        `table()` returns a data frame with one row per layer, `plot()` a figure, `diagnose()` a
        verdict.

    Examples
    --------
    >>> import gcnii
    >>> graph = gcnii.load("csbm", n=60)
    >>> P, X = gcnii.propagation_matrix(graph), gcnii.feature_matrix(graph)
    >>> model = gcnii.nn.GCNII(graph.d, graph.k, layers=4, width=8).eval()
    >>> with gcnii.watch(model, graph) as states:
    ...     scores = model(P, X)
    >>> len(states.table())
    5
    """
    return Watch(model, graph, layers)


class Watch(HiddenStates):
    """The hidden states of one forward pass, with what can be measured of them."""

    def __init__(
        self,
        model: nn.Module,
        graph: Graph | None = None,
        layers: Iterable[nn.Module] | None = None,
    ):
        super().__init__(model, layers)
        self.graph = graph

    def table(self) -> pd.DataFrame:
        """One row per layer; sampled numbers have their standard error in a column beside them."""
        import pandas as pd  # takes a third of a second to import

        return pd.DataFrame([_flat(row) for row in self.examine()]).rename_axis("layer")

    def plot(self) -> Figure:
        """A matplotlib figure with one panel per number, against the layer."""
        names = (name for name, kind in MODELS.items() if type(self.model) is kind)
        return draw_layers(self.examine(), next(names, ""))

    def diagnose(self) -> Diagnosis:
        """The verdict on the model, and what to try."""
        baseline = ProbeBaseline.of(self.graph, self._probe) if self.graph and self._probe else None
        about = {"edges": self._meter.m, "baseline": baseline, "settings": _advised_by(self.model)}
        return diagnose(self.examine(), **about)

    def examine(self) -> tuple[LayerReport, ...]:
        return examine(self, self._meter, self._probe)

    @cached_property
    def _probe(self) -> Probe | None:
        return Probe(self.graph) if self.graph and self.graph.splits else None

    @property
    def _meter(self) -> SmoothnessMeter:
        if self.graph:
            return SmoothnessMeter.of(self.graph)
        if self.edges is None:
            raise InputError(
                "no edges were seen among the model's inputs; pass the graph: watch(model, graph)"
            )
        return SmoothnessMeter(self.edges.cpu(), len(self.layers[0].H))


def _flat(row: LayerReport) -> Document:
    numbers: Document = {}
    for name, value in row.summary().items():
        if isinstance(value, list):
            numbers[name], error = value
            numbers |= {f"{name} ±": error} if error else {}
        else:
            numbers[name] = value
    return numbers


def _advised_by(model: nn.Module) -> dict[str, float]:
    """α, if a model of `gcnii.nn` has one, and β_1, which stands for its λ, for the advice."""
    if not isinstance(model, Model):
        return {}
    numbers = ((name.rpartition(".")[2], value) for name, value in numbers_of(model).items())
    return {name: value for name, value in reversed([*numbers]) if name in ("alpha", "beta")}
