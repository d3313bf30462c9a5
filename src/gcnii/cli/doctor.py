"""gcnii doctor: which models over-smooth on a graph, at which layer, and what to try."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from gcnii.analysis.filters.learn import learn, refuse_filters
from gcnii.analysis.layers.checkup import EPOCHS, Checkup, Doctor
from gcnii.analysis.layers.diagnosis import Baseline, Diagnosis, compare, diagnose
from gcnii.analysis.report.checkups import (
    degree_table,
    depth_table,
    draw_figures,
    layer_table,
    write_figures,
)
from gcnii.analysis.report.learned import Learned
from gcnii.cli import MOST
from gcnii.cli.console import table_console
from gcnii.cli.options import (
    Device,
    Directed,
    Json,
    Offline,
    load_graph,
    print_json,
    refuse_unwritable,
)
from gcnii.cli.progress import counting_bar, training_bar
from gcnii.cli.train import Source
from gcnii.data import fetch_neighbourhood
from gcnii.errors import InputError
from gcnii.graph import Graph
from gcnii.paper.provenance import commit, versions
from gcnii.train.plan import make_plan

MODELS = "gcn,gcn-residual,appnp,gcnii"
DEPTHS = "2,4,8,16,32,64"

Found = list[tuple[Checkup, Diagnosis]]


def doctor(
    graph: Source = "digits",
    /,
    *,
    model: Annotated[str, Parameter(help="Names of `gcnii models`, separated by commas.")] = MODELS,
    depths: Annotated[str, Parameter(help="Numbers of layers, separated by commas.")] = DEPTHS,
    seed: Annotated[int, Parameter(help="Of weights and dropout.")] = 0,
    split: Annotated[int, Parameter(help="Which split of the graph to train on.")] = 0,
    device: Device = "auto",
    filter: Annotated[
        bool,
        Parameter(
            negative="",
            help="Measure the filter g(λ) of the deepest networks, and how far they look.",
        ),
    ] = False,
    recommend_depth: Annotated[
        bool,
        Parameter(
            negative="", help="Foretell accuracy against depth from the deepest networks alone."
        ),
    ] = False,
    out: Annotated[Path | None, Parameter(help="A folder for the figures, as SVG and PNG.")] = None,
    json: Json = False,
    directed: Directed = False,
    offline: Offline = False,
) -> None:
    """Examine models layer by layer before and after a short training, and say what became of the
    information.
    """
    models, numbers = _words(model, "--model"), _numbers(depths)
    if out:
        refuse_unwritable(out)
    data = load_graph(graph, directed=directed, offline=offline)
    _check(data, models, numbers, split, offline)
    if filter:
        refuse_filters(data, [make_plan(name, {}, data) for name in models])
    examiner = Doctor(data, split=split, seed=seed, device=device)
    baseline = Baseline.of(data, examiner.probe)
    found: Found = []
    for name in models:
        for layers in numbers:
            with training_bar(f"{name}, {layers} layers, on {data.name}", EPOCHS) as show:
                checkup = examiner.check(name, layers, show)
            edges, settings = examiner.meter.m, checkup.settings
            found.append(
                (
                    checkup,
                    diagnose(checkup.after, edges=edges, baseline=baseline, settings=settings),
                )
            )
    checkups = [checkup for checkup, _ in found]
    questions = len(models) * (2 * filter + recommend_depth)
    with counting_bar("asking the deepest networks", questions) as show:
        learned = learn(data, found, filters=filter, depth=recommend_depth, seed=seed, show=show)
    paths = write_figures(out, draw_figures(checkups) | learned.draw_figures()) if out else []
    if json:
        document = _document(data, found, paths) | learned.document()
        print_json(document)
    else:
        _print(found, learned, paths)


def _check(
    data: Graph, models: Sequence[str], depths: Sequence[int], split: int, offline: bool
) -> None:
    """Refuse before the first training whatever the last one would stumble over."""
    if not data.labelled.any():
        raise InputError(f"no node of {data.name} has a label, and the doctor trains; label some")
    if not 0 <= split < len(data.splits):
        raise InputError(
            f"{data.name} has {len(data.splits)} splits, counted from 0, got --split {split}"
        )
    for name in models:
        for layers in depths:
            plan = make_plan(name, {"layers": layers}, data)
            plan.build(1, 1)
        fetch_neighbourhood(data.source, plan.recipe.geometry, offline)


def _document(data: Graph, found: Found, paths: Sequence[Path]) -> dict[str, Any]:
    checkups = [
        checkup.summary() | {"diagnosis": diagnosis.summary()} for checkup, diagnosis in found
    ]
    return {
        "graph": data.name,
        "command": shlex.join(["gcnii", *sys.argv[1:]]),
        "versions": versions(),
        "commit": commit(),
        "epochs": EPOCHS,
        "checkups": checkups,
        "comparison": compare(found),
        "figures": [str(path) for path in paths],
    }


def _print(found: Found, learned: Learned, paths: Sequence[Path]) -> None:
    console = table_console()
    deep = max(checkup.layers for checkup, _ in found)
    deepest = [(checkup, diagnosis) for checkup, diagnosis in found if checkup.layers == deep]
    for checkup, _ in deepest:
        for when, rows in (("before", checkup.before), ("after", checkup.after)):
            console.print(layer_table(rows, f"{checkup.model}, {deep} layers, {when} training"), "")
    console.print(depth_table(found), "")
    if graded := [checkup for checkup, _ in deepest if checkup.degrees]:
        console.print(degree_table(graded), "")
    for checkup, diagnosis in found:
        print(f"{checkup.model}, {checkup.layers} layers: {diagnosis.text}")
    for sentence in compare(found):
        print(sentence)
    for part in learned.tables():
        console.print(part, end="\n\n")
    for path in paths:
        print(path)


def _words(text: str, flag: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise InputError(f"{flag} names nothing; separate what you want by commas")
    return list(dict.fromkeys(words))


def _numbers(text: str) -> list[int]:
    words = _words(text, "--depths")
    if not all(word.isdecimal() and len(word) <= 10 and 0 < int(word) <= MOST for word in words):
        raise InputError(
            f"--depths must be whole numbers of at least 1, separated by commas, got {text!r}"
        )
    return sorted({int(word) for word in words})
