"""gcnii evaluate: what is known about the errors of a trained model."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

from cyclopts import Parameter

from gcnii.cli.bundles.predict import Bundle, load_asked
from gcnii.cli.options import Device, Json, Offline, Quiet, print_json
from gcnii.cli.terminal import counting_bar, table_console
from gcnii.inference.evaluate import evaluate as measure
from gcnii.inference.evaluate import steps
from gcnii.results.bundle import open_bundle

TrainingGraph = Annotated[
    str | None,
    Parameter(help="The graph of the training, if it has moved; default: where it was."),
]
Baselines = Annotated[
    bool,
    Parameter(
        help="Compare with logistic regression, label propagation and gradient boosting, or with "
        "the majority only."
    ),
]


Positive = Annotated[
    str | None,
    Parameter(
        help="The class that ROC AUC and average precision are of; default: that of the training, "
        "or of two classes the one of fewer training nodes."
    ),
]


def evaluate(
    bundle: Bundle,
    /,
    *,
    graph: TrainingGraph = None,
    baselines: Baselines = True,
    positive: Positive = None,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
    offline: Offline = False,
) -> None:
    """Measure a trained model on its test nodes, beside baselines, with intervals and warnings."""
    if quiet:
        warnings.simplefilter("ignore")
    result = open_bundle(bundle)
    data = load_asked(result, bundle, graph, offline)
    count = steps(result, baselines=baselines)
    with counting_bar(f"evaluating {data.name}", count, hidden=quiet) as show:
        how: dict[str, Any] = {"baselines": baselines, "positive": positive}
        evaluation = measure(result, data, device, **how, show=show)
    if json:
        print_json({"bundle": str(bundle), **evaluation.document()})
    else:
        table_console().print(evaluation.tables())
