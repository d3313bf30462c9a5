"""When a printed number is replicated."""

import pytest

from gcnii.experiments.printed import Printed
from gcnii.experiments.verdict import judge


def spread(mean, sd, n):
    """n scores (even n) with just this mean and sample standard deviation."""
    step = sd * ((n - 1) / n) ** 0.5
    return [mean + step * (-1) ** i for i in range(n)]


# difference, sd, n, the paper's sd: by hand, the 90 % interval is ± t(0.95, n-1)·sd/√n
@pytest.mark.parametrize(
    ("mean", "sd", "n", "printed", "word"),
    [
        (85.3, 0.5, 100, Printed(85.5, 0.5), "replicates"),  # -0.2 ± 0.083
        (85.3, 0.5, 100, Printed(85.5, 0.2), "lower"),  # not within 0.2, and -0.2 differs from 0
        (80.0, 1.0, 10, Printed(80.2), "replicates"),  # -0.2 ± 0.58, within 1.0
        (80.0, 1.0, 10, Printed(80.5), "undecided"),  # -0.5 ± 0.58 reaches beyond 1.0, and -0.5 ± 0.72 reaches 0
        (83.0, 1.0, 10, Printed(80.0), "higher"),
        (75.0, 6.0, 10, Printed(74.0), "undecided"),
        (81.0, 0.0, 2, Printed(81.5), "replicates"),  # all alike
        (84.0, 0.0, 2, Printed(81.5), "higher"),
    ],
)
def test_known_cases(mean, sd, n, printed, word):
    verdict = judge(spread(mean, sd, n), printed)
    assert verdict.word == word
    assert verdict.difference == pytest.approx(mean - printed.mean)
    assert verdict.margin == (printed.sd or 1.0)


def test_the_interval_is_that_of_student_s_t_at_90_per_cent():
    verdict = judge(spread(80.0, 1.0, 10), Printed(80.2))
    assert (verdict.low, verdict.high) == pytest.approx((-0.2 - 1.83311 / 10**0.5, -0.2 + 1.83311 / 10**0.5), abs=1e-4)


def test_one_run_decides_nothing():
    assert judge([85.5], Printed(85.5, 0.5)).word == "undecided"


def test_no_run_and_a_run_without_a_score_have_no_verdict():
    assert judge([], Printed(85.5)) is None
    assert judge([85.0, float("nan")], Printed(85.5)) is None


def test_more_runs_of_the_same_spread_turn_undecided_into_a_word():
    words = [judge(spread(80.0, 1.0, n), Printed(80.5)).word for n in (2, 10, 100)]
    assert words == ["undecided", "undecided", "replicates"]
