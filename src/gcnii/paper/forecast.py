"""A test of the recommended depth against GCNII trained at every depth, on graphs held out.

The rule in `analysis/filters/depth_forecast.py`, which recommends a depth after one training, was
chosen on cora, citeseer and csbm; the other cases test it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path

import numpy as np
import torch

from gcnii.analysis.filters.depth_forecast import forecast, score_at
from gcnii.analysis.layers.checkup import EPOCHS
from gcnii.data import load
from gcnii.errors import InputError, did_you_mean
from gcnii.files import Document, read_document, write_document
from gcnii.graph import Graph
from gcnii.paper.provenance import commit, versions
from gcnii.paper.tables.cells import read_cells
from gcnii.paper.tables.printed import DEPTHS
from gcnii.train.fit import fit_plan
from gcnii.train.hardware import device_name
from gcnii.train.plan import Plan, make_plan
from gcnii.train.presets import preset
from gcnii.train.presets.settings import Settings
from gcnii.train.results.bundle import open_bundle
from gcnii.train.results.result import Result

MODEL = "gcnii"
# Who recommends a depth: the deepest network after the doctor's few epochs, the same network
# trained to the end, or networks of all depths after those few epochs.
SHORT, FULL, SWEEP = "short", "full", "sweep"

Train = Callable[..., Result]


@dataclass(frozen=True, kw_only=True)
class ForecastCase:
    """GCNII on a graph; seed s draws the weights and takes split s modulo the number of splits.

    parameters  of the generator, for a graph that is generated
    settings    that differ from the preset of the graph
    chose       whether the rule was chosen on this graph, which is then no test of it
    measured    whether the true scores are in results/cells, from more seeds
    asked       who recommends a depth
    """

    name: str
    graph: str
    parameters: Settings = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)
    seeds: int
    chose: bool = False
    measured: bool = False
    asked: tuple[str, ...] = (SHORT, FULL, SWEEP)

    def plan(self, **settings: int) -> Plan:
        """The plan with these settings over the case's, over the preset of the graph."""
        return make_plan(MODEL, {**preset(self.graph, MODEL), **self.settings, **settings})


def _csbm(name: str, **parameters: float) -> ForecastCase:
    return ForecastCase(
        name=f"csbm-{name}",
        graph="csbm",
        parameters={"n": 400, **parameters},
        settings={"width": 32},
        seeds=3,
    )


_CASES = (
    ForecastCase(name="cora", graph="cora", seeds=2, chose=True, measured=True),
    ForecastCase(
        name="citeseer", graph="citeseer", seeds=1, chose=True, measured=True, asked=(SHORT, SWEEP)
    ),
    ForecastCase(name="csbm", graph="csbm", seeds=2, chose=True),
    ForecastCase(name="texas", graph="texas", seeds=3),
    ForecastCase(name="wisconsin", graph="wisconsin", seeds=3),
    ForecastCase(name="cornell-2022", graph="cornell-2022", seeds=3),
    ForecastCase(name="chameleon", graph="chameleon", seeds=2),
    ForecastCase(name="digits", graph="digits", seeds=2),
    _csbm("sparse", degree=3, homophily=0.9),
    _csbm("heterophilous", homophily=0.1),
    _csbm("mixed", homophily=0.5, signal=2.0),
    _csbm("four", degree=6, classes=4, homophily=0.7, features=32, signal=2.0),
    _csbm("dense", degree=20, homophily=0.6, signal=0.7),
)
CASES = {case.name: case for case in _CASES}


def measure(
    case: ForecastCase, results: Path, keep: Path, device: torch.device, show: Callable[[str], None]
) -> Document:
    """The case as a JSON document; scores lie in [0, 1], one per depth.

    results  the folder with cells/
    keep     a folder for trained networks, so that an interrupted test resumes
    show     called with what is trained next
    """
    commit()  # recorded at the end, when it might be another one
    graph = load(case.graph, **case.parameters)

    def train(layers: int, **length: int) -> Result:
        show(f"{layers} layers")
        return _train(case, graph, case.plan(layers=layers, **length), keep, device)

    true = _known(case, results) if case.measured else _scores([train(depth) for depth in DEPTHS])
    asked = {name: _answers(name, graph, train) for name in case.asked}
    seeds = [
        {"seed": s, **true[s], "asked": {name: answers[s] for name, answers in asked.items()}}
        for s in range(case.seeds)
    ]
    return {**_head(case, device), "depths": list(DEPTHS), "seeds": seeds}


def _answers(asked: str, graph: Graph, train: Train) -> list[Document]:
    """For each seed, the recommended depth and the predicted scores."""
    deepest = max(DEPTHS)
    if asked == SHORT:
        return _ask(graph, train(deepest, epochs=EPOCHS))
    if asked == FULL:
        return _ask(graph, train(deepest))
    return _extend(_scores([train(depth, epochs=EPOCHS) for depth in DEPTHS]))


def _head(case: ForecastCase, device: torch.device) -> Document:
    """What was measured, and with what."""
    return {
        "case": case.name,
        "graph": case.graph,
        "parameters": dict(case.parameters),
        "model": MODEL,
        "settings": case.plan(layers=max(DEPTHS)).settings,
        "chose": case.chose,
        "true": "results/cells" if case.measured else "trained here",
        "command": f"gcnii forecast {case.name}",
        "device": device_name(device),
        "versions": versions(),
        "commit": commit(),
    }


