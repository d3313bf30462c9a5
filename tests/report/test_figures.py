"""Figures show names as they are."""

from xml.etree import ElementTree

import pytest
from support.hostile_pages import hostile_visit

from gcnii.report.figures import save

NAMES = ["$x$", r"$\frac$", "US$ and C$", r"cost\$", "escape\x1b[31m \x00 \u202e", "a & b < c"]


def texts(path):
    """The texts of an SVG file, which must be XML."""
    tree = ElementTree.parse(path)
    return [node.text or "" for node in tree.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_is_neither_taken_for_a_formula_nor_written_as_a_control_character(name, tmp_path):
    drawing = hostile_visit(name).figures["energy"]
    save(drawing, tmp_path / "energy.png")
    found = texts(save(drawing, tmp_path / "energy.svg"))
    shown = name.encode("unicode_escape").decode() if "\x1b" in name else name
    assert f"Do neighbours become alike? ({shown}, 2 layers)" in found
    assert shown in found  # the name of the model, in the legend


def test_powers_of_ten_at_the_ticks_are_still_formulas(tmp_path):
    path = save(hostile_visit("pets").figures["gradient"], tmp_path / "gradient.svg")
    assert "mathdefault" not in "".join(texts(path))
    assert any(True for _ in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}tspan"))
