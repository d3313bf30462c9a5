"""gcnii report run: one page beside the bundle, or one sentence and nothing written."""

import json
import re
from html import unescape

import pytest
from support.command_line import SMALL, call, files, write_pets


@pytest.fixture
def folder(tmp_path):
    """A folder with the graph `pets` and a bundle of two runs on it."""
    write_pets(tmp_path / "pets")
    words = ("--runs", 2, "--seed", 3, "--out", "runs/pets", "--quiet")
    assert call("train", "pets", *SMALL, *words, cwd=tmp_path).code == 0
    return tmp_path


def test_the_page_is_beside_the_bundle_and_its_path_is_printed(folder):
    before = files(folder / "runs/pets")
    assert call("report", "run", "runs/pets", "--quiet", cwd=folder)[:2] == (0, "runs/pets.html\n")
    assert files(folder / "runs/pets") == before
    html = (folder / "runs/pets.html").read_text("utf-8")
    assert 'id="training"' in html
    (command,) = re.findall("Trained by: <code>(.*?)</code>", html)
    assert unescape(command).startswith("gcnii train pets --layers 2 --width 8")


def test_the_page_of_the_folder_one_is_in_is_beside_it(folder):
    assert call("report", "run", ".", "--quiet", cwd=folder / "runs/pets").code == 0
    assert (folder / "runs/pets.html").exists()


def test_json_is_one_document(folder):
    answer = call("report", "run", "runs/pets", "--out", "a.html", "--json", "--quiet", cwd=folder)
    assert json.loads(answer.out) == {"bundle": "runs/pets", "graph": "pets", "out": "a.html"}
    assert (folder / "a.html").exists()


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("page.txt", "a page must end in .html, got page.txt"),
        ("runs/pets/page.html", "is inside the bundle, which holds its own files alone"),
        ("nowhere/\x00/page.html", "null"),
    ],
)
def test_a_page_that_cannot_be_is_refused(out, sentence, folder):
    answer = call("report", "run", "runs/pets", "--out", out, cwd=folder)
    assert answer.code != 0
    assert sentence in answer.err
    assert not list(folder.rglob("*.html"))


def test_a_graph_that_was_moved_is_named_and_nothing_is_written(folder):
    (folder / "pets").rename(folder / "cats")
    answer = call("report", "run", "runs/pets", "--quiet", cwd=folder)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert "pets" in answer.err
    assert not list(folder.rglob("*.html"))
    assert call("report", "run", "runs/pets", "--graph", "cats", "--quiet", cwd=folder).code == 0


def test_a_graph_that_has_changed_is_refused(folder):
    write_pets(folder / "pets", features=3)
    answer = call("report", "run", "runs/pets", "--quiet", cwd=folder)
    assert answer.code == 2
    assert "a model takes the columns that it was trained on" in answer.err
    assert not list(folder.rglob("*.html"))
