"""A bundle: safe files that open anywhere and give the same answers."""

import errno
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.command_line import BUNDLE_FILES
from support.each_kind import of_each_kind
from support.fitting import fitting
from support.waiting import PATIENCE

import gcnii
from gcnii import data
from gcnii.errors import BundleError, GraphError, InputError
from gcnii.files import claimed
from gcnii.graph import Graph
from gcnii.results.bundle import open_bundle
from gcnii.results.fit import fit

SMALL = {"layers": 2, "width": 8, "epochs": 3, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=60, degree=6, labels_per_class=5)


@pytest.fixture
def bundle(graph, tmp_path):
    return fit(graph, seeds=range(2), **SMALL).save(tmp_path / "bundle")


@of_each_kind("model")
def test_save_open_and_predict_give_the_same(model, graph, tmp_path):
    result = fit(graph, model, seeds=range(2), **fitting(model, SMALL))
    opened = open_bundle(result.save(tmp_path))
    assert np.array_equal(opened.predict(graph, "cpu"), result.predict(graph, "cpu"))
    assert np.array_equal(opened.predict_proba(graph, "cpu"), result.predict_proba(graph, "cpu"))
    assert np.array_equal(opened.embed(graph, "cpu"), result.embed(graph, "cpu"))
    assert len(opened.embed(graph, "cpu")) == 60
    assert opened.summary() == result.summary()


@pytest.mark.filterwarnings("ignore:precision .* is for GPUs")
@pytest.mark.parametrize("precision", ["float64", "tf32", "bfloat16"])
def test_a_bundle_of_any_precision_opens(precision, graph, tmp_path):
    result = fit(graph, precision=precision, **SMALL)
    opened = open_bundle(result.save(tmp_path))
    assert np.array_equal(opened.predict_proba(graph, "cpu"), result.predict_proba(graph, "cpu"))


def test_probabilities_sum_to_one(graph, bundle):
    np.testing.assert_allclose(open_bundle(bundle).predict_proba(graph, "cpu").sum(1), 1, rtol=1e-5)


def test_the_run_with_the_best_validation_predicts(graph, bundle):
    opened = open_bundle(bundle)
    assert opened.best == int(np.argmin([run.val_loss for run in opened.runs]))


def test_a_bundle_says_what_was_trained_on_what_with_which_versions(graph, bundle):
    record = json.loads((bundle / "run.json").read_text())
    assert record["settings"]["layers"] == 2
    assert record["graph"]["fingerprint"] == graph.fingerprint
    assert set(record["versions"]) == {"gcnii", "torch", "python"}


def test_a_bundle_holds_the_training_curves(bundle):
    lines = (bundle / "curves.csv").read_text().splitlines()
    assert lines[0] == "seed,epoch,train_loss,val_loss,val"
    assert len(lines) == 1 + 2 * 3


def test_an_opened_bundle_has_its_curves_if_they_are_asked_for(graph, tmp_path):
    trained = fit(graph, seeds=range(2), **SMALL)
    folder = trained.save(tmp_path / "bundle")
    opened = open_bundle(folder, curves=True)
    for run, own in zip(opened.runs, trained.runs, strict=True):
        assert run.curve == [tuple(map(float, map(str, point))) for point in own.curve]
    assert open_bundle(folder).runs[0].curve == []


def test_curves_that_were_changed_are_refused(bundle):
    with (bundle / "curves.csv").open("a") as file:
        file.write("0,3,1.0,1.0,1.0\n")
    assert open_bundle(bundle).runs
    with pytest.raises(BundleError, match=r"is not the file that run\.json was written with"):
        open_bundle(bundle, curves=True)


def test_a_graph_with_other_features_is_refused(graph, bundle):
    other = Graph(X=np.ones((4, 5)), edges=[[0], [1]], name="other")
    with pytest.raises(
        GraphError, match="the model was trained on 16 features per node, but other has 5"
    ):
        open_bundle(bundle).predict(other)


def test_a_graph_of_another_size_is_labelled(graph, bundle):
    other = Graph(X=np.ones((4, 16)), edges=[[0], [1]])
    assert open_bundle(bundle).predict(other, "cpu").shape == (4,)


