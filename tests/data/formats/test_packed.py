"""A graph in one file: what was saved is what is loaded, or it is refused."""

import contextlib
import hashlib
import json
import mmap
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from safetensors.numpy import save_file

import gcnii
from gcnii.data import load
from gcnii.data.formats import packed
from gcnii.errors import DataError, InputError
from gcnii.graph import Graph, Split
from gcnii.graph.arrays import hand_back
from gcnii.graph.columns import Column, Columns, Table

SMAPS = Path("/proc/self/smaps")
SPLITS = (
    Split.of_roles(["train", "val", "test", "", ""]),
    Split.of_roles(["val", "train", "", "test", ""]),
)
FULL = {
    "X": np.arange(10, dtype=np.float32).reshape(5, 2),
    "edges": [[0, 1, 2], [1, 2, 3]],
    "weights": [0.5, 2, 3],
    "y": [0, 1, 1, 0, -1],
    "splits": SPLITS,
    "directed": True,
    "name": "pets",
    "nodes": ("ann", "Zoë", "", "line\nbreak", "\ud800"),
    "classes": ("cat", "dog"),
    "features": ("size", "Größe"),
    "part": [0, 0, 1, 1, 1],
}
FIELDS = ("name", "directed", "nodes", "classes", "features")


@pytest.fixture
def again(tmp_path):
    """`again(graph)` → the graph after it was saved and loaded."""

    def cycle(graph):
        return load(gcnii.save(graph, tmp_path / "g.safetensors"))

    return cycle


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"X": sp.csr_array(FULL["X"])},
        {"X": FULL["X"].astype(np.float64)},
        {"weights": None, "nodes": None, "classes": None, "features": None, "part": None},
        {"y": None, "splits": (), "classes": None},
        {"y": [[1, 0], [1, 1], [0, 0], [1, 0], [-1, -1]]},
        {"edges": np.zeros((2, 0)), "weights": None},
        {"directed": False},
    ],
)
def test_what_was_saved_is_what_is_loaded(again, changes):
    graph = Graph(**FULL | changes)
    found = again(graph)
    assert found.fingerprint == graph.fingerprint
    assert [getattr(found, name) for name in FIELDS] == [getattr(graph, name) for name in FIELDS]
    assert found.X.dtype == graph.X.dtype
    assert (found.part is None) == (graph.part is None)
    assert found.part is None or found.part.tolist() == graph.part.tolist()
    assert found.weights is None or found.weights.tolist() == graph.weights.tolist()
    assert repr(found) == repr(graph)


def test_the_table_and_its_columns_are_kept(again):
    texts = np.array(["a", None, "", "ö", "a"], object)
    numbers = np.array([1, np.nan, 3, 4, 5], np.float32)
    entries = (np.ones(3, np.float32), np.array([2, 0, 1]), np.array([0, 2, 3, 3, 3, 3]))
    matrix = sp.csr_array(entries, (5, 3))  # its first row is not in order
    table = Table(5, {"kind": texts, "age": numbers}, matrix, ("w1", "w2", "w3"))
    columns = Columns(
        (
            Column("kind", "categorical", values=("a",), other=True, missing=True),
            Column("age", "numeric", median=3.5, missing=True),
            Column("words", "words", values=("x", "y"), weights=(0.1, 1 / 3)),
        )
    )
    found = again(Graph(**FULL)._with_table(table, columns))
    assert found.columns == columns
    assert found.table.columns["kind"].tolist() == texts.tolist()
    np.testing.assert_array_equal(found.table.columns["age"], numbers)
    assert (found.table.matrix.toarray() == matrix.toarray()).all()
    assert found.table.names == table.names


def test_a_graph_of_tables_is_the_same_after_it_was_packed(tmp_path):
    folder = tmp_path / "pets"
    folder.mkdir()
    rows = [f"{i},{i / 3},{'xyz'[i % 3]},{'ab'[i % 2]}" for i in range(12)]
    (folder / "nodes.csv").write_text("\n".join(["id,size,kind,label", *rows]) + "\n")
    (folder / "edges.csv").write_text("source,target,weight\n0,1,2\n3,4,5\n")
    graph = load(folder)
    found = load(gcnii.save(graph, tmp_path / "pets.safetensors"))
    assert found.fingerprint == graph.fingerprint
    assert found.columns == graph.columns
    X, features = found.columns.encode(found.table)
    assert (X == graph.X).all()
    assert features == graph.features
    assert found.source == str(tmp_path / "pets.safetensors")


