"""The search sees no test node and no label of one; the final training has fresh seeds."""

from dataclasses import replace

import numpy as np
import pytest
from support import knobs
from support.small_studies import QUICK, settings_tried

import gcnii
from gcnii.data import neighbourhood
from gcnii.errors import GraphError, InputError
from gcnii.graph import Graph, Split
from gcnii.graph.columns import Column, Columns, Table
from gcnii.targets.objective import Objective
from gcnii.train.plan import auto_scale
from gcnii.tuning.question import BASELINES, ENOUGH, SEARCHED, Question


def halves(n, train, val, seed=0):
    """A split of so many nodes, the rest for testing."""
    order = np.random.default_rng(seed).permutation(n)
    roles = np.full(n, "test ", dtype=object)
    roles[order[:train]], roles[order[train : train + val]] = "train", "val"
    return Split.of_roles([role.strip() for role in roles])


def test_the_baselines_are_always_among_the_models(graph):
    assert Question.of(graph).models == SEARCHED
    assert Question.of(graph, models=("gcnii",)).models == ("gcnii", *BASELINES)
    assert Question.of(graph, models=("gcn", "gcn")).models == ("gcn", "mlp")


def test_models_without_types_of_edges_are_searched_only_where_edges_are_of_one(graph):
    typed = replace(graph, edge_types=np.arange(graph.edges.shape[1]) % 2)
    question = Question.of(typed)
    assert set(SEARCHED) - set(question.models) == {"dropedge-gcn"}
    assert question.free
    assert question.trains_portfolio == Question.of(graph).trains_portfolio
    with pytest.raises(InputError, match="in dropedge-gcn, edges have no types"):
        Question.of(typed, models=SEARCHED)


def test_the_hidden_graph_has_no_test_node_and_no_label_of_one(graph):
    hidden, test = Question.of(graph).hidden, graph.splits[0].test
    assert not any(split.test.any() for split in hidden.splits)
    assert (hidden.labels[test] == -1).all()
    assert (hidden.labels[~test] == graph.labels[~test]).all()
    assert hidden.k == graph.k
    for split in hidden.splits:
        assert not ((split.train | split.val) & test).any()


def test_the_hidden_graph_of_the_catalog_has_its_published_neighbours(real_data):
    texas = real_data("texas")
    hidden = Question.of(texas, ["geom-gcn-p"]).hidden
    found, whole = (neighbourhood(one, "poincare", offline=True) for one in (hidden, texas))
    assert np.array_equal(found.edges, whole.edges)


def test_features_of_a_table_are_scaled_in_a_search_as_in_a_training(graph):
    columns = Columns(tuple(Column(f"x{i}", "numeric", median=0.0) for i in range(graph.d)))
    mine = graph._with_table(Table(graph.n, {}), columns)
    hidden = Question.of(mine).hidden
    assert hidden.columns == columns
    assert auto_scale(hidden) == auto_scale(mine) == "standard"


def test_a_node_that_is_tested_in_some_splits_alone_keeps_its_label(graph):
    splits = tuple(halves(graph.n, 20, 20, seed) for seed in range(3))
    hidden = Question.of(replace(graph, splits=splits)).hidden
    always = np.all([split.test for split in splits], axis=0)
    assert 0 < always.sum() < 20
    assert ((hidden.labels == -1) == always).all()
    assert not any(split.test.any() for split in hidden.splits)
    for mine, own in zip(hidden.splits, splits, strict=True):
        assert (mine.train == own.train).all()
        assert (mine.val == own.val).all()


def test_a_class_that_only_test_nodes_have_is_counted(graph):
    y = graph.labels.copy()
    y[np.flatnonzero(graph.splits[0].test)[:5]] = 2
    question = Question.of(replace(graph, y=y))
    assert (question.graph.k, question.hidden.k) == (3, 3)
    assert question.plan("gcn", {}).build(graph.d, question.hidden.k)


def test_of_several_labels_per_node_those_of_test_nodes_are_hidden(graph):
    y = np.random.default_rng(0).integers(2, size=(graph.n, 3))
    question = Question.of(replace(graph, y=y))
    test = graph.splits[0].test
    assert question.measured == "micro-F1"
    assert (question.hidden.labels[test] == -1).all()
    assert (question.hidden.labels[~test] == y[~test]).all()
    assert question.divided_anew


@pytest.fixture(scope="module")
def shuffled(graph):
    """The graph with the labels of its test nodes exchanged among each other."""
    y, test = graph.labels.copy(), np.flatnonzero(graph.splits[0].test)
    y[test] = np.random.default_rng(1).permutation(y[test])
    assert (y != graph.labels).any()
    return replace(graph, y=y)


def test_other_test_labels_change_no_trial_and_no_winner(graph, shuffled, monkeypatch):
    monkeypatch.setattr("gcnii.tuning.question.GOOD", ())  # so that most proposals are drawn
    how = {"trials": 8, "models": ["gcn"], "layers": 2, **QUICK}
    one, other = (gcnii.tune(each, **how) for each in (graph, shuffled))
    assert settings_tried(one.trials) == settings_tried(other.trials)
    assert (one.model, one.settings) == (other.model, other.settings)
    assert one.result.val.tolist() == other.result.val.tolist()
    assert one.result.test.tolist() != other.result.test.tolist()


