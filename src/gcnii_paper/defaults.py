"""The default for graphs without a preset: measured on many graphs, chosen with each left out.

Candidates and baselines are measured batch by batch; leaving one graph out is then arithmetic.  A
choice is made for each kind of graphs (see `kind_of`), by validation scores alone; test scores are
only compared.
"""

from __future__ import annotations

import gc
import json
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from math import inf, sqrt
from pathlib import Path
from statistics import fmean, stdev

import torch

from gcnii.data import load
from gcnii.files import NOTHING, Document, Maybe, atomic_write, json_value, read_document
from gcnii.graph import Graph
from gcnii.nn.settings import Settings
from gcnii.parallel import run_parallel
from gcnii.results.fit import Session, fit_plans
from gcnii.results.result import Result
from gcnii.targets import target_of
from gcnii.train.group import Diverged
from gcnii.train.hardware import choose_device, device_name, lacks_memory
from gcnii.train.own import (
    DEFAULTS,
    FEATURES,
    LINKS,
    MEASURED_BASELINES,
    Traits,
    kind_of,
    own_default,
    shared,
)
from gcnii.train.plan import Plan, batch_key, make_plan
from gcnii.train.run import Run
from gcnii.train.scaling import density

# Those that take longest first.
GRAPHS = (
    *("squirrel", "facebook", "coauthor-cs", "pubmed-full", "pubmed", "amazon-photo"),
    *("chameleon", "minesweeper", "film", "twitch-engb", "cora-ml", "citeseer-full", "cora-full"),
    *("citeseer", "cora", "humango", "chameleon-filtered", "wisconsin", "texas", "cornell"),
)
# Not of the catalog: NAME.npz in a folder that is given.
FILES = frozenset({"facebook", "humango", "cora-ml", "twitch-engb"})

OURS = tuple(dict.fromkeys(default.model for default in DEFAULTS))
NODES, FEWEST, MOST, MOST_SEEDS = 40_000, 3, 10, 4  # of `seeds_for`


def _numbers(alpha: float, lam: float, dropout: float, conv: float, dense: float) -> Settings:
    numbers = {"alpha": alpha, "lam": lam, "dropout": dropout}
    return numbers | {"decay_conv": conv, "decay_dense": dense, "lr": 0.01}


# They differ in numbers alone, so a GPU trains all of them at once.
NUMBERS = tuple(
    _numbers(*numbers)
    for numbers in (
        (0.1, 0.5, 0.6, 1e-2, 5e-4),
        (0.1, 0.5, 0.6, 1e-3, 5e-4),
        (0.1, 0.5, 0.5, 1e-4, 1e-4),
        (0.1, 1.0, 0.7, 1e-4, 1e-3),
        (0.1, 1.0, 0.5, 1e-4, 5e-4),
        (0.1, 1.0, 0.2, 1e-4, 1e-4),
        (0.1, 1.5, 0.5, 1e-5, 1e-4),
        (0.2, 1.0, 0.6, 5e-4, 5e-4),
        (0.2, 1.0, 0.5, 0.0, 0.0),
        (0.2, 1.5, 0.1, 1e-5, 1e-5),
        (0.3, 1.0, 0.5, 1e-3, 5e-4),
        (0.3, 1.5, 0.5, 1e-4, 5e-4),
        (0.5, 1.0, 0.5, 1e-4, 1e-4),
    )
)


GCNII = tuple(
    {"layers": layers, "width": 64, **numbers} for layers in (8, 4) for numbers in NUMBERS
)


def _each(**choices: Sequence[object]) -> Iterator[Settings]:
    """Every combination."""
    for values in product(*choices.values()):
        yield dict(zip(choices, values, strict=True))


