"""A bundle: safe files that open anywhere and give the same answers."""

import json

import numpy as np
import pytest
from support.fitting import fitting

from gcnii import data
from gcnii.errors import BundleError, GraphError
from gcnii.graph import Graph
from gcnii.nn import MODELS
from gcnii.train.fit import fit
from gcnii.train.results.result import open_bundle

SMALL = {"layers": 2, "width": 8, "epochs": 3, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    return data.load("csbm", n=60, degree=6, labels_per_class=5)


@pytest.fixture
def bundle(graph, tmp_path):
    return fit(graph, seeds=range(2), **SMALL).save(tmp_path / "bundle")


@pytest.mark.parametrize("model", MODELS)
def test_save_open_and_predict_give_the_same(model, graph, tmp_path):
    result = fit(graph, model, seeds=range(2), **fitting(model, SMALL))
    opened = open_bundle(result.save(tmp_path))
    assert np.array_equal(opened.predict(graph, "cpu"), result.predict(graph, "cpu"))
    assert np.array_equal(opened.predict_proba(graph, "cpu"), result.predict_proba(graph, "cpu"))
    assert np.array_equal(opened.embed(graph, "cpu"), result.embed(graph, "cpu"))
    assert len(opened.embed(graph, "cpu")) == 60
    assert opened.summary() == result.summary()


def test_probabilities_sum_to_one(graph, bundle):
    np.testing.assert_allclose(open_bundle(bundle).predict_proba(graph, "cpu").sum(1), 1, rtol=1e-5)


def test_the_run_with_the_best_validation_predicts(graph, bundle):
    opened = open_bundle(bundle)
    assert opened.best == int(np.argmin([run.val_loss for run in opened.runs]))


def test_a_bundle_says_what_was_trained_on_what_with_which_versions(graph, bundle):
    record = json.loads((bundle / "run.json").read_text())
    assert record["settings"]["layers"] == 2
    assert record["graph"]["fingerprint"] == graph.fingerprint
    assert set(record["versions"]) == {"gcnii", "torch", "python"}


def test_a_bundle_holds_the_training_curves(bundle):
    lines = (bundle / "curves.csv").read_text().splitlines()
    assert lines[0] == "seed,epoch,train_loss,val_loss,val"
    assert len(lines) == 1 + 2 * 3


def test_a_graph_with_other_features_is_refused(graph, bundle):
    other = Graph(X=np.ones((4, 5)), edges=[[0], [1]], name="other")
    with pytest.raises(
        GraphError, match="the model was trained on 16 features per node, but other has 5"
    ):
        open_bundle(bundle).predict(other)


def test_a_graph_of_another_size_is_labelled(graph, bundle):
    other = Graph(X=np.ones((4, 16)), edges=[[0], [1]])
    assert open_bundle(bundle).predict(other, "cpu").shape == (4,)


def test_a_saved_bundle_is_replaced_whole(graph, bundle):
    again = fit(graph, seeds=[7], **SMALL)
    again.save(bundle)
    assert [run.seed for run in open_bundle(bundle).runs] == [7]
    assert sorted(path.name for path in bundle.iterdir()) == [
        "curves.csv",
        "model.safetensors",
        "run.json",
    ]


def damage(bundle, name, change):
    path = bundle / name
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("run.json", lambda text: text[:50], "run.json cannot be read"),
        (
            "run.json",
            lambda text: text.replace(b'"format": 1', b'"format": 9'),
            "has bundle format 9, this gcnii reads",
        ),
        (
            "run.json",
            lambda text: text.replace(b'"gcnii",', b'"nothing",', 1),
            "is not a bundle's record: no model",
        ),
        ("run.json", lambda text: b"[]", "has bundle format None"),
        (
            "model.safetensors",
            lambda bytes_: bytes_[:-1] + b"x",
            "is not the file that run.json was written with",
        ),
    ],
)
def test_what_is_no_whole_bundle_is_refused(bundle, name, change, sentence):
    damage(bundle, name, change)
    with pytest.raises(BundleError, match=sentence):
        open_bundle(bundle)


def test_a_folder_without_a_bundle_is_refused(tmp_path):
    with pytest.raises(
        BundleError, match=r"holds no run\.json; give the folder that `gcnii train` wrote"
    ):
        open_bundle(tmp_path)
