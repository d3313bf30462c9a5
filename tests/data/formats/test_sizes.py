"""Small files that ask for much: time grows as the file does, and memory has a bound."""

import io
import time
import tracemalloc
import zipfile
from contextlib import contextmanager

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import gcnii
from gcnii.data import load
from gcnii.data.tables import reading
from gcnii.data.tables.reading import Reading
from gcnii.errors import DataError, GraphError, InputError

EMPTY = "cells would be nearly empty; keep fewer, or give a sparse matrix of features"


@contextmanager
def memory_below(megabytes):
    """Fail if the block takes more, as Python and numpy count it."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1e6
    finally:
        tracemalloc.stop()


def grows_with(size, make, use):
    """Whether what is twice as large takes about twice as long to use."""
    seconds = []
    for times in (1, 2):
        made = make(times * size)
        start = time.process_time()
        use(made)
        seconds.append(time.process_time() - start)
    return seconds[1] <= 2.5 * seconds[0] + 0.5


def written(path, text):
    path.write_text(text)
    return path


def refused(path):
    with pytest.raises(InputError):
        load(path)


@pytest.mark.filterwarnings("ignore:the (edge attributes|nodes have no):UserWarning")
@pytest.mark.parametrize("owner", ["node", "edge"])
def test_defaults_in_graphml_are_not_multiplied_by_the_elements(tmp_path, owner):
    keys = "".join(
        f'<key id="d{j}" for="{owner}" attr.name="a{j}" attr.type="int"><default>1</default></key>'
        for j in range(1000)
    )
    nodes = "".join(f'<node id="{i}"/>' for i in range(6000))
    edges = "".join(f'<edge source="{i}" target="{i + 1}"/>' for i in range(5999))
    graph = f'<graph edgedefault="undirected">{nodes}{edges}</graph>'
    path = written(tmp_path / "a.graphml", f"<graphml>{keys}{graph}</graphml>")
    with memory_below(40):
        if owner == "node":
            with pytest.raises(DataError, match=f"a table of 6,000 × 1,000 {EMPTY}"):
                load(path)
        else:
            assert load(path).m == 5999


def test_a_key_of_its_own_for_each_node_of_gml_is_refused(tmp_path):
    nodes = "\n".join(f"node [ id {i} a{i} 1 ]" for i in range(9000))
    path = written(tmp_path / "a.gml", f"graph [ {nodes} ]")
    with memory_below(60), pytest.raises(DataError, match=f"a table of 9,000 × 9,000 {EMPTY}"):
        load(path)


def test_attributes_that_a_twentieth_of_the_nodes_have_are_read(monkeypatch):
    monkeypatch.setattr(reading, "ALWAYS_READ", 10_000)
    G = nx.empty_graph(300)
    for i in G:
        G.nodes[i].update({f"x{(i * 9 + j) % 180}": 1 for j in range(9)})
    assert len(gcnii.from_networkx(G).columns.columns) == 180
    G.add_nodes_from(range(300, 400))
    with pytest.raises(DataError, match=f"a table of 400 × 180 {EMPTY}"):
        gcnii.from_networkx(G)


def test_nested_elements_take_as_long_as_they_are_many(tmp_path):
    def nested(depth):
        return written(tmp_path / "a.graphml", f"<g>{'<b>' * depth}{'</b>' * depth}</g>")

    assert grows_with(20_000, nested, refused)


def test_blank_lines_before_an_error_are_passed_once(tmp_path):
    path = written(tmp_path / "a.gml", "graph [" + "\n" * 300_000 + "{")
    with pytest.raises(DataError, match=r"line 300001 is not GML: '\{'"):
        load(path)
    assert grows_with(20_000, lambda n: written(path, "\n" * n + "{"), refused)


def test_a_name_of_two_nodes_is_found_in_one_pass():
    def named_twice(n):
        return nx.empty_graph([*range(n), str(n - 1)])

    def convert(G):
        with pytest.raises(GraphError, match="two nodes of G are called"):
            gcnii.from_networkx(G)

    assert grows_with(8000, named_twice, convert)


def neo4j(folder, width, others=0):
    folder.mkdir(exist_ok=True)
    header = ",".join(f"p{j}:int" for j in range(width))
    row = ",".join(str(j % 7) for j in range(width))
    written(folder / "a.csv", f":ID,{header}\n0,{row}\n")
    written(folder / "b.csv", ":ID\n" + "".join(f"x{i}\n" for i in range(others)))
    written(folder / "e.csv", ":START_ID,:END_ID\n0,0\n")
    return folder


@pytest.mark.filterwarnings("ignore:nodes. left out of the features:UserWarning")
def test_a_wide_row_of_neo4j_takes_as_long_as_it_is_wide(tmp_path):
    assert grows_with(1500, lambda width: neo4j(tmp_path / "wide", width), load)
    assert grows_with(10_000, lambda n: [f"p{j}" for j in range(n)], lambda p: Reading(numeric=p))


def test_one_wide_row_among_many_nodes_of_neo4j_is_refused(tmp_path):
    path = neo4j(tmp_path / "wide", 4000, others=4000)
    with memory_below(40), pytest.raises(DataError, match=f"a table of 4,001 × 4,001 {EMPTY}"):
        load(path)


def test_a_header_of_neo4j_that_is_not_read_to_its_end_is_refused(tmp_path):
    path = neo4j(tmp_path / "wide", 100_000)
    with pytest.raises(
        DataError, match=r"header of a\.csv has 1,048,576 bytes or more; keep fewer"
    ):
        load(path)


# Archives of numpy


def graph_arrays(n=6, **others):
    one = {"X": np.eye(n), "edges": np.array([[0, 1], [1, 2], [2, 3]]), "y": np.arange(n) % 2}
    return one | others


@pytest.mark.parametrize("name", ["y", "train_mask", "node_names", "weights", "class_names", "X"])
def test_an_array_of_another_number_of_nodes_is_not_read(tmp_path, name):
    bomb = np.zeros((4_000_000, 1) if name == "X" else 4_000_000, "<U1" if "names" in name else int)
    arrays = graph_arrays(**{name: bomb})
    if name == "train_mask":
        arrays |= {"val_mask": bomb, "test_mask": bomb}
    np.savez_compressed(tmp_path / "g.npz", **arrays)
    del bomb, arrays
    with memory_below(10):
        if name.endswith("names"):
            with pytest.warns(UserWarning, match=r"has the shape \(4000000,\), but"):
                load(tmp_path / "g.npz")
        else:
            with pytest.raises(DataError, match=r"has the shape \(\d+,.*\), but .* would fit"):
                load(tmp_path / "g.npz")


def sparse_parts(prefix, n, columns, height=None):
    return {
        f"{prefix}data": np.ones(1),
        f"{prefix}indices": np.zeros(1, int),
        f"{prefix}indptr": np.append(0, np.ones((height or n), int)),
        f"{prefix}shape": np.array([n, columns]),
    }


def test_an_adjacency_of_another_number_of_nodes_is_not_read(tmp_path):
    big = sparse_parts("adj_", 4_000_000, 4_000_000)
    np.savez_compressed(tmp_path / "g.npz", X=np.eye(6), **big)
    del big
    sentence = r"\(6, 6\) for this X, got \(4000000, 4000000\)"
    with memory_below(10), pytest.raises(DataError, match=sentence):
        load(tmp_path / "g.npz")


def test_a_member_that_claims_more_than_its_bytes_can_hold_takes_no_memory(tmp_path):
    content = io.BytesIO()
    header = {"descr": "|u1", "fortran_order": False, "shape": (2**40, 1)}
    np.lib.format.write_array_header_1_0(content, header)
    with zipfile.ZipFile(tmp_path / "g.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", content.getvalue() + bytes(80))
        archive.infolist()[0].file_size = len(content.getvalue()) + 2**40
    with memory_below(10), pytest.raises(DataError, match=r"'X' of g\.npz must have"):
        load(tmp_path / "g.npz")


@pytest.mark.parametrize("columns", [2**31 - 1, 2**31, 2**40])
def test_a_sparse_x_with_billions_of_empty_columns_is_refused(tmp_path, columns):
    np.savez(tmp_path / "g.npz", edges=np.array([[0, 1]]), **sparse_parts("X_", 6, columns))
    with memory_below(10), pytest.raises(DataError, match=r"X_shape .* leave out empty columns"):
        load(tmp_path / "g.npz")
    X = sp.csr_array((np.ones(1), ([0], [1])), (6, columns))
    with memory_below(10), pytest.raises(GraphError, match="columns with 1 values; leave out"):
        gcnii.from_scipy(np.zeros((6, 6)), X)


@pytest.fixture
def folder(tmp_path):
    rows = "".join(f"{i},{i},{'ab'[i % 2]}\n" for i in range(6))
    written(tmp_path / "nodes.csv", f"id,x,label\n{rows}")
    written(tmp_path / "edges.csv", "source,target\n0,1\n")
    return tmp_path


def test_a_matrix_beside_nodes_csv_is_compared_with_them_before_it_is_read(folder):
    sp.save_npz(folder / "features.npz", sp.csr_array((4_000_000, 3)))
    with memory_below(10), pytest.raises(DataError, match="has 4000000 rows, but there are 6"):
        load(folder)
    sp.save_npz(folder / "features.npz", sp.csr_array((6, 2**31)))
    with memory_below(10), pytest.raises(DataError, match="with 0 values; leave out the empty"):
        load(folder)
    parts = {"format": np.array("csr"), "shape": np.array([6, 3])}
    parts |= {"data": np.ones(1), "indices": np.zeros(1, int), "indptr": np.zeros(4_000_000, int)}
    np.savez_compressed(folder / "features.npz", **parts)
    del parts
    with memory_below(10), pytest.raises(DataError, match="has more values than 6 × 3"):
        load(folder)
