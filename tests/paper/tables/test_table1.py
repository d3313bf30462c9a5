"""Table 1: what the data sets hold, beside what the paper says."""

import json

import pytest
from support.command_line import call

from gcnii.data import CATALOG
from gcnii.data.catalog import Counts
from gcnii_paper.tables.printed import TABLE_1
from gcnii_paper.tables.table1 import DataRow, in_catalog, notes_on, rows


def test_three_web_graphs_are_as_printed_and_the_others_differ():
    words = {row.name: row.word for row in rows(in_catalog)}
    assert {name for name, word in words.items() if word == "equal"} == {
        "cornell",
        "texas",
        "wisconsin",
    }
    assert words["ppi"] == "missing"  # its edges are not known without its files


def test_every_difference_has_a_note_of_the_catalog():
    for row in rows(in_catalog):
        if row.word == "different":
            for printed, found in zip(
                vars(row.printed).values(), vars(row.found).values(), strict=True
            ):
                assert printed == found or any(str(printed) in note for note in row.notes)


def test_a_row_shows_the_printed_number_where_it_differs():
    row = DataRow("cora", TABLE_1["cora"], Counts(2708, 5278, 1433, 7))
    assert row.words == ["cora", "2708", "5278 (5429)", "1433", "7", "different"]
    assert [*notes_on([row])][1:] == [f"cora: {CATALOG['cora'].notes[0]}"]
    assert DataRow("cora", TABLE_1["cora"], TABLE_1["cora"]).notes == ()


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_the_command_counts_the_files(how, tmp_path, monkeypatch, real_data):
    monkeypatch.setattr("gcnii_paper.tables.table1.load", real_data)
    answer = call("reproduce", "table1", "--only", "or", *how, cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    if how:
        cora, cornell = json.loads(answer.out)["rows"]
        assert (cora["verdict"], cora["found"]["edges"]) == ("different", 5278)
        assert (cornell["verdict"], cornell["notes"]) == ("equal", [])
    else:
        lines = answer.out.splitlines()
        assert lines[0] == "Table 1: the data sets"
        assert lines[2].split() == ["cora", "2708", "5278", "(5429)", "1433", "7", "different"]
