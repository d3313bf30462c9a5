"""GCNIIClassifier on a graph and on rows."""

import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import gcnii
from gcnii.errors import GraphError, InputError
from gcnii.results.ensemble import Ensemble


def test_nodes_are_classified_by_their_ids(graph, classifier):
    ids, other = graph.nodes[:40], graph.nodes[40:]
    y = np.array(["no", "yes"])[graph.y]
    made = classifier(graph).fit(ids, y[:40])
    assert made.classes_.tolist() == ["no", "yes"]
    assert made.score(other, y[40:]) > 0.8
    assert set(made.predict(other)) == {"no", "yes"}
    assert made.predict_proba(other).shape == (40, 2)
    assert np.allclose(made.predict_proba(other).sum(1), 1)


def test_no_label_but_those_given_is_looked_at(graph, classifier):
    ids = graph.nodes[:40]
    wrong = replace(graph, y=np.where(np.arange(graph.n) < 40, graph.y, 1 - graph.y))
    blank = replace(graph, y=None, splits=())
    right, *others = (
        classifier(one).fit(ids, graph.y[:40]).predict_proba(graph.nodes)
        for one in (graph, wrong, blank)
    )
    assert np.array_equal(others, [right, right])


def test_it_trains_and_validates_on_the_given_ids_alone(graph, classifier):
    made = classifier(graph, validation=0.25).fit(graph.nodes[:40], graph.y[:40])
    split = made.graph_.splits[0]
    assert not (split.train | split.val)[40:].any()
    assert (split.train | split.val)[:40].all()
    assert split.val.sum() == pytest.approx(10, abs=1)
    assert (made.graph_.y[40:] == -1).all()


def test_without_y_the_labels_of_the_graph_are_used(graph, classifier):
    named = replace(graph, classes=("even", "odd"))
    made = classifier(named).fit(graph.nodes[:40])
    assert made.classes_.tolist() == ["even", "odd"]
    assert made.score(graph.nodes[40:]) > 0.8
    assert classifier(graph).fit(graph.nodes[:40]).classes_.tolist() == [0, 1]


def test_the_order_of_ids_is_the_order_of_answers(graph, classifier):
    made = classifier(graph).fit(graph.nodes[:40], graph.y[:40])
    there, back = made.predict_proba(["a70", "a3"]), made.predict_proba(["a3", "a70"])
    assert np.array_equal(there, back[::-1])
    assert not np.array_equal(there, back)


def test_an_id_may_come_twice_but_not_with_two_labels(graph, classifier):
    ids = [*graph.nodes[:20], "a0"]
    y = [*graph.y[:20], graph.y[0]]
    assert classifier(graph).fit(ids, y).graph_.labelled.sum() == 20
    with pytest.raises(InputError, match="node 'a0' is in X more than once, with different"):
        classifier(graph).fit(ids, [*graph.y[:20], 1 - graph.y[0]])


def test_rows_without_a_graph_are_classified_by_their_neighbours(rows, classifier):
    X, y = rows
    made = classifier(layers=4, width=16).fit(X[:60], y[:60])
    assert made.score(X[60:], y[60:]) > 0.8
    assert made.n_features_in_ == 4
    assert made.graph_.n == 60


def test_rows_may_be_sparse_or_a_frame(rows, classifier):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert classifier().fit(frame, y).feature_names_in_.tolist() == list("abcd")
    made = classifier().fit(sp.csr_array(X), y)
    assert made.predict_proba(sp.csr_array(X)).shape == (90, 3)


def test_rows_with_an_unknown_label_are_in_the_graph_but_not_trained_on(rows, classifier):
    X, y = rows
    known = np.arange(90) % 3 > 0
    partial = np.where(known, y, None)
    made = classifier().fit(X, partial)
    assert made.graph_.n == 90
    assert np.array_equal(made.graph_.labelled, known)
    assert made.classes_.tolist() == ["ant", "bee", "cat"]
    assert made.score(X, partial) == made.score(X[known], y[known])


def test_two_classes_may_be_called_minus_one_and_one(rows, classifier):
    X, y = rows
    signs = np.where(y == "ant", -1, 1)
    made = classifier().fit(X, signs)
    assert made.classes_.tolist() == [-1, 1]
    assert made.score(X, signs) == np.mean(made.predict(X) == signs)


def test_a_score_weighs_rows(rows, classifier):
    X, y = rows
    made = classifier(epochs=2).fit(X, y)
    right = made.predict(X) == y
    assert made.score(X, y, sample_weight=right + 0.5) > made.score(X, y)


def test_several_networks_are_averaged(rows, classifier):
    X, y = rows
    three = classifier(seeds=3, random_state=5).fit(X, y)
    assert [run.seed for run in three.result_.runs] == [5, 6, 7]
    joined = three._neighbours.joined(three.graph_, X)
    each = [three.result_.alone(i).predict_proba(joined)[90:] for i in range(3)]
    assert not np.allclose(each[0], each[1], atol=1e-3)
    mean = three.result_.target.tempered(np.mean(each, 0), three.result_.together)
    assert np.allclose(three.predict_proba(X), mean, atol=1e-5)


