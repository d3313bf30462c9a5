"""gcnii.tune: a search in memory, or in a folder, which the same call goes on with."""

import json
import time
from dataclasses import replace

import pytest
from support import knobs
from support.command_line import files
from support.small_studies import QUICK, few_runs, finished, settings_tried

import gcnii
from gcnii.errors import InputError
from gcnii.results.fit import Session
from gcnii.tuning.question import Question
from gcnii.tuning.storage import sqlite_url
from gcnii.tuning.study import Tuner
from gcnii.tuning.tune import limits_of, seconds_of

SMALL = {"models": ["gcn"], "layers": 2, **QUICK}
FIXED = {"layers": 2, "epochs": 8, "patience": 3}


def test_in_memory_nothing_is_written(graph, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = gcnii.tune(graph, trials=6, **SMALL)
    assert files(tmp_path) == []
    assert len(found.trials) == 6
    assert {trial.model for trial in found.trials} == {"mlp", "gcn"}
    assert found.result.predict(graph).shape == (graph.n,)


def test_a_storage_alone_is_no_reason_to_write_a_folder(graph, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    gcnii.tune(graph, trials=2, storage=f"sqlite:///{tmp_path / 's.db'}", **SMALL)
    assert files(tmp_path / "here") == []
    assert len(finished(f"sqlite:///{tmp_path / 's.db'}")[0]) == 2


@pytest.fixture(scope="module")
def folder(graph, tmp_path_factory):
    """A study of two settings, then of four."""
    folder = tmp_path_factory.mktemp("studies") / "one"
    with few_runs():
        gcnii.tune(graph, trials=2, out=folder, **SMALL)
        gcnii.tune(graph, trials=4, out=folder, **SMALL)
    return folder


def test_the_same_call_goes_on_and_ends_as_if_never_interrupted(graph, folder):
    whole = gcnii.tune(graph, trials=4, **SMALL)
    tried, _ = finished(sqlite_url(folder))
    assert settings_tried(tried) == [
        (number, model, settings, outcome, val[: len(tried[number].val)])
        for number, model, settings, outcome, val in sorted(
            settings_tried(whole.trials), key=lambda one: one[0]
        )
    ]
    document = json.loads((folder / "study.json").read_text())
    assert document["winner"]["settings"] == whole.settings
    assert document["final"]["val"] == whole.document()["final"]["val"]


def test_a_folder_holds_the_study_and_a_bundle(graph, folder):
    bundle = ["card.md", "curves.csv", "model.safetensors", "run.json"]
    assert files(folder) == [*bundle, "study.db", "study.json"]
    assert gcnii.open_bundle(folder).predict(graph).shape == (graph.n,)


def test_the_time_of_all_calls_is_counted(graph, folder):
    before = json.loads((folder / "study.json").read_text())["seconds"]
    assert before > 0
    gcnii.tune(graph, budget=0.1, out=folder, **SMALL)  # which is spent: only the end is done again
    after = json.loads((folder / "study.json").read_text())
    assert after["seconds"] > before
    assert after["tried"] == 4


@pytest.mark.parametrize(
    "other",
    [{"seeds": 1}, {"metric": "f1"}, {"models": ["gcnii"]}, {"epochs": 9}],
    ids=lambda other: next(iter(other)),
)
def test_another_study_does_not_take_the_place_of_one(graph, folder, other):
    before = files(folder), (folder / "study.json").read_bytes()
    with pytest.raises(InputError) as refused:
        gcnii.tune(graph, trials=2, out=folder, **SMALL | other)
    assert str(refused.value) == (
        f"{folder} holds another study: of another graph, or with other models, seeds, metric or "
        "settings; choose another folder (out)"
    )
    assert (files(folder), (folder / "study.json").read_bytes()) == before


def test_a_folder_with_other_files_is_refused(graph, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError) as refused:
        gcnii.tune(graph, trials=2, out=tmp_path, **SMALL)
    assert str(refused.value) == (
        f"{tmp_path} holds 'notes.txt', which gcnii did not write; choose another folder (out)"
    )
    assert files(tmp_path) == ["notes.txt"]


def test_the_bundle_of_a_training_is_not_replaced(graph, tmp_path):
    gcnii.fit(graph, epochs=1, device="cpu", threads=1).save(tmp_path / "b")
    before = files(tmp_path)
    with pytest.raises(InputError) as refused:
        gcnii.tune(graph, trials=2, out=tmp_path / "b", **SMALL)
    assert str(refused.value) == (
        f"{tmp_path / 'b'} holds the bundle of a training run, not of a study; choose another "
        "folder (out)"
    )
    assert files(tmp_path) == before


def test_a_budget_is_kept(graph):
    start = time.monotonic()
    found = gcnii.tune(graph, budget=3, **SMALL | {"epochs": 30, "patience": 30})
    spent = time.monotonic() - start
    assert found.trials  # without a budget it would not end
    assert 0 < found.seconds <= spent


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1.5h", 5400), ("2 d", 172800), (" 7 ", 7), (2.5, 2.5), (3, 3)],
)
def test_a_budget_is_a_number_with_a_unit(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "5x", "-5m", "0", "0s", "m", "1e3s", "nan", "9" * 400])
def test_other_budgets_are_refused_in_a_sentence(text):
    with pytest.raises(InputError, match=r"^budget must be a time such as 90s, 10m or 2h, got '"):
        seconds_of(text)


