"""Measuring settings on graphs: each once, on the same splits, kept in a document per graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch

from gcnii.data import load
from gcnii.files import NOTHING, Document, read_document, write_document
from gcnii.graph import Graph
from gcnii.nn.settings import Settings
from gcnii.paper.defaults.candidates import CATALOG, FILES
from gcnii.train.fit import fit_plans
from gcnii.train.hardware import choose_device, device_name, lacks_memory
from gcnii.train.plan import Plan, batch_key, make_plan
from gcnii.train.results.result import Result
from gcnii.train.scaling import choose

_SCORES = [(float, NOTHING)]
RUNS = {"model": str, "settings": dict, "seeds": [int], "val": _SCORES, "test": _SCORES}
SHAPE = {
    "graph": str,
    "metric": str,
    "splits": int,
    "sparse": bool,
    "directed": bool,
    "runs": [RUNS],
}


def development_graph(name: str, data: Path | None) -> Graph:
    """A graph of the catalog, or a file NAME.npz in the folder."""
    return load(name if name in CATALOG or data is None else data / f"{name}.npz")


def names(data: Path | None, word: str = "") -> list[str]:
    """The graphs to measure on whose names hold this word."""
    return [name for name in (*CATALOG, *(FILES if data else ())) if word in name]


def is_sparse(graph: Graph) -> bool:
    """Whether the features are mostly zeros."""
    return choose(graph.X) == "rows"


def read(path: Path, name: str, graph: Graph) -> Document:
    """What was measured on this graph so far."""
    if path.exists():
        return read_document(path, SHAPE, "record of settings", dict)
    return {
        "graph": name,
        "metric": "micro-F1" if graph.multilabel else "accuracy",
        "splits": len(graph.splits),
        "sparse": is_sparse(graph),
        "directed": graph.directed,
        "n": graph.n,
        "runs": [],
    }


def measure(
    graph: Graph,
    path: Path,
    tries: Sequence[tuple[str, Settings]],
    seeds: Sequence[int],
    *,
    name: str,
    device: str = "auto",
    told: Callable[[str], None] = lambda words: None,
) -> Document:
    """Train what the document does not hold yet, batch by batch, and keep each batch at once."""
    document = read(path, name, graph)
    held = [(run["model"], run["settings"], tuple(run["seeds"])) for run in document["runs"]]
    missing = [one for one in tries if (*one, tuple(seeds)) not in held]
    for model, batch in batches(missing, graph):
        told(f"{name}: {model}, {len(batch)} settings")
        result = _train(graph, list(batch.values()), seeds, device)
        for setting, settings in enumerate(batch):
            document["runs"].append(_entry(model, dict(settings), result, setting))
        document["device"] = device_name(choose_device(device))
        write_document(path, document)
    return document


def batches(
    tries: Sequence[tuple[str, Settings]], graph: Graph
) -> Iterator[tuple[str, Mapping[tuple[tuple[str, object], ...], Plan]]]:
    """Settings that can be trained at once, as their items, and the plans made of them."""
    found: dict[str, tuple[str, dict[tuple[tuple[str, object], ...], Plan]]] = {}
    for model, settings in tries:
        plan = make_plan(model, settings, graph)
        own = found.setdefault(batch_key(plan), (model, {}))
        own[1][tuple(settings.items())] = plan
    yield from found.values()


def _train(graph: Graph, plans: Sequence[Plan], seeds: Sequence[int], device: str) -> Result:
    """All at once, or a few at a time where memory is short."""
    for batch in (None, 16, 4, 1):
        try:
            return fit_plans(graph, plans, seeds=seeds, device=device, batch=batch)
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error) or batch == 1:
                raise
        torch.cuda.empty_cache()  # does nothing without a GPU
    raise AssertionError


def _entry(model: str, settings: Settings, result: Result, setting: int) -> Document:
    runs = [run.summary() for run in result.runs if run.setting == setting]
    lists = {name: [run[name] for run in runs] for name in ("val", "test", "epochs", "seconds")}
    return {"model": model, "settings": settings, "seeds": [run["seed"] for run in runs], **lists}
