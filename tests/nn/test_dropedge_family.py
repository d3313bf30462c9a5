"""DropEdge's GCN, JKNet and IncepGCN, and Xu et al.'s JKNet: among each other, and against PyG."""

import numpy as np
import pytest
import torch
from support import knobs
from support.literal import LITERAL
from support.small_models import both_ways, build, inputs, plan, web

from gcnii import data
from gcnii.dropout import Dropout, epoch_key, keyed, numbered_keys
from gcnii.nn import dropedge
from gcnii.nn.dropedge import grouped
from gcnii.results.fit import fit

FAMILY = ("dropedge-gcn", "jknet", "incep")
SMALL = {"layers": 6, "width": 8, "dropout": 0.3, "epochs": 6}
SMALL |= {"device": "cpu", "precision": "float64"}
every_network = pytest.mark.parametrize("name", FAMILY)


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=60, degree=6, signal=3.0, labels_per_class=10)


@pytest.fixture
def many_groups(monkeypatch):
    monkeypatch.setattr(knobs.KEPT_ACTIVATIONS, 1)


def curves(result):
    return np.array([run.curve for run in result.runs])


def gradients(model, graph):
    with keyed(epoch_key(torch.tensor([0]), 0)[0]):
        scores = model.train()(*inputs(graph))
    return scores, torch.autograd.grad(scores.square().mean(), list(model.parameters()))


@every_network
@pytest.mark.parametrize(
    "options",
    [{"self_weight": True}, {"batch_norm": True}, {"self_weight": True, "batch_norm": True}],
)
def test_the_options_of_the_convolution_are_those_of_the_equation(name, options):
    web_ = web(sparse=True)
    model = build(name, web_, **options)
    # scale and shift start at one and zero, which would hide a mistake
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn(
            parameter.shape, generator=torch.Generator().manual_seed(0)
        )
    P, X = inputs(web_)
    weights = {key: value.detach().numpy() for key, value in model.state_dict().items()}
    settings = plan(name, **options).model_settings
    expected = LITERAL[name](
        weights.__getitem__, P.to_dense().numpy(), web_.X.toarray(), **settings
    )
    np.testing.assert_allclose(model(P, X).detach().numpy(), expected, rtol=1e-10, atol=1e-11)


def test_batch_norm_leaves_every_unit_at_mean_0_and_variance_1():
    model = build("dropedge-gcn", web(), batch_norm=True)
    Z = model(*inputs(web()))
    torch.testing.assert_close(Z.mean(0), torch.zeros(3).double())
    torch.testing.assert_close(Z.var(0, correction=0), torch.ones(3).double(), rtol=1e-3, atol=0)


@every_network
def test_weights_start_uniform_within_one_over_the_root_of_the_output_width(name):
    model = build(name, web(k=4), width=64, self_weight=True)
    for key, parameter in model.named_parameters():
        bound = parameter.shape[-1] ** -0.5
        assert 0.6 * bound < parameter.abs().max() <= bound, key


@every_network
def test_features_are_not_dropped_and_every_hidden_layer_is(name, monkeypatch):
    model, seen = build(name, web(), dropout=0.5).train(), []
    model.drop.register_forward_hook(lambda drop, given, dropped: seen.append(given[0].shape))
    each = Dropout.each
    monkeypatch.setattr(
        Dropout, "each", lambda drop, H, keys: seen.append(H.shape) or each(drop, H, keys)
    )
    model(*inputs(web()))
    assert (30, 6) not in seen
    assert len(seen) == 4


def test_the_branches_of_incep_have_masks_of_their_own():
    drop, numbers = Dropout(0.5), torch.arange(6, dtype=torch.int32)
    keys = numbered_keys(torch.tensor([3, 4], dtype=torch.int32), numbers)
    whole, part = drop.each(torch.ones(40, 6, 8), keys), drop.each(torch.ones(40, 2, 8), keys[3:5])
    assert torch.equal(whole[:, 3:5], part)
    assert (whole != 0).float().mean() == pytest.approx(0.5, abs=0.05)
    assert not torch.equal(whole[:, 0], whole[:, 1])


@every_network
def test_a_network_has_a_first_and_a_last_convolution(name):
    with pytest.raises(
        ValueError, match="the first and the last convolution and must be at least 2, got 1"
    ):
        build(name, web(), layers=1)


@pytest.mark.parametrize("name", ["jknet", "incep"])
def test_with_two_layers_jknet_and_incep_are_gcn(name):
    network, gcn = build(name, web(), layers=2), build("dropedge-gcn", web(), layers=2)
    gcn.load_state_dict(network.state_dict())
    assert torch.equal(network(*inputs(web())), gcn(*inputs(web())))


def test_incep_with_one_branch_is_jknet_with_one_inner_layer():
    branch, chain = build("incep", web(), layers=3), build("jknet", web(), layers=3)
    weights = branch.state_dict()
    weights = {
        key: value[0] if key.startswith("convs.1.") else value for key, value in weights.items()
    }
    weights["convs.2.W"] = weights["convs.2.W"].roll(8, 0)  # [x0, b_1] and [x_1, x0]
    chain.load_state_dict(weights)
    torch.testing.assert_close(branch(*inputs(web())), chain(*inputs(web())))


