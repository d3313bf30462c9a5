"""The graph that a model was trained on: in memory, or from where it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gcnii.data import CATALOG, load
from gcnii.data.formats import reader_of
from gcnii.errors import DataError, InputError
from gcnii.graph import Graph
from gcnii.results.trained import Origin, Trained


def is_training_graph(result: Trained, graph: Graph) -> bool:
    """Whether the model was trained on this very graph, with its columns in any order.

    Fingerprints say nothing of the names of the classes: they were stored before names were.
    """
    classes = result.origin.classes
    if classes is not None and graph.classes is not None and graph.classes != classes:
        return False
    names, own = result.origin.features, graph.features
    if names is not None and own is not None and sorted(names) == sorted(own):
        graph = graph.with_features(names)
    return graph.fingerprint == result.origin.fingerprint


def training_graph(result: Trained, graph: Graph | None = None) -> Graph:
    """The given graph if it is that of the training, else the one that was; never another."""
    if graph is not None and is_training_graph(result, graph):
        return graph
    known = load_training_graph(result)
    if not is_training_graph(result, known):
        raise InputError(
            f"this needs the splits and labels of the training, but {known.name} has changed since "
            "then; restore it, or train again"
        )
    return known


def load_training_graph(result: Trained, *, offline: bool = False) -> Graph:
    """The training graph: the one in memory, else from where it was."""
    if result.whole_graph is not None:
        return result.whole_graph
    origin = result.origin
    if not origin.source:
        raise InputError("the model was trained on a graph made in Python; give it as graph=")
    if origin.source in CATALOG:
        return load(origin.source, offline=offline, **origin.loaded_with)
    try:
        return load(origin.source, **_options(origin))
    except DataError as error:
        where = "say where it is with --graph (in Python: graph=)"
        if Path(origin.source).exists():
            moved = f"{error}; if the training graph has moved, {where}"
            raise DataError(moved, error.problems, error.columns) from error
        raise DataError(
            f"the training graph is not at {origin.source} any more; {where}"
        ) from error


def _options(origin: Origin) -> dict[str, Any]:
    """How a graph of one's own was loaded; its columns mean what they meant then."""
    options: dict[str, Any] = {"directed": True} if origin.directed else {}
    if origin.columns is not None and "columns" in reader_of(Path(origin.source)).parameters:
        options["columns"] = origin.columns
    return {**origin.loaded_with, **options}
