"""A test of the depth that one training recommends: beside GCNII trained at every depth, on graphs
held out.

The rule in `analysis/depth.py` was chosen on cora, citeseer and csbm; the other cases test it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gcnii.analysis.filters.depth_forecast import forecast, score_at
from gcnii.analysis.layers.checkup import EPOCHS
from gcnii.data import load
from gcnii.errors import InputError
from gcnii.files import read_document, write_document
from gcnii.graph import Graph
from gcnii.paper.provenance import COMMIT, versions
from gcnii.paper.tables.cells import read_cells
from gcnii.paper.tables.printed import DEPTHS
from gcnii.train.fit import fit
from gcnii.train.hardware import device_name
from gcnii.train.plan import make_plan
from gcnii.train.result import Result, open_bundle

MODEL = "gcnii"
# Who advises: the deepest network after the doctor's few epochs, the same at its end, or all depths
# after those few.
SHORT, FULL, SWEEP = "short", "full", "sweep"

Record = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    """GCNII on a graph; seed s draws the weights and takes split s modulo their number.

    parameters  of a graph that is drawn
    settings    what differs from the preset of the graph
    chose       whether the rule was chosen on it, so that it is no test
    measured    whether its true scores are in results/cells, of more seeds
    asked       who advises
    """

    name: str
    graph: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: int
    chose: bool = False
    measured: bool = False
    asked: tuple[str, ...] = (SHORT, FULL, SWEEP)


def _csbm(name: str, **parameters: float) -> Case:
    return Case(
        name=f"csbm-{name}",
        graph="csbm",
        parameters={"n": 400, **parameters},
        settings={"width": 32},
        seeds=3,
    )


_CASES = (
    Case(name="cora", graph="cora", seeds=2, chose=True, measured=True),
    Case(
        name="citeseer", graph="citeseer", seeds=1, chose=True, measured=True, asked=(SHORT, SWEEP)
    ),
    Case(name="csbm", graph="csbm", seeds=2, chose=True),
    Case(name="texas", graph="texas", seeds=3),
    Case(name="wisconsin", graph="wisconsin", seeds=3),
    Case(name="cornell-2022", graph="cornell-2022", seeds=3),
    Case(name="chameleon", graph="chameleon", seeds=2),
    Case(name="digits", graph="digits", seeds=2),
    _csbm("sparse", degree=3, homophily=0.9),
    _csbm("heterophilous", homophily=0.1),
    _csbm("mixed", homophily=0.5, signal=2.0),
    _csbm("four", degree=6, classes=4, homophily=0.7, features=32, signal=2.0),
    _csbm("dense", degree=20, homophily=0.6, signal=0.7),
)
CASES = {case.name: case for case in _CASES}


def measure(
    case: Case, results: Path, keep: Path, device: torch.device, show: Callable[[str], None]
) -> Record:
    """The case as JSON has it; scores in [0, 1], one a depth.

    results  the folder with cells/
    keep     where trained networks stay, so that a test goes on where it stopped
    show     is told what comes next
    """
    graph = load(case.graph, **case.parameters)

    def train(layers: int, **length: int) -> Result:
        show(f"{layers} layers")
        return _train(case, graph, {"layers": layers, **length}, keep, device)

    true = _known(case, results) if case.measured else _scores([train(depth) for depth in DEPTHS])
    deepest = max(DEPTHS)
    askers: dict[str, Callable[[], list[Record]]] = {
        SHORT: lambda: _ask(graph, train(deepest, epochs=EPOCHS)),
        FULL: lambda: _ask(graph, train(deepest)),
        SWEEP: lambda: _extend(_scores([train(depth, epochs=EPOCHS) for depth in DEPTHS])),
    }
    asked = {name: askers[name]() for name in case.asked}
    return {
        "case": case.name,
        "graph": case.graph,
        "parameters": dict(case.parameters),
        "model": MODEL,
        "settings": make_plan(MODEL, {**case.settings, "layers": deepest}, graph).settings,
        "chose": case.chose,
        "true": "results/cells" if case.measured else "trained here",
        "command": f"gcnii forecast {case.name}",
        "device": device_name(device),
        "versions": versions(),
        "commit": COMMIT,
        "depths": list(DEPTHS),
        "seeds": [
            {"seed": s, **true[s], "asked": {name: answers[s] for name, answers in asked.items()}}
            for s in range(case.seeds)
        ],
    }


def _train(
    case: Case, graph: Graph, settings: dict[str, Any], keep: Path, device: torch.device
) -> Result:
    """All seeds, or what an earlier test has kept of them."""
    settings = {**case.settings, **settings}
    plan = make_plan(MODEL, settings, graph)
    folder = keep / case.name / f"{settings['layers']}-{plan.recipe.epochs}"
    if (folder / "run.json").exists():
        kept = open_bundle(folder)
        if (kept.plan, kept.graph.fingerprint, len(kept.runs)) == (
            plan,
            graph.fingerprint,
            case.seeds,
        ):
            return kept
    result = fit(graph, MODEL, seeds=range(case.seeds), device=device.type, **settings)
    if result.interrupted:
        raise KeyboardInterrupt
    result.save(folder)
    return result


def _scores(results: Sequence[Result]) -> list[Record]:
    """For each seed the scores of the networks, one a depth."""
    return [
        {name: [getattr(run, name) for run in runs] for name in ("test", "val", "epochs")}
        for runs in zip(*(result.runs for result in results), strict=True)
    ]


def _known(case: Case, results: Path) -> list[Record]:
    """The same of Figure 2, where more seeds were run: test scores are means of all, validation
    scores a seed's own.
    """
    row = f"{case.graph.capitalize()} GCNII"
    found = {
        int(one.column): one
        for one in read_cells(results / "cells")
        if (one.table, one.row) == ("figure2", row)
    }
    if missing := set(DEPTHS) - set(found):
        raise InputError(
            f"{results}/cells has no figure2 of {row} with {sorted(missing)} layers; reproduce it first"
        )
    cells = [found[depth] for depth in DEPTHS]
    if few := [cell.cell for cell in cells if cell.n < case.seeds or isnan(cell.mean)]:
        words = f"must have {case.seeds} runs or more, none of which was lost; reproduce them first"
        raise InputError(f"{', '.join(few)} in {results}/cells {words}")
    test = [cell.mean / 100 for cell in cells]
    return [{"test": test, "val": [cell.runs[s].val for cell in cells]} for s in range(case.seeds)]


def _ask(graph: Graph, result: Result) -> list[Record]:
    """For each seed what its network foretells."""
    answers = []
    for i, run in enumerate(result.runs):
        weights = {name: weight[i : i + 1] for name, weight in result.weights.items()}
        found = forecast(graph, replace(result, runs=(run,), weights=weights))
        foretold = [found.test[depth] for depth in DEPTHS]
        answers.append({"recommended": found.recommended, "foretold": foretold})
    return answers


def _extend(scores: Sequence[Record]) -> list[Record]:
    """For each seed the depth of the highest validation score, and that curve moved to the
    deepest's test score.
    """
    return [
        {
            "recommended": DEPTHS[one["val"].index(max(one["val"]))],
            "foretold": [val + one["test"][-1] - one["val"][-1] for val in one["val"]],
        }
        for one in scores
    ]


def steps(case: Case) -> int:
    """How many times `measure` shows something."""
    sweeps = (not case.measured) + (SWEEP in case.asked)
    return len(DEPTHS) * sweeps + len({SHORT, FULL} & set(case.asked))


def find_case(name: str) -> Case:
    """The case of that name."""
    if name not in CASES:
        raise InputError(f"no case {name!r}; known: {', '.join(CASES)}")
    return CASES[name]


def errors(record: Record, adviser: str, *, flat: bool = False) -> list[float]:
    """For each seed the mean of |foretold - true| over the depths; if flat, as if all depths were
    the deepest.
    """
    found = []
    for one in record["seeds"]:
        foretold = one["asked"][adviser]["foretold"]
        found.append(
            float(np.abs(np.subtract(foretold[-1] if flat else foretold, one["test"])).mean())
        )
    return found


def costs(record: Record, advised: Sequence[int]) -> list[float]:
    """For each seed the true score at the depth that is best in the mean over seeds, less that at
    the advised depth.
    """
    seeds = record["seeds"]
    best = int(np.mean([one["test"] for one in seeds], axis=0).argmax())
    return [
        one["test"][best] - score_at(depth, record["depths"], one["test"])
        for one, depth in zip(seeds, advised, strict=True)
    ]


def write(folder: Path, record: Record) -> Path:
    """Put the document into `CASE.json`, whole."""
    return write_document(folder / f"{record['case']}.json", record)


def read_records(folder: Path) -> Iterator[Record]:
    """The documents of the folder, in the order of CASES."""
    for name in CASES:
        if (path := folder / f"{name}.json").exists():
            yield _read(path, CASES[name])


def _read(path: Path, case: Case) -> Record:
    curve, adviser = [float], {"recommended": int, "foretold": [float]}
    seed = {"test": curve, "val": curve, "asked": dict.fromkeys(case.asked, adviser)}
    shape = {"case": str, "chose": bool, "depths": [int], "seeds": [seed]}
    return read_document(path, shape, f"test of advice on {case.name}", _checked)


def _checked(record: Record) -> Record:
    curves = [one[name] for one in record["seeds"] for name in ("test", "val")]
    curves += [answer["foretold"] for one in record["seeds"] for answer in one["asked"].values()]
    if not curves or any(len(curve) != len(record["depths"]) for curve in curves):
        raise InputError("it needs seeds, each with a score for each depth")
    return record