def test_jknet_that_reads_its_last_layer_alone_is_gcn():
    jknet, gcn = build("jknet", web()), build("dropedge-gcn", web())
    jknet.convs[-1].W.data[8:] = 0
    weights = jknet.state_dict()
    gcn.load_state_dict(weights | {"convs.4.W": weights["convs.4.W"][:8]})
    torch.testing.assert_close(jknet(*inputs(web())), gcn(*inputs(web())))


def test_the_longest_branch_of_incep_is_gcn():
    network, gcn = build("incep", web()), build("dropedge-gcn", web())
    network.convs[-1].W.data[:-8] = 0
    weights = {
        key: value[-1] if key.split(".")[1] in "123" else value
        for key, value in network.state_dict().items()
    }
    gcn.load_state_dict(weights | {"convs.4.W": weights["convs.4.W"][-8:]})
    torch.testing.assert_close(network(*inputs(web())), gcn(*inputs(web())))


def test_incep_of_64_layers_has_1953_convolutions_between_first_and_last():
    model = build("incep", web(), layers=64)
    assert sum(len(conv.W) for conv in model.convs[1:-1]) == 1953


def test_branches_are_grouped_by_their_number_of_convolutions():
    assert grouped(0, 5) == []
    assert grouped(4, 10) == [range(1, 5)]
    assert grouped(5, 5) == [range(1, 3), range(3, 4), range(4, 5), range(5, 6)]
    assert grouped(3, 0) == [range(1, 2), range(2, 3), range(3, 4)]


@pytest.mark.usefixtures("many_groups")
def test_incep_computes_the_same_numbers_twice(monkeypatch):
    model = build("incep", web(), layers=8, dropout=0.4, self_weight=True, batch_norm=True)
    again = gradients(model, web())
    monkeypatch.setattr(dropedge, "recompute", lambda function, *tensors: function(*tensors))
    kept = gradients(model, web())
    assert torch.equal(kept[0], again[0])
    assert all(torch.equal(one, other) for one, other in zip(kept[1], again[1], strict=True))


def test_the_groups_of_incep_change_nothing(monkeypatch):
    model = build("incep", web(), layers=8, dropout=0.4, self_weight=True)
    whole = gradients(model, web())
    monkeypatch.setattr(knobs.KEPT_ACTIVATIONS, 5 * 30 * 8)
    for one, other in zip(whole[1], gradients(model, web())[1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


def test_incep_keeps_far_less_when_it_computes_twice(monkeypatch):
    model, kept = build("incep", web(), layers=18, dropout=0.4).train(), []
    P, X = inputs(web())

    def count():
        seen = {}
        with torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: seen.update({tensor.data_ptr(): tensor.numel()}) or tensor,
            lambda tensor: tensor,
        ):
            scores = model(P, X)  # holds the tensors, so that no address is used twice
        weights = {parameter.data_ptr() for parameter in model.parameters()}
        kept.append(sum(size for address, size in seen.items() if address not in weights))
        return scores

    count()
    monkeypatch.setattr(knobs.KEPT_ACTIVATIONS, 20 * 30 * 8)
    count()
    assert kept[1] < kept[0] / 3


@pytest.mark.usefixtures("many_groups")
def test_incep_trains_the_same_alone_and_batched_with_dropped_links_and_recomputed_branches(graph):
    settings = SMALL | {"epochs": 4, "drop_edge": 0.5, "self_weight": True, "batch_norm": True}
    together, alone = (
        fit(graph, "incep", seeds=range(3), batch=batch, **settings) for batch in (3, 1)
    )
    np.testing.assert_allclose(curves(together), curves(alone), rtol=1e-8)


@pytest.mark.parametrize("name", [*FAMILY, "jknet-max", "jknet-lstm"])
def test_dropping_no_links_changes_nothing_and_dropping_some_does(name, graph):
    none, zero, some = (
        curves(fit(graph, name, **SMALL, **rate))
        for rate in ({}, {"drop_edge": 0.0}, {"drop_edge": 0.5})
    )
    assert (none == zero).all()
    assert (none != some).any()


@pytest.mark.parametrize("mode", ["concat", "max", "lstm"])
def test_xu_et_als_jknet_is_pygs_gcn_with_jumping_knowledge(undirected, pyg, mode):
    ours = build(f"jknet-{mode}", undirected, layers=5)
    jk = "cat" if mode == "concat" else mode
    theirs = pyg.GCN(undirected.d, 8, 5, undirected.k, jk=jk).double()
    for conv, own in zip(theirs.convs, ours.convs, strict=True):
        conv.lin.weight.data, conv.bias.data = own.W.data.T, own.b.data
    theirs.lin.load_state_dict(ours.dense["decode"].state_dict())
    if mode == "lstm":
        attend = ours.dense["attend"]
        for end, lstm in (("", attend.ahead), ("_reverse", attend.back)):
            weights = {"weight_ih": lstm.U.T, "weight_hh": lstm.V.T}
            weights |= {"bias_ih": lstm.b, "bias_hh": 0 * lstm.b}
            for key, weight in weights.items():
                getattr(theirs.jk.lstm, f"{key}_l0{end}").data = weight.data.contiguous()
        theirs.jk.att.weight.data = attend.v.data[None]
    P, X = inputs(undirected)
    expected = theirs.eval()(X, both_ways(undirected))
    torch.testing.assert_close(ours(P, X), expected, rtol=1e-10, atol=1e-10)
