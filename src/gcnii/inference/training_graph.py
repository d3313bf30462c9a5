"""The graph that a model was trained on: in memory, or from where it was."""

from __future__ import annotations

from gcnii.data import CATALOG, load
from gcnii.errors import InputError
from gcnii.graph import Graph
from gcnii.train.results.predictor import Predictor
from gcnii.train.results.result import Result


def is_training_graph(result: Predictor, graph: Graph) -> bool:
    """Whether the model was trained on this very graph, with its columns in any order."""
    names, own = result.graph.features, graph.features
    if names is not None and own is not None and sorted(names) == sorted(own):
        graph = graph.with_features(names)
    return graph.fingerprint == result.graph.fingerprint


def training_graph(result: Result, graph: Graph | None = None) -> Graph:
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


def load_training_graph(result: Result, *, offline: bool = False) -> Graph:
    """The graph of the training: the one in memory, else from where it was."""
    if result.trained_on is not None and result.answers is None:
        return result.trained_on
    origin = result.graph
    if not origin.source:
        raise InputError("the model was trained on a graph made in Python; give it as graph=")
    directed = {"directed": True} if origin.directed and origin.source not in CATALOG else {}
    return load(origin.source, offline=offline, **directed | dict(origin.loaded_with))
