"""The models that GCNII is compared with: they equal PyG's, and some equal each other."""

import torch
from support.small_models import both_ways, build, inputs
from torch.nn.functional import relu


def test_gcn_is_pygs_gcnconv_stacked(undirected, pyg):
    model = build("gcn", undirected, layers=3)
    _, H = inputs(undirected)
    for l, conv in enumerate(model.convs):
        layer = pyg.GCNConv(*conv.W.shape).double()
        layer.lin.weight.data, layer.bias.data = conv.W.data.T, conv.b.data
        H = layer(relu(H) if l else H, both_ways(undirected))
    torch.testing.assert_close(model(*inputs(undirected)), H, rtol=1e-10, atol=1e-10)


def test_sgc_is_pygs_sgconv(undirected, pyg):
    model = build("sgc", undirected, layers=4)
    layer = pyg.SGConv(undirected.d, undirected.k, K=4).double()
    layer.lin.load_state_dict(model.dense["decode"].state_dict())
    P, X = inputs(undirected)
    torch.testing.assert_close(model(P, X), layer(X, both_ways(undirected)), rtol=1e-10, atol=1e-10)


def test_appnp_is_pygs_appnp_behind_an_mlp(undirected, pyg):
    model, mlp = build("appnp", undirected, layers=7, alpha=0.2), build("mlp", undirected)
    mlp.load_state_dict(model.state_dict())
    P, X = inputs(undirected)
    expected = pyg.APPNP(K=7, alpha=0.2)(mlp(P, X), both_ways(undirected))
    torch.testing.assert_close(model(P, X), expected, rtol=1e-10, atol=1e-10)


def test_sgc_is_gcn_without_activations(undirected, monkeypatch):
    monkeypatch.setattr("gcnii.nn.gcn.relu", lambda H: H)
    sgc, gcn = build("sgc", undirected, layers=3), build("gcn", undirected, layers=3)
    W = [conv.W.data for conv in gcn.convs]
    sgc.dense["decode"].weight.data = (W[0] @ W[1] @ W[2]).T
    sgc.dense["decode"].bias.data = gcn.convs[-1].b.data
    torch.testing.assert_close(sgc(*inputs(undirected)), gcn(*inputs(undirected)))


def test_appnp_converges_to_ppnp(undirected):
    far = build("appnp", undirected, layers=200, alpha=0.1)
    limit = build("ppnp", undirected, alpha=0.1)
    limit.load_state_dict(far.state_dict())
    torch.testing.assert_close(far(*inputs(undirected)), limit(*inputs(undirected)))
