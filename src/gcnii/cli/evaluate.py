"""gcnii evaluate and gcnii report run: a trained model's errors, as tables or as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcnii.cli.options import Overwrite, print_json, refuse_unwritable
from gcnii.cli.predict import ASKED, Asked, Bundle
from gcnii.cli.terminal import counting_bar, table_console
from gcnii.errors import InputError
from gcnii.files import refuse_replacing
from gcnii.inference.evaluate import evaluate as measure
from gcnii.inference.evaluate import steps
from gcnii.inference.page import steps as page_steps
from gcnii.inference.page import write_page
from gcnii.report.html import is_page

TrainingGraph = Annotated[
    str | None,
    Parameter(help="The training graph, if it has moved; default: where it was."),
]


def evaluate(
    bundle: Bundle,
    /,
    *,
    graph: TrainingGraph = None,
    baselines: bool = True,
    positive: str | None = None,
    asked: Asked = ASKED,
) -> None:
    """Measure a trained model on its test nodes, beside baselines, with intervals and warnings.

    Parameters
    ----------
    baselines
        Compare with a linear model, label propagation and gradient boosting; or with the majority
        or the mean alone.
    positive
        The class that ROC AUC and average precision are of; default: the one of the training
        run, or of two classes the one of fewer training nodes.
    """
    result, data = asked.load(asked.open(bundle), bundle, graph)
    count = steps(result, baselines=baselines)
    with counting_bar(f"evaluating {data.name}", count, hidden=asked.quiet) as show:
        evaluation = measure(
            result, data, asked.device, baselines=baselines, positive=positive, show=show
        )
    if asked.json:
        print_json({"bundle": str(bundle), **evaluation.document()})
    else:
        table_console().print(evaluation.tables())


def run(
    bundle: Bundle,
    /,
    *,
    out: Path | None = None,
    overwrite: Overwrite = False,
    graph: TrainingGraph = None,
    asked: Asked = ASKED,
) -> None:
    """Write one HTML page of a trained model: scores, curves, confusions, calibration, nodes.

    Parameters
    ----------
    out
        An .html file; default: BUNDLE.html, beside the bundle.
    """
    result = asked.open(bundle, curves=True)
    path = _path(bundle, out)
    inputs = [bundle, graph, result.origin.source]
    refuse_replacing(path, is_page, inputs=inputs, overwrite=overwrite)
    result, data = asked.load(result, bundle, graph)
    with counting_bar(f"page of {data.name}", page_steps(result), hidden=asked.quiet) as show:
        write_page(result, path, data, asked.device, show, overwrite=overwrite)
    if asked.json:
        print_json({"bundle": str(bundle), "graph": data.name, "out": str(path)})
    else:
        print(path)


def _path(bundle: Path, out: Path | None) -> Path:
    """Where the page goes; never into a bundle, which holds its own files alone."""
    folder = bundle.resolve()
    named = folder if bundle.name in ("", "..") else bundle
    path = out or named.parent / f"{named.name}.html"
    if path.suffix != ".html":
        raise InputError(f"a page must end in .html, got {path.name}")
    if path.is_dir():
        raise InputError(f"--out {path} is a folder; name the page in it")
    if path.resolve().parent == folder:
        raise InputError(
            f"{path} is inside the bundle, which holds its own files alone; name another folder"
        )
    refuse_unwritable(path.parent)
    return path
