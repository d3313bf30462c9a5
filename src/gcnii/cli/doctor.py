"""gcnii doctor: which models over-smooth on a graph, at which layer, and what to try."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from gcnii.analysis.filters.learn import Learned, learn, refuse_filters
from gcnii.analysis.layers.checkup import EPOCHS, Checkup, Doctor
from gcnii.analysis.layers.diagnosis import Diagnosis, ProbeBaseline, compare_models, diagnose
from gcnii.analysis.report.doctor_figures import draw_figures, write_figures
from gcnii.analysis.report.doctor_tables import degree_table, depth_table, layer_table
from gcnii.analysis.report.learned import draw_learned, learned_tables
from gcnii.cli import LARGEST_INT
from gcnii.cli.options import (
    Device,
    Json,
    Offline,
    Source,
    Tables,
    load_graph,
    print_json,
    refuse_unwritable,
    switch,
)
from gcnii.cli.terminal import counting_bar, table_console
from gcnii.data import neighbourhood
from gcnii.errors import InputError
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.paper.provenance import commit, versions
from gcnii.train.plan import make_plan

MODELS = "gcn,gcn-residual,appnp,gcnii"
DEPTHS = "2,4,8,16,32,64"

ModelNames = Annotated[str, Parameter(help="Names from `gcnii models`, separated by commas.")]
Depths = Annotated[str, Parameter(help="Numbers of layers, separated by commas.")]
Seed = Annotated[int, Parameter(help="The seed of weights and dropout.")]
Split = Annotated[int, Parameter(help="The split of the graph to train on.")]
Filter = Annotated[
    bool, switch("Measure the filter g(λ) of the deepest networks, and how far they reach.")
]
RecommendDepth = Annotated[
    bool, switch("Predict accuracy by depth from the deepest networks, and recommend a depth.")
]
Figures = Annotated[Path | None, Parameter(help="A folder for the figures, as SVG and PNG.")]

Found = list[tuple[Checkup, Diagnosis]]


def doctor(
    graph: Source = "digits",
    /,
    *,
    model: ModelNames = MODELS,
    depths: Depths = DEPTHS,
    seed: Seed = 0,
    split: Split = 0,
    device: Device = "auto",
    filter: Filter = False,
    recommend_depth: RecommendDepth = False,
    out: Figures = None,
    json: Json = False,
    tables: Tables | None = None,
    offline: Offline = False,
) -> None:
    """Examine models layer by layer before and after a short training, and diagnose them."""
    commit()  # recorded at the end, when it might be another one
    models, numbers = _words(model, "--model"), _numbers(depths)
    if out:
        refuse_unwritable(out)
    data = load_graph(graph, tables, offline=offline)
    _refuse(data, models, numbers, split)
    if filter:
        refuse_filters(data, [make_plan(name, {}, data) for name in models])
    found = _examine(Doctor(data, split=split, seed=seed, device=device), models, numbers)
    with counting_bar("examining filters", len(models) * (2 * filter + recommend_depth)) as show:
        learned = learn(data, found, filters=filter, depth=recommend_depth, seed=seed, show=show)
    paths = _draw(found, learned, out) if out else []
    if json:
        print_json(_document(data, found, paths) | learned.document())
    else:
        _print(found, learned, paths)


def _refuse(data: Graph, models: Sequence[str], depths: Sequence[int], split: int) -> None:
    """Raise InputError before the first training for what would stop a later one."""
    if not data.labelled.any():
        raise InputError(f"no node of {data.name} has a label, and the doctor trains; label some")
    if not 0 <= split < len(data.splits):
        last = len(data.splits) - 1
        raise InputError(f"{data.name} has splits 0 to {last}, got --split {split}")
    for name in models:
        for layers in depths:
            plan = make_plan(name, {"layers": layers}, data)
            plan.build(1, 1)
        if plan.recipe.geometry != "none":
            neighbourhood(data, plan.recipe.geometry)  # which may have to be fetched


def _examine(examiner: Doctor, models: Sequence[str], depths: Sequence[int]) -> Found:
    baseline = ProbeBaseline.of(examiner.graph, examiner.probe)
    found: Found = []
    for name in models:
        for layers in depths:
            checkup = examiner.check(name, layers, verbose=None)
            known = {"edges": examiner.meter.m, "settings": checkup.settings}
            found.append((checkup, diagnose(checkup.after, baseline=baseline, **known)))
    return found


def _draw(found: Found, learned: Learned, folder: Path) -> list[Path]:
    figures = draw_figures([checkup for checkup, _ in found]) | draw_learned(learned)
    return write_figures(folder, figures)


def _document(data: Graph, found: Found, paths: Sequence[Path]) -> Document:
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
        "comparison": compare_models(found),
        "figures": [str(path) for path in paths],
    }


def _print(found: Found, learned: Learned, paths: Sequence[Path]) -> None:
    _print_deepest(found)
    for checkup, diagnosis in found:
        print(f"{checkup.model}, {checkup.layers} layers: {diagnosis.text}")
    for sentence in compare_models(found):
        print(sentence)
    console = table_console()
    for part in learned_tables(learned):
        console.print(part, end="\n\n")
    for path in paths:
        print(path)


def _print_deepest(found: Found) -> None:
    """Tables by layer and by degree of the deepest networks, and by depth of all."""
    console = table_console()
    deepest = max(checkup.layers for checkup, _ in found)
    checkups = [checkup for checkup, _ in found if checkup.layers == deepest]
    for checkup in checkups:
        title = f"{checkup.model}, {deepest} layers"
        console.print(layer_table(checkup.before, f"{title}, before training"), "")
        console.print(layer_table(checkup.after, f"{title}, after training"), "")
    console.print(depth_table(found), "")
    if graded := [checkup for checkup in checkups if checkup.degrees]:
        console.print(degree_table(graded), "")


def _words(text: str, flag: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise InputError(f"{flag} is empty; give it words separated by commas")
    return list(dict.fromkeys(words))


def _numbers(text: str) -> list[int]:
    words = _words(text, "--depths")
    if not all(
        word.isdecimal() and len(word) <= 10 and 0 < int(word) <= LARGEST_INT for word in words
    ):
        raise InputError(f"--depths must be integers ≥ 1, separated by commas, got {text!r}")
    return sorted({int(word) for word in words})
