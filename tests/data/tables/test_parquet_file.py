"""A parquet file is a table whose columns have types."""

import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from gcnii.data.tables import frame
from gcnii.data.tables.frame import open_parquet
from gcnii.errors import DataError, Problems

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def rows(tmp_path):
    """`rows(id=[…], x=[…])` → the table in nodes.parquet."""

    def opened(**columns):
        problems = Problems()
        table = open_parquet(written(tmp_path, pa.table(columns)), problems)
        assert problems.found == []
        return table

    return opened


def written(folder, table):
    path = folder / "nodes.parquet"
    pq.write_table(table, path, row_group_size=3)
    return path


def refused(path):
    problems = Problems()
    assert open_parquet(path, problems) is None
    return problems.found


def cells(table, *as_text):
    return {name: found.tolist() for name, found in table.cells(table.header, as_text).items()}


def test_a_parquet_file_is_a_table(rows):
    table = rows(id=["a", "b"], x=[1, 2])
    assert (table.name, table.header, len(table)) == ("nodes.parquet", ("id", "x"), 2)
    assert table.place(0) == "row 1 of nodes.parquet"


def test_numbers_and_truth_values_are_float32_and_nulls_are_nan(rows):
    table = rows(
        whole=pa.array([1, None, 2**40], pa.int64()),
        small=pa.array([0, 255, None], pa.uint8()),
        float=[0.1, float("nan"), None],
        large=[1e39, -1e39, 1.0],
        decimal=[Decimal("1.50"), None, Decimal("0.25")],
        truth=[True, False, None],
        category=pa.array([5, 7, None]).dictionary_encode(),
        nothing=pa.nulls(3),
    )
    nan, inf = np.nan, np.inf
    assert {column.dtype.name for column in table.cells(table.header, ()).values()} == {"float32"}
    np.testing.assert_equal(
        cells(table),
        {
            "whole": [1, nan, 2.0**40],
            "small": [0, 255, nan],
            "float": [float(np.float32(0.1)), nan, nan],
            "large": [inf, -inf, 1],
            "decimal": [1.5, nan, 0.25],
            "truth": [1, 0, nan],
            "category": [5, 7, nan],
            "nothing": [nan, nan, nan],
        },
    )


def test_text_stays_text_and_dates_are_written_as_iso(rows):
    table = rows(
        text=["01", None, "nan", ""],
        category=pa.array(["a", None, "b", "a"]).dictionary_encode(),
        long=pa.array(["a", "b", "c", None], pa.large_string()),
        day=[date(2024, 12, 31), None, date(1, 1, 1), None],
        moment=[datetime(2024, 1, 2, 3, 4, 5), None, None, datetime(2024, 1, 2)],
        hour=[time(1, 2, 3), None, None, None],
    )
    assert cells(table) == {
        "text": ["01", None, "nan", None],
        "category": ["a", None, "b", "a"],
        "long": ["a", "b", "c", None],
        "day": ["2024-12-31", None, "0001-01-01", None],
        "moment": ["2024-01-02T03:04:05", None, None, "2024-01-02T00:00:00"],
        "hour": ["01:02:03", None, None, None],
    }


def test_numbers_as_text_are_exact_and_whole_floats_have_no_point(rows):
    table = rows(
        id=pa.array([2**63 + 1, 0, None], pa.uint64()),
        missing=[1.0, None, 3.0],
        category=pa.array([1.0, None, 3.0]).dictionary_encode(),
        float=[1.0, 0.5, float("nan")],
        large=[1e300, 1.0, float("inf")],
        decimal=[Decimal("1.50"), Decimal("2.00"), None],
        truth=[True, False, None],
    )
    assert {name: table.texts(name).tolist() for name in table.header} == {
        "id": [str(2**63 + 1), "0", None],
        "missing": ["1", None, "3"],
        "category": ["1", None, "3"],
        "float": ["1.0", "0.5", None],
        "large": ["1e+300", "1.0", "inf"],
        "decimal": ["1.50", "2.00", None],
        "truth": ["True", "False", None],
    }


def test_columns_named_as_text_are_text(rows):
    assert cells(rows(x=[1, 2], y=[1, 2]), "y") == {"x": [1.0, 2.0], "y": ["1", "2"]}


def test_numbers_of_a_column_of_text_are_nan_where_it_is_not_a_number(rows):
    table = rows(w=["1.5", "heavy", None, "inf"], v=[1, None, 3, 4])
    np.testing.assert_equal(table.numbers("w"), [1.5, np.nan, np.nan, np.nan])
    np.testing.assert_equal(table.numbers("v"), [1, np.nan, 3, 4])


def test_blocks_follow_one_another_through_the_whole_table(rows, monkeypatch):
    monkeypatch.setattr(frame, "BLOCK_ROWS", 2)
    table = rows(u=[1.0, 2.0, 3.0, 4.0, None], v=list("abcde"), w=range(5))
    blocks = list(table.blocks(["v", "w"]))
    assert len(blocks) == 3
    assert [cell for block in blocks for cell in block[0]] == list("abcde")
    assert [cell for block in blocks for cell in block[1]] == list(range(5))
    (whole,) = table.blocks(["u"])
    assert whole[0].tolist() == ["1", "2", "3", "4", None]


