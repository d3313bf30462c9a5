"""join: several graphs as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.errors import GraphError, is_one_of
from gcnii.graph import ROLES, Features, Graph, Role, Split
from gcnii.graph.arrays import merged
from gcnii.graph.columns import differences
from gcnii.graph.times import earliest
from gcnii.graph.types import aligned, together
from gcnii.graph.weights import sum_repeated

Names = tuple[str, ...] | None


def join(graphs: Sequence[Graph], roles: Sequence[Role], name: str = "graph") -> Graph:
    """Join several graphs into one block-diagonal Graph, whose split assigns whole graphs.

    Features and classes are matched by their names, in any order.  Where some graphs are directed,
    the undirected edges of the others become two edges each, one in each direction.

    Parameters
    ----------
    graphs : list of Graph
        Graphs with the same features.  A graph may lack classes of another.
    roles : list of {"train", "val", "test"}
        The part of the split that each graph belongs to.
    name : str
        The name of the joined graph.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import gcnii
    >>> graphs = [gcnii.load("csbm", n=60, seed=seed) for seed in range(3)]
    >>> gcnii.join(graphs, ["train", "val", "test"]).n
    180
    """
    for field, values in (("graphs", graphs), ("roles", roles)):
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise GraphError(f"{field} must be a list, got {values!r}")
    if odd := [one for one in graphs if not isinstance(one, Graph)]:
        raise GraphError(f"graphs must hold gcnii.Graph, got {type(odd[0]).__name__}")
    if len(graphs) != len(roles) or not graphs:
        raise GraphError(
            f"join needs one role per graph, got {len(graphs)} graphs and {len(roles)} roles"
        )
    for role in roles:
        if not is_one_of(role, ROLES):
            raise GraphError(f"a role must be train, val or test, got {role!r}")
    _refuse_different(graphs)
    graphs = _alike_in_features(graphs)
    labels, classes = _labels(graphs)
    directed = any(graph.directed for graph in graphs)
    if directed:
        graphs = [graph if graph.directed else _both_ways(graph) for graph in graphs]
    sizes = [graph.n for graph in graphs]
    starts = np.cumsum([0, *sizes[:-1]])
    shifted = [graph.edges + start for graph, start in zip(graphs, starts, strict=True)]
    types, type_names = _types(graphs)
    return Graph(
        X=_stacked([graph.X for graph in graphs]),
        edges=np.concatenate(shifted, 1),
        y=np.concatenate(labels),
        splits=(Split.of_roles(np.repeat(np.array(roles, dtype=object), sizes)),),
        directed=directed,
        name=name,
        classes=classes,
        targets=graphs[0].targets,
        features=graphs[0].features,
        part=np.repeat(np.arange(len(graphs)), sizes),
        weights=_joined(graphs, "weights"),
        times=_joined(graphs, "times"),
        edge_times=_joined(graphs, "edge_times"),
        dated=graphs[0].dated,
        edge_types=types,
        edge_type_names=type_names,
    )


def _joined(graphs: Sequence[Graph], name: str) -> NDArray[np.float64] | None:
    """What all graphs have under this name, or none of them has."""
    each = [own for graph in graphs if (own := getattr(graph, name)) is not None]
    return np.concatenate(each) if each else None


def _types(graphs: Sequence[Graph]) -> tuple[NDArray[np.int64] | None, Names]:
    """The types of all edges, by the names of all."""
    names = tuple(sorted({name for graph in graphs for name in graph.type_names}))
    if not names:
        return None, None
    for graph in graphs:
        if not graph.type_names and graph.edges.size:
            raise GraphError(
                f"the edges of {graph.name} have no types but those of others have; name theirs, "
                "or drop all: dataclasses.replace(graph, edge_types=None, edge_type_names=None)"
            )
    each = [
        aligned(one.edge_types, one.edges.shape[1], one.type_names, names, one.name)
        for one in graphs
    ]
    return np.concatenate(each), names


def _refuse_different(graphs: Sequence[Graph]) -> None:
    """Refuse graphs of which only some have weights, several labels, or names."""
    for one, other in pairwise(graphs):
        if one.weighted is not other.weighted:
            weighted, plain = (one, other) if one.weighted else (other, one)
            raise GraphError(
                f"the edges of {weighted.name} have weights but those of {plain.name} have none; "
                "give all graphs weights, or drop them: dataclasses.replace(graph, weights=None)"
            )
        for field in ("times", "edge_times"):
            if (getattr(one, field) is None) is not (getattr(other, field) is None):
                raise GraphError(
                    f"{one.name} and {other.name} do not both have {field}; give all graphs such, "
                    f"or drop them: dataclasses.replace(graph, {field}=None)"
                )
        if one.dated is not other.dated:
            raise GraphError(
                f"the times of {one.name} and {other.name} are dates in one and numbers in the "
                "other; write both alike"
            )
        if one.multilabel is not other.multilabel:
            several, single = (one, other) if one.multilabel else (other, one)
            raise GraphError(
                f"a node of {several.name} can have several labels but a node of {single.name} has "
                "one class; give all graphs the same kind of labels"
            )
        if one.targets != other.targets:
            raise GraphError(
                f"{one.name} and {other.name} have different targets, {one.targets} and "
                f"{other.targets}; give all graphs the same, in the same order"
            )
        for names in ("features", "classes"):
            if (getattr(one, names) is None) is not (getattr(other, names) is None):
                named, plain = (other, one) if getattr(one, names) is None else (one, other)
                raise GraphError(
                    f"the {names} of {named.name} have names but those of {plain.name} have none, "
                    f"so they cannot be matched; name them: dataclasses.replace(graph, {names}=…)"
                )


def _alike_in_features(graphs: Sequence[Graph]) -> list[Graph]:
    """The graphs with the columns of X in the order of the first."""
    first = graphs[0]
    for graph in graphs[1:]:
        if wrong := differences(graph.features or (), first.features or ()):
            raise GraphError(
                f"{graph.name} {wrong} among its features, unlike {first.name}; "
                "give all graphs the same features"
            )
        if graph.d != first.d:
            raise GraphError(
                f"{first.name} has {first.d} features per node but {graph.name} has {graph.d}; "
                "give all graphs the same features"
            )
    names = first.features
    return [graph if names is None else graph.with_features(names) for graph in graphs]


def _labels(graphs: Sequence[Graph]) -> tuple[list[NDArray[np.int64]], Names]:
    """The labels of each graph by the classes of all, and these classes."""
    if graphs[0].classes is None:
        if graphs[0].multilabel and len(widths := {graph.k for graph in graphs}) > 1:
            raise GraphError(
                f"the graphs have {' and '.join(map(str, sorted(widths)))} labels; "
                "give all of them the same"
            )
        return [graph.labels for graph in graphs], None
    classes = tuple(dict.fromkeys(name for graph in graphs for name in graph.classes or ()))
    if not graphs[0].multilabel:
        place = {name: c for c, name in enumerate(classes)}
        ids = [np.array([*(place[c] for c in graph.classes or ()), -1]) for graph in graphs]
        return [own[graph.labels] for own, graph in zip(ids, graphs, strict=True)], classes
    for graph in graphs:
        if lacks := [name for name in classes if name not in set(graph.classes or ())]:
            raise GraphError(
                f"{graph.name} lacks the label {lacks[0]!r} of another graph; where nodes can have "
                "several labels, give all graphs a column for each"
            )
    order = ([(graph.classes or ()).index(name) for name in classes] for graph in graphs)
    return [graph.labels[:, columns] for columns, graph in zip(order, graphs, strict=True)], classes


def _both_ways(graph: Graph) -> Graph:
    """An undirected graph as a directed one, each of whose edges has its reverse."""
    edges, weights, times, types = graph.apart, graph.weights, graph.edge_times, None
    if weights is None:
        once = merged(edges)
    else:
        once, weights = sum_repeated(edges, weights, directed=False)
    if times is not None:
        times = earliest(once, edges, times, directed=False)
    if graph.typed:
        once, types = together(once, graph.n)
    other = once[0] != once[1]  # a self-loop is its own reverse
    weights, times, types = (
        None if own is None else np.concatenate([own, own[other]])
        for own in (weights, times, types)
    )
    both = np.concatenate([once, once[::-1, other]], 1)
    return replace(
        graph, edges=both, weights=weights, edge_times=times, edge_types=types, directed=True
    )


def _stacked(blocks: Sequence[Features]) -> Features:
    sparse = any(sp.issparse(X) for X in blocks)
    return sp.vstack(blocks, "csr") if sparse else np.concatenate(blocks)
