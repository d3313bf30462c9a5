"""gcnii predict: who predicts, for which nodes, and what reaches the file."""

import json
import re

import pandas as pd
import pytest
from support.command_line import SMALL, Answer, call, files, write_pets

NEW = {
    "nodes.csv": "id,x0,x1\n007,1.0,0.3\nrex,0.0,0.2\n",
    "edges.csv": "source,target\n007,pet1\nrex,pet0\nrex,007\n",
}


def read(text_or_path):
    return pd.read_csv(text_or_path, dtype=str, keep_default_na=False)


def write(folder, contents):
    folder.mkdir(exist_ok=True)
    for name, text in contents.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with pets, and a bundle of three runs on its one split."""
    folder = tmp_path_factory.mktemp("place")
    write_pets(folder / "pets")
    assert call("train", "pets", *SMALL, "--runs", 3, "--out", "three", cwd=folder).code == 0
    return folder


def test_the_table_says_what_is_known_and_who_trained(place, tmp_path):
    call("predict", place / "three", "--out", tmp_path / "labels.csv", cwd=place)
    found, given = read(tmp_path / "labels.csv"), read(place / "pets" / "nodes.csv")
    assert list(found["known"]) == list(given["label"])
    assert list(found["split"]) == list(given["split"])


def test_only_unlabelled_nodes_are_written(place):
    everyone = json.loads(call("predict", "three", "--json", cwd=place).out)["labels"]
    answer = call("predict", "three", "--json", "--only", "unlabelled", cwd=place)
    found = json.loads(answer.out)
    assert found["nodes"] == 2
    assert found["labels"] == [row for row in everyone if row["known"] is None]


def test_runs_on_one_split_predict_together_or_the_best_alone(place, tmp_path):
    out = tmp_path / "labels.csv"
    answer = call("predict", "three", "--out", out, cwd=place)
    assert answer == Answer(0, f"12 nodes labelled by the mean of 3 runs: {out}\n", "")
    alone = call("predict", "three", "--no-ensemble", "--json", cwd=place)
    assert len(json.loads(alone.out)["seeds"]) == 1
    together = json.loads(call("predict", "three", "--ensemble", "--json", cwd=place).out)
    assert together["seeds"] == [0, 1, 2]
    assert together["labels"] != json.loads(alone.out)["labels"]


def test_runs_on_different_splits_are_not_mixed_and_that_is_said(real_data, tmp_path):
    real_data("cornell")
    call("train", "cornell", *SMALL, "--runs", 3, "--out", "b", cwd=tmp_path)
    answer = call("predict", "b", "--json", cwd=tmp_path)
    assert len(json.loads(answer.out)["seeds"]) == 1
    assert answer.err.startswith("gcnii: the 3 runs were trained on 3 splits, which are never mix")
    assert answer.err.count("\n") == 1
    assert call("predict", "b", "--json", "--no-ensemble", cwd=tmp_path) == (0, answer.out, "")


@pytest.fixture
def formulas(tmp_path):
    """A bundle of a graph whose nodes and classes have dangerous names, and a harmless number."""
    write_pets(tmp_path / "pets")
    for name, old, new in (("nodes.csv", "dog", "=dog()"), ("nodes.csv", "cat", "-5")):
        path = tmp_path / "pets" / name
        path.write_text(path.read_text().replace(old, new))
    for name in ("nodes.csv", "edges.csv"):
        path = tmp_path / "pets" / name
        text = re.sub(r"pet0\b", "@pet", path.read_text())
        path.write_text(re.sub(r"pet1\b", "+3.2", text))
    assert call("train", "pets", *SMALL, "--out", "b", cwd=tmp_path).code == 0
    return tmp_path


def test_what_a_spreadsheet_would_run_is_made_harmless_and_counted(formulas):
    answer = call("predict", "b", "--out", "labels.csv", cwd=formulas)
    found = read(formulas / "labels.csv")
    assert list(found["node"][:2]) == ["'@pet", "+3.2"]
    assert set(found["known"]) == {"", "-5", "'=dog()"}
    changed = sum(found[name].str.startswith("'").sum() for name in ("node", "label", "known"))
    sentence = f"{changed} cells that a spreadsheet would run as formulas now begin with '; --raw"
    assert answer.err == f"gcnii: {sentence} leaves them as they are\n"
    assert list(found)[-2:] == ["p(-5)", "p(=dog())"]  # begin with a letter


def test_raw_and_json_and_parquet_keep_the_names(formulas):
    answer = call("predict", "b", "--raw", "--out", "labels.csv", cwd=formulas)
    assert (answer.err, read(formulas / "labels.csv")["node"][0]) == ("", "@pet")
    answer = call("predict", "b", "--json", cwd=formulas)
    assert (answer.err, json.loads(answer.out)["labels"][0]["node"]) == ("", "@pet")
    pytest.importorskip("pyarrow")
    answer = call("predict", "b", "--out", "labels.parquet", cwd=formulas)
    found = pd.read_parquet(formulas / "labels.parquet")
    assert (answer.err, found["node"][0], found["known"][0]) == ("", "@pet", "=dog()")


def test_new_nodes_are_labelled_on_the_graph_of_the_training(place, tmp_path):
    new, out = write(tmp_path / "new", NEW), tmp_path / "labels.csv"
    answer = call("predict", "three", "--add", new, "--out", out, cwd=place)
    assert answer == Answer(0, f"2 nodes labelled by the mean of 3 runs: {out}\n", "")
    found = read(out)
    assert list(found["node"]) == ["007", "rex"]
    assert set(found["label"]) <= {"cat", "dog"}


def test_an_edge_to_nobody_is_refused_with_its_row(place, tmp_path):
    edges = "source,target\n007,pet1\n7,pet0\n"
    new = write(tmp_path / "new", NEW | {"edges.csv": edges})
    answer = call("predict", "three", "--add", new, "--out", tmp_path / "labels.csv", cwd=place)
    sentence = "row 3 of edges.csv names the node '7', which the nodes do not have"
    assert answer == Answer(2, "", f"gcnii: {sentence}\n")
    assert files(tmp_path) == ["new/edges.csv", "new/nodes.csv"]


def test_new_nodes_need_the_graph_of_the_training_unchanged_wherever_it_is(place, tmp_path):
    new, moved = write(tmp_path / "new", NEW), write_pets(tmp_path / "moved")
    here = call("predict", "three", "--add", new, cwd=place)
    assert call("predict", "three", "--add", new, "--graph", moved, cwd=place) == here
    (moved / "edges.csv").write_text("source,target\n")
    answer = call("predict", "three", "--add", new, "--graph", moved, cwd=place)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "gcnii: new nodes join the graph that the model was trained on, but moved has changed "
        "since, or is another graph; restore it, or label a whole graph (predict)\n"
    )


def test_a_word_for_only_that_is_unknown_is_refused(place):
    answer = call("predict", "three", "--only", "train", cwd=place)
    assert (answer.code, answer.out) == (2, "")
    assert "unlabelled" in answer.err


def test_sets_of_a_coverage_are_a_column(place):
    (place / "many").mkdir()
    rows = [f"{i},{i % 2},{'train' if i < 20 else 'val' if i < 60 else 'test'}" for i in range(80)]
    text = "id,label,split,x0\n" + "".join(f"{row},{i % 2 + i % 3}\n" for i, row in enumerate(rows))
    edges = "source,target\n" + "".join(f"{i},{(i + 2) % 80}\n" for i in range(80))
    write(place / "many", {"nodes.csv": text, "edges.csv": edges})
    assert call("train", "many", *SMALL, "--out", "covered", cwd=place).code == 0
    found = json.loads(call("predict", "covered", "--coverage", 0.9, "--json", cwd=place).out)
    assert (found["coverage"], found["sets"]) == (0.9, "lac")
    assert {row["set"] for row in found["labels"]} <= {"", "0", "1", "0;1"}
    adaptive = call("predict", "covered", "--coverage", 0.9, "--sets", "aps", cwd=place)
    assert adaptive.out.startswith("node,label,probability,known,split,set,p(0),p(1)\n")


@pytest.mark.parametrize("coverage", ["0", "1.5", "-0.1"])
def test_a_coverage_that_cannot_be_is_refused(place, coverage):
    answer = call("predict", "three", f"--coverage={coverage}", cwd=place)
    assert (answer.code, answer.out) == (2, "")
    assert "coverage must be a number between 0 and 1, such as 0.9" in answer.err


def test_a_kind_of_sets_is_refused_for_intervals(place):
    trained = call("train", "pets", *SMALL, "--target", "x0", "--out", "sizes", cwd=place)
    assert trained.code == 0
    answer = call("predict", "sizes", "--coverage", 0.9, "--sets", "aps", cwd=place)
    assert (answer.code, answer.out) == (2, "")
    assert "sets are for classes, but this model predicts numbers (x0)" in answer.err


def test_a_training_can_leave_its_probabilities_uncalibrated(place):
    answer = call(
        "train", "pets", *SMALL, "--calibrate", "none", "--out", "raw", "--json", cwd=place
    )
    assert "temperature" not in json.loads(answer.out)["runs"][0]


def test_new_nodes_join_a_graph_that_has_moved_where_the_flag_says(place, tmp_path):
    write_pets(tmp_path / "pets")
    assert call("train", "pets", *SMALL, "--out", "one", cwd=tmp_path).code == 0
    new = write(tmp_path / "new", NEW)
    before = call("predict", "one", "--add", new, cwd=tmp_path)
    (tmp_path / "pets").rename(tmp_path / "moved")
    answer = call("predict", "one", "--add", new, cwd=tmp_path)
    assert answer.code == 2
    assert "the training graph is not at" in answer.err
    assert "say where it is with --graph" in answer.err
    assert call("predict", "one", "--add", new, "--graph", "moved", cwd=tmp_path) == before


def test_nodes_without_links_are_counted_and_marked(place, tmp_path):
    new = write(tmp_path / "new", {**NEW, "edges.csv": "source,target\nrex,pet0\n"})
    answer = call("predict", "three", "--add", new, "--json", cwd=place)
    assert "1 node has no edges, unlike the nodes that the model was trained on" in answer.err
    document = json.loads(answer.out)
    assert document["basis"] == {"features": 1, "model": 1}
    assert [row["basis"] for row in document["labels"]] == ["features", "model"]