WHOM_ALL: Settings = {
    **{"product_first": True, "loops": "none", "row_norm": "layer"},
    **{"width": 128, "alpha": 0.2, "lam": 1.0, "lr": 0.01},
}
WHOM = tuple(  # a node's class is told by whom it links to
    {**WHOM_ALL, **one, **decays}
    for one in _each(layers=(4, 2), dropout=(0.0, 0.2, 0.5), input_dropout=(0.0, 0.3))
    for decays in (
        {"decay_conv": 1e-5, "decay_dense": 1e-5},
        {"decay_conv": 1e-4, "decay_dense": 1e-3},
    )
)
ITSELF = tuple(  # by its own features
    {"head": "features", "layers": 2, "lam": 1.0, "lr": 0.01, "width": 64, **one, **decays}
    for one in _each(
        loops=("none", "keep"),
        direction=("out", "both"),
        alpha=(0.5, 0.8),
        dropout=(0.3, 0.6),
        input_dropout=(0.0, 0.2),
    )
    for decays in (
        {"decay_conv": 1e-4, "decay_dense": 1e-4},
        {"decay_conv": 1e-3, "decay_dense": 1e-3},
        {"decay_conv": 1e-4, "decay_dense": 5e-3},
    )
)


def candidates(kind: int) -> Sequence[Settings]:
    """What the default of a kind of graphs is chosen from."""
    special: dict[int, Sequence[Settings]] = {LINKS: WHOM, FEATURES: ITSELF}
    return special.get(kind, GCNII)


def settings_of(model: str, traits: Traits) -> list[Settings]:
    """What a model is measured with on a graph of these traits.

    A baseline shares scaling, stopping and thresholds with the candidates, and has its own settings
    otherwise.  Of the family, only the model of the graph's kind is measured.
    """
    kind = kind_of(traits)
    if model in OURS:
        tried = candidates(kind) if model == DEFAULTS[kind].model else ()
        return [shared(traits) | one for one in tried]
    return [own_default(model, traits)]


