"""gcnii evaluate: tables on stdout, warnings on stderr, one document with --json."""

import json
import re

import numpy as np
import pytest
from support.command_line import call

SHORT = ("--layers", "2", "--width", "8", "--epochs", "10", "--device", "cpu", "--threads", "1")


def write_lopsided(folder):
    """A graph as CSV in which 19 nodes of 20 are `usual`, and nothing says which."""
    random = np.random.default_rng(0)
    folder.mkdir()
    rows = [
        f"n{i},{random.normal():.4f},{'rare[bold]' if i % 20 == 7 else 'usual'},"
        f"{('train', 'train', 'val', 'test', 'test')[i // 20 % 5]}"
        for i in range(400)
    ]
    (folder / "nodes.csv").write_text("\n".join(["id,x,label,split", *rows]) + "\n")
    pairs = random.integers(0, 400, (600, 2))
    lines = [f"n{u},n{v}" for u, v in pairs if u != v]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines]) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    write_lopsided(folder / "lopsided")
    return folder


@pytest.fixture(scope="module")
def trained(folder):
    words = ("--metric", "accuracy", "--out", "bundle")
    answer = call("train", "lopsided", *SHORT, *words, cwd=folder)
    assert answer.code == 0, answer.err
    return answer


@pytest.fixture(scope="module")
def evaluated(folder, trained):
    return call("evaluate", "bundle", "--device", "cpu", cwd=folder)


@pytest.fixture(scope="module")
def document(folder, trained):
    answer = call("evaluate", "bundle", "--device", "cpu", "--json", cwd=folder)
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


def test_training_on_95_to_5_says_what_its_accuracy_is_worth(trained):
    assert "test accuracy 95.0 (1 run)" in trained.out
    assert "accuracy 95.0 (majority 95.0) · balanced accuracy 50.0 · macro-F1 48.7" in trained.out
    assert "warning: class 'rare[bold]' is never predicted, though 8 test nodes" in trained.out
    assert trained.out.startswith("accuracy 95.0 does not beat naming the largest class")


def test_the_tables_are_printed_and_the_warnings_said(evaluated):
    assert evaluated.code == 0
    assert re.search(r"^ score in % +gcnii +majority $", evaluated.out, re.M)
    assert re.search(r"^ beside it +accuracy +difference $", evaluated.out, re.M)
    for name in ("logistic regression", "label propagation", "gradient boosting with neighbours"):
        assert re.search(rf"^ {name} +9\d\.\d \[.*\] +[+-]\d", evaluated.out, re.M)
    assert "The graph makes no difference that these 160 test nodes could show" in evaluated.out
    assert re.search(r"^ rare\[bold\] +– +0\.0 ", evaluated.out, re.M)
    for head in ("neighbours", "neighbours of its class", "steps to a training node"):
        assert re.search(rf"^ {head} +nodes +accuracy", evaluated.out, re.M)
    said = evaluated.err.splitlines()
    assert said[0].startswith("gcnii: class 'rare[bold]' is never predicted")
    assert said[1].startswith("gcnii: accuracy 95.0 does not beat")


def test_json_has_the_scores_and_the_warnings(document, evaluated):
    assert document["bundle"] == "bundle"
    assert document["scores"]["accuracy"]["mean"] == 0.95
    assert document["baselines"]["majority"]["accuracy"]["mean"] == 0.95
    assert [row["name"] for row in document["classes"]] == ["rare[bold]", "usual"]
    assert document["confusion"] == [[0, 8], [0, 152]]
    assert [f"gcnii: {one}" for one in document["warnings"]] == evaluated.err.splitlines()


def test_quiet_leaves_the_warnings_out_and_baselines_can_be(folder, trained):
    words = ("--device", "cpu", "--quiet", "--no-baselines")
    answer = call("evaluate", "bundle", *words, cwd=folder)
    assert (answer.code, answer.err) == (0, "")
    assert "majority" in answer.out
    assert "logistic" not in answer.out


def test_a_graph_that_has_changed_is_refused_in_one_sentence(folder, trained, tmp_path):
    write_lopsided(tmp_path / "other")
    edges = tmp_path / "other" / "edges.csv"
    edges.write_text("\n".join(edges.read_text().splitlines()[:-3]) + "\n")
    answer = call("evaluate", folder / "bundle", "--graph", "other", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert "other is not the graph that the model was trained on" in answer.err
    assert answer.err.count("\n") == 1


def test_a_moved_graph_is_evaluated_where_it_is_now(folder, trained, tmp_path, document):
    write_lopsided(tmp_path / "moved")
    words = ("--graph", "moved", "--device", "cpu", "--json", "--no-baselines")
    answer = call("evaluate", folder / "bundle", *words, cwd=tmp_path)
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["scores"] == document["scores"]


def test_a_folder_without_a_bundle_is_refused(tmp_path):
    answer = call("evaluate", "nothing", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")


def test_of_many_classes_the_most_frequent_confusions_are_shown(tmp_path):
    random = np.random.default_rng(0)
    (tmp_path / "many").mkdir()
    rows = [f"n{i},{random.normal():.3f},c{i % 15:02d}" for i in range(300)]
    (tmp_path / "many" / "nodes.csv").write_text("\n".join(["id,x,label", *rows]) + "\n")
    edges = [f"n{i},n{(i + 1) % 300}" for i in range(300)]
    (tmp_path / "many" / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    assert call("train", "many", *SHORT, "--out", "bundle", cwd=tmp_path).code == 0
    words = ("--device", "cpu", "--quiet", "--no-baselines")
    answer = call("evaluate", "bundle", *words, cwd=tmp_path)
    assert "the 10 most frequent confusions; --json or document() has them all" in answer.out
    assert re.search(r"^ true class +predicted as +nodes", answer.out, re.M)
