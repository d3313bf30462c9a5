"""One rule for all that is written: inputs, bundles and files of others are not replaced."""

import json
import os
import shutil

import pytest
from support.command_line import SMALL, call, finish, start, write_pets
from support.waiting import wait_until

import gcnii
from gcnii.files import refuse_replacing
from gcnii.results.bundle import save_claimed


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the graph `pets` and the bundle `run` of it."""
    folder = tmp_path_factory.mktemp("made")
    write_pets(folder / "pets")
    assert call("train", "pets", *SMALL, "--out", "run", "--quiet", cwd=folder).code == 0
    return folder


@pytest.fixture
def work(made, tmp_path):
    """A copy of it, to be written to."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    run = json.loads((tmp_path / "run/run.json").read_text())
    assert run["graph"]["source"] == str(made / "pets")
    return tmp_path


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


INPUTS = [
    ("predict", "run", "--graph", "pets", "--out", "pets/nodes.csv"),
    ("predict", "run", "--graph", "pets", "--out", "pets/../pets/edges.csv"),
    ("predict", "run", "--graph", "pets", "--out", "link.csv"),
    ("predict", "run", "--graph", "pets", "--out", "run/curves.csv"),
    ("train", "pets", *SMALL, "--log", "pets/edges.csv"),
    ("train", "pets", *SMALL, "--log", "run/curves.csv"),
    ("data", "pack", "./pets.safetensors", "pets.safetensors"),
    ("data", "pack", "pets", "run/model.safetensors"),
]


@pytest.mark.parametrize("more", [(), ("--overwrite",)])
@pytest.mark.parametrize("words", INPUTS, ids=" ".join)
def test_neither_an_input_nor_a_file_of_a_bundle_is_ever_replaced(words, more, work):
    gcnii.save(gcnii.load(work / "pets"), work / "pets.safetensors")
    (work / "link.csv").symlink_to(work / "pets/nodes.csv")
    before = everything(work)
    answer = call(*words, *more, cwd=work)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert "so it is not replaced; choose another name" in answer.err
    assert everything(work) == before


def test_the_data_of_the_training_is_not_replaced_where_only_the_bundle_names_it(made):
    answer = call("predict", "run", "--out", "pets/nodes.csv", "--overwrite", cwd=made)
    assert answer.code == 2
    assert "pets/nodes.csv is read by this command, so it is not replaced" in answer.err


STRANGERS = [
    (("predict", "run", "--graph", "pets"), "--out", "mine.csv"),
    (("predict", "run", "--graph", "pets"), "--out", "mine.parquet"),
    (("explain", "run", "pet0", "--graph", "pets"), "--out", "mine.png"),
    (("explain", "run", "pet0", "--graph", "pets"), "--out", "mine.svg"),
    (("report", "run", "run", "--graph", "pets", "--quiet"), "--out", "mine.html"),
    (("train", "pets", *SMALL, "--out", "other"), "--log", "mine.csv"),
]


@pytest.mark.parametrize(("words", "flag", "name"), STRANGERS, ids=str)
def test_a_file_that_we_did_not_write_is_replaced_only_if_asked(words, flag, name, work):
    (work / name).write_text("node,label\nyears of work\n")
    before = everything(work)
    answer = call(*words, flag, name, cwd=work)
    assert (answer.code, answer.out) == (2, "")
    assert f"{name} exists and gcnii did not write it; choose another name, or" in answer.err
    assert everything(work) == before
    for more in (("--overwrite",), ()):  # and then it is ours
        shutil.rmtree(work / "other", ignore_errors=True)
        answer = call(*words, flag, name, *more, cwd=work)
        assert answer.code == 0, answer.err
        assert b"years" not in (work / name).read_bytes()


def test_a_new_and_an_empty_file_may_be_written_also_beside_the_data(work):
    (work / "pets/empty.csv").touch()
    for name in ("pets/new.csv", "pets/empty.csv", "pets/new.csv"):
        answer = call("predict", "run", "--graph", "pets", "--out", name, cwd=work)
        assert answer.code == 0, answer.err


