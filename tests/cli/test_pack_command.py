"""gcnii data pack."""

import json

import numpy as np
from safetensors.numpy import save_file
from support.command_line import SMALL, call, files, write_pets

from gcnii.data import load


def test_pack_writes_one_file_that_holds_the_same_graph(tmp_path):
    write_pets(tmp_path / "pets")
    answer = call("data", "pack", "pets", "out/pets.safetensors", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("Graph(pets: 12 nodes, 12 undirected edges, ")
    assert answer.out.endswith(" → out/pets.safetensors, 0.0 MB\n")
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
        ("model.safetensors", "model.safetensors exists and is not a saved graph"),
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
