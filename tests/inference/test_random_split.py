"""What a random split of dated nodes flatters is what trainings on columns of splits differ by."""

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.command_line import call

import gcnii
from gcnii.inference import random_split
from gcnii.inference.random_split import Flattery, drawn_like, flattery
from gcnii.targets.interval import Estimate
from gcnii.targets.scores import CLASS_SCORES

SETTINGS = {"layers": 2, "epochs": 12}


@pytest.fixture(scope="module")
def tables():
    """Groups whose sizes mean the opposite in the end, and links to earlier nodes of the group."""
    random, n = np.random.default_rng(0), 240
    group, year = random.integers(0, 2, n), np.sort(random.integers(2000, 2020, n))
    drift = np.where(year < 2014, 1, -1) * (2 * group - 1)
    nodes = {"id": range(n), "size": random.normal(3 * drift), "year": year}
    city = np.where(year < 2012, "Rome", "Oslo")
    nodes = pd.DataFrame(nodes | {"city": city, "label": np.where(group, "a", "b")})
    cited = [random.choice(np.flatnonzero(group[:i] == group[i])) for i in range(20, n)]
    return nodes, pd.DataFrame({"source": range(20, n), "target": cited})


@pytest.fixture
def shortly(monkeypatch):
    monkeypatch.setattr(random_split, "SETTINGS", SETTINGS)


@pytest.fixture
def folder(tables, tmp_path):
    path = tmp_path / "papers"
    path.mkdir()
    for name, table in zip(("nodes", "edges"), tables, strict=True):
        table.to_csv(path / f"{name}.csv", index=False)
    return path


def column(split):
    return np.select([split.train, split.val, split.test], ["train", "val", "test"], "")


def test_the_difference_is_that_of_columns_of_splits_to_the_digit(tables, folder, shortly):
    nodes, edges = tables
    by_time = gcnii.from_frames(nodes, edges, time="year")
    undated = gcnii.from_frames(nodes, edges, drop="year")
    at_random = drawn_like(by_time, undated)
    by_hand = {
        "time": nodes.assign(split=column(by_time.splits[0])),
        "": nodes.assign(split=column(at_random.splits[0])).drop(columns="year"),
    }
    trained = [
        gcnii.fit(
            gcnii.from_frames(own, edges, **({"time": "year"} if name else {})),
            "gcnii",
            seeds=range(3),
            verbose=False,
            **SETTINGS,
        ).test.mean()
        for name, own in by_hand.items()
    ]
    out = call("data", "check", "papers", "--time", "year", "--json", cwd=folder.parent).out
    said = json.loads(out)["random split"]
    assert said["by_time"]["mean"] == trained[0]
    assert said["at_random"]["mean"] == trained[1]
    assert said["difference"]["mean"] == trained[1] - trained[0] > 0.2
    assert said["difference"]["low"] > 0


def test_check_says_the_difference_in_a_sentence(folder, shortly):
    out = call("data", "check", "papers", "--time", "year", cwd=folder.parent).out
    assert "A random split of these nodes flatters: accuracy 8" in out
    assert "by time: train up to 20" in out


def test_of_numbers_the_difference_is_of_r_squared(folder, shortly):
    nodes = pd.read_csv(folder / "nodes.csv")
    nodes["amount"] = (nodes["label"] == "a") * 5.0 + nodes["size"] / 10
    nodes.drop(columns="label").to_csv(folder / "nodes.csv", index=False)
    asked = ("data", "check", "papers", "--time", "year", "--target", "amount")
    out = call(*asked, cwd=folder.parent).out
    assert "A random split of these nodes flatters: R² 0." in out
    assert "numbers: amount" in out


def test_a_packed_graph_with_times_is_checked_without_that(folder, tmp_path):
    packed = tmp_path / "g.safetensors"
    call("data", "pack", "papers", packed, "--time", "year", cwd=folder.parent)
    answer = call("data", "check", packed, cwd=folder.parent)
    assert (answer.code, "by time: train up to 20" in answer.out) == (0, True)
    assert "what a random split flatters is measured on the tables that papers is" in answer.err