def test_without_a_budget_and_a_number_of_trials_ten_minutes_are_taken():
    assert limits_of(None, None) == (600, None)
    assert limits_of(None, 5) == (None, 5)
    assert limits_of("1m", 5) == (60, 5)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"trials": 0}, "trials must be an integer ≥ 1, got 0"),
        ({"trials": 1}, "trials must be at least 2, the default and a baseline, got 1"),
        ({"trials": 2.5}, "trials must be an integer ≥ 1, got 2.5"),
        ({"jobs": 0, "trials": 2}, "jobs must be an integer ≥ 1, got 0"),
        ({"seeds": 0, "trials": 2}, "seeds must be an integer ≥ 1, got 0"),
        ({"models": [], "trials": 2}, "models must be a list of one or more names, got []"),
        ({"graph": "cora", "trials": 2}, "graph must be a gcnii.Graph, got str; gcnii.load reads"),
        ({"out": __file__, "trials": 2}, f"{__file__} is a file; choose another folder (out)"),
        ({"device": "tpu", "trials": 2}, "device must be "),
        ({"storage": "nonsense", "trials": 2}, "cannot open the storage nonsense: Could not parse"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    graph, words, sentence, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refused:
        gcnii.tune(**{"graph": graph, **words})
    assert str(refused.value).startswith(sentence)
    assert files(tmp_path) == []


def test_one_model_may_be_named_without_a_list(graph):
    found = gcnii.tune(graph, trials=2, **SMALL | {"models": "gcn"})
    assert found.question.models == ("gcn", "mlp")


def test_without_optuna_the_extra_is_named(graph, monkeypatch):
    monkeypatch.setattr(knobs.FIND_OPTUNA, lambda name: None)
    with pytest.raises(InputError) as refused:
        gcnii.tune(graph, trials=2)
    assert str(refused.value) == "tune needs Optuna; install it: pip install 'gcnii[tune]'"


@pytest.mark.parametrize("shared", [False, True])
def test_a_study_from_before_there_were_ranks_and_structure_goes_on(graph, tmp_path, shared):
    storage = f"sqlite:///{tmp_path / 'shared.db'}" if shared else None
    question = Question.of(graph, ["gcn"], QUICK["seeds"], fixed=FIXED)
    older = replace(question, before=True)
    assert question.numeric
    assert older.name != question.name
    where = {"out": tmp_path / "study", "storage": storage}
    Tuner.of(older, session=Session(device="cpu", threads=1), **where).run(None, 3)
    found = gcnii.tune(graph, trials=5, **SMALL, **where)
    assert len(found.trials) == 5
    assert found.question.name == older.name
    assert json.loads((tmp_path / "study/study.json").read_text())["version"] == 2
