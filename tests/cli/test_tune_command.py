"""gcnii tune: a bundle, the study, a table, what mattered, a picture, and the next command."""

import json
import re
import shlex
from types import SimpleNamespace

import pytest
from support.command_line import BUNDLE_FILES, call, files
from support.small_studies import WORDS, few_runs, finished

import gcnii
from gcnii.cli import tune
from gcnii.tuning.storage import sqlite_url

KEYS = {
    *("format", "graph", "version", "models", "seeds", "metric", "fixed", "fingerprint"),
    *(
        "measured",
        "divided_anew",
        "nested",
        "rule",
        "searched",
        "tried",
        "outcomes",
        "winner",
        "runner_up",
    ),
    *("final", "baselines", "lead", "verdict", "importances", "seconds", "command", "device"),
    *("notes", "trials", "leaderboard"),
}
FILES = [*BUNDLE_FILES, "search.png", "study.db", "study.json"]
SMALL = ("--models", "gcn", "--layers", 2, *WORDS)


@pytest.fixture(autouse=True)
def _few_runs():
    with few_runs():
        yield


@pytest.fixture(scope="module")
def answer(home):
    """What `gcnii tune pets` prints, of 14 settings."""
    with few_runs():
        return call("tune", "pets", "--trials", 14, *SMALL, "--out", "a study", cwd=home)


@pytest.fixture(scope="module")
def study(home, answer):
    """study.json."""
    assert answer.code == 0, answer.err
    return json.loads((home / "a study" / "study.json").read_text())


def test_the_folder_is_a_bundle_with_the_study_and_a_picture(home, study):
    folder = home / "a study"
    assert files(folder) == FILES
    assert (folder / "search.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    bundle = gcnii.open_bundle(folder)
    assert (bundle.plan.model, bundle.plan.settings) == (
        study["winner"]["model"],
        study["winner"]["settings"],
    )
    assert set(bundle.predict(gcnii.load(home / "pets"))) <= {"cat", "dog"}
    predicted = call("predict", folder, cwd=home)
    assert (predicted.code, len(predicted.out.splitlines())) == (0, 13)


def test_study_json_holds_all_trials_the_winner_and_the_verdict(study):
    assert set(study) == KEYS
    assert (study["graph"], study["tried"], study["seeds"]) == ("pets", 14, 2)
    assert (study["models"], study["measured"]) == (["gcn", "mlp"], "accuracy")
    assert study["fixed"] == {"epochs": 8, "layers": 2, "patience": 3}
    assert study["divided_anew"] is True
    assert study["trials"][0]["number"] == study["winner"]["number"]
    assert sorted(one["number"] for one in study["trials"]) == list(range(14))
    assert sum(study["outcomes"].values()) == 14
    assert set(study["baselines"]) == {"mlp", "gcn"}
    assert set(study["winner"]) == {"number", "model", "val", "error", "settings"}
    for scores in (study["final"], *study["baselines"].values()):
        assert len(scores["test"]) == len(scores["seed"]) == 2
        assert min(scores["seed"]) >= 1000
    assert shlex.split(study["command"])[:3] == ["gcnii", "tune", "pets"]


def test_what_is_printed_is_the_table_what_mattered_and_the_verdict(answer, study):
    lines = answer.out.splitlines()
    assert answer.err == ""
    assert lines[0] == "The best settings by validation (accuracy in %)"
    assert lines[2].split()[0] == "1"
    assert study["verdict"] in lines
    assert any(line.startswith("14 settings tried; the best by validation: ") for line in lines)
    assert "bundle: a study   (label nodes with: gcnii predict 'a study')" in lines
    assert "picture: a study/search.png" in lines


def test_what_mattered_is_said_with_its_error_or_that_it_is_not_known(answer, study):
    model = study["winner"]["model"]
    own = [one for one in study["trials"] if one["model"] == model and one["outcome"] != "lost"]
    if len(own) < 10:
        assert f"What mattered: too few trials of {model} to say" in answer.out
    else:
        assert all(one["error"] >= 0 for one in study["importances"])
        assert re.search(rf"{study['importances'][0]['name']} +\d+% +\d+%", answer.out)


def test_the_command_that_is_printed_trains_the_winner_again(home, answer, study):
    last = answer.out.splitlines()[-1]
    label, _, command = last.partition(": ")
    assert (label, command) == (
        "train the winner again",
        "gcnii train pets --settings 'a study'",
    )
    again = call(*shlex.split(command)[1:], "--json", "--device", "cpu", "--threads", 1, cwd=home)
    document = json.loads(again.out)
    assert (document["model"], document["settings"]) == (
        study["winner"]["model"],
        study["winner"]["settings"],
    )


def test_a_flag_wins_over_the_setting_of_the_study(home, study):
    words = ("--settings", "a study", "--epochs", 3, "--device", "cpu", "--threads", 1, "--json")
    document = json.loads(call("train", "pets", *words, cwd=home).out)
    assert document["settings"]["epochs"] == 3
    assert document["settings"]["lr"] == study["winner"]["settings"]["lr"]


def test_another_model_than_the_winner_is_refused(home, study):
    other = {"gcn": "mlp", "mlp": "gcn"}[study["winner"]["model"]]
    answer = call("train", "pets", "--settings", "a study", "--model", other, cwd=home)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        f"gcnii: a study holds settings of {study['winner']['model']}, got --model {other}; leave "
        "it out\n"
    )