def test_a_random_split_has_the_sizes_of_the_one_by_time(tables):
    by_time = gcnii.from_frames(*tables, time="year")
    (own,), (drawn,) = by_time.splits, drawn_like(by_time, gcnii.from_frames(*tables)).splits
    for role in ("train", "val", "test"):
        assert getattr(own, role).sum() == getattr(drawn, role).sum()
        assert not np.array_equal(getattr(own, role), getattr(drawn, role))


@pytest.mark.parametrize(
    ("low", "high", "sentence"),
    [
        (
            0.01,
            0.03,
            "A random split of these nodes flatters: accuracy 90.0 against 88.0 by time, a"
            " difference of +2.0 [1.0, 3.0] (gcnii).",
        ),
        (-0.01, 0.03, "A random split makes no difference that these nodes could show: accuracy 9"),
        (-0.03, -0.01, "A random split of these nodes does not flatter: accuracy 90.0"),
    ],
)
def test_the_sentence_says_what_the_interval_does(low, high, sentence):
    gap = Estimate(0.02, low, high)
    found = Flattery(CLASS_SCORES[0], "accuracy", Estimate(0.9), Estimate(0.88), gap)
    assert found.sentence.startswith(sentence)


def test_without_times_there_is_nothing_to_measure(tables):
    graph = gcnii.from_frames(*tables)
    with pytest.raises(gcnii.InputError, match="can be measured with times and labels of test nod"):
        flattery(graph, graph)


def test_both_splits_are_judged_by_one_metric(tables, shortly):
    """By time, one class is rare among the nodes that are not tested; at random, it is not."""
    nodes, edges = tables
    label = np.where((nodes["year"] < 2016) & (nodes["id"] % 10 > 0), "usual", "rare")
    nodes = nodes.assign(label=label)
    undated = gcnii.from_frames(nodes, edges, drop="year")
    found = flattery(gcnii.from_frames(nodes, edges, time="year"), undated)
    assert found.measured == "average precision of class rare"


def test_check_hints_at_a_column_of_dates_and_trains_nothing(tables, tmp_path):
    nodes, edges = tables
    nodes.assign(day=pd.date_range("2020-01-01", periods=len(nodes))).to_csv(
        tmp_path / "nodes.csv", index=False
    )
    edges.to_csv(tmp_path / "edges.csv", index=False)
    said = call("data", "check", ".", "--json", cwd=tmp_path)
    assert (
        "'day' holds dates, and a random split of dated nodes can flatter; `gcnii data check"
        in said.err
    )
    assert "random split" not in json.loads(said.out)


@pytest.mark.slow
def test_pubmed_by_years_is_harder_than_at_random_by_what_splits_by_hand_differ_by(
    real_data, monkeypatch
):
    path = Path(os.environ.get("GCNII_MIRROR", "")) / "pubmed-temporal" / "node_time.npy"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    pubmed, years = dataclasses.replace(real_data("pubmed"), splits=()), np.load(path)
    monkeypatch.setattr(random_split, "SETTINGS", {"layers": 2, "epochs": 10})
    monkeypatch.setattr(random_split, "SEEDS", (0,))
    found = flattery(gcnii.split_by_time(dataclasses.replace(pubmed, times=years)), pubmed)
    train, val = years <= 37, (years > 37) & (years <= 40)
    by_hand = gcnii.Split(train=train, val=val, test=years > 40)
    order = np.random.default_rng(0).permutation(pubmed.n)
    roles = np.full(pubmed.n, "test", object)
    roles[order[: train.sum()]] = "train"
    roles[order[train.sum() : train.sum() + val.sum()]] = "val"
    at_random = dataclasses.replace(pubmed, splits=(gcnii.Split.of_roles(roles),))
    by_time = dataclasses.replace(pubmed, splits=(by_hand,), times=years)
    tests = [
        gcnii.fit(one, "gcnii", layers=2, epochs=10, seeds=[0], verbose=False).test[0]
        for one in (at_random, by_time)
    ]
    assert found.difference.mean == tests[0] - tests[1] > 0
