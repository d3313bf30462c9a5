"""gcnii doctor: tables, diagnoses, figures and JSON; and gcnii.watch, which works without it."""

import json
import time
from unittest import mock

import numpy as np
import pytest
import torch
from support import knobs
from support.command_line import call, files
from torch import nn

import gcnii
from gcnii.cli import doctor
from gcnii.propagation import feature_matrix, propagation_matrix
from gcnii.train.group import Diverged

QUICK = ("--model", "gcn,gcnii", "--depths", "4,2", "--device", "cpu", "--trials", "0")


@pytest.fixture(scope="module", autouse=True)
def short():
    """Train for three epochs only."""
    with mock.patch(knobs.EXAMINED_EPOCHS, 3):
        yield


def test_every_model_and_depth_has_a_row_and_a_diagnosis(home):
    answer = call("doctor", "pets", *QUICK, "--verbose", cwd=home)
    assert answer.code == 0, answer.err
    for name in ("gcn", "gcnii"):
        assert f"{name}, 4 layers, before training" in answer.out
        assert f"{name}, 4 layers, after training" in answer.out
        assert f"{name}, 2 layers: " in answer.out
        assert f"{name} is best at " in answer.out
    assert "Accuracy by degree (nodes), 4 layers" in answer.out
    assert "eff. rank" in answer.out


def test_without_verbose_there_are_sentences_alone_and_the_time_is_said_before(home):
    answer = call("doctor", "pets", *QUICK, cwd=home)
    assert answer.out.splitlines()[-1].startswith("After at most ")
    assert len(answer.out.splitlines()) <= 4
    assert answer.err == "gcnii: 0 settings to try, then 4 networks to examine: about a minute\n"
    alone = ("--model", "gcn", "--depths", "2", "--trials", "0")
    assert call("doctor", "pets", *alone, cwd=home).out.startswith("gcn, 2 layers: ")


def test_no_sentence_and_no_table_shows_a_test_score(home):
    answer = call("doctor", "pets", *QUICK, "--verbose", cwd=home)
    assert " layers (validation " in answer.out
    assert "test" not in answer.out


def test_json_holds_every_layer_before_and_after_training(home):
    answer = call("doctor", "pets", *QUICK, "--json", cwd=home)
    found = json.loads(answer.out)
    assert [(one["model"], one["layers"]) for one in found["checkups"]] == [
        *(("gcn", 2), ("gcn", 4)),
        *(("gcnii", 2), ("gcnii", 4)),
    ]
    deep = found["checkups"][-1]
    assert [len(deep[when]) for when in ("before", "after")] == [5, 5]
    assert deep["before"] != deep["after"]
    for name in (
        "energy",
        "mad",
        "mad_gap",
        "effective_rank",
        "rank",
        "distance",
        "dead",
        "gradient",
        "probe",
    ):
        assert name in deep["after"][0]
    assert deep["diagnosis"]["kind"] in ("gone", "alike", "faded", "kept")
    assert deep["settings"]["epochs"] == 3
    assert deep["by_degree"]


@pytest.mark.slow
def test_each_question_has_a_figure_in_both_formats(home, tmp_path):
    answer = call("doctor", "pets", *QUICK, "--out", tmp_path, cwd=home)
    names = ("depth", "energy", "gradient", "mad", "probe", "rank")
    assert files(tmp_path) == sorted(f"{name}.{kind}" for name in names for kind in ("png", "svg"))
    assert all(str(tmp_path / name) in answer.out for name in files(tmp_path))
    assert "What can still be read? (pets, 4 layers)" in (tmp_path / "probe.svg").read_text("utf-8")


def test_a_quiet_doctor_prints_its_answer_and_nothing_else(home):
    with mock.patch(knobs.EXAMINED_FIT, side_effect=Diverged("the loss is not finite")):
        answer = call("doctor", "pets", *QUICK, "--quiet", cwd=home)
    assert (answer.code, answer.err) == (0, "")
    assert "gcnii" in answer.out


