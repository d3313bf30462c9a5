"""GCNII+: GCNII with all options off, and each option as its equation says."""

from itertools import product

import numpy as np
import pytest
import torch
from support.literal import LITERAL
from support.small_models import build, dense, inputs, plan, web

import gcnii
from gcnii.analysis.states import HiddenStates
from gcnii.dropout import epoch_key, keyed
from gcnii.errors import InputError
from gcnii.inference.attribution import BestRun, ExplainedScore

OPTIONS = {
    "product_first": (False, True),
    "row_norm": ("none", "layer"),
    "head": ("last", "features"),
    "residual": (False, True),
}
ALL = [dict(zip(OPTIONS, values, strict=True)) for values in product(*OPTIONS.values())]
SHAPE = {"layers": 5, "width": 8, "alpha": 0.2, "lam": 0.7, "dropout": 0.4}


@pytest.fixture
def graph():
    return gcnii.load("csbm", n=60, labels_per_class=5)


def scores(model, graph, seed=3):
    """In training mode, with the masks of this seed."""
    with keyed(epoch_key(torch.tensor([seed]), 2)[0]):
        return model.train()(*inputs(graph))


@pytest.mark.parametrize("options", ALL, ids=lambda one: "-".join(map(str, one.values())))
def test_every_combination_of_options_is_its_equation(options):
    graph = web(sparse=True)
    model = build("gcnii-plus", graph, **options)
    P, X = inputs(graph)
    weights = {key: value.detach().numpy() for key, value in model.state_dict().items()}
    settings = plan("gcnii-plus", **options).model_settings
    expected = LITERAL["gcnii-plus"](weights.__getitem__, dense(P), graph.X.toarray(), **settings)
    np.testing.assert_allclose(model(P, X).detach().numpy(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("recomputes", [False, True])
def test_with_all_options_off_it_is_gcnii_to_the_last_bit(recomputes):
    graph = web()
    ours, theirs = (
        build("gcnii-plus", graph, input_dropout=0.4, **SHAPE),
        build("gcnii", graph, **SHAPE),
    )
    for model in (ours, theirs):
        model.recomputes = recomputes
    one, other = scores(ours, graph), scores(theirs, graph)
    assert torch.equal(one, other)
    one.square().sum().backward()
    other.square().sum().backward()
    found = dict(theirs.named_parameters())
    assert found.keys() == dict(ours.named_parameters()).keys()
    for name, weight in ours.named_parameters():
        assert torch.equal(weight, found[name])
        assert torch.equal(weight.grad, found[name].grad)


def test_a_training_with_all_options_off_is_gcnii_s(graph):
    how = {"layers": 4, "width": 8, "epochs": 6, "seeds": range(2), "verbose": False}
    off = {"product_first": False, "row_norm": "none", "head": "last", "residual": False}
    same = {"alpha": 0.1, "lam": 0.5, "lr": 0.02, "loops": "keep"}
    one = gcnii.fit(graph, "gcnii-plus", dropout=0.3, input_dropout=0.3, **off, **same, **how)
    settings = {
        name: one.plan.settings[name]
        for name in (
            "lr",
            "decay_conv",
            "decay_dense",
            "alpha",
            "lam",
            "scale",
            "monitor",
            "patience",
        )
    }
    other = gcnii.fit(graph, "gcnii", dropout=0.3, **settings, **how)
    assert [run.curve for run in one.runs] == [run.curve for run in other.runs]


@pytest.mark.parametrize("options", ALL[1::7], ids=lambda one: "-".join(map(str, one.values())))
def test_recomputed_activations_give_the_same_gradients(options):
    graph = web()
    kept, again = (build("gcnii-plus", graph, **SHAPE, **options) for _ in range(2))
    again.recomputes = True
    for model in (kept, again):
        scores(model, graph).square().sum().backward()
    for (name, one), other in zip(kept.named_parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, msg=name)


@pytest.mark.parametrize("options", ALL[3::11], ids=lambda one: "-".join(map(str, one.values())))
def test_a_replica_among_other_settings_is_the_same_run_as_alone(options, graph):
    how = {"layers": 3, "width": 8, "epochs": 5, "precision": "float64", "verbose": False}
    rates = {"dropout": [0.2, 0.5], "input_dropout": [0.4, 0.1], "alpha": [0.1, 0.6]}
    together = gcnii.fit(graph, "gcnii-plus", seeds=[0, 1], batch=4, **how, **options, **rates)
    for setting in range(2):
        own = {name: values[setting] for name, values in rates.items()}
        single = gcnii.fit(graph, "gcnii-plus", seeds=[0, 1], **how, **options, **own)
        curves = [run.curve for run in single.runs]
        found = [run.curve for run in together.at(setting).runs]
        np.testing.assert_allclose(found, curves, rtol=1e-7)


@pytest.mark.parametrize("row_norm", ["none", "layer"])
@pytest.mark.parametrize("head", ["last", "features"])
def test_its_scores_are_explained_with_the_deviations_of_rows_as_they_are(head, row_norm, graph):
    options = {"head": head, "row_norm": row_norm, "product_first": True, "residual": True}
    how = {"layers": 3, "width": 8, "epochs": 5, "precision": "float64", "verbose": False}
    network = BestRun.of(gcnii.fit(graph, "gcnii-plus", **how, **options), graph, "cpu")
    found = network.shares(ExplainedScore(4, 1))
    assert found.score == pytest.approx(network.scores()[4, 1].item())
    assert found.nodes.sum() == pytest.approx(found.features.sum())
    assert abs(found.residual) <= 1e-10 * found.largest
    assert np.abs(found.nodes).max() > 1e-3 * found.largest


def test_x_has_a_dropout_of_its_own():
    graph = web()
    none = build("gcnii-plus", graph, dropout=0.0, input_dropout=0.0)
    torch.testing.assert_close(scores(none, graph), none.eval()(*inputs(graph)))
    inputs_only = build("gcnii-plus", graph, dropout=0.0, input_dropout=0.5)
    assert not torch.allclose(scores(inputs_only, graph), scores(inputs_only, graph, seed=4))


@pytest.mark.parametrize("options", ALL[::3], ids=lambda one: "-".join(map(str, one.values())))
def test_the_doctor_sees_h0_and_every_layer_after_its_nonlinearity(options):
    graph = web()
    model = build("gcnii-plus", graph, **options)
    with HiddenStates(model) as states:
        model(*inputs(graph))
    names, layers = zip(*states.layers, strict=True)
    assert names == ("input", *(f"convs.{l}" for l in range(5)))
    for H in layers:
        assert H.shape == (graph.n, 8)
        assert H.min() >= 0  # H0, and not what P̃ multiplies before it


@pytest.mark.parametrize(("name", "value"), [("row_norm", "batch"), ("head", "first")])
def test_an_unknown_option_is_refused(name, value, graph):
    with pytest.raises(InputError, match=f"{name} must be one of"):
        gcnii.fit(graph, "gcnii-plus", **{name: value})