def _train(
    case: ForecastCase, graph: Graph, plan: Plan, keep: Path, device: torch.device
) -> Result:
    """The results of all seeds: trained, or read from `keep` if they were trained before."""
    folder = keep / case.name / f"{plan.model_settings['layers']}-{plan.recipe.epochs}"
    if (folder / "run.json").exists():
        kept, wanted = open_bundle(folder), (plan, graph.fingerprint, case.seeds)
        if (kept.plan, kept.graph.fingerprint, len(kept.runs)) == wanted:
            return kept
    result = fit_plan(graph, plan, seeds=range(case.seeds), device=device.type)
    if result.interrupted:
        raise KeyboardInterrupt
    result.save(folder, overwrite=True)  # what was kept is of other settings
    return result


def _scores(results: Sequence[Result]) -> list[Document]:
    """For each seed, the scores of its networks in the order of the depths."""
    return [
        {name: [getattr(run, name) for run in runs] for name in ("test", "val", "epochs")}
        for runs in zip(*(result.runs for result in results), strict=True)
    ]


def _known(case: ForecastCase, results: Path) -> list[Document]:
    """`_scores` from Figure 2's cells: test scores are means of all their seeds, of which there are
    more; validation scores are each seed's own.
    """
    row = f"{case.graph.capitalize()} GCNII"
    found = {
        int(one.column): one
        for one in read_cells(results / "cells")
        if (one.table, one.row) == ("figure2", row)
    }
    if missing := set(DEPTHS) - set(found):
        raise InputError(
            f"{results}/cells has no figure2 of {row} with {sorted(missing)} layers; "
            "reproduce it first"
        )
    cells = [found[depth] for depth in DEPTHS]
    if few := [cell.cell for cell in cells if cell.n < case.seeds or isnan(cell.mean)]:
        words = f"must have at least {case.seeds} runs, none of them lost; reproduce them first"
        raise InputError(f"{', '.join(few)} in {results}/cells {words}")
    test = [cell.mean / 100 for cell in cells]
    return [{"test": test, "val": [cell.runs[s].val for cell in cells]} for s in range(case.seeds)]


def _ask(graph: Graph, result: Result) -> list[Document]:
    """For each seed, the depth that its network recommends and the scores that it predicts."""
    answers = []
    for i in range(len(result.runs)):
        found = forecast(graph, result.alone(i))
        foretold = [found.test[depth] for depth in DEPTHS]
        answers.append({"recommended": found.recommended, "foretold": foretold})
    return answers


def _extend(scores: Sequence[Document]) -> list[Document]:
    """For each seed, the depth with the highest validation score, and the validation curve shifted
    to the test score of the deepest network.
    """
    return [
        {
            "recommended": DEPTHS[one["val"].index(max(one["val"]))],
            "foretold": [val + one["test"][-1] - one["val"][-1] for val in one["val"]],
        }
        for one in scores
    ]


def steps(case: ForecastCase) -> int:
    """The number of times that `measure` calls `show`."""
    sweeps = (not case.measured) + (SWEEP in case.asked)
    return len(DEPTHS) * sweeps + len({SHORT, FULL} & set(case.asked))


def find_case(name: str) -> ForecastCase:
    """The case of that name."""
    if name not in CASES:
        raise InputError(f"no case {name!r}; {did_you_mean(name, CASES)}known: {', '.join(CASES)}")
    return CASES[name]


def errors(record: Document, adviser: str, *, flat: bool = False) -> list[float]:
    """For each seed, the mean over the depths of |predicted - true| score.

    If `flat`, the score predicted for the deepest network is taken for every depth.
    """
    found = []
    for one in record["seeds"]:
        foretold = one["asked"][adviser]["foretold"]
        error = np.abs(np.subtract(foretold[-1] if flat else foretold, one["test"]))
        found.append(float(error.mean()))
    return found


def costs(record: Document, advised: Sequence[int]) -> list[float]:
    """For each seed, the true score at the best depth minus the true score at the advised depth.

    The best depth has the highest mean over the seeds.
    """
    seeds = record["seeds"]
    best = int(np.mean([one["test"] for one in seeds], axis=0).argmax())
    return [
        one["test"][best] - score_at(depth, record["depths"], one["test"])
        for one, depth in zip(seeds, advised, strict=True)
    ]


def write(folder: Path, record: Document) -> Path:
    """Write the document to `CASE.json` in the folder."""
    return write_document(folder / f"{record['case']}.json", record)


def read_records(folder: Path) -> Iterator[Document]:
    """The documents of the folder, in the order of CASES."""
    for name in CASES:
        if (path := folder / f"{name}.json").exists():
            yield _read(path, CASES[name])


def _read(path: Path, case: ForecastCase) -> Document:
    curve, adviser = [float], {"recommended": int, "foretold": [float]}
    seed = {"test": curve, "val": curve, "asked": dict.fromkeys(case.asked, adviser)}
    shape = {"case": str, "chose": bool, "depths": [int], "seeds": [seed]}
    return read_document(path, shape, f"document of `gcnii forecast {case.name}`", _checked)


def _checked(record: Document) -> Document:
    curves = [one[name] for one in record["seeds"] for name in ("test", "val")]
    curves += [answer["foretold"] for one in record["seeds"] for answer in one["asked"].values()]
    if not curves or any(len(curve) != len(record["depths"]) for curve in curves):
        raise InputError("it must have seeds, each with one score per depth")
    return record
