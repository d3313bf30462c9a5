"""`load` finds the reader of a path, and says where a graph came from without copying it."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from support.command_line import write_pets
from support.local_server import add

from gcnii.data import CATALOG, formats, load
from gcnii.data.formats import Reader
from gcnii.errors import DataError, InputError
from gcnii.graph import Graph

GRAPH = Graph(X=np.eye(3), edges=[[0, 1], [1, 2]], name="toy")


@pytest.fixture
def toy(monkeypatch):
    """The generated data set `toy`, whose graph is GRAPH."""
    add(monkeypatch, "toy")
    monkeypatch.setitem(CATALOG, "toy", replace(CATALOG["toy"], read=lambda: GRAPH))


@pytest.fixture
def edge_list(monkeypatch):
    """A second format, files that end in .txt, added by one line."""

    def read(path, n=3):
        return Graph(X=np.ones((n, 1)), edges=np.loadtxt(path, dtype=int).T)

    reader = Reader("edge list", "a .txt file of edges", lambda path: path.suffix == ".txt", read)
    monkeypatch.setattr(formats, "READERS", (*formats.READERS, reader))


def test_loading_copies_no_array_and_checks_once(toy, monkeypatch):
    monkeypatch.setattr(Graph, "__post_init__", lambda self: pytest.fail("checked again"))
    graph = load("toy")
    assert graph.X is GRAPH.X
    assert graph.edges is GRAPH.edges
    assert graph.y is GRAPH.y


def test_a_graph_of_the_catalog_has_its_name_until_it_is_changed(toy):
    graph = load("toy")
    assert (graph.source, graph.catalog_name) == ("toy", "toy")
    assert replace(graph, directed=True).catalog_name == ""
    assert GRAPH.catalog_name == ""  # what the reader made is left as it was


def test_a_graph_from_disk_has_its_path_and_no_name_in_the_catalog(tmp_path):
    folder = tmp_path / "cora"
    folder.mkdir()
    (folder / "nodes.csv").write_text("id,x\na,1\n")
    (folder / "edges.csv").write_text("source,target\n")
    graph = load(folder)
    assert (graph.source, graph.catalog_name) == (str(folder.resolve()), "")


def test_options_are_kept_as_json_has_them():
    graph = load("csbm", n=np.int64(60), signal=np.float32(1.5))
    assert json.loads(json.dumps(graph.loaded_with)) == {"n": 60, "signal": 1.5}


def test_the_first_reader_that_reads_a_path_is_used(edge_list, tmp_path):
    (tmp_path / "ring.txt").write_text("0 1\n1 2\n2 0\n")
    assert load(tmp_path / "ring.txt").m == 3
    assert load(str(tmp_path / "ring.txt"), n=5).n == 5
    with pytest.raises(DataError, match=r"the edge list .*ring\.txt takes only n, got 'directed'"):
        load(tmp_path / "ring.txt", directed=True)


def test_a_path_that_no_reader_reads_is_answered_with_all_formats(edge_list, tmp_path):
    (tmp_path / "graph.xls").touch()
    with pytest.raises(DataError) as error:
        load(tmp_path / "graph.xls")
    assert str(error.value).startswith(
        f"{tmp_path / 'graph.xls'} is not in a format that gcnii reads; a graph is "
        "a folder with nodes.csv and edges.csv (or .parquet), a "
    )
    assert str(error.value).endswith(", or a .txt file of edges")
    assert all(reader.form in str(error.value) for reader in formats.READERS)


def test_an_empty_name_is_not_this_folder(tmp_path, monkeypatch):
    write_pets(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"^no data set ''; `gcnii data list`"):
        load("")
    assert load(".").n == 12


def test_the_name_of_a_folder_is_one_line_of_visible_text(tmp_path):
    assert load(write_pets(tmp_path / "a\x1b[31m\nb")).name == r"a\x1b[31m\nb"


def test_a_pipe_in_the_place_of_features_is_not_waited_for(tmp_path):
    os.mkfifo(write_pets(tmp_path / "pets") / "features.npz")
    with pytest.raises(InputError, match=r"features\.npz is not a regular file; copy what it hold"):
        load(tmp_path / "pets")


def test_a_missing_file_is_not_taken_for_a_name_of_the_catalog(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"^x\.npz does not exist; a graph is a folder with"):
        load("x.npz")
    assert not any("." in name for name in CATALOG)
