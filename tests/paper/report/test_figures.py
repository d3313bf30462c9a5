"""Figures 1 and 2 on made-up data: what is drawn, and which of the paper's sentences hold."""

from dataclasses import replace
from itertools import product
from math import inf

import pytest
from support.made_up_cells import measured

from gcnii.report.figures import inline_svg, save
from gcnii_paper.report.figures import (
    Arm,
    Curve,
    DegreeGroup,
    ablation_arms,
    ablation_claims,
    above,
    degree_claims,
    draw_figure1,
    draw_figure2,
    slope,
)

DEPTHS = (2, 4, 8, 16, 32, 64)


def line(shares, layers=2, who="all", nodes=1000, hubs=None, many=6):
    """A curve whose groups were right in these shares of their nodes, in two runs."""
    groups = tuple(
        DegreeGroup(2**i, 2 ** (i + 1), nodes, (share, share)) for i, share in enumerate(shares)
    )
    return Curve(
        "cora",
        layers,
        who,
        groups,
        None if hubs is None else DegreeGroup(101, inf, many, (hubs, hubs)),
    )


def arm(model, means, graph="cora"):
    """Ten seeds around each mean."""
    return Arm(
        graph,
        model,
        {d: tuple(m + 0.1 * i for i in range(10)) for d, m in zip(DEPTHS, means, strict=True)},
    )


PAPERS = [
    arm("deep-gcn", (81, 80, 69, 65, 60, 29)),
    arm("gcn-identity", (81, 81, 80, 68, 60, 30)),
    arm("gcn-initial", (82, 81, 80, 79, 78, 77)),
    arm("gcnii", (82, 83, 84, 84, 85, 85)),
]


def words(claims):
    return [claim.word for claim in claims]


def test_figure_1_has_a_panel_for_each_graph_and_set_of_nodes():
    lines = [line((0.7, 0.8, 0.9), layers, who) for layers, who in product(DEPTHS, ("all", "test"))]
    drawing = draw_figure1(lines)
    assert [axes.get_title() for axes in drawing.axes] == ["cora: all nodes", "cora: test nodes"]
    assert [tick.get_text() for tick in drawing.axes[0].get_xticklabels()] == [
        "1\n1,000",
        "2–3\n1,000",
        "4–7\n1,000",
    ]
    assert [one.get_label() for one in drawing.axes[0].get_lines()] == [
        f"{layers} layers" for layers in DEPTHS
    ]
    assert list(drawing.axes[0].get_lines()[0].get_ydata()) == [70, 80, 90]


def test_figure_2_draws_means_with_their_spread():
    (axes,) = draw_figure2(PAPERS).axes
    names = ["GCNII: both", "GCN + initial residual", "GCN + identity mapping", "GCN"]
    assert [one.get_label() for one in axes.get_lines()] == names
    assert axes.get_lines()[3].get_ydata() == pytest.approx(
        [81.45, 80.45, 69.45, 65.45, 60.45, 29.45]
    )
    low = axes.collections[3].get_paths()[0].vertices[:, 1].min()
    assert low == pytest.approx(29.45 - 0.3028, abs=1e-3)


def test_the_legend_knows_what_the_first_panel_lacks():
    drawings = (
        draw_figure2(
            [PAPERS[3], *(arm(one.model, one.means.values(), "pubmed") for one in PAPERS)]
        ),
        draw_figure1([line((0.7,), 2), line((0.7,), 2, "test"), line((0.6,), 4, "test")]),
    )
    assert [len(drawing.legends[0].get_texts()) for drawing in drawings] == [4, 2]


@pytest.mark.parametrize("name", ["two.png", "two.svg"])
def test_the_same_figure_gives_the_same_bytes(name, tmp_path):
    once, again = (save(draw_figure2(PAPERS), tmp_path / folder / name) for folder in "ab")
    assert once.read_bytes() == again.read_bytes()


def test_a_drawing_within_a_page_takes_the_pages_ink_and_asks_no_network():
    drawing = inline_svg(draw_figure2(PAPERS), "figure2", "Accuracy against depth")
    assert drawing.startswith('<svg viewBox="0 0 ')
    assert 'aria-label="Accuracy against depth"' in drawing
    assert "currentColor" in drawing
    assert "#000000" not in drawing
    assert 'href="http' not in drawing


def test_the_papers_sentences_on_degrees_hold_on_data_that_is_as_they_say():
    claims = degree_claims([line((0.7, 0.8, 0.9)), line((0.6, 0.5, 0.4), layers=64, hubs=0.0)])
    assert words(claims) == ["held", "held", "held"]
    assert claims[0].figure.startswith("+10.")
    assert claims[1].figure.startswith("loss +20.")
    assert claims[2].figure == "0.0 % right, of 6 (95 %: 0 to 39)"


