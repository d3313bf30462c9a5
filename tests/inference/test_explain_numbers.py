"""Explanations of numbers: shares of the value, in its units, and a check by removal."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from support.amounts import diffused
from support.command_line import call

import gcnii
from gcnii.errors import InputError
from gcnii.inference.drawing import draw
from gcnii.results.fit import Session
from gcnii.targets.scores import number_shown
from gcnii.train.presets import Point
from gcnii.tuning.portfolio import prepared

NODE = 40
POINTS = [
    Point("wide", "gcn", {"layers": 2, "width": 16, "epochs": 30}),
    Point("deep", "gcnii", {"layers": 4, "width": 8, "epochs": 30}),
]


@pytest.fixture(scope="module")
def grid():
    return diffused(side=10, targets=("heat", "cold"), unit=50.0)


@pytest.fixture(scope="module")
def result(grid):
    how = {"seeds": [0], "layers": 2, "epochs": 60, "device": "cpu", "threads": 1}
    return gcnii.fit(grid, "gcn", **how, precision="float64")


def total(found):
    return sum(one.share for one in found.hops) + found.bias


@pytest.mark.parametrize("j", [0, 1])
def test_the_shares_add_up_to_the_number_that_is_predicted(result, grid, j):
    found = result.explain(grid, NODE, label=("heat", "cold")[j], device="cpu")
    value = result.predict(grid, "cpu")[NODE, j]
    assert found.exact
    assert found.probability == pytest.approx(value, rel=1e-9)
    assert total(found) == pytest.approx(value, rel=1e-6)


def test_the_first_number_is_explained_if_none_is_named(result, grid):
    found = result.explain(grid, NODE, device="cpu")
    assert found.label == "heat"
    said = found.document()
    assert said["value"] == found.probability
    assert "probability" not in said
    assert f"heat is predicted as {number_shown(found.probability)}." in found.sentence
    assert "probability" not in found.sentence
    assert "the mean and the model's bias" in found.sentence


def test_the_command_calls_the_number_by_its_name(result, grid, tmp_path):
    bundle, graph = result.save(tmp_path / "b"), gcnii.save(grid, tmp_path / "g.safetensors")
    said = call("explain", bundle, NODE, "--graph", graph, "--device", "cpu", cwd=tmp_path).out
    assert "drop of heat" in said
    assert "The shares add up to heat; the residual" in said


def test_what_removal_showed_is_what_the_model_says_without_the_edges(result, grid):
    found = result.explain(grid, NODE, device="cpu")
    gone = {frozenset((one.source, one.target)) for one in found.removal.links}
    kept = [frozenset(pair) not in gone for pair in grid.edges.T.tolist()]
    rest = replace(grid, edges=grid.edges[:, kept])
    assert found.removal.after == pytest.approx(result.predict(rest, "cpu")[NODE, 0], rel=1e-6)
    ends = number_shown(found.removal.before), number_shown(found.removal.after)
    assert f"changes heat from {ends[0]} to {ends[1]}." in found.sentence


def test_edges_are_ranked_by_how_far_they_move_the_number_whichever_way(result, grid):
    found = result.explain(grid, NODE, device="cpu", top=8)
    sizes = [abs(one.effect) for one in found.links]
    assert sizes == sorted(sizes, reverse=True)
    assert min(one.effect for one in found.links) < 0 < max(one.effect for one in found.links)


def test_a_drawing_says_what_its_widths_are_of(result, grid):
    figure = draw(result.explain(grid, NODE, device="cpu"))
    assert "how far the number moves" in figure.axes[0].get_title()
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"edge that raises it", "edge that lowers it"} <= set(names)


def test_an_ensemble_has_the_shares_of_its_networks_in_units(grid):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = prepared(grid, {}, Session(device="cpu"), points=POINTS).run()
    ensemble = every.member("wide")
    found = ensemble.explain(grid, NODE, label="cold", device="cpu")
    assert (found.unit, found.others) == ("cold", {})
    assert total(found) == pytest.approx(ensemble.predict(grid, "cpu")[NODE, 1], rel=1e-4)


def test_an_unknown_number_and_a_class_to_compare_with_are_refused(result, grid):
    with pytest.raises(InputError, match="there is no number 'warm'; there are 'heat', 'cold'"):
        result.explain(grid, NODE, label="warm")
    with pytest.raises(InputError, match="a number is explained; leave it out"):
        result.explain(grid, NODE, label="heat", against="cold")


def test_edges_of_types_are_removed_with_their_types(grid):
    m, y = grid.edges.shape[1], (grid.y[:, 0] > 150).astype(int)
    typed = replace(grid, y=y, targets=(), edge_types=np.arange(m) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ensemble = prepared(typed, {}, Session(device="cpu"), points=POINTS).run()
    found = ensemble.explain(typed, NODE, device="cpu")
    assert found.removal.after != found.removal.before
