"""gcnii bench, on graphs that take no time."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import torch
from support.command_line import call, files

from gcnii_paper.bench import limits, measure
from gcnii_paper.bench.cases import CASES, BenchCase, Line, Named, Shape
from gcnii_paper.cli import bench as command

pytestmark = pytest.mark.slow

SHAPE = Shape(n=60, entries=400, d=12, k=3)
SMALL = {"layers": 2, "width": 8}
WHO = ("gcnii", "pyg", "authors")


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    monkeypatch.setattr(limits, "COPIED", {"cpu": 1 << 20, "cuda": 1 << 20})
    monkeypatch.setattr(limits, "SIDE", {"cpu": 64, "cuda": 64})
    lines = tuple(Line(who=who, graph=SHAPE, settings=SMALL) for who in WHO)
    put(monkeypatch, "cora-1", *lines)


def put(monkeypatch, name, *lines, **more):
    """Let the case of that name have these lines."""
    monkeypatch.setitem(
        CASES, name, BenchCase(name=name, title="small", cpu=lines, cuda=lines, **more)
    )


def measured(cwd, *words):
    """The documents of a command that succeeds and prints nothing else."""
    answer = call("bench", *words, "--json", "--device", "cpu", cwd=cwd)
    assert (answer.code, answer.err) == (0, "")
    return json.loads(answer.out)


def test_every_implementation_is_timed_once_per_round(tmp_path):
    (record,) = measured(tmp_path, "cora-1", "--rounds", 3)
    assert [line["who"] for line in record["lines"]] == list(WHO)
    for line in record["lines"]:
        assert len(line["seconds"]) == 3
        assert line["best"] == min(line["seconds"])
        assert line["median"] == sorted(line["seconds"])[1]
        assert line["ratio"] == pytest.approx(line["best"] / record["lines"][0]["best"])
        assert line["floor"]["bytes"] == 13 * 60 * 8 * 2 * 4


def test_the_document_names_command_versions_and_hardware(tmp_path):
    (record,) = measured(tmp_path, "--rounds", 1)
    assert record["command"] == "gcnii bench cora-1 --device cpu --rounds 1"
    assert record["versions"]["torch"] == torch.__version__
    assert record["threads"] == torch.get_num_threads()
    assert record["graph"]["name"] == "a drawn graph of 60 nodes"
    assert record["rates"]["bandwidth"] > 0
    assert record["day"] == datetime.now(UTC).date().isoformat()


def test_the_table_has_one_row_per_implementation_with_its_ratio_and_distance_to_the_floor(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "200")
    answer = call("bench", "--rounds", 1, "--device", "cpu", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    title, _, *lines = answer.out.splitlines()
    assert title.startswith("cora-1: small; a drawn graph of 60 nodes; cpu, ")
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines[:3]]
    assert [row[0] for row in rows] == [
        "here",
        "PyG's GCN2Conv on CSR, eager",
        "the authors' layer, re-implemented",
    ]
    assert rows[0][7] == "1.00"
    assert all(float(row[-1]) > 0 for row in rows)
    assert files(tmp_path) == []


def test_out_is_a_folder_with_one_document_per_case(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "commit", lambda: "1234567")
    put(
        monkeypatch,
        "depth",
        *(Line(who="gcnii", graph=SHAPE, settings={"layers": n, "width": 8}) for n in (2, 4)),
    )
    records = measured(tmp_path, "cora-1", "depth", "--rounds", 1, "--out", "new/folder")
    assert files(tmp_path) == ["new/folder/cora-1-cpu.json", "new/folder/depth-cpu.json"]
    assert [json.loads((tmp_path / path).read_text("utf-8")) for path in files(tmp_path)] == records


@pytest.mark.parametrize(
    ("commit", "sentence"),
    [
        (
            None,
            "--out needs the commit that is measured, and this code has none: run it in a clone",
        ),
        (
            "1234567-dirty",
            "--out needs code that is committed, and files in src/ differ from 1234567:",
        ),
    ],
)
def test_a_record_of_code_that_is_not_committed_is_refused_before_the_work(
    commit, sentence, tmp_path, monkeypatch
):
    monkeypatch.setattr(command, "commit", lambda: commit)
    monkeypatch.setattr(measure, "measure_rates", None)  # measuring would fail
    answer = call("bench", "--out", "new", "--device", "cpu", cwd=tmp_path)
    assert (answer.code, answer.out, files(tmp_path)) == (2, "", [])
    (told,) = answer.err.splitlines()
    assert told.startswith(f"gcnii: {sentence}")


def test_the_ratio_is_per_layer_where_depths_are_compared(tmp_path, monkeypatch):
    lines = [Line(who="gcnii", graph=SHAPE, settings={"layers": n, "width": 8}) for n in (2, 6)]
    put(monkeypatch, "depth", *lines)
    (record,) = measured(tmp_path, "depth", "--rounds", 1)
    shallow, deep = record["lines"]
    assert deep["ratio"] == pytest.approx(deep["best"] / 6 / (shallow["best"] / 2))


def test_the_ratio_is_per_run_where_replicas_are_trained_at_once(tmp_path, monkeypatch):
    put(
        monkeypatch,
        "cora-100",
        Line(who="gcnii", graph=SHAPE, settings=SMALL, replicas=3),
        Line(who="authors", graph=SHAPE, settings=SMALL),
    )
    (record,) = measured(tmp_path, "cora-100", "--rounds", 1)
    ours, theirs = record["lines"]
    assert theirs["ratio"] == pytest.approx(3 * theirs["best"] / ours["best"])


def test_an_unknown_precision_is_left_out_with_a_note(tmp_path, monkeypatch):
    lines = [
        Line(who="gcnii", graph=SHAPE, settings=SMALL, precision=name)
        for name in ("float32", "float8")
    ]
    put(monkeypatch, "cora-1", *lines)
    (record,) = measured(tmp_path, "--rounds", 1)
    assert [line["precision"] for line in record["lines"]] == ["float32"]
    (note,) = record["notes"]
    assert note.startswith("gcnii in float8 left out: precision must be one of float32, ")


def test_without_pyg_the_others_are_measured_and_a_note_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "find_spec", lambda name: None)
    (record,) = measured(tmp_path, "--rounds", 1)
    assert [line["who"] for line in record["lines"]] == ["gcnii", "authors"]
    assert record["notes"] == [
        "pyg in float32 left out: PyG is not installed: pip install 'gcnii[pyg]'"
    ]


@pytest.mark.parametrize("together", [True, False])
def test_an_implementation_that_runs_out_of_memory_does_not_end_the_case(
    tmp_path, monkeypatch, together
):
    make = measure.make_runner

    def scarce(line, scene, device):
        if line.who == "pyg":
            raise torch.OutOfMemoryError
        return make(line, scene, device)

    monkeypatch.setattr(measure, "make_runner", scarce)
    put(monkeypatch, "products", *CASES["cora-1"].cpu, together=together)
    (record,) = measured(tmp_path, "products", "--rounds", 2)
    assert [(line["failed"], len(line["seconds"])) for line in record["lines"]] == [
        ("", 2),
        ("out of memory", 0),
        ("", 2),
    ]
    assert (
        "out of memory"
        in call("bench", "products", "--rounds", 1, "--device", "cpu", cwd=tmp_path).out
    )


def test_other_code_that_fails_says_why_and_does_not_end_the_case(tmp_path, monkeypatch):
    def broken(who, *rest):
        raise RuntimeError("no graph of this\nand more")

    monkeypatch.setattr(measure, "BaselineTraining", broken)
    (record,) = measured(tmp_path, "--rounds", 2)
    assert [(line["failed"], len(line["seconds"])) for line in record["lines"]] == [
        ("", 2),
        *[("failed: no graph of this", 0)] * 2,
    ]


def test_what_needs_a_gpu_is_left_out_on_a_cpu_with_a_note(tmp_path, monkeypatch):
    lines = [Line(who=who, graph=SHAPE, settings=SMALL) for who in ("gcnii", "pyg-graph")]
    put(monkeypatch, "cora-1", *lines)
    (record,) = measured(tmp_path, "--rounds", 1)
    assert [line["who"] for line in record["lines"]] == ["gcnii"]
    assert record["notes"] == ["pyg-graph in float32 left out: it needs a CUDA device"]


def test_an_end_to_end_case_reports_scores(tmp_path, monkeypatch):
    settings = {"layers": 2, "width": 8, "epochs": 2}
    line = Line(who="end-to-end", graph=Named("digits"), settings=settings, replicas=2)
    put(monkeypatch, "table2-cora", line, per=("replicas",), rounds=1, warm_up=0)
    (record,) = measured(tmp_path, "table2-cora")
    (found,) = record["lines"]
    assert (found["runs"], found["epochs_mean"], found["floor"]) == (2, 2, None)
    assert 0 <= found["test_mean"] <= 1
    assert (
        "2 runs, 2 epochs each on average: test "
        in call("bench", "table2-cora", "--device", "cpu", cwd=tmp_path).out
    )


def test_a_first_training_is_measured_as_a_command(tmp_path, monkeypatch):
    settings = {"layers": 2, "epochs": 2}
    line = Line(who="command", graph=Named("digits"), settings=settings)
    put(monkeypatch, "first", line, per=("replicas",), rounds=1, warm_up=0)
    (record,) = measured(tmp_path, "first")
    (found,) = record["lines"]
    assert (len(found["seconds"]), found["floor"]) == (1, None)
    assert found["seconds"][0] > 0.5  # it imports torch


def test_a_prediction_is_measured_as_a_process_with_all_that_it_holds(tmp_path, monkeypatch):
    settings = SMALL | {"epochs": 1}
    line = Line(who="predict", graph=replace(SHAPE, n=600, entries=4000), settings=settings)
    put(monkeypatch, "predict-memory", line, per=("replicas",), rounds=1, warm_up=0)
    (record,) = measured(tmp_path, "predict-memory", "--scale", 0.5)
    (found,) = record["lines"]
    assert record["command"] == "gcnii bench predict-memory --device cpu --rounds 1 --scale 0.5"
    assert record["graph"]["n"] == 300
    assert 100 << 20 < found["peak_bytes"] < 1 << 30  # torch is in it
    assert (len(found["seconds"]), found["floor"]) == (1, None)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("cora-2", "no case 'cora-2'; did you mean 'cora-1'? known: cora-1, cora-100, "),
        ("--rounds 0", "--rounds must be at least 1, got 0"),
        ("products --device cpu", "products needs a CUDA device: 2.4 million nodes, "),
        (
            "cora-1 table2-cora --device cpu",
            "table2-cora needs a CUDA device: on a CPU a hundred runs take an hour; ",
        ),
        ("--device tpu", "device must be auto, cpu or cuda, got 'tpu'"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_the_work(words, sentence, tmp_path):
    answer = call("bench", *words.split(), cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    (told,) = answer.err.splitlines()
    assert told.startswith(f"gcnii: {sentence}")
