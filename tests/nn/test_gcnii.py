"""What the paper says of GCNII, and that it equals PyG's version."""

import pytest
import torch
from support.small_models import both_ways, build, inputs, web
from torch.nn.functional import relu

from gcnii.nn import GCNII, GCNIIStar, GCNIIStarPrinted
from gcnii.nn.gcnii import GCNIIConv, betas


def test_layer_is_equation_5():
    P, _ = inputs(web())
    H, H0, I = torch.randn(30, 8).double(), torch.randn(30, 8).double(), torch.eye(8).double()
    conv = GCNIIConv(8, alpha=0.2, beta=0.3).double()
    literal = (0.8 * P.to_dense() @ H + 0.2 * H0) @ (0.7 * I + 0.3 * conv.W)
    torch.testing.assert_close(conv(P, H, H0), literal)


def test_beta_falls_with_depth_from_log_of_lambda_plus_1():
    assert betas(64, 0.5)[0] == pytest.approx(0.4055, abs=1e-4)
    assert betas(64, 0.5)[63] == pytest.approx(0.0078, abs=1e-4)
    assert betas(9, 1.0)[8] == pytest.approx(0.1054, abs=1e-4)


@pytest.mark.parametrize(
    ("d", "k", "layers", "width", "gcnii", "star"),
    [
        (1433, 7, 64, 64, 354_375, 616_519),
        (3703, 6, 32, 256, 3_046_918, 5_144_070),
        (500, 3, 16, 256, 1_177_603, 2_226_179),
    ],
)
def test_the_paper_s_networks_have_as_many_weights_as_the_authors(d, k, layers, width, gcnii, star):
    for model, count in ((GCNII, gcnii), (GCNIIStar, star), (GCNIIStarPrinted, star)):
        assert sum(p.numel() for p in model(d, k, layers=layers, width=width).parameters()) == count


def test_without_weights_gcnii_is_appnp_on_h0():  # section 3: small β "essentially simulates APPNP"
    graph = web()
    model = build("gcnii", graph, layers=10, lam=0.0, alpha=0.1)
    P, X = inputs(graph)
    Z = Z0 = relu(model.dense["encode"](X))
    for _ in range(10):
        Z = 0.9 * (P @ Z) + 0.1 * Z0  # equation 3
    torch.testing.assert_close(model(P, X), model.dense["decode"](Z))


def test_without_residual_and_identity_gcnii_is_gcn():
    graph = web()
    deep, plain = build("gcnii", graph, alpha=0.0), build("deep-gcn", graph)
    for conv in deep.convs:
        conv.beta = 1.0
    plain.load_state_dict(deep.state_dict())
    torch.testing.assert_close(deep(*inputs(graph)), plain(*inputs(graph)))


def test_each_arm_of_the_ablation_is_gcnii_with_the_other_technique_switched_off():
    graph = web()
    for name, alpha in (("gcn-initial", 0.2), ("gcn-identity", 0.0)):
        arm, whole = build(name, graph, alpha=0.2), build("gcnii", graph, alpha=alpha)
        for conv in whole.convs if name == "gcn-initial" else ():
            conv.beta = 1.0
        whole.load_state_dict(arm.state_dict())
        torch.testing.assert_close(arm(*inputs(graph)), whole(*inputs(graph)))


def test_with_alpha_1_the_graph_does_not_matter():
    graph = web()
    model = build("gcnii", graph, alpha=1.0)
    P, X = inputs(graph)
    Q, _ = inputs(web(seed=9))
    torch.testing.assert_close(model(P, X), model(Q, X))


def test_gcnii_star_as_printed_with_equal_weights_is_gcnii_and_as_coded_is_not():
    graph = web()
    gcnii, printed, coded = (
        build(name, graph) for name in ("gcnii", "gcnii-star-printed", "gcnii-star")
    )
    for model in (printed, coded):
        model.dense.load_state_dict(gcnii.dense.state_dict())
        for conv, own in zip(model.convs, gcnii.convs, strict=True):
            conv.W1.data, conv.W2.data = own.W.data, own.W.data
    expected = gcnii(*inputs(graph))
    torch.testing.assert_close(printed(*inputs(graph)), expected)
    assert (coded(*inputs(graph)) - expected).abs().max() > 1e-3


def test_gcnii_star_as_coded_is_as_printed_with_scaled_weights():
    graph = web()
    printed = build("gcnii-star-printed", graph, alpha=0.1)
    coded = build("gcnii-star", graph, alpha=0.1)
    coded.load_state_dict(printed.state_dict())
    for conv in coded.convs:
        conv.W1.data, conv.W2.data = 0.9 * conv.W1.data, 0.1 * conv.W2.data
    torch.testing.assert_close(printed(*inputs(graph)), coded(*inputs(graph)))


def test_the_residual_is_h0_before_dropout():
    graph = web()
    model = build("gcnii", graph, alpha=1.0, lam=0.0, layers=1, dropout=0.9).train()
    seen = []
    model.convs[0].register_forward_hook(
        lambda conv, inputs, output: seen.append((inputs[1], inputs[2], output))
    )
    P, X = inputs(graph)
    model(P, X)
    state, H0, output = seen[0]
    assert (state == 0).sum() > (H0 == 0).sum()
    torch.testing.assert_close(output, H0)


@pytest.mark.parametrize(("name", "shared"), [("gcnii", True), ("gcnii-star-printed", False)])
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_scores_equal_pygs_gcn2conv_stacked_the_same_way(undirected, pyg, name, shared):
    model = build(name, undirected, layers=16, alpha=0.1, lam=0.5)
    P, X = inputs(undirected)
    H = H0 = relu(model.dense["encode"](X))
    for l, conv in enumerate(model.convs, 1):
        layer = pyg.GCN2Conv(8, alpha=0.1, theta=0.5, layer=l, shared_weights=shared).double()
        layer.weight1.data = conv.W.data if shared else conv.W1.data
        if not shared:
            layer.weight2.data = conv.W2.data
        H = relu(layer(H, H0, both_ways(undirected)))
    torch.testing.assert_close(model.dense["decode"](H), model(P, X), rtol=1e-10, atol=1e-10)
