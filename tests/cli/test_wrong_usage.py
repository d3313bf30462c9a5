"""Wrong usage: one sentence on stderr, an exit code, and no file left behind."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support.command_line import SMALL, call, files, run, start, write_pets

import gcnii.cli
from gcnii.cli.terminal import limit_width
from gcnii.errors import BundleError, GcniiError, InputError, UsageError


def refusal(answer):
    """The sentence of a command that was refused; check that it printed nothing else."""
    first, *more = answer.err.splitlines()
    assert (answer.code, answer.out, more) == (2, "", [])
    assert first.startswith("gcnii: ")
    return first.removeprefix("gcnii: ")


def test_a_process_ends_with_the_sentence_and_the_code(tmp_path):
    answer = run("train", "--layer", 2, cwd=tmp_path)
    assert (
        refusal(answer) == "Unknown option: --layer. Did you mean --layers? See gcnii train --help."
    )
    assert files(tmp_path) == []


def test_a_full_disk_behind_stdout_is_reported():
    full = subprocess.run(
        f"{sys.executable} -m gcnii data list > /dev/full",
        shell=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    sentence = "gcnii: cannot write to the standard output: No space left on device\n"
    assert (full.returncode, full.stderr) == (1, sentence)


def test_a_full_disk_behind_a_file_is_not_blamed_on_the_standard_output(monkeypatch, capsys):
    def train():
        print("half of a table", end="")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gcnii.cli.app", lambda *_, **__: train())
    with pytest.raises(SystemExit):
        gcnii.cli.main()
    assert capsys.readouterr().err == "gcnii: cannot write a file: No space left on device\n"


@pytest.mark.slow
def test_tables_replace_what_stdout_cannot_encode_and_json_is_ascii(tmp_path):
    table, document = (
        run("models", "gcnii", *more, cwd=tmp_path, PYTHONIOENCODING="ascii")
        for more in ((), ("--json",))
    )
    assert (table.code, table.err, document.code, document.err) == (0, "", 0, "")
    assert "H ? ?(" in table.out
    assert json.loads(document.out)[0]["equation"].startswith("H ← σ(")


@pytest.mark.slow
def test_predict_does_not_replace_letters_of_names(tmp_path):
    folder = write_pets(tmp_path / "pets")
    (folder / "nodes.csv").write_text(
        (folder / "nodes.csv").read_text().replace("pet0", "p\u00e9t0"), "utf-8"
    )
    (folder / "edges.csv").write_text(
        (folder / "edges.csv").read_text().replace("pet0", "p\u00e9t0"), "utf-8"
    )
    assert call("train", "pets", *SMALL, "--out", "b", cwd=tmp_path).code == 0
    answer = run("predict", "b", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (
        refusal(answer)
        == r"the standard output is ascii and cannot encode '\xe9'; give --out a file, or --json"
    )
    assert "p\u00e9t0" in run("predict", "b", cwd=tmp_path).out


def test_only_errors_of_a_full_disk_are_blamed_on_stdout():
    too_many = OSError(errno.EMFILE, "Too many open files")
    assert gcnii.cli._explain(too_many) == ("[Errno 24] Too many open files", 1)


@pytest.mark.parametrize(
    ("kind", "code"), [(InputError, 2), (BundleError, 2), (UsageError, 1), (GcniiError, 1)]
)
def test_an_error_of_the_package_is_a_sentence_and_bad_input_has_code_2(kind, code):
    assert gcnii.cli._explain(kind("expected a, got b")) == ("expected a, got b", code)


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "width"), [("0", 80), ("²", 80), ("1", 40), ("12", 40)])
def test_help_is_printed_in_the_narrowest_terminal(columns, width, tmp_path):
    answer = run("train", "--help", cwd=tmp_path, COLUMNS=columns)
    assert (answer.code, answer.err) == (0, "")
    assert {len(line) for line in answer.out.splitlines() if line.startswith("╭")} == {width}


def test_a_narrow_terminal_is_noticed_without_columns_in_the_environment(monkeypatch):
    monkeypatch.setenv("COLUMNS", "")
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((1, 24)))
    limit_width()
    assert os.environ["COLUMNS"] == "40"


def test_a_closed_stdout_is_not_an_error():
    closed = subprocess.run(
        f"exec {sys.executable} -m gcnii data list >&-", shell=True, stderr=subprocess.PIPE
    )
    assert (closed.returncode, closed.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("trian", 'Unknown command "trian". Did you mean "train"?'),
        ("data lst", 'Unknown command "lst". Did you mean "list"?'),
        (
            "train --epoch 3",
            "Unknown option: --epoch. Did you mean --epochs? See gcnii train --help.",
        ),
        ("train pets cora", "Unused Tokens: ['cora']. See gcnii train --help."),
        (
            "train pets --layers",
            'Command "train" parameter --layers requires an argument. See gcnii train --help.',
        ),
        (
            "train pets --layers two",
            "Invalid value for --layers: expected an integer, got 'two'. See",
        ),
        ("train pets --lr 1_000", "Invalid value for --lr: expected a number, got '1_000'"),
        ("train pets --epochs 1_0", "Invalid value for --epochs: expected an integer, got '"),
        ("train pets --epochs inf", "Invalid value for --epochs: expected an integer, got '"),
        (
            "train pets --patience nan",
            "Invalid value for --patience: expected an integer, got 'nan",
        ),
        ("train pets --plateau 3 --plateau-floor 9", "plateau_floor must be at most lr, from whic"),
        (
            "train pets --layers 2.7",
            "Invalid value for --layers: expected an integer, got '2.7'",
        ),
        (
            "reproduce table2 --runs 1.5",
            "Invalid value for --runs: expected an integer, got '1.5'",
        ),
        (
            "train pets --epochs 99999999999999999999",
            "Invalid value for --epochs: expected a smaller integer, got '99999999999999",
        ),
        (
            "train pets --layers " + 5000 * "9",
            "Invalid value for --layers: expected a smaller integer, got '999",
        ),
        (
            "doctor pets --depths 99999999999999999999",
            "--depths must be integers ≥ 1, separated by commas, got '9999",
        ),
        (
            "train pets --fanout 2.5",
            "Invalid value for --fanout: expected an integer, got '2.5'",
        ),
        (
            "train pets --monitor test",
            'Invalid value "test" for --monitor. Choose from: "val_loss", "val_score", ',
        ),
        (
            "train pets --model gcni",
            "no model 'gcni'; did you mean 'gcnii'? `gcnii models` lists them all",
        ),
        (
            "train pets --model deep-gcn --alpha 0.1",
            "deep-gcn has no setting 'alpha'; known: layers, width, dropout, ",
        ),
        (
            "train coar",
            "no data set 'coar'; did you mean 'cora'? `gcnii data list` lists them all, ",
        ),
        (
            "train q",
            "no data set 'q'; `gcnii data list` lists them all, or give the path of a folder",
        ),
        (
            "train no/where",
            "no/where does not exist; a graph is a folder with nodes.csv and edges.csv",
        ),
        ("train pets --layers 0", "layers must be an integer in [1, 100000], got 0"),
        (
            "train pets --layers 2147483647",
            "layers must be an integer in [1, 100000], got 2147483647",
        ),
        (
            "doctor pets --depths 2147483647",
            "layers must be an integer in [1, 100000], got 2147483647",
        ),
        ("train ~nobody-at-all/x", "~nobody-at-all/x begins with a user who has no folder here"),
        ("data check ~nobody-at-all/x", "~nobody-at-all/x begins with a user who has no folder"),
        ("data show ~nobody-at-all", "~nobody-at-all begins with a user who has no folder here"),
        ("train pets --width 0", "width must be an integer ≥ 1, got 0"),
        ("train pets --lr -1", "lr must be a number > 0, got -1.0"),
        ("train pets --lr nan", "lr must be a number > 0, got nan"),
        (
            "train pets --decay-conv -1",
            "decay_conv must be a number ≥ 0, got -1.0",
        ),
        ("train pets --epochs 0", "epochs must be an integer ≥ 1, got 0"),
        ("train pets --patience 0", "patience must be an integer ≥ 1, got 0"),
        (
            "train pets --dropout 1",
            "dropout must be a number in [0, 1), got 1.0",
        ),
        ("train pets --alpha 2", "alpha must be a number in [0, 1], got 2.0"),
        ("train pets --lam -1", "lam must be a number ≥ 0, got -1.0"),
        ("train pets --seed -1", "--seed must be at least 0, got -1"),
        ("train pets --runs 0", "--runs must be at least 1, got 0"),
        ("train pets --split 3", "pets has splits 0 to 0, got split 3"),
        ("train pets --device tpu", "device must be auto, cpu or cuda, got 'tpu'"),
        (
            "predict pets",
            "pets holds no run.json; give a folder written by `gcnii train`",
        ),
        (
            "predict nothing",
            "there is no folder 'nothing'; give a folder written by `gcnii train`",
        ),
        (
            "predict",
            'Command "predict" parameter BUNDLE requires an argument. See gcnii predict --help.',
        ),
        (
            "data show coar",
            "no data set 'coar'; did you mean 'cora'? `gcnii data list` lists them all, ",
        ),
        (
            "data check no/where",
            "no/where does not exist; a graph is a folder with nodes.csv and edges.csv",
        ),
        ("data fetch", "name at least one data set, or all; `gcnii data list` shows them"),
    ],
)
def test_what_cannot_work_is_refused(words, sentence, tmp_path):
    write_pets(tmp_path / "pets")
    assert refusal(call(*words.split(), cwd=tmp_path)).startswith(sentence)
    assert files(tmp_path) == ["pets/edges.csv", "pets/nodes.csv"]


@pytest.mark.parametrize(
    "words",
    ["train pets --out", "doctor pets --out", "predict b --out", "report html --out", "data check"],
)
def test_an_empty_path_is_refused_and_not_taken_for_this_folder(words, tmp_path):
    write_pets(tmp_path)
    sentence = refusal(call(*words.split(), "", cwd=tmp_path))
    assert re.match(
        r"(Invalid value for --out: )?expected the path of a file or folder, got ''", sentence
    )
    assert files(tmp_path) == ["edges.csv", "nodes.csv"]


def test_more_clusters_than_nodes_are_said(tmp_path):
    write_pets(tmp_path / "pets")
    words = ("--model", "cluster-gcn", "--clusters", 99, *SMALL)
    assert (
        "pets has 12 nodes, and so as many clusters, not 99"
        in call("train", "pets", *words, cwd=tmp_path).err
    )


def test_a_setting_that_another_one_makes_idle_is_said(tmp_path):
    write_pets(tmp_path / "pets")
    answer = call("train", "pets", "--clusters", 4, "--plateau", 9, *SMALL, cwd=tmp_path)
    assert "clusters is not used, since batches is full" in answer.err
    assert "plateau" not in answer.err


def test_a_misspelt_folder_is_guessed_among_those_beside_it(tmp_path):
    write_pets(tmp_path / "churn")
    said = refusal(call("train", "chrun", cwd=tmp_path))
    assert said.startswith("no data set 'chrun'; did you mean 'churn'? `gcnii data list` ")
    call("train", "churn", *SMALL, "--out", "r/churn", cwd=tmp_path)
    assert refusal(call("predict", "r/chrun", cwd=tmp_path)).startswith(
        "there is no folder 'r/chrun'; did you mean 'r/churn'? give a folder written by `gcnii"
    )


def test_an_empty_graph_is_refused_and_not_taken_for_this_folder(tmp_path):
    write_pets(tmp_path)
    assert refusal(call("train", "", cwd=tmp_path)).startswith(
        "no data set ''; `gcnii data list` lists"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is of Linux")
@pytest.mark.parametrize("kilobytes", [200_000, 700_000])
def test_too_little_memory_for_torch_is_said_before_it_is_loaded(kilobytes, tmp_path):
    limited = f"ulimit -v {kilobytes}; exec {sys.executable} -m gcnii train"
    done = subprocess.run(limited, shell=True, cwd=tmp_path, capture_output=True, text=True)
    sentence = f"gcnii: out of memory: `ulimit -v` leaves {kilobytes:,} kB, and torch alone needs "
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{sentence}781,250; raise the limit\n"


def test_a_library_that_memory_does_not_suffice_to_load_is_out_of_memory():
    for cause in (ImportError("torch.so: failed to map segment from shared object"), MemoryError()):
        error = ImportError("Cannot import module 'gcnii.cli.train'")
        error.__cause__ = cause
        assert gcnii.cli._explain(error) == (gcnii.cli.OUT_OF_MEMORY, 1)
    assert gcnii.cli._explain(ImportError("No module named 'x'")) == ("", 1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("command", ["train", "predict"])
def test_cuda_without_cuda_is_refused(command, home, bundle, tmp_path):
    source = {"train": home / "pets", "predict": bundle}[command]
    sentence = "device cuda was asked for, but torch finds no CUDA device; use device cpu or auto"
    assert refusal(call(command, source, "--device", "cuda", cwd=tmp_path)) == sentence
    assert files(tmp_path) == []


@pytest.mark.parametrize("out", ["taken", "taken/deep/er"])
def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(out, home, bundle, tmp_path):
    (tmp_path / "taken").write_text("mine")
    blocked = f"{tmp_path / 'taken'} is a file, not a folder; choose another --out"
    answer = call("train", home / "pets", "--epochs", 10**9, "--out", out, cwd=tmp_path)
    assert refusal(answer) == f"cannot write to {out}: {blocked}"
    assert refusal(call("demo", "--out", out, cwd=tmp_path)) == f"cannot write to {out}: {blocked}"
    answer = call("predict", bundle, "--out", f"{out}/labels.csv", cwd=tmp_path)
    assert refusal(answer) == f"cannot write to {out}: {blocked}"
    assert files(tmp_path) == ["taken"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder that nobody can write to")
def test_a_folder_that_not_even_root_can_write_to_is_refused_before_the_work(home, tmp_path):
    answer = call(
        "doctor",
        home / "pets",
        "--model",
        "no such model",
        "--out",
        "/proc/pictures/of",
        cwd=tmp_path,
    )
    sentence = "no file can be created in /proc; choose another --out"
    assert refusal(answer) == f"cannot write to /proc/pictures/of: {sentence}"


def test_checking_whether_a_folder_can_be_written_to_leaves_nothing_there(home, tmp_path):
    refusal(
        call(
            "doctor", home / "pets", "--model", "no such model", "--out", "new/folder", cwd=tmp_path
        )
    )
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_file_system_names_the_file(bundle, tmp_path):
    (tmp_path / "labels.csv").mkdir()
    answer = call("predict", bundle, "--out", "labels.csv", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "gcnii: labels.csv is not a regular file; choose another name\n"


def alter(path, change):
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("file", "change", "sentence"),
    [
        ("run.json", lambda text: text[:50], "damaged/run.json is not a bundle's record: "),
        (
            "run.json",
            lambda text: b'{"format": "one"}',
            "damaged has bundle format one, this gcnii reads up to 2; ",
        ),
        (
            "run.json",
            lambda text: text.replace(b'"format": 1', b'"format": 3'),
            "damaged has bundle format 3, this gcnii reads up to 2; update gcnii",
        ),
        (
            "run.json",
            lambda text: text.replace(b'"layers": 2', b'"layers": 3'),
            "damaged/run.json is not a bundle's record: it was changed after the training ",
        ),
        (
            "run.json",
            lambda text: b'{"format": 1}',
            "damaged/run.json is not a bundle's record: graph is missing; restore it, or train ",
        ),
        (
            "model.safetensors",
            lambda data: data[:-1] + bytes([data[-1] ^ 1]),
            "damaged/model.safetensors is not the file that run.json was written with; train again",
        ),
    ],
)
def test_a_damaged_bundle_is_refused(file, change, sentence, bundle, tmp_path):
    shutil.copytree(bundle, tmp_path / "damaged")
    alter(tmp_path / "damaged" / file, change)
    answer = call("predict", "damaged", "--out", "labels.csv", cwd=tmp_path)
    assert refusal(answer).startswith(sentence)
    assert not (tmp_path / "labels.csv").exists()


def test_a_bundle_without_weights_is_refused(bundle, tmp_path):
    shutil.copytree(bundle, tmp_path / "damaged")
    (tmp_path / "damaged" / "model.safetensors").unlink()
    assert refusal(call("predict", "damaged", cwd=tmp_path)).startswith(
        "damaged/model.safetensors cannot be read: "
    )


@pytest.mark.parametrize("words", [["tune", "digits"], ["data", "list"]], ids=" ".join)
def test_a_command_that_every_process_of_torchrun_would_repeat_is_refused(
    words, monkeypatch, tmp_path
):
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    assert refusal(call(*words, cwd=tmp_path)) == (
        "only `gcnii train` is one training run over several processes; start "
        f"`gcnii {words[0]}` without torchrun"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_bug_keeps_its_traceback(monkeypatch, tmp_path):
    monkeypatch.setattr("gcnii.data.lookup", lambda name: {}[name])
    with pytest.raises(KeyError):
        call("data", "show", "cora", cwd=tmp_path)


def test_gcnii_traceback_shows_where_a_refusal_comes_from(monkeypatch, tmp_path):
    monkeypatch.setenv("GCNII_TRACEBACK", "1")
    with pytest.raises(ValueError, match="no data set 'coar'"):
        call("data", "show", "coar", cwd=tmp_path)


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["show", "csbm"]], ids=" ".join)
def test_a_reader_that_stops_reading_causes_no_error_message(words, tmp_path):
    with start("data", *words, cwd=tmp_path, PYTHONUNBUFFERED="") as process:
        process.stdout.close()
        assert process.stderr.read() == ""
