"""gcnii data pack."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.command_line import SMALL, call, files, write_pets
from support.processes import torchrun
from support.together import graph_of

import gcnii
from gcnii.data import load
from gcnii.train.distributed.shard import pack


def test_pack_writes_one_file_that_holds_the_same_graph(tmp_path):
    write_pets(tmp_path / "pets")
    answer = call("data", "pack", "pets", "out/pets.safetensors", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("Graph(pets: 12 nodes, 12 undirected edges, ")
    assert re.search(r" → out/pets.safetensors, [\d.,]+ kB\n$", answer.out)
    assert files(tmp_path / "out") == ["pets.safetensors"]
    packed = load(tmp_path / "out" / "pets.safetensors")
    assert packed.fingerprint == load(tmp_path / "pets").fingerprint


def test_pack_takes_the_options_of_tables_and_a_packed_graph_needs_none(tmp_path):
    write_pets(tmp_path / "pets")
    words = ("data", "pack", "pets", "p.safetensors", "--directed", "--json")
    document = json.loads(call(*words, cwd=tmp_path).out)
    assert document["nodes"] == 12
    assert document["bytes"] == (tmp_path / "p.safetensors").stat().st_size
    assert load(tmp_path / "p.safetensors").directed
    answer = call("data", "check", "p.safetensors", cwd=tmp_path)
    assert (answer.code, "is valid" in answer.out) == (0, True)


def test_a_packed_graph_trains(tmp_path):
    write_pets(tmp_path / "pets")
    call("data", "pack", "pets", "pets.safetensors", cwd=tmp_path)
    answer = call("train", "./pets.safetensors", *SMALL, cwd=tmp_path)
    assert answer.code == 0, answer.err


def test_pack_refuses_before_it_reads_anything(tmp_path):
    save_file({"W": np.eye(2)}, tmp_path / "model.safetensors")
    (tmp_path / "file").touch()
    for out, sentence in (
        ("pets.npz", "a graph is saved as a .safetensors file, got pets.npz"),
        ("model.safetensors", "model.safetensors exists and gcnii did not write it; choose"),
        ("file/p.safetensors", "is a file, not a folder; choose another OUT"),
    ):
        answer = call("data", "pack", "no such graph", out, cwd=tmp_path)
        assert (answer.code, answer.out) == (2, "")
        assert sentence in answer.err
    assert files(tmp_path) == ["file", "model.safetensors"]


def test_pack_of_a_wrong_graph_writes_nothing(tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"PK")
    answer = call("data", "pack", "./bad.npz", "bad.safetensors", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("gcnii: bad.npz is not a complete .npz file")
    assert files(tmp_path) == ["bad.npz"]


def test_pack_cuts_a_graph_into_parts_that_every_command_reads(tmp_path):
    write_pets(tmp_path / "pets")
    answer = call("data", "pack", "pets", "out/pets", "--parts", "2", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[0].split() == ["part", "nodes", "edges", "halo"]
    assert re.search(r" → out/pets, 2 parts, [\d.,]+ kB\n$", answer.out)
    names = ["names.safetensors", "part-0.safetensors", "part-1.safetensors", "parts.json"]
    assert files(tmp_path / "out" / "pets") == names
    assert load(tmp_path / "out" / "pets").fingerprint == load(tmp_path / "pets").fingerprint
    assert "is valid" in call("data", "check", "out/pets", cwd=tmp_path).out
    answer = call("train", "out/pets", *SMALL, "--out", "run", cwd=tmp_path)
    assert answer.code == 0, answer.err
    assert call("predict", "run", cwd=tmp_path).code == 0


def test_parts_as_json(tmp_path):
    write_pets(tmp_path / "pets")
    answer = call("data", "pack", "pets", "out", "--parts", "3", "--json", cwd=tmp_path)
    document = json.loads(answer.out)
    assert document["folder"] == "out"
    assert sum(part["nodes"] for part in document["parts"]) == document["nodes"] == 12
    assert document["bytes"] == sum(one.stat().st_size for one in (tmp_path / "out").iterdir())


def test_parts_are_refused_before_anything_is_read(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").touch()
    for out, parts, sentence in (
        ("new", "0", "--parts must be at least 1, got 0"),
        ("p.safetensors", "2", "parts are written to a folder, got p.safetensors"),
        (
            "mine",
            "2",
            "mine exists and is not a graph in parts, for gcnii did not write 'letter'; choose",
        ),
    ):
        answer = call("data", "pack", "no such graph", out, "--parts", parts, cwd=tmp_path)
        assert (answer.code, answer.out) == (2, "")
        assert sentence in answer.err
    assert files(tmp_path) == ["mine/letter"]


@pytest.mark.slow
def test_processes_that_read_their_parts_write_the_bundle_of_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pack(replace(graph_of(n=80), classes=("cat", "dog")), tmp_path / "graph", 2)
    words = ("train", "./graph", *SMALL, "--precision", "float64")
    done = torchrun(2, "-m", "gcnii", *words, "--out", "two")
    assert done.returncode == 0, done.stderr
    alone = call(*words, "--out", "one", cwd=tmp_path)
    one, two = (gcnii.open_bundle(tmp_path / name) for name in ("one", "two"))
    for name, weight in one.weights.items():
        assert np.allclose(weight, two.weights[name], 1e-9, 1e-9), name
    assert np.isclose(one.runs[0].temperature, two.runs[0].temperature, 1e-9)
    for name in ("majority", "balanced accuracy", "cat"):
        assert lines_with(name, tmp_path / "one") == lines_with(name, tmp_path / "two")
    scores = next(line for line in alone.out.splitlines() if "macro-F1" in line)
    assert scores in done.stdout


def lines_with(word, bundle):
    return [line for line in (bundle / "card.md").read_text().splitlines() if word in line]


def test_the_name_of_a_packed_graph_does_not_decide_where_a_training_writes(tmp_path):
    write_pets(tmp_path / "pets")
    work = tmp_path / "deep" / "work"
    work.mkdir(parents=True)
    gcnii.save(replace(load(tmp_path / "pets"), name="../../../loot"), work / "g.safetensors")
    assert call("train", "./g.safetensors", *SMALL, cwd=work).code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"pets", "deep"}
    assert len(list((work / "runs").glob("_.._.._loot-*/run.json"))) == 1


def test_parts_in_the_folder_that_one_is_in_are_one_sentence(tmp_path):
    write_pets(tmp_path / "pets")
    answer = call("data", "pack", "pets", ".", "--parts", "2", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "gcnii: . is the folder that you are in; name one of the parts' own\n"


def test_a_part_of_a_graph_in_parts_is_not_replaced_by_a_graph(tmp_path):
    write_pets(tmp_path / "pets")
    call("data", "pack", "pets", "parts", "--parts", 2, cwd=tmp_path)
    before = (tmp_path / "parts" / "part-0.safetensors").read_bytes()
    answer = call("data", "pack", "pets", "parts/part-0.safetensors", cwd=tmp_path)
    assert answer.code == 2
    assert "exists and gcnii did not write it" in answer.err
    assert (tmp_path / "parts" / "part-0.safetensors").read_bytes() == before