def test_the_random_state_decides_all(rows, classifier):
    X, y = rows

    def run(state):
        made = classifier(epochs=3, random_state=state).fit(X, y)
        return made.predict_proba(X).tobytes() + made.graph_.splits[0].val.tobytes()

    assert run(3) == run(np.int64(3)) != run(4)
    assert run(np.random.RandomState(3)) == run(np.random.RandomState(3)) != run(3)


def test_a_rare_class_can_be_weighed_and_decide_when_training_stops(rows, classifier):
    X, y = rows
    made = classifier(settings={"monitor": "val_auc", "class_weight": "balanced"}).fit(X, y)
    assert made.result_.metric == "ROC AUC"
    assert made.result_.plan.recipe.class_weight == "balanced"


def test_what_is_not_given_is_as_fit_chooses(graph):
    made = gcnii.GCNIIClassifier(graph, model="gcnii", epochs=1, validation=0.3)
    made.fit(graph.nodes[:40])
    expected = gcnii.fit(made.graph_, "gcnii", epochs=1, seeds=[0])
    assert made.result_.plan == expected.plan
    assert np.array_equal(made.result_.test, expected.test, equal_nan=True)
    assert made.result_.runs[0].val_loss == expected.runs[0].val_loss


@pytest.fixture(scope="module")
def combined(graph):
    """Of several models, trained on 40 nodes."""
    short = {"effort": "quick", "epochs": 5}
    return gcnii.GCNIIClassifier(graph, **short).fit(graph.nodes[:40], graph.y[:40])


def test_without_a_model_several_are_combined_as_fit_does(graph, combined):
    assert isinstance(combined.result_, Ensemble)
    expected = gcnii.fit(combined.graph_, effort="quick", epochs=5)
    P = expected.predict_proba(combined.graph_)
    assert np.array_equal(combined.predict_proba(graph.nodes), P)
    assert combined.score(graph.nodes[40:], graph.y[40:]) > 0.8
    assert combined.result_.embed(combined.graph_).shape[0] == graph.n


def test_each_given_id_is_held_out_of_several_models_once(graph, combined):
    assert combined.result_.folds == 3
    held = combined.result_.held_out(combined.graph_)
    assert np.array_equal(np.flatnonzero(held), np.arange(40))
    assert (combined.graph_.y[40:] == -1).all()


def test_with_a_model_or_its_settings_effort_and_budget_are_refused(graph, classifier):
    with pytest.raises(InputError, match="effort is for a portfolio; leave it out, or the model"):
        classifier(graph, effort="quick").fit(graph.nodes)
    with pytest.raises(InputError, match="budget is for a portfolio"):
        gcnii.GCNIIClassifier(graph, model="gcn", budget=5).fit(graph.nodes)
    with pytest.raises(InputError, match="effort must be quick, standard, best, got 'much'"):
        gcnii.GCNIIClassifier(graph, effort="much").fit(graph.nodes)
    with pytest.raises(InputError, match="the setting layers is for one model, and auto combines"):
        gcnii.GCNIIClassifier(graph, model="auto", layers=3).fit(graph.nodes)


def test_of_few_labels_several_models_hold_out_a_fifth(graph):
    few = gcnii.GCNIIClassifier(graph, effort="quick", epochs=3).fit(graph.nodes[:10])
    assert few.result_.folds == 0
    assert few.graph_.splits[0].val.sum() == 2


def test_seeds_of_several_models_train_every_fold(graph):
    given = {"effort": "quick", "epochs": 2, "random_state": 4, "seeds": 2}
    made = gcnii.GCNIIClassifier(graph, **given).fit(graph.nodes[:40])
    each = {(run.seed, run.split) for run in made.result_.members[0].runs}
    assert each == {(12, 0), (13, 1), (14, 2), (15, 0), (16, 1), (17, 2)}


def test_a_graph_of_the_catalog_has_the_settings_published_for_it(graph):
    cora = graph._with_origin("", "cora")
    made = gcnii.GCNIIClassifier(cora, epochs=1, device="cpu").fit(graph.nodes[:40])
    assert made.result_.plan.settings["layers"] == 64
    assert made.graph_.catalog_name == ""  # its labels are not the catalog's


def test_classes_metric_and_monitor_are_parameters(rows, classifier):
    X, y = rows
    words = {"class_weight": "balanced", "metric": "f1", "monitor": "val_score"}
    recipe = classifier(**words).fit(X, y).result_.plan.recipe
    assert {name: getattr(recipe, name) for name in words} == words
    with pytest.raises(InputError, match="metric is a parameter of its own; take it out of sett"):
        classifier(**words, settings={"metric": "f1"}).fit(X, y)


