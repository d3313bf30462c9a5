"""When a printed number is replicated: the rule of 18 November 2026."""

from statistics import fmean, stdev

import numpy as np
import pytest
from support.made_up_cells import around, measured
from support.tiny_cells import run

from gcnii_paper.tables.cells import MeasuredCell, by_split
from gcnii_paper.tables.printed import (
    FEY,
    RONG,
    SINGLE,
    TABLE_2,
    TABLE_3,
    TABLE_5,
    Printed,
    runs_needed,
)
from gcnii_paper.tables.registry import CELLS, choose
from gcnii_paper.verdict import Verdict, correct, judge, verdicts

LEVELS = np.linspace(60, 78, 10)  # of ten splits; their mean is 69


def spread(mean, sd, n):
    """n scores (even n) with just this mean and sample standard deviation."""
    step = sd * ((n - 1) / n) ** 0.5
    return [mean + step * (-1) ** i for i in range(n)]


def alone(groups, printed, needs=2, **how):
    """The word of a number that is judged with no other."""
    (verdict,) = correct([judge(groups, printed, needs, **how)])
    return verdict.word


def on_ten(seeds, step=1.0):
    """So many seeds on each of ten splits, by turns `step` above and below the split's level."""
    return [[level + step * (-1) ** i for i in range(seeds)] for level in LEVELS]


# difference, sd, n, the paper's sd: by hand, the 90 % interval is ± t(0.95, n-1)·sd/√n
@pytest.mark.parametrize(
    ("mean", "sd", "n", "printed", "word"),
    [
        (85.3, 0.5, 100, Printed(85.5, 0.5), "replicates"),  # -0.2 ± 0.083
        # not within 0.2, and -0.2 / √(0.05² + 0.02²) = -3.7
        (85.3, 0.5, 100, Printed(85.5, 0.2), "lower"),
        (85.4, 0.5, 100, Printed(85.5, 0.1), "undecided"),  # -0.1 / 0.051 = -1.96, t(132) = 1.98
        (80.0, 1.0, 10, Printed(80.2), "replicates"),  # -0.2 ± 0.58, within 1.0
        (80.0, 1.0, 10, Printed(80.5), "undecided"),  # -0.5 ± 0.58 reaches beyond 1.0
        (83.0, 1.0, 100, Printed(80.0, source=FEY), "higher"),
        (75.0, 6.0, 100, Printed(74.0, source=FEY), "undecided"),  # 1 / √(0.6² + 0.6²) = 1.2
        (81.0, 0.0, 2, Printed(81.5), "replicates"),  # all alike
        (84.0, 0.0, 2, Printed(81.5, source=FEY), "higher"),
    ],
)
def test_known_cases(mean, sd, n, printed, word):
    groups = [spread(mean, sd, n)]
    verdict = judge(groups, printed, 2)
    assert alone(groups, printed) == word
    assert verdict.difference == pytest.approx(mean - printed.mean)
    assert verdict.margin == (printed.sd or 1.0)


def test_a_printed_run_is_judged_by_its_rank_among_ours():
    scores = [float(i) for i in range(1, SINGLE + 1)]  # 1 … 39
    beyond, last, middle = (
        judge([scores], Printed(x, source=RONG), SINGLE).p for x in (39.5, 39.0, 20.0)
    )
    assert (beyond, last, middle) == pytest.approx((2 / 40, 4 / 40, 1.0))
    assert alone([scores], Printed(39.5, source=RONG), SINGLE) == "lower"
    assert alone([scores], Printed(39.0, source=RONG), SINGLE) == "undecided"
    # however far away, and whatever the spread
    assert judge([[50.0] * 39], Printed(0.0, source=RONG), SINGLE).p == pytest.approx(2 / 40)


def test_an_unknown_number_of_printed_runs_needs_both_readings_to_agree():
    scores = spread(80.0, 1.0, 40)  # 79.01 and 80.99 by turns
    for mean, as_one, as_mean, word in (
        (81.5, "lower", "lower", "lower"),
        (80.5, "undecided", "lower", "undecided"),
    ):
        assert alone([scores], Printed(mean, 0.01, RONG)) == as_one
        assert alone([scores], Printed(mean, source=FEY)) in (as_mean, "replicates")
        assert alone([scores], Printed(mean, 0.01, "unknown")) == word


def test_fewer_runs_than_the_rule_asks_for_can_replicate_but_not_differ():
    few, enough = spread(80.0, 0.1, 38), spread(80.0, 0.1, 40)
    for mean, then in ((80.1, "replicates"), (90.0, "lower")):
        printed = Printed(mean, source=RONG)
        assert alone([enough], printed, SINGLE) == then
        assert alone([few], printed, SINGLE) == ("replicates" if mean < 81 else "undecided")
    assert judge([few], printed, SINGLE).p is None


