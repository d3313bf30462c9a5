"""A worker trains as many trials as were asked for, batch by batch, and tells what came out."""

import time
from dataclasses import replace
from itertools import chain

import optuna
import pytest
import torch
from optuna.exceptions import StorageInternalError
from support import knobs
from support.small_studies import QUICK

import gcnii
from gcnii.results.fit import Session
from gcnii.train.group import Interrupt
from gcnii.train.plan import make_plan
from gcnii.tuning import worker as room
from gcnii.tuning.proposals import Proposal, quiet, sampler_of
from gcnii.tuning.question import Question
from gcnii.tuning.storage import Held
from gcnii.tuning.trials import NothingFound, Trial, trials_of
from gcnii.tuning.worker import Clock, Limits, Worker, search

FIXED = {"epochs": 8, "patience": 3, "layers": 2}
HOW = {"session": Session(device="cpu", threads=1)}


@pytest.fixture
def question(graph):
    return Question.of(graph, ("gcnii", "gcn"), 2, "auto", FIXED)


@pytest.fixture
def study(question):
    quiet()
    return optuna.create_study(direction="maximize", sampler=sampler_of(question))


def names(study):
    return [trial.state.name for trial in study.trials]


def test_as_many_settings_are_tried_as_were_asked_for(question, study):
    search(question, study, Limits(trials=4), **HOW)
    assert len(trials_of(study)) == len(study.trials) == 4
    search(question, study, Limits(trials=4), **HOW)
    assert len(study.trials) == 4
    search(question, study, Limits(trials=5), **HOW)
    assert len(study.trials) == 5


def test_a_trial_too_many_is_not_trained(question, study, monkeypatch):
    asked, slots = [], room._slots
    monkeypatch.setattr(
        room, "_slots", lambda study, most: asked.append(1) or len(asked) == 4 or slots(study, most)
    )  # as if two workers had found the last place free
    search(question, study, Limits(trials=3), **HOW)
    assert names(study)[3] == "FAIL"
    assert len(trials_of(study)) == 3
    search(question, study, Limits(trials=4), **HOW)
    assert len(trials_of(study)) == 4


@pytest.mark.filterwarnings("ignore:the run of seed")  # ended at its limit
def test_a_finished_trial_tells_of_each_seed(question, study):
    search(question, study, Limits(trials=2), **HOW)
    mlp, gcn = trials_of(study)
    assert (mlp.model, gcn.model, mlp.outcome) == ("mlp", "gcn", "complete")
    for trial in (mlp, gcn):
        assert len(trial.val) == len(trial.val_loss) == len(trial.epochs) == 2
        assert trial.final_seconds >= trial.seconds / 2 > 0
        alone = gcnii.fit(
            question.hidden, trial.model, seeds=[0, 1], **trial.settings, device="cpu"
        )
        assert trial.val == pytest.approx(tuple(alone.val))


def test_the_runs_of_a_trial_that_fell_behind_are_fewer(question, study):
    search(question, study, Limits(trials=12), **HOW)
    behind = [trial for trial in trials_of(study) if trial.outcome == "given up"]
    assert behind
    assert all(trial.model == "gcnii" or trial.number > 1 for trial in behind)
    assert all(min(trial.epochs) > 3 for trial in behind)
    assert any(len(trial.val) == 1 for trial in behind)


def test_several_settings_of_one_shape_are_trained_at_once(question, study, monkeypatch):
    monkeypatch.setattr(knobs.AT_ONCE, lambda *_: 2)  # as a GPU would
    batches, train = [], Worker.train
    monkeypatch.setattr(
        Worker,
        "train",
        lambda *words: batches.append([one.trial.number for one in words[1]]) or train(*words),
    )
    search(question, study, Limits(trials=10), **HOW)
    assert sorted(chain(*batches)) == list(range(10))
    assert max(map(len, batches)) > 1
    assert len(trials_of(study)) == 10
    assert {trial.outcome for trial in trials_of(study)} <= {"complete", "given up"}


def test_fewer_settings_fill_a_gpu_where_each_has_several_views(question, monkeypatch):
    monkeypatch.setattr(room, "choose_device", lambda name: torch.device("cuda"))
    plans = (make_plan("gcnii", {"views": views}) for views in (1, 4))
    gpu = Worker(question, None, None, None, None, Session(device="cuda"))
    one, four = (gpu.capacity(Proposal(None, plan)) for plan in plans)
    assert four == one // 4


def test_a_setting_is_scored_alike_alone_and_in_a_batch(question, study, monkeypatch):
    search(question, study, Limits(trials=6), **HOW)
    monkeypatch.setattr(knobs.AT_ONCE, lambda *_: 3)
    other = optuna.create_study(direction="maximize", sampler=sampler_of(question))
    search(question, other, Limits(trials=6), **HOW)
    for one, two in zip(trials_of(study), trials_of(other), strict=True):
        assert one.settings == two.settings
        if one.outcome == two.outcome == "complete":
            assert one.val == pytest.approx(two.val)


