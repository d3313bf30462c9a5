"""X encoded from a table by Columns, which are stored as JSON and found by name."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from gcnii.errors import DataError, InputError
from gcnii.graph.columns import Column, Columns, Table

AGE = np.array([20, np.nan, 40], np.float32)
CITY = np.array(["rome", "oslo", None], object)
COLUMNS = Columns(
    (
        Column("age", "numeric", median=30.0, missing=True),
        Column("city", "categorical", values=("oslo", "rome"), other=True, missing=True),
        Column("name", "ignored", reason="as asked"),
    )
)


def encode(columns, **cells):
    X, names = columns.encode(Table(len(next(iter(cells.values()))), cells))
    return X.tolist(), names


def test_missing_numbers_are_the_median_with_an_indicator_and_categories_are_one_hot():
    X, names = encode(COLUMNS, age=AGE, city=CITY)
    assert names == (
        "age",
        "age (missing)",
        "city=oslo",
        "city=rome",
        "city (other)",
        "city (missing)",
    )
    assert X == [[20, 0, 0, 1, 0, 0], [30, 1, 1, 0, 0, 0], [40, 0, 0, 0, 0, 1]]


def test_columns_are_found_by_name_in_any_order():
    assert encode(COLUMNS, city=CITY, age=AGE) == encode(COLUMNS, age=AGE, city=CITY)


def test_an_unseen_category_is_other():
    X, _ = encode(COLUMNS, age=AGE, city=np.array(["paris", "oslo", "rome"], object))
    assert X[0][2:] == [0, 0, 1, 0]


def test_without_rare_values_in_training_an_unseen_category_is_none_of_the_known():
    columns = Columns((Column("city", "categorical", values=("oslo", "rome")),))
    assert encode(columns, city=np.array(["paris", "oslo"], object))[0] == [[0, 0], [1, 0]]


def test_a_cell_missing_only_in_prediction_is_the_median():
    columns = Columns((Column("age", "numeric", median=30.0),))
    assert encode(columns, age=AGE)[0] == [[20], [30], [40]]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"age": AGE}, "lacks 'city'"),
        ({"age": AGE, "city": CITY, "pet": CITY}, "has 'pet'"),
        ({"Age": AGE, "city": CITY}, "lacks 'age' and has 'Age'"),
    ],
)
def test_a_missing_or_new_column_is_refused_by_name(cells, words):
    with pytest.raises(DataError, match=words):
        encode(COLUMNS, **cells)


def test_an_ignored_column_may_be_there_or_not():
    assert encode(COLUMNS, age=AGE, city=CITY, name=CITY) == encode(COLUMNS, age=AGE, city=CITY)


def test_a_word_in_a_numeric_column_is_refused():
    with pytest.raises(DataError, match="'age' is numeric in the model, but 'rome' in row 0"):
        encode(COLUMNS, age=CITY, city=CITY)


@pytest.mark.parametrize(
    "age", [np.array([1, np.inf], np.float32), np.array(["1", "1e60"], object)]
)
def test_a_number_that_is_too_large_is_refused_by_its_column(age):
    with pytest.raises(DataError, match="'age' is infinite or too large in row 1 of the nodes"):
        encode(COLUMNS, age=age, city=CITY[:2])


def test_a_category_that_was_read_as_whole_numbers_is_found():
    columns = Columns((Column("zip", "categorical", values=("12", "7")),))
    assert encode(columns, zip=np.array([7, 12], np.float32))[0] == [[0, 1], [1, 0]]


def test_a_category_that_was_read_as_fractions_is_refused_with_what_to_do():
    columns = Columns((Column("zip", "categorical", values=("1.50", "7")),))
    with pytest.raises(DataError, match=r"categorical=\['zip'\]"):
        encode(columns, zip=np.array([1.5, 12], np.float32))


def test_words_are_weighed_as_scikit_learn_does():
    from sklearn.feature_extraction.text import TfidfVectorizer

    from gcnii.graph.columns import learn_words, tf_idf

    texts = np.array(["a deep graph", "deep deep water", "graph of water", None], object)
    words, weights = learn_words(texts)
    expected = TfidfVectorizer(min_df=2).fit_transform([text or "" for text in texts])
    assert np.allclose(tf_idf(texts, words, weights).toarray(), expected.toarray(), atol=1e-7)


def test_wide_and_mostly_zero_features_are_sparse():
    matrix = sp.csr_array(np.eye(200, dtype=np.float32))
    names = tuple(f"w{j}" for j in range(200))
    columns = Columns((Column("matrix", "matrix", values=names),))
    X, found = columns.encode(Table(200, {}, matrix, names))
    assert sp.issparse(X)
    assert found == names


def test_columns_survive_json():
    words = Column("text", "words", values=("a", "b"), weights=(1.5, 0.1))
    columns = Columns((*COLUMNS, words))
    assert Columns.of_document(json.loads(json.dumps(columns.document()))) == columns


@pytest.mark.parametrize(
    "document",
    [
        [{"name": "a"}],
        [{"name": "a", "kind": "magic"}],
        [{"name": "a", "kind": "numeric", "median": "x"}],
        {"name": "a"},
        [[]],
    ],
)
def test_a_damaged_document_is_refused(document):
    with pytest.raises(InputError, match="columns"):
        Columns.of_document(document)
