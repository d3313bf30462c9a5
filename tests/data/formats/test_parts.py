"""A graph in parts: each process reads its own alone, and all of them are the graph again."""

import json
import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from support.together import graph_of

from gcnii.data import load, load_share
from gcnii.data.formats.parts import MANIFEST, part_name, refuse_folder
from gcnii.errors import DataError, InputError
from gcnii.files import document_key
from gcnii.graph import Graph, Piece
from gcnii.graph.columns import Column, Columns, Table
from gcnii.train.distributed.shard import pack
from gcnii.train.plan import make_plan

pytestmark = pytest.mark.filterwarnings("ignore:pymetis is not installed")
KINDS = [
    {},
    {"sparse": True},
    {"directed": True},
    {"weighted": True, "directed": True},
    {"multilabel": True},
]


@pytest.fixture
def folder(tmp_path):
    """`folder(graph, 4)` → where the graph is, in so many parts."""

    def packed(graph, parts=4):
        pack(graph, tmp_path / "graph", parts)
        return tmp_path / "graph"

    return packed


def pieces_of(path, size):
    return [load_share(path, rank, size) for rank in range(size)]


@pytest.mark.parametrize("kind", KINDS)
def test_all_parts_are_the_graph_again(kind, folder):
    graph = replace(graph_of(n=60, **kind), classes=None, nodes=[f"node {i}" for i in range(60)])
    again = load(folder(graph))
    assert type(again) is Graph
    assert again.fingerprint == graph.fingerprint
    assert (again.nodes, again.name, again.m, again.k) == (
        graph.nodes,
        graph.name,
        graph.m,
        graph.k,
    )


def test_names_the_table_and_several_graphs_are_kept(folder):
    columns = Columns((Column("size", "numeric", median=2.0),))
    table = Table(5, {"size": np.arange(5.0)})
    graph = Graph(
        X=np.ones((5, 1)), edges=[[0, 1], [1, 4]], y=[0, 1, 0, 1, -1], part=[0, 0, 0, 1, 1],
        classes=("cat", "\ud800"), features=("Größe",),
    )._with_table(table, columns)  # fmt: skip
    again = load(folder(graph, 2))
    assert (again.classes, again.features) == (graph.classes, graph.features)
    assert again.part.tolist() == [0, 0, 0, 1, 1]
    assert again.table.columns["size"].tolist() == [0, 1, 2, 3, 4]
    assert again.columns.document() == columns.document()
    assert load_share(folder(graph, 2), 0, 2).columns.document() == columns.document()


@pytest.mark.parametrize("size", [2, 4])
def test_a_process_has_its_rows_and_every_edge_that_touches_them(size, folder):
    graph = graph_of(n=60)
    pieces = pieces_of(folder(graph), size)
    assert sorted(np.concatenate([piece.rows for piece in pieces])) == list(range(60))
    for rank, piece in enumerate(pieces):
        assert isinstance(piece, Piece)
        assert np.array_equal(piece.X, graph.X[piece.rows])
        assert np.array_equal(piece.labels, graph.labels[piece.rows])
        assert np.array_equal(piece.splits[0].val, graph.splits[0].val[piece.rows])
        touching = np.isin(graph.edges, piece.rows).any(0)
        assert np.array_equal(piece.edges, graph.edges[:, touching])
        assert piece.edges.shape[1] < graph.edges.shape[1]
        assert (piece.n, piece.m, piece.k, piece.fingerprint) == (
            graph.n,
            graph.m,
            graph.k,
            graph.fingerprint,
        )
        for node, owner in zip(piece.places.halo, piece.places.owner, strict=True):
            assert owner != rank
            assert node in pieces[owner].rows


def test_a_process_reads_no_part_but_its_own(folder):
    path = folder(graph_of(n=60))
    wanted = load_share(path, 2, 4)
    for part in (0, 1, 3):
        (path / part_name(part)).unlink()
    assert np.array_equal(load_share(path, 2, 4).X, wanted.X)
    with pytest.raises(DataError, match=r"part-1\.safetensors is missing; copy it there, or pack"):
        load_share(path, 1, 4)