def test_a_setting_that_diverges_is_lost_and_the_study_goes_on(graph, monkeypatch):
    fitted = room.fitted
    monkeypatch.setattr(
        knobs.FITTED,
        lambda graph, plans, *words, **how: (
            None if plans[0].recipe.scale == "none" else fitted(graph, plans, *words, **how)
        ),
    )
    monkeypatch.setattr("gcnii.tuning.question.GOOD", (("gcn", {"layers": 3}),))
    found = gcnii.tune(graph, trials=5, models=["gcn"], **QUICK)
    assert [trial.outcome for trial in found.trials] == ["complete"] * 4 + ["lost"]
    assert (found.trials[-1].settings["scale"], found.trials[-1].val) == ("none", ())
    assert found.document()["outcomes"] == {"complete": 4, "given up": 0, "lost": 1}


def test_a_study_in_which_all_diverge_says_so(graph):
    with pytest.raises(NothingFound) as refused:
        gcnii.tune(graph, trials=2, models=["gcn"], lr=1e30, layers=2, **QUICK)
    assert str(refused.value) == (
        "every training run of any model diverged or did not fit in memory (2 settings); look for "
        "extreme values in the features, or give a smaller lr or width"
    )


def test_what_does_not_fit_in_memory_is_tried_in_smaller_batches_and_then_lost(graph, monkeypatch):
    sizes = []

    def refuse(graph, plans, session, **how):
        sizes.append(session.batch)
        raise MemoryError

    monkeypatch.setattr(knobs.AT_ONCE, lambda *_: 4)
    monkeypatch.setattr(knobs.TRIAL_FIT, refuse)
    with pytest.raises(NothingFound, match="did not fit in memory"):
        gcnii.tune(graph, trials=2, models=["gcn"], **QUICK)
    assert sizes == [8, 2, 1, 8, 2, 1]  # 4 settings of 2 seeds


def test_other_errors_are_not_taken_for_a_lack_of_memory(graph, monkeypatch):
    def fail(*_, **how):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(knobs.TRIAL_FIT, fail)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        gcnii.tune(graph, trials=2, models=["gcn"], **QUICK)


def test_a_worker_that_fails_gives_its_trials_back(question, study, monkeypatch):
    monkeypatch.setattr(knobs.AT_ONCE, lambda *_: 2)
    monkeypatch.setattr(knobs.FITTED, lambda *_, **how: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        search(question, study, Limits(trials=6), **HOW)
    assert "RUNNING" not in names(study)
    assert names(study).count("FAIL") == names(study).count("WAITING") > 0


def test_a_result_that_comes_too_late_is_not_told(question, study, monkeypatch):
    held_back, fitted = [], room.fitted

    def slow(*words, **how):
        if not held_back:  # another worker has taken this one for dead
            held_back.append(study.trials[0])
            study._storage.set_trial_state_values(
                study.trials[0]._trial_id, state=optuna.trial.TrialState.FAIL
            )
        return fitted(*words, **how)

    monkeypatch.setattr(knobs.FITTED, slow)
    search(question, study, Limits(trials=3), **HOW)
    assert names(study)[0] == "FAIL"
    assert len(trials_of(study)) == 3


def test_time_is_over_when_what_is_left_is_needed_for_closing(question, study, monkeypatch):
    clock = Clock(study, Limits(deadline=time.time() + 100), Interrupt())
    assert not clock.over
    trial = Trial(0, "mlp", {}, (0.5,), (1.0,), (8,), 1.0, 60.0, "complete")
    monkeypatch.setattr(room, "trials_of", lambda _: [trial, replace(trial, number=1)])
    clock.looked = -1e9
    assert clock.over  # twice a minute to confirm, and one to train the winner


def test_a_search_without_time_trains_nothing(question, study):
    search(question, study, Limits(deadline=time.time() - 1), **HOW)
    assert study.trials == []


def test_a_search_is_cut_where_its_time_ends(question, study, monkeypatch):
    monkeypatch.setattr(room, "LOOK", 0.0)
    slow = replace(question, fixed=FIXED | {"epochs": 5000, "patience": 5000})
    search(slow, study, Limits(deadline=time.time() + 1.5), **HOW)
    (trial,) = trials_of(study)
    assert trial.outcome == "given up"
    assert max(trial.epochs) < 5000
    assert "RUNNING" not in names(study)


def test_a_worker_waits_for_the_trials_of_others(question, study, monkeypatch):
    other = Held(study)
    for _ in range(2):
        other.claim()
    waits = []

    def pause(seconds):
        waits.append(seconds)
        if len(waits) == 3:  # the other worker stops
            other.__exit__(None, None, None)

    monkeypatch.setattr(room.time, "sleep", pause)
    search(question, study, Limits(trials=2), **HOW)
    assert len(waits) == 3
    assert [trial.model for trial in trials_of(study)] == ["mlp", "gcn"]


def test_a_storage_that_fails_in_the_middle_is_a_sentence(graph, tmp_path, monkeypatch):
    def fail(*_, **how):
        raise StorageInternalError("during the commit") from OSError("disk I/O error")

    monkeypatch.setattr(room, "_standings", fail)
    with pytest.raises(gcnii.GcniiError) as failed:
        gcnii.tune(graph, trials=2, models=["gcn"], out=tmp_path / "s", **QUICK)
    assert str(failed.value) == (
        f"the storage sqlite:///{tmp_path / 's' / 'study.db'} fails: disk I/O error; run the same "
        "command again to go on"
    )
