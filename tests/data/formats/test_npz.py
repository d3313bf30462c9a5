"""Graphs in .npz files, of several layouts; nothing in them is trusted."""

import contextlib
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from gcnii.data import load
from gcnii.errors import DataError, InputError

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5]])
X = np.arange(12, dtype=np.float32).reshape(6, 2)
WORDS = np.eye(6, 3, dtype=np.float32)  # mostly zeros
Y = np.array([0, 0, 0, 1, 1, 1])
MASKS = np.array([[1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0]], bool)
ROLES = {role: np.roll(MASKS, i, 1) for i, role in enumerate(("train", "val", "test"))}
A = sp.csr_array((np.ones(5), EDGES.T), (6, 6))


def platonov(**changes):
    arrays = {
        "edges": EDGES,
        "node_features": X,
        "node_labels": Y,
        "train_masks": MASKS,
        "val_masks": np.roll(MASKS, 1, 1),
        "test_masks": np.roll(MASKS, 2, 1),
    }
    return {key: value for key, value in (arrays | changes).items() if value is not None}


def shchur(**changes):
    arrays = {"labels": Y}
    for name, matrix in (("adj", A), ("attr", sp.csr_array(X))):
        arrays |= {
            f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")
        }
        arrays[f"{name}_shape"] = np.array(matrix.shape)
    return {key: value for key, value in (arrays | changes).items() if value is not None}


def plain(features=WORDS, **changes):
    arrays = {"edges": EDGES.T, "y": Y, "directed": np.array("0"), "note": np.array("made")}
    arrays |= ROLES
    matrix = sp.csr_array(features)
    arrays |= {f"X_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr")}
    arrays |= {"X_shape": np.array(matrix.shape)}
    return {key: value for key, value in (arrays | changes).items() if value is not None}


@pytest.fixture
def write(tmp_path):
    """`write(arrays)` → the file."""

    def file(arrays):
        np.savez(tmp_path / "roads.npz", **arrays)
        return tmp_path / "roads.npz"

    return file


def test_edges_features_labels_and_masks_are_a_graph_with_many_splits(write):
    graph = load(write(platonov()))
    assert (graph.name, graph.n, graph.m, graph.directed) == ("roads", 6, 5, False)
    assert (graph.X == X).all()
    assert graph.y.tolist() == Y.tolist()
    assert [split.train.tolist() for split in graph.splits] == MASKS.tolist()


@pytest.mark.parametrize("compressed", [False, True])
def test_sparse_matrices_are_a_graph(tmp_path, compressed):
    (np.savez_compressed if compressed else np.savez)(tmp_path / "g.npz", **shchur())
    graph = load(tmp_path / "g.npz")
    assert (graph.X == X).all()
    assert graph.edges.T.tolist() == [[0, 1], [0, 2], [1, 2], [3, 4], [4, 5]]
    assert len(graph.splits) == 1


def test_features_in_parts_and_masks_called_train_val_and_test_are_a_graph(write):
    graph = load(write(plain()))
    assert (graph.n, graph.m, graph.directed) == (6, 5, False)
    assert sp.issparse(graph.X)
    assert (graph.X.toarray() == WORDS).all()
    assert [split.train.tolist() for split in graph.splits] == MASKS.tolist()


def test_features_in_parts_that_are_mostly_numbers_become_an_array(write):
    assert load(write(plain(X))).X.tolist() == X.tolist()


@pytest.mark.parametrize("said", ["1", 1, True, "True", [1]])
def test_the_file_says_whether_edges_are_one_way_and_an_option_overrules_it(write, said):
    path = write(plain(directed=np.array(said)))
    assert load(path).directed
    assert [2, 0] in load(path).edges.T.tolist()
    assert not load(path, directed=False).directed
    assert load(write(plain(directed=np.array("0"))), directed=True).directed


@pytest.mark.parametrize("turn", [lambda masks: masks.T, lambda masks: masks[0]])
def test_masks_may_be_columns_or_one_row(write, turn):
    masks = {role: turn(rows) for role, rows in ROLES.items()}
    found = [split.train.tolist() for split in load(write(plain(**masks))).splits]
    assert found == MASKS[: len(found)].tolist()