def test_its_features_stay_in_the_file_until_they_are_used(folder):
    piece = load_share(folder(graph_of(n=60)), 1, 4)
    base = piece.X
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    assert type(base).__name__ == "mmap"


def test_every_process_makes_the_plan_of_one(folder):
    path = folder(graph_of(n=60, sparse=True))
    whole = load(path)
    for piece in pieces_of(path, 4):
        for given in ({}, {"scale": "auto"}):
            assert make_plan("gcnii", given, piece) == make_plan("gcnii", given, whole)


def test_the_columns_of_a_table_are_scaled_in_parts_as_in_the_whole(folder):
    whole = replace(graph_of(n=60), X=np.eye(60)[:, :6], features=None)  # like words
    columns = Columns(tuple(Column(f"x{i}", "numeric", median=0.0) for i in range(whole.d)))
    path = folder(whole._with_table(Table(60, {}), columns))
    assert make_plan("gcnii", {}, whole).recipe.scale == "length"
    for piece in pieces_of(path, 4):
        assert make_plan("gcnii", {}, piece).recipe.scale == "standard"


@pytest.mark.parametrize(("sparse", "scale"), [(True, "length"), (False, "standard")])
def test_parts_of_an_older_gcnii_keep_the_scale_of_their_traits(sparse, scale, folder):
    path = folder(graph_of(n=60))
    traits = {"n": 60, "d": 4, "train": 30, "sparse": sparse, "multilabel": False, "homophily": 1.0}
    rewrite(path, lambda manifest: manifest["known"].update(traits=traits, scale="rows"))
    for piece in pieces_of(path, 4):
        assert make_plan("gcnii", {}, piece).recipe.scale == scale


@pytest.mark.parametrize("name", [MANIFEST, part_name(0), part_name(1)])
def test_damage_is_refused_in_one_sentence(name, folder):
    path = folder(graph_of(n=60), 2)
    content = bytearray((path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (path / name).write_bytes(content)
    with pytest.raises(DataError, match=r"pack the graph again$"):
        load(path)


def test_a_changed_list_and_a_newer_one_are_refused(folder):
    path = folder(graph_of(n=60), 2)
    manifest = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps(manifest | {"n": 61}))
    with pytest.raises(DataError, match="was changed after it was written"):
        load(path)
    newer = {name: one for name, one in manifest.items() if name != "seal"} | {"version": 2}
    (path / MANIFEST).write_text(json.dumps(newer | {"seal": document_key(newer)}))
    with pytest.raises(DataError, match="was written by a newer gcnii"):
        load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", lambda rows: rows[::-1]),
        ("rows", lambda rows: rows + 60),
        ("y", lambda y: y[1:]),
        ("first.both", lambda first: first[1:]),
        ("pairs", lambda pairs: pairs[1:]),
        ("halo", lambda halo: halo[1:]),
        ("edges", lambda edges: edges - 1),
        ("roles", None),
        ("y", None),
        ("edges", None),
        ("rows", None),
    ],
)
def test_a_part_that_contradicts_itself_is_refused(name, change, folder):
    path = folder(graph_of(n=60), 2)
    forge(path, name, change)
    with pytest.raises(DataError, match=r"pack the graph again$"):
        load_share(path, 0, 2)


def test_parts_with_numbers_of_different_types_are_refused(folder):
    path = folder(graph_of(n=60), 2)
    forge(path, "y", lambda y: np.full(y.shape, np.nan))
    with pytest.raises(DataError, match=r"numbers of different types.; pack the graph again$"):
        load(path)


def forge(path, name, change):
    """Change a tensor of part 0, or remove it, and mend the digest and the seal."""
    tensors = load_file(path / part_name(0))
    held = tensors.pop(name)
    if change is not None:
        tensors[name] = np.ascontiguousarray(change(held))
    save_file(tensors, path / part_name(0), {"gcnii": ""})
    digest = sha256((path / part_name(0)).read_bytes()).hexdigest()
    rewrite(path, lambda manifest: manifest["parts"][0].update(sha256=digest))