def test_settings_of_ours_give_a_difference_and_no_verdict():
    for mean in (80.0, 90.0):
        verdict = judge([spread(80.0, 0.1, 100)], Printed(mean, source=RONG), 10, ours=True)
        assert (verdict.word, verdict.p) == ("other settings", None)
        assert verdict.difference == pytest.approx(80 - mean)
        assert verdict.low < verdict.difference < verdict.high


def test_cells_are_ours_where_nobody_published_settings():
    ours = {cell.id for cell in CELLS["table3"] if cell.ours}
    assert "table3/cora-gcn-drop/8" in ours
    assert not ours & {"table3/cora-gcn-drop/2", "table3/cora-incep/64", "table3/cora-gcnii/2"}
    # eight rows of DropEdge's, less the published depth of each
    assert len(ours) == 3 * (2 * 5 + 2 * 4 + 2 * 4)
    assert not any(cell.ours for table in ("table2", "table5") for cell in CELLS[table])


def test_of_twenty_numbers_one_in_twenty_is_not_called_different():
    def with_p(p):
        return Verdict("undecided", 1.0, 1.0, 0.5, 1.5, p, 39)

    assert [one.word for one in correct([with_p(0.04)])] == ["higher"]
    assert {one.word for one in correct([with_p(0.04), *[with_p(0.5)] * 19])} == {"undecided"}
    # Benjamini and Hochberg: the k-th smallest of m at most 0.05 k/m
    words = [one.word for one in correct([with_p(p) for p in (0.01, 0.02, 0.03, 0.9)])]
    assert words == ["higher"] * 3 + ["undecided"]
    not_tested = correct([with_p(None), with_p(0.04)])
    assert [one.word for one in not_tested] == ["undecided", "higher"]


def test_a_number_that_is_printed_twice_is_judged_once_by_one_margin():
    two = measured("table2/gcnii/cora", around(85.5, 100), settings_hash="same")
    three = measured("table3/cora-gcnii/64", around(85.5, 100), settings_hash="same")
    assert two.printed == three.printed == Printed(85.5, 0.5)
    found = verdicts([two, three])
    assert found["table2/gcnii/cora"] == found["table3/cora-gcnii/64"]
    assert TABLE_3["citeseer"]["gcnii"][64] == Printed(73.4)  # not Table 2's, though it is equal


def test_thirteen_numbers_of_table_3_are_those_of_table_2():
    from gcnii_paper.ledger import plan_of

    def numbers(table):
        return {
            (cell.graph, cell.model, str(plan_of(cell).settings), cell.printed)
            for cell in CELLS[table]
            if cell.printed and not cell.extra
        }

    assert len(numbers("table2") & numbers("table3")) == 13


@pytest.mark.parametrize(
    ("printed", "splits", "ours", "runs"),
    [
        (TABLE_2["gcnii"]["cora"], 1, False, 100),
        (TABLE_2["gat"]["pubmed"], 1, False, 100),
        (TABLE_2["jknet"]["cora"], 1, False, 39),
        (TABLE_3["cora"]["gcnii"][8], 1, False, 39),
        (TABLE_3["cora"]["gcn drop"][8], 1, True, 10),
        (TABLE_5["gcn"]["texas"], 10, False, 30),
        (None, 1, False, 10),
    ],
)
def test_the_kind_of_a_printed_number_alone_says_how_many_runs_it_needs(
    printed, splits, ours, runs
):
    assert runs_needed(printed, splits, ours=ours) == runs


def test_reproduce_asks_for_the_runs_that_a_verdict_needs():
    for cell in choose("all"):
        if not cell.stand_in and cell.printed and not cell.extra:
            splits = 10 if cell.table == "table5" else 1
            assert cell.runs == runs_needed(cell.printed, splits, ours=cell.ours), cell.id


def test_the_interval_is_that_of_student_s_t_at_90_per_cent():
    verdict = judge([spread(80.0, 1.0, 10)], Printed(80.2), 10)
    assert (verdict.low, verdict.high) == pytest.approx(
        (-0.2 - 1.83311 / 10**0.5, -0.2 + 1.83311 / 10**0.5), abs=1e-4
    )


def test_one_run_decides_nothing():
    assert alone([[85.5]], Printed(85.5, 0.5), 100) == "undecided"


def test_no_run_and_a_run_without_a_score_have_no_verdict():
    assert judge([], Printed(85.5), 39) is None
    assert judge([[85.0, float("nan")]], Printed(85.5), 39) is None


def test_more_runs_of_the_same_spread_turn_undecided_into_a_word():
    words = [alone([spread(80.0, 1.0, n)], Printed(80.5), 100) for n in (2, 10, 100)]
    assert words == ["undecided", "undecided", "replicates"]


