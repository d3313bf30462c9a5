"""join: several graphs as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from gcnii.errors import GraphError
from gcnii.graph import Features, Graph, Role, Split


def join(graphs: Sequence[Graph], roles: Sequence[Role], name: str = "graph") -> Graph:
    """Several graphs as one block-diagonal Graph, with one split into whole graphs by `roles`."""
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
    )


def _stacked(blocks: Sequence[Features]) -> Features:
    sparse = any(sp.issparse(X) for X in blocks)
    return sp.vstack(blocks, "csr") if sparse else np.concatenate(blocks)
