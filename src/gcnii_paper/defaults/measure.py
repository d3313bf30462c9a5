"""Measuring settings on graphs: what is missing, batch by batch, several processes at once."""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import torch

from gcnii.data import load
from gcnii.files import Document, json_value
from gcnii.graph import Graph
from gcnii.nn.settings import Settings
from gcnii.parallel import run_parallel
from gcnii.results.fit import Session, fit_plans
from gcnii.results.result import Result
from gcnii.targets import target_of
from gcnii.train.group import Diverged
from gcnii.train.hardware import choose_device, device_name, lacks_memory
from gcnii.train.own import BASELINES, Traits
from gcnii.train.plan import Plan, batch_key, make_plan
from gcnii.train.run import Run
from gcnii.train.scaling import density
from gcnii_paper.defaults.candidates import FILES, GRAPHS, OURS, seeds_for, settings_of
from gcnii_paper.defaults.records import Records

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
        for model in (*OURS, *BASELINES)
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
