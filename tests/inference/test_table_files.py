"""Tables as files: names survive, and no spreadsheet runs them."""

import csv
import io

import pandas as pd
import pytest

from gcnii.errors import InputError
from gcnii.inference import harmless, write_table
from gcnii.inference.predict import csv_text

NAMES = ["1", "1.0", "01", "1e3", "å, b", 'say "x"', "two\nlines", "a\rb", " padded ", "NA", "猫"]
FORMULAS = ["=1+1", "+cmd", "-cmd", "@sum", "\t=x", "\r=x", "\n=x", "-", "+49 170", "＝1", "-5-3"]
NUMBERS = ["-5", "+3.2", "-.5", "-1e-3", "+7."]


def table(names, label="cat"):
    chances = [0.25] * len(names)
    text = {"node": names, "label": label, "known": [None] * len(names), "split": None}
    return pd.DataFrame(text, dtype=object).assign(**{"p(cat)": chances})


def rows(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("names", [NAMES, ["007", "é"]])
def test_names_are_read_back_from_csv_as_they_were(names, tmp_path):
    write_table(table(names), tmp_path / "labels.csv")
    text = (tmp_path / "labels.csv").read_bytes().decode()
    assert text == csv_text(table(names))
    assert rows(text) == [list(table([])), *([name, "cat", "", "", "0.25"] for name in names)]


def test_names_without_carriage_returns_have_no_quotes_that_they_do_not_need():
    assert csv_text(table(["a", "b c"])).splitlines()[1:] == ["a,cat,,,0.25", "b c,cat,,,0.25"]


def test_names_are_read_back_from_parquet_as_they_were(tmp_path):
    pytest.importorskip("pyarrow")
    names = [*NAMES, *FORMULAS, *NUMBERS]
    write_table(table(names), tmp_path / "labels.parquet")
    found = pd.read_parquet(tmp_path / "labels.parquet")
    assert list(found["node"]) == names
    assert list(found) == list(table([]))


def test_unknown_labels_are_text_in_parquet_even_if_all_are_unknown(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(table(["a"]), tmp_path / "labels.parquet")
    schema = parquet.read_schema(tmp_path / "labels.parquet")
    assert "string" in str(schema.field("known").type)


def test_what_a_spreadsheet_would_run_begins_with_an_apostrophe():
    safe, count = harmless(table(FORMULAS, label="=bad"))
    plain = [name.replace("\r=", "\r'=").replace("\n=", "\n'=") for name in FORMULAS]
    assert list(safe["node"]) == [f"'{name}" for name in plain]
    assert set(safe["label"]) == {"'=bad"}
    assert count == 2 * len(FORMULAS)


def test_names_and_plain_numbers_stay_as_they_are():
    names = [*NAMES, *NUMBERS, "a=b", "'quoted'"]
    safe, count = harmless(table(names))
    assert (list(safe["node"]), count) == (names, 0)
    assert safe.equals(table(names))


def test_two_names_never_become_one():
    names = ["=x", "'=x", "''=x", "x", "'x"]
    safe, _ = harmless(table(names))
    assert len(set(safe["node"])) == len(names)


def test_numbers_of_nodes_are_not_text():
    numbered = table(["a", "b"]).assign(node=range(2))
    safe, count = harmless(numbered)
    assert (list(safe["node"]), count) == ([0, 1], 0)


def test_the_table_given_is_not_changed():
    given = table(["=x"])
    harmless(given)
    assert list(given["node"]) == ["=x"]


def test_a_file_of_another_format_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"the file must end in \.csv or \.parquet, got a\.xlsx"):
        write_table(table(["a"]), tmp_path / "a.xlsx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a;=1+1", "a;'=1+1"),
        ("a;'=1+1", "a;''=1+1"),
        ('a;"=1+1', "a;'\"=1+1"),
        ("a\n@sum", "a\n'@sum"),
        ("=a;+b", "'=a;'+b"),
        ("a;-5;b", "a;-5;b"),
    ],
)
def test_a_formula_after_a_semicolon_or_in_a_new_line_is_made_harmless(name, safe):
    found, count = harmless(table([name]))
    assert (found["node"][0], count) == (safe, name != safe)


def test_the_name_of_a_class_that_heads_a_column_is_made_harmless():
    safe, _ = harmless(table(["a"]).rename(columns={"p(cat)": "p(;=1+1)"}))
    assert list(safe)[-1] == "p(;'=1+1)"


@pytest.mark.parametrize("name", ["labels.csv", "labels.parquet"])
def test_half_a_character_in_a_name_is_refused_and_nothing_is_written(tmp_path, name):
    table = pd.DataFrame({"node": ["\ud800"], "label": ["a"]}, dtype=object)
    with pytest.raises(InputError, match=r"cannot hold .* which is half of a character"):
        write_table(table, tmp_path / name)
    assert not list(tmp_path.iterdir())
