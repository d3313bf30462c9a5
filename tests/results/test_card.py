"""card.md: what a bundle is for, what it was measured on, and how it errs."""

from dataclasses import replace

import numpy as np
import pytest

from gcnii import data, fit, open_bundle
from gcnii.results.card import card, plain

SMALL = {"layers": 2, "width": 8, "epochs": 10, "device": "cpu"}
HOSTILE = "<script>alert(1)</script> | `x` [a](http://b) \x1b[31m\nred"


@pytest.fixture(scope="module")
def graph():
    one = data.load("csbm", n=400, degree=6, labels_per_class=10)
    return replace(one, classes=("cat", "dog"))


@pytest.fixture(scope="module")
def result(graph):
    return fit(graph, seeds=range(2), **SMALL)


def test_the_card_says_what_it_is_for_and_how_it_errs(graph, result, tmp_path):
    path = result.save(tmp_path / "bundle", command="gcnii train x")
    text = (path / "card.md").read_text("utf-8")
    for head in ("What it is for", "What it was measured on", "How it errs", "How it was made"):
        assert f"## {head}\n" in text
    assert "2 classes: cat, dog." in text
    assert "|command|gcnii train x|" in text
    assert result.origin.fingerprint in text


def test_its_table_counts_the_test_nodes_of_each_class(graph, result):
    test = graph.splits[0].test
    found = result.predict_ids(graph, "cpu")[test]
    y = graph.labels[test]
    for j, name in enumerate(graph.classes):
        share = 100 * (found[y == j] == j).mean()
        assert f"|{name}|{(y == j).sum()}|{share:.1f}|" in card(result)


def test_few_validation_nodes_leave_an_error_that_is_named(graph):
    split = graph.splits[0]
    val = split.val & (np.cumsum(split.val) <= 12)
    few = replace(graph, splits=(replace(split, val=val),))
    text = card(fit(few, seeds=[0], **SMALL))
    assert "calibrated by 12 validation nodes: from so few they can be off by ± 0.1" in text
    assert "from so few" not in card(fit(graph, seeds=[0], **SMALL))


def test_names_are_plain_text(graph):
    hostile = replace(graph, classes=(HOSTILE, "dog"))
    text = card(fit(hostile, seeds=[0], **SMALL))
    assert "<script" not in text
    assert "\x1b" not in text
    (row,) = (line for line in text.splitlines() if line.startswith("|&lt;script"))
    assert row.count("|") - row.count("\\|") == 5
    assert plain("a_b") == r"a\_b"


def test_a_bundle_that_is_opened_and_saved_keeps_what_is_known(result, tmp_path):
    opened = open_bundle(result.save(tmp_path / "one", command="gcnii train x"))
    text = (opened.save(tmp_path / "two") / "card.md").read_text("utf-8")
    assert "|command|gcnii train x|" in text
    assert "## How it errs" not in text


def test_several_labels_and_no_test_nodes_have_cards_too(graph):
    many = replace(graph, y=np.stack([graph.labels, 1 - graph.labels], 1))
    assert "labels (a node can have several)" in card(fit(many, seeds=[0], **SMALL))
    split = replace(graph.splits[0], test=np.zeros(graph.n, bool))
    text = card(fit(replace(graph, splits=(split,)), seeds=[0], **SMALL))
    assert "## How it errs" not in text
