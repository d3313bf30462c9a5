"""A budget is the whole command's, and a search never returns less than `gcnii train`."""

import time
from dataclasses import replace
from itertools import count

import numpy as np
import optuna
import pytest
from support import knobs
from support.bipartite import shop
from support.small_studies import QUICK, finished

import gcnii
from gcnii.results.fit import Session
from gcnii.targets.scores import ACCURACY
from gcnii.train.plan import make_plan
from gcnii.tuning import closing as room
from gcnii.tuning import study as studies
from gcnii.tuning.closing import close, confirmed, reserve
from gcnii.tuning.proposals import Proposal, quiet, sampler_of
from gcnii.tuning.question import FRESH, Question
from gcnii.tuning.storage import Held, sqlite_url
from gcnii.tuning.study import begin_with_default, not_begun
from gcnii.tuning.trials import Trial, ranked, trials_of
from gcnii.tuning.worker import Limits, Worker, search

HERE = Session(device="cpu", threads=1)
FIXED = {"epochs": 8, "patience": 3}


@pytest.fixture(scope="module")
def bought():
    return shop()


@pytest.fixture
def question(bought):
    return Question.of(bought, ("gcnii",), seeds=2, fixed=FIXED)


@pytest.fixture
def study(question):
    quiet()
    study = optuna.create_study(direction="maximize", sampler=sampler_of(question))
    begin_with_default(study)
    return study


def trial(number, model="gcnii", score=0.5, seconds=0.0, outcome="complete", default=False):
    settings = make_plan(model, FIXED).settings
    one = (score,), (1.0,), (4,), seconds, seconds, outcome, default
    return Trial(number, model, settings, *one)


def by_number(found):
    return sorted(found.trials, key=lambda one: one.number)


@pytest.mark.filterwarnings("ignore:the run of seed")  # ended at its limit
def test_the_first_trial_is_what_train_would_train_and_the_baselines_follow():
    generated = gcnii.load("csbm", n=60, labels_per_class=5)  # which keeps the paper's settings
    found = gcnii.tune(generated, trials=3, **QUICK)
    first, *others = by_number(found)
    how = {"epochs": 8, "patience": 3, "monitor": "val_score_loss"}
    alone = gcnii.fit(generated, **how, device="cpu", threads=1)
    assert (first.model, first.settings) == (alone.plan.model, alone.plan.settings)
    assert first.default
    assert [one.model for one in others] == ["mlp", "gcn"]
    assert not any(one.default for one in others)


def test_it_has_its_own_number_of_epochs_and_no_value_is_moved_into_the_space(real_data):
    cora = real_data("cora")
    settings = make_plan("gcnii", {}, cora).settings
    assert settings["layers"] == 64  # which is not searched
    assert Question.of(cora).default.settings == settings


def test_among_given_models_it_is_the_default_of_one_of_them(bought):
    assert Question.of(bought, ("appnp",)).default.model == "appnp"
    assert Question.of(bought, ("appnp", "gcnii")).default.model == "gcnii"


def test_a_study_from_before_goes_on_with_the_default_and_then_as_it_would_have(
    bought, tmp_path, monkeypatch
):
    how = QUICK | {"models": ["gcnii"], "layers": 2}
    with monkeypatch.context() as patch:
        patch.setattr(studies, "begin_with_default", lambda study: None)
        gcnii.tune(bought, trials=3, out=tmp_path / "old", **how)
    gcnii.tune(bought, trials=5, out=tmp_path / "old", **how)
    gcnii.tune(bought, trials=5, out=tmp_path / "new", **how)
    old, new = (finished(sqlite_url(tmp_path / name))[0] for name in ("old", "new"))
    assert [one.default for one in old] == [False] * 3 + [True, False]
    assert [one.default for one in new] == [True] + [False] * 4
    rest = ([one.settings for one in some if not one.default] for some in (old, new))
    assert next(rest) == next(rest)