FILES = ["card.md", "curves.csv", "model.safetensors", "run.json"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def seeds(folder):
    """The seeds of the runs that a bundle holds, if it is whole."""
    opened = open_bundle(folder)
    assert all(len(weight) == len(opened.runs) for weight in opened.weights.values())
    return [run.seed for run in opened.runs]


def test_a_bundle_is_replaced_whole_by_the_same_training_with_more_runs(graph, bundle):
    fit(graph, seeds=[1, 0, 7], **SMALL).save(bundle)
    assert seeds(bundle) == [1, 0, 7]
    assert names(bundle) == FILES
    fit(graph, seeds=[1, 0, 7], **SMALL).save(bundle)  # once more


OTHERS = {
    "alpha": ({"alpha": 0.3}, "the bundle of another training run (gcnii, 2 layers, on csbm: test"),
    "seeds": ({"seeds": [0, 7]}, "1 run that the new bundle would lack (seed 1"),
    "fewer": ({"seeds": [7]}, "2 runs that the new bundle would lack (first seed"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_the_bundle_of_another_training_is_replaced_only_if_told_so(graph, bundle, other):
    given, sentence = OTHERS[other]
    result = fit(graph, **{"seeds": range(2), **SMALL, **given})
    kept = (bundle / "run.json").read_bytes()
    with pytest.raises(InputError, match=re.escape(f"{bundle} holds {sentence}")):
        result.save(bundle)
    assert (bundle / "run.json").read_bytes() == kept
    assert seeds(bundle) == [0, 1]
    result.save(bundle, overwrite=True)
    assert seeds(bundle) == [run.seed for run in result.runs]


def test_a_finished_bundle_is_not_replaced_by_an_interrupted_one(graph, bundle):
    interrupted = replace(open_bundle(bundle), interrupted=True)
    with pytest.raises(InputError, match="the finished bundle of this training run, and the new"):
        interrupted.save(bundle)
    interrupted.save(bundle, overwrite=True)
    assert open_bundle(bundle).interrupted
    interrupted.save(bundle)
    replace(interrupted, interrupted=False).save(bundle)
    assert not open_bundle(bundle).interrupted


@pytest.mark.parametrize("name", ["model.safetensors", "curves.csv", "card.md"])
def test_a_file_of_someone_else_is_never_replaced(graph, bundle, name, tmp_path):
    (tmp_path / name).write_text("years")
    with pytest.raises(InputError, match=f"holds '{name}' without the run.json of a bundle"):
        open_bundle(bundle).save(tmp_path, overwrite=True)
    assert (tmp_path / name).read_text() == "years"


class Killed(BaseException):
    """What a kill does to a process."""


@contextmanager
def killed_at(move, monkeypatch, after):
    """Within, the process ends at a move of a file, the first being 0: before it, or after it."""
    moves = itertools.count()

    def replace_or_die(self, target):
        dies = next(moves) == move
        if not dies or after:
            os.replace(self, target)
        if dies:
            raise Killed

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(Path, "replace", replace_or_die)
        yield
        raise AssertionError(f"there are fewer than {move} moves")


MOVES = range(7)  # three files to hidden places, run.json, and the three to their own places


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_save_that_is_killed_leaves_the_old_bundle_or_the_new_one(
    graph, tmp_path, monkeypatch, after
):
    old, new, third = (fit(graph, seeds=range(count), **SMALL) for count in (1, 2, 3))
    for first, second in itertools.product(MOVES, MOVES):
        folder = tmp_path / f"{first}{second}"
        old.save(folder)
        with killed_at(first, monkeypatch, after):
            new.save(folder)
        shutil.copytree(folder, tmp_path / "copy")  # opening it would settle it
        expected = [0, 1] if first + after > 3 else [0]
        assert seeds(tmp_path / "copy") == expected
        shutil.rmtree(tmp_path / "copy")
        with killed_at(second, monkeypatch, after):
            third.save(folder)
        assert seeds(folder) in (expected, [0, 1, 2])
        third.save(folder)
        assert (seeds(folder), names(folder)) == ([0, 1, 2], FILES)


def test_the_moves_of_a_save_are_all_tried(graph, tmp_path, monkeypatch):
    moved = []
    move = Path.replace
    monkeypatch.setattr(Path, "replace", lambda *both: moved.append(both) or move(*both))
    fit(graph, seeds=[0], **SMALL).save(tmp_path)
    assert len(moved) == len(MOVES)


def test_a_killed_save_opens_where_nothing_can_be_moved(graph, bundle, monkeypatch):
    with killed_at(4, monkeypatch, after=False):
        fit(graph, seeds=range(3), **SMALL).save(bundle)

    def refuse(self, target):
        raise PermissionError(errno.EROFS, "Read-only file system", str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        assert seeds(bundle) == [0, 1, 2]
    assert seeds(bundle) == [0, 1, 2]
    assert names(bundle) == FILES


def test_curves_that_were_changed_do_not_stop_a_prediction(graph, bundle):
    record = json.loads((bundle / "run.json").read_text())
    curves = (bundle / "curves.csv").read_bytes()
    assert record["curves_sha256"] == hashlib.sha256(curves).hexdigest()
    (bundle / "curves.csv").write_text("seed,epoch\n")
    assert len(open_bundle(bundle).predict(graph, "cpu")) == 60


def test_two_classes_of_one_name_are_refused_before_training(graph):
    with pytest.raises(GraphError, match="classes must have different names; rename those that"):
        replace(graph, classes=("cat", "cat"))


def damage(bundle, name, change):
    path = bundle / name
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("run.json", lambda text: text[:50], "run.json is not a bundle's record: Untermin"),
        (
            "run.json",
            lambda text: text.replace(b'"format": 1', b'"format": 9'),
            "has bundle format 9, this gcnii reads",
        ),
        (
            "run.json",
            lambda text: text.replace(b'"gcnii",', b'"nothing",', 1),
            "is not a bundle's record: it was changed after the training",
        ),
        ("run.json", lambda text: b"[]", "it must be an object, got "),
        (
            "model.safetensors",
            lambda bytes_: bytes_[:-1] + b"x",
            "is not the file that run.json was written with",
        ),
    ],
)
def test_what_is_no_whole_bundle_is_refused(bundle, name, change, sentence):
    damage(bundle, name, change)
    with pytest.raises(BundleError, match=sentence):
        open_bundle(bundle)


def test_a_folder_without_a_bundle_is_refused(tmp_path):
    with pytest.raises(
        BundleError, match=r"holds no run\.json; give a folder written by `gcnii train`"
    ):
        open_bundle(tmp_path)


SAVING = """
import sys, gcnii
graph = gcnii.load("csbm", n=60)
result = gcnii.fit(graph, layers=2, width=8, epochs=2, seeds=[int(sys.argv[1])], device="cpu")
input()
for _ in range(20):
    result.save("shared", overwrite=True)
"""


@pytest.mark.slow
def test_saves_of_two_processes_into_one_folder_leave_a_whole_bundle(tmp_path):
    both = [
        subprocess.Popen(
            [sys.executable, "-c", SAVING, str(seed)], cwd=tmp_path, stdin=subprocess.PIPE
        )
        for seed in range(2)
    ]
    for one in both:
        one.stdin.write(b"\n")
        one.stdin.close()
    assert [one.wait(timeout=PATIENCE) for one in both] == [0, 0]
    assert gcnii.open_bundle(tmp_path / "shared", curves=True).runs
    assert sorted(path.name for path in (tmp_path / "shared").iterdir()) == BUNDLE_FILES


def test_a_folder_that_another_writes_to_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("gcnii.results.bundle.PATIENCE", 0.05)
    result = gcnii.fit(gcnii.load("csbm", n=60), layers=2, width=8, epochs=2, device="cpu")
    with claimed(tmp_path / "bundle"):
        with pytest.raises(InputError, match=rf"is being written to by process {os.getpid()} on "):
            result.save(tmp_path / "bundle")
        assert [path.name for path in (tmp_path / "bundle").iterdir()] == [".claim"]
    assert not (tmp_path / "bundle").exists()
    assert gcnii.open_bundle(result.save(tmp_path / "bundle")).runs


def test_what_cannot_be_opened_does_not_replace_what_can(tmp_path):
    result = gcnii.fit(gcnii.load("csbm", n=60), layers=2, width=8, epochs=2, device="cpu")
    result.save(tmp_path / "bundle")
    before = {path.name: path.read_bytes() for path in (tmp_path / "bundle").iterdir()}
    wrong = replace(result, origin=replace(result.origin, n=0))
    with pytest.raises(gcnii.BundleError, match=r"graph\.n must be at least 1, got 0"):
        wrong.save(tmp_path / "bundle", overwrite=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "bundle").iterdir()} == before


@pytest.mark.parametrize(
    "name", ["model.safetensors", ".model.safetensors.new", "curves.csv", ".card.md.1.new"]
)
def test_a_pipe_in_a_bundle_is_refused_and_not_waited_for(name, tmp_path):
    result = gcnii.fit(gcnii.load("csbm", n=60), layers=2, width=8, epochs=2, device="cpu")
    bundle = result.save(tmp_path / "bundle")
    (bundle / name).unlink(missing_ok=True)
    os.mkfifo(bundle / name)
    with pytest.raises(gcnii.BundleError, match="is not a regular file"):
        gcnii.open_bundle(bundle, curves=True)


def test_what_a_killed_save_of_version_1_0_left_is_put_in_its_place(tmp_path):
    result = gcnii.fit(gcnii.load("csbm", n=60), layers=2, width=8, epochs=2, device="cpu")
    bundle = result.save(tmp_path / "bundle")
    (bundle / "model.safetensors").rename(bundle / ".model.safetensors.new")
    assert gcnii.open_bundle(bundle).runs
    assert sorted(path.name for path in bundle.iterdir()) == BUNDLE_FILES