def test_a_single_hub_decides_nothing():
    *_, hub = degree_claims(
        [line((0.7, 0.8, 0.9)), line((0.6, 0.5, 0.4), layers=64, hubs=0.0, many=1)]
    )
    assert hub.word == "undecided"
    assert hub.figure == "0.0 % right, of 1 (95 %: 0 to 79)"


def test_a_network_that_gives_all_nodes_one_label_says_nothing_of_degrees():
    deep = line((0.6, 0.5, 0.4), layers=64, hubs=0.0)
    alike = replace(
        deep,
        groups=tuple(
            replace(group, accuracies=(group.accuracy,) * 9 + (0.1,)) for group in deep.groups
        ),
    )
    each = replace(
        deep,
        groups=tuple(
            replace(g, accuracies=tuple(g.accuracy + i / 1e4 for i in range(10)))
            for g in deep.groups
        ),
    )
    assert words(degree_claims([line((0.7, 0.8, 0.9)), alike])) == [
        "held",
        "undecided",
        "undecided",
    ]
    assert words(degree_claims([line((0.7, 0.8, 0.9)), each])) == ["held", "held", "held"]


def test_they_do_not_hold_on_data_that_says_the_contrary():
    claims = degree_claims([line((0.9, 0.8, 0.7)), line((0.4, 0.5, 0.6), layers=64, hubs=1.0)])
    assert words(claims) == ["not held", "not held", "not held"]


def test_they_are_undecided_where_there_are_few_nodes():
    claims = degree_claims([line((0.5, 0.6), nodes=10), line((0.5, 0.5), layers=64, nodes=10)])
    assert words(claims) == ["undecided"] * 3
    assert claims[2].figure == "there is no such node"


def test_a_slope_weighs_points_by_their_certainty():
    assert slope([(0, 0, 1), (1, 1, 1), (2, 2, 1)]).mean == pytest.approx(1)
    assert slope([(0, 0, 1), (1, 1, 1), (2, 90, 1e9)]).mean == pytest.approx(1, abs=1e-3)
    assert slope([(0, 0, 1)]) is None


def test_the_papers_sentences_on_the_ablation_hold_on_data_that_is_as_they_say():
    claims = ablation_claims(PAPERS)
    assert words(claims) == ["held"] * 4
    assert claims[0].figure.endswith("GCN at 8 layers, with identity mapping at 16 layers")


@pytest.mark.parametrize(
    ("which", "changed"),
    [
        # no collapse at all: that is more than marginal
        (0, arm("gcn-identity", (81, 81, 81, 81, 81, 81))),
        (0, arm("gcn-identity", (81, 81, 81, 81, 60, 30))),  # two doublings later than GCN
        (1, arm("gcn-initial", (82, 81, 70, 60, 50, 50))),  # loses more than half of what GCN loses
        (0, arm("gcn-identity", (81, 81, 60, 50, 40, 30))),  # no delay
        (2, arm("gcn-initial", (81, 84, 80, 79, 78, 77))),
        (3, arm("gcnii", (82, 83, 84, 84, 85, 79))),  # worse than with 2 layers
    ],
)
def test_a_sentence_falls_with_the_data_that_bears_it(which, changed):
    kept = [one for one in PAPERS if one.model != changed.model]
    assert [
        i for i, word in enumerate(words(ablation_claims([*kept, changed]))) if word == "not held"
    ] == [which]


def test_arms_that_were_not_measured_make_no_claim():
    assert len(ablation_claims(PAPERS[3:])) == 1


def test_claims_on_the_rise_are_undecided_where_a_t_test_does_not_tell():
    assert above((82, 83, 84), (83, 84, 85)) is None
    assert above((82, 83, 84), (92, 93, 94)) is False
    assert above((92, 93, 94), (82, 83, 84)) is True
    assert above((90,), (80, 81)) is None
    assert above((81, 81), (80, 80)) is True


def test_without_the_deepest_there_is_no_claim():
    assert degree_claims([line((0.7, 0.8)), line((0.6, 0.5), layers=32)]) == []
    assert ablation_claims([Arm("cora", "gcnii", {64: (85.0, 86.0)})]) == []


def test_a_cell_that_no_figure_declares_is_left_out():
    known = measured("figure2/cora-gcnii/64", [85.0, 86.0])
    (arm,) = ablation_arms([replace(known, cell="figure2/cora-gcnii/3"), known])
    assert arm.test == {64: (85.0, 86.0)}
