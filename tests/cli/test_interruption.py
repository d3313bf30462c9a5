"""After Ctrl-C or kill -9 the same command resumes, and ends with the same numbers."""

import json
import shutil
import signal

import pytest
from support.command_line import SAVING, call, files, finish, start
from support.waiting import wait_until

from gcnii.results.bundle import open_bundle

pytestmark = pytest.mark.slow

CHECKPOINTS = ["checkpoint.previous.safetensors", "checkpoint.safetensors"]
EPOCHS = 120
WORDS = (
    "--layers",
    2,
    "--width",
    8,
    "--epochs",
    EPOCHS,
    "--patience",
    EPOCHS,
    "--runs",
    2,
    "--device",
    "cpu",
    "--json",
)


def numbers(document):
    """The runs of a document, without the seconds that they took."""
    return [
        {name: value for name, value in run.items() if name != "seconds"}
        for run in document["runs"]
    ]


def stop(folder, home, number):
    """Train in a process that saves after every epoch; signal it once there is a checkpoint."""
    process = start(
        "train", home / "pets", *WORDS, "--out", folder, cwd=home, program=("-c", SAVING)
    )
    checkpoint = folder / "checkpoint.safetensors"
    wait_until(lambda: process.poll() is not None or checkpoint.exists())
    assert process.poll() is None, finish(process)
    process.send_signal(number)
    return finish(process)


@pytest.fixture(scope="module")
def uninterrupted(home, tmp_path_factory):
    """The document and the curves of a training that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole")
    document = json.loads(call("train", home / "pets", *WORDS, "--out", folder, cwd=home).out)
    return numbers(document), (folder / "curves.csv").read_text()


@pytest.fixture(scope="module")
def stopped(home, tmp_path_factory):
    """The answer to Ctrl-C, and the folder."""
    folder = tmp_path_factory.mktemp("stopped")
    return stop(folder, home, signal.SIGINT), folder


@pytest.fixture(scope="module")
def preempted(home, tmp_path_factory):
    """The answer to SIGTERM, with which a cluster takes back a machine, and the folder."""
    folder = tmp_path_factory.mktemp("preempted")
    return stop(folder, home, signal.SIGTERM), folder


@pytest.fixture(scope="module")
def killed(home, tmp_path_factory):
    """The answer to kill -9, and the folder."""
    folder = tmp_path_factory.mktemp("killed")
    return stop(folder, home, signal.SIGKILL), folder


def test_ctrl_c_saves_the_best_weights_so_far(stopped):
    answer, folder = stopped
    assert answer.code == 1  # so that `gcnii train … && …` goes no further
    assert answer.err == (
        "gcnii: stopping after this epoch; press Ctrl-C again to stop now\n"
        "gcnii: stopped; the bundle holds the best weights so far. "
        "Run the same command again to resume.\n"
    )
    document = json.loads(answer.out)
    assert document["interrupted"]
    assert 0 < document["runs"][-1]["epochs"] < EPOCHS
    assert open_bundle(folder).interrupted
    assert files(folder) == ["card.md", *CHECKPOINTS, "curves.csv", "model.safetensors", "run.json"]


def test_sigterm_saves_as_ctrl_c_does(preempted):
    answer, folder = preempted
    assert answer.code == 1
    assert answer.err.startswith("gcnii: stopping after this epoch\n")
    assert files(folder) == ["card.md", *CHECKPOINTS, "curves.csv", "model.safetensors", "run.json"]


def test_the_bundle_of_a_stopped_training_predicts(stopped, tmp_path):
    answer = call("predict", stopped[1], cwd=tmp_path)
    assert (answer.code, len(answer.out.splitlines())) == (0, 13)


def test_a_killed_training_leaves_a_checkpoint_and_no_bundle(killed):
    answer, folder = killed
    assert (answer.code, answer.out) == (-signal.SIGKILL, "")
    assert "checkpoint.safetensors" in files(folder)
    assert {name for name in files(folder) if not name.startswith(".")} <= set(CHECKPOINTS)


@pytest.mark.parametrize("how", ["stopped", "preempted", "killed"])
def test_the_same_command_resumes_and_ends_with_the_same_numbers(
    how, request, uninterrupted, home, tmp_path, caplog
):
    folder = tmp_path / "again"
    shutil.copytree(request.getfixturevalue(how)[1], folder)
    with caplog.at_level("INFO", "gcnii"):
        answer = call("train", home / "pets", *WORDS, "--out", folder, cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert f"of 2 runs: {folder / 'checkpoint.safetensors'}" in caplog.text
    assert (numbers(json.loads(answer.out)), (folder / "curves.csv").read_text()) == uninterrupted
    assert files(folder) == ["card.md", "curves.csv", "model.safetensors", "run.json"]


OTHER = ("--layers", 2, "--width", 8, "--epochs", 2, "--json")


def test_another_command_does_not_replace_what_a_stopped_one_has_saved(stopped, home, tmp_path):
    folder = tmp_path / "again"
    shutil.copytree(stopped[1], folder)
    answer = call("train", home / "pets", *OTHER, "--out", folder, cwd=tmp_path)
    assert answer.code == 2
    assert f"{folder} holds the bundle of another training run (gcnii, 2 layers, on " in answer.err
    assert files(folder) == files(stopped[1])


def test_a_checkpoint_of_another_command_is_kept_unless_it_may_be_overwritten(
    stopped, home, tmp_path
):
    folder = tmp_path / "again"
    folder.mkdir()
    shutil.copy(stopped[1] / "checkpoint.safetensors", folder)
    words = ("train", home / "pets", *OTHER, "--out", folder)
    answer = call(*words, cwd=tmp_path)
    assert (answer.code, files(folder)) == (2, ["checkpoint.safetensors"])
    assert f"{folder} holds the checkpoint of another training run; choose" in answer.err
    answer = call(*words, "--overwrite", cwd=tmp_path)
    checkpoint = folder / "checkpoint.safetensors"
    assert answer.err == f"gcnii: {checkpoint} belongs to another training run; starting over\n"
    assert json.loads(answer.out)["runs"][0]["epochs"] == 2


def test_a_damaged_checkpoint_is_named_and_changes_no_number(
    stopped, uninterrupted, home, tmp_path
):
    folder = tmp_path / "again"
    shutil.copytree(stopped[1], folder)
    checkpoint = folder / "checkpoint.safetensors"
    checkpoint.write_bytes(b"nonsense")
    answer = call("train", home / "pets", *WORDS, "--out", folder, cwd=tmp_path)
    assert answer.err.startswith(f"gcnii: {checkpoint} is damaged (")
    assert answer.err.endswith("; resuming from the checkpoint before it\n")
    assert numbers(json.loads(answer.out)) == uninterrupted[0]


# Presses Ctrl-C when the module of the last word is imported.
HALFWAY = """
import os, signal, sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[-1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Press())
from gcnii.cli import main
main()
"""


@pytest.mark.parametrize("module", ["cyclopts", "rich.table", "numpy.linalg", "torch.nn", "scipy"])
def test_ctrl_c_while_modules_are_imported_is_one_sentence(home, module):
    process = start("train", "--out", "never", module, cwd=home, program=("-c", HALFWAY))
    answer = finish(process)
    assert (answer.code, answer.out, answer.err) == (1, "", "gcnii: stopped\n")