def test_what_is_not_found_is_said_before_all_else(home, study, monkeypatch):
    short = SimpleNamespace(first="Nothing found: no class is told.", lines=lambda: ["after it"])
    monkeypatch.setattr(tune, "short_form", lambda *_: short)
    answer = call("tune", "pets", "--trials", 14, *SMALL, "--out", "a study", cwd=home)
    first, *_, after, _, _, _, _ = answer.out.splitlines()
    assert (first, after) == (short.first, "after it")


def test_the_same_command_does_nothing_twice(home, study):
    before, _ = finished(sqlite_url(home / "a study"))
    words = ("tune", "pets", "--trials", 14, *SMALL, "--out", "a study", "--json")
    answer = call(*words, cwd=home)
    assert (answer.code, answer.err) == (0, "")
    after, _ = finished(sqlite_url(home / "a study"))
    assert before == after
    again = json.loads(answer.out)
    assert again["winner"] == study["winner"]
    assert again["final"] == study["final"]


def test_json_is_one_document_and_nothing_else(home, tmp_path):
    words = ("tune", home / "pets", "--trials", 3, *SMALL, "--json")
    answer = call(*words, cwd=tmp_path)
    document = json.loads(answer.out)
    assert (answer.code, answer.err) == (0, "")
    assert set(document) == {*KEYS, "bundle", "evaluation", "picture", "train"}
    assert re.fullmatch(r"runs/pets-tune-[0-9a-f]{8}", document["bundle"])
    assert document["train"] == f"gcnii train {home / 'pets'} --settings {document['bundle']}"
    assert document["importances"] == []
    assert files(tmp_path / document["bundle"]) == FILES


def test_the_printed_command_names_the_columns_of_the_tables(home, tmp_path):
    nodes = (home / "pets" / "nodes.csv").read_text()
    folder = tmp_path / "pets"
    folder.mkdir()
    (folder / "nodes.csv").write_text(nodes.replace("id,x0,x1,label,", "name,x0,x1,kind,"))
    (folder / "edges.csv").write_text((home / "pets" / "edges.csv").read_text())
    words = ("--id", "name", "--label", "kind", "--drop", "x1", "--directed")
    answer = call("tune", "pets", *words, "--trials", 2, *SMALL, "--out", "s", cwd=tmp_path)
    command = answer.out.splitlines()[-1].partition(": ")[2]
    assert command == ("gcnii train pets --id name --label kind --drop x1 --directed --settings s")
    again = call(*shlex.split(command)[1:], "--device", "cpu", "--threads", 1, cwd=tmp_path)
    assert again.code == 0, again.err
    study = json.loads((tmp_path / "s" / "study.json").read_text())
    assert "direction" in study["searched"]["gcn"]


def refusal(answer):
    """The sentence of a command that was refused; check that it printed nothing else."""
    first, *more = answer.err.splitlines()
    assert (answer.code, answer.out, more) == (2, "", [])
    return first.removeprefix("gcnii: ")