def test_two_edges_are_rows_beside_features_in_parts(write):
    two = np.array([[0, 3], [1, 4]])
    assert load(write(plain(edges=two))).edges.T.tolist() == [[0, 1], [3, 4]]


def test_rows_of_zeros_and_ones_are_several_labels_per_node(write):
    graph = load(write(plain(y=np.array([[0, 1], [1, 1], [0, 0]] * 2))))
    assert (graph.multilabel, graph.k) == (True, 2)


@pytest.mark.parametrize(
    ("name", "counts", "splits"),
    [
        ("cora-ml", (2995, 8158, 2879, 7), 10),
        ("facebook", (22470, 170823, 4714, 4), 10),
        ("humango", (3106, 15978, 32, 14), 1),
        ("twitch-engb", (7126, 35324, 2545, 2), 10),
    ],
)
def test_published_graphs_in_this_layout_have_their_counts(name, counts, splits):
    mirror = Path(os.environ.get("GCNII_MIRROR", ""))
    if not mirror.is_dir() or mirror == Path():
        pytest.skip("the files are in a mirror that is a folder")
    graph = load(mirror / "development" / f"{name}.npz")
    assert (graph.n, graph.m, graph.d, graph.k) == counts
    assert (len(graph.splits), graph.directed) == (splits, False)
    assert graph.multilabel == (name == "humango") == (not sp.issparse(graph.X))


def test_an_option_says_that_edges_are_one_way(write):
    for arrays in (platonov(), shchur()):
        graph = load(write(arrays), directed=True)
        assert graph.directed
        assert [2, 0] in graph.edges.T.tolist()


def test_edges_may_be_two_rows_and_have_weights(write):
    weights = np.arange(1, 6)
    graph = load(write(platonov(edges=None, edge_index=EDGES.T, weights=weights)))
    assert sorted(graph.weights.tolist()) == [1, 2, 3, 4, 5]
    two = np.array([[0, 3], [1, 4]])
    assert load(write(platonov(edges=None, edge_index=two))).edges.T.tolist() == [[0, 1], [3, 4]]
    assert load(write(platonov(edges=two))).edges.T.tolist() == [[0, 3], [1, 4]]


def test_names_of_nodes_classes_and_features_are_kept(write):
    names = {
        "node_names": np.array(list("abcdef")),
        "class_names": np.array(["cat", "dog", "cow"]),
        "attr_names": np.array(["size", "age"]),
    }
    graph = load(write(shchur(**names)))
    assert graph.nodes == tuple("abcdef")
    assert (graph.classes, graph.features) == (("cat", "dog", "cow"), ("size", "age"))


def test_names_that_are_python_objects_are_left_out_with_a_warning(tmp_path):
    np.savez(tmp_path / "g.npz", **shchur(class_names=np.array(["a", None], object)))
    with pytest.warns(UserWarning, match=r"'class_names' of g\.npz holds Python objects"):
        assert load(tmp_path / "g.npz").classes == ("0", "1")


def test_arrays_without_a_use_are_named(write):
    with pytest.warns(UserWarning, match=r"roads\.npz: the arrays years are not used"):
        load(write(platonov(years=Y)))


def test_text_labels_and_unknown_ones(write):
    labels = np.array(["b", "b", "b", "a", "a", ""])
    graph = load(write(shchur(labels=labels)))
    assert (graph.y.tolist(), graph.classes) == ([1, 1, 1, 0, 0, -1], ("a", "b"))