def rewrite(path, change):
    """Change the list of parts, and mend its seal."""
    manifest = json.loads((path / MANIFEST).read_text())
    manifest.pop("seal")
    change(manifest)
    (path / MANIFEST).write_text(json.dumps(manifest | {"seal": document_key(manifest)}))


def test_a_number_of_processes_that_does_not_divide_the_parts_is_refused(folder):
    path = folder(graph_of(n=60), 4)
    sentence = r"4 parts, which 3 processes cannot share equally; start 1, 2, 4, or cut it again: "
    with pytest.raises(InputError, match=sentence + r"gcnii data pack .* OUT --parts 3"):
        load_share(path, 0, 3)


def test_options_of_tables_are_refused(folder):
    path = folder(graph_of(n=60), 2)
    with pytest.raises(DataError, match=r"graph in parts .* takes no parameters, got 'directed'"):
        load_share(path, 0, 2, directed=True)


def test_a_graph_in_parts_is_replaced_and_nothing_else_is(folder, tmp_path):
    folder(graph_of(n=60), 4)
    path = folder(graph_of(n=80), 2)
    assert load(path).n == 80
    assert sorted(one.name for one in path.iterdir()) == [
        "part-0.safetensors",
        "part-1.safetensors",
        MANIFEST,
    ]
    assert [one.name for one in tmp_path.iterdir()] == ["graph"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").touch()
    with pytest.raises(InputError, match="mine exists and is not a graph in parts"):
        refuse_folder(tmp_path / "mine")


def test_a_failed_write_leaves_nothing(folder, tmp_path):
    graph = graph_of(n=60)
    with pytest.raises(InputError, match="csbm has 60 nodes and cannot be cut into 61 parts"):
        folder(graph, 61)
    object.__setattr__(graph, "part", np.zeros(3, np.int64))  # it breaks within the first part
    with pytest.raises(IndexError):
        folder(graph, 2)
    assert list(tmp_path.iterdir()) == []


def tree(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_that_we_did_not_write_is_never_deleted(folder, tmp_path):
    path = tmp_path / "graph"
    (path / "src").mkdir(parents=True)
    (path / MANIFEST).write_text('{"bolts": 3}')
    (path / "thesis.tex").write_text("years")
    before = tree(path)
    with pytest.raises(InputError, match=r"gcnii did not write 'parts.json', 'src', 'thesis.tex'"):
        folder(graph_of(n=60), 2)
    assert tree(path) == before


def test_a_file_beside_real_parts_is_never_deleted(folder):
    path = folder(graph_of(n=60), 2)
    (path / "notes.txt").write_text("mine")
    before = tree(path)
    with pytest.raises(InputError, match=r"gcnii did not write 'notes.txt'; choose another name"):
        folder(graph_of(n=80), 2)
    assert tree(path) == before


@pytest.mark.parametrize("place", [".", "..", "graph/.."])
def test_the_folder_that_one_is_in_is_not_replaced_by_parts(place, folder, tmp_path, monkeypatch):
    folder(graph_of(n=60), 2)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work" if place == ".." else tmp_path)
    with pytest.raises(InputError, match=r"is the folder that you are in; name one"):
        pack(graph_of(n=60), Path(place), 2)


def test_a_pipe_among_the_parts_is_refused_and_not_waited_for(folder):
    path = folder(graph_of(n=60), 2)
    (path / part_name(1)).unlink()
    os.mkfifo(path / part_name(1))
    with pytest.raises(DataError, match=r"part-1\.safetensors is not a regular file"):
        load(path)


def test_a_part_that_is_a_link_to_itself_is_refused(folder):
    path = folder(graph_of(n=60))
    part = path / part_name(1)
    part.unlink()
    part.symlink_to(part.name)
    with pytest.raises(
        DataError, match=r"part-1\.safetensors cannot be read or written: .*; replace"
    ):
        load(path)
