"""PPI is read from its published layout, here from a small stand-in of it."""

import zipfile

import numpy as np
import pytest
from support.local_server import add
from support.stand_ins import PPI_GRAPHS, write_ppi

from gcnii.data import CATALOG, fetch, load
from gcnii.data.benchmarks import read_ppi
from gcnii.data.catalog import File
from gcnii.data.download import measure
from gcnii.errors import DataError


@pytest.fixture
def files(tmp_path):
    return write_ppi(tmp_path / "ppi")


@pytest.fixture
def archived(files, server, cache, monkeypatch):
    """`archived(rename, extra)`: the stand-in as a zip on the server, its members renamed."""

    def pack(rename=lambda name: f"ppi/{name}", extra=()):
        path = cache.parent / "ppi.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, file in files.items():
                archive.writestr(rename(name), file.read_bytes())
            for name in extra:
                archive.writestr(name, b"evil")
        server.files = {"/ppi.zip": path.read_bytes()}
        url = f"{server.address}/ppi.zip"
        members = (
            File(f"ppi/{name}", url, measure(file, "git"), archived=True)
            for name, file in files.items()
        )
        return add(monkeypatch, "ppi", *members)

    return pack


def test_the_graphs_are_blocks_of_one_and_each_has_one_role(files):
    graph = read_ppi(files)
    (split,) = graph.splits
    assert graph.part.tolist() == np.repeat(range(5), 6).tolist()
    assert (graph.part[graph.edges[0]] == graph.part[graph.edges[1]]).all()
    assert [set(graph.part[mask].tolist()) for mask in (split.train, split.val, split.test)] == [
        {0, 1, 2},
        {3},
        {4},
    ]
    assert not graph.directed


def test_every_ring_comes_back_with_its_self_loop(files):
    graph = read_ppi(files)
    assert graph.m == 5 * 6
    assert (graph.edges[0] == graph.edges[1]).sum() == 4


def test_features_and_labels_are_used_as_shipped(files):
    graph = read_ppi(files)
    for field, kind in (("X", "feats"), ("y", "labels")):
        shipped = np.concatenate([np.load(files[f"{part}_{kind}.npy"]) for part in PPI_GRAPHS])
        np.testing.assert_array_equal(
            getattr(graph, field), shipped.astype(getattr(graph, field).dtype)
        )
    assert graph.X.dtype == np.float32
    assert graph.multilabel


def test_the_archive_is_unpacked_into_the_cache(archived, cache, server, monkeypatch):
    entry = archived()
    paths = fetch("ppi")
    assert paths == [cache / file.path for file in entry.files] == fetch("ppi", offline=True)
    assert sorted(path.name for path in cache.rglob("*") if path.is_file()) == sorted(
        file.name for file in entry.files
    )
    assert len(server.requests) == 1
    assert read_ppi({path.name: path for path in paths}).n == 30


def test_members_land_where_the_catalog_says_whatever_they_are_called(archived, cache, tmp_path):
    archived(lambda name: f"../../{name}", extra=["../../evil.txt", "/tmp/../evil.txt", "evil.txt"])
    before = {path for path in tmp_path.rglob("*") if cache not in path.parents}
    fetch("ppi")
    assert {path for path in tmp_path.rglob("*") if cache not in path.parents} - before == {cache}
    assert {path.parent.name for path in cache.rglob("*") if path.is_file()} == {"ppi"}
    assert not list(tmp_path.rglob("evil.txt"))


def test_a_member_with_another_hash_is_refused_and_not_kept(archived, cache, monkeypatch):
    good = archived().files
    wrong = File(good[0].path, good[0].url, "git:" + "0" * 40, archived=True)
    add(monkeypatch, "ppi", wrong, *good[1:])
    with pytest.raises(
        DataError,
        match=rf"{wrong.name} in http.*ppi.zip is not the .* expected git:0{{40}}, got git:\w+;",
    ):
        fetch("ppi")
    assert not (cache / wrong.path).exists()


def test_an_archive_without_a_member_is_named(archived):
    archived(lambda name: name.replace("train_feats", "train_feet"))
    with pytest.raises(DataError, match=r"ppi\.zip holds no train_feats\.npy; try again"):
        fetch("ppi")


def test_a_download_that_is_not_an_archive_is_named(archived, server):
    archived()
    server.files["/ppi.zip"] = b"<html>not found</html>"
    with pytest.raises(
        DataError, match=r"ppi\.zip is not a readable zip archive \(File is not a zip file\)"
    ):
        fetch("ppi")


def test_the_catalog_knows_all_twelve_files():
    assert {file.name for file in CATALOG["ppi"].files} == {
        f"{part}_{kind}"
        for part in PPI_GRAPHS
        for kind in ("feats.npy", "graph.json", "graph_id.npy", "labels.npy")
    }


def test_without_the_files_and_a_network_ppi_says_what_to_do(cache):
    with pytest.raises(
        DataError, match=r"no good copy of ppi/test_feats\.npy \(and 11 more\) for 'ppi'"
    ):
        load("ppi", offline=True)
