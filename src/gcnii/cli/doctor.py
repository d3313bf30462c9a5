"""gcnii doctor: what to use on a graph and how deep; which models over-smooth, and where."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gcnii.analysis.checkup import (
    EPOCHS,
    Checkup,
    Diagnosis,
    Doctor,
    ProbeBaseline,
    compare_models,
    diagnose,
)
from gcnii.analysis.filters import Learned, learn, refuse_filters
from gcnii.analysis.report import (
    LAYER_PLOTS,
    degree_table,
    depth_table,
    draw_figures,
    draw_learned,
    layer_table,
    learned_tables,
    refuse_figures,
    write_figures,
)
from gcnii.cli import LARGEST_INT
from gcnii.cli.options import (
    SWITCH,
    Device,
    Json,
    Offline,
    Overwrite,
    Quiet,
    RestTables,
    Source,
    flags_of,
    load_graph,
    own_command,
    print_json,
    refuse_unwritable,
    words_of,
)
from gcnii.cli.terminal import counting_bar, say, table_console
from gcnii.data import neighbourhood
from gcnii.errors import GcniiError, InputError, notice
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.results.fit import draws
from gcnii.results.provenance import commit, versions
from gcnii.train.callbacks import lines_without_bar
from gcnii.train.plan import make_plan
from gcnii.tuning.tune import require_optuna

if TYPE_CHECKING:
    from gcnii.analysis.advice import Advice

EXAMINED = "gcn,gcn-residual,appnp,gcnii"
DEPTHS = "2,4,8,16,32,64"
TRIALS = 12  # about a minute for a small graph on a CPU
TRIAL = 2400  # epochs of a layer in one of them: 3 seeds, 100 epochs (many stop early), 8 layers
RETIRED = (
    "{} is retired: on ten graphs that had not chosen its rule, it was no better than always 2 "
    "layers; the line `depth:` of `gcnii doctor` answers by validation"
)

Found = list[tuple[Checkup, Diagnosis]]


def forecast(*_: str) -> None:
    """Say that this command is no more, and what answers its question."""
    raise InputError(RETIRED.format("gcnii forecast"))


def doctor(
    graph: Source = "digits",
    /,
    *,
    model: str = EXAMINED,
    depths: str = DEPTHS,
    seed: int = 0,
    split: int = 0,
    device: Device = "auto",
    trials: int = TRIALS,
    filter: Annotated[bool, SWITCH] = False,
    recommend_depth: Annotated[bool, Parameter(show=False, negative="")] = False,
    out: Path | None = None,
    overwrite: Overwrite = False,
    verbose: Annotated[bool, SWITCH] = False,
    json: Json = False,
    quiet: Quiet = False,
    tables: RestTables = None,
    offline: Offline = False,
) -> None:
    """Search a little; then examine models layer by layer, diagnose them, and advise.

    Parameters
    ----------
    model
        Names from `gcnii models`, separated by commas.
    depths
        Numbers of layers, separated by commas.
    seed
        The seed of weights and dropout.
    split
        The split of the graph to train on.
    trials
        Number of settings to try for the advice, which is by validation alone; 0: no advice.
    filter
        Measure the filter g(λ) of the deepest networks, and how far they reach.
    out
        A folder for the figures, as SVG and PNG.
    verbose
        Print every network's verdict, and tables by layer, by depth and by degree.
    """
    commit()  # recorded at the end, when it might be another one
    models, numbers = words_of(model, "--model"), _numbers(depths)
    if trials < 0:
        raise InputError(f"--trials must be at least 0, got {trials}")
    if out:
        refuse_unwritable(out)
        names = [*(one.name for one in LAYER_PLOTS), "depth", "filter", "influence"]
        refuse_figures(out, names, overwrite=overwrite)
    if quiet:
        warnings.simplefilter("ignore")
    if recommend_depth:
        warnings.warn(RETIRED.format("--recommend-depth"), stacklevel=1)
    data = load_graph(graph, tables, offline=offline, quiet=quiet)
    _refuse(data, models, numbers, split, offline)
    if filter:
        refuse_filters(data, [make_plan(name, {}, data) for name in models])
    examiner = Doctor(data, split=split, seed=seed, device=device)
    if not quiet:
        notice(_forecast(examiner, models, numbers, trials))
    given = [graph, *(tables.words if tables else ()), *_where(device, offline)]
    advice = _advise(data, models, trials, device, given, hidden=quiet)
    with _last(() if json else advice.get("lines", ())):
        found = _examine(examiner, models, numbers, hidden=quiet)
        with counting_bar("examining filters", 2 * filter * len(models), hidden=quiet) as show:
            learned = learn(data, [one for one, _ in found], filters=filter, seed=seed, show=show)
        paths = _draw(found, learned, out, overwrite) if out else []
        if json:
            print_json(_document(data, advice, found, paths) | learned.document())
        else:
            _print(found, learned, paths, verbose)


@contextmanager
def _last(lines: Sequence[str]) -> Iterator[None]:
    """Print the advice after the examination, one that is stopped, too."""
    try:
        yield
    finally:
        for line in lines:
            print(line) if line.startswith("run: ") else say(line)  # a command stays whole


def _forecast(examiner: Doctor, models: Sequence[str], depths: Sequence[int], trials: int) -> str:
    """How long this takes, by a few epochs of one network."""
    epochs = trials * TRIAL + EPOCHS * len(models) * sum(depths)
    minutes = ceil(epochs * examiner.layer_seconds() / 60)
    time = f"{minutes} minutes" if minutes > 1 else "a minute"
    networks = len(models) * len(depths)
    return f"{trials} settings to try, then {networks} networks to examine: about {time}"


def _refuse(
    data: Graph, models: Sequence[str], depths: Sequence[int], split: int, offline: bool
) -> None:
    """Raise InputError before the first training for what would stop a later one.

    A geometry's neighbours are fetched here, or refused, so that no training fetches any.
    """
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
            neighbourhood(data, plan.recipe.geometry, offline=offline)


def _advise(
    data: Graph, models: Sequence[str], trials: int, device: str, given: Sequence[str],
    *, hidden: bool,
) -> Document:  # fmt: skip
    """The advice and its three lines; empty, with a warning, where a search is not possible."""
    if not trials:
        return {}
    try:
        require_optuna()
        from gcnii.analysis.advice import advise

        with counting_bar(f"tuning {data.name}", trials, hidden=hidden) as show:
            advice = advise(data, models, trials, device=device, show=show)
    except GcniiError as error:
        warnings.warn(f"no advice: {error}", stacklevel=1)
        return {}
    return advice.summary() | _lines(advice, given)


def _lines(advice: Advice, given: Sequence[str]) -> Document:
    """What to use, how deep, and the command."""
    from gcnii.analysis.advice import depth_line, use_line

    model = ["--model", advice.chosen.model]
    command = shlex.join(["gcnii", "train", *given, *model, *flags_of(advice.settings)])
    tune = shlex.join(["gcnii", "tune", *given])
    run = f"run: {command}   (or search longer: {tune})"
    return {"command": command, "tune": tune, "lines": [use_line(advice), depth_line(advice), run]}


def _where(device: str, offline: bool) -> list[str]:
    """The flags of this command that the advised one needs, too."""
    words = [] if device == "auto" else ["--device", device]
    return [*words, "--offline"] if offline else words


def _examine(
    examiner: Doctor, models: Sequence[str], depths: Sequence[int], *, hidden: bool
) -> Found:
    baseline = ProbeBaseline.of(examiner.graph, examiner.probe)
    found: Found = []
    asked = [(name, layers) for name in models for layers in depths]

    def said() -> str:
        name, layers = asked[min(len(found), len(asked) - 1)]
        return f"examining {name}, {layers} layers: {len(found)} of {len(asked)} networks done"

    with lines_without_bar(said, hidden=hidden or draws(None)):
        for name, layers in asked:
            checkup = examiner.check(name, layers, verbose=False if hidden else None)
            known = {"edges": examiner.meter.m, "settings": checkup.settings}
            found.append((checkup, diagnose(checkup.after, baseline=baseline, **known)))
    return found


def _draw(found: Found, learned: Learned, folder: Path, overwrite: bool) -> list[Path]:
    figures = draw_figures([checkup for checkup, _ in found]) | draw_learned(learned)
    return write_figures(folder, figures, overwrite=overwrite)


def _document(data: Graph, advice: Document, found: Found, paths: Sequence[Path]) -> Document:
    checkups = [
        checkup.summary() | {"diagnosis": diagnosis.summary()} for checkup, diagnosis in found
    ]
    return {
        **({"advice": advice} if advice else {}),
        "graph": data.name,
        "command": own_command(),
        "versions": versions(),
        "commit": commit(),
        "epochs": EPOCHS,
        "checkups": checkups,
        "comparison": compare_models(found),
        "figures": [str(path) for path in paths],
    }


def _print(found: Found, learned: Learned, paths: Sequence[Path], verbose: bool) -> None:
    compared = compare_models(found)
    if verbose:
        _print_deepest(found)
    if verbose or not compared:
        for checkup, diagnosis in found:
            say(f"{checkup.model}, {checkup.layers} layers: {diagnosis.text}")
    for sentence in compared:
        say(sentence)
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


def _numbers(text: str) -> list[int]:
    words = words_of(text, "--depths")
    if not all(
        word.isdecimal() and len(word) <= 10 and 0 < int(word) <= LARGEST_INT for word in words
    ):
        raise InputError(f"--depths must be integers ≥ 1, separated by commas, got {text!r}")
    return sorted({int(word) for word in words})