def test_arrays_are_views_of_the_mapped_file_and_cannot_be_written_to(again):
    found = again(Graph(**FULL))
    for array in (found.X, found.edges, found.y, found.weights):
        assert not array.flags.writeable
        base = array
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        assert isinstance(base, mmap.mmap)


def test_a_loaded_graph_trains(again):
    graph = again(load("csbm", n=60))
    result = gcnii.fit(graph, layers=2, width=4, epochs=2, device="cpu")
    assert len(result.test) == 1


def test_the_same_graph_makes_the_same_bytes(tmp_path):
    one, two = (gcnii.save(Graph(**FULL), tmp_path / f"{i}.safetensors") for i in range(2))
    assert one.read_bytes() == two.read_bytes()


def test_saving_is_refused_where_it_would_do_harm(tmp_path):
    graph = Graph(**FULL)
    with pytest.raises(InputError, match=r"saved as a \.safetensors file, got .*pets\.npz"):
        gcnii.save(graph, tmp_path / "pets.npz")
    with pytest.raises(InputError, match="save takes a Graph, got dict"):
        gcnii.save(FULL, tmp_path / "g.safetensors")
    model, text = tmp_path / "model.safetensors", tmp_path / "text.safetensors"
    save_file({"W": np.eye(2)}, model)
    text.write_text("something else")
    for path in (model, text):
        before = path.read_bytes()
        with pytest.raises(InputError, match="exists and gcnii did not write it; choose"):
            gcnii.save(graph, path)
        assert path.read_bytes() == before
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(InputError, match="is not a regular file; choose another name"):
        gcnii.save(graph, tmp_path / "folder.safetensors")
    assert gcnii.save(graph, gcnii.save(graph, tmp_path / "g.safetensors")).exists()
    assert len(list(tmp_path.iterdir())) == 4


def test_weights_of_a_model_are_no_graph(tmp_path):
    save_file({"W": np.eye(2)}, tmp_path / "model.safetensors")
    with pytest.raises(DataError, match=r"^model\.safetensors is not a \.safetensors file that"):
        load(tmp_path / "model.safetensors")


def test_every_flipped_bit_is_noticed(tmp_path):
    path = gcnii.save(Graph(**FULL), tmp_path / "g.safetensors")
    whole = path.read_bytes()
    fingerprint = Graph(**FULL).fingerprint
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with contextlib.suppress(DataError):
            assert load(path).fingerprint == fingerprint  # a space of the header's JSON, at most
    data = bytearray(whole)
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"^g\.safetensors is damaged: its SHA-256 differs"):
        load(path)


def test_a_file_cut_anywhere_is_one_sentence(tmp_path):
    path = gcnii.save(Graph(**FULL), tmp_path / "g.safetensors")
    whole = path.read_bytes()
    for length in range(0, len(whole), 61):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"g\.safetensors is damaged or not a safetensors file"):
            load(path)


def forged(path, tensors=None, **changes):
    """Change tensors or the document of a saved graph, with a digest that is right again."""
    with safe_open(path, "numpy") as file:
        held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        document = json.loads(file.metadata()["gcnii"])
    held = {name: array for name, array in (held | (tensors or {})).items() if array is not None}
    document |= changes
    document["digest"] = packed._digest(held, document)
    save_file(held, path, {"gcnii": json.dumps(document)})


