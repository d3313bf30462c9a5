"""Small graphs, and every model in the registry at a size that fits them."""

import numpy as np
import scipy.sparse as sp
import torch

from gcnii.graph import Graph
from gcnii.nn import MODELS
from gcnii.propagation import RelationalMatrix
from gcnii.train.plan import make_plan
from gcnii.train.task import make_adjacency
from support.exact import exact_features, exact_matrix
from support.fitting import fitting


def web(n=30, d=6, k=3, sparse=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    edges = rng.integers(0, n, (2, 3 * n))
    return Graph(X=sp.csr_array(X) if sparse else X, edges=edges, y=np.arange(n) % k, directed=True)


def inputs(graph, name=None):
    """P and X; with the name of a model that needs a geometry, P has one."""
    if name and "geometry" in MODELS[name].card.recipe:
        return make_adjacency(graph, plan(name)).whole, exact_features(graph)
    return exact_matrix(graph), exact_features(graph)


def dense(P):
    """P as the literal versions take it: (n, n); with the division of each entry if P has any."""
    matrix = P.to_dense().numpy()
    if not isinstance(P, RelationalMatrix):
        return matrix
    division = np.full(matrix.shape, -1)
    division[P.pattern.row_of, P.pattern.columns] = P.layout.relation
    return matrix, division


def build(name, graph, **settings):
    return plan(name, **settings).build(graph.d, graph.k).eval()


def plan(name, **settings):
    return make_plan(
        name, fitting(name, {"precision": "float64", "layers": 5, "width": 8} | settings)
    )


def both_ways(graph):
    """An undirected graph's edges as PyG has them, in both directions."""
    edges = torch.tensor(graph.edges)
    return torch.cat([edges, edges.flip(0)], 1).unique(dim=1)
