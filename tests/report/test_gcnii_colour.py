"""GCNII is the strong blue in every figure, and nothing else is."""

import re
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from matplotlib.colors import to_hex

import gcnii
from gcnii.analysis import Checkup, LayerReport, SampledValue
from gcnii.analysis.filters import Influence, Response, gcn_filter
from gcnii.analysis.report import draw_figures, draw_influence, draw_layers, draw_response
from gcnii.analysis.report import draw_study as draw_search
from gcnii.cli import demo
from gcnii.nn import MODELS
from gcnii.report.figures import (
    FAMILY,
    GCNII_STYLE,
    OTHERS,
    STAR_STYLE,
    style_of,
    styles_of,
)
from gcnii_paper.report import figures
from gcnii_paper.report.figures import ARMS, Arm, Curve, DegreeGroup, draw_figure1, draw_figure2
from gcnii_paper.tables.cells import read_cells
from gcnii_paper.theory.study import Study, karate_club
from gcnii_paper.theory.study import draw_study as draw_theory

BLUE = "#0072b2"
NAMES = ("gcn", "gcnii", "appnp", "gcnii-star", "mlp", "gat", "jknet", "sgc")
ROOT = Path(__file__).parents[2]


def colours(drawing):
    """Label → colours of all that is drawn with this label."""
    found = {}
    for axes in drawing.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            line = handle[0] if isinstance(handle, tuple) else handle
            colour = line.get_edgecolor()[0] if hasattr(line, "get_offsets") else line.get_color()
            found.setdefault(label, set()).add(to_hex(colour))
    return found


def layer_report(number):
    estimate = SampledValue(0.1 + number, 0.0)
    numbers = dict.fromkeys(("energy", "roughness", "mad", "mad_gap", "effective_rank"), estimate)
    state = SimpleNamespace(**numbers, width=8, rank=4, distance=0.1, dead=0.0)
    return LayerReport(f"layer {number}", state, gradient=0.1, probe=0.5)


def checkup(model, layers):
    rows = tuple(map(layer_report, range(layers)))
    return Checkup("cora", model, layers, {}, rows, rows, 0.8, 0.7, ())


def doctor_figures():
    return draw_figures([checkup(model, layers) for model in NAMES for layers in (2, 4)]).values()


def learned_figures():
    frequency, ones = np.linspace(0.05, 1.5, 12), np.ones(12)
    response = Response(frequency, gcn_filter(frequency, 2), 0.01 * ones, ones / 12, ones)
    reach = Influence(np.array([0.7, 0.3]), np.zeros(2), 5, 0)
    yield draw_response(dict.fromkeys(NAMES, response), layers=2, alpha=0.1)
    yield draw_influence(dict.fromkeys(NAMES, reach))


def study_figures():
    trials = [
        {"number": i, "model": model, "outcome": "complete", "val": [0.5 + i / 100]}
        for i, model in enumerate(NAMES)
    ]
    about = {"measured": "accuracy", "graph": "cora", "tried": len(trials), "importances": []}
    yield draw_search(about | {"trials": trials, "winner": {"model": "gcnii"}})


def paper_figures():
    arms = [Arm("cora", model, {2: (80.0, 81.0), 64: (70.0, 71.0)}) for model in ARMS]
    group = DegreeGroup(1, 2, 100, (0.5, 0.6))
    yield draw_figure2(arms)
    yield draw_figure1([Curve("cora", layers, "all", (group,), None) for layers in (2, 4, 64)])
    yield draw_theory(Study(karate_club(), None))
    runs = [SimpleNamespace(curve=[(1.0, 1.0, 0.5)] * 3)]
    yield demo.draw(dict.fromkeys(demo.STEPS, SimpleNamespace(test=np.array([0.5]), runs=runs)))


def depth_figure():
    """That of the README, from the committed cells."""
    cells = read_cells(ROOT / "results" / "cells")
    with mock.patch.object(figures, "save", lambda drawing, path: drawing):
        yield figures.draw_depth(Path("depth.png"), cells)


FIGURES = (doctor_figures, learned_figures, study_figures, paper_figures, depth_figure)


@pytest.mark.parametrize("figures", FIGURES, ids=lambda made: made.__name__)
def test_gcnii_is_the_strong_blue_and_nothing_else_is(figures):
    for drawing in figures():
        for label, found in colours(drawing).items():
            ours = re.match(r"gcnii(?![*-])", label.lower())
            assert (found == {BLUE}) if ours else (BLUE not in found), label


@pytest.mark.parametrize("figures", FIGURES, ids=lambda made: made.__name__)
def test_the_lines_of_a_panel_look_different(figures):
    for axes in (axes for drawing in figures() for axes in drawing.axes):
        lines = [line for line in axes.get_lines() if not line.get_label().startswith("_")]
        looks = [(to_hex(line.get_color()), line.get_marker(), line.get_ls()) for line in lines]
        assert len(set(looks)) == len(looks), looks


def test_a_label_has_the_colour_of_its_model():
    assert style_of("gcnii") == style_of("GCNII, 64 layers") == style_of("GCNII: both")
    assert style_of("GCNII") == GCNII_STYLE
    assert style_of("GCNII*") == style_of("gcnii-star") == STAR_STYLE
    assert style_of("GCN, 64 layers").colour not in (GCNII_STYLE.colour, STAR_STYLE.colour)


def test_every_model_of_the_registry_looks_different_up_to_25_others():
    names = [*FAMILY, *(name for name in MODELS if name not in FAMILY)][:30]
    assert len(set(styles_of(names).values())) == len(names)
    family = {styles_of(names)[name].colour for name in FAMILY}
    assert family == {GCNII_STYLE.colour, STAR_STYLE.colour}
    assert not family & {style.colour for style in OTHERS}


def test_a_watched_gcnii_is_blue_and_another_model_is_not():
    rows = [layer_report(l) for l in range(3)]
    for name, blue in (("gcnii", True), ("gcn", False), ("", False)):
        lines = [line for axes in draw_layers(rows, name).axes for line in axes.get_lines()]
        assert all((to_hex(line.get_color()) == BLUE) == blue for line in lines)


def test_no_figure_names_the_colour_itself():
    package = Path(gcnii.__file__).parent
    named = {path.name for path in package.rglob("*.py") if BLUE in path.read_text("utf-8").lower()}
    assert named == {"figures.py"}