def test_a_pipe_is_no_place_for_a_file(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(gcnii.InputError, match=r"a.csv is not a regular file; choose another name"):
        refuse_replacing(tmp_path / "a.csv", lambda path: True, overwrite=True)


def test_a_picture_of_another_is_not_replaced_by_a_search(work):
    pytest.importorskip("optuna")
    (work / "study").mkdir()
    (work / "study/search.png").write_text("a map")
    answer = call("tune", "pets", "--trials", 2, "--out", "study", cwd=work)
    assert (answer.code, answer.out) == (2, "")
    assert "study/search.png exists and gcnii did not write it" in answer.err
    assert everything(work / "study") == {work / "study/search.png": b"a map"}


def test_figures_of_another_are_not_replaced_by_the_doctor(work):
    (work / "figures").mkdir()
    (work / "figures/depth.svg").write_text("<svg/>")
    answer = call("doctor", "pets", "--out", "figures", cwd=work)
    assert (answer.code, answer.out) == (2, "")
    assert "figures/depth.svg exists and gcnii did not write it" in answer.err


TINY = ("--width", "8", "--device", "cpu")
SLOWLY = (
    "-c",
    "import time, gcnii; from gcnii.train import group; group.SAVE_EVERY = 0.0\n"
    "from gcnii.train.callbacks import CsvLog\n"
    "call = CsvLog.__call__\n"
    "CsvLog.__call__ = lambda self, now: (call(self, now), time.sleep(0.5))\n"
    "from gcnii.cli import main; main()",
)


def wait_for(path, process):
    wait_until(lambda: process.poll() is not None or path.exists())
    assert process.poll() is None, finish(process).err


@pytest.mark.slow
def test_of_two_trainings_into_one_folder_the_second_is_refused_at_once(work):
    words = (
        "train",
        "pets",
        *TINY,
        "--layers",
        2,
        "--epochs",
        20,
        "--out",
        "two",
        "--log",
        "log.csv",
    )
    first = start(*words, cwd=work, program=SLOWLY)
    try:
        wait_for(work / "two/checkpoint.safetensors", first)
        answer = call("train", "pets", *SMALL, "--seed", 7, "--out", "two", cwd=work)
        assert (answer.code, answer.out) == (2, "")
        assert f"two is being written to by process {first.pid} on " in answer.err
        assert (work / "two/checkpoint.safetensors").exists()
    finally:
        first.kill()
        finish(first)
    assert (work / "two/.claim").exists()
    answer = call(*words, cwd=work)  # a claim ends with its process, and the training is resumed
    assert answer.code == 0, answer.err
    assert sorted(path.name for path in (work / "two").iterdir()) == [
        "card.md",
        "curves.csv",
        "model.safetensors",
        "run.json",
    ]


def test_a_training_whose_folder_was_taken_keeps_what_it_has(work, monkeypatch):
    other = gcnii.open_bundle(work / "run")

    def taken(*given, **options):
        monkeypatch.undo()
        shutil.copytree(work / "run", work / "new", dirs_exist_ok=True)
        (work / "new/checkpoint.safetensors").write_bytes(b"")
        return save_claimed(*given, **options)

    monkeypatch.setattr("gcnii.results.bundle.save_claimed", taken)
    answer = call("train", "pets", *TINY, "--layers", 3, "--epochs", 2, "--out", "new", cwd=work)
    assert answer.code == 2
    assert "new holds the bundle of another training run" in answer.err
    assert (work / "new/checkpoint.safetensors").exists()
    (spare,) = work.glob("new-*")
    assert f"; this one is saved as {spare.name}\n" in answer.err
    assert gcnii.open_bundle(spare).plan.settings["layers"] == 3
    assert gcnii.open_bundle(work / "new").plan == other.plan


def test_a_column_of_huge_numbers_gives_a_bundle_that_opens(work):
    nodes = (work / "pets/nodes.csv").read_text().splitlines()
    cells = [
        "huge",
        "",
        "",
        "-3e38",
        *["3e38"] * (len(nodes) - 4),
    ]  # an even number, so two middles
    lines = [f"{line},{cell}" for line, cell in zip(nodes, cells, strict=True)]
    (work / "pets/nodes.csv").write_text("\n".join(lines) + "\n")
    answer = call("train", "pets", *SMALL, "--out", "huge", cwd=work)
    assert answer.code == 0, answer.err
    (column,) = (
        one for one in gcnii.open_bundle(work / "huge").origin.columns if one.name == "huge"
    )
    assert column.median < 3.4e38


def test_a_link_to_a_bundles_file_is_not_written_through(tmp_path):
    write_pets(tmp_path / "pets")
    assert call("train", "pets", *SMALL, "--out", "bundle", cwd=tmp_path).code == 0
    before = (tmp_path / "bundle" / "curves.csv").read_bytes()
    (tmp_path / "log.csv").symlink_to("bundle/curves.csv")
    answer = call("train", "pets", *SMALL, "--out", "new", "--log", "log.csv", cwd=tmp_path)
    assert answer.code == 2
    assert "log.csv is a file of a bundle, so it is not replaced" in answer.err
    assert (tmp_path / "bundle" / "curves.csv").read_bytes() == before


def test_a_user_without_a_folder_is_one_sentence(tmp_path):
    write_pets(tmp_path / "pets")
    answer = call("data", "pack", "pets", "~nobody-here/x.safetensors", cwd=tmp_path)
    assert answer.code == 2
    assert "begins with a user who has no folder here" in answer.err