def test_a_default_that_was_given_back_is_still_the_default(question, study, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(knobs.FITTED, lambda *_, **how: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            search(question, study, Limits(trials=3), HERE)
    search(question, study, Limits(trials=3), HERE)
    assert [one.model for one in trials_of(study)] == ["gcnii", "mlp", "gcn"]
    assert [one.default for one in trials_of(study)] == [True, False, False]


def test_the_default_is_trained_once_even_if_there_is_no_time(question, study):
    search(question, study, Limits(deadline=time.time() + 0.2, closing=0.0), HERE)
    first = trials_of(study)[0]
    assert first.default
    assert len(first.val) >= 1
    assert min(first.epochs) > 3  # none was cut
    assert ranked([first]) == [first]


def test_a_default_that_takes_long_has_one_seed_in_a_search_without_a_budget(
    question, study, monkeypatch
):
    monkeypatch.setattr("gcnii.tuning.worker.HEAVY", 0)
    search(question, study, Limits(trials=2), HERE)
    default, mlp = trials_of(study)
    assert (len(default.val), default.can_win) == (1, True)
    assert len(mlp.val) == question.seeds
    assert len(close(question, [default, mlp], HERE).result.runs) > 1


def test_a_worse_model_that_was_finished_does_not_win_over_a_default_that_was_not():
    default = trial(0, score=0.8, outcome="given up", default=True)
    assert ranked([default, trial(1, "mlp", 0.4)])[0] is default
    assert ranked([replace(default, default=False), trial(1, "mlp", 0.4)])[0].model == "mlp"


def test_the_default_is_confirmed_beside_those_that_were_better(question):
    some = [trial(0, score=0.5, default=True), *(trial(i, score=0.9) for i in range(1, 9))]
    seen = []

    def train(graph, one, seeds):
        seen.append(one.number)
        return Fake([0.5 if one.default else 0.0] * len(seeds))

    found = confirmed(question, some, train)
    assert seen == [1, 2, 3, 4, 5, 0]
    assert found[0].default


class Fake:
    """A result of which only the runs are asked for."""

    def __init__(self, scores):
        from gcnii.train.stopping import Run

        self.runs = [Run(0, val=val, val_loss=1.0, epochs=4) for val in scores]


def test_a_trial_that_would_take_too_long_is_not_begun_and_waits_for_more_time(
    question, study, monkeypatch
):
    first = (one for one in (0.0, *[1e9] * 100))
    monkeypatch.setattr(Worker, "expected", lambda *_: next(first))
    limits = Limits(deadline=time.time() + 600)
    search(question, study, limits, HERE)
    assert [one.default for one in trials_of(study)] == [True]
    assert time.time() < limits.deadline - 300
    (said,) = not_begun(study)
    assert said.startswith("Not begun for lack of time: ")
    assert "1 of mlp" in said
    monkeypatch.undo()
    search(question, study, Limits(trials=11), HERE)
    assert len(trials_of(study)) == 11
    assert not_begun(study) == []


def test_the_time_of_a_trial_is_judged_by_its_model_and_its_size(question, study, monkeypatch):
    done = [trial(0, "gcnii", seconds=2.0), trial(1, "mlp", seconds=0.1)]
    monkeypatch.setattr("gcnii.tuning.worker.trials_of", lambda _: done)
    worker = Worker(question, study, Held(study), None, None, HERE)
    fresh = optuna.create_study().ask()

    def expected(model, **settings):
        return worker.expected(Proposal(fresh, make_plan(model, {**FIXED, **settings})))

    assert expected("mlp") == pytest.approx(0.1)  # FINAL is 2 in these tests, as the seeds are
    assert expected("gcnii", layers=64) == pytest.approx(2.0)
    assert expected("gcnii", layers=129) == pytest.approx(4.0)
    assert expected("gcn") == 0  # nothing is known of it: it is begun, and cut in time


def test_closing_takes_no_more_than_its_share_so_that_the_search_uses_the_budget():
    some = [trial(0, seconds=100.0), *(trial(i, "gcnii-plus", seconds=100.0) for i in range(1, 9))]
    assert reserve(some) > 500
    assert reserve(some, 60.0) == 60.0
    assert reserve(some, 1.0) == 50.0  # the winner once: FINAL is 2 in these tests
    assert reserve([], 60.0) == 0.0


def closed(question, monkeypatch, seconds, deadline):
    """What closing trains: the first word of each model with its number of seeds."""
    seen, fitted = [], room.fitted

    def watched(graph, plans, at_once, session, seeds, *words):
        seen.append((plans[0].model, len(seeds)))
        return fitted(graph, plans, at_once, session, seeds, *words)

    monkeypatch.setattr(room, "fitted", watched)
    monkeypatch.setattr("gcnii.tuning.question.FINAL", 10)
    monkeypatch.setitem(FIXED, "epochs", 2)
    first = trial(0, "gcnii", 0.9, seconds, default=True)
    some = [
        replace(first, settings=first.settings | {"layers": 2}),
        trial(1, "mlp", 0.1, seconds),
        trial(2, "gcn", 0.2, seconds),
    ]
    return close(question, some, HERE, deadline=time.time() + deadline), seen


@pytest.mark.parametrize(
    ("seconds", "seen", "notes"),
    [
        (60, [("gcnii", 4), ("mlp", 4), ("gcn", 4)], "fresh seeds: 4 instead of 10; "),
        (150, [("gcnii", 5)], "fresh seeds: 5 instead of 10; the baselines were not trained anew"),
        (1e6, [("gcnii", 1)], "fresh seeds: 1 instead of 10; the baselines were not trained anew"),
    ],
)
def test_closing_does_what_there_is_time_for_and_says_so(
    question, monkeypatch, seconds, seen, notes
):
    found, trained = closed(question, monkeypatch, seconds, 100)
    assert trained == seen
    assert len(found.result.runs) == seen[0][1]
    (note,) = found.notes
    assert note.startswith(f"Shortened to keep the budget: {notes}")
    assert note.endswith("the best few were not confirmed with more seeds.")
    assert note in found.lines()
    if len(seen) == 1:
        assert "no time to train an MLP again with new seeds" in found.verdict
    assert found.document()["notes"] == [note]


def test_closing_with_time_enough_leaves_nothing_out(question, monkeypatch):
    found, trained = closed(question, monkeypatch, 0.1, 1000)
    assert trained[-3:] == [("gcnii", 10), ("mlp", 10), ("gcn", 10)]
    assert found.notes == ()


@pytest.mark.filterwarnings("ignore:the run of seed")  # ended at its limit
@pytest.mark.parametrize("metric", ["auto", "auc"])
def test_without_time_the_runs_of_the_search_are_kept_as_train_would_have_them(
    bought, study, monkeypatch, metric
):
    monkeypatch.setattr("gcnii.tuning.question.ENOUGH", 1)  # no other split is drawn
    question = Question.of(bought, ("gcnii",), seeds=2, metric=metric, fixed=FIXED)
    kept = search(question, study, Limits(trials=1), HERE)
    monkeypatch.setattr(room, "fitted", lambda *_: 1 / 0)
    slow = [replace(one, final_seconds=1e6) for one in trials_of(study)]
    found = close(question, slow, HERE, deadline=time.time(), kept=kept)
    how = {"epochs": 8, "patience": 3, "metric": metric, "device": "cpu", "threads": 1}
    alone = gcnii.fit(bought, "gcnii", seeds=[0, 1], **how)
    np.testing.assert_allclose(found.result.test, alone.test)
    np.testing.assert_array_equal(found.result.predict(bought), alone.predict(bought))
    assert found.notes == (
        "Shortened to keep the budget: the winner's runs in the search were kept.",
    )
    assert not any("fresh seeds" in line for line in found.lines())
    assert all(run.seed < FRESH for run in found.result.runs)


def test_a_budget_is_used_and_kept_and_the_graph_wins(bought, monkeypatch):
    # Each look at the clock is a second, so that a busy machine does not shorten the search, which
    # would not end without a budget.
    seconds = count(time.time())
    monkeypatch.setattr(time, "time", lambda: next(seconds))
    how = QUICK | {"epochs": 60, "patience": 20, "models": ["gcnii"]}
    began = time.time()
    found = gcnii.tune(bought, budget=600, layers=4, **how)
    assert 300 < time.time() - began < 620
    default = next(one for one in found.trials if one.default)
    assert found.winner.rank >= default.rank
    assert found.result.test.mean() > 0.9
    assert len(found.trials) > 1


def test_an_mlp_that_was_tried_more_often_does_not_decide_about_the_graph(question):
    some = (trial(0, "mlp", 0.6), trial(1, "mlp", 0.5), trial(2, "gcn", 0.4), trial(3, "gcn", 0.3))
    open_ = replace_trials(question, some)
    assert open_.verdict == (
        "It is open whether the graph helps: an MLP on the features alone was best on validation, "
        "but no model for graphs was finished with as many settings (0 against 2); give the search "
        "more time."
    )
    more = (*some, trial(4, "gcnii", 0.4), trial(5, "gcnii", 0.3))
    assert replace_trials(question, more).verdict.startswith("The graph does not help: an MLP on")


def replace_trials(question, trials):
    """A study that an MLP has won."""

    class Scored:
        test, measured, score = np.array([0.6, 0.5]), "accuracy", ACCURACY

    return room.Tuned(question, Scored(), trials, {"mlp": Scored(), "gcn": Scored()})
