"""Which labels are known, and which rows are held out to validate on."""

import warnings

import numpy as np
import pandas as pd
import pytest

from gcnii.errors import GraphError, InputError
from gcnii.estimator import EncodedLabels, known_beside, known_labels
from gcnii.graph.graph import hold_out


@pytest.mark.parametrize(
    ("y", "classes", "ids"),
    [
        (["b", "a", None], ["a", "b"], [1, 0, -1]),
        (["b", "a", -1], ["a", "b"], [1, 0, -1]),
        (["b", "a", float("nan")], ["a", "b"], [1, 0, -1]),
        ([5, 3, None], [3, 5], [1, 0, -1]),
        ([0, 1, 2, -1], [0, 1, 2], [0, 1, 2, -1]),
        (np.array([7.0, 4.0, np.nan]), [4.0, 7.0], [1, 0, -1]),
        (pd.Series([2, None, 1], dtype="Int64"), [1, 2], [1, -1, 0]),
        (pd.Series(["b", None, "a"], dtype="category"), ["a", "b"], [1, -1, 0]),
        ([True, False], [False, True], [1, 0]),
        (np.ma.array([5, 3, 9], mask=[0, 0, 1]), [3, 5], [1, 0, -1]),
    ],
)
def test_classes_are_the_sorted_known_labels(y, classes, ids):
    labels = EncodedLabels.of(y, "auto")
    assert labels.classes.tolist() == classes
    assert labels.ids.tolist() == ids


def test_classes_have_the_type_of_the_labels():
    assert EncodedLabels.of(np.array([1, 2], dtype=np.int16), "auto").classes.dtype == np.int16
    assert EncodedLabels.of([1, 2, None], "auto").classes.dtype == np.int64
    assert EncodedLabels.of(np.array(["a", "b"]), "auto").classes.dtype.kind == "U"


@pytest.mark.parametrize("y", [[-1, 1, 1], [-1.0, 1.0], [-2, -1, 0, 1, 2]])
def test_minus_one_is_a_class_beside_1_alone_or_beside_other_negative_numbers(y):
    assert -1 in EncodedLabels.of(y, "auto").classes


def test_minus_one_beside_0_and_1_is_unknown_with_a_warning_that_asks():
    with pytest.warns(UserWarning, match="unknown=None if -1 is a class"):
        assert EncodedLabels.of([-1, 0, 1], "auto").classes.tolist() == [0, 1]


@pytest.mark.parametrize(("unknown", "classes"), [(-1, [0, 1]), (None, [-1, 0, 1])])
def test_whoever_says_what_minus_one_means_is_not_warned(unknown, classes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert EncodedLabels.of([-1, 0, 1], unknown).classes.tolist() == classes


def test_unknown_can_be_any_label():
    assert EncodedLabels.of(["a", "?", "b"], "?").ids.tolist() == [0, -1, 1]


@pytest.mark.parametrize("text", ["-1", "nan", "None"])
def test_an_unknown_label_that_was_made_into_text_is_refused(text):
    y = np.array(["a", "b", text])
    with pytest.raises(InputError, match=f"say unknown={text!r}, or say unknown=None"):
        EncodedLabels.of(y, "auto")
    assert EncodedLabels.of(y, text).classes.tolist() == ["a", "b"]
    assert text in EncodedLabels.of(y, None).classes


def test_labels_that_cannot_be_learnt_are_refused():
    with pytest.raises(GraphError, match="all known labels are 3, one class"):
        EncodedLabels.of([3, 3, None], "auto")
    with pytest.raises(GraphError, match="-1 is taken as unknown; say unknown=None"):
        EncodedLabels.of([-1, 0, 0], "auto")
    with pytest.raises(GraphError, match="no row has a known label"):
        EncodedLabels.of([None, -1], "auto")
    with pytest.raises(ValueError, match="Unknown label type"):
        EncodedLabels.of([0.1, 0.7, 1.3], "auto")
    for mixed in ([0, "a", 1], [1, "a"]):
        with pytest.raises(
            InputError, match=r"labels of different types, such as \d and 'a'; make"
        ):
            EncodedLabels.of(mixed, "auto")


def test_a_row_to_score_is_known_by_the_classes_that_were_trained_on():
    def known(classes, y, unknown="auto"):
        return known_beside(np.array(classes), np.array(y, dtype=object), unknown).tolist()

    assert known([0, 1, 2], [-1, 0]) == [False, True]
    assert known([-1, 1], [-1, 1, 0]) == [True, True, True]
    assert known([-2, 2], [-1, 2]) == [True, True]
    assert known(["a", "b"], ["a", None, -1]) == [True, False, False]
    assert known([0, 1, 2], [-1, 0], None) == [True, True]


def test_a_share_of_each_class_is_held_out():
    ids = np.repeat([0, 1, -1], [20, 10, 5])
    held = hold_out(ids, 0.2, np.random.default_rng(0))
    assert np.bincount(ids[held]).tolist() == [4, 2]


def test_every_class_keeps_a_row_to_train_on():
    ids = np.array([0, 1, 1, 1])
    held = hold_out(ids, 0.9, np.random.default_rng(0))
    assert sorted(ids[~held]) == [0, 1]


def test_one_row_is_held_out_where_the_share_is_less_than_one():
    held = hold_out(np.array([0, 0, 1]), 0.1, np.random.default_rng(0))
    assert held.sum() == 1
    assert not held[2]


def test_one_label_in_every_class_leaves_none_to_validate_on():
    with pytest.raises(GraphError, match="leaves none to validate on"):
        hold_out(np.array([0, 1, -1]), 0.2, np.random.default_rng(0))


@pytest.mark.parametrize("unknown", [[], [-1], np.array([-1, 2])])
def test_unknown_is_one_label(unknown):
    with pytest.raises(InputError, match="unknown must be one label"):
        known_labels(np.array([0, 1, -1]), unknown)


def test_what_pandas_calls_missing_is_unknown_anyway():
    assert known_labels(np.array([0, 1, -1]), pd.NA).all()
