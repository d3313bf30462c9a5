"""write_page: measure a result, explain some of its nodes, and write all of it as one file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gcnii import __version__
from gcnii.analysis.report.one_file import is_page, one_file
from gcnii.files import atomic_write, refuse_replacing
from gcnii.graph import Graph
from gcnii.inference.evaluation import Evaluation, evaluate
from gcnii.inference.evaluation.evaluate import steps as evaluation_steps
from gcnii.inference.page.about import about, again, predicting, settings, verdict
from gcnii.inference.page.confusions import Confusions
from gcnii.inference.page.drawings import Drawing, draw_curves, draw_reliability
from gcnii.inference.page.nodes import SHOWN, Show, cards, quietly
from gcnii.inference.page.scores import calibration_rows, class_rows, group_tables, score_rows
from gcnii.inference.training_graph import load_training_graph
from gcnii.targets.calibration import calibration_error, reliability
from gcnii.train.results.result import Result


def write_page(
    result: Result,
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
    evaluation = evaluate(result, graph, device, show=show)
    text = page(result, graph, evaluation, device, show)
    refuse_replacing(Path(path), is_page, overwrite=overwrite)
    with atomic_write(Path(path)) as temporary:
        temporary.write_text(text, "utf-8", "xmlcharrefreplace")
    return Path(path)


def steps(result: Result) -> int:
    """How many steps `write_page` shows at most."""
    return evaluation_steps(result) + 2 * SHOWN


def page(
    result: Result,
    graph: Graph,
    evaluation: Evaluation,
    device: str = "auto",
    show: Show = quietly,
) -> str:
    """The page as HTML."""
    certain, surprising = cards(result, graph, device, show)
    return one_file(
        "gcnii.inference.page",
        evaluation=evaluation,
        verdict=verdict(result, evaluation),
        about=about(result, graph),
        predicting=predicting(result),
        scores=score_rows(evaluation),
        curves=draw_curves(result),
        classes=class_rows(evaluation),
        confusions=Confusions.of(evaluation),
        calibration=_calibration(result, graph, device),
        calibrated=calibration_rows(evaluation),
        groups=group_tables(evaluation),
        least_certain=certain,
        most_surprising=surprising,
        settings=settings(result, graph),
        again=again(result, graph),
        command=(result.made or {}).get("command"),
        version=__version__,
    )


def _calibration(result: Result, graph: Graph, device: str) -> list[Drawing]:
    """How often probabilities are right on the test nodes, without and with the temperatures."""
    test = graph.splits[result.runs[result.best].split].test
    states = {"probabilities": result}
    best = [result.runs[i] for i in result.predicting()]
    if any(run.temperature or run.weights for run in best):
        states = {"before calibration": _uncalibrated(result), "after calibration": result}
    found = {title: one.predict_proba(graph, device)[test] for title, one in states.items()}
    y = graph.labels[test]
    return [
        draw_reliability(title, reliability(P, y), calibration_error(P, y))
        for title, P in found.items()
    ]


def _uncalibrated(result: Result) -> Result:
    """The same runs without their temperatures, and with the weights of their loss."""
    runs = tuple(replace(run, temperature=None, weights=None) for run in result.runs)
    return replace(result, runs=runs, together=None)
