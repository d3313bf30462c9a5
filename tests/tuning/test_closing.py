"""Closing: the best few are confirmed, the winner is trained anew, and only then tested."""

from dataclasses import replace

import numpy as np
import pytest
from support.small_studies import QUICK

import gcnii
from gcnii.results.fit import Session
from gcnii.targets.scores import ACCURACY
from gcnii.tuning import closing as room
from gcnii.tuning.closing import Difference, Tuned, close, confirmed, reserve
from gcnii.tuning.question import BASELINES, FRESH, Question
from gcnii.tuning.trials import NothingFound, Trial, ranked, winner_of


def trial(number, model="gcn", score=0.5, loss=1.0, outcome="complete", seconds=0.0):
    settings = {"epochs": 4, "patience": 3}
    return Trial(number, model, settings, (score,), (loss,), (4,), 0.1, seconds, outcome)


@pytest.fixture(scope="module")
def question(graph):
    fixed = {"epochs": 4, "patience": 3, "layers": 2}
    return Question.of(graph, ("gcn",), 1, "auto", fixed)


def test_the_highest_mean_wins_and_of_equals_the_lowest_loss():
    some = [trial(0, score=0.7, loss=0.9), trial(1, score=0.7, loss=0.8), trial(2, score=0.6)]
    assert [one.number for one in ranked(some)] == [1, 0, 2]
    assert winner_of(some).number == 1


def test_only_a_complete_trial_can_win():
    best = trial(0, score=0.9, outcome="given up")
    assert winner_of([best, trial(1, score=0.2)]).number == 1
    with pytest.raises(NothingFound, match=r"^no training run of any model was finished; give t"):
        winner_of([best])
    with pytest.raises(NothingFound, match=r"^no training run of any model was finished; give t"):
        winner_of([])


def test_a_trial_has_the_mean_and_the_standard_error_of_its_seeds():
    one = replace(trial(0), val=(0.5, 0.7, 0.9))
    assert one.score == pytest.approx(0.7)
    assert one.error == pytest.approx(0.2 / 3**0.5)
    assert trial(0).error == 0.0


@pytest.mark.filterwarnings("ignore:the run of seed")  # ended at its limit
def test_the_winner_is_trained_anew_with_fresh_seeds(tuned):
    seeds = [run.seed for run in tuned.result.runs]
    assert min(seeds) >= FRESH
    assert tuned.result.plan.settings == tuned.settings == tuned.winner.settings
    alone = gcnii.fit(
        tuned.question.graph, tuned.model, seeds=seeds, **tuned.settings, device="cpu", threads=1
    )
    np.testing.assert_allclose(tuned.result.test, alone.test)
    assert set(tuned.baselines) == set(BASELINES)
    for baseline in tuned.baselines.values():
        assert [run.seed for run in baseline.runs] == seeds


def test_the_best_five_are_confirmed_with_other_seeds_without_test_nodes(question):
    scores = (0.5, 0.9, 0.8, 0.7, 0.1, 0.4, 0.3)
    some = [trial(i, score=score) for i, score in enumerate(scores)]
    some.append(trial(7, score=0.95, outcome="given up"))
    seen = []

    def train(graph, one, seeds):
        assert graph is question.hidden
        seen.append((one.number, list(seeds)))
        runs = [replace_run(val=0.2 if one.number == 1 else 0.6) for _ in seeds]
        return Fake(runs)

    found = confirmed(question, some, train)
    assert seen == [(i, [1]) for i in (1, 2, 3, 0, 5)]  # FINAL is 2 in these tests
    assert [one.number for one in found] == [2, 3, 1, 0, 5, 6, 4, 7]  # 0.7, 0.65, 0.55, 0.55, …
    assert found[0].val == (0.8, 0.6)


class Fake:
    """A result of which only the runs are asked for."""

    def __init__(self, runs):
        self.runs = runs


def replace_run(val):
    from gcnii.train.stopping import Run

    return Run(0, val=val, val_loss=1.0, epochs=4)


def test_one_setting_alone_needs_no_confirmation(question):
    def train(*_):
        raise AssertionError

    assert confirmed(question, [trial(0)], train) == [trial(0)]


def test_a_finalist_that_diverges_is_lost(question):
    some = [trial(i, score=0.9 - i / 10) for i in range(4)]
    found = confirmed(question, some, lambda graph, one, seeds: None if one.number == 0 else FINE)
    assert [(one.number, one.outcome) for one in found] == [
        (1, "complete"),
        (2, "complete"),
        (3, "complete"),
        (0, "lost"),
    ]


FINE = Fake([replace_run(0.9)])


def test_who_is_best_without_having_been_confirmed_does_not_win(question, monkeypatch):
    monkeypatch.setattr(room, "FINALISTS", 2)
    some = [trial(0, "mlp", 0.93), trial(1, "gcn", 0.92), trial(2, "gcn", 0.91)]
    found = close(
        question, some, Session(device="cpu", threads=1)
    )  # two seeds on a few epochs do not reach 0.91
    assert found.winner.number in (0, 1)
    assert found.result.plan.model == found.winner.model
    assert {found.trials[0].number, found.trials[1].number} == {0, 1}


