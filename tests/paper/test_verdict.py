"""When a printed number is replicated."""

from statistics import fmean, stdev

import numpy as np
import pytest
from support.tiny_cells import run

from gcnii_paper.tables.cells import MeasuredCell
from gcnii_paper.tables.printed import RONG, Printed
from gcnii_paper.tables.registry import choose
from gcnii_paper.verdict import judge

LEVELS = np.linspace(60, 78, 10)  # of ten splits; their mean is 69


def spread(mean, sd, n):
    """n scores (even n) with just this mean and sample standard deviation."""
    step = sd * ((n - 1) / n) ** 0.5
    return [mean + step * (-1) ** i for i in range(n)]


def on_one(scores):
    """The scores, and the split of each: the same."""
    return scores, [0] * len(scores)


def on_ten(seeds, step=1.0):
    """So many seeds on each of ten splits, by turns `step` above and below the split's level; and
    their splits.
    """
    scores = [level + step * (-1) ** i for i in range(seeds) for level in LEVELS]
    return scores, [*range(10)] * seeds


# difference, sd, n, the paper's sd: by hand, the 90 % interval is ± t(0.95, n-1)·sd/√n
@pytest.mark.parametrize(
    ("mean", "sd", "n", "printed", "word"),
    [
        (85.3, 0.5, 100, Printed(85.5, 0.5), "replicates"),  # -0.2 ± 0.083
        (85.3, 0.5, 100, Printed(85.5, 0.2), "lower"),  # not within 0.2, and -0.2 differs from 0
        (80.0, 1.0, 10, Printed(80.2), "replicates"),  # -0.2 ± 0.58, within 1.0
        # -0.5 ± 0.58 reaches beyond 1.0, and -0.5 ± 0.72 reaches 0
        (80.0, 1.0, 10, Printed(80.5), "undecided"),
        (83.0, 1.0, 10, Printed(80.0), "higher"),
        (75.0, 6.0, 10, Printed(74.0), "undecided"),
        (81.0, 0.0, 2, Printed(81.5), "replicates"),  # all alike
        (84.0, 0.0, 2, Printed(81.5), "higher"),
    ],
)
def test_known_cases(mean, sd, n, printed, word):
    verdict = judge(*on_one(spread(mean, sd, n)), printed)
    assert verdict.word == word
    assert verdict.difference == pytest.approx(mean - printed.mean)
    assert verdict.margin == (printed.sd or 1.0)


def test_a_printed_number_of_one_run_may_have_been_lucky():
    # t(0.975, 9) = 2.26216; one run and our mean differ by ± 2.098 · 2.262
    scores = on_one(spread(81.0, 2.0, 10))
    words = [judge(*scores, Printed(mean, source=RONG)).word for mean in (81.1, 85.7, 85.8)]
    assert words == ["undecided", "undecided", "lower"]
    assert judge(*scores, Printed(85.7)).word == "lower"


def test_the_interval_is_that_of_student_s_t_at_90_per_cent():
    verdict = judge(*on_one(spread(80.0, 1.0, 10)), Printed(80.2))
    assert (verdict.low, verdict.high) == pytest.approx(
        (-0.2 - 1.83311 / 10**0.5, -0.2 + 1.83311 / 10**0.5), abs=1e-4
    )


def test_one_run_decides_nothing():
    assert judge([85.5], [0], Printed(85.5, 0.5)).word == "undecided"


def test_no_run_and_a_run_without_a_score_have_no_verdict():
    assert judge([], [], Printed(85.5)) is None
    assert judge([85.0, float("nan")], [0, 0], Printed(85.5)) is None


def test_more_runs_of_the_same_spread_turn_undecided_into_a_word():
    words = [judge(*on_one(spread(80.0, 1.0, n)), Printed(80.5)).word for n in (2, 10, 100)]
    assert words == ["undecided", "undecided", "replicates"]


