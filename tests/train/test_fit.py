"""The training loop: the authors' protocol, for one replica or many."""

import os
import signal
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from support import knobs
from support.each_kind import of_each_kind
from support.fitting import fitting
from support.killing import Killed, killed_after_a_save

from gcnii import data
from gcnii.errors import GraphError, InputError
from gcnii.graph import Graph
from gcnii.nn import MODELS
from gcnii.results.fit import fit
from gcnii.train import group as loop
from gcnii.train.batches import Batch
from gcnii.train.checkpoint import Checkpoint
from gcnii.train.group import Diverged, ReplicaGroup
from gcnii.train.plan import make_plan
from gcnii.train.presets import presets_of
from gcnii.train.stopping import Run
from gcnii.train.task import Task

SMALL = {"layers": 4, "width": 16, "dropout": 0.3, "epochs": 15, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=120, degree=6, signal=3.0, labels_per_class=10)


def task(graph, model="gcnii", **settings):
    return Task.of(graph, make_plan(model, settings, graph), torch.device("cpu"))


def curves(result):
    return np.array([run.curve for run in result.runs])


@of_each_kind("model")
def test_every_model_learns_and_beats_the_majority_class_clearly(model, graph):
    result = fit(graph, model, **fitting(model, SMALL | {"epochs": 30, "layers": 2}), lr=0.02)
    assert result.test[0] > 0.8  # the majority class is one half
    assert result.runs[0].curve[-1][0] < result.runs[0].curve[0][0]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_seed_trains_the_same_alone_and_in_company(model, graph):
    settings = fitting(model, SMALL | {"epochs": 4})
    together = fit(graph, model, seeds=range(3), batch=3, **settings)
    alone = [fit(graph, model, seeds=[seed], **settings) for seed in range(3)]
    np.testing.assert_allclose(
        curves(together), np.concatenate([curves(one) for one in alone]), rtol=2e-4
    )
    for name, stack in together.weights.items():
        torch.testing.assert_close(
            stack, torch.cat([one.weights[name] for one in alone]), rtol=1e-3, atol=1e-5
        )


def test_the_forward_pass_of_a_seed_is_the_same_in_company_to_the_last_bit(graph):
    work = task(graph, layers=8, width=32)
    together = ReplicaGroup(work, [Run(seed) for seed in range(5)]).replicas.scores(
        Batch.of(work.adjacency, work.X), epoch=3
    )
    alone = [
        ReplicaGroup(work, [Run(seed)]).replicas.scores(Batch.of(work.adjacency, work.X), epoch=3)
        for seed in range(5)
    ]
    assert torch.equal(together, torch.cat(alone))


def test_in_float64_the_company_changes_no_digit_that_matters(graph):
    settings = SMALL | {"precision": "float64"}
    together, alone = (fit(graph, seeds=range(3), batch=batch, **settings) for batch in (3, 1))
    np.testing.assert_allclose(curves(together), curves(alone), rtol=1e-11)


def test_the_same_command_gives_the_same_bits(graph):
    one, two = fit(graph, **SMALL), fit(graph, **SMALL)
    assert (curves(one) == curves(two)).all()


def test_sparse_features_train_as_dense_ones_do_without_dropout(graph):
    import scipy.sparse as sp

    dense = replace(graph, name="mine")  # as the other, no graph of the catalog
    sparse = replace(dense, X=sp.csr_array(graph.X))
    settings = SMALL | {"dropout": 0.0, "precision": "float64", "scale": "none"}
    np.testing.assert_allclose(
        curves(fit(dense, **settings)), curves(fit(sparse, **settings)), rtol=1e-10
    )


def test_sparse_features_train_the_same_alone_and_in_company(graph):
    import scipy.sparse as sp

    sparse = replace(graph, X=sp.csr_array(graph.X * (graph.X > 0.5)))
    settings = SMALL | {"precision": "float64"}
    together, alone = (fit(sparse, seeds=range(3), batch=batch, **settings) for batch in (3, 1))
    np.testing.assert_allclose(curves(together), curves(alone), rtol=1e-10)


