"""The class that ROC AUC and average precision are of: the named one, or the rarer of two."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from gcnii import Graph, Split, fit, open_bundle
from gcnii.errors import BundleError, GraphError, InputError
from gcnii.files import document_key
from gcnii.targets.objective import positive_class
from gcnii.train.recipe import Recipe, in_force

SMALL = {"layers": 2, "width": 8, "epochs": 20, "device": "cpu", "threads": 1}


def made(y, classes):
    """Nodes whose features hint at their class, in two splits."""
    random, n = np.random.default_rng(0), len(y)
    roles = np.array(["train", "val", "test"])
    return Graph(
        X=random.normal(size=(n, 4)) + 0.8 * y[:, None],
        edges=random.integers(0, n, (2, 2 * n)),
        y=y,
        splits=tuple(Split.of_roles(roles[(np.arange(n) + i) % 3]) for i in range(2)),
        classes=classes,
        name="payments",
    )


@pytest.fixture(scope="module")
def fraud():
    """The rarer of two classes is the first by the alphabet."""
    return made((np.arange(180) % 7 != 0).astype(int), ("fraud", "legit"))


@pytest.fixture(scope="module")
def three(fraud):
    return made(np.arange(180) // 3 % 3, ("a", "b", "c"))


@pytest.fixture(scope="module")
def result(fraud):
    return fit(fraud, seeds=[0], metric="ap", **SMALL)


def quietly(result, *args, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return result.evaluate(*args, baselines=False, **how)


def measured(result, graph, j, metric=average_precision_score):
    """Of class j, on the test nodes of split 0, as scikit-learn has it."""
    test = graph.splits[0].test
    P = result.predict_proba(graph, "cpu")[test]
    return metric(graph.labels[test] == j, P[:, j])


def test_average_precision_is_that_of_the_rarer_class_and_the_sentence_names_it(fraud, result):
    assert result.test[0] == pytest.approx(measured(result, fraud, 0))
    assert measured(result, fraud, 1) > result.test[0] + 0.1
    assert "test average precision of class fraud " in repr(result)
    found = quietly(result)
    assert found.scores["average_precision"].mean == pytest.approx(result.test[0])
    assert found.document()["positive"] == result.summary()["positive"] == "fraud"
    assert "average precision of class fraud" in str(found)
    assert repr(found).startswith("Evaluation(gcnii on payments: average precision of class fraud ")


def test_a_positive_class_that_is_named_is_what_training_maximises(fraud):
    named = fit(fraud, seeds=[0], monitor="val_ap", positive="legit", **SMALL)
    rarer = fit(fraud, seeds=[0], monitor="val_ap", **SMALL)
    assert named.test[0] == pytest.approx(measured(named, fraud, 1))
    assert named.runs[0].val == pytest.approx(max(val for *_, val in named.runs[0].curve))
    assert [one[2] for one in named.runs[0].curve] != [one[2] for one in rarer.runs[0].curve]


@pytest.mark.parametrize("metric", ["auc", "ap"])
def test_one_of_three_classes_is_ranked_alone_if_it_is_named(metric, three):
    result = fit(three, seeds=[0], metric=metric, positive="c", **SMALL)
    score = roc_auc_score if metric == "auc" else average_precision_score
    found = quietly(result)
    assert found.scores[found.metric].mean == pytest.approx(measured(result, three, 2, score))
    assert quietly(fit(three, seeds=[0], **SMALL)).positive is None


def test_evaluate_takes_another_class_than_the_training(fraud, result):
    found = quietly(result, positive="legit")
    expected = measured(result, fraud, 1)
    assert found.scores["average_precision"].mean == pytest.approx(expected)
    assert found.positive == "legit"
    with pytest.raises(InputError, match="positive must be a class of payments, got 'thief'"):
        result.evaluate(positive="thief")


def test_a_class_that_is_not_there_is_refused_before_training(fraud, three):
    sentence = "positive must be a class of payments, got 'frau'; did you mean 'fraud'. known: 'fr"
    with pytest.raises(InputError, match=sentence):
        fit(fraud, positive="frau", metric="ap", **SMALL)
    with pytest.raises(InputError, match=r"positive must be a name, got 1.5"):
        fit(fraud, positive=1.5, metric="ap", **SMALL)
    split = three.splits[0]
    blind = replace(three, splits=(replace(split, val=split.val & (three.labels != 2)),))
    with pytest.raises(GraphError, match="needs nodes with and without the label 'c', but all val"):
        fit(blind, metric="ap", positive="c", **SMALL)


def test_classes_without_names_are_named_by_their_numbers(fraud):
    bare = replace(fraud, classes=None)
    assert positive_class(bare, "1") == 1
    assert fit(bare, positive=1, metric="ap", **SMALL | {"epochs": 1}).positive_name == "1"
    assert positive_class(bare) == 0


def test_of_as_many_training_nodes_the_second_class_is_positive(fraud):
    assert positive_class(replace(fraud, y=(np.arange(180) // 2) % 2)) == 1


def test_a_bundle_keeps_the_class(fraud, result, tmp_path):
    opened = open_bundle(result.save(tmp_path / "bundle"))
    assert repr(opened) == repr(result)
    assert quietly(opened, fraud).document() == quietly(result).document()


def changed(folder, positive):
    """Give the record of a bundle another positive class; None: as if there had been no choice."""
    path = folder / "run.json"
    record = json.loads(path.read_text()) | {"positive": positive}
    del record["seal"]
    if positive is None:
        del record["positive"], record["settings"]["positive"]
    path.write_text(json.dumps(record | {"seal": document_key(record)}))


def test_a_bundle_from_before_there_was_a_choice_keeps_the_second_class(fraud, result, tmp_path):
    folder = result.save(tmp_path / "bundle")
    changed(folder, positive=None)
    assert quietly(open_bundle(folder), fraud).positive == "legit"
    plain = fit(fraud, seeds=[0], metric="accuracy", **SMALL).save(tmp_path / "plain")
    changed(plain, positive=None)
    assert quietly(open_bundle(plain), fraud).positive == "fraud"


def test_a_record_whose_class_is_not_there_is_refused(result, tmp_path):
    folder = result.save(tmp_path / "bundle")
    changed(folder, positive="thief")
    with pytest.raises(BundleError, match=r"positive must be one of graph.classes, got 'thief'"):
        open_bundle(folder)


def test_a_training_without_a_named_class_keeps_its_key():
    assert "positive" not in in_force(vars(Recipe(metric="ap")))
    assert in_force(vars(Recipe(metric="ap", positive="a")))["positive"] == "a"
