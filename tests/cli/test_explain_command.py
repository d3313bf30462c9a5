"""gcnii explain: the sentence, the tables, the document and the drawing."""

import json
import re

import pytest
from support.command_line import SMALL, call, files, write_pets


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with pets, and a bundle of three runs on its one split."""
    folder = tmp_path_factory.mktemp("place")
    write_pets(folder / "pets")
    words = ("pets", *SMALL, "--runs", 3, "--out", "three")
    assert call("train", *words, cwd=folder).code == 0
    return folder


def test_a_sentence_comes_first_then_tables_then_the_proof(place):
    answer = call("explain", "three", "pet5", cwd=place)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0].startswith("pet5 is predicted as ")
    sentences = " ".join(lines[1:5])
    assert re.search(" of (the|a) score.*Removing the 3 strongest edges ", sentences)
    heads = [line.split() for line in lines]
    for head in (["node", "hop", "predicted", "true", "class", "share"], ["feature", "share"],
                 ["hop", "nodes", "share"], ["edge", "drop", "of", "log", "p"]):  # fmt: skip
        assert head in heads
    assert any(line.endswith("(10 draws).") for line in lines)
    assert any(line.startswith("The shares add up to the score; the resi") for line in lines)


def test_the_document_is_all_that_is_printed(place):
    answer = call("explain", "three", "pet5", "--json", "--top", 2, cwd=place)
    found = json.loads(answer.out)
    assert found["node"] == "pet5"
    assert found["label"] in ("cat", "dog")
    assert found["known"] is None or found["known"] in ("cat", "dog")
    assert set(found["run"]) == {"seed", "split"}
    assert set(found["shares"]) == {"nodes", "features", "hops", "bias", "residual"}
    assert len(found["shares"]["nodes"]) == 2
    assert abs(found["shares"]["residual"]) <= 1e-5 * max(1, abs(found["score"]))
    assert set(found["links"][0]) == {"source", "target", "effect"}
    assert set(found["removal"]) == {"links", "before", "after", "random"}
    assert found["removal"]["before"] == pytest.approx(found["probability"], abs=1e-5)


def test_the_label_and_the_rival_can_be_chosen(place):
    cat, dog, margin = (
        json.loads(call("explain", "three", "pet5", "--json", *words, cwd=place).out)
        for words in (
            ("--label", "cat"),
            ("--label", "dog"),
            ("--label", "cat", "--against", "dog"),
        )
    )
    assert cat["probability"] + dog["probability"] == pytest.approx(1)
    assert margin["score"] == pytest.approx(cat["score"] - dog["score"], abs=1e-5)


@pytest.mark.parametrize("name", ["why.png", "why.svg"])
def test_a_drawing_is_written(place, tmp_path, name):
    answer = call("explain", "three", "pet5", "--out", tmp_path / name, cwd=place)
    assert answer.out.endswith(f"{tmp_path / name}\n")
    assert (tmp_path / name).stat().st_size > 3000


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("pet55",), "has no node 'pet55'; the closest are 'pet5', "),
        (("pet5", "--out", "x.pdf"), "--out must end in .png or .svg, got x.pdf"),
        (("pet5", "--top", "0"), "--top must be at least 1, got 0"),
        (("pet5", "--label", "cow"), "there is no class 'cow'; there are "),
        (("pet5", "--graph", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence_and_nothing_is_written(place, words, sentence):
    before = files(place)
    answer = call("explain", "three", *words, cwd=place)
    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err
    assert answer.err.count("\n") == 1
    assert files(place) == before


def test_another_graph_can_be_asked(place, tmp_path):
    write_pets(tmp_path / "others")
    path = tmp_path / "others" / "nodes.csv"
    path.write_text(path.read_text().replace("pet5", "[red]rex"))
    edges = tmp_path / "others" / "edges.csv"
    edges.write_text(edges.read_text().replace("pet5", "[red]rex"))
    answer = call("explain", "three", "[red]rex", "--graph", tmp_path / "others", cwd=place)
    assert answer.code == 0, answer.err
    assert "[red]rex is predicted as" in answer.out
    assert any(line.split()[:2] == ["[red]rex", "0"] for line in answer.out.splitlines())


def test_a_model_that_looks_at_which_links_there_are_says_so(place):
    words = ("pets", "--model", "gat", "--epochs", "3", "--device", "cpu", "--out", "attention")
    assert call("train", *words, cwd=place).code == 0
    answer = call("explain", "attention", "pet5", cwd=place)
    assert "gat looks at which edges there are, not at their weights, " in answer.out
    assert "gat is not piecewise linear here: the shares leave " in answer.out
    assert "Removing the " not in answer.out