HUGE = np.array([10**12, 10**12])


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": X}, "neither adj_data nor edge_index nor edges; it has x"),
        ({"edges": EDGES}, "no features; it has edges; add an array X"),
        ({}, "no features; it has none"),
        (platonov(node_features=X[:, 0]), r"features of roads\.npz must be \(n, d\)"),
        (platonov(node_features=X[:4]), r"between nodes 0 to 5, but features of nodes 0 to 3"),
        (platonov(edges=EDGES - 1), "edges between nodes -1 to 4"),
        (platonov(edges=EDGES.astype(float)), "must hold whole numbers"),
        (platonov(edges=np.ones((3, 3), int)), r"got int64 of shape \(3, 3\)"),
        (platonov(edges=np.array([], int)), r"got int64 of shape \(0,\)"),
        (platonov(weights=np.ones(3)), r"one for each of 5 edges, got float64 of shape \(3,\)"),
        (platonov(weights=np.full(5, -1.0)), "weight"),
        (platonov(node_labels=Y[:5]), r"roads\.npz: y must hold one label per node"),
        (platonov(node_labels=Y - 5), "0 or more, or -1 for unknown, got -5 in row 0"),
        (platonov(node_features=X * np.nan), r"roads\.npz: X must be finite"),
        (platonov(node_features=X.astype(str)), "X must hold numbers"),
        (platonov(val_masks=None), "has masks but no val_masks"),
        (platonov(val_masks=MASKS[:1]), "masks of roads.npz must have one shape"),
        (platonov(train_masks=np.ones((2, 6))), "overlap"),
        (platonov(node_labels=np.array([0, 1, None] * 2)), "'node_labels' .* Python objects"),
        (shchur(adj_shape=HUGE), "adj_shape of roads.npz says 1000000000000 × 1000000000000"),
        (shchur(attr_shape=np.array([6, 10**12])), "attr_shape of roads.npz says 6 × 10{12}"),
        (shchur(adj_shape=np.array([6, 6, 6])), "must be two numbers"),
        (shchur(adj_shape=np.array([6, -6])), "must be two numbers"),
        (shchur(adj_shape=np.array([7, 6])), "adj_indptr has 7 entries"),
        (shchur(adj_shape=np.array([6, 9])), r"\(6, 6\) for this X, got \(6, 9\)"),
        (shchur(adj_indices=A.indices + 9), "not a CSR matrix of 6 × 6"),
        (shchur(adj_indices=A.indices - 9), "not a CSR matrix of 6 × 6"),
        (shchur(adj_indptr=A.indptr[::-1].copy()), "not a CSR matrix of 6 × 6"),
        (shchur(adj_indptr=A.indptr + 10**9), r"'adj_data' .* \(5,\), but 1,000,000,005 would fit"),
        (shchur(adj_indices=A.indices[:2]), "not a CSR matrix"),
        (shchur(adj_indptr=np.array(3)), "adj_indptr has no entries, not one more than the rows"),
        (shchur(adj_indptr=A.indptr * 1.5), "adj_indptr of roads.npz must be whole numbers, got f"),
        (shchur(adj_indices=A.indices * 1.5), "adj_indices of roads.npz must be whole numbers"),
        (shchur(adj_data=np.array(1.0)), "not a CSR matrix of 6 × 6"),
        (shchur(adj_indices=None), "has no array 'adj_indices'; it has"),
        (shchur(adj_data=np.array(["a"] * 5)), "adj_data of roads.npz must be numbers, got <U1"),
        (shchur(attr_data=np.full(11, np.inf)), "X must be finite"),
        (plain(X_indptr=None), "has no array 'X_indptr'; it has"),
        (plain(X_shape=np.array([6, 1])), "X_data, X_indices and X_indptr .* not a CSR matrix"),
        (plain(X_shape=np.array([9, 3])), "X_shape of roads.npz says 9 × 3"),
        (plain(directed=np.array("yes")), "directed of roads.npz must be one 0 or 1, got <U3"),
        (plain(directed=np.array([0, 1])), r"one 0 or 1, got int64 of shape \(2,\)"),
        (plain(val=None), "has masks but no val_masks"),
        (plain(val=MASKS[:, :4]), "masks of roads.npz must have one shape"),
        (plain(train=np.array([0, 3])), "must have one shape"),
        (plain(**dict.fromkeys(ROLES, MASKS)), "the masks train and val overlap"),
        (plain(**{role: rows[:, :5] for role, rows in ROLES.items()}), "masks of 5 nodes"),
    ],
)
def test_a_wrong_file_is_one_sentence(write, arrays, sentence):
    with pytest.raises(InputError, match=sentence):
        load(write(arrays))


