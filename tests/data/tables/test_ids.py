"""The ids of nodes, and the rows that they name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnii.data.tables.assemble import Ids


def texts(*cells):
    array = np.empty(len(cells), object)
    array[:] = cells
    return array


LONG = "a text of more than eight characters"


@pytest.mark.parametrize("id", ["c", LONG, "é", "c\0"])
def test_an_id_names_its_row_and_another_text_none(id):
    ids = Ids(texts("1", "1.0", "01", id))
    wanted = texts(id, "01", "1", "1.0", "2", "", None, "nan", "1.00", LONG + "!", "ü", "1\0")
    assert ids.rows_of(wanted).tolist() == [3, 2, 0, 1] + [-1] * 8


def test_missing_ids_name_no_row():
    ids = Ids(texts(None, "a", None))
    assert ids.missing() == [0, 2]
    assert ids.rows_of(texts(None, "a", "None", "nan")).tolist() == [-1, 1, -1, -1]


def test_repeated_ids_are_listed_and_name_their_first_row():
    ids = Ids(texts("a", None, "b", "a", "b", "a", None, "c"))
    assert ids.repeated() == [(3, 0), (4, 2), (5, 0)]
    assert ids.rows_of(texts("a", "b", "c")).tolist() == [0, 2, 7]


@pytest.mark.parametrize("cells", [[], [None]])
def test_without_ids_no_text_names_a_row(cells):
    ids = Ids(texts(*cells))
    assert (len(ids), ids.repeated()) == (len(cells), [])
    assert ids.rows_of(texts("a", None)).tolist() == [-1, -1]
    assert ids.rows_of(texts()).tolist() == []


cells = st.lists(st.none() | st.text("a1\0é ", max_size=10), max_size=12)


@given(cells, cells)
def test_ids_are_found_as_in_a_dictionary(known, wanted):
    first = {}
    for row, cell in enumerate(known):
        first.setdefault(cell, row)
    rows = [-1 if cell is None else first.get(cell, -1) for cell in wanted + known]
    assert Ids(texts(*known)).rows_of(texts(*wanted, *known)).tolist() == rows