def test_splits_that_both_means_are_over_add_no_error():
    # within a split ± 1, so s² = 2; n = 20, and t(0.95, 10) = 1.81246
    scores, splits = on_ten(seeds=2)
    verdict = judge(scores, splits, Printed(69.0))
    assert (verdict.low, verdict.high) == pytest.approx(
        (-1.81246 * 0.1**0.5, 1.81246 * 0.1**0.5), abs=1e-4
    )
    assert verdict.word == "replicates"
    moved = [score + 50 * split for score, split in zip(scores, splits, strict=True)]
    assert judge(moved, splits, Printed(69.0 + 225)).high == pytest.approx(verdict.high)


def test_one_seed_a_split_cannot_tell_the_seed_from_the_split_so_the_spread_counts_whole():
    scores, splits = on_ten(seeds=1)
    verdict = judge(scores, splits, Printed(70.0))
    assert verdict.word == "undecided"
    assert verdict.high == pytest.approx(1.83311 * stdev(scores) / 10**0.5, abs=1e-3)


def test_a_split_with_more_seeds_than_another_has_no_more_weight():
    scores, splits = on_ten(seeds=2)
    # splits 0 to 4 twice: ± 1; 5 to 9 once: + 1
    verdict = judge(scores[:15], splits[:15], Printed(69.0))
    assert verdict.difference == pytest.approx(0.5)
    assert verdict.difference != pytest.approx(fmean(scores[:15]) - 69.0, abs=0.1)
    # Σ 1/n_s = 7.5, t(0.95, 5)
    assert verdict.high - 0.5 == pytest.approx(2.01505 * (2 * 7.5) ** 0.5 / 10, abs=1e-4)


def test_on_splits_drawn_afresh_more_seeds_do_not_narrow_the_splits_spread():
    few, many = (judge(*on_ten(seeds), Printed(69.0), shared=False) for seeds in (2, 200))
    assert (
        few.high
        == pytest.approx(many.high)
        == pytest.approx(1.83311 * stdev(LEVELS) / 10**0.5, abs=1e-3)
    )
    assert few.word == many.word == "undecided"


def test_over_ten_splits_the_papers_own_luck_must_not_explain_a_difference():
    # s² = 10/9: ours s/10, theirs s/√10, together 0.3496; t(0.975, 90) = 1.98667
    scores, splits = on_ten(seeds=10)
    words = [judge(scores, splits, Printed(69.0 - off, 0.1)).word for off in (0.69, 0.70)]
    assert words == ["undecided", "higher"]


@pytest.mark.parametrize("seeds", [2, 10])
def test_a_word_is_wrong_as_often_as_it_says(seeds):
    """Of 1,000 papers that ran what we run, once a split: 5 % seem to differ.  At the margin's edge
    5 % replicate.
    """
    random, level, splits = np.random.default_rng(0), np.tile(LEVELS, seeds), [*range(10)] * seeds
    papers = [random.normal(LEVELS, 3).mean() for _ in range(1000)]
    words = [
        judge(list(random.normal(level, 3)), splits, Printed(mean, 0.01)).word for mean in papers
    ]
    assert 35 <= sum(word in ("higher", "lower") for word in words) <= 65
    words = [
        judge(list(random.normal(level, 3)), splits, Printed(69.0 - 3, 3)).word for _ in papers
    ]
    assert 35 <= words.count("replicates") <= 65


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ("table5/gcnii/texas", "replicates"),
        ("60-20-20/texas", "undecided"),
        ("corrected-in-2022/cornell", "undecided"),
    ],
)
def test_a_cell_knows_whether_its_splits_are_the_papers(row, word):
    scores, splits = on_ten(seeds=2)
    cell = next(one for one in choose("table5") if row in one.id and one.model == "gcnii")
    names = (
        "table",
        "row",
        "column",
        "graph",
        "model",
        "command",
        "note",
        "extra",
        "stand_in",
        "splits",
    )
    fields = {name: getattr(cell, name) for name in names} | {
        "settings": {},
        "settings_hash": "",
        "cell": cell.id,
    }
    runs = tuple(
        run(i, score / 100, split=at)
        for i, (score, at) in enumerate(zip(scores, splits, strict=True))
    )
    assert MeasuredCell(**fields, printed=Printed(69.0), runs=runs).verdict.word == word
