"""Nested selection beside our records: each split chooses by its own validation nodes."""

import json
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

import gcnii
from gcnii.errors import GcniiError
from gcnii.graph import Split
from gcnii_paper import nested


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    one = gcnii.load("csbm", n=90, seed=1)
    roles = np.resize(["train", "val", "test"], one.n)
    splits = tuple(Split.of_roles(list(np.roll(roles, shift))) for shift in range(3))
    many, folder = replace(one, splits=splits), tmp_path_factory.mktemp("nested")
    tune = gcnii.tune

    def small(graph, budget, device):
        how = {"epochs": 8, "patience": 3, "layers": 2, "device": "cpu", "threads": 1}
        return tune(graph, trials=6, models=["gcn"], seeds=3, **how)

    with mock.patch("gcnii.load", return_value=many), mock.patch("gcnii.tune", small):
        nested.main("csbm", out=folder)
    return json.loads((folder / "csbm.json").read_text())


def test_every_split_has_the_score_of_the_network_that_was_best_on_its_validation(written):
    assert [row["split"] for row in written["splits"]] == [0, 1, 2]
    assert written["test_mean"] == pytest.approx(
        np.mean([row["test"] for row in written["splits"]])
    )
    assert all(0 <= row["val"] <= 1 and row["settings"]["epochs"] == 8 for row in written["splits"])
    own = [row["settings"]["layers"] for row in written["splits"] if row["model"] == "gcn"]
    assert set(own) == {2}
    assert len(written["ensemble"]) == 3


def test_it_says_how_many_settings_were_tried_and_by_which_command(written):
    assert written["settings_tried"] == 6
    assert written["command"] == "python -m gcnii_paper.nested csbm --budget 60s"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nosuch", "no data set 'nosuch'; `gcnii data list` lists them all"),
        ("digits", "nested selection needs several splits, and digits has one"),
    ],
)
def test_what_cannot_be_chosen_split_by_split_is_refused_in_a_sentence(name, sentence, tmp_path):
    with pytest.raises(GcniiError, match=sentence):
        nested.main(name, out=tmp_path)
    assert not any(tmp_path.iterdir())