def test_if_the_winner_diverges_when_it_is_trained_anew_the_next_takes_its_place(
    question, monkeypatch
):
    fitted = room.fitted

    def sometimes(graph, plans, at_once, session, seeds, *words):
        lost = min(seeds) >= FRESH and plans[0].recipe.lr == 0.02
        return None if lost else fitted(graph, plans, at_once, session, seeds, *words)

    monkeypatch.setattr(room, "fitted", sometimes)
    bad = replace(trial(7, score=5.0), settings={"lr": 0.02})
    some = [bad, trial(0, "mlp", 0.1), trial(1, "gcn", 0.2)]
    found = close(question, some, Session(device="cpu", threads=1))
    assert found.winner.number in (0, 1)
    assert [one.number for one in found.trials if one.outcome == "lost"] == [7]
    assert set(found.baselines) == {"mlp", "gcn"}
    assert found.document()["winner"]["number"] == found.winner.number


def test_if_all_diverge_when_they_are_trained_anew_it_says_so(question, monkeypatch):
    monkeypatch.setattr(room, "fitted", lambda *_, **how: None)
    with pytest.raises(NothingFound, match=r"^every training run of any model diverged or did not"):
        close(question, [trial(0, "mlp"), trial(1)], Session(device="cpu", threads=1))


def test_the_reserve_is_the_time_of_the_finalists_the_winner_and_the_baselines():
    some = [
        trial(0, "mlp", 0.1, seconds=1.0),
        trial(1, "gcn", 0.2, seconds=10.0),
        trial(2, "gcnii", 0.9, seconds=100.0),
        *(trial(3 + i, "gcnii", 0.8, seconds=1000.0) for i in range(3)),
        trial(6, "gcnii", 0.95, seconds=1e6, outcome="given up"),
    ]
    confirming, final = 100 + 3 * 1000 + 10, 100 + 1 + 10
    assert reserve(some) == confirming + final
    assert reserve(some[:1]) == 1.0
    assert reserve([]) == 0.0


class Scored:
    """A result of which only the test scores are asked for."""

    metric, measured, score, plan = "accuracy", "accuracy", ACCURACY, None

    def __init__(self, *test):
        self.test = np.array(test)


def verdict(question, winner, *others, **baselines):
    found = Tuned(question, Scored(*winner[1]), (trial(0, winner[0]), *others), baselines)
    return found.verdict


def test_the_difference_is_paired_by_seed():
    gap = Difference.of(Scored(0.8, 0.6), Scored(0.7, 0.5))
    assert (gap.mean, gap.error) == (pytest.approx(0.1), pytest.approx(0.0))
    assert str(gap) == "+10.0 ± 0.0 points"


@pytest.mark.parametrize(
    ("mlp", "sentence"),
    [
        (
            (0.60, 0.62, 0.61),
            "The graph helps: gcn is 20.0 ± 0.6 points of accuracy above an MLP, ",
        ),
        (
            (0.90, 0.91, 0.95),
            "The graph does harm: gcn is 11.0 ± 1.0 points of accuracy below an MLP, ",
        ),
        (
            (0.70, 0.95, 0.80),
            "It is open whether the graph helps: gcn is 0.7 ± 7.1 points of accuracy below an "
            "MLP, ",
        ),
    ],
)
def test_the_verdict_says_whether_the_graph_helps_and_by_how_much(question, mlp, sentence):
    others = (trial(1, "gcnii", 0.4), trial(2, "mlp", 0.3))
    found = verdict(question, ("gcn", (0.8, 0.81, 0.82)), *others, mlp=Scored(*mlp))
    assert found == f"{sentence}which had 1 of the 3 settings tried."


def test_where_an_mlp_wins_the_graph_does_not_help(question):
    gcn = Scored(0.7, 0.6)
    other = trial(1, "gcnii", 0.4)
    assert verdict(question, ("mlp", (0.8, 0.7)), other, mlp=Scored(0.8, 0.7), gcn=gcn) == (
        "The graph does not help: an MLP on the features alone was best on validation, and on test "
        "it is 10.0 ± 0.0 points of accuracy above gcn."
    )
    assert verdict(question, ("mlp", (0.8, 0.7))) == (
        "Whether the graph helps is not measured: no training run of a model that sees it "
        "was finished; give the search more time."
    )


def test_without_an_mlp_or_without_test_nodes_nothing_is_claimed(question):
    assert verdict(question, ("gcn", (0.8, 0.7)), gcn=Scored(0.8, 0.7)) == (
        "Whether the graph helps is not measured: no training run of an MLP was finished; give "
        "the search more time."
    )
    nan = float("nan")
    assert verdict(question, ("gcn", (nan, nan)), mlp=Scored(nan, nan)) == (
        "There are no test nodes, so whether the graph helps is not measured."
    )


def test_a_graph_without_test_nodes_can_be_tuned(graph):
    split = replace(graph.splits[0], test=np.zeros(graph.n, bool))
    found = gcnii.tune(replace(graph, splits=(split,)), trials=2, models=["gcn"], layers=2, **QUICK)
    document = found.document()
    assert document["lead"] == {}
    assert document["final"]["test_mean"] is None
    assert document["verdict"].startswith("There are no test nodes")


def test_the_study_reports_what_was_tried_and_the_runner_up(tuned):
    first, second, verdict = (
        tuned.lines()[0],
        tuned.lines()[1],
        tuned.lines()[-1],
    )
    assert first.startswith("6 settings tried; the best by validation: ")
    assert f"; the runner-up: {tuned.runner_up.model}, " in first
    assert tuned.runner_up is tuned.trials[1]
    assert second.endswith(" (2 runs), trained anew with fresh seeds")
    assert verdict == tuned.verdict
