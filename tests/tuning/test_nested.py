"""Of several splits each chooses by its own validation nodes: they are test nodes in others."""

from dataclasses import replace

import numpy as np
import pytest
from support.small_studies import QUICK, few_runs

import gcnii
from gcnii.graph import Split
from gcnii.results.ensemble import Ensemble
from gcnii.train.stopping import Run
from gcnii.tuning.proposals import new_shape, propose, sampler_of
from gcnii.tuning.question import Question
from gcnii.tuning.trials import Trial, best_on, joining
from gcnii.tuning.worker import Halving

SPLITS, TRIALS = 3, 8


@pytest.fixture(scope="module")
def graph():
    """Every node is a test node of one split."""
    one = gcnii.load("csbm", n=90, seed=1)
    roles = np.resize(["train", "val", "test"], one.n)
    splits = tuple(Split.of_roles(list(np.roll(roles, shift))) for shift in range(SPLITS))
    return replace(one, splits=splits)


def tuned(graph):
    how = {**QUICK, "seeds": SPLITS, "layers": 2}
    with few_runs():
        return gcnii.tune(graph, trials=TRIALS, models=["gcn"], **how)


@pytest.fixture(scope="module")
def closed(graph):
    return tuned(graph)


def test_the_result_is_an_ensemble_that_is_tested_on_every_split(closed):
    assert isinstance(closed.result, Ensemble)
    assert [run.split for run in closed.result.runs] == [0, 1, 2]
    assert closed.notes[0].startswith("Nested selection: settings were drawn without regard to sco")
    assert closed.document()["nested"] is True


def test_what_train_would_train_and_the_baselines_are_trained_first(closed):
    members = {one.member for one in closed.trials if one.member}
    assert members == {"default", "mlp", "gcn"}
    assert closed.verdict.endswith("mlp, the best member without it.")


def test_labels_of_test_nodes_have_no_part_in_what_their_split_chooses(graph, closed):
    """The labels of the test nodes of split 0 are others: they train and validate splits 1, 2."""
    y = graph.labels.copy()
    tested = np.flatnonzero(graph.splits[0].test)
    y[tested] = np.random.default_rng(0).permutation(y[tested])
    assert (y != graph.labels).sum() > 10
    other = tuned(replace(graph, y=y))
    assert weights_on(other.result, 0) == weights_on(closed.result, 0)
    np.testing.assert_array_equal(answers_on(other.result, 0), answers_on(closed.result, 0))
    assert not np.array_equal(answers_on(other.result, 1), answers_on(closed.result, 1))


def weights_on(ensemble, split):
    pairs = zip(ensemble.members, ensemble.blends[split].weights, strict=True)
    return {member.name: weight for member, weight in pairs if weight}


def answers_on(ensemble, split):
    return ensemble.scored(ensemble.trained_on, "cpu").kept.each[split]


def test_what_one_split_found_has_no_weight_on_another(graph, closed):
    found = [one for one in closed.trials if not one.member]
    for split in range(SPLITS):
        own = {f"trial-{one.number}" for one in best_on(found, split, SPLITS)}
        used = {name for name in weights_on(closed.result, split) if name.startswith("trial-")}
        assert used <= own


def test_a_proposal_is_the_same_whatever_the_scores_are(graph):
    optuna = pytest.importorskip("optuna")
    question = Question.of(graph, ["gcn"])

    def proposed(score):
        study = optuna.create_study(direction="maximize", sampler=sampler_of(question))
        found = []
        for number in range(30):
            trial = study.ask()
            study.sampler.shape = new_shape(question, study.sampler, trial)
            found.append(propose(question, trial).plan.settings)
            study.tell(trial, score(number))
        return found

    assert proposed(lambda number: number) == proposed(lambda number: -number)


def trial(number, *val):
    return Trial(number, "gcn", {}, val, (1.0,) * len(val), (4,) * len(val), 0.1, 1.0, "complete")


def test_the_best_of_every_split_join_and_then_the_second_best():
    some = [trial(0, 0.9, 0.1), trial(1, 0.1, 0.8), trial(2, 0.5, 0.2), trial(3, 0.2, 0.7)]
    assert [one.number for one in best_on(some, 1, 2)] == [1, 3]
    assert [one.number for one in joining(some, (), 2)] == [0, 1, 2, 3]
    assert [one.number for one in joining(some, {1}, 2)] == [0, 2, 3]


def test_a_run_is_given_up_by_what_others_have_on_its_own_split():
    earlier = {5: {0: dict.fromkeys(range(4), 0.5), 1: dict.fromkeys(range(4), 0.9)}}
    halving = Halving(["mine"], 4, earlier, apart=True)
    curve = [(1.0, 1.0, 0.7)] * 5
    runs = [Run(seed=s, split=s, curve=curve, epochs=5) for s in (0, 1)]
    assert halving(runs) == [runs[1]]
    assert not halving.behind
