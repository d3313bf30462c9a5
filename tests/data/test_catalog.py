"""The catalog says enough of every data set to fetch, show, read and train it."""

import hashlib
import subprocess
import sys

import pytest

from gcnii.data import CATALOG, fetch, load
from gcnii.data.digest import agrees
from gcnii.errors import DataError
from gcnii.train.presets import preset

STOP = {"lr": 0.01, "epochs": 1500, "patience": 100, "monitor": "val_loss"}


def test_the_catalog_holds_every_data_set_of_the_paper_and_three_generated_ones():
    assert list(CATALOG) == [
        *("cora", "citeseer", "pubmed", "cora-full", "citeseer-full", "pubmed-full"),
        *(
            "chameleon",
            "cornell",
            "cornell-2022",
            "texas",
            "wisconsin",
            "ppi",
            "ppi-like",
            "digits",
            "csbm",
        ),
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


def test_cora_is_trained_as_table_6_says():
    settings = {"layers": 64, "width": 64, "alpha": 0.1, "lam": 0.5, "dropout": 0.6}
    assert preset("cora", "gcnii") == {**settings, "decay_conv": 0.01, "decay_dense": 5e-4, **STOP}
    assert (
        preset("cora", "gcnii-star")
        == preset("cora", "gcnii-star-printed")
        == preset("cora", "gcnii")
    )


def test_texas_is_trained_as_the_appendix_says():
    settings = {"layers": 32, "width": 64, "alpha": 0.5, "lam": 1.5, "dropout": 0.5}
    assert preset("texas", "gcnii") == {**settings, "decay_conv": 1e-4, "decay_dense": 1e-4, **STOP}


def test_a_deep_gcn_is_trained_like_gcnii_without_its_two_residuals():
    both = preset("citeseer-full", "gcnii"), preset("citeseer-full", "deep-gcn")
    assert both[0].items() - both[1].items() == {("alpha", 0.5), ("lam", 0.5)}
    assert preset("texas", "deep-gcn") == {}


def test_dropedge_s_networks_are_trained_as_their_authors_scripts_say():
    plain = {"self_weight": False, "batch_norm": False}
    stop = {"epochs": 400, "patience": 400, "monitor": "noisy_loss"}
    assert preset("cora", "jknet") == {
        **{
            "layers": 4,
            "width": 128,
            "dropout": 0.8,
            "lr": 0.001,
            "decay_conv": 5e-4,
            "decay_dense": 5e-4,
        },
        **{"norm": "walk", "drop_edge": 0.6, **plain, **stop},
    }
    assert preset("cora", "incep")["layers"] == 64
    both = preset("pubmed-full", "jknet")
    assert (both["layers"], both["self_weight"], both["batch_norm"]) == (64, True, True)


def test_jknet_on_web_pages_is_trained_as_the_appendix_says():
    settings = preset("texas", "jknet")
    assert (
        settings.items()
        >= {"layers": 32, "width": 64, "drop_edge": 0.8, "decay_conv": 5e-5, **STOP}.items()
    )
    assert preset("cornell", "incep") == preset("cornell-2022", "incep")
    assert preset("texas", "dropedge-gcn") == {}


def test_geom_gcn_is_trained_as_its_authors_say():
    settings = {"layers": 2, "width": 48, "dropout": 0.5, "decay_conv": 5e-6, "decay_dense": 5e-6}
    assert preset("chameleon", "geom-gcn-i") == preset("chameleon", "geom-gcn-s") == settings
    assert preset("texas", "geom-gcn-p") == {
        **settings,
        "width": 32,
        "decay_conv": 5e-5,
        "decay_dense": 5e-5,
    }
    assert preset("cornell-2022", "geom-gcn-i") == preset("cora", "geom-gcn-i") == {}


def test_ppi_stops_by_its_score():
    settings = preset("ppi", "gcnii-ppi")
    assert settings == preset("ppi", "gcnii-star-ppi")
    assert (settings["layers"], settings["width"], settings["monitor"]) == (9, 2048, "val_score")
    assert (settings["epochs"], settings["patience"], settings["lr"], settings["decay_conv"]) == (
        8000,
        2000,
        0.001,
        0,
    )


def test_a_preset_is_a_copy_and_empty_where_there_is_none():
    preset("cora", "gcnii")["layers"] = 1
    assert preset("cora", "gcnii")["layers"] == 64
    assert preset("cora", "no-model") == preset("my/folder", "gcnii") == {}


@pytest.mark.parametrize("name", ["coar", "Cora"])
def test_an_unknown_name_is_guessed(name):
    with pytest.raises(
        DataError,
        match=f"no dataset '{name}'; did you mean 'cora'. known: cora, citeseer, pubmed, ",
    ):
        load(name)
    with pytest.raises(DataError, match=f"no dataset '{name}'"):
        fetch(name)


def test_a_name_like_no_other_is_not_guessed():
    with pytest.raises(
        DataError,
        match=r"no dataset 'zzz'; known: cora, .*, csbm, or the path of a folder with nodes\.csv",
    ):
        load("zzz")


def test_what_looks_like_a_path_is_one(tmp_path, monkeypatch):
    with pytest.raises(
        DataError,
        match=r"no/where does not exist; a graph is a folder with nodes\.csv and edges\.csv",
    ):
        load("no/where")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    with pytest.raises(DataError, match=r"mine has no nodes\.csv"):
        load("mine")


def test_a_name_wins_over_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "csbm").mkdir()
    assert load("csbm").name == "csbm"
    with pytest.raises(DataError, match=r"csbm has no nodes\.csv"):
        load("./csbm")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("cora", "the dataset 'cora' takes no parameters, got 'size'"),
        ("digits", "the dataset 'digits' takes only neighbours, seed, got 'size'"),
        (
            "csbm",
            "takes only n, degree, classes, homophily, features, signal, seed, labels_per_class, got 'size'",
        ),
        ("./mine", "the folder ./mine takes only directed, seed, got 'size'"),
    ],
)
def test_unknown_parameters_are_refused_with_the_known_ones(source, message):
    with pytest.raises(DataError, match=message):
        load(source, size=3)


def test_generated_sets_have_no_files():
    assert fetch("digits") == fetch("csbm", offline=True) == []


def test_a_git_blob_hash_covers_length_and_content(tmp_path):
    (tmp_path / "empty").touch()
    assert agrees(tmp_path / "empty", "git:e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
    assert agrees(tmp_path / "empty", f"sha256:{hashlib.sha256().hexdigest()}")


def test_importing_the_room_imports_nothing_heavy():
    script = "import sys, gcnii.data; print([m for m in ('torch', 'sklearn', 'pandas', 'rich') if m in sys.modules])"
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == "[]"
