"""The drawing: who, how strong, which label; names are text, and do not lie on each other."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from gcnii import data, fit
from gcnii.errors import InputError
from gcnii.inference.drawing import WIDTHS, draw, layout
from gcnii.inference.explain import MOST, choose_nodes


@pytest.fixture(scope="module")
def found():
    one = data.load("csbm", n=60, degree=6, labels_per_class=5)
    names = tuple(f"a long name with $x_{i}$ & <b>" if i % 2 else f"{i}" for i in range(60))
    graph = replace(one, nodes=names, classes=("$\\frac{cat$", "<dog>"))
    result = fit(graph, seeds=[0], layers=3, width=8, epochs=20, device="cpu")
    return result.explain(graph, names[3], device="cpu")


def test_names_are_inert_text_and_do_not_overlap(found):
    figure = draw(found)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == len(found.surroundings)
    for one, other in combinations(boxes, 2):
        apart = max(
            abs(one.x0 + one.x1 - other.x0 - other.x1) - one.width - other.width,
            abs(one.y0 + one.y1 - other.y0 - other.y1) - one.height - other.height,
        )
        assert apart > -1, (one, other)
    assert not any(text.get_parse_math() for text in figure.axes[0].texts)


@pytest.mark.parametrize("kind", [".png", ".svg"])
def test_a_drawing_is_a_file_and_the_same_each_time(found, kind, tmp_path):
    one, two = (found.draw(tmp_path / name / f"why{kind}") for name in "ab")
    assert one.read_bytes() == two.read_bytes()
    assert one.stat().st_size > 5000
    if kind == ".svg":
        text = one.read_text()
        assert "$\\frac{cat$" in text
        assert "<dog>" not in text


def test_another_ending_is_refused(found, tmp_path):
    with pytest.raises(InputError, match=r"a drawing must end in \.png or \.svg, got a\.pdf"):
        found.draw(tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []


def test_the_explained_node_is_in_the_middle_and_each_hop_on_a_circle(found):
    places = layout(found.surroundings, found.joined)
    radius = np.hypot(*places.T)
    assert radius[0] == 0
    for one, distance in zip(found.surroundings, radius, strict=True):
        assert distance == pytest.approx(one.hop**0.75)
    assert len(np.unique(places.round(6), axis=0)) == len(places)


def test_what_is_drawn_is_connected_and_not_too_much():
    # a chain 0 - 1 - 2 - … - 30, of which the far end matters
    hops, before = np.arange(31.0), np.arange(-1, 30)
    shares = np.zeros(31)
    shares[[0, 4, 30]] = 1.0, 0.5, 0.8
    chosen = choose_nodes(shares, hops, before, np.array([[6], [5]]))
    assert chosen.tolist() == [0, 1, 2, 3, 4, 5, 6]  # the way to 30 is too long
    assert len(chosen) <= MOST


def test_an_isolated_node_can_be_drawn(found, tmp_path):
    alone = replace(found, surroundings=found.surroundings[:1], groups=("x",), joined=(), links=())
    assert alone.draw(tmp_path / "alone.png").stat().st_size > 1000


def test_an_edge_is_as_wide_as_the_probability_that_falls_without_it(found):
    def widths(*effects):
        joined = tuple((0, 1, effect) for effect in effects)
        lines = draw(replace(found, joined=joined)).axes[0].lines
        return [line.get_linewidth() for line in lines]

    thin, half, most = widths(0.002, np.log(2), 50)
    assert thin == pytest.approx(WIDTHS[0], abs=0.02)
    assert half == pytest.approx(sum(WIDTHS) / 2)
    assert most == pytest.approx(WIDTHS[1])