def test_a_table_without_rows_has_columns(rows):
    table = rows(id=pa.array([], "string"), x=pa.array([], "float64"))
    assert len(table) == 0
    assert table.texts("id").tolist() == table.numbers("x").tolist() == []
    assert table.cells(["x"], ())["x"].dtype == np.float32


def test_every_column_of_another_type_is_named(tmp_path):
    table = pa.table(
        {"id": ["a"], "tags": [["x"]], "box": [{"a": 1}], "raw": [b"\0"], "age": [timedelta(1)]}
    )
    found = refused(written(tmp_path, table))
    assert [sentence.split(" holds")[0] for sentence in found] == [
        f"nodes.parquet: the column {name!r}" for name in ("tags", "box", "raw", "age")
    ]
    assert found[2] == (
        "nodes.parquet: the column 'raw' holds cells of type binary; a cell must be text, a number,"
        " true or false, or a date: leave the column out"
    )


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pa.table([pa.array([1]), pa.array([2])], ["x", "x"])
    assert refused(written(tmp_path, table)) == [
        "nodes.parquet has 2 columns called 'x'; rename or remove one"
    ]


def test_the_nameless_index_of_pandas_is_left_out_with_a_warning(tmp_path):
    path = tmp_path / "nodes.parquet"
    pd.DataFrame({"id": ["a", "b"]}, index=[7, 8]).to_parquet(path)
    with pytest.warns(UserWarning, match=r"^nodes\.parquet: the nameless index .* is left out$"):
        table = open_parquet(path, Problems())
    assert (table.header, table.texts("id").tolist()) == (("id",), ["a", "b"])


def test_what_polars_writes_is_read(tmp_path):
    pl = pytest.importorskip("polars")
    path = tmp_path / "nodes.parquet"
    frame = pl.DataFrame({"id": ["a", None], "x": [1, 2], "on": [date(2024, 1, 2), None]})
    frame.with_columns(pl.col("id").cast(pl.Categorical).alias("kind")).write_parquet(path)
    assert cells(open_parquet(path, Problems())) == {
        "id": ["a", None],
        "x": [1, 2],
        "on": ["2024-01-02", None],
        "kind": ["a", None],
    }


def test_another_file_is_not_parquet(tmp_path):
    (tmp_path / "nodes.parquet").write_text("id,x\na,1\n")
    (found,) = refused(tmp_path / "nodes.parquet")
    assert found.startswith("nodes.parquet cannot be read as parquet (")
    assert found.endswith("); write it again")


def test_a_damaged_file_is_refused(tmp_path):
    path = written(tmp_path, pa.table({"id": [f"{i * 7919}" for i in range(1000)]}))
    content = bytearray(path.read_bytes())
    content[4:3000] = bytes(2996)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"^nodes\.parquet cannot be read as parquet"):
        open_parquet(path, Problems()).texts("id")


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    assert refused(tmp_path) == [
        f"cannot read {tmp_path} (Is a directory); make it a readable file"
    ]


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    table = open_parquet(written(tmp_path, pa.table({"id": ["a", "b"]})), Problems())
    written(tmp_path, pa.table({"id": ["a"]}))
    with pytest.raises(DataError, match=r"^nodes\.parquet changed while it was read"):
        table.texts("id")


def test_progress_is_told_up_to_the_whole_file(tmp_path, monkeypatch):
    monkeypatch.setattr(frame, "BLOCK_CELLS", 8)
    path = written(tmp_path, pa.table({"id": list("abcdefgh"), "x": range(8)}))
    said = []
    open_parquet(path, Problems(), lambda *bytes: said.append(bytes)).cells(["id", "x"], ["id"])
    assert len(said) == 2
    assert said[-1] == (path.stat().st_size,) * 2


def test_without_pyarrow_its_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refused(tmp_path / "nodes.parquet") == [
        "reading nodes.parquet needs pyarrow: pip install 'gcnii[parquet]'"
    ]


def test_a_file_is_opened_a_few_times_however_many_columns_it_has(tmp_path, monkeypatch):
    opened, plain = [], frame._opened
    monkeypatch.setattr(frame, "_opened", lambda path: opened.append(path) or plain(path))
    monkeypatch.setattr(frame, "BLOCK_CELLS", 100)
    columns = {f"x{j}": np.arange(7) + j / 2 for j in range(60)}
    columns |= {f"t{j}": [f"a{i}" for i in range(7)] for j in range(30)}
    columns |= {f"whole{j}": [1.0, None, 3, 4, 5, 6, 7] for j in range(30)}
    path, problems = written(tmp_path, pa.table(columns)), Problems()
    found = cells(open_parquet(path, problems), *(f"whole{j}" for j in range(30)), "x1", "x2")
    assert len(opened) <= 1 + 120 // (100 // 7) + 1
    assert found["x3"] == [i + 1.5 for i in range(7)]
    assert found["x1"] == [f"{i}.5" for i in range(7)]
    assert found["x2"] == [str(i + 1) for i in range(7)]
    assert found["whole9"] == ["1", None, "3", "4", "5", "6", "7"]
    assert found["t5"][6] == "a6"
