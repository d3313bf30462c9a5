"""PyG, and a graph that both of us normalise in the same way."""

import pytest
from support.small_models import web

from gcnii.graph import Graph


@pytest.fixture
def undirected():
    graph = web()
    return Graph(X=graph.X, edges=graph.edges[:, graph.edges[0] != graph.edges[1]], y=graph.y)


@pytest.fixture
def pyg():
    return pytest.importorskip("torch_geometric.nn")
