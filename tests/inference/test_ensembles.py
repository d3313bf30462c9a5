"""An ensemble that was opened answers as one that was just trained, and as a single model does."""

from math import inf

import numpy as np
import pandas as pd
import pytest

from gcnii import InputError
from gcnii.inference.predict import label_table

NODES = pd.DataFrame(np.zeros((2, 4)), columns=list("0123")).assign(id=["new0", "new1"])
EDGES = pd.DataFrame({"source": ["new0", "3", "new0"], "target": ["5", "new1", "new1"]})


def test_new_nodes_are_answered_with_the_labels_of_the_training(ensemble, opened, own):
    fresh = ensemble.predict_new(NODES, EDGES, own, coverage=0.8)
    again = opened.predict_new(NODES, EDGES, own, coverage=0.8)
    pd.testing.assert_frame_equal(fresh, again)


def test_who_validates_one_fold_and_trains_the_others_is_a_training_node(opened, own):
    split, roles = own.splits[0], label_table(opened, own)["split"].to_numpy()
    assert (roles[split.test] == "test").all()
    known = split.train | split.val
    runs = len(opened.blends[0].rows)
    expected = {"train"} if runs > 1 else {"train", "val"}
    assert set(roles[known]) == expected


def test_the_sets_rest_on_the_nodes_of_all_folds(opened, own):
    count = int(opened.held_out(own).sum())
    assert count == sum(own.splits[0].val) or len(opened.blends[0].rows) > 1
    most = 1 - 1 / (count // 2 + 1)
    assert opened.predict_sets(own, most - 1e-6).shape == (own.n, 2)
    with pytest.raises(InputError, match="validation nodes or more"):
        opened.predict_sets(own, min(most + 0.01, np.nextafter(1, -inf)))


@pytest.mark.parametrize("together", [True, False])
def test_the_table_has_a_row_for_each_node(opened, own, together):
    table = label_table(opened, own, ensemble=together, coverage=0.8)
    assert len(table) == own.n
    np.testing.assert_allclose(table[["p(cat)", "p(dog)"]].sum(axis=1), 1, atol=1e-5)


def test_a_single_model_has_no_members(result):
    with pytest.raises(InputError, match="this is one model, gcnii, 2 layers, without members"):
        result.member("trees")


def test_a_member_of_an_opened_ensemble_is_measured_on_the_graph_of_its_training(opened, own):
    name = opened.members[0].name
    alone = opened.knowing(own).member(name)
    assert alone.model == name
    evaluation = alone.evaluate(own, baselines=False)
    assert evaluation.scores["accuracy"].mean == pytest.approx(alone.test[0])


def test_an_embedding_has_a_row_for_each_node(opened, own):
    assert len(opened.embed(own)) == own.n
