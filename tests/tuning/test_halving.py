"""Successive halving: a setting leaves where it is below the median, and never before patience."""

from statistics import median

import numpy as np
import pytest

from gcnii.results.fit import Session, fit_plans
from gcnii.train import group as loop
from gcnii.train.plan import make_plans
from gcnii.train.stopping import Run
from gcnii.tuning.worker import FEWEST, Halving


def rungs(patience, last):
    """The epochs of the rule, up to the last one."""
    found = [patience + 1]
    while 2 * found[-1] <= last:
        found.append(2 * found[-1])
    return found


def literal(curves, patience):
    """When each setting is given up, by the sentence of the rule; curves[setting][seed] are scores.

    All runs are in step; a curve ends where its run stops by itself.
    """
    gone = {}
    for rung in rungs(patience, max(len(curve) for own in curves for curve in own)):
        leaving = set()
        for setting, own in enumerate(curves):
            if setting in gone or not any(len(curve) > rung for curve in own):
                continue  # nothing of it is still in training after this epoch
            gaps = []
            for seed, curve in enumerate(own):
                others = [other[seed] for i, other in enumerate(curves) if i not in gone]
                there = any(len(other) >= rung for other in others)
                if there and len(others) >= FEWEST:
                    gaps.append(max(curve[:rung]) - median(max(one[:rung]) for one in others))
            if gaps and sum(gaps) / len(gaps) < 0:
                leaving.add(setting)
        gone |= dict.fromkeys(leaving, rung)
    return gone


def played(curves, patience, **how):
    """When each setting is given up, epoch by epoch as `fit` asks."""
    halving = Halving(list("abcdefghijkl")[: len(curves)], patience, **how)
    runs = [Run(seed, setting=i) for i, own in enumerate(curves) for seed in range(len(own))]
    gone = {}
    for epoch in range(1, 1 + max(len(curve) for own in curves for curve in own)):
        for run in [run for run in runs if not run.stopped]:
            curve = curves[run.setting][run.seed]
            run.curve.append((0.0, 0.0, curve[epoch - 1]))
            run.epochs, run.stopped = epoch, epoch == len(curve)
        for run in halving(runs):
            run.stopped = True
            gone.setdefault(run.setting, epoch)
        if epoch % 3 == 0:  # as the replicas that have stopped leave the stack
            runs = [run for run in runs if not run.stopped]
    return gone


def drawn(seed, settings=12, seeds=2, epochs=40, patience=4):
    """Scores that rise to different heights; some runs stop early."""
    random = np.random.default_rng(seed)
    curves = []
    for _ in range(settings):
        height = random.random()
        ends = random.choice([epochs, *range(patience + 1, epochs)], size=seeds)
        curves.append([list(height + 0.3 * random.standard_normal(end)) for end in ends])
    return curves


@pytest.mark.parametrize("seed", range(20))
def test_who_leaves_and_when_is_the_sentence_of_the_rule(seed):
    curves = drawn(seed)
    gone = played(curves, 4)
    assert gone == literal(curves, 4)
    assert set(gone.values()) <= set(rungs(4, 40))


def test_there_are_cases_of_leaving_at_every_rung():
    at = [rung for seed in range(20) for rung in played(drawn(seed), 4).values()]
    assert set(at) == {5, 10, 20}


def test_nobody_leaves_before_patience_can_have_spoken():
    # A run whose first epoch was the best is stopped by its patience after patience + 1 epochs.
    hopeless = [[[0.0] * 30], *[[[1.0] * 30] for _ in range(5)]]
    assert played(hopeless, 6) == {0: 7}


def test_seeds_are_compared_with_their_own_kind():
    # Seed 1 has an easy split.  Setting 0 is the best on both; pooled, it would be below.
    hard, easy = [0.3] * 20, [0.9] * 20
    curves = [[[0.4] * 20, [0.95] * 20], *[[hard, easy] for _ in range(4)]]
    assert 0 not in played(curves, 4)


def test_a_setting_leaves_by_the_mean_of_its_differences():
    curves = [[[0.8] * 20, [0.1] * 20], *[[[0.5] * 20, [0.5] * 20] for _ in range(4)]]
    assert played(curves, 4) == {0: 5}


def test_a_median_of_three_says_nothing():
    curves = [[[score] * 20] for score in (0.1, 0.5, 0.9)]
    assert played(curves, 4) == {}
    assert played([*curves, [[0.95] * 20]], 4) == {0: 5, 1: 5}