SECRET = "postgresql+psycopg://me:s3cret@127.0.0.1:1/x"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--models", "gcni"),
            "no model 'gcni'; did you mean 'gcnii'? `gcnii models`",
        ),
        (("--models", ","), "--models is empty; give names from `gcnii models`, separated by comm"),
        (("--metric", "acuracy"), "no metric 'acuracy'; did you mean 'accuracy'?"),
        (("--budget", "5x"), "budget must be a time such as 90s, 10m or 2h, got '5x'; to count s"),
        (("--budget", ""), "budget must be a time such as 90s, 10m or 2h, got ''; to count setti"),
        (("--trials", 0), "--trials must be at least 1, got 0"),
        (("--trials", 1), "trials must be at least 2, the default and a baseline, got"),
        (("--seeds", 0), "--seeds must be at least 1, got 0"),
        (("--seeds", 501), "seeds must be at most 500 per setting, got 501"),
        (("--jobs", 0), "--jobs must be at least 1, got 0"),
        (("--models", "gcn", "--alpha", 0.1), "none of gcn, mlp has a setting 'alpha'; known: b"),
        (("--lr", 0), "lr must be a number > 0, got 0"),
        (("--slurm", "gpu"), "--slurm must be KEY=VALUE, such as partition=gpu, got 'gpu'"),
        (("--slurm", "=gpu"), "--slurm must be KEY=VALUE, such as partition=gpu, got '=gpu'"),
        (("--slurm", "cluster=cloud"), "cluster must be one of slurm, local, got 'cloud'"),
        (("--slurm", "timeout_min=soon"), "timeout_min must be a whole number, got 'soon'; check"),
        (("--slurm", "cluster=local", "--slurm", "a=b"), "Slurm cannot start the jobs: Unknown a"),
        (("--storage", "nonsense"), "cannot open the storage nonsense: Could not parse SQLAlchemy"),
        (("--storage", SECRET), "cannot open the storage postgresql+psycopg://me:***@127.0.0.1:1"),
        (
            ("--storage", "mysql+pymysql://me:s3cret@h/x"),
            "mysql+pymysql://me:***@h/x needs pymysql",
        ),
    ],
)
def test_wrong_usage_is_one_sentence_and_nothing_is_written(words, sentence, home, tmp_path):
    said = refusal(call("tune", home / "pets", *words, cwd=tmp_path))
    assert said.startswith(sentence)
    assert "s3cret" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_graph_without_labels_is_refused(home, tmp_path):
    nodes = [line.split(",") for line in (home / "pets" / "nodes.csv").read_text().splitlines()]
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "nodes.csv").write_text("\n".join(",".join(row[:3]) for row in nodes))
    (folder / "edges.csv").write_text((home / "pets" / "edges.csv").read_text())
    said = refusal(call("tune", "bare", "--trials", 2, cwd=tmp_path))
    assert said.startswith("no node of bare has a label; label some nodes, or say which column ")
    assert not (tmp_path / "runs").exists()


def test_a_graph_without_a_split_is_refused(home, tmp_path):
    graph = gcnii.load(home / "pets")
    gcnii.save(gcnii.Graph(X=graph.X, edges=graph.edges, y=graph.y), tmp_path / "g.safetensors")
    said = refusal(call("tune", "g.safetensors", "--trials", 2, cwd=tmp_path))
    assert said.endswith(" has no split; give it train, val and test masks")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "notes.txt",
            "holds 'notes.txt', which gcnii did not write; choose another folder (out)",
        ),
        (
            "run.json",
            "holds the bundle of a training run, not of a study; choose another folder (out)",
        ),
        ("study.json", "study.json is not a study: Expecting value: line 1 column 1 (char 0); "),
    ],
)
def test_a_folder_of_someone_else_is_refused_and_left_alone(name, why, home, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("mine")
    said = refusal(call("tune", home / "pets", "--trials", 2, "--out", "out", cwd=tmp_path))
    assert why in said
    assert (tmp_path / "out" / name).read_text() == "mine"
    assert files(tmp_path) == [f"out/{name}"]


def hostile(winner):
    return json.dumps({"winner": winner})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (hostile({"model": "gpt", "settings": {}}), "no model 'gpt'; "),
        (hostile({"model": "gcn", "settings": {"layer": 2}}), "gcn has no setting 'layer'; did yo"),
        (hostile({"model": "gcn", "settings": {"layers": "2"}}), "layers must be an integer in [1"),
        (hostile({"model": "gcn", "settings": {"layers": 10**400}}), "layers must be an integer "),
        (hostile({"model": "gcn", "settings": {"lr": 1e999}}), "lr must be a number > 0, got None"),
        (hostile({"model": "gcn", "settings": {"lr": [[0.1]]}}), "lr must be a number > 0, got [["),
        (hostile({"model": "gcn", "settings": {"norm": {"a": 1}}}), "norm must be one of symmetri"),
        (hostile({"model": "\x1b[31m", "settings": {}}), "no model '\\x1b[31m'; "),
        ('{"winner": ' + "[" * 100_000, "s/study.json is not a study: maximum recursion depth ex"),
        ("9" * 5000, "s/study.json is not a study: Exceeds the limit (4300 digits) for integer"),
    ],
)
def test_a_hostile_study_is_one_sentence(content, sentence, home, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "study.json").write_text(content)
    said = refusal(call("train", home / "pets", "--settings", "s", cwd=tmp_path))
    assert said.startswith(sentence)
    assert len(said) < 1000
    assert files(tmp_path) == ["s/study.json"]
