"""Answers in Arrow, and in DuckDB files."""

import numpy as np
import pandas as pd
import pytest
from support.command_line import SMALL, call, write_pets

import gcnii
from gcnii.errors import InputError

pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with pets and a bundle of them."""
    folder = tmp_path_factory.mktemp("answers")
    write_pets(folder / "pets")
    assert call("train", "pets", *SMALL, "--out", "b", cwd=folder).code == 0
    return folder


@pytest.fixture(scope="module")
def table(place):
    return gcnii.to_table(gcnii.open_bundle(place / "b"), gcnii.load(place / "pets"))


def rows(path, query):
    with duckdb.connect(path, read_only=True) as database:
        return database.execute(query).fetchall()


def test_the_table_has_the_types_of_a_database_and_its_nulls(table):
    text, number = pa.large_string(), pa.float64()
    types = [text, text, number, text, text, number, number]
    assert [field.type for field in table.schema] == types
    assert table["known"].null_count == table["split"].null_count == 2


def test_the_table_has_what_predict_writes(place, table, tmp_path):
    call("predict", "b", "--out", tmp_path / "labels.parquet", cwd=place)
    assert table.equals(pa.parquet.read_table(tmp_path / "labels.parquet"), check_metadata=False)


def test_what_is_no_result_has_no_table():
    with pytest.raises(InputError, match=r"to_table takes what gcnii\.fit .* returned, got int"):
        gcnii.to_table(7)


def test_predict_writes_a_table_of_a_duckdb_file_and_replaces_it(place, table, tmp_path):
    path = tmp_path / "new" / "crm.duckdb"
    for _ in range(2):
        answer = call("predict", "b", "--out", f"duckdb://{path}/labels", cwd=place)
        assert answer == (0, f"12 nodes labelled: duckdb://{path}/labels\n", "")
    found = rows(path, 'SELECT node, label, known, "p(cat)" FROM labels')
    columns = (table[name].to_pylist() for name in ("node", "label", "known", "p(cat)"))
    assert found == list(zip(*columns, strict=True))


def test_another_table_is_kept_unless_overwrite_is_said(place, tmp_path):
    path, query = tmp_path / "crm.duckdb", "SELECT * FROM person"
    with duckdb.connect(path) as database:
        database.execute("CREATE TABLE person AS SELECT 7 AS id")
    out = f"duckdb://{path}/Person"
    answer = call("predict", "b", "--out", out, cwd=place)
    assert answer.code == 2
    assert f"{path} has a table Person that gcnii did not write; choose another" in answer.err
    assert rows(path, query) == [(7,)]
    assert call("predict", "b", "--out", out, "--overwrite", cwd=place).code == 0
    assert len(rows(path, query)) == 12


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        (
            "duckdb://crm.duckdb",
            "--out must name a file and a table, duckdb://FILE/TABLE, got",
        ),
        ("duckdb://pets/nodes.csv/t", "nodes.csv is no file of DuckDB; choose another name"),
        ("duckdb://b/run.json/t", "b/run.json is no file of DuckDB; choose another name"),
        ("duckdb://pets/t", "pets is not a regular file; choose another name"),
        ("labels.txt", "--out must end in .csv or .parquet, or be duckdb://FILE/TABLE, got lab"),
    ],
)
def test_what_is_no_place_for_answers_is_refused(place, out, sentence):
    answer = call("predict", "b", "--out", out, cwd=place)
    assert (answer.code, answer.out) == (2, "")
    assert sentence in answer.err


def test_a_file_that_is_no_database_is_kept(place, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    asked = ("embed", "b", "--out", f"duckdb://{tmp_path}/notes.txt/t", "--json")
    for more in ([], ["--overwrite"]):
        answer = call(*asked, *more, cwd=place)
        assert answer.code == 2
        assert "notes.txt is no file of DuckDB; choose another name" in answer.err
        assert (tmp_path / "notes.txt").read_text() == "mine"


def test_what_duckdb_calls_memory_is_a_file(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("predict", place / "b", "--out", "duckdb://:memory:/t", cwd=tmp_path).code == 0
    assert len(rows(tmp_path / ":memory:", "SELECT * FROM t")) == 12


@pytest.mark.parametrize("name", ["e.csv", "e.parquet"])
def test_embeddings_are_the_last_hidden_layer(place, tmp_path, name):
    assert call("embed", "b", "--out", tmp_path / name, cwd=place).out.startswith(
        "12 nodes, 8 numbers each: "
    )
    found = (pd.read_csv if name == "e.csv" else pd.read_parquet)(tmp_path / name)
    H = gcnii.open_bundle(place / "b").embed(gcnii.load(place / "pets"))
    assert list(found["node"][:2]) == ["pet0", "pet1"]
    assert np.allclose(found.drop(columns="node"), H, atol=1e-7)
    assert call("embed", "b", "--out", tmp_path / name, cwd=place).code == 0
    assert call("predict", "b", "--out", tmp_path / name, cwd=place).code == 2


def test_embeddings_in_duckdb_are_an_array_for_searches(place, tmp_path):
    out = tmp_path / "crm.duckdb"
    call("embed", "b", "--out", f"duckdb://{out}/vectors", cwd=place)
    array = "SELECT node, [*COLUMNS('^e[0-9]+$')]::FLOAT[8] AS v FROM vectors"
    near = f"WITH a AS ({array}) SELECT node FROM a ORDER BY array_distance(v, (SELECT v FROM a "
    assert rows(out, near + "WHERE node = 'pet3')) LIMIT 1") == [("pet3",)]
