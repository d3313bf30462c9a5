"""gcnii train: results on stdout, messages on stderr, a bundle in the folder."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import BUNDLE, BUNDLE_FILES, SMALL, Answer, call, files, write_pets

import gcnii
from gcnii.inference.page import about, draw_curves
from gcnii.results.bundle import open_bundle, save_claimed
from gcnii.train.checkpoint import Checkpoint
from gcnii.train.group import ReplicaGroup
from gcnii.train.presets import PORTFOLIO, first_point

KEYS = [
    "graph",
    "fingerprint",
    "model",
    "settings",
    "metric",
    "runs",
    "test_mean",
    "test_std",
    "device",
    "bundle",
    "evaluation",
]
RUN_KEYS = ["seed", "test", "val", "val_loss", "best_epoch", "epochs", "seconds"]


@pytest.fixture(scope="session")
def document(trained_json):
    return json.loads(trained_json.out)


def test_json_is_one_document_and_nothing_else(trained_json, document):
    assert (trained_json.code, trained_json.err) == (0, "")
    assert set(document) == {*KEYS, "interrupted"}
    assert all(set(run) == {*RUN_KEYS, "split", "temperature"} for run in document["runs"])


def test_the_document_holds_what_was_trained_and_its_scores(document):
    assert [document[key] for key in ("graph", "model", "device", "interrupted")] == [
        "digits",
        "gcnii",
        "cpu",
        False,
    ]
    assert [(run["seed"], run["split"], run["epochs"]) for run in document["runs"]] == [
        (0, 0, 3),
        (1, 0, 3),
    ]
    first, second = (run["test"] for run in document["runs"])
    assert document["test_mean"] == pytest.approx((first + second) / 2)
    assert document["test_std"] == pytest.approx(abs(first - second) / 2**0.5)


def test_the_document_says_what_accuracy_hides(document):
    short = document["evaluation"]
    names = {"score", "measured", "majority", "balanced_accuracy", "macro_f1", "warnings"}
    assert set(short) == names
    assert short["score"] == pytest.approx(document["test_mean"])
    assert "never predicted" in short["warnings"][0]  # after three epochs


def test_a_flag_wins_over_the_preset_and_the_preset_over_the_default(document):
    settings = document["settings"]
    assert (settings["layers"], settings["lr"], settings["alpha"]) == (2, 0.02, 0.1)


def explained(*words, cwd):
    answer = call("train", *words, "--explain-settings", "--json", cwd=cwd)
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


def test_settings_are_explained_by_their_sources_and_nothing_is_trained(tmp_path):
    found = explained("digits", "--lr", 0.5, "--memory", "keep", cwd=tmp_path)
    assert (found["graph"], found["model"]) == ("digits", {"value": "gcnii", "source": "default"})
    settings = found["settings"]
    assert settings["lr"] == {"value": 0.5, "source": "given"}
    assert settings["memory"] == {"value": "keep", "source": "given"}  # though no number needs it
    assert settings["layers"] == {"value": 64, "source": "preset, tried by hand"}
    assert settings["alpha"] == {"value": 0.1, "source": "default of gcnii"}
    assert settings["loops"] == {"value": "keep", "source": "default of Recipe"}
    assert files(tmp_path) == []


def test_settings_of_an_own_graph_come_from_the_default_the_portfolio_and_the_card(tmp_path):
    write_pets(tmp_path / "pets")
    settings = explained("pets", "--model", "gcn", cwd=tmp_path)["settings"]
    default = "default for graphs without published settings"
    assert settings["epochs"]["source"] == settings["longest"]["source"] == default
    assert settings["scale"]["source"] == f"{default}: auto, by the features"
    assert settings["decay_conv"]["source"] == "card of gcn"
    found = explained("pets", "--model", "gcnii", cwd=tmp_path)
    assert found["model"] == {"value": "gcnii", "source": "given"}
    assert (
        found["settings"]["alpha"]["source"]
        == f"point {first_point('gcnii').name} of the portfolio"
    )


def test_without_a_model_each_member_is_explained_with_its_settings(tmp_path):
    write_pets(tmp_path / "pets")
    found = explained("pets", "--effort", "quick", "--epochs", 7, cwd=tmp_path)
    assert found["model"] == {"value": "auto", "source": "default"}
    members = {member["name"]: member for member in found["members"]}
    points = {point.name: point for point in PORTFOLIO}
    assert "mlp" in members.keys() < points.keys()
    for name, member in members.items():
        assert member["model"] == points[name].model
        assert member["settings"] == {**points[name].settings, "epochs": 7}
    assert files(tmp_path) == ["pets/edges.csv", "pets/nodes.csv"]
    table = call("train", "pets", "--model", "auto", "--explain-settings", cwd=tmp_path).out
    assert table.split()[:3] == ["member", "model", "settings"]
    said = call("train", "pets", "--epochs", 0, "--explain-settings", cwd=tmp_path)
    assert said == (2, "", "gcnii: epochs must be an integer ≥ 1, got 0\n")


def test_explained_settings_are_a_table_with_the_settings_that_train_would_have(tmp_path):
    answer = call("train", "digits", "--epochs", 7, "--explain-settings", cwd=tmp_path)
    rows = [line.strip().split(maxsplit=2) for line in answer.out.splitlines()]
    assert rows[0] == ["setting", "value", "source"]
    assert ["epochs", "7", "given"] in rows


def test_the_bundle_is_four_files_and_no_checkpoint(home, document):
    assert re.fullmatch(r"runs/digits-gcnii-[0-9a-f]{8}", document["bundle"])
    assert files(home / document["bundle"]) == BUNDLE_FILES
    short = open_bundle(home / "runs/digits-gcnii")  # the only one whose name begins so
    assert short.summary() == {name: document[name] for name in short.summary()}


def test_no_line_of_the_result_is_broken_in_a_narrow_terminal(trained, bundle):
    title, header, _, _, headline, *errors, where = trained.out.splitlines()
    assert trained.err == ""
    assert title.strip() == "accuracy in %"
    assert header.split() == ["seed", "split", "val", "test", "best", "epoch", "epochs", "seconds"]
    score = f"{100 * open_bundle(bundle).test[0]:.1f}"
    assert headline == f"gcnii, 2 layers, on pets: test accuracy {score} (1 run)"
    assert errors[0].startswith(f"accuracy {score} (majority ")
    said = " ".join(errors)
    assert "The probabilities are not calibrated: that takes 10 validation " in said
    assert all(len(line) <= 80 for line in errors)
    assert where == f"bundle: {BUNDLE}   (label nodes with: gcnii predict '{BUNDLE}')"


def test_the_best_epoch_is_counted_alike_everywhere(home, trained, bundle):
    heads, row = (line.split() for line in trained.out.splitlines()[1:3])
    printed = int(row[heads.index("best")])  # a head of two words
    (run,) = json.loads((bundle / "run.json").read_text())["runs"]
    rows = (bundle / "curves.csv").read_text().splitlines()[1:]
    losses = [float(row.split(",")[3]) for row in rows]
    result = open_bundle(bundle, curves=True)
    facts = about(result, gcnii.load(home / "pets"))
    assert printed == run["best_epoch"] == result.runs[0].best_epoch
    assert losses[printed] == run["val_loss"]
    assert facts["best epoch"] == f"{printed}, counted from 0, of {run['epochs']}, by validation"
    assert f"Dotted: epoch {printed}," in draw_curves(result)[0].caption


def test_several_runs_are_printed_with_mean_and_deviation(home, tmp_path):
    answer = call("train", home / "pets", *SMALL, "--runs", 3, "--seed", 5, cwd=tmp_path)
    assert [line.split()[0] for line in answer.out.splitlines()[2:5]] == ["5", "6", "7"]
    assert "(3 runs)" in answer.out
    assert " ± " in answer.out


def test_a_folder_with_the_name_of_a_data_set_does_not_get_its_preset(tmp_path):
    write_pets(tmp_path / "digits")
    answer = call("train", "./digits", *SMALL, "--json", cwd=tmp_path)
    assert json.loads(answer.out)["settings"]["lr"] == 0.01


def test_a_diverging_training_explains_itself_and_leaves_no_bundle(home, tmp_path):
    answer = call("train", home / "pets", *SMALL, "--lr", "1e30", cwd=tmp_path)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == (
        "gcnii: the loss of seed 0 was infinite or not a number in epoch 1; "
        "try a smaller lr (now 1e+30), or look for extreme values in the features\n"
    )
    assert files(tmp_path) == []


def test_a_model_too_large_for_memory_is_refused_in_one_sentence(home, tmp_path):
    answer = call("train", home / "pets", "--width", 10_000_000, cwd=tmp_path)
    advice = "try a smaller model, fewer runs or jobs at once, or another --device"
    assert answer == Answer(1, "", f"gcnii: out of memory; {advice}\n")
    assert files(tmp_path) == []


def in_a_terminal(*words, cwd):
    """What the command prints on stdout, and what a terminal on stderr shows."""
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "gcnii", *map(str, words)]
    environment = os.environ | {"TERM": "xterm"}
    process = subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # Linux raises it where a terminal has ended
        while new := os.read(ours, 4096):
            shown += new
    os.close(ours)
    return process.communicate()[0], shown.decode()


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_shows_a_bar_unless_it_is_to_be_quiet(quiet, home, tmp_path):
    words = ("train", home / "pets", *SMALL, *(["--quiet"] if quiet else []))
    out, shown = in_a_terminal(*words, cwd=tmp_path)
    assert "test accuracy" in out
    assert ("gcnii on pets" in shown, shown == "") == (not quiet, quiet)
    assert "test accuracy" not in shown  # the result is on stdout alone


@pytest.mark.parametrize("quiet", [False, True])
def test_quiet_hides_warnings_and_keeps_errors(quiet, home, tmp_path):
    words = ("train", home / "pets", *SMALL, "--out", "bundle", "--overwrite")
    words = (*words, *(["--quiet"] if quiet else []))
    Checkpoint({"of": "another"}, [], []).save(tmp_path / "bundle" / "checkpoint.safetensors")
    answer = call(*words, cwd=tmp_path)
    told = "gcnii: bundle/checkpoint.safetensors belongs to another training run; starting over\n"
    assert (answer.code, answer.err) == (0, "" if quiet else told)
    assert "test accuracy" in answer.out
    assert call(*words, "--lr", -1, cwd=tmp_path).err.startswith("gcnii: lr must be ")


def test_views_of_a_step_are_flags_like_all_settings(home, tmp_path):
    given = {"views": 2, "drop_node": 0.3, "consistency": 1.0, "sharpen": 0.4, "warm_up": 5}
    words = [word for name, value in given.items() for word in (flag(name), value)]
    answer = call("train", home / "pets", *SMALL, *words, "--out", "bundle", cwd=tmp_path)
    assert (answer.code, "test accuracy" in answer.out) == (0, True)
    assert open_bundle(tmp_path / "bundle").plan.settings.items() >= given.items()
    wrong = call("train", home / "pets", "--drop-node", 1, cwd=tmp_path)
    assert wrong.err == "gcnii: drop_node must be a number in [0, 1), got 1.0\n"


def flag(name):
    return f"--{name.replace('_', '-')}"


def test_curves_are_logged_as_they_come(home, tmp_path):
    pytest.importorskip("tensorboard")
    words = ("--out", "bundle", "--log", "log.csv", "--tensorboard", "board", "--runs", 2)
    assert call("train", home / "pets", *SMALL, *words, cwd=tmp_path).code == 0
    curves = (tmp_path / "bundle" / "curves.csv").read_text()
    assert (tmp_path / "log.csv").read_text().split() == curves.split()
    assert {Path(name).parent.name for name in files(tmp_path / "board")} == {"seed-0", "seed-1"}


def test_a_log_that_cannot_be_is_refused_before_anything_is_written(home, tmp_path):
    pytest.importorskip("tensorboard")
    (tmp_path / "loop").symlink_to("loop")
    words = ("--out", "bundle", "--tensorboard", "loop")
    answer = call("train", home / "pets", *SMALL, *words, cwd=tmp_path)
    assert answer.code == 2
    assert "loop cannot be read or written: " in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


def test_the_word_tensorboard_logs_beside_the_bundle(home, tmp_path):
    pytest.importorskip("tensorboard")
    words = ("--out", "some/bundle", "--log", "tensorboard")
    assert call("train", home / "pets", *SMALL, *words, cwd=tmp_path).code == 0
    (found,) = files(tmp_path / "some" / "tensorboard")
    assert Path(found).parent == Path("bundle/seed-0")


def test_a_log_is_a_csv_file_or_the_word(home, tmp_path):
    answer = call("train", home / "pets", *SMALL, "--log", "tensorbord", cwd=tmp_path)
    words = "one of the words tensorboard and mlflow"
    sentence = f"gcnii: --log must be a .csv file or {words}, got 'tensorbord'\n"
    assert answer == Answer(2, "", sentence)
    assert files(tmp_path) == []


def test_a_bundle_knows_its_command_and_versions(home, tmp_path):
    words = ("train", home / "pets", *SMALL, "--out", "bundle")
    assert call(*words, cwd=tmp_path).code == 0
    record = json.loads((tmp_path / "bundle" / "run.json").read_text())
    assert record["command"] == shlex.join(map(str, ("gcnii", *words)))
    assert {"gcnii", "torch", "python"} <= set(record["versions"])
    assert record["git"] is None  # the folder is in no repository


@pytest.mark.parametrize(("flag", "path"), [("--log", "bundle/a.csv"), ("--tensorboard", "bundle")])
def test_a_log_in_the_bundles_folder_is_refused(flag, path, home, tmp_path):
    answer = call("train", home / "pets", *SMALL, "--out", "bundle", flag, path, cwd=tmp_path)
    sentence = f"gcnii: {path} is in the folder of the bundle; choose another {flag}\n"
    assert answer == Answer(2, "", sentence)
    assert files(tmp_path) == []


PETS = ("train", "pets", *SMALL, "--out", "bundle", "--json")


@pytest.fixture
def pets(tmp_path):
    """A folder with a finished bundle of pets in it."""
    write_pets(tmp_path / "pets")
    assert call(*PETS, cwd=tmp_path).code == 0
    return tmp_path


def contents(folder):
    return {name: (folder / name).read_bytes() for name in files(folder)}


def interrupted(*words, cwd, monkeypatch):
    """The answer to a command that Ctrl-C stops after its first epoch."""
    advance = ReplicaGroup.advance

    def advance_and_stop(group):
        advance(group)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with monkeypatch.context() as patch:
        patch.setattr(ReplicaGroup, "advance", advance_and_stop)
        answer = call(*words, cwd=cwd)
    signal.signal(signal.SIGINT, before)
    return answer


def scores(answer):
    return [run["test"] for run in json.loads(answer.out)["runs"]]


def test_a_finished_bundle_outlives_a_repetition_that_is_interrupted(pets, monkeypatch):
    kept = contents(pets / "bundle")
    answer = interrupted(*PETS, cwd=pets, monkeypatch=monkeypatch)
    told = "bundle keeps its old bundle. Run the same command again to resume.\n"
    assert answer.code == 1
    assert answer.err.endswith(f"gcnii: stopped; {told}")
    document = json.loads(answer.out)
    assert (document["bundle"], document["runs"][0]["epochs"]) == (None, 1)
    held = contents(pets / "bundle")
    assert held.pop("checkpoint.safetensors")
    assert held == kept
    again = call(*PETS, cwd=pets)  # resumes
    assert (again.code, json.loads(again.out)["bundle"]) == (0, "bundle")
    assert list(contents(pets / "bundle")) == list(kept)


OTHERS = (("--alpha", "0.3"), ("--seed", 5), ("--split", 0, "--seed", 1), ("--lr", "0.1"))


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_a_finished_bundle_gives_way_to_another_training_only_if_told_so(pets, other, monkeypatch):
    kept = contents(pets / "bundle")
    answer = call(*PETS, *other, cwd=pets)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.endswith(
        "; choose another folder, or overwrite it (--overwrite; in Python, overwrite=True)\n"
    )
    assert contents(pets / "bundle") == kept
    words = (*PETS, *other, "--overwrite")
    assert interrupted(*words, cwd=pets, monkeypatch=monkeypatch).code == 1
    held = contents(pets / "bundle")
    assert held.pop("checkpoint.safetensors")
    assert held == kept  # until the other training has finished
    refused = call(*PETS, cwd=pets)  # its checkpoint is not lost either
    assert (refused.code, "the checkpoint of another training run" in refused.err) == (2, True)
    answer = call(*words, cwd=pets)
    assert (answer.code, scores(answer)) == (0, open_bundle(pets / "bundle").test.tolist())
    assert contents(pets / "bundle")["run.json"] != kept["run.json"]


@pytest.mark.parametrize("name", ["model.safetensors", "checkpoint.safetensors", "thesis.txt"])
def test_a_file_that_gcnii_did_not_write_is_never_overwritten(name, home, tmp_path):
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / name).write_text("years")
    words = ("train", home / "pets", *SMALL, "--out", "bundle", "--overwrite")
    answer = call(*words, cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    sentence = {
        "checkpoint.safetensors": "bundle/checkpoint.safetensors is not a checkpoint; choose"
    }
    assert answer.err.startswith(f"gcnii: {sentence.get(name, f'bundle holds {name!r}')}")
    assert contents(tmp_path / "bundle") == {name: b"years"}


@pytest.fixture
def full_disk(monkeypatch):
    """No file of a bundle may have more than so many bytes."""
    resource = pytest.importorskip("resource")
    before, save = resource.getrlimit(resource.RLIMIT_FSIZE), save_claimed

    def save_to_full_disk(*given, **options):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            return save(*given, **options)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    monkeypatch.setattr("gcnii.results.bundle.save_claimed", save_to_full_disk)


@pytest.mark.usefixtures("full_disk")
def test_the_scores_are_printed_even_if_the_disk_is_full(home, tmp_path, monkeypatch):
    words = ("train", home / "pets", *SMALL, "--out", "bundle")
    answer = call(*words, "--json", cwd=tmp_path)
    assert (answer.code, len(scores(answer)), json.loads(answer.out)["bundle"]) == (1, 1, None)
    problem = "gcnii: cannot read or write bundle/model.safetensors: File too large"
    assert answer.err == f"{problem}\n"
    assert interrupted(*words, cwd=tmp_path, monkeypatch=monkeypatch).code == 1
    answer = call(*words, cwd=tmp_path)
    assert "test accuracy" in answer.out
    assert answer.err == f"{problem}; run the same command again to resume\n"
    assert files(tmp_path / "bundle") == ["checkpoint.safetensors"]
