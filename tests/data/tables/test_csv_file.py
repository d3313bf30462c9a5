"""A CSV file is read exactly as it is written, or refused with everything that is wrong with it."""

import csv
import io
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnii.data.tables import csv_file
from gcnii.data.tables.csv_file import open_csv
from gcnii.errors import DataError, Problems

SAVE_CSV, SAVE_TEXT = "save it with commas between its cells", "save the file as UTF-8 text"
UNCLOSED = "is not CSV (unexpected end of data); check its quotes"
LOOSE = "is not CSV (',' expected after '\"'); check its quotes"


@pytest.fixture
def rows(tmp_path):
    """`rows(content)` → the table in nodes.csv."""

    def opened(content):
        problems = Problems()
        table = open_csv(written(tmp_path, content), problems)
        assert problems.found == []
        return table

    return opened


@pytest.fixture
def problems(tmp_path):
    """`problems(content)` → what is wrong with nodes.csv."""

    def found(content):
        problems = Problems()
        assert open_csv(written(tmp_path, content), problems) is None
        return problems.found

    return found


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(csv_file, "BLOCK_ROWS", 2)
    monkeypatch.setattr(csv_file, "BLOCK", 8)


def written(folder, content):
    path = folder / "nodes.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def plain(content):
    """The numbered rows that have text, by csv.reader alone; None if they are not a table."""
    reader = csv.reader(io.StringIO(content.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        stripped = [[cell.strip() for cell in row] for row in reader]
    except csv.Error:
        return None
    found = {number: row for number, row in enumerate(stripped, 1) if any(row)}
    header, *body = found.values() if found else [[]]
    names = [name for name in header if name]
    separated = len(header) == 1 and any(sign in header[0] for sign in ";\t|")
    same = all(len(row) == len(header) for row in body)
    marked = any(row and row[0].startswith("\ufeff") for row in found.values())
    good = header and same and not (separated or marked) and len(names) == len(set(names))
    return found if good and "\0" not in content else None


def as_plain(table):
    """The numbered rows of a table, its header first, as `plain` has them."""
    columns = [table.texts(name) for name in table.header]
    cells = [[cell or "" for cell in row] for row in zip(*columns, strict=True)]
    return {table.place(i): row for i, row in enumerate(cells)}


# --- texts ------------------------------------------------------------------------------------


def test_ids_are_text_exactly_as_written(rows):
    ids = ["1", "1.0", "01", "1e3", "NA", "None", "null", "nan", "NaN", "True", "inf", "ü ñ", "-0"]
    assert rows("id,x\n" + "".join(f"{id},1\n" for id in ids)).texts("id").tolist() == ids


def test_blanks_around_cells_are_stripped_and_empty_cells_are_missing(rows):
    table = rows(' id , x \n a ,\t1\n"  b ",\xa0\n  ,3\n')
    assert table.header == ("id", "x")
    assert table.texts("id").tolist() == ["a", "b", None]
    assert table.texts("x").tolist() == ["1", None, "3"]


def test_blocks_follow_one_another_through_the_whole_table(rows, small_blocks):
    table = rows("a,b,c\n" + "".join(f"{i},x{i},{i}{i}\n" for i in range(7)))
    blocks = list(table.blocks(["c", "a"]))
    assert [len(block[0]) for block in blocks] == [2, 2, 2, 1]
    assert [cell for block in blocks for cell in block[0]] == [f"{i}{i}" for i in range(7)]
    assert [cell for block in blocks for cell in block[1]] == [f"{i}" for i in range(7)]


# --- numbers ----------------------------------------------------------------------------------


def cells(rows, *column, as_text=()):
    """The column x of a table, as `cells` reads it."""
    table = rows("id,x\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(column)))
    found = table.cells(["x"], as_text)["x"]
    return found.dtype, found.tolist()


def test_a_column_of_numbers_is_float32_and_an_empty_cell_is_nan(rows):
    dtype, values = cells(rows, "1", "", "-2.5e3", "+.5", "7.", " 4 ", " ", "007")
    assert dtype == np.float32
    np.testing.assert_equal(values, [1, np.nan, -2500, 0.5, 7, 4, np.nan, 7])


def test_a_column_of_empty_cells_is_nan(rows):
    np.testing.assert_equal(cells(rows, "", ""), (np.float32, [np.nan, np.nan]))


@pytest.mark.parametrize(
    "cell",
    [
        *("nan", "NaN", "-nan", "inf", "-inf", "Infinity", "True", "false", "TRUE", "NA", "None"),
        *(
            "null",
            "#N/A",
            "1_000",
            "0x10",
            "٣",
            "１",
            "1e",
            "--1",
            "1d5",
            "1 2",
            "1%",
            "e5",
            "1.2.3",
        ),
    ],
)
@pytest.mark.parametrize("others", [["1", "2.5"], [], ["", "3"]])
def test_a_column_with_another_cell_is_text_exactly_as_written(rows, cell, others):
    column = [*others, cell, *others]
    assert cells(rows, *column) == (object, [text or None for text in column])


@pytest.mark.filterwarnings("ignore:The 'float_precision' argument is deprecated")
def test_an_older_pandas_reads_the_same_numbers(rows, monkeypatch):
    monkeypatch.setattr(csv_file, "_is_exact_by_itself", lambda: False)
    assert cells(rows, "1", "", "nan") == (object, ["1", None, "nan"])
    np.testing.assert_equal(
        cells(rows, "0.1", "", "1e39"), (np.float32, [np.float32(0.1), np.nan, np.inf])
    )


def test_a_column_of_truth_values_is_text(rows):
    column = ["True", "False", "TRUE", ""]
    assert cells(rows, *column) == (object, ["True", "False", "TRUE", None])


@pytest.mark.parametrize("last", ["b", "inf", "True", "nan"])
def test_a_column_whose_last_block_alone_has_text_is_text(rows, small_blocks, last):
    column = ["1", "2", "03", "4.50", last]
    assert cells(rows, *column) == (object, column)


def test_blocks_of_different_numbers_are_one_column(rows, small_blocks):
    column = ["1", "2", "", "", " ", "3", "0.5", "1e2", "99999999999999999999", "-1"]
    values = [1, 2, np.nan, np.nan, np.nan, 3, 0.5, 100, np.float32(1e20), -1]
    np.testing.assert_equal(cells(rows, *column), (np.float32, values))


def test_numbers_beyond_float32_are_infinite(rows):
    column = ["1e39", "-1e39", "1e400", "-1e999", "9" * 50]
    assert cells(rows, *column) == (np.float32, [np.inf, -np.inf, np.inf, -np.inf, np.inf])


def test_whole_numbers_beyond_64_bits_are_numbers(rows):
    column = [str(2**63), str(-(2**63) - 1), str(2**64), "-5"]
    values = [float(np.float32(float(cell))) for cell in column]
    assert cells(rows, *column) == (np.float32, values)


def test_numbers_named_as_text_stay_as_written(rows):
    assert cells(rows, "01", "1.50", "", as_text=["x"]) == (object, ["01", "1.50", None])


def test_columns_come_in_the_order_asked_for(rows):
    table = rows("id,x,y,z\na,1,b,2\n")
    found = table.cells(["z", "y", "x"], ["x"])
    assert [(name, column.tolist()) for name, column in found.items()] == [
        ("z", [2]),
        ("y", ["b"]),
        ("x", ["1"]),
    ]


digits = st.text("0123456789", min_size=1, max_size=40)
decimals = st.tuples(
    st.sampled_from(["", "-", "+"]), digits, digits, st.integers(-350, 350), st.booleans()
).map(lambda x: f"{x[0]}{x[1]}.{x[2]}" + f"e{x[3]}" * x[4])


@settings(deadline=None, max_examples=50)
@given(st.lists(decimals | st.floats(allow_nan=False, allow_infinity=False).map(repr), min_size=1))
def test_numbers_are_those_of_python_rounded_once_more(tmp_path_factory, column):
    path = written(tmp_path_factory.getbasetemp(), "x,y\n" + "".join(f"{c},1\n" for c in column))
    table = open_csv(path, Problems())
    values = np.array([float(cell) for cell in column])
    assert table.numbers("x").tolist() == values.tolist()
    with np.errstate(over="ignore"):
        assert table.cells(["x"], ())["x"].tolist() == values.astype(np.float32).tolist()


def test_numbers_of_a_column_with_text_are_nan_where_it_is_not_a_number(rows):
    table = rows("id,w\na,0.1\nb,heavy\nc,\nd,inf\ne,1e400\nf,nan\n")
    np.testing.assert_equal(table.numbers("w"), [0.1, np.nan, np.nan, np.nan, np.inf, np.nan])


# --- form -------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks_make_no_difference(rows, end, mark):
    for last in ("", end):
        table = rows(mark + end.join(["id,x", "a,1", "", "b,2"]) + last)
        assert as_plain(table) == {
            "row 2 of nodes.csv": ["a", "1"],
            "row 4 of nodes.csv": ["b", "2"],
        }


def test_blank_rows_are_skipped_but_counted(rows, small_blocks):
    table = rows('\n , \nid,x\n\na,1\n,\n  \n,,,,\n"",""\n\xa0\nb,2\n\n,\n')
    assert as_plain(table) == {"row 5 of nodes.csv": ["a", "1"], "row 11 of nodes.csv": ["b", "2"]}
    assert len(table) == 2
    assert table.cells(["x"], ())["x"].tolist() == [1, 2]


def test_a_header_alone_is_a_table_without_rows(rows):
    for content in ("id,x", "id,x\n", "id,x\n\n\n", '"id",x\n'):
        table = rows(content)
        assert (table.header, len(table)) == (("id", "x"), 0)
        assert table.texts("id").tolist() == table.numbers("x").tolist() == []
        assert table.cells(["x"], ())["x"].dtype == np.float32
        assert list(table.blocks(["id"])) in ([], [[[]]])


def test_nameless_columns_are_left_out_with_a_warning(tmp_path):
    path = written(tmp_path, ",id,,x,\n0,a,b,1,\n")
    with pytest.warns(UserWarning, match="left out") as said:
        table = open_csv(path, Problems())
    assert [str(one.message) for one in said] == [
        "nodes.csv: the nameless first column is left out",
        "nodes.csv: the nameless columns 3, 5 are left out",
    ]
    assert (table.header, table.texts("x").tolist()) == (("id", "x"), ["1"])


@pytest.mark.parametrize("quoted", ["b", '"b"'])
def test_every_row_with_too_few_or_too_many_cells_is_named(problems, quoted):
    body = f"a,1\n{quoted}\n\nc,3\nd,4,5\ne,\nf,6,\n"
    assert problems("id,x\n" + body) == [
        "row 3 of nodes.csv has 1 cells, but the header has 2",
        "row 6 of nodes.csv has 3 cells, but the header has 2",
        "row 8 of nodes.csv has 3 cells, but the header has 2",
    ]


def test_a_short_row_is_not_made_up_for_by_a_long_one(problems):
    assert len(problems("id,x,y\na,1\nb,1,2,3\n")) == 2


def test_many_wrong_rows_are_counted(problems):
    found = problems("id,x\n" + "a\n" * 1000)
    assert len(found) == Problems.SHOWN
    assert found[-1].endswith("has 1 cells, but the header has 2 (the same in 995 more rows)")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "nodes.csv is empty; begin it with a header"),
        ("\n\n", "nodes.csv is empty; begin it with a header"),
        ("\ufeff", "nodes.csv is empty; begin it with a header"),
        (",,\n", "nodes.csv is empty; begin it with a header"),
        ("id;x\n1;2,5\n", f"nodes.csv is separated by semicolons; {SAVE_CSV}"),
        ("id\tx\n1\t2\n", f"nodes.csv is separated by tabs; {SAVE_CSV}"),
        ("id|x\n", f"nodes.csv is separated by vertical bars; {SAVE_CSV}"),
        ("id,x, x\na,1,2\n", "nodes.csv has 2 columns called 'x'; rename or remove one"),
        (b"id,x\na,1\nb\xe9,2\n", f"row 3 of nodes.csv is not UTF-8 text; {SAVE_TEXT}"),
        (b"id,x\r\ra,1\rb\xe9,2\r", f"row 4 of nodes.csv is not UTF-8 text; {SAVE_TEXT}"),
        (
            "id,x\n\ufeffa,1\n",
            "row 2 of nodes.csv begins with a byte order mark (U+FEFF); remove it",
        ),
        ("id,x\na,1\nb\0,2\n", f"row 3 of nodes.csv has a NUL byte; {SAVE_TEXT}"),
        ('id,x\n\n\na,1\n"b,2\n', f"row 5 of nodes.csv {UNCLOSED}"),
        ('"id,x\n', f"row 1 of nodes.csv {UNCLOSED}"),
        ('id,x\n"a"b,1\n', f"row 2 of nodes.csv {LOOSE}"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused_in_a_sentence(problems, content, message):
    assert problems(content) == [message]


def test_a_file_in_utf_16_is_refused_in_a_sentence(problems):
    found = problems("id,x\na,1\nb,2\n".encode("utf-16"))
    assert found[0] == f"row 1 of nodes.csv is not UTF-8 text; {SAVE_TEXT}"


def test_all_that_is_wrong_is_said_at_once(problems):
    assert problems(b'id,x\na\nb\xff,1\nc,2,3\n\0,4\n"d') == [
        f"row 3 of nodes.csv is not UTF-8 text; {SAVE_TEXT}",
        f"row 5 of nodes.csv has a NUL byte; {SAVE_TEXT}",
        "row 2 of nodes.csv has 1 cells, but the header has 2",
        "row 4 of nodes.csv has 3 cells, but the header has 2",
        f"row 6 of nodes.csv {UNCLOSED}",
    ]


# --- files ------------------------------------------------------------------------------------


def refused(path):
    problems = Problems()
    assert open_csv(path, problems) is None
    return problems.found


def test_only_regular_files_are_read(tmp_path):
    (tmp_path / "nodes.csv").mkdir()
    os.mkfifo(tmp_path / "edges.csv")
    (tmp_path / "lost.csv").symlink_to("nowhere")
    for name, reason in (
        ("nodes.csv", "Is a directory"),
        ("edges.csv", "Is not a regular file"),
        ("lost.csv", "No such file or directory"),
    ):
        path = tmp_path / name
        assert refused(path) == [f"cannot read {path} ({reason}); make it a readable file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_named(tmp_path):
    path = written(tmp_path, "id,x\n")
    path.chmod(0)
    assert refused(path) == [f"cannot read {path} (Permission denied); make it a readable file"]


def test_a_link_to_a_file_is_read(tmp_path):
    (tmp_path / "link.csv").symlink_to(written(tmp_path, "id,x\na,1\n"))
    assert open_csv(tmp_path / "link.csv", Problems()).texts("id").tolist() == ["a"]


@pytest.mark.parametrize("later", ["id,x\na,1\n", "id,x\na,1\nb,2\nc,3\n", "id,x\na,1\nb,3\n"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, later):
    table = open_csv(written(tmp_path, "id,x\na,1\nb,2\n"), Problems())
    path = written(tmp_path, later)
    os.utime(path, ns=(0, 0))
    with pytest.raises(DataError, match=r"^nodes\.csv changed while it was read; load it again$"):
        table.texts("id")
    path.unlink()
    with pytest.raises(DataError, match="changed while it was read"):
        table.numbers("x")


@pytest.mark.parametrize("id", ["a", '"a"'])
def test_progress_is_told_in_bytes_up_to_the_whole_file(tmp_path, small_blocks, monkeypatch, id):
    monkeypatch.setattr(csv_file, "ROWS_BETWEEN", 2)
    path = written(tmp_path, "id,x\n" + f"{id},1\n" * 7)
    said = []
    table = open_csv(path, Problems(), lambda *bytes: said.append(bytes))
    checked = len(said)
    table.texts("id")
    assert 1 < checked < len(said)
    assert said[checked - 1] == said[-1] == (path.stat().st_size,) * 2


# --- agreement with csv.reader ----------------------------------------------------------------

texts = st.text(st.sampled_from(',"\n\r \t;ab1é\xa0\u2028.'), max_size=5)


@pytest.mark.parametrize("storage", ["pyarrow", "python"])
@settings(deadline=None, max_examples=100)
@given(table=st.lists(st.tuples(texts, texts, texts), max_size=8), width=st.integers(1, 3))
def test_what_csv_writer_writes_is_read_back(tmp_path_factory, storage, table, width):
    body = [row[:width] for row in table]
    file = io.StringIO(newline="")
    csv.writer(file).writerows([["id", "x", "y"][:width], *body])
    with pd.option_context("mode.string_storage", storage):
        read = open_csv(written(tmp_path_factory.getbasetemp(), file.getvalue()), Problems())
        columns = read.cells(read.header, read.header)
    kept = [[cell.strip() or None for cell in row] for row in body if "".join(row).strip()]
    assert [list(row) for row in zip(*columns.values(), strict=True)] == kept


signs = st.sampled_from([*',,,"\n\n\r ;\taé1\xa0\0', "\r\n", "1,b\n", '"a",2\n', "\ufeff"])


@settings(deadline=None, max_examples=200)
@given(content=st.lists(signs, max_size=25).map("".join), block=st.integers(1, 20))
def test_every_file_is_read_as_csv_reader_reads_it_or_refused(tmp_path_factory, content, block):
    content = f"id,x\n{content}" if block % 2 else content
    problems = Problems()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(csv_file, "BLOCK_ROWS", block)
        patch.setattr(csv_file, "BLOCK", block)
        table = open_csv(written(tmp_path_factory.getbasetemp(), content), problems)
        expected = plain(content)
        assert (table is None) == (expected is None) == bool(problems.found)
        if table is not None and expected is not None:
            (_, header), *body = expected.items()
            named = [j for j, name in enumerate(header) if name]
            assert table.header == tuple(header[j] for j in named)
            assert as_plain(table) == {
                f"row {number} of nodes.csv": [row[j] for j in named] for number, row in body
            }