def test_settings_of_earlier_batches_count():
    earlier = {5: {0: dict.fromkeys((101, 102, 103), 0.5)}}
    assert played([[[0.4] * 9]], 4, standings=earlier) == {0: 5}
    earlier = {5: {0: dict.fromkeys((101, 102, 103), 0.5)}}
    assert played([[[0.5] * 9]], 4, standings=earlier) == {}


def test_the_baselines_stay():
    curves = [[[0.1] * 20], *[[[0.9] * 20] for _ in range(5)]]
    assert played(curves, 4, stay={0}) == {}


def test_when_time_is_over_all_leave_and_are_not_called_behind():
    halving = Halving("ab", 4, over=lambda: True)
    runs = [Run(0, setting=0, epochs=1, curve=[(0, 0, 1.0)]), Run(0, setting=1)]
    assert halving(runs) == runs
    assert (halving.behind, halving.cut) == (set(), {0, 1})


def test_on_a_cpu_every_seed_is_judged_though_they_come_one_after_the_other():
    names = ["mine", 1, 2, 3]
    others = {5: {seed: dict.fromkeys(names[1:], 0.5) for seed in (0, 1)}}
    halving = Halving(["mine"], 4, others)
    first = Run(0, epochs=5, curve=[(0, 0, 0.55)] * 5)
    assert halving([first]) == []
    first.stopped = True
    second = Run(1, epochs=5, curve=[(0, 0, 0.1)] * 5)
    assert halving([second]) == [second]
    assert halving.noted(0) == {5: {0: 0.55, 1: 0.1}}


def test_who_was_given_up_does_not_count_where_it_did_not_get():
    curves = [[[0.0] * 40], *[[[score] * 40] for score in (0.2, 0.4, 0.6, 0.8)]]
    halving = Halving(range(5), 4)
    runs = [Run(0, setting=i) for i in range(5)]
    for epoch in range(1, 11):
        for run in [run for run in runs if not run.stopped]:
            run.curve.append((0, 0, curves[run.setting][0][epoch - 1]))
            run.epochs = epoch
        for run in halving(runs):
            run.stopped = True
    assert set(halving.standings[5][0]) == {0, 1, 2, 3, 4}
    assert set(halving.standings[10][0]) == {2, 3, 4}


@pytest.fixture(scope="module")
def plans(graph):
    """Six settings of one shape, of which those with a huge penalty learn nothing."""
    decays = {"decay_conv": [1e-4, 30.0] * 3, "decay_dense": [1e-4, 30.0] * 3}
    given = {"layers": 2, "width": 8, "epochs": 24, "patience": 3, "lr": 0.03}
    return make_plans("gcnii", given | decays | {"alpha": [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]}, graph)


def test_the_places_of_those_who_leave_are_taken_by_the_next(graph, plans, monkeypatch):
    joined, join = [], loop.ReplicaGroup.join
    monkeypatch.setattr(
        loop.ReplicaGroup,
        "join",
        lambda self, runs: joined.extend(run.key for run in runs) or join(self, runs),
    )
    earlier = {4: {seed: dict.fromkeys(("x", "y", "z"), 0.6) for seed in (0, 1)}}
    halving = Halving(range(6), 3, earlier)
    found = fit_plans(graph, plans, Session(batch=4, leave=halving, device="cpu"), seeds=[0, 1])
    assert halving.behind
    assert joined  # while others went on
    assert len(found.runs) == 12
    for setting in range(6):  # a seed that joins after its setting was given up leaves at once
        assert max(run.epochs for run in found.runs if run.setting == setting) > 3
    stayed = min(set(range(6)) - halving.behind)
    alone = fit_plans(graph, [plans[stayed]], Session(device="cpu"), seeds=[0, 1])
    np.testing.assert_allclose(found.at(stayed).val, alone.val)
    assert [run.epochs for run in found.at(stayed).runs] == [run.epochs for run in alone.runs]


def test_a_batch_ends_within_an_epoch_when_time_is_over(graph, plans):
    asked = []
    halving = Halving(range(6), 3, over=lambda: asked.append(1) or len(asked) > 2)
    found = fit_plans(graph, plans, Session(batch=6, leave=halving, device="cpu"), seeds=[0])
    assert {run.epochs for run in found.runs} == {3}
    assert halving.cut == set(range(6))


def test_weights_that_are_kept_by_their_loss_stand_by_the_score_at_the_lowest_loss():
    curve = [(0.0, 1.0, 0.9), (0.0, 0.5, 0.6), (0.0, 0.7, 0.8)]
    for by_score, expected in ((True, 0.9), (False, 0.6)):
        halving = Halving("a", 2, by_score=by_score)
        halving([Run(0, epochs=3, curve=list(curve))])
        assert halving.noted(0) == {3: {0: expected}}
