"""gcnii data list, show and fetch."""

import json
import os

import numpy as np
import pytest
from support.command_line import call, files, run

import gcnii
from gcnii import data
from gcnii.errors import InputError
from gcnii.train.presets import preset


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("GCNII_DATA", str(tmp_path / "cache"))
    monkeypatch.delenv("GCNII_MIRROR", raising=False)
    return tmp_path / "cache"


def test_list_prints_one_line_per_data_set(tmp_path):
    lines = run("data", "list", cwd=tmp_path, COLUMNS="").out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *data.CATALOG]
    assert lines[1].split(maxsplit=5)[1:5] == ["2,708", "5,278", "1,433", "7"]
    assert lines[1].endswith(f"  {data.CATALOG['cora'].title}")


@pytest.mark.parametrize("columns", ["20", "80"])
def test_list_prints_two_lines_per_data_set_in_a_narrow_terminal(columns, tmp_path):
    head, *lines = run("data", "list", cwd=tmp_path, COLUMNS=columns).out.splitlines()
    assert head.split() == ["name", "nodes", "edges", "features", "classes"]
    assert [line.split()[0] for line in lines[::2]] == [*data.CATALOG]
    assert lines[1::2] == [f"   {entry.title}" for entry in data.CATALOG.values()]
    assert not any(str(one.counts.nodes) in one.title for one in data.CATALOG.values())


def test_list_in_json_has_the_counts(tmp_path):
    listed = json.loads(call("data", "list", "--json", cwd=tmp_path).out)
    assert [entry["name"] for entry in listed] == list(data.CATALOG)
    assert [listed[0][key] for key in ("nodes", "edges", "features", "classes")] == [
        2708,
        5278,
        1433,
        7,
    ]


def test_show_prints_source_licence_notes_and_presets(tmp_path):
    lines = call("data", "show", "cora", cwd=tmp_path).out.splitlines()
    entry = data.CATALOG["cora"]
    assert lines[:4] == [
        f"cora: {entry.title}",
        "  2708 nodes, 5278 edges, 1433 features, 7 classes",
        f"  source: {entry.source}",
        f"  licence: {entry.licence}",
    ]
    assert [line for line in lines if line.startswith("  note: ")] == [
        f"  note: {note}" for note in entry.notes
    ]
    assert ["layers", "64"] in [line.split()[:2] for line in lines]


def test_show_says_that_there_are_no_presets(tmp_path):
    line = "  no presets: the defaults of the model and of the recipe apply\n"
    assert line in call("data", "show", "csbm", cwd=tmp_path).out
    line = "  no published settings: the default applies (docs/understand/defaults.md)\n"
    assert line in call("data", "show", "film", cwd=tmp_path).out


def test_show_in_json_has_the_settings(tmp_path):
    shown = json.loads(call("data", "show", "texas", "--json", cwd=tmp_path).out)
    assert shown["presets"]["gcnii"] == preset("texas", "gcnii")
    assert len(shown["files"]) == len(data.CATALOG["texas"].files)
    assert list(shown["neighbourhoods"]) == ["isomap", "poincare", "struc2vec"]


def test_show_says_that_there_are_neighbourhoods_for_geom_gcn(tmp_path):
    names = "isomap, poincare, struc2vec"
    line = f"  neighbourhoods for Geom-GCN, fetched when first used: {names}\n"
    assert line in call("data", "show", "texas", cwd=tmp_path).out
    assert "neighbourhoods" not in call("data", "show", "cornell-2022", cwd=tmp_path).out