def test_weights_of_classes_decide_and_leave_the_probabilities(rows, classifier):
    X, y = rows
    plain = classifier(epochs=3).fit(X, y)
    made = classifier(epochs=3, class_weight={"bee": 1e9}).fit(X, y)
    assert set(made.predict(X)) == {"bee"}
    assert np.array_equal(made.predict_proba(X), plain.predict_proba(X))
    with pytest.raises(InputError, match="class_weight has 'cow', which is not among the labels"):
        classifier(class_weight={"cow": 2}).fit(X, y)
    with pytest.raises(InputError, match="class_weight must be a number > 0, got -1"):
        classifier(class_weight={"bee": -1}).fit(X, y)


def test_other_models_take_the_parameters_that_they_have(rows, classifier):
    X, y = rows
    made = classifier(model="gcn", settings={"norm": "walk"}).fit(X, y)
    assert "alpha" not in made.result_.plan.settings
    assert made.result_.plan.settings["norm"] == "walk"
    with pytest.raises(InputError, match="gcn has no setting 'alpha'"):
        classifier(model="gcn", alpha=0.3).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"seeds": 0}, "seeds must be an integer ≥ 1, got 0"),
        ({"neighbours": 0}, "neighbours must be an integer ≥ 1, got 0"),
        ({"validation": 1.0}, r"validation must be a number in \(0, 1\), got 1.0"),
        ({"layers": 0}, r"layers must be an integer in \[1, 100000\], got 0"),
        ({"settings": {"layers": 3}}, "layers is a parameter of its own"),
        ({"settings": [1]}, r"settings must be a dictionary, got \[1\]"),
        ({"class_weight": "heavy"}, "class_weight must be one of none, balanced, got 'heavy'"),
        ({"settings": {"nrom": "walk"}}, "no setting 'nrom'; did you mean 'norm'"),
        ({"model": "gncii"}, "no model 'gncii'; did you mean 'gcnii'"),
        ({"device": "tpu"}, "device must be auto, cpu or cuda"),
        ({"graph": "cora"}, "graph must be a gcnii.Graph or None, got str"),
    ],
)
def test_wrong_parameters_are_refused_by_fit_in_a_sentence(parameters, sentence, rows, classifier):
    with pytest.raises(InputError, match=sentence):
        classifier(**parameters).fit(*rows)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_rows_whose_distances_overflow_are_refused(kind, rows, classifier):
    X, y = rows
    far = X.copy()
    far[3, 2] = -1e300
    with pytest.raises(InputError, match=r"X must hold numbers up to 1e\+100, .* got 1e\+300; sc"):
        classifier().fit(kind(far), y)
    with pytest.raises(InputError, match="X has masked entries, which have no value; fill them"):
        classifier().fit(np.ma.masked_less(X, 0), y)


def test_wrong_input_is_refused_in_a_sentence(graph, rows, classifier):
    with pytest.raises(InputError, match="requires y to be passed"):
        classifier().fit(rows[0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier(graph).fit(graph.nodes, graph.y[:3])
    with pytest.raises(GraphError, match="one class; a classifier needs two"):
        classifier(graph).fit(graph.nodes[:3], [1, 1, 1])
    several = replace(graph, y=np.ones((80, 2)), splits=())
    with pytest.raises(InputError, match="can have several labels"):
        classifier(several).fit(graph.nodes)


def test_wrong_input_to_a_trained_classifier_is_refused_in_a_sentence(graph, rows, classifier):
    with pytest.raises(NotFittedError):
        classifier(graph).predict(graph.nodes)
    made = classifier(epochs=1).fit(*rows)
    with pytest.raises(InputError, match="nothing to score"):
        made.score(rows[0], [None] * 90)
    with pytest.raises(ValueError, match="4 features"):
        made.predict(rows[0][:, :3])


def test_a_training_that_failed_leaves_the_one_before(graph, classifier):
    made = classifier(graph).fit(graph.nodes[:40], graph.y[:40])
    before = made.predict_proba(graph.nodes)
    with pytest.raises(InputError):
        made.set_params(layers=0).fit(graph.nodes[:30], graph.y[:30])
    assert np.array_equal(made.predict_proba(graph.nodes), before)


@pytest.mark.usefixtures("listening")
def test_ctrl_c_stops_a_search_and_not_only_one_of_its_trainings(graph, classifier):
    made = classifier(graph, epochs=10**6, patience=10**6)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        made.fit(graph.nodes[:40], graph.y[:40])
    assert not hasattr(made, "result_")


def test_the_result_can_be_saved_and_opened(graph, classifier, tmp_path):
    made = classifier(graph).fit(graph.nodes[:40], np.array(["no", "yes"])[graph.y[:40]])
    opened = gcnii.open_bundle(made.result_.save(tmp_path / "bundle"))
    assert opened.origin.classes == ("no", "yes")
    assert np.allclose(opened.predict_proba(graph), made.predict_proba(graph.nodes), atol=1e-5)
