"""Every model that gathers over edges of several types, against its equation with a P a layer."""

import numpy as np
import pytest
import torch
from support.exact import exact_features, exact_matrix
from support.literal import LITERAL
from support.small_models import plan

from gcnii.graph import Graph
from gcnii.nn import MODELS

N, TYPES = 20, 3
ABLE = [name for name in MODELS if MODELS[name].uses_types and MODELS[name].card.uses_graph]


class EachLayer:
    """A dense P that is another one in every layer: for every H that it is multiplied by."""

    def __init__(self, each, seen=None, share=1.0):
        self.each, self.seen, self.share = each, [] if seen is None else seen, share

    def _at(self, H):
        if not any(H is one for one in self.seen):
            self.seen.append(H)
        return self.each[[H is one for one in self.seen].index(True)]

    def __matmul__(self, H):
        return self.share * (self._at(H) @ H)

    def __rmul__(self, share):
        return EachLayer(self.each, self.seen, share)

    def __iter__(self):  # node by node, once a layer
        return iter(self._at(object()))


def typed(directed):
    """The last node has no edge, and the one before it none of the first type."""
    random = np.random.default_rng(0)
    edges, kinds = random.integers(0, N - 1, (2, 3 * N)), random.integers(0, TYPES, 3 * N)
    kinds[(edges == N - 2).any(0) & (kinds == 0)] = 1
    X = random.normal(size=(N, 4))
    return Graph(X=X, edges=edges, edge_types=kinds, y=np.arange(N) % 3, directed=directed)


def normalised(A, norm):
    """P of one type, in full: symmetric over A + I, or the mean of the neighbours."""
    if norm == "mean":
        return A / np.maximum(A.sum(1, keepdims=True), 1)
    looped = A + np.eye(len(A))
    degree = looped.sum(1)
    return looped / np.sqrt(np.outer(degree, degree))


def mixed(graph, weights, norm):
    """Node by node: the mean of the types that it has links of, with their shares."""
    shares = np.exp(weights) / np.exp(weights).sum()
    each = np.zeros((TYPES, N, N))
    each[graph.edge_types, graph.edges[0], graph.edges[1]] = 1
    if not graph.directed:
        each = np.maximum(each, each.transpose(0, 2, 1))
    P = np.zeros((N, N))
    for i in range(N):
        has = [t for t in range(TYPES) if each[t, i].any()] or range(TYPES)
        P[i] = sum(shares[t] * normalised(each[t], norm)[i] for t in has) / shares[has].sum()
    return P


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ABLE)
def test_scores_are_those_of_the_equation_with_shares_that_each_layer_has(name, directed):
    graph, random = typed(directed), np.random.default_rng(1)
    how = plan(name)
    model = how.build(graph.d, graph.k).over_types(TYPES).double().eval()
    given = {key for key, _ in model.named_parameters() if key.endswith(".types")}
    weights = {key: random.normal(size=TYPES) for key in sorted(given)}
    model.load_state_dict({key: torch.tensor(one) for key, one in weights.items()}, strict=False)
    P = exact_matrix(graph, norm=how.recipe.norm)
    known = {key: value.detach().numpy() for key, value in model.state_dict().items()}
    each = [mixed(graph, known[f"convs.{l}.types"], how.recipe.norm) for l in range(len(weights))]
    expected = LITERAL[name](known.__getitem__, EachLayer(each), graph.X, **how.model_settings)
    found = model(P, exact_features(graph)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_the_product_first_of_gcnii_plus_has_shares_of_its_own():
    graph = typed(directed=False)
    how = plan("gcnii-plus", product_first=True)
    model = how.build(graph.d, graph.k).over_types(TYPES).double().eval()
    model.dense["product"].types.data = torch.tensor([1.0, -1, 0.5]).double()
    known = {key: value.detach().numpy() for key, value in model.state_dict().items()}
    names = ["dense.product.types", *(f"convs.{l}.types" for l in range(5))]
    P = EachLayer([mixed(graph, known[one], "symmetric") for one in names])
    expected = LITERAL["gcnii-plus"](known.__getitem__, P, graph.X, **how.model_settings)
    found = model(exact_matrix(graph), exact_features(graph)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