def seeds_for(graph: Graph) -> Sequence[int]:
    """Three to ten splits, as many as NODES nodes allow; of a single split, up to four seeds."""
    most = MOST if len(graph.splits) > 1 else MOST_SEEDS
    return range(max(FEWEST, min(most, NODES // graph.n)))


_SCORES = [(float, NOTHING)]
RUNS = {"model": str, "settings": dict, "seeds": [int], "val": _SCORES, "test": _SCORES}
TRAITS = {
    **{"n": int, "d": int, "train": int, "sparse": bool, "multilabel": bool},
    # Documents from before these were measured lack them: then they are assumed.
    **{"homophily": Maybe(float), "links": Maybe(float), "features": Maybe(float)},
}
SHAPE = {"graph": str, "metric": str, **TRAITS, "runs": [RUNS]}
WHAT = "record of settings"


class Records:
    """Documents by the names of their graphs; `add` writes at once.

    path  a folder for NAME.json, or a file *.json for all
    """

    def __init__(self, path: Path):
        self.path, self.one = path, path.suffix == ".json"
        self.documents: dict[str, Document] = {}
        if self.one and path.exists():
            self.documents = read_document(path, {str: SHAPE}, WHAT, dict)
        for file in () if self.one else sorted(path.glob("*.json")):
            self.documents[file.stem] = read_document(file, SHAPE, WHAT, dict)

    def held(self, name: str, model: str) -> list[Settings]:
        """The settings that this model was measured with on this graph."""
        runs = self.documents.get(name, {"runs": []})["runs"]
        return [run["settings"] for run in runs if run["model"] == model]

    def traits(self, name: str) -> Traits:
        """Those of a graph that was measured."""
        return traits_of(self.documents[name])

    def add(self, name: str, about: Document, runs: Iterable[Document]) -> None:
        """Keep more runs on a graph, and what is known about it."""
        before = self.documents.get(name, {"runs": []})
        self.documents[name] = before | about | {"runs": [*before["runs"], *runs]}
        if self.one:
            write_text(self.path, texts(self.documents))
        else:
            write_text(self.path / f"{name}.json", text(self.documents[name]))


def traits_of(document: Document) -> Traits:
    """Those of the graph that a document is about."""
    return Traits(**{trait: document[trait] for trait in TRAITS if trait in document})


def text(document: Document) -> str:
    """JSON with a line for each run."""
    about = {name: value for name, value in document.items() if name != "runs"}
    runs = ",\n  ".join(json.dumps(run) for run in document["runs"])
    return f'{json.dumps(about, indent=1)[:-2]},\n "runs": [\n  {runs}\n ]\n}}\n'


def texts(documents: Mapping[str, Document]) -> str:
    """The documents as one JSON object."""
    return (
        "{\n"
        + ",\n".join(f"{json.dumps(name)}: {text(one)}" for name, one in documents.items())
        + "}\n"
    )


def write_text(path: Path, words: str) -> None:
    """Write atomically."""
    with atomic_write(path) as temporary:
        temporary.write_text(words, "utf-8")


SMALLER = (None, 24, 8, 1)  # replicas at once, where memory is short


@dataclass(frozen=True)
class Batch:
    """A model on a graph, without the settings that were measured before."""

    graph: str
    model: str
    held: Sequence[Settings]

    def missing(self, traits: Traits) -> list[Settings]:
        """What is left to measure on a graph of these traits."""
        return [
            settings for settings in settings_of(self.model, traits) if settings not in self.held
        ]


@dataclass(frozen=True)
class Measured:
    """What a batch gave.

    about  what is known of the graph
    wrong  the traceback, if it failed
    """

    about: Document
    runs: Sequence[Document] = ()
    seconds: float = 0.0
    wrong: str = ""


def batches(records: Records, word: str) -> list[Batch]:
    """Those that are not complete, in order of value, on the graphs whose names hold this word."""
    every = (
        Batch(name, model, records.held(name, model))
        for model in (*OURS, *MEASURED_BASELINES)
        for name in GRAPHS
        if word in name
    )
    known = {name: records.traits(name) for name in records.documents}
    return [one for one in every if one.graph not in known or one.missing(known[one.graph])]


def measure(
    records: Records,
    *,
    word: str = "",
    data: Path | None = None,
    device: str = "auto",
    jobs: int = 1,
    minutes: float = float("inf"),
    told: Callable[[str], None] = print,
) -> None:
    """Train what the records do not hold yet; each batch is kept at once.

    data     the folder of FILES; without one, these are left out
    minutes  from when on no batch is begun
    """
    begun, todo = time.time(), batches(records, word)
    if not data and (files := {batch.graph for batch in todo} & FILES):
        told(f"left out without a folder that holds their npz files: {', '.join(sorted(files))}")
        todo = [batch for batch in todo if batch.graph not in files]
    task = partial(train_batch, data=data, device=device, until=begun + 60 * minutes)
    found = _answers(task, todo, jobs)
    with closing(found):  # which ends the workers, whatever happens here
        for batch, measured in found:
            what = f"{time.time() - begun:6.1f} s  {batch.graph}, {batch.model}"
            if measured.runs:
                records.add(batch.graph, measured.about, measured.runs)
                told(f"{what}: {len(measured.runs)} settings, {measured.seconds:.1f} s")
            elif measured.wrong:
                told(f"{what}: {measured.wrong}")


def _answers(
    task: Callable[[Batch], Measured], todo: Sequence[Batch], jobs: int
) -> Generator[tuple[Batch, Measured], None, None]:
    """What each batch gave, one after the other or in the order in which the answers come."""
    if jobs > 1:
        yield from run_parallel(task, todo, jobs)
    else:
        yield from ((one, task(one)) for one in todo)


def train_batch(batch: Batch, *, data: Path | None, device: str, until: float) -> Measured:
    """Train a batch, unless it is too late; a failure is told and the others go on."""
    if time.time() > until:
        return Measured({})
    try:
        return _train_batch(batch, data, device)
    except Exception:
        return Measured({}, wrong=traceback.format_exc())


def _train_batch(batch: Batch, data: Path | None, device: str) -> Measured:
    graph, begun = development_graph(batch.graph, data), time.time()
    traits = Traits.of(graph)
    entries = [
        entry
        for group in _groups(batch.model, batch.missing(traits))
        for entry in _measured(graph, batch.model, group, device)
    ]
    about = {
        "graph": batch.graph,
        "metric": target_of(graph).score("auto").name,
        **{"m": graph.m, "k": graph.k, "splits": len(graph.splits)},
        **{"density": round(density(graph.X), 4), "directed": graph.directed, **vars(traits)},
        "device": device_name(choose_device(device)),
    }
    return Measured(about, entries, time.time() - begun)


def _groups(model: str, each: Sequence[Settings]) -> list[list[Settings]]:
    """Those that can be trained as one batch together."""
    found: dict[str, list[Settings]] = {}
    for settings in each:
        found.setdefault(batch_key(make_plan(model, settings)), []).append(settings)
    return list(found.values())


def _measured(
    graph: Graph, model: str, group: Sequence[Settings], device: str
) -> Iterator[Document]:
    # Without the graph: neither its preset nor the default for graphs without one.
    plans = [make_plan(model, settings) for settings in group]
    each = _runs(graph, plans, seeds_for(graph), device)
    _free_memory()
    for settings, runs in zip(group, each, strict=True):
        yield _entry(model, settings, runs)


@cache
def development_graph(name: str, data: Path | None) -> Graph:
    """A graph of the catalog, or of a file in the folder."""
    return load(data / f"{name}.npz" if data and name in FILES else name)


def _runs(
    graph: Graph, plans: Sequence[Plan], seeds: Sequence[int], device: str
) -> list[Sequence[Run]]:
    """The runs of each plan; none of one that diverged."""
    try:
        result = _fit(graph, plans, seeds, device)
    except Diverged:
        return [()] * len(plans)
    if result.interrupted:
        raise KeyboardInterrupt
    return [[run for run in result.runs if run.setting == setting] for setting in range(len(plans))]


def _fit(graph: Graph, plans: Sequence[Plan], seeds: Sequence[int], device: str) -> Result:
    """All at once, or a few at a time where memory is short."""
    for batch in SMALLER:
        try:
            return fit_plans(graph, plans, Session(device=device, batch=batch), seeds=seeds)
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error) or batch == SMALLER[-1]:
                raise
        _free_memory()
    raise AssertionError


def _free_memory() -> None:
    """Leave to the other processes what torch would keep for the next batch."""
    gc.collect()
    torch.cuda.empty_cache()  # does nothing without a GPU


def _entry(model: str, settings: Settings, runs: Sequence[Run]) -> Document:
    return {
        "model": model,
        "settings": settings,
        "seeds": [run.seed for run in runs],
        **{name: [_rounded(getattr(run, name)) for run in runs] for name in ("val", "test")},
        **{name: [getattr(run, name) for run in runs] for name in ("best_epoch", "epochs")},
        "seconds": round(sum(run.seconds for run in runs), 1),
    }


def _rounded(score: float) -> float | None:
    number: float | None = json_value(round(score, 5))
    return number


def criterion(candidate: Settings, kind: int, documents: Iterable[Document]) -> float:
    """mean_g [ val(candidate, g) - max_b val(b, g) ], over graphs g and baselines b."""
    return fmean(
        mean(scores(document, DEFAULTS[kind].model, "val", candidate))
        - max(mean(scores(document, name, "val")) for name in MEASURED_BASELINES)
        for document in documents
    )


def choose(kind: int, documents: Sequence[Document]) -> Settings | None:
    """The candidate with the highest criterion, of those that were measured on all graphs."""
    model = DEFAULTS[kind].model
    measured = [
        one
        for one in candidates(kind)
        if all(_run(document, model, one) is not None for document in documents)
    ]
    if not documents or not measured:
        return None
    return max(measured, key=lambda one: criterion(one, kind, documents))


def scores(
    document: Document, model: str, part: str, wanted: Settings | None = None
) -> list[float]:
    """The val or test scores of a model's run, split by split; empty if there is no such run."""
    found = _run(document, model, wanted or {})
    return [-inf if score is None else score for score in found[part]] if found else []


def kin(name: str) -> str:
    """The data that a graph is made of: cora, cora-full and cora-ml share theirs."""
    return name.split("-")[0]


def mean(values: Sequence[float]) -> float:
    """-∞ of a run that diverged."""
    return fmean(values) if values else -inf


def _run(document: Document, model: str, wanted: Settings) -> Document | None:
    for run in document["runs"]:
        if run["model"] == model and wanted.items() <= run["settings"].items():
            found: Document = run
            return found
    return None


@dataclass(frozen=True)
class Row:
    """A graph: test scores in %, split by split.

    left_out   what is chosen without this graph and its kin; None if no other is of its kind
    default    the test scores of that choice
    shipped    those of the default in force
    baselines  by name
    """

    graph: str
    traits: Traits
    left_out: Settings | None
    default: list[float]
    shipped: list[float]
    baselines: Mapping[str, list[float]]

    @property
    def best(self) -> str:
        """The baseline with the highest mean test score: no choice by validation helps ours."""
        return max(self.baselines, key=lambda name: mean(self.baselines[name]))

    def lead(self, ours: Sequence[float]) -> tuple[float, float]:
        """The mean difference from the best baseline, paired by split, and its standard error."""
        differences = [a - b for a, b in zip(ours, self.baselines[self.best], strict=True)]
        return fmean(differences), stdev(differences) / sqrt(len(differences))


@dataclass(frozen=True)
class DefaultsStudy:
    """All that was measured: what is chosen for each kind, and a row for each graph."""

    chosen: tuple[Settings | None, ...]
    rows: Sequence[Row]

    @classmethod
    def of(cls, records: Records) -> DefaultsStudy:
        """The study of these records, without graphs that were not measured completely."""
        documents = {name: one for name, one in records.documents.items() if _complete(one)}
        kinds = {name: kind_of(traits_of(one)) for name, one in documents.items()}
        inside = [
            [name for name in GRAPHS if kinds.get(name) == kind] for kind in range(len(DEFAULTS))
        ]
        chosen = tuple(
            choose(kind, [documents[name] for name in names]) for kind, names in enumerate(inside)
        )
        rows = [
            _row(
                documents[name],
                [documents[other] for other in inside[kinds[name]] if kin(other) != kin(name)],
            )
            for name in GRAPHS
            if name in documents
        ]
        return cls(chosen, sorted(rows, key=lambda row: (kinds[row.graph], row.traits.rho)))

    @property
    def counted(self) -> list[Row]:
        """The graphs that the default is judged by: those that others choose for."""
        return [row for row in self.rows if row.left_out]

    @property
    def mean(self) -> float:
        """The mean test score over the counted graphs, each left out of its own choice."""
        return fmean(mean(row.default) for row in self.counted)

    @property
    def baselines(self) -> dict[str, float]:
        """The mean test score of each baseline over the counted graphs."""
        return {
            name: fmean(mean(row.baselines[name]) for row in self.counted)
            for name in MEASURED_BASELINES
        }


def _complete(document: Document) -> bool:
    """Whether it holds the baselines and the default in force."""
    default = DEFAULTS[kind_of(traits_of(document))]
    return all(
        scores(document, model, "test", wanted)
        for model, wanted in (
            (default.model, default.settings),
            *((name, {}) for name in MEASURED_BASELINES),
        )
    )


def _row(document: Document, others: Sequence[Document]) -> Row:
    kind = kind_of(traits := traits_of(document))
    default, left_out = DEFAULTS[kind], choose(kind, others)

    def percent(model: str, wanted: Settings) -> list[float]:
        return [100 * score for score in scores(document, model, "test", wanted)]

    return Row(
        document["graph"],
        traits,
        left_out,
        percent(default.model, left_out) if left_out else [],
        percent(default.model, default.settings),
        {name: percent(name, {}) for name in MEASURED_BASELINES},
    )