def test_an_adjacency_matrix_alone_lacks_features(tmp_path):
    sp.save_npz(tmp_path / "A.npz", A)
    with pytest.raises(DataError, match=r"no features.* gcnii\.from_scipy\(A, X, y\)"):
        load(tmp_path / "A.npz")


def with_header(path, name, shape):
    """Write a .npz whose array `name` claims a shape that its content does not have."""
    content = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(content, header)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.npy", content.getvalue() + bytes(80))
    return path


@pytest.mark.parametrize("shape", [(10**12,), (10**6, 10**12), (11,), (2**62, 4)])
def test_a_huge_shape_in_a_header_takes_no_memory(tmp_path, shape):
    with pytest.raises(DataError, match=r"'X' of g\.npz must have 80 bytes for its shape"):
        load(with_header(tmp_path / "g.npz", "X", shape))


@pytest.mark.parametrize("arrays", [platonov(), shchur(), plain()])
def test_a_file_cut_anywhere_or_with_a_flipped_bit_is_one_sentence(write, arrays):
    path = write(arrays)
    whole = path.read_bytes()
    for length in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"roads\.npz"):
            load(path)
        flipped = bytearray(whole)
        flipped[length] ^= 0x55
        path.write_bytes(flipped)
        with contextlib.suppress(InputError):  # and no other; a flipped date does no harm
            load(path)


def test_a_text_file_is_no_archive(tmp_path):
    (tmp_path / "g.npz").write_text("edges: none")
    with pytest.raises(DataError, match=r"^g\.npz is not a complete \.npz file"):
        load(tmp_path / "g.npz")


def archive_of(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_npy", ".npy"), content)
    return path


def header_of(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def test_a_member_that_is_no_array_is_no_array_of_the_graph(tmp_path):
    with pytest.raises(DataError, match=r"g\.npz has no features; it has none"):
        load(archive_of(tmp_path / "g.npz", X=b"abc"))


@pytest.mark.parametrize("text", ["[" * 9000, "(" * 3000, "-" * 5000 + "1", "{'a': 1}", "\x00"])
def test_a_header_that_is_nested_or_nonsense_is_one_sentence(tmp_path, text):
    with pytest.raises(DataError, match=r"'X' of g\.npz has no header of numpy's"):
        load(archive_of(tmp_path / "g.npz", X_npy=header_of(text)))


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_two_arrays_of_one_name_are_refused(tmp_path, write):
    path = write(platonov())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("node_labels.npy", b"")
    with pytest.raises(DataError, match="two arrays of one name"):
        load(path)


@pytest.mark.parametrize(
    ("duplicates", "weight"), [("add", 17), ("mean", 17 / 3), ("max", 7), ("first", 6)]
)
def test_weights_of_an_edge_given_twice_become_what_is_asked(write, duplicates, weight):
    edges, weights = np.array([[0, 1], [1, 0], [0, 1]]), np.array([6, 4, 7])
    path = write(platonov(edges=edges, weights=weights))
    with pytest.raises(DataError, match=r"weight 13 in one direction and 4 .*--duplicates"):
        load(path)
    assert load(path, duplicates=duplicates).weights.tolist() == [weight]


def test_an_adjacency_matrix_that_is_not_symmetric_can_be_added_up(write):
    both = sp.csr_array(np.array([[0, 5], [7, 0]]), shape=(2, 2))
    both.resize((6, 6))
    parts = {part: getattr(both, part) for part in ("data", "indices", "indptr")}
    path = write(shchur(**{f"adj_{part}": one for part, one in parts.items()}))
    assert load(path, duplicates="add").weights.tolist() == [12]


def test_dense_features_may_be_many(tmp_path):
    X = np.zeros((600, 1700), np.float32)  # beyond a million numbers
    X[np.arange(600), np.arange(600)] = 1
    edges = np.stack([np.arange(599), np.arange(1, 600)])
    np.savez(tmp_path / "g.npz", x=X, edges=edges, y=np.arange(600) % 3)
    assert load(tmp_path / "g.npz").X.shape == (600, 1700)
