"""The page of a run that predicts numbers: scores and errors in their units."""

import re
from html import unescape

import numpy as np
import pytest
from support.amounts import diffused

import gcnii
from gcnii.inference.page import DOTS, draw_errors, write_page

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # what `evaluate` has to warn of


@pytest.fixture(scope="module")
def grid():
    return diffused(side=12, targets=("heat", "cold"), unit=50.0)


@pytest.fixture(scope="module")
def result(grid):
    return gcnii.fit(grid, "gcn", seeds=[0], epochs=30, device="cpu", threads=1)


@pytest.fixture(scope="module")
def html(result, grid, tmp_path_factory):
    path = write_page(result, tmp_path_factory.mktemp("page") / "run.html", grid, "cpu")
    return path.read_text("utf-8")


def words(html):
    """The text of a page without its tags."""
    return unescape(re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", html)))


def test_it_begins_with_r_squared_and_that_of_the_mean(html, result, grid):
    (first,) = re.findall(r'<p class="takeaway">(.*?)</p>', html)
    evaluation = result.evaluate()
    own, usual = evaluation.scores["r2"], evaluation.baselines["mean"]["r2"]
    assert first.startswith(f"R² {own.mean:.3f} ({own.low:.3f} to ")
    assert first.endswith(f"predicting the same for every node gives {usual.mean:.3f}.")
    assert "2 features, 2 numbers" in words(html)


def test_each_number_has_its_errors_drawn_and_in_tables(html, result):
    for name in result.target.names:
        assert f"Predicted by true {name}" in html
        assert f"Residuals of {name}" in html
    text, evaluation = words(html), result.evaluate()
    for row in (*evaluation.groups["degree"], *evaluation.groups["value"]):
        assert f"{row['target']} {row['group']} {row['nodes']} " in text
    assert "predicted - true" in text


@pytest.mark.parametrize("name", ["a b", '"><img src=x>', "a\\d"])
def test_a_number_may_be_called_anything(name):
    y = np.arange(9.0)
    for drawing in draw_errors(name, y, y + 1):
        ids = re.findall(r'id="([^"]*)"', drawing.svg)
        assert ids
        assert all(re.fullmatch(r"[\w.-]+", one) for one in ids)
        assert "<img" not in drawing.svg


def test_nothing_on_it_is_of_classes(html):
    for word in ("Calibration", "Confusion", "average precision", "per cent", " % (", "log loss"):
        assert word not in words(html)
    anchors = set(re.findall(r'<a href="#(\w+)"', html))
    assert anchors == {"scores", "training", "errors", "nodes", "settings"}
    assert all(f'id="{one}"' in html for one in anchors)


def test_a_dot_is_a_test_node_and_of_many_some_are_drawn():
    y = np.linspace(0, 1, 2 * DOTS)
    truth, residuals = draw_errors("heat", y, y + 0.1)
    assert (
        truth.caption
        == f"Dots: {DOTS:,} of the {2 * DOTS:,} test nodes; dashed: where predictions are true."
    )
    assert truth.svg.count("<use") >= DOTS
    few, _ = draw_errors("heat", y[:7], y[:7])
    assert "Dots: the test nodes" in few.caption
    assert residuals.svg != truth.svg
