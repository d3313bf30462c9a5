"""What each column of a table is taken for, judged by its cells and by what the user says."""

import numpy as np
import pytest
import scipy.sparse as sp

from gcnii.errors import DataError, Problems
from gcnii.graph.columns import MOST_CATEGORIES, Learner, Table


def numbers(*cells):
    return np.array([np.nan if cell is None else cell for cell in cells], np.float32)


def texts(*cells):
    return np.array(cells, object)


def learn(columns, matrix=None, names=(), **hints):
    """The columns of a table, all problems raised."""
    problems = Problems()
    n = matrix.shape[0] if matrix is not None else len(next(iter(columns.values())))
    said = {name: kind for kind, listed in hints.items() for name in listed}
    learner = Learner("nodes.csv", lambda i: f"row {i + 2} of nodes.csv", problems, said)
    table, found = learner.columns(Table(n, columns, matrix, names))
    problems.refuse()
    return table, found


def one(cells, **hints):
    (column,) = learn({"a": cells}, **hints)[1]
    return column


def test_a_number_is_numeric_and_its_median_stands_in_for_missing_cells():
    column = one(numbers(1, 2, None, 30))
    assert (column.kind, column.median, column.missing) == ("numeric", 2.0, True)


def test_zeros_and_ones_are_binary():
    assert one(numbers(0, 1, 1, 0)).kind == "binary"


def test_true_and_false_are_ones_and_zeros():
    table, (column,) = learn({"a": texts("True", "false", None, "TRUE")})
    assert column.kind == "binary"
    assert table.columns["a"].tolist()[:2] == [1, 0]


def test_text_is_categorical_in_the_order_of_its_values():
    column = one(texts("b", "a", "b", "a", "b", "10", "10", "9", "9"))
    assert (column.kind, column.values) == ("categorical", ("10", "9", "a", "b"))


def test_values_of_few_nodes_are_others():
    column = one(texts(*["a"] * 5, *["b"] * 5, "c"))
    assert (column.values, column.other) == (("a", "b"), True)


def test_a_column_has_at_most_a_hundred_categories():
    column = one(texts(*(f"v{i}" for i in range(150) for _ in range(6))))
    assert len(column.values) == MOST_CATEGORIES
    assert column.other


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (numbers(3, 3, 3), "constant"),
        (texts("x", "x", "x"), "constant"),
        (numbers(None, None, None), "empty"),
        (texts(None, None, None), "empty"),
        (texts("ann", "bob", "cat"), "3 different texts"),
    ],
)
def test_what_tells_nodes_nothing_is_ignored_and_the_reason_said(cells, reason):
    other, column = learn({"b": numbers(1, 2, 3), "a": cells})[1]
    assert other.kind == "numeric"
    assert column.kind == "ignored"
    assert reason in column.reason


def test_a_constant_number_stays_if_there_is_nothing_else():
    assert one(numbers(1, 1, 1)).kind == "numeric"


def test_a_column_with_one_value_and_gaps_is_not_constant():
    assert one(numbers(3, None, 3)).missing


@pytest.mark.parametrize("word", ["nan", "inf", "oops", "1_000", "0x10", "١٢"])
def test_a_word_in_a_mostly_numeric_column_is_refused_with_its_row(word):
    with pytest.raises(DataError, match=rf"row 4 of nodes.csv: the feature 'a' is '{word}'"):
        one(texts("1", "2", word, None))


def test_a_word_in_a_categorical_column_is_a_category():
    assert one(texts("1", "1", "2", "2", "nan", "nan"), categorical=("a",)).values == (
        "1",
        "2",
        "nan",
    )


def test_numbers_with_blanks_pandas_did_not_see_are_numbers():
    table, (column,) = learn({"a": texts("1", "2.5", None, "1e3")})
    assert column.kind == "numeric"
    assert table.columns["a"][:2].tolist() == [1, 2.5]


def test_a_number_beyond_float32_is_refused():
    with pytest.raises(DataError, match=r"row 3 of nodes.csv: the feature 'a' is infinite"):
        one(texts("1", "1e39", "2"))


def test_a_column_said_to_be_numeric_must_be():
    with pytest.raises(DataError, match="'x'"):
        one(texts("x", "y", "1"), numeric=("a",))


@pytest.mark.parametrize("date", ["2024-12-31", "2024-1-2", "2024-12-31 10:00", "31.12.2024"])
def test_dates_are_left_out_with_what_to_do(date):
    column = one(texts(date, date, None))
    assert column.kind == "ignored"
    assert column.reason == "dates; --date a (in Python: date=['a']) takes them as days"


def test_a_date_is_days_since_1970():
    column = one(texts("1970-01-02", "1970-01-04T12:00:00", None), date=("a",))
    assert (column.kind, column.median, column.missing) == ("date", 2.25, True)


def test_a_date_that_is_none_is_refused_with_its_row():
    with pytest.raises(DataError, match=r"row 3 of nodes.csv: the date 'a' is '31.12.2024'"):
        one(texts("2024-12-31", "31.12.2024"), date=("a",))


def test_bare_numbers_are_not_among_the_words_of_a_text():
    column = one(texts("graph2 in 2017", "graph2 in 2017 of ٣٤", "12 ٣٤ 12"), text=("a",))
    assert (column.kind, column.values) == ("words", ("graph2", "in"))
    assert one(texts("10 2017", "2017 10"), text=("a",)).reason == "no word occurs in two nodes"


def test_a_text_column_is_its_words():
    column = one(texts("deep graph nets", "graph theory", "deep water", None), text=("a",))
    assert (column.kind, column.values) == ("words", ("deep", "graph"))


def test_columns_of_a_matrix_that_never_vary_are_left_out():
    matrix = sp.csr_array(np.array([[1.0, 0, 2], [1, 0, 0]], np.float32))
    assert learn({}, matrix, ("x", "y", "z"))[1].columns[0].values == ("z",)


def test_all_problems_are_found_at_once():
    with pytest.raises(DataError) as caught:
        learn({"a": texts("1", "2", "x"), "b": texts("3", "y", "4")})
    assert len(caught.value.problems) == 2
    assert str(caught.value).endswith("(1 more: see `gcnii data check` or error.problems)")


def test_many_rows_with_one_problem_are_counted():
    with pytest.raises(DataError) as caught:
        one(texts(*["1"] * 20, *["x"] * 12))
    assert len(caught.value.problems) == Problems.SHOWN
    assert caught.value.problems[-1].endswith("(the same in 7 more rows)")


def test_the_median_of_numbers_that_add_up_beyond_float32_is_finite():
    column = one(numbers(-3e38, 2.5e38, 3e38, None, 3.1e38))
    assert column.median == float(np.float32(2.75e38))
