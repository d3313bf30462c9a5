"""Random views: replicas of one step, whose predictions are pulled together, for any model."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from support.each_kind import of_each_kind
from support.fitting import fitting
from support.killing import Killed, killed_after_a_save
from torch.func import functional_call

from gcnii.data import load
from gcnii.data.converters.join import join
from gcnii.dropout import LEVELS, drop_edges, drop_nodes, epoch_key, kept_of, keyed, view_keys
from gcnii.errors import InputError
from gcnii.graph import Graph, Split
from gcnii.nn import MODELS
from gcnii.propagation import to_matrix
from gcnii.results.fit import fit
from gcnii.targets.objective import Objective
from gcnii.train.group import ReplicaGroup
from gcnii.train.plan import batch_key, batched, make_plan
from gcnii.train.replicas import Replicas
from gcnii.train.stopping import Run
from gcnii.train.task import Task

CPU = torch.device("cpu")
PLAN = {"layers": 3, "width": 8, "dropout": 0.4, "precision": "float64"}
SMALL = PLAN | {"epochs": 5, "device": "cpu"}
GRAND = {"views": 3, "drop_node": 0.3, "consistency": 0.8, "sharpen": 0.4, "warm_up": 4}
ALONE = {"drop_node": [0.2, 0.5, 0.3], "consistency": [1.0, 0.0, 0.4]}
ALONE |= {"sharpen": [0.5, 0.2, 0.9], "warm_up": [0, 3, 2], "dropout": [0.0, 0.5, 0.3]}


@pytest.fixture(scope="module")
def graph():
    return load("csbm", n=60, degree=6, signal=3.0, labels_per_class=10)


@pytest.fixture(scope="module")
def many():
    """A graph with several labels per node, and sparse features."""
    random = np.random.default_rng(0)
    X = sp.random_array((40, 12), density=0.3, rng=random, format="csr")
    y = (random.random((40, 3)) < 0.4).astype(int)
    roles = ("train", "val", "test")
    split = Split(**{role: np.arange(40) % 4 == i for i, role in enumerate(roles)})
    return Graph(X=X, edges=random.integers(0, 40, (2, 120)), y=y, splits=[split])


def curves(result):
    return np.array([run.curve for run in result.runs])


def literal_step(task, plan, seed, epoch):
    """The gradients of one step, view by view, without vmap."""
    recipe, batch = plan.recipe, next(task.batches(0).epoch(seed, epoch))
    model = plan.build(task.graph.d, task.graph.k, seed).train()
    weights = dict(model.named_parameters())
    objective = Objective.of(task.graph, [0], CPU)
    several, scores = task.graph.multilabel, []
    for key in view_keys(epoch_key(torch.tensor([seed]), epoch), recipe.views):
        with keyed(key):
            kept = kept_of(recipe.drop_edge)
            P = drop_edges(batch.adjacency, kept, "entries") if recipe.drop_edge else batch.P
            X = drop_nodes(batch.X, kept_of(recipe.drop_node))
            scores.append(functional_call(model, weights, (P, X)))
    p = torch.stack([one.sigmoid() if several else one.softmax(-1) for one in scores])
    mean, power = p.mean(0).detach(), 1 / recipe.sharpen
    other = (1 - mean) ** power if several else (mean**power).sum(-1, keepdim=True) - mean**power
    target = mean**power / (mean**power + other)
    supervised = sum(objective.loss(one[None], "train")[0] for one in scores) / len(scores)
    weight = recipe.consistency * (min(1, epoch / recipe.warm_up) if recipe.warm_up else 1)
    total = supervised + weight * (p - target).square().sum(-1).mean()
    return dict(zip(weights, torch.autograd.grad(total, list(weights.values())), strict=True))


@pytest.mark.parametrize("which", ["graph", "many"])
@pytest.mark.parametrize("change", [{}, {"drop_edge": 0.4}, {"warm_up": 0, "views": 1}])
def test_the_gradient_is_that_of_a_loop_over_the_views(which, change, request):
    graph = request.getfixturevalue(which)
    plan = make_plan("gcnii", PLAN | GRAND | change, graph)
    task = Task.of(graph, plan, CPU)
    replicas = Replicas([plan], graph.d, graph.k, [5], CPU)
    (batch,) = task.batches(0).epoch(5, 2)
    epoch = torch.tensor([[2]], dtype=torch.int32)
    replicas.differentiate(batch, Objective.of(graph, [0], CPU), epoch)
    expected = literal_step(task, plan, 5, 2)
    found = [flat.grad for flat in replicas.flats]
    for name, gradient in replicas.layout.named(found).items():
        torch.testing.assert_close(gradient[0], expected[name], rtol=1e-9, atol=1e-12)


def test_settings_at_which_nothing_happens_change_no_bit(graph):
    plain = fit(graph, **SMALL, seeds=range(2))
    off = {"views": 1, "drop_node": 0.0, "consistency": 0.0, "sharpen": 0.1, "warm_up": 9}
    neutral = fit(graph, **SMALL, seeds=range(2), **off)
    assert (curves(plain) == curves(neutral)).all()
    assert all(torch.equal(neutral.weights[name], one) for name, one in plain.weights.items())


def test_the_first_view_has_the_masks_of_a_step_without_views(graph):
    task = Task.of(graph, make_plan("gcnii", PLAN, graph), CPU)
    (batch,) = task.batches(0).epoch(0, 0)
    scores = []
    for views in (1, 3):
        plan = make_plan("gcnii", PLAN | {"views": views, "drop_node": 0.3}, graph)
        scores.append(Replicas([plan] * 2, graph.d, graph.k, [0, 1], CPU).scores(batch, 4))
    torch.testing.assert_close(scores[1][::3], scores[0], rtol=1e-12, atol=1e-12)
    assert not torch.allclose(scores[1][1], scores[1][0])


def test_no_view_shares_a_key_with_another_or_with_a_step_or_a_call():
    pass_key = epoch_key(torch.arange(3), 7)
    keys = view_keys(pass_key, 4)
    assert torch.equal(keys[::4], pass_key)
    assert torch.equal(view_keys(pass_key[1:2], 4), keys[4:8])  # whoever is beside it
    assert torch.equal(view_keys(pass_key, 2)[1::2], keys[1::4])  # however many follow
    others = [epoch_key(torch.arange(3), 7, step) for step in range(50)]
    with keyed(pass_key[0]) as sequence:
        others.append(sequence.take(200))
    every = [tuple(key) for key in torch.cat([keys, *others[1:]]).tolist()]
    steps_as_calls = 49  # the key of step s is that of call s, which is no key of a pass
    assert len(set(every)) == len(every) - steps_as_calls


def test_whole_rows_are_dropped_and_the_mean_stays():
    X = torch.rand(4000, 5, dtype=torch.float64) + 0.1
    sparse = to_matrix(sp.csr_array(X.numpy()), torch.float64)
    with keyed(epoch_key(torch.tensor([0]), 0)[0]):
        dense = drop_nodes(X, kept_of(0.3))
    with keyed(epoch_key(torch.tensor([0]), 0)[0]):
        same = drop_nodes(sparse, torch.tensor(kept_of(0.3), dtype=torch.int32))
    torch.testing.assert_close(same.to_dense(), dense)
    lost = (dense == 0).all(1)
    assert lost.double().mean() == pytest.approx(0.3, abs=0.03)
    torch.testing.assert_close(dense[~lost], X[~lost] * (LEVELS / kept_of(0.3)))


def test_where_no_node_is_dropped_no_mask_is_drawn():
    X = torch.ones(4, 2)
    with keyed(epoch_key(torch.tensor([0]), 0)[0]) as sequence:
        assert drop_nodes(X, LEVELS) is X
    assert sequence.used == 0


@of_each_kind("model", others=pytest.mark.long)
def test_every_model_trains_alike_alone_and_beside_other_settings(model, graph):
    settings = fitting(model, SMALL | {"batches": "full", "layers": 2, "epochs": 3})
    settings |= {"views": 2, "monitor": "val_loss", "history": "none"}
    lists = {name: values for name, values in ALONE.items() if name in batched(model)}
    together = fit(graph, model, seeds=[0, 1], batch=6, **settings | lists)
    for i in range(3):
        one = {name: values[i] for name, values in lists.items()}
        single = fit(graph, model, seeds=[1], **settings | one)
        mine = [run.curve for run in together.at(i).runs if run.seed == 1]
        np.testing.assert_allclose(mine, curves(single), rtol=1e-7)


def test_runs_that_join_later_warm_up_by_their_own_clock(graph):
    limits = {"epochs": [3, 12, 6, 9, 5], "consistency": [0.0, 0.5, 1.0, 2.0, 3.0]}
    settings = SMALL | {"views": 2, "drop_node": 0.2, "warm_up": 6, "seeds": [0, 1]}
    found = fit(graph, batch=4, **settings | limits)
    for i in range(5):
        single = fit(graph, **settings | {name: values[i] for name, values in limits.items()})
        np.testing.assert_allclose(curves(found.at(i)), curves(single), rtol=1e-9)


def test_activations_are_recomputed_with_the_views_own_masks(graph):
    kept, again = (fit(graph, **SMALL | GRAND, memory=how) for how in ("keep", "recompute"))
    np.testing.assert_allclose(curves(kept), curves(again), rtol=1e-9)


KINDS = {
    "clusters": ("gcnii", {"batches": "clusters", "clusters": 4, "batch_size": 2}),
    "parts": ("gcnii-ppi", {"batches": "parts"}),
    "neighbours": ("graphsage-mean", {"batches": "neighbours", "fanout": (2, 3), "batch_size": 7}),
    "full": ("gcnii", {"drop_edge": 0.3}),
}


@pytest.mark.usefixtures("save_every_epoch")
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_with_views_resumes_to_the_same_numbers(kind, graph, tmp_path):
    model, own = KINDS[kind]
    graph = join([graph] * 4, ["train", "train", "val", "test"]) if kind == "parts" else graph
    settings = fitting(model, SMALL | GRAND) | own
    whole = fit(graph, model, **settings)
    settings |= {"checkpoint": tmp_path / "checkpoint.safetensors"}
    for _ in range(3):
        with killed_after_a_save(), pytest.raises(Killed):
            fit(graph, model, **settings)
    assert (curves(fit(graph, model, **settings)) == curves(whole)).all()


def test_the_curve_holds_the_supervised_loss(graph):
    first = [curves(fit(graph, **SMALL, views=2, consistency=c))[0] for c in (0.0, 50.0)]
    assert first[0][0, 0] == first[1][0, 0]  # before the first step
    assert first[0][1, 0] != first[1][1, 0]


def test_a_noisy_monitor_reads_the_first_view(graph):
    settings = SMALL | {"monitor": "noisy_loss", "lr": 1e-12}
    one, three = (curves(fit(graph, **settings, views=views))[0] for views in (1, 3))
    np.testing.assert_allclose(one[:, 1], three[:, 1], rtol=1e-6)
    assert not np.allclose(one[:, 0], three[:, 0], rtol=1e-6)


def test_views_change_shapes_and_the_other_settings_are_numbers(graph):
    base = make_plan("gcnii", {"views": 2, "drop_node": 0.1}, graph)
    same = {"views": 2, "drop_node": 0.2, "consistency": 1.0, "sharpen": 0.1, "warm_up": 5}
    assert batch_key(make_plan("gcnii", same, graph)) == batch_key(base)
    for change in ({"views": 3, "drop_node": 0.1}, {"views": 2}):
        assert batch_key(make_plan("gcnii", change, graph)) != batch_key(base)


@pytest.mark.parametrize(
    ("model", "wrong", "words"),
    [
        ("gcnii", {"drop_node": [0.0, 0.5]}, "drop_node must be 0 in all settings"),
        ("gcnii", {"views": 0}, "views must be an integer ≥ 1, got 0"),
        ("gcnii", {"drop_node": 1.0}, r"drop_node must be a number in \[0, 1\), got 1.0"),
        ("gcnii", {"sharpen": 0.0}, r"sharpen must be a number in \(0, 1\], got 0.0"),
        ("gcnii", {"views": [1, 2]}, "views must be the same in one fit"),
        (
            "vr-gcn-cvd",
            {"views": 2, "batches": "neighbours", "history": "cv"},
            "history cv remembers one activation of each node, got 2 views; set history to none",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(model, wrong, words, graph):
    with pytest.raises(InputError, match=words):
        fit(graph, model, **wrong)


def test_shares_so_near_0_or_1_that_masks_cannot_tell_still_train(graph):
    for share in (1e-7, 1 - 1e-7):
        assert np.isfinite(curves(fit(graph, **SMALL | GRAND | {"drop_node": share}))).all()


@pytest.mark.cuda
@pytest.mark.parametrize("model", MODELS)
def test_on_a_gpu_a_step_with_views_is_captured(model, graph):
    wanted = {"layers": 2, "width": 16, "epochs": 40, "patience": 40, "batches": "full"}
    plan = make_plan(model, fitting(model, wanted) | GRAND, graph)
    group = ReplicaGroup(Task.of(graph, plan, torch.device("cuda")), [Run(0), Run(1)])
    while group.running:  # few epochs at a time, until kernels are compiled
        group.advance()
    assert group.captured.replay, group.captured.why_not


@pytest.mark.cuda
def test_on_a_gpu_views_train_as_on_a_cpu(graph, many):
    settings = {"layers": 3, "width": 16, "epochs": 20, "patience": 20, "seeds": range(2)}
    lists = {"consistency": [0.5, 1.0], "drop_node": [0.2, 0.4], "warm_up": [0, 10]}
    for one in (graph, many):
        for extra in ({}, lists):
            how = settings | GRAND | {"drop_edge": 0.2} | extra
            on_gpu, on_cpu = (fit(one, device=device, **how) for device in ("cuda", "cpu"))
            np.testing.assert_allclose(
                curves(on_gpu)[:, :8, :2], curves(on_cpu)[:, :8, :2], rtol=2e-3
            )
