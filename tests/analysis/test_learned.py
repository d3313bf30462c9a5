"""The figures of what a network has learned show every line that they are given."""

import numpy as np
import pytest

from gcnii.analysis.filters import Influence, Response, gcn_filter
from gcnii.analysis.report import draw_influence, draw_response
from gcnii.report.figures import save


def made_up(layers):
    frequency = np.linspace(0.05, 1.5, 12)
    ones = np.ones(12)
    return Response(frequency, gcn_filter(frequency, layers), 0.01 * ones, ones / 12, ones)


def legend(drawing):
    return [text.get_text() for text in drawing.legends[0].get_texts()]


def test_networks_stand_beside_the_known_filters():
    drawing = draw_response({"GCNII": made_up(2), "GCN": made_up(3)}, layers=64, alpha=0.1)
    assert legend(drawing) == [
        "(1-λ)^64: GCN without ReLU",
        "personalised PageRank, α = 0.1",
        "GCNII",
        "GCN",
    ]


def test_hops_without_influence_are_left_out():
    share = np.array([0.6, 0.3, 0.1, 0.0, 0.0])
    drawing = draw_influence({"GCNII": Influence(share, 0 * share, 5, 0)})
    assert legend(drawing) == ["GCNII, mean 0.5"]
    assert drawing.axes[0].get_xticks().tolist() == [0, 1, 2]


@pytest.mark.parametrize(("shown", "columns"), [(4, 2), (5, 1)])
def test_a_legend_has_as_many_columns_as_its_figure_is_wide(shown, columns):
    models = ("gcn", "gcn-residual", "appnp", "gcnii", "gcnii-star-as-printed")[:shown]
    drawing = draw_response({model: made_up(2) for model in models}, layers=64, alpha=0.1)
    drawing.draw_without_rendering()
    (one,) = drawing.legends
    assert one.get_window_extent().width <= drawing.bbox.width
    assert one._ncols == columns


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_picture_is_written_the_same_twice(kind, tmp_path):
    first, second = (
        save(
            draw_response({"GCNII": made_up(2)}, layers=2, alpha=0.1),
            tmp_path / name / f"filter.{kind}",
        )
        for name in ("a", "b")
    )
    assert first.read_bytes() == second.read_bytes()