@pytest.mark.parametrize("words", ["train texas", "doctor texas --depths 2"])
def test_offline_training_does_not_fetch_a_neighbourhood(words, monkeypatch, real_data, tmp_path):
    graph = real_data("texas")
    monkeypatch.setattr("gcnii.cli.options.load", lambda *names, **parameters: graph)
    monkeypatch.setenv("GCNII_DATA", str(tmp_path / "cache"))
    for name in ("GCNII_MIRROR", "GCNII_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    answer = call(*words.split(), "--model", "geom-gcn-p", "--offline", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert "outf_nodes_space_relation_texas_poincare.txt for 'texas' on this machine" in answer.err


@pytest.mark.parametrize("words", ["predict", "evaluate", "explain", "report run"])
def test_offline_nothing_fetches_the_neighbourhood_of_a_bundle(
    words, monkeypatch, real_data, tmp_path
):
    graph = real_data("texas")
    gcnii.fit(graph, "geom-gcn-p", epochs=1, seeds=[0], device="cpu").save(tmp_path / "bundle")
    monkeypatch.setattr("gcnii.cli.predict.load_training_graph", lambda *_, **__: graph)
    monkeypatch.setenv("GCNII_DATA", str(tmp_path / "cache"))
    for name in ("GCNII_MIRROR", "GCNII_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("gcnii.data.download._download", lambda missing: pytest.fail("fetched"))
    node = ["0"] if words == "explain" else []
    answer = call(*words.split(), "bundle", *node, "--offline", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert "outf_nodes_space_relation_texas_poincare.txt for 'texas' on this machine" in answer.err


@pytest.mark.parametrize("words", [(), ("--offline",)])
def test_a_search_is_told_whether_it_may_fetch(words, monkeypatch, tmp_path):
    def spy(question, *, session, **rest):
        raise InputError(f"offline is {session.offline}")

    monkeypatch.setattr("gcnii.tuning.study.Tuner.of", spy)
    answer = call("tune", "digits", "--trials", "3", *words, cwd=tmp_path)
    assert answer.err == f"gcnii: offline is {bool(words)}\n"


def test_offline_ends_with_its_command(monkeypatch, tmp_path):
    monkeypatch.delenv("GCNII_OFFLINE", raising=False)
    call("train", "coar", "--offline", cwd=tmp_path)
    assert "GCNII_OFFLINE" not in os.environ


def test_show_writes_the_tables_of_customers_as_ones_own(tmp_path):
    assert call("data", "show", "customers", "--out", "shop", cwd=tmp_path).code == 0
    graph = gcnii.load(tmp_path / "shop", text="note")
    assert graph.fingerprint == gcnii.load("customers").fingerprint
    again = call("data", "show", "customers", "--out", "shop", cwd=tmp_path)
    assert (again.code, again.err) == (2, "gcnii: shop exists; choose another --out\n")
    other = call("data", "show", "digits", "--out", "other", cwd=tmp_path)
    assert (other.code, files(tmp_path)) == (2, ["shop/edges.csv", "shop/nodes.csv"])
    assert other.err == "gcnii: digits is not made of tables; --out writes those of customers\n"


def test_fetch_puts_files_where_train_finds_them(real_data, tmp_path):
    real_data("cora")
    answer = call("data", "fetch", "cora", "digits", cwd=tmp_path)
    assert answer == (
        0,
        "cora: 8 files, verified\ndigits: generated, no files\n",
        "",
    )
    paths = json.loads(call("data", "fetch", "cora", "--json", cwd=tmp_path).out)["cora"]
    assert len(paths) == 8


def test_fetch_with_one_typo_fetches_nothing(monkeypatch, empty_cache, tmp_path):
    fetched = []
    monkeypatch.setattr(data, "fetch", lambda name, offline: fetched.append(name))
    answer = call("data", "fetch", "digits", "cora", "coar", cwd=tmp_path)
    assert (answer.code, answer.out, fetched) == (2, "", [])
    assert answer.err.startswith("gcnii: no data set 'coar'; did you mean 'cora'? ")


def test_fetch_all_fetches_every_data_set(monkeypatch, tmp_path):
    monkeypatch.setattr(data, "fetch", lambda name, offline: [])
    assert list(json.loads(call("data", "fetch", "all", "--json", cwd=tmp_path).out)) == list(
        data.CATALOG
    )


@pytest.mark.parametrize("words", ["data fetch cora", "train cora"])
def test_offline_without_files_says_what_to_do(words, empty_cache, tmp_path):
    answer = call(*words.split(), "--offline", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert (
        "run `gcnii data fetch cora` with a network, set GCNII_MIRROR to a folder that has it"
        in answer.err
    )
    assert list(tmp_path.iterdir()) == []


def test_control_characters_in_names_of_classes_are_shown_as_escapes(tmp_path):
    graph = gcnii.from_scipy(np.ones((6, 6)), np.eye(6), ["\x1b[31mred", "b"] * 3)
    gcnii.save(graph, tmp_path / "g.safetensors")
    answer = call("data", "check", "g.safetensors", cwd=tmp_path)
    assert "\\x1b[31mred" in answer.out
    assert "\x1b" not in answer.out