def test_no_test_label_is_graded_before_the_study_is_closed(graph, monkeypatch):
    seen, score = [], Objective.score
    monkeypatch.setattr(
        Objective,
        "score",
        lambda self, scores, role: (
            seen.append((role, bool(self.masks[role].any()))) or score(self, scores, role)
        ),
    )
    monkeypatch.setattr(knobs.CLOSE, lambda *_: None)
    with pytest.raises(AttributeError):  # there is nothing to save
        gcnii.tune(graph, trials=3, layers=2, **QUICK)
    assert ("val", True) in seen
    assert ("test", True) not in seen


def test_few_validation_nodes_are_divided_anew_for_every_seed(graph):
    question = Question.of(graph)
    train, test = graph.splits[0].train, graph.splits[0].test
    splits = question.hidden.splits
    assert question.divided_anew
    assert len(splits) == question.seeds == 10  # 10 · 18 nodes are still fewer than SURE
    assert len({split.train.tobytes() for split in splits}) == question.seeds
    for split in splits:
        counts = np.bincount(graph.labels[split.train])
        assert (counts == np.bincount(graph.labels[train])).all()
        assert ((split.train | split.val) == ~test).all()


def test_a_class_without_training_nodes_stays_without(graph):
    y = graph.labels.copy()
    y[np.flatnonzero(graph.splits[0].val)[0]] = 2
    for split in Question.of(replace(graph, y=y)).hidden.splits:
        assert not (y[split.train] == 2).any()
        assert (y[split.val] == 2).sum() == 1


@pytest.mark.parametrize(("val", "seeds"), [(ENOUGH, 3), (ENOUGH - 1, 4), (300, 5), (30, 10)])
def test_there_are_more_seeds_where_there_are_fewer_validation_nodes(val, seeds):
    n = 700
    y = np.arange(n) % 2
    graph = Graph(X=np.eye(n, 4), edges=np.zeros((2, 0), int), y=y, splits=(halves(n, 100, val),))
    question = Question.of(graph)
    assert question.seeds == seeds
    assert question.divided_anew == (val < ENOUGH)


def test_several_splits_are_searched_as_they_are(graph):
    splits = tuple(halves(graph.n, 20, 20, seed) for seed in range(4))
    question = Question.of(replace(graph, splits=splits))
    assert not question.divided_anew
    assert question.seeds == 4  # one on each


def test_of_several_splits_every_one_has_a_seed(graph):
    splits = tuple(halves(graph.n, 20, 20, seed) for seed in range(4))
    with pytest.warns(UserWarning, match="each of the 4 splits chooses for itself: 4 seeds, not 2"):
        assert Question.of(replace(graph, splits=splits), seeds=2).seeds == 4
    assert Question.of(replace(graph, splits=splits[:2])).seeds == 4


def test_the_same_question_has_the_same_study_and_another_one_another(graph, shuffled):
    name = Question.of(graph).name
    assert Question.of(graph).name == name
    assert Question.of(shuffled).name == name  # what is searched does not know of test labels
    assert Question.of(graph, seeds=2).name != name
    assert Question.of(graph, metric="f1").name != name
    assert Question.of(graph, models=("gcn",)).name != name
    assert Question.of(graph, fixed={"epochs": 5}).name != name
    assert Question.of(replace(graph, y=1 - graph.labels)).name != name


def test_numbers_of_numpy_are_given_as_any_others(graph):
    question = Question.of(graph, fixed={"epochs": np.int64(5), "lr": np.float32(0.5)})
    assert question.name == Question.of(graph, fixed={"epochs": 5, "lr": 0.5}).name


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            {"models": ("gcni",)},
            "no model 'gcni'; did you mean 'gcnii'? `gcnii models`",
        ),
        (
            {"metric": "acuracy"},
            "metric must be one of auto, accuracy, f1, auc, ap, r2, mae, ",
        ),
        ({"seeds": 501}, "seeds must be at most 500 per setting, got 501"),
        ({"fixed": {"epochs": 0}}, "epochs must be an integer ≥ 1, got 0"),
        ({"fixed": {"alpha": [0.1, 0.2]}}, "alpha must be a number in [0, 1], got [0.1, 0.2]"),
        (
            {"fixed": {"layer": 2}},
            "none of gcnii-plus, gcnii-star, gcn, dropedge-gcn, graphsage-mean, mlp has a setting "
            "'layer'; did you mean 'layers'?",
        ),
        (
            {"fixed": {"alpha": 0.5}, "models": ("gcn",)},
            "none of gcn, mlp has a setting 'alpha'; known: batch_size, ",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(graph, words, sentence):
    with pytest.raises(InputError) as refused:
        Question.of(graph, **words)
    assert str(refused.value).startswith(sentence)


def test_a_ranking_of_validation_nodes_that_are_all_alike_is_refused_before_a_search(graph):
    y, val = graph.labels.copy(), graph.splits[0].val
    y[val] = 0
    with pytest.raises(GraphError, match="ROC AUC needs nodes with and without a label, but all"):
        Question.of(replace(graph, y=y), metric="auc")


def test_a_search_on_a_graph_with_times_keeps_its_split():
    graph = replace(gcnii.load("csbm", n=60), splits=(), times=range(60))
    question = Question.of(gcnii.split_by_time(graph), ("gcnii",))
    assert not question.divided_anew
    assert question.hidden.splits[0].val.sum() == 12 < ENOUGH
