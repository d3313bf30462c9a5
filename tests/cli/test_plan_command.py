"""gcnii plan: what a training will take."""

import json

import pytest
from support.command_line import call, files, write_pets


def planned(cwd, *words):
    """The document of a command that succeeds and prints nothing else."""
    answer = call("plan", *words, "--json", cwd=cwd)
    assert (answer.code, answer.err) == (0, "")
    return json.loads(answer.out)


def test_a_well_known_graph_is_planned_from_counts_alone(tmp_path):
    answer = call("plan", "papers100M", "--device", "h200", "--devices", 32, cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    said = " ".join(answer.out.split())  # sentences are folded
    assert said.startswith(
        "papers100M: 111,059,956 nodes, 3,342,431,700 entries of P̃, 128 features, 172 classes "
        "(from counts alone) gcnii, 8 layers × 64, float32, memory keep, on 32 × h200 in 4 machines"
    )
    for word in ("P̃", "X", "weights, Adam", "activations kept", "work space", "halo buffers"):
        assert f"\n {word} " in answer.out
    assert "(estimated, from the mean degree)" in said
    assert "of its time hidden behind the product" in said
    assert "\nit fits: " in answer.out
    assert files(tmp_path) == []


def test_types_of_edges_are_said_not_to_be_counted(tmp_path):
    edges = write_pets(tmp_path / "pets") / "edges.csv"
    header, *rows = edges.read_text().splitlines()
    typed = [f"{row},{'ab'[i % 2]}" for i, row in enumerate(rows)]
    edges.write_text("\n".join([f"{header},type", *typed]))
    answer = call("plan", "pets", "--device", "h200", cwd=tmp_path)
    assert answer.code == 0
    assert "pets has edges of 2 types, and this is what it takes with --edge-types" in answer.err


def test_what_does_not_fit_is_said_with_what_would(tmp_path):
    words = ("ogbn-products", "--device", "h200", "--layers", 64, "--width", 512)
    answer = call("plan", *words, "--memory", "keep", cwd=tmp_path)
    assert answer.code == 0
    verdict, *ways = answer.out.partition("it does not fit: ")[2].splitlines()
    assert verdict.endswith(" GiB of 139.0 GiB; what would:")
    flags = ways[0].split()
    document = planned(tmp_path, *words[:-1], 512, *(flags if "--width" not in flags else ()))
    assert document["fits"]
    assert document["changes"] == []


def test_a_graph_at_hand_is_planned_as_train_would_train_it(tmp_path):
    document = planned(tmp_path, "digits", "--device", "h200")
    assert (document["graph"]["n"], document["graph"]["exact"]) == (1797, True)
    assert (document["network"]["layers"], document["network"]["width"]) == (64, 64)
    total = sum(size for kind, size in document["bytes"].items() if kind not in ("total", "host"))
    assert document["bytes"]["total"] == total
    spent = document["seconds"]
    assert spent["total"] == pytest.approx(sum(spent.values()) - spent["total"])


def test_the_default_of_ones_own_graph_is_that_of_train(tmp_path):
    write_pets(tmp_path / "pets")
    document = planned(tmp_path, "pets", "--device", "h200", "--width", 32)
    assert (document["network"]["layers"], document["network"]["width"]) == (8, 32)


def test_the_cpu_here_is_measured_and_metis_cuts_what_is_at_hand(tmp_path):
    pytest.importorskip("pymetis")
    document = planned(tmp_path, "digits", "--device", "cpu", "--devices", 2, "--layers", 2)
    assert document["device"]["rates"]["operations"] > 1e8
    assert document["cut"]["how"] == "metis"
    assert 0 < document["cut"]["halo"] < 1797
    assert document["seconds"]["total"] > 0


def test_catalog_names_without_files_are_planned_from_their_counts(tmp_path, monkeypatch):
    monkeypatch.setenv("GCNII_MIRROR", "")
    monkeypatch.setenv("GCNII_DATA", str(tmp_path / "empty"))
    document = planned(tmp_path, "cora", "--device", "h200")
    assert (document["graph"]["entries"], document["graph"]["exact"]) == (13_264, False)
    assert (document["network"]["layers"], document["network"]["width"]) == (64, 64)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("nothing", "no graph 'nothing'; give a name from `gcnii data list`, the path of a graph"),
        (
            "cora --model gat",
            "plans are made of gcnii, gcnii-star, gcnii-star-printed, gcnii-plus, got 'gat'; "
            "choose one of them",
        ),
        (
            "cora --model gcni",
            "plans are made of gcnii, gcnii-star, gcnii-star-printed, gcnii-plus, got 'gcni'; "
            "did you mean 'gcnii'?",
        ),
        ("cora --layers 0", "--layers must be at least 1, got 0"),
        ("cora --devices 0", "--devices must be at least 1, got 0"),
        ("cora --devices 6 --machines 4", "--devices must be the same number on each machine, got"),
        ("cora --device tpu", "device must be auto, cpu or h200, got 'tpu'"),
        ("cora --memory much", "memory must be auto, keep, recompute or offload, got 'much'"),
        ("cora --precision int8", "precision must be one of float32, float64, tf32, bfloat16"),
        ("reddit --device h200 --devices 300000", "a graph of 232,965 nodes cannot be cut over"),
        ("digits --device cpu --memory offload", "memory offload is for GPUs"),
    ],
)
def test_what_cannot_be_planned_is_said_in_a_sentence(words, sentence, tmp_path):
    answer = call("plan", *words.split(), cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    (told,) = answer.err.splitlines()
    assert told.startswith(f"gcnii: {sentence}")