def test_a_training_that_diverges_does_not_end_the_examination(home):
    with mock.patch(knobs.EXAMINED_FIT, side_effect=Diverged("the loss is not finite")):
        answer = call("doctor", "pets", *QUICK, "--json", cwd=home)
    assert answer.code == 0
    assert (
        "gcnii: gcn, 2 layers: the loss is not finite; what follows is of the untrained model"
        in answer.err
    )
    found = json.loads(answer.out)["checkups"]
    assert [one["test"] for one in found] == [None] * 4
    assert all(one["after"] == one["before"] for one in found)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--model", "gcni"), "no model 'gcni'; did you mean 'gcnii'?"),
        (("--model", "mlp"), "mlp has no setting 'layers'"),
        (("--model", ","), "--model is empty; give it words separated by commas"),
        (
            ("--depths", "2,x"),
            "--depths must be integers ≥ 1, separated by commas, got '2,x'",
        ),
        (("--model", "jknet", "--depths", "1"), "must be at least 2, got 1"),
        (("--target", "x0"), "the doctor is for classes, but this model predicts numbers (x0)"),
        (("--split", "7"), "pets has splits 0 to 0, got --split 7"),
    ],
)
def test_what_cannot_be_examined_is_refused_before_the_first_training(words, sentence, home):
    answer = call("doctor", "pets", *words, cwd=home)
    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err


@pytest.fixture(scope="module")
def graph():
    return gcnii.load("csbm", n=60, labels_per_class=5)


def test_watch_gives_a_table_a_plot_and_a_diagnosis(graph):
    model = gcnii.nn.GCNII(16, 2, layers=3, width=8).double().eval()
    with gcnii.watch(model, graph) as w:
        model(
            propagation_matrix(graph, dtype=torch.float64), feature_matrix(graph).double()
        ).square().sum().backward()
    table = w.table()
    assert list(table["name"]) == ["input", "convs.0", "convs.1", "convs.2"]
    assert (
        table[["energy", "mad", "effective_rank", "distance", "gradient", "probe"]]
        .notna()
        .all(axis=None)
    )
    assert len(w.plot().axes) == 5
    assert w.diagnose().text


def test_watch_finds_the_edges_of_a_model_that_is_not_ours(graph):
    pyg = pytest.importorskip("torch_geometric.nn")
    model = pyg.models.GAT(16, 8, num_layers=3, out_channels=2, heads=2).eval()
    with gcnii.watch(model) as w, torch.no_grad():
        model(feature_matrix(graph), torch.tensor(graph.edges))
    assert len(w.table()) == 4
    assert "probe" not in w.table().dropna(axis="columns")
    assert [axes.get_ylabel() for axes in w.plot().axes][1] == "mean cosine distance (MAD)"


def test_watch_asks_for_the_graph_if_the_model_gets_no_edges(graph):
    model = nn.Sequential(nn.Linear(16, 4), nn.Linear(4, 2)).double()
    with gcnii.watch(model) as w:
        model(torch.tensor(np.asarray(graph.X)).double())
    with pytest.raises(ValueError, match="no edges were seen among the model's inputs"):
        w.table()


def test_in_a_pipe_a_long_examination_says_how_far_it_is(line_of_progress, capsys):
    told = iter(f"{2 * (i + 1)} layers: {i} of 2 networks done" for i in range(2))
    examiner = mock.Mock()
    examiner.check.side_effect = lambda *words, **more: (
        line_of_progress(f"gcnii: examining gcn, {next(told)}") and mock.MagicMock()
    )
    with mock.patch.multiple(doctor, ProbeBaseline=mock.DEFAULT, diagnose=mock.DEFAULT):
        doctor._examine(examiner, ["gcn"], [2, 4], hidden=False)
        assert next(told, None) is None
        capsys.readouterr()
        examiner.check.side_effect = lambda *words, **more: time.sleep(0.1) or mock.MagicMock()
        doctor._examine(examiner, ["gcn"], [2, 4], hidden=True)
    assert capsys.readouterr().err == ""
