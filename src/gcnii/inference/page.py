"""The page of a run: one HTML file with all that is known about a trained model.

write_page  write it: scores, curves, confusions, calibration, and nodes with their explanations
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan, sqrt
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from gcnii import __version__
from gcnii.errors import GcniiError
from gcnii.files import Document, atomic_write, refuse_replacing
from gcnii.graph import Graph
from gcnii.inference.evaluate import Evaluation, LabelEvaluation, NumberEvaluation, evaluate
from gcnii.inference.evaluate import steps as evaluation_steps
from gcnii.inference.explain import Explanation
from gcnii.inference.predict import known_labels
from gcnii.inference.tables import (
    CONFUSIONS,
    NAMED,
    Grid,
    ShownScore,
    calibration_grid,
    class_grid,
    decision_grid,
    decision_sentences,
    group_grids,
    number_grids,
)
from gcnii.inference.training_graph import load_training_graph
from gcnii.report.figures import GREY, OTHERS, figure, inline_svg, style_of
from gcnii.report.html import is_page, one_file
from gcnii.results.card import board, how_weighed
from gcnii.results.ensemble import Ensemble
from gcnii.results.result import Result
from gcnii.results.trained import Trained
from gcnii.targets import LabelTarget, target_of
from gcnii.targets.interval import wilson
from gcnii.targets.scores import SCORES, frequent_confusions, number_shown, percent
from gcnii.targets.target import Bin
from gcnii.train.plan import make_plan
from gcnii.train.stopping import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEEDS = 12  # that are named one by one


def verdict(result: Trained, evaluation: Evaluation) -> str:
    """The score with its interval, and what naming the largest class would give."""
    metric = evaluation.metric
    own = ShownScore.named(metric, evaluation.scores[metric])
    runs = len(evaluation.runs)
    mean = f" as the mean of {runs} runs" if runs > 1 else ""
    nodes = f"{evaluation.nodes:,} test {'node' if evaluation.nodes == 1 else 'nodes'}"
    name, ends = evaluation.called(metric), f" ({own.interval})" if own.interval else ""
    score = SCORES[metric]
    unit = "" if score.plain else " %"
    sentence = f"{name[:1].upper()}{name[1:]} {own.number}{unit}{ends}{mean} on {nodes}"
    usual = evaluation.baselines[evaluation.usual][metric].mean
    beside = f"; predicting the same for every node gives {score.shown(usual)}{unit}"
    unfinished = " The training was interrupted." if result.interrupted else ""
    return f"{sentence}{'' if isnan(usual) else beside}.{unfinished}"


def predicting(result: Trained) -> str:
    """Whose predictions the page shows, where there are several runs."""
    runs = result.predicting()
    if len(result.runs) == 1:
        return ""
    split = result.runs[runs[0]].split
    if isinstance(result, Ensemble):
        return f"the ensemble of split {split}, the best by validation"
    if len(runs) == 1:
        seed = result.runs[runs[0]].seed
        return f"the run of seed {seed} on split {split}, the best by validation"
    return f"the mean of the {len(runs)} runs on split {split}, which predicts"


def about(result: Trained, graph: Graph) -> dict[str, str]:
    """Facts by their names: the model, the graph, the nodes of each role, the runs."""
    best, roles = result.runs[result.best], result.roles(graph)
    called = {"val": "validation"}
    sizes = (
        f"{int(nodes.sum()):,} {called.get(role, role)}"
        for role, nodes in roles.items()
        if nodes.any()
    )
    other = int((~np.any([*roles.values()], 0)).sum())
    facts = {
        "model": _model(result),
        "graph": _graph(graph),
        "nodes": ", ".join([*sizes, *([f"{other:,} unused"] if other else [])]),
        "runs": _runs(result),
        "best run": f"seed {best.seed}, by validation",
        "best epoch": f"{best.best_epoch}, counted from 0, of {best.epochs}, by validation",
        "device": result.device,
    }
    if isinstance(result, Ensemble):  # whose epochs are those of its members
        del facts["best run"], facts["best epoch"]
    if best.temperature is not None:
        facts["temperature"] = f"{best.temperature:.3g}, by which its scores are divided"
    made = result.made or {}
    if made.get("versions"):
        pairs = made["versions"].items()
        facts["versions"] = ", ".join(f"{name} {version}" for name, version in pairs)
    return facts | ({"commit": made["git"]} if made.get("git") else {})


def _model(result: Trained) -> str:
    if isinstance(result, Ensemble):
        weights = result.blends[result.best].weights
        order = sorted(zip(weights, result.members, strict=True), key=lambda one: -one[0])
        return ", ".join(f"{one.name} {weight:.2f}" for weight, one in order if weight)
    assert isinstance(result, Result)
    own = result.plan.model_settings
    sizes = [f"{own['layers']} layers"] if "layers" in own else []
    sizes += [f"{name} {value}" for name, value in own.items() if name != "layers"]
    return ", ".join([result.plan.model, *sizes])


def _graph(graph: Graph) -> str:
    edges = "directed edges" if graph.directed else "edges"
    target = target_of(graph)
    kind = target.words[graph.k > 1] + (", several a node" if graph.multilabel else "")
    sizes = f"{graph.n:,} nodes, {graph.m:,} {edges}, {graph.d:,} features, {graph.k:,} {kind}"
    return f"{graph.name}: {sizes}"


def _runs(result: Trained) -> str:
    count, seconds = len(result.runs), sum(run.seconds for run in result.runs)
    if isinstance(result, Ensemble) and result.folds:
        held = len(result.blends[0].rows)
        return (
            f"{held} of each member, with {held} of {result.folds} folds held out; {seconds:.1f} s"
        )
    seeds = _listed([run.seed for run in result.runs])
    splits = {run.split for run in result.runs}
    on = f"split {next(iter(splits))}" if len(splits) == 1 else f"{len(splits)} splits"
    word = "seed" if count == 1 else "seeds"
    return f"{count} ({word} {seeds}) on {on}; {seconds:.1f} s"


def _listed(numbers: Sequence[int]) -> str:
    """`0 to 9` of neighbours, else one by one, or the first and the last of many."""
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and list(numbers) == list(range(first, last + 1)):
        return f"{first} to {last}"
    return ", ".join(map(str, numbers)) if len(numbers) <= SEEDS else f"{first} … {last}"


def settings(result: Trained, graph: Graph) -> list[Document]:
    """Every setting, and whether it differs from what this model has on this graph by default."""
    if isinstance(result, Ensemble):
        pairs = result.settings.items()
        return [{"name": name, "value": value, "given": True} for name, value in pairs]
    assert isinstance(result, Result)
    own, pairs = given(result, graph), result.plan.settings.items()
    return [{"name": name, "value": value, "given": name in own} for name, value in pairs]


def given(result: Result, graph: Graph) -> Document:
    """The settings that differ from the defaults on this graph."""
    model, own = result.plan.model, result.plan.settings
    usual = make_plan(model, {}, graph).settings
    # `longest` follows from whether `epochs` is given.
    longest = make_plan(model, {"epochs": own["epochs"]}, graph).settings["longest"]
    usual = {**usual, "longest": longest if own["epochs"] != usual["epochs"] else usual["longest"]}
    return {name: value for name, value in own.items() if value != usual.get(name)}


def again(result: Trained, graph: Graph) -> str:
    """The Python that trains the same."""
    origin = result.origin
    options = {name: one for name, one in origin.loaded_with.items() if one != origin.columns}
    made = _call("load", repr(str(origin.source)), **options) if origin.source else "graph"
    if isinstance(result, Ensemble):
        return _call("fit", made, "'auto'", **result.settings)
    assert isinstance(result, Result)
    seeds, own = [run.seed for run in result.runs], given(result, graph)
    if any(run.split != run.seed % len(graph.splits) for run in result.runs):
        own = {"split": result.runs[0].split, **own}
    every = range(seeds[0], seeds[-1] + 1)
    words = f"seeds={every if seeds == [*every] else seeds}"
    return _call("fit", made, repr(result.plan.model), words, **own)


def _call(function: str, *words: str, **named: object) -> str:
    options = (f"{name}={value!r}" for name, value in named.items())
    return f"gcnii.{function}({', '.join([*words, *options])})"


SHOWN = 5  # nodes of each kind
TINY = 1e-300  # the deviation of equal numbers is 0
REASONS = 3  # nodes, links and features that are named
CHANCES = 3  # classes whose probabilities are shown
PATIENCE = 60.0  # seconds for the explanations of one kind, after which no other begins

TOO_SLOW = "explanations take long on this graph; ask for this one with `gcnii explain`"

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Show = Callable[[str], None]  # is told what has been done
Asked = tuple[int, int]  # a node, and the class that it is asked about


@dataclass(frozen=True)
class Card:
    """A node as the page shows it.

    asked     the class that is explained
    chances   the most probable classes; where a node can have several, the one that is asked; none
              of a number
    why_not   why there is no explanation, if there is none
    """

    node: str | int
    label: str
    known: str | None
    asked: str
    chances: tuple[tuple[str, float], ...]
    explanation: Explanation | None
    why_not: str = ""


def quietly(words: str) -> None:
    """Show nothing."""


def cards(
    result: Trained, graph: Graph, device: str = "auto", show: Show = quietly
) -> tuple[list[Card], list[Card]]:
    """The least certain test or unlabelled nodes; the surest of the wrongly labelled test nodes."""
    P = result.predict_proba(graph, device)
    guess = result.decide(P)
    roles = result.roles(graph)
    open_ones = np.flatnonzero(~(roles["train"] | roles["val"]))
    tested = np.flatnonzero(roles["test"] & graph.labelled)
    if result.label_target.exclusive:
        chosen = (
            _unsure(P, guess, open_ones, result.threshold_of(1)),
            _wrong(P, guess, graph.labels, tested),
        )
    else:
        chosen = _unsure_labels(P, open_ones), _wrong_labels(P, guess, graph.labels, tested)
    unsure, wrong = (_cards(result, graph, P, some, device, show) for some in chosen)
    return unsure, wrong


def _unsure(P: Floats, guess: Ints, nodes: Ints, threshold: float | None) -> list[Asked]:
    """The nodes whose most probable class is least probable, or that are next to the threshold."""
    sure = P[nodes].max(1) if threshold is None else np.abs(P[nodes, 1] - threshold)
    return [(int(i), int(guess[i])) for i in nodes[np.argsort(sure, kind="stable")[:SHOWN]]]


def _wrong(P: Floats, guess: Ints, y: Ints, nodes: Ints) -> list[Asked]:
    """The nodes whose wrong class is most probable."""
    wrong = nodes[guess[nodes] != y[nodes]]
    order = np.argsort(-P[wrong].max(1), kind="stable")[:SHOWN]
    return [(int(i), int(guess[i])) for i in wrong[order]]


def _unsure_labels(P: Floats, nodes: Ints) -> list[Asked]:
    """The nodes of which most labels are open, and the most open one of each."""
    doubt = np.abs(P[nodes] - 0.5)
    order = np.argsort(doubt.mean(1), kind="stable")[:SHOWN]
    return [(int(nodes[row]), int(doubt[row].argmin())) for row in order]


def _wrong_labels(P: Floats, guess: Ints, y: Ints, nodes: Ints) -> list[Asked]:
    """The nodes with the label that is given or denied most surely, and wrongly."""
    sure = np.where(guess[nodes] == 1, P[nodes], 1 - P[nodes])
    sure[guess[nodes] == y[nodes]] = -1
    order = np.argsort(-sure.max(1, initial=-1), kind="stable")[:SHOWN]
    return [(int(nodes[row]), int(sure[row].argmax())) for row in order if sure[row].max() >= 0]


def _cards(
    result: Trained, graph: Graph, P: Floats, chosen: Sequence[Asked], device: str, show: Show
) -> list[Card]:
    rows = [node for node, _ in chosen]
    names = [graph.nodes[i] if graph.nodes else int(i) for i in rows]
    every = known_labels(graph)
    labels = isinstance(result.target, LabelTarget)
    given = result.target.shown(result.decide(P[rows]))
    began = monotonic()
    found: list[Card] = []
    for (node, asked), name, label in zip(chosen, names, given, strict=True):
        called = result.target.names[asked]
        late = bool(found) and monotonic() - began > PATIENCE
        reasons = (None, TOO_SLOW) if late else _explained(result, graph, name, called, device)
        chances = _chances(result, P[node], asked) if labels else ()
        found.append(Card(name, label, every[node], called, chances, *reasons))
        show(f"node {name}")
    return found


def _farthest(values: Floats, y: Floats, nodes: Ints) -> list[Asked]:
    """The nodes with the largest errors, beside the deviation of each column, and that column."""
    errors = np.abs(values[nodes] - y[nodes]) / np.maximum(y[nodes].std(0), TINY)
    order = np.argsort(-errors.max(1), kind="stable")[:SHOWN]
    return [(int(nodes[row]), int(errors[row].argmax())) for row in order]


def _chances(result: Trained, p: Floats, asked: int) -> tuple[tuple[str, float], ...]:
    likeliest = np.argsort(-p, kind="stable")[:CHANCES].tolist()
    order = likeliest if result.label_target.exclusive else [asked]
    return tuple((result.label_target.names[j], float(p[j])) for j in order)


def _explained(
    result: Trained, graph: Graph, node: str | int, label: str, device: str
) -> tuple[Explanation | None, str]:
    """The explanation, or why there is none."""
    try:
        return result.explain(graph, node, label=label, top=REASONS, device=device), ""
    except GcniiError as error:
        return None, str(error)


POINTS = 300  # of a curve: more do not show
BESIDE = 20  # curves of other runs that are drawn beside the best one
BLUE = style_of("gcnii").colour
ORANGE = OTHERS[0].colour
SMALL, LARGE = 20, 200  # points², of a dot of a reliability diagram
DOTS = 1000  # nodes of a scatter plot: more hide each other


@dataclass(frozen=True)
class Drawing:
    """A figure of one panel, and what it shows in words."""

    svg: Markup
    caption: str


def draw_curves(result: Result, name: str = "") -> list[Drawing]:
    """The losses and the validation score by epoch; empty if the curves are not known.

    name  of the member of an ensemble
    """
    best = result.runs[result.best]
    if not best.curve:
        return []
    others = [run for run in result.runs if run is not best and run.curve][:BESIDE]

    def draw(axes: Axes, column: int, colour: str, dash: str, label: str, scale: int = 1) -> None:
        for run in others:
            x, y = _points(run, column)
            axes.plot(x, scale * y, color=colour, linewidth=0.7, alpha=0.25)
        x, y = _points(best, column)
        axes.plot(x, scale * y, color=colour, linestyle=dash, label=label)
        axes.locator_params("x", integer=True)
        axes.axvline(best.best_epoch, color=GREY, linestyle=":", linewidth=1)

    losses, scores = figure(1), figure(1)
    (axes,) = losses.axes
    draw(axes, 0, ORANGE, "--", "training")
    draw(axes, 1, BLUE, "-", "validation")
    axes.legend(frameon=False)
    of = f"{name}: " if name else ""
    axes.set(xlabel="epoch", ylabel="loss", title=f"{of}loss" if of else "Loss")
    (axes,) = scores.axes
    draw(axes, 2, BLUE, "-", "", scale=result.score.scale)
    title = f"{of}validation {result.metric}" if of else f"Validation {result.metric}"
    unit = "" if result.score.plain else " (%)"
    axes.set(xlabel="epoch", ylabel=f"{result.metric}{unit}", title=title)
    runs = "1 other run" if len(others) == 1 else f"{len(others)} other runs"
    beside = f"; faint: {runs}" if others else ""
    chosen = f"Dotted: epoch {best.best_epoch}, whose weights were kept{beside}."
    key = f"{name}-" if name else ""
    return [
        Drawing(inline_svg(losses, f"{key}loss", f"{of}Loss by epoch"), chosen),
        Drawing(inline_svg(scores, f"{key}validation", f"{title} by epoch"), ""),
    ]


def curves_of(result: Trained) -> list[Drawing]:
    """Those of a model, or of the networks of weight in an ensemble."""
    if not isinstance(result, Ensemble):
        assert isinstance(result, Result)
        return draw_curves(result)
    blend = result.blends[result.best]
    members = [one for one, weight in result.network_weights(blend).items() if weight]
    rows = list(blend.rows)
    return [one for member in members for one in draw_curves(member.result.part(rows), member.name)]


def _points(run: Run, column: int) -> tuple[Ints, Floats]:
    """Epochs and values, as many as show."""
    values = np.array(run.curve)[:, column]
    x = np.unique(np.linspace(0, len(values) - 1, min(len(values), POINTS)).astype(np.int64))
    return x, values[x]


def draw_reliability(title: str, bins: Sequence[Bin], error: float) -> Drawing:
    """Accuracy against confidence: dots on the diagonal can be trusted; large ones are frequent."""
    drawing = figure(1)
    (axes,) = drawing.axes
    axes.plot([0, 100], [0, 100], color=GREY, linestyle="--", linewidth=1)
    most = max((one.nodes for one in bins), default=1)
    for one in bins:
        x, y = 100 * one.confidence, 100 * one.accuracy
        low, high = (100 * end for end in wilson(one.accuracy, one.nodes))
        axes.vlines(x, low, high, color=BLUE, linewidth=1.5, alpha=0.6)
        size = SMALL + (LARGE - SMALL) * sqrt(one.nodes / most)
        axes.scatter(x, y, s=size, color=BLUE, alpha=0.8, linewidths=0, clip_on=False)
    axes.set(xlim=(0, 102), ylim=(0, 102), xlabel="confidence (%)", ylabel="right (%)")
    axes.set_title(f"{title[0].upper()}{title[1:]}: error {percent(error)} %")
    name = title.replace(" ", "-")
    caption = (
        "Each dot is a group of nodes of similar confidence, its size their number. Bars: 95 % "
        "intervals. Dashed: perfect calibration."
    )
    return Drawing(inline_svg(drawing, name, f"Reliability, {title}"), caption)


def draw_decision(found: Document) -> Drawing:
    """Precision against recall, over all thresholds; the kept one is marked."""
    drawing, curve = figure(1), found["curve"]
    (axes,) = drawing.axes
    recall, precision = ([100 * one[name] for one in curve] for name in ("recall", "precision"))
    axes.plot(recall, precision, color=BLUE)
    axes.axhline(100 * found["share"], color=GREY, linestyle="--", linewidth=1)
    if found["precision"] is not None and found["recall"] is not None:
        ends = (100 * found[f"precision_{end}"] for end in ("low", "high"))
        axes.vlines(100 * found["recall"], *ends, color=ORANGE, linewidth=1.5)
        axes.scatter(100 * found["recall"], 100 * found["precision"], s=60, color=ORANGE, zorder=3)
    axes.set(xlim=(0, 102), ylim=(0, 102), xlabel="recall (%)", ylabel="precision (%)")
    axes.set_title(f"Precision and recall of {found['class']}")
    caption = (
        f"Dot: the threshold that is kept, {percent(found['threshold'])} %, and the 95 % interval "
        f"of its precision; dashed: naming nodes by chance, {percent(found['share'])} %."
    )
    return Drawing(inline_svg(drawing, "precision-recall", "Precision by recall"), caption)


def draw_errors(name: str, y: Floats, values: Floats) -> list[Drawing]:
    """Predicted by true numbers, and what is too much by predicted ones.

    y, values  of the test nodes
    """
    shown = np.random.default_rng(0).permutation(len(y))[:DOTS]
    truth, residuals = figure(1), figure(1)
    (axes,) = truth.axes
    ends = [min(y.min(), values.min()), max(y.max(), values.max())]
    axes.plot(ends, ends, color=GREY, linestyle="--", linewidth=1)
    axes.scatter(y[shown], values[shown], s=8, color=BLUE, alpha=0.5, linewidths=0)
    axes.set(xlabel="true", ylabel="predicted", title=name)
    (axes,) = residuals.axes
    axes.axhline(0, color=GREY, linestyle="--", linewidth=1)
    axes.scatter(values[shown], (values - y)[shown], s=8, color=BLUE, alpha=0.5, linewidths=0)
    axes.set(xlabel="predicted", ylabel="predicted - true", title=f"Residuals of {name}")
    some = f"{DOTS:,} of the {len(y):,} test nodes" if len(y) > DOTS else "the test nodes"
    of = f"Dots: {some}; dashed: where predictions are true."
    return [
        Drawing(inline_svg(truth, f"{name}-truth", f"Predicted by true {name}"), of),
        Drawing(inline_svg(residuals, f"{name}-residuals", f"Residuals of {name}"), ""),
    ]


def score_grid(evaluation: Evaluation) -> Grid:
    """Every score of the model, then those of each baseline."""
    columns, rows = (evaluation.scores, *evaluation.baselines.values()), []
    for name in evaluation.scores:
        worse = " (lower is better)" if SCORES[name].lower_is_better else ""
        cells = (ShownScore.named(name, one[name]) for one in columns)
        rows.append((evaluation.called(name) + worse, *cells))
    return Grid(("score", evaluation.shown_model, *evaluation.baselines), rows)


def write_page(
    result: Trained,
    path: Path | str,
    graph: Graph | None = None,
    device: str = "auto",
    show: Show = quietly,
    *,
    overwrite: bool = False,
) -> Path:
    """Write the page of a result to a file; nothing is written if its graph cannot be loaded.

    graph  that of the training; default: the one that was trained on, or loaded from where it was
    show   called with words after each part of the work, at most `steps` times
    overwrite   whether to replace a file that is not such a page
    """
    if graph is None:
        graph = load_training_graph(result)
    result = result.scored(graph, device)
    evaluation = evaluate(result, graph, device, show=show)
    text = page(result, graph, evaluation, device, show)
    refuse_replacing(Path(path), is_page, overwrite=overwrite)
    with atomic_write(Path(path)) as temporary:
        temporary.write_text(text, "utf-8", "xmlcharrefreplace")
    return Path(path)


def steps(result: Trained) -> int:
    """How many steps `write_page` shows at most."""
    return evaluation_steps(result) + 2 * SHOWN


def page(
    result: Trained,
    graph: Graph,
    evaluation: Evaluation,
    device: str = "auto",
    show: Show = quietly,
) -> str:
    """The page as HTML."""
    ensemble = result if isinstance(result, Ensemble) else None
    if isinstance(evaluation, LabelEvaluation):
        parts = _of_labels(result, graph, evaluation, device, show)
    else:
        assert isinstance(evaluation, NumberEvaluation)
        parts = _of_numbers(result, graph, evaluation, device, show)
    return one_file(
        "gcnii.inference",
        evaluation=evaluation,
        verdict=verdict(result, evaluation),
        about=about(result, graph),
        predicting=predicting(result),
        named=NAMED,
        scores=score_grid(evaluation),
        leaderboard=ensemble and Grid(*board(ensemble), names=2),
        weighed=ensemble and how_weighed(ensemble),
        left_out=ensemble.left_out if ensemble else (),
        curves=curves_of(result),
        **parts,
        settings=settings(result, graph),
        again=again(result, graph),
        command=(result.made or {}).get("command"),
        version=__version__,
    )


def _of_labels(
    result: Trained, graph: Graph, evaluation: LabelEvaluation, device: str, show: Show
) -> Document:
    """What the page has of classes or labels alone."""
    certain, surprising = cards(result, graph, device, show)
    C = np.array(evaluation.confusion)
    return {
        "kind": "labels",
        "frequent": frequent_confusions(C, CONFUSIONS) if C.size else [],
        "calibration": _calibration(result, graph, device),
        "decision": evaluation.decision and _decision(evaluation.decision),
        "classes": class_grid(evaluation),
        "by_class": calibration_grid(evaluation),
        "groups": list(group_grids(evaluation)),
        "least_certain": certain,
        "most_surprising": surprising,
    }


def _of_numbers(
    result: Trained, graph: Graph, evaluation: NumberEvaluation, device: str, show: Show
) -> Document:
    """What the page has of numbers alone: drawings and tables of their errors."""
    values, test = result.answers(graph, device), graph.splits[evaluation.split].test
    tested = test & graph.labelled
    pairs = zip(result.target.names, graph.labels[tested].T, values[tested].T, strict=True)
    farthest = _farthest(values, graph.labels, np.flatnonzero(tested))
    return {
        "kind": "numbers",
        "amount": number_shown,
        "most_surprising": _cards(result, graph, values, farthest, device, show),
        "errors": [one for name, y, own in pairs for one in draw_errors(name, y, own)],
        "groups": list(number_grids(evaluation)),
    }


def _decision(found: Document) -> Document:
    """What is said of the threshold, a table of others, and the curve."""
    drawings = [draw_decision(found)] if found["curve"] and found["points"] else []
    said = list(decision_sentences(found))
    return {"sentences": said, "table": decision_grid(found), "drawings": drawings}


def _calibration(result: Trained, graph: Graph, device: str) -> Document:
    """How often probabilities are right on the test nodes, without and with the temperatures."""
    test = graph.splits[result.runs[result.best].split].test
    states = {"probabilities": result}
    best = [result.runs[i] for i in result.predicting()]
    if any(run.temperature or run.weights for run in best):
        states = {"before calibration": result.uncalibrated(), "after calibration": result}
    found = {title: one.predict_proba(graph, device)[test] for title, one in states.items()}
    y, target = graph.labels[test], result.label_target
    errors = [target.calibration_error(P, y) for P in found.values()]
    said = ""
    if len(errors) == 1:
        said = "The probabilities of this model were not calibrated."
    elif round(errors[1], 3) > round(errors[0], 3):  # as they are shown
        said = (
            "Here calibration did not help: the error on the test nodes is larger after it. With "
            "few validation or test nodes that can be chance."
        )
    drawings = [
        draw_reliability(title, target.reliability(P, y), error)
        for (title, P), error in zip(found.items(), errors, strict=True)
    ]
    return {"sentence": said, "drawings": drawings}