def test_a_step_is_adam_with_l2_in_the_gradient_and_two_decays(graph):
    work = task(
        graph, layers=3, width=8, dropout=0.0, precision="float64", decay_conv=0.3, decay_dense=0.1
    )
    model = work.plan.build(graph.d, graph.k, 0)
    adam = torch.optim.Adam(
        [
            {"params": model.convs.parameters(), "weight_decay": 0.3},
            {"params": model.dense.parameters(), "weight_decay": 0.1},
        ],
        lr=0.01,
    )
    group = ReplicaGroup(work, [Run(0)])
    train = torch.tensor(graph.splits[0].train)
    for _ in range(3):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(
            model(work.P, work.X)[train], torch.tensor(graph.labels)[train]
        ).backward()
        adam.step()
        group.advance()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(group.replicas.weights[name][0], parameter.data)


def test_each_replica_stops_by_its_own_patience_and_the_others_go_on(graph):
    settings = SMALL | {"epochs": 200, "patience": 4, "lr": 0.05, "precision": "float64"}
    together, alone = (fit(graph, seeds=range(6), batch=batch, **settings) for batch in (6, 1))
    epochs = [run.epochs for run in together.runs]
    assert len(set(epochs)) > 1
    assert epochs == [run.epochs for run in alone.runs]
    assert all(run.epochs == run.best_epoch + 1 + 4 for run in together.runs)
    np.testing.assert_allclose(together.test, alone.test)


def test_the_weights_returned_are_those_of_the_best_epoch(graph):
    result = fit(graph, seeds=range(3), **SMALL | {"epochs": 60, "patience": 5, "lr": 0.05})
    test = graph.splits[0].test
    weights = {name: w[1:2] for name, w in result.weights.items()}
    one = replace(result, runs=(result.runs[1],), weights=weights, outputs=None)
    right = one.predict_ids(graph, "cpu") == graph.y
    assert right[test].mean() == pytest.approx(result.runs[1].test)


def test_seed_s_takes_split_s_modulo_their_number(graph):
    flipped = replace(graph.splits[0], train=graph.splits[0].val, val=graph.splits[0].train)
    twice = replace(graph, splits=(graph.splits[0], flipped))
    assert [run.split for run in fit(twice, seeds=[0, 1, 3], **SMALL).runs] == [0, 1, 1]
    assert [run.split for run in fit(twice, **SMALL).runs] == [0, 1]
    assert [run.split for run in fit(twice, seeds=[0, 1], split=1, **SMALL).runs] == [1, 1]


@pytest.mark.parametrize("seeds", [np.arange(2), (np.int32(0), 1), range(2)])
def test_seeds_may_be_numpy_s(graph, seeds):
    result = fit(graph, seeds=seeds, **SMALL | {"epochs": 1})
    assert [(run.seed, type(run.seed)) for run in result.runs] == [(0, int), (1, int)]


def test_several_labels_a_node_are_graded_by_micro_f1_as_a_mean_over_graphs(graph):
    y = np.stack([graph.labels, 1 - graph.labels, np.ones(graph.n, int)], 1)
    part = (np.arange(graph.n) % 2).astype(int)
    many = replace(graph, y=y, part=part)
    result = fit(many, **SMALL | {"epochs": 40, "lr": 0.02, "monitor": "val_score"})
    guess, test, scores = result.predict(many, "cpu"), graph.splits[0].test, []
    for own in (part == 0, part == 1):
        g, t = guess[test & own], y[test & own]
        scores.append(2 * (g & t).sum() / (g.sum() + t.sum()))
    assert result.metric == "micro-F1"
    assert result.test[0] == pytest.approx(np.mean(scores))
    assert result.test[0] > 0.85


def test_a_run_with_nothing_to_grade_has_no_test_score(graph):
    none = replace(graph, splits=(replace(graph.splits[0], test=np.zeros(graph.n, bool)),))
    result = fit(none, **SMALL)
    assert np.isnan(result.test[0])
    assert result.summary()["test_mean"] is None


def test_a_checkpoint_for_which_there_is_no_room_is_an_error_of_the_disk_and_named(
    tmp_path, small_files
):
    checkpoint = Checkpoint({}, [Run(0)], [0], {"now": {"W": torch.zeros(9999)}})
    with small_files(), pytest.raises(OSError, match="File too large") as told:
        checkpoint.save(tmp_path / "checkpoint")
    assert told.value.filename == str(tmp_path / "checkpoint")
    assert not list(tmp_path.iterdir())