@pytest.mark.parametrize(
    ("tensors", "changes", "sentence"),
    [
        ({"edges": np.array([[0], [10**12]])}, {"weights": None}, r"edges must be \(2, m\)"),
        ({"edges": np.array([[0], [-1]])}, {}, r"edges must be \(2, m\)"),
        ({"edges": np.array([0, 1, 2])}, {}, r"edges must be \(2, m\)"),
        ({"edges": np.zeros((2, 3), np.float32)}, {}, r"edges must be \(2, m\)"),
        ({"edges": None}, {}, "it lacks 'edges'"),
        ({"y": None}, {}, "it lacks 'y'"),
        ({"X": None}, {}, r"it lacks 'X\.data'"),
        ({"roles": None}, {}, "it lacks 'roles'"),
        ({"X": np.full((5, 2), np.nan, np.float32)}, {}, "finite floats"),
        ({"X": np.zeros((5, 2), np.int64)}, {}, "finite floats"),
        ({"X": np.zeros((4, 2), np.float32)}, {}, "X has 4 rows"),
        ({"X": np.zeros(5, np.float32)}, {}, "finite floats|tuple index"),
        ({"weights": np.array([1.0, 2, -3])}, {}, "positive and finite"),
        ({"weights": np.ones(2)}, {}, "positive and finite"),
        ({"y": np.array([0, 1, 9, 0, -1])}, {}, "labels must lie in"),
        ({"y": np.zeros(5, np.float32)}, {}, "y must hold whole numbers"),
        ({"roles": np.zeros((1, 5), np.uint8)}, {}, "train mask is empty"),
        ({"roles": np.zeros(5, np.uint8)}, {}, "tuple index"),
        ({"nodes.lengths": np.array([1, 1, 1, 1, 1])}, {}, "lengths of nodes do not fit"),
        ({"nodes.lengths": np.array([10**15, 1, 1, 1, -(10**15)])}, {}, "lengths of nodes"),
        ({"nodes.utf8": np.full(30, 255, np.uint8)}, {}, "is not a .safetensors file"),
        ({}, {"version": 99}, "saved by a newer gcnii"),
        ({}, {"directed": "yes"}, "directed must be true or false"),
        ({}, {"name": None}, "name must be text"),
        (
            {},
            {"columns": [{"name": "x", "kind": "odd"}], "table": {"columns": [], "matrix": False}},
            "kind",
        ),
        ({"X": np.zeros((5, 2), np.float16)}, {}, "F16"),
    ],
)
def test_a_forged_file_is_one_sentence(tmp_path, tensors, changes, sentence):
    path = gcnii.save(Graph(**FULL), tmp_path / "g.safetensors")
    changes.pop("weights", None)
    forged(path, tensors, **changes)
    with pytest.raises(DataError, match=sentence):
        load(path)


@pytest.mark.parametrize(
    ("tensors", "changes"),
    [
        ({"X.indices": np.array([0, 99] * 5, np.int32)[:9]}, {}),
        ({"X.indptr": np.array([0, 9, 1, 9, 1, 9], np.int32)}, {}),
        ({"X.indices": np.zeros(9, np.int32)}, {}),
        ({}, {"d": 10**18}),
        ({}, {"d": -1}),
    ],
)
def test_a_forged_sparse_matrix_is_one_sentence(tmp_path, tensors, changes):
    X = sp.csr_array(FULL["X"])
    path = gcnii.save(Graph(**FULL | {"X": X}), tmp_path / "g.safetensors")
    forged(path, tensors, **changes)
    with pytest.raises(DataError):
        load(path)


def test_metadata_that_is_no_document_is_one_sentence(tmp_path):
    for text in ("", "[]", "{}", "{" * 50_000, '"digest"', "[" * 50_000):
        save_file({"X": np.eye(2)}, tmp_path / "g.safetensors", {"gcnii": text})
        with pytest.raises(DataError, match=r"^g\.safetensors is not a \.safetensors file that"):
            load(tmp_path / "g.safetensors")


def test_the_digest_is_the_sha256_of_the_document_and_the_tensors():
    tensors = {"b": np.arange(3), "a": np.zeros((2, 2), np.float32)}
    text = json.dumps({"name": "x"}, sort_keys=True).encode()
    for name in "ab":
        array = tensors[name]
        text += repr((name, array.dtype.str, array.shape)).encode() + array.tobytes()
    assert packed._digest(tensors, {"name": "x"}) == hashlib.sha256(text).hexdigest()


@pytest.mark.skipif(not SMAPS.exists(), reason="this system does not tell")
def test_the_pages_of_a_packed_graph_are_handed_back_and_read_again(tmp_path):
    graph = load("csbm", n=30_000, degree=4)
    path = packed.save(graph, tmp_path / "graph.safetensors")
    mapped = packed.read(path)
    assert resident(path) == 0  # though its SHA-256 was just checked
    assert np.array_equal(mapped.X, graph.X)
    assert resident(path) >= mapped.X.nbytes // 1024
    hand_back(mapped.X)
    assert resident(path) == 0
    hand_back(np.ones(3))  # of no file: nothing happens


def resident(path):
    """kB of the file that are in this process's memory."""
    lines = iter(SMAPS.read_text().splitlines())
    found = 0
    for line in lines:
        if line.endswith(str(path)):
            found += next(int(one.split()[1]) for one in lines if one.startswith("Rss:"))
    return found


@pytest.mark.parametrize("name", ["../../../loot", "/tmp/loot", "..", "a/b"])
def test_the_name_of_a_packed_graph_is_not_a_path(name, tmp_path):
    path = gcnii.save(Graph(**FULL | {"name": name}), tmp_path / "g.safetensors")
    found = gcnii.load(path).name
    assert "/" not in found
    assert not found.startswith(".")