def test_splits_that_both_means_are_over_add_no_error():
    # within a split ± 1, so s² = 2; n = 20, and t(0.95, 10) = 1.81246
    groups = on_ten(seeds=2)
    verdict = judge(groups, Printed(69.0), 30)
    assert (verdict.low, verdict.high) == pytest.approx(
        (-1.81246 * 0.1**0.5, 1.81246 * 0.1**0.5), abs=1e-4
    )
    assert verdict.word == "replicates"
    moved = [[score + 50 * split for score in scores] for split, scores in enumerate(groups)]
    assert judge(moved, Printed(69.0 + 225), 30).high == pytest.approx(verdict.high)


def test_one_seed_a_split_cannot_tell_the_seed_from_the_split_so_the_spread_counts_whole():
    groups = on_ten(seeds=1)
    verdict = judge(groups, Printed(70.0), 30)
    assert verdict.word == "undecided"
    scores = [score for (score,) in groups]
    assert verdict.high == pytest.approx(1.83311 * stdev(scores) / 10**0.5, abs=1e-3)


def test_a_split_with_more_seeds_than_another_has_no_more_weight():
    # splits 0 to 4 twice: ± 1; 5 to 9 once: + 1
    groups = [*on_ten(seeds=2)[:5], *(scores[:1] for scores in on_ten(seeds=2)[5:])]
    verdict = judge(groups, Printed(69.0), 30)
    assert verdict.difference == pytest.approx(0.5)
    every = [score for scores in groups for score in scores]
    assert verdict.difference != pytest.approx(fmean(every) - 69.0, abs=0.1)
    # Σ 1/n_s = 7.5, t(0.95, 5)
    assert verdict.high - 0.5 == pytest.approx(2.01505 * (2 * 7.5) ** 0.5 / 10, abs=1e-4)


def test_on_splits_drawn_afresh_more_seeds_do_not_narrow_the_splits_spread():
    few, many = (judge(on_ten(seeds), Printed(69.0), 30, shared=False) for seeds in (2, 200))
    assert (
        few.high
        == pytest.approx(many.high)
        == pytest.approx(1.83311 * stdev(LEVELS) / 10**0.5, abs=1e-3)
    )
    assert few.word == many.word == "undecided"
    assert many.p is None


def test_over_ten_splits_the_papers_own_luck_must_not_explain_a_difference():
    # s² = 10/9: ours s/10, theirs s/√10, together 0.3496; t(0.975, 90) = 1.98667
    groups = on_ten(seeds=10)
    words = [alone(groups, Printed(69.0 - off, 0.1), 30) for off in (0.69, 0.70)]
    assert words == ["undecided", "higher"]


@pytest.mark.parametrize("seeds", [3, 10])
def test_a_word_is_wrong_as_often_as_it_says(seeds):
    """Of 500 papers that ran what we run, once a split: 5 % seem to differ.  At the margin's edge
    5 % replicate.
    """
    random, level = np.random.default_rng(0), np.repeat(LEVELS, seeds).reshape(10, seeds)
    papers = [random.normal(LEVELS, 3).mean() for _ in range(500)]
    ps = [judge(random.normal(level, 3).tolist(), Printed(mean, 0.01), 30).p for mean in papers]
    assert 15 <= sum(p <= 0.05 for p in ps) <= 35
    words = [judge(random.normal(level, 3).tolist(), Printed(69.0 - 3, 3), 30).word for _ in papers]
    assert 15 <= words.count("replicates") <= 35


def test_a_printed_run_seems_to_differ_as_often_as_it_says_whatever_the_shape():
    """Runs of which a third collapses: of 1,000 more runs, at most 5 % lie beyond 39 others."""
    random = np.random.default_rng(1)

    def draw(*size):
        return np.where(random.random(size) < 1 / 3, 20, 80) + random.normal(0, 1, size)

    ps = [judge([list(draw(39))], Printed(draw(1)[0], source=RONG), 39).p for _ in range(1000)]
    assert 30 <= sum(p <= 0.05 for p in ps) <= 70


@pytest.mark.parametrize(
    ("row", "shared"),
    [
        ("table5/gcnii/texas", True),
        ("60-20-20/texas", False),
        ("corrected-in-2022/cornell", False),
    ],
)
def test_a_cell_knows_whether_its_splits_are_the_papers(row, shared):
    cell = next(one for one in choose("table5") if row in one.id and one.model == "gcnii")
    names = ("table", "row", "column", "graph", "model", "command", "note", "extra", "stand_in")
    fields = {name: getattr(cell, name) for name in (*names, "splits", "printed")}
    runs = tuple(run(i, 0.5, split=i % 10) for i in range(20))
    one = MeasuredCell(**fields, settings={}, settings_hash="", cell=cell.id, runs=runs)
    assert one.shared == shared
    assert by_split(one.test, [run.split for run in runs]) == one.by_split