def test_checkpoints_take_a_small_share_of_the_time(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(knobs.SAVE_EVERY, 0)
    saves = []
    monkeypatch.setattr(loop.Checkpoint, "save", lambda self, path: saves.append(time.sleep(0.05)))
    start = time.monotonic()
    fit(graph, checkpoint=tmp_path / "checkpoint", **SMALL | {"epochs": 60})
    # a save of 0.05 s, then a second without
    assert 1 <= len(saves) <= 1 + (time.monotonic() - start) / 1.0


@pytest.mark.usefixtures("save_every_epoch")
@pytest.mark.parametrize("batch", [1, 4])
def test_a_killed_run_resumes_to_the_same_final_numbers(graph, tmp_path, batch):
    path = tmp_path / "checkpoint.safetensors"
    settings = SMALL | {"seeds": range(4), "batch": batch, "epochs": 12, "patience": 3, "lr": 0.05}
    whole = fit(graph, **settings)

    # one epoch each; the first seed of four is done by then, where they go one by one
    for _ in range(7):
        with killed_after_a_save(), pytest.raises(Killed):
            fit(graph, checkpoint=path, **settings)
    resumed = fit(graph, checkpoint=path, **settings)
    assert [run.curve for run in resumed.runs] == [run.curve for run in whole.runs]
    assert all(torch.equal(resumed.weights[name], stack) for name, stack in whole.weights.items())


@pytest.mark.usefixtures("save_every_epoch")
def test_a_checkpoint_of_another_training_is_not_taken_up(graph, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    fit(graph, checkpoint=path, **SMALL)
    with pytest.warns(UserWarning, match="belongs to another training run; starting over"):
        other = fit(graph, checkpoint=path, **SMALL | {"lr": 0.5})
    assert other.runs[0].epochs == 15


@pytest.mark.usefixtures("listening")
def test_ctrl_c_keeps_the_best_so_far_and_says_so(graph):
    def press(now):
        if now.epoch == 4:
            os.kill(os.getpid(), signal.SIGINT)

    result = fit(graph, callbacks=[press], seeds=range(2), **SMALL)
    assert result.interrupted
    assert [run.epochs for run in result.runs] == [5]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it(graph):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        press = lambda now: os.kill(os.getpid(), signal.SIGINT)  # noqa: E731
        result = fit(graph, callbacks=[press], **SMALL)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not result.interrupted
    assert result.runs[0].epochs == 15


@pytest.mark.usefixtures("listening")
def test_ctrl_c_in_the_last_epoch_interrupts_nothing(graph):
    def press(now):
        if now.epoch == 14:
            os.kill(os.getpid(), signal.SIGINT)

    assert not fit(graph, callbacks=[press], **SMALL).interrupted


def test_a_loss_that_is_not_a_number_ends_the_run_with_an_explanation(graph):
    with pytest.raises(Diverged) as error:
        fit(graph, seeds=range(3), batch=3, **SMALL | {"lr": 1e30})
    assert "was infinite or not a number in epoch" in str(error.value)
    assert "try a smaller lr (now 1e+30)" in str(error.value)
    assert f"in epoch {error.value.lost[0].epochs};" in str(error.value)
    assert error.value.lost[0].seconds > 0


def test_progress_is_told_every_epoch(graph):
    seen = []
    fit(graph, seeds=range(2), callbacks=[seen.append], **SMALL)
    assert len(seen) == 30
    assert (seen[0].epoch, seen[0].runs_done, seen[0].runs) == (0, 0, 2)
    assert (seen[-1].epoch, seen[-1].runs_done) == (14, 2)


def test_a_graph_from_the_catalog_brings_its_preset_and_settings_given_win():
    digits = data.load("digits")
    plan = make_plan("gcnii", {"lr": 0.5}, digits)
    assert (plan.recipe.lr, plan.model_settings["dropout"], plan.recipe.patience) == (0.5, 0.3, 30)


@pytest.mark.parametrize("name", data.CATALOG)
def test_every_preset_names_settings_that_its_model_has(name):
    for model, settings in presets_of(name).items():
        plan = make_plan(model, settings)
        assert all(
            plan.model_settings.get(key, getattr(plan.recipe, key, None)) == settings[key]
            for key in settings
        )


def test_a_graph_without_a_split_is_refused(graph):
    with pytest.raises(GraphError, match="has no split; give it train, val and test masks"):
        fit(Graph(X=graph.X, edges=graph.edges, y=graph.y), **SMALL)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"lr": 0.0}, "lr must be a number > 0, got 0.0"),
        ({"patience": 0}, "patience must be an integer ≥ 1, got 0"),
        ({"heat_time": 800.0}, "heat_time must be a number in [0, 700], got 800.0"),
        ({"decay_conv": -1.0}, "decay_conv must be a number ≥ 0, got -1.0"),
        (
            {"monitor": "test"},
            "monitor must be one of val_loss, val_score, val_score_ties, ",
        ),
        ({"layers": 0}, "layers must be an integer in [1, 100000], got 0"),
        ({"epochs": 2.5}, "epochs must be an integer ≥ 1, got 2.5"),
        ({"dropout": 1.0}, "dropout must be a number in [0, 1), got 1.0"),
        ({"fanout": ()}, "fanout must be one or more integers ≥ 0, got ()"),
        ({"clip": float("nan")}, "clip must be a number ≥ 0, got nan"),
        ({"alpha": 1.5}, "alpha must be a number in [0, 1], got 1.5"),
        ({"lam": -1.0}, "lam must be a number ≥ 0, got -1.0"),
        (
            {"layer": 3},
            "gcnii has no setting 'layer'; did you mean 'layers'?",
        ),
        (
            {"seeds": [1, 1]},
            "seeds must be one or more different integers ≥ 0, got [1, 1]",
        ),
        ({"seeds": [0.5]}, "seeds must be a list of integers, got [0.5]"),
        ({"seeds": 3}, "seeds must be a list of integers, got 3"),
        ({"seeds": [2**63]}, "seeds must be integers ≤ 9223372036854775807, got 9223372036854775"),
        ({"batch": -1}, "batch must be an integer ≥ 1, got -1"),
        ({"threads": 1.5}, "threads must be an integer ≥ 1, got 1.5"),
        ({"split": 3}, "csbm has splits 0 to 0, got split 3"),
        ({"model": "gcn2"}, "no model 'gcn2'; did you mean 'gcn'?"),
        ({"model": ["gcn"]}, "no model ['gcn']; "),
        ({"model": np.array([])}, "no model array([]"),
        ({"calibrate": np.array([1, 2])}, "calibrate must be temperature or none, got array([1, 2"),
        ({"preset": {}}, "preset must be published or record, got {}"),
        ({"device": "tpu"}, "device must be auto, cpu or cuda, got 'tpu'"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_sentence(graph, settings, sentence):
    with pytest.raises(ValueError) as error:
        fit(graph, **settings)
    assert str(error.value).startswith(sentence)


@pytest.mark.cuda
def test_a_seed_trains_on_cuda_as_on_the_cpu(graph):
    cpu, cuda = (
        fit(graph, seeds=range(3), **SMALL | {"device": device}) for device in ("cpu", "cuda")
    )
    np.testing.assert_allclose(curves(cpu), curves(cuda), rtol=1e-3)


@pytest.mark.parametrize("precision", ["tf32", "bfloat16"])
def test_a_precision_of_gpus_is_said_to_be_float32_on_a_cpu(graph, precision):
    with pytest.warns(UserWarning, match=f"precision {precision} is for GPUs; on a CPU .* float32"):
        found = fit(graph, **SMALL, precision=precision)
    assert found.runs[0].curve == fit(graph, **SMALL).runs[0].curve


@pytest.mark.parametrize("given", [0.5, None, "cora", [1]])
def test_what_is_not_a_graph_is_not_trained_on(given):
    with pytest.raises(InputError, match=r"graph must be a gcnii.Graph, got \w+; gcnii.load reads"):
        fit(given)


@pytest.mark.parametrize("settings", [0.5, "lr", {"lr": 1}, [1], []])
def test_settings_are_a_list_of_dictionaries(settings):
    with pytest.raises(InputError, match="settings must be a list of one or more dictionaries"):
        fit(data.load("csbm", n=60), settings=settings)
