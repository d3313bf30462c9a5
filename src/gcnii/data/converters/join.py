"""join: several graphs as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.errors import GraphError
from gcnii.graph import Features, Graph, Role, Split


def join(graphs: Sequence[Graph], roles: Sequence[Role], name: str = "graph") -> Graph:
    """Join several graphs into one block-diagonal Graph, whose split assigns whole graphs.

    Parameters
    ----------
    graphs : list of Graph
        Graphs with the same features and the same classes.
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
    if len(graphs) != len(roles) or not graphs:
        raise GraphError(
            f"join needs one role per graph, got {len(graphs)} graphs and {len(roles)} roles"
        )
    sizes = [graph.n for graph in graphs]
    starts = np.cumsum([0, *sizes[:-1]])
    shifted = [graph.edges + start for graph, start in zip(graphs, starts, strict=True)]
    return Graph(
        X=_stacked([graph.X for graph in graphs]),
        edges=np.concatenate(shifted, 1),
        y=np.concatenate([graph.labels for graph in graphs]),
        splits=(Split.of_roles(np.repeat(np.array(roles, dtype=object), sizes)),),
        directed=any(graph.directed for graph in graphs),
        name=name,
        classes=graphs[0].classes,
        features=graphs[0].features if len({graph.features for graph in graphs}) == 1 else None,
        part=np.repeat(np.arange(len(graphs)), sizes),
        weights=_weights(graphs),
    )


def _weights(graphs: Sequence[Graph]) -> NDArray[np.float64] | None:
    known = [graph.weights for graph in graphs if graph.weights is not None]
    if known and len(known) < len(graphs):
        weighted, other = (
            next(graph.name for graph in graphs if graph.weighted is kind) for kind in (True, False)
        )
        raise GraphError(
            f"the edges of {weighted} have weights but those of {other} have none; give all graphs "
            "weights, or drop them: dataclasses.replace(graph, weights=None)"
        )
    return np.concatenate(known) if known else None


def _stacked(blocks: Sequence[Features]) -> Features:
    sparse = any(sp.issparse(X) for X in blocks)
    return sp.vstack(blocks, "csr") if sparse else np.concatenate(blocks)
