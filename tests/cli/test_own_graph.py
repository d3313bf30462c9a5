"""From two CSV files to labels: data check, train, predict."""

import csv
import importlib.util
import json
import os
import shutil
from dataclasses import replace

import pandas as pd
import pytest
from support.command_line import SMALL, Answer, call, files, write_pets

from gcnii import fit, load, open_bundle
from gcnii.train.presets import first_point


def rows(text):
    """The lines of a CSV text, without its header."""
    return list(csv.reader(text.splitlines()))[1:]


def test_a_graph_all_of_whose_weights_are_0_is_checked_without_a_warning(tmp_path):
    write_pets(tmp_path / "pets")
    path = tmp_path / "pets" / "edges.csv"
    head, *lines = path.read_text().splitlines()
    path.write_text("\n".join([f"{head},weight", *(f"{line},0" for line in lines)]))
    answer = call("data", "check", "pets", "--json", cwd=tmp_path)
    assert (answer.code, answer.err, json.loads(answer.out)["edges"]) == (0, "", 0)


def test_check_prints_what_was_read(home, tmp_path):
    answer = call("data", "check", home / "pets", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert [line.rstrip() for line in answer.out.splitlines()] == [
        "Graph(pets: 12 nodes, 12 undirected edges, 2 features, 2 classes) is valid",
        *(
            "  nodes: 12",
            "  edges: 12",
            "  features: 2",
            "  classes: cat, dog",
            "  self-loops: 0",
            "  labelled: 10",
        ),
        *("  train: 6", "  val: 2", "  test: 2"),
        "",
        " column  taken for",
        " x0      binary     median 0.5",
        " x1      numeric    median 1.05",
    ]


def test_check_lists_all_problems_and_what_the_columns_are_taken_for(home, tmp_path):
    folder = write_pets(tmp_path / "pets")
    nodes = (folder / "nodes.csv").read_text()
    nodes = nodes.replace("pet1,", "pet2,").replace("train", "tarin", 1)
    (folder / "nodes.csv").write_text(nodes)
    answer = call("data", "check", folder, cwd=tmp_path)
    assert answer.code == 2
    assert "x1      numeric" in answer.out
    assert [line.split(":")[0] for line in answer.err.splitlines()] == ["gcnii"] * 4
    assert "row 4 of nodes.csv repeats the id 'pet2' of row 3 of nodes.csv" in answer.err
    problems = json.loads(call("data", "check", folder, "--json", cwd=tmp_path).out)["problems"]
    assert len(problems) == 4


def test_check_prints_json(home, tmp_path):
    facts = json.loads(
        call("data", "check", home / "pets", "--directed", "--json", cwd=tmp_path).out
    )
    assert (facts["nodes"], facts["classes"], facts["train"]) == (12, ["cat", "dog"], 6)


def test_a_graph_without_labels_is_valid_but_cannot_be_trained_on(tmp_path):
    folder = write_pets(tmp_path / "pets", labels=False)
    answer = call("data", "check", folder, "--json", cwd=tmp_path)
    assert json.loads(answer.out)["classes"] == []
    assert answer.err == ("gcnii: no node has a label: you can predict on this graph, not train\n")
    answer = call("train", folder, cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("gcnii: no node of pets has a label; label some nodes, or say")


def test_predict_writes_the_users_names_and_probabilities(home, bundle, tmp_path):
    answer = call("predict", bundle, "--out", "new/labels.csv", cwd=tmp_path)
    assert answer == Answer(0, "12 nodes labelled: new/labels.csv\n", "")
    text = (tmp_path / "new/labels.csv").read_text()
    assert text.splitlines()[0] == "node,label,probability,known,split,p(cat),p(dog)"
    assert [row[0] for row in rows(text)] == [f"pet{i}" for i in range(12)]
    for _, label, probability, _, _, cat, dog in rows(text):
        assert label == ("cat" if float(cat) > float(dog) else "dog")
        assert float(probability) == max(float(cat), float(dog))
        assert float(cat) + float(dog) == pytest.approx(1, abs=2e-6)
    assert files(tmp_path) == ["new/labels.csv"]


def test_predict_without_a_file_prints_the_same_table(bundle, tmp_path):
    call("predict", bundle, "--out", "labels.csv", cwd=tmp_path)
    assert call("predict", bundle, cwd=tmp_path) == (0, (tmp_path / "labels.csv").read_text(), "")


def test_predict_in_json_holds_the_labels_or_says_where_they_are(bundle, tmp_path):
    here = json.loads(call("predict", bundle, "--json", cwd=tmp_path).out)
    there = json.loads(call("predict", bundle, "--json", "--out", "labels.csv", cwd=tmp_path).out)
    about = {"graph": "pets", "bundle": str(bundle), "nodes": 12, "split": 0, "seeds": [0]}
    assert there == about | {"out": "labels.csv"}
    shown = [["" if cell is None else str(cell) for cell in row.values()] for row in here["labels"]]
    assert shown == rows((tmp_path / "labels.csv").read_text())


def test_predict_labels_another_graph_with_the_same_features(bundle, tmp_path):
    other = write_pets(tmp_path / "strangers", labels=False)
    answer = call("predict", bundle, "--graph", other, cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert {row[1] for row in rows(answer.out)} <= {"cat", "dog"}


def test_predict_notices_that_its_graph_has_changed(home, tmp_path):
    folder = write_pets(tmp_path / "pets")
    call("train", folder, "--epochs", 1, "--layers", 2, "--out", "bundle", cwd=tmp_path)
    (folder / "edges.csv").write_text("source,target\n")
    answer = call("predict", "bundle", cwd=tmp_path)
    changed, alone = answer.err.splitlines()
    assert changed == "gcnii: pets has changed since the model was trained"
    assert alone.startswith("gcnii: 12 nodes have no edges, and the training graph, which")
    assert len(rows(answer.out)) == 12
    assert call("predict", "bundle", "--quiet", cwd=tmp_path) == answer._replace(err="")


def test_a_bundle_of_a_graph_made_in_python_asks_for_a_graph(home, tmp_path):
    graph = replace(load(home / "pets"), source="")
    fit(graph, layers=2, width=8, epochs=1, device="cpu").save(tmp_path / "bundle")
    answer = call("predict", "bundle", cwd=tmp_path)
    sentence = "bundle was trained on a graph made in Python; say which graph to label with --graph"
    assert answer == Answer(2, "", f"gcnii: {sentence}\n")


def test_a_graph_with_other_features_is_refused(bundle, tmp_path):
    other = write_pets(tmp_path / "strangers", features=5)
    answer = call("predict", bundle, "--graph", other, "--out", "labels.csv", cwd=tmp_path)
    sentence = "nodes.csv has 'x2', 'x3', 'x4' among its feature columns; a model takes the columns"
    assert answer.err == f"gcnii: {sentence} that it was trained on, in any order\n"
    assert (answer.code, answer.out) == (2, "")
    assert not (tmp_path / "labels.csv").exists()


def test_predict_refuses_a_file_of_an_unknown_format_before_any_work(tmp_path):
    answer = call("predict", "no-bundle", "--out", "new/labels.txt", cwd=tmp_path)
    want = "--out must end in .csv or .parquet, or be duckdb://FILE/TABLE, got labels.txt"
    assert answer == Answer(2, "", f"gcnii: {want}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="pyarrow is installed")
def test_parquet_without_pyarrow_says_what_to_do(bundle, tmp_path):
    answer = call("predict", bundle, "--out", "labels.parquet", cwd=tmp_path)
    sentence = "writing .parquet needs pyarrow: pip install 'gcnii[parquet]', or use a .csv file"
    assert answer == Answer(2, "", f"gcnii: {sentence}\n")
    assert files(tmp_path) == []


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
def test_parquet_holds_the_same_table(bundle, tmp_path):
    import pandas as pd

    call("predict", bundle, "--out", "labels.parquet", cwd=tmp_path)
    assert list(pd.read_parquet(tmp_path / "labels.parquet").columns) == [
        *("node", "label", "probability", "known", "split"),
        *("p(cat)", "p(dog)"),
    ]


def test_a_directed_graph_is_trained_and_predicted_as_directed(tmp_path):
    folder = write_pets(tmp_path / "pets")
    small = ("--layers", "2", "--width", "8", "--epochs", "3")
    call(
        "train",
        folder,
        "--directed",
        "--direction",
        "out",
        "--out",
        "directed",
        *small,
        cwd=tmp_path,
    )
    assert json.loads((tmp_path / "directed/run.json").read_text())["graph"]["directed"]
    answer = call("predict", "directed", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")  # nothing says that the graph has changed
    call("train", folder, "--out", "undirected", *small, cwd=tmp_path)
    assert call("predict", "undirected", cwd=tmp_path).out != answer.out


def test_a_folder_whose_name_is_not_utf_8_has_a_bundle_whose_name_is(tmp_path):
    folder = write_pets(tmp_path / os.fsdecode(b"pets \xff"))
    assert call("train", folder, *SMALL, cwd=tmp_path).code == 0
    (bundle,) = (tmp_path / "runs").iterdir()
    assert bundle.name.startswith("pets-gcnii-")
    assert open_bundle(bundle).origin.name == "pets"
    assert call("predict", bundle, "--json", cwd=tmp_path).code == 0


def swapped(folder, *columns):
    """The same nodes, with the columns of nodes.csv in this order."""
    table = pd.read_csv(folder / "nodes.csv")
    table[list(columns)].to_csv(folder / "nodes.csv", index=False)
    return folder


def test_columns_are_matched_by_name_whatever_their_order(bundle, tmp_path):
    known = call("predict", bundle, "--graph", write_pets(tmp_path / "pets"), cwd=tmp_path)
    other = swapped(write_pets(tmp_path / "other"), "x1", "label", "id", "split", "x0")
    assert call("predict", bundle, "--graph", other, cwd=tmp_path) == known


def test_renamed_columns_are_refused_by_name(bundle, tmp_path):
    other = write_pets(tmp_path / "other")
    text = (other / "nodes.csv").read_text()
    (other / "nodes.csv").write_text(text.replace("x1", "height"))
    answer = call("predict", bundle, "--graph", other, cwd=tmp_path)
    assert answer.code == 2
    assert answer.err.startswith("gcnii: nodes.csv lacks 'x1' and has 'height' among its feature")


def test_a_bundle_from_before_columns_had_names_warns(bundle, tmp_path):
    old = shutil.copytree(bundle, tmp_path / "old")
    record = json.loads((old / "run.json").read_text())
    del record["graph"]["features"], record["graph"]["columns"], record["seal"]
    (old / "run.json").write_text(json.dumps(record))
    answer = call("predict", old, "--graph", write_pets(tmp_path / "pets"), cwd=tmp_path)
    assert answer.code == 0
    assert "the bundle does not name its feature columns, so they are matched" in answer.err


def test_tables_as_pandas_writes_them_are_read_as_they_are_meant(bundle, tmp_path):
    known = call("predict", bundle, "--graph", write_pets(tmp_path / "pets"), cwd=tmp_path)
    other = write_pets(tmp_path / "indexed")
    for name in ("nodes.csv", "edges.csv"):
        pd.read_csv(other / name).to_csv(other / name)  # with its index
    answer = call("predict", bundle, "--graph", other, cwd=tmp_path)
    assert (answer.code, answer.out) == (0, known.out)
    assert "nodes.csv: the nameless first column is left out" in answer.err
    assert "edges.csv: the nameless first column is left out" in answer.err


def test_labels_that_are_all_alike_are_refused(tmp_path):
    folder = write_pets(tmp_path / "pets")
    text = (folder / "nodes.csv").read_text()
    (folder / "nodes.csv").write_text(text.replace(",cat,", ",dog,"))
    answer = call("train", folder, *SMALL, cwd=tmp_path)
    assert (answer.code, files(tmp_path / "runs")) == (2, [])
    assert "all labels of pets are the same; a classifier needs two classes or more" in answer.err


def test_a_word_that_means_unknown_can_be_named(tmp_path):
    folder = write_pets(tmp_path / "pets")
    text = (folder / "nodes.csv").read_text()
    (folder / "nodes.csv").write_text(text.replace(",,", ",NA,"))
    facts = json.loads(call("data", "check", folder, "--json", cwd=tmp_path).out)
    assert (facts["classes"], facts["labelled"]) == (["NA", "cat", "dog"], 12)
    answer = call("data", "check", folder, "--unknown", "NA", "--json", cwd=tmp_path)
    facts = json.loads(answer.out)
    assert (facts["classes"], facts["labelled"], answer.err) == (["cat", "dog"], 10, "")


def test_payments_both_ways_can_be_added_up(tmp_path):
    folder = write_pets(tmp_path / "pets")
    (folder / "edges.csv").write_text("source,target,weight\npet0,pet1,5\npet1,pet0,7\n")
    answer = call("data", "check", folder, cwd=tmp_path)
    assert answer.code == 2
    assert "--directed" in answer.out + answer.err
    assert "--duplicates" in answer.out + answer.err
    answer = call("data", "check", folder, "--duplicates", "add", cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")


def test_two_graphs_of_one_name_have_bundles_of_their_own(tmp_path):
    write_pets(tmp_path / "a" / "pets")
    write_pets(tmp_path / "b" / "pets", features=3)
    call("train", "a/pets", *SMALL, cwd=tmp_path)
    alone = call("predict", "runs/pets-gcnii", cwd=tmp_path)
    assert (alone.code, alone.err) == (0, "")
    call("train", "b/pets", *SMALL, cwd=tmp_path)
    first, second = sorted((tmp_path / "runs").iterdir())
    answer = call("predict", "runs/pets-gcnii", cwd=tmp_path)
    names = f"runs/{first.name}, runs/{second.name}"
    sentence = f"2 bundles have names that begin like this; give one of {names}"
    assert answer == Answer(2, "", f"gcnii: {sentence}\n")


def test_one_model_has_the_settings_of_its_point_and_its_bundle_says_so(tmp_path):
    write_pets(tmp_path / "pets")  # 6 training nodes, 2 features
    own = ("--alpha", "0.3", "--epochs", "5")
    answer = call("train", "pets", *own, "--out", "bundle", cwd=tmp_path)
    assert answer.code == 0, answer.err
    settings = json.loads((tmp_path / "bundle" / "run.json").read_text())["settings"]
    assert settings == settings | first_point("gcnii").settings | {"alpha": 0.3, "epochs": 5}
    assert (settings["patience"], settings["scale"], settings["direction"]) == (
        60,
        "standard",
        "out",
    )


OUT = ("train", "pets", *SMALL, "--out", "bundle")


def test_out_that_holds_another_training_is_refused_and_kept(tmp_path):
    write_pets(tmp_path / "pets")
    assert call(*OUT, cwd=tmp_path).code == 0
    assert call(*OUT, "--runs", 2, cwd=tmp_path).code == 0  # the same graph and settings
    kept = (tmp_path / "bundle" / "run.json").read_bytes()
    answer = call(*OUT, "--alpha", "0.3", cwd=tmp_path)
    assert answer.code == 2
    assert "bundle holds the bundle of another training run (gcnii, 2 layers, on pets" in answer.err
    assert (tmp_path / "bundle" / "run.json").read_bytes() == kept


def test_out_that_holds_files_of_yours_is_refused_and_they_are_kept(tmp_path):
    write_pets(tmp_path / "pets")
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "thesis.txt").write_text("years")
    answer = call(*OUT, cwd=tmp_path)
    assert answer.err.startswith("gcnii: bundle holds 'thesis.txt', which gcnii did not write")
    assert files(tmp_path / "bundle") == ["thesis.txt"]


def test_what_a_killed_write_leaves_does_not_stop_the_same_command(tmp_path):
    write_pets(tmp_path / "pets")
    assert call(*OUT, cwd=tmp_path).code == 0
    (tmp_path / "bundle" / ".checkpoint.safetensors.x1y2").write_bytes(b"half")
    (tmp_path / "bundle" / "model.safetensors").write_bytes(b"newer than run.json")
    assert call("predict", "bundle", cwd=tmp_path).code == 2
    assert call(*OUT, cwd=tmp_path).code == 0
    assert call("predict", "bundle", cwd=tmp_path).code == 0


def test_show_takes_a_folder_as_its_message_offers(tmp_path):
    folder = write_pets(tmp_path / "pets")
    answer = call("data", "show", folder, cwd=tmp_path)
    assert answer == call("data", "check", folder, cwd=tmp_path)
    assert "classes: cat, dog" in answer.out


def test_the_doctor_refuses_a_graph_without_labels(tmp_path):
    write_pets(tmp_path / "pets", labels=False)
    answer = call("doctor", "pets", cwd=tmp_path)
    assert answer == Answer(
        2, "", "gcnii: no node of pets has a label, and the doctor trains; label some\n"
    )


def test_skewed_payments_are_named_by_check_and_train_with_the_remedy(tmp_path):
    folder = write_pets(tmp_path / "pets")
    lines = (folder / "edges.csv").read_text().splitlines()
    weights = ["weight", "5000", *["10.10000001"] * (len(lines) - 2)]
    text = "\n".join(f"{line},{weight}" for line, weight in zip(lines, weights, strict=True))
    (folder / "edges.csv").write_text(text)
    answer = call("data", "check", folder, cwd=tmp_path)
    assert "  median weight: 10.1\n" in answer.out
    assert answer.err.startswith(
        "gcnii: the heaviest 1 % of the edges carry 12 % of all weight, so"
    )
    train = ("train", folder, *SMALL, "--out", "bundle", "--overwrite")
    assert "edges count by the rank of their weight" in call(*train, cwd=tmp_path).err
    assert (
        json.loads((tmp_path / "bundle/run.json").read_text())["settings"]["edge_weights"] == "rank"
    )
    raw = call(*train, "--edge-weights", "raw", cwd=tmp_path)
    assert "edge_weights rank or log (--edge-weights rank) is safer" in raw.err
    assert call(*train, "--edge-weights", "log", cwd=tmp_path).err == ""


def test_check_lists_edges_of_two_weights_among_all_problems(tmp_path):
    folder = write_pets(tmp_path / "pets")
    (folder / "edges.csv").write_text("source,target,weight\npet0,pet1,1\npet1,pet0,2\n")
    answer = call("data", "check", folder, "--label", "lable", cwd=tmp_path)
    assert "nodes.csv has no column 'lable'" in answer.err
    assert "the edge between 'pet0' and 'pet1' has the weight 1 in one direction" in answer.err
    assert "x1" in answer.out


def test_customers_are_learnt_evaluated_explained_and_shown_as_a_folder_is(tmp_path):
    """The built-in tables take the way of one's own, and need no file and no network."""
    small = ("--model", "gcnii", "--layers", "2", "--epochs", "5", "--offline")
    trained = call("train", "customers", *small, "--out", "b", cwd=tmp_path)
    assert (trained.code, trained.err) == (0, "")
    checked = call("data", "check", "customers", cwd=tmp_path).out
    assert "Graph(customers: 1500 nodes, 3597 undirected weighted edges" in checked
    assert "note           words        19 columns" in checked
    assert rows(call("predict", "b", cwd=tmp_path).out)[17][0] == "c0017"
    assert "The graph " in call("evaluate", "b", cwd=tmp_path).out
    assert "plan=" in call("explain", "b", "c0017", cwd=tmp_path).out
    (tmp_path / "new").mkdir()
    table = "id,age,plan,months,support_calls,days_quiet,note\nnew,30,basic,1,5,40,no signal\n"
    (tmp_path / "new" / "nodes.csv").write_text(table)
    (tmp_path / "new" / "edges.csv").write_text("source,target,weight\nnew,c0017,30\n")
    (answer,) = rows(call("predict", "b", "--add", "new", cwd=tmp_path).out)
    assert answer[:2] == ["new", "leaves"]
