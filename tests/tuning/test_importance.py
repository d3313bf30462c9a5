"""What mattered: a share of each setting, with an error; nothing where there are few trials."""

import numpy as np
import pytest

from gcnii.tuning.closing import FEWEST, importances
from gcnii.tuning.question import Question
from gcnii.tuning.trials import Trial


@pytest.fixture(scope="module")
def question(graph):
    return Question.of(graph)


def drawn(question, count, score, model="gcn", outcome="complete"):
    """Trials with settings at random, scored by a function of them."""
    random, found = np.random.default_rng(0), []
    for number in range(count):
        settings = question.plan(model, {}).settings | {
            "dropout": float(random.choice([0.0, 0.2, 0.4, 0.6])),
            "lr": float(10 ** random.uniform(-3, -1.6)),
            "decay_conv": float(10 ** random.uniform(-6, -2)),
            "width": int(random.choice([64, 128, 256])),
        }
        val = (score(settings),) * 2
        found.append(Trial(number, model, settings, val, (1.0, 1.0), (8, 8), 0.1, 1.0, outcome))
    return found


def test_the_setting_that_decides_has_the_largest_share_beyond_its_error(question):
    trials = drawn(question, 80, lambda settings: 0.9 - settings["dropout"])
    first, second, *rest = importances(question, trials, "gcn")
    assert first.name == "dropout"
    assert first.share - 2 * first.error > second.share
    shares = [one.share for one in (first, second, *rest)]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0, abs=0.05)
    assert {one.name for one in (first, second, *rest)} == set(question.space("gcn"))


def test_every_share_has_an_error(question):
    trials = drawn(question, 20, lambda settings: settings["lr"])
    for one in importances(question, trials, "gcn"):
        assert 0 <= one.share <= 1
        assert one.error >= 0
        assert set(one.document()) == {"name", "share", "error"}
    assert max(one.error for one in importances(question, trials, "gcn")) > 0


def test_of_fewer_than_ten_trials_nothing_is_said(question):
    trials = drawn(question, FEWEST - 1, lambda settings: settings["lr"])
    assert importances(question, trials, "gcn") == []
    lost = drawn(question, 40, lambda settings: 0.0, outcome="lost")
    assert importances(question, [*trials, *lost], "gcn") == []
    others = drawn(question, 40, lambda settings: settings["lr"], model="gcnii")
    assert importances(question, [*trials, *others], "gcn") == []


def test_where_all_scores_are_alike_no_share_is_claimed_without_an_error(question):
    trials = drawn(question, 30, lambda settings: 0.5)
    for one in importances(question, trials, "gcn"):
        assert np.isfinite([one.share, one.error]).all()


def test_of_settings_that_are_all_given_nothing_is_said(graph):
    question = Question.of(graph)
    given = {name: question.plan("gcn", {}).settings[name] for name in question.space("gcn")}
    fixed = Question.of(graph, fixed=given)
    trials = drawn(question, 20, lambda settings: 0.5)
    assert importances(fixed, trials, "gcn") == []
