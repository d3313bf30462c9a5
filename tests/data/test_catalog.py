"""The catalog knows enough about every data set to fetch, show and read it."""

import hashlib
import subprocess
import sys

import pytest

from gcnii.data import CATALOG, fetch, load
from gcnii.data.download import agrees
from gcnii.errors import DataError


def test_the_catalog_holds_the_papers_data_sets_six_more_and_four_generated_ones():
    assert list(CATALOG) == [
        *("cora", "citeseer", "pubmed", "cora-full", "citeseer-full", "pubmed-full"),
        *("chameleon", "cornell", "cornell-2022", "texas", "wisconsin"),
        *("film", "squirrel", "chameleon-filtered", "minesweeper", "amazon-photo", "coauthor-cs"),
        *("ppi", "ppi-like", "customers", "digits", "csbm"),
    ]


@pytest.mark.parametrize("entry", CATALOG.values(), ids=CATALOG)
def test_every_entry_is_complete(entry):
    assert all((entry.title, entry.licence, entry.source))
    assert "\n" not in entry.title
    assert all(note.endswith(".") for note in entry.notes)
    assert len({file.name for file in entry.files}) == len(entry.files)
    assert all(file.url.startswith("https://") for file in entry.files)


def test_upstream_keeps_the_files_where_its_repositories_do():
    urls = [file.url for name in ("cora", "texas", "cornell-2022") for file in CATALOG[name].files]
    assert urls[0].endswith(
        "/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/ind.cora.x"
    )
    assert urls[8].endswith(
        "f1fc0d14b3b019c562737240d06ec83b07d16a8f/new_data/texas/out1_node_feature_label.txt"
    )
    assert urls[10].endswith("/splits/texas_split_0.6_0.2_0.npz")
    assert urls[20].endswith(
        "/bingzhewei/geom-gcn/raw/1124af1/new_data/cornell/out1_node_feature_label.txt"
    )


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("film", "f1fc0d14b3b019c562737240d06ec83b07d16a8f/new_data/film/out1_graph_edges.txt"),
        ("squirrel", "a431395582e929d88271309716bea4fe24ce6318/data/squirrel_directed.npz"),
        ("minesweeper", "/yandex-research/heterophilous-graphs/{}/data/minesweeper.npz"),
        ("amazon-photo", "/CrawlScript/gnn_datasets/{}/AmazonElectronics/amazon-photo.zip"),
        ("coauthor-cs", "482d7152d60e429763ca256dd0906fa9badaae0c/Coauthor/coauthor-cs.zip"),
    ],
)
def test_later_benchmarks_are_where_their_repositories_keep_them(name, url):
    start, _, end = url.partition("{}")
    urls = [file.url for file in CATALOG[name].files]
    assert any(start in one and one.endswith(end) for one in urls)
    assert all(one.startswith("https://raw.githubusercontent.com/") for one in urls)
    assert all(file.size and file.digest.startswith("sha256:") for file in CATALOG[name].files)


@pytest.mark.parametrize("name", ["coar", "Cora"])
def test_an_unknown_name_is_guessed(name):
    guess = f"no data set '{name}'; did you mean 'cora'. `gcnii data list` lists them"
    with pytest.raises(DataError, match=guess):
        load(name)
    with pytest.raises(DataError, match=f"no data set '{name}'"):
        fetch(name)


def test_a_name_like_no_other_is_not_guessed():
    known = "no data set 'zzz'; `gcnii data list` lists them all, or give the path of a folder with"
    with pytest.raises(DataError, match=known):
        load("zzz")


def test_what_looks_like_a_path_is_one(tmp_path, monkeypatch):
    formats = r"no/where does not exist; a graph is a folder with nodes\.csv and edges\.csv"
    with pytest.raises(DataError, match=formats):
        load("no/where")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    with pytest.raises(DataError, match=r"mine has no nodes\.csv"):
        load("mine")


def test_a_name_comes_before_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "csbm").mkdir()
    assert load("csbm").name == "csbm"
    with pytest.raises(DataError, match=r"csbm has no nodes\.csv"):
        load("./csbm")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("cora", "the data set 'cora' takes no parameters, got 'size'"),
        ("digits", "the data set 'digits' takes only neighbours, seed, got 'size'"),
        (
            "csbm",
            "takes only n, degree, classes, homophily, features, signal, seed, labels_per_class, "
            "got 'size'",
        ),
        ("./mine", "the folder mine takes only columns, id, label, .*directed, seed, .*got 'size'"),
    ],
)
def test_unknown_parameters_are_refused_with_the_known_ones(source, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    with pytest.raises(DataError, match=message):
        load(source, size=3)


def test_generated_sets_have_no_files():
    assert fetch("digits") == fetch("csbm", offline=True) == []


def test_a_git_blob_hash_covers_length_and_content(tmp_path):
    (tmp_path / "empty").touch()
    assert agrees(tmp_path / "empty", "git:e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
    assert agrees(tmp_path / "empty", f"sha256:{hashlib.sha256().hexdigest()}")


def test_importing_the_package_imports_nothing_heavy():
    heavy = "'torch', 'sklearn', 'pandas', 'rich'"
    script = f"import sys, gcnii.data; print([m for m in ({heavy}) if m in sys.modules])"
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "[]"
