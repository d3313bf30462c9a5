"""Folders of the Open Graph Benchmark."""

import gzip

import numpy as np
import pytest

from gcnii.data import load
from gcnii.errors import DataError

FILES = {
    "raw/edge.csv.gz": "0,1\n1,2\n2,0\n3,4\n4,5\n1,0\n",
    "raw/node-feat.csv.gz": "".join(f"{i / 2},{-i}.25e1\n" for i in range(6)),
    "raw/node-label.csv.gz": "4\n4\n4\n0\n0\n0\n",
    "raw/num-node-list.csv.gz": "6\n",
    "raw/num-edge-list.csv.gz": "6\n",
    "raw/node_year.csv.gz": "1999\n" * 6,
    "split/time/train.csv.gz": "0\n3\n",
    "split/time/valid.csv.gz": "1\n",
    "split/time/test.csv.gz": "4\n5\n",
}


@pytest.fixture
def write(tmp_path):
    """`write({path: text or None})` → the folder, with these changes."""

    def files(changes=None):
        folder = tmp_path / "ogbn_tiny"
        for name, text in (FILES | (changes or {})).items():
            path = folder / name
            if text is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                content = text if isinstance(text, bytes) else gzip.compress(text.encode())
                path.write_bytes(content)
        return folder

    return files


def test_a_folder_is_a_graph_with_its_split(write):
    graph = load(write())
    assert (graph.name, graph.n, graph.m, graph.directed) == ("ogbn_tiny", 6, 5, False)
    assert graph.X[2].tolist() == [1, -22.5]
    assert (graph.y.tolist(), graph.classes) == ([1, 1, 1, 0, 0, 0], ("0", "4"))
    (split,) = graph.splits
    roles = [np.flatnonzero(mask).tolist() for mask in (split.train, split.val, split.test)]
    assert roles == [[0, 3], [1], [4, 5]]


def test_the_raw_folder_is_the_same_graph(write):
    folder = write()
    assert load(folder / "raw").fingerprint == load(folder).fingerprint
    assert load(folder / "raw").name == "ogbn_tiny"


def test_an_option_says_that_edges_are_one_way(write):
    graph = load(write(), directed=True)
    assert (graph.directed, graph.m) == (True, 6)


def test_one_of_several_splits_is_chosen_by_name(write):
    other = {f"split/random/{name}.csv.gz": f"{i}\n" for i, name in enumerate(("train", "valid"))}
    folder = write(other | {"split/random/test.csv.gz": "2\n"})
    with pytest.raises(DataError, match="several splits; choose one: split='random' or 'time'"):
        load(folder)
    assert load(folder, split="random").splits[0].test.tolist() == [0, 0, 1, 0, 0, 0]
    with pytest.raises(DataError, match="no split 'tyme'; it has 'random', 'time'"):
        load(folder, split="tyme")


def test_without_a_split_each_class_is_split_by_the_seed(write):
    none = {name: None for name in FILES if name.startswith("split")}
    assert load(write(none)).splits[0].train.sum() == 4


def test_unknown_and_several_labels(write):
    some = {"raw/node-label.csv.gz": "1\n0\nnan\n1\n0\n1\n"}
    assert load(write(some)).y.tolist() == [1, 0, -1, 1, 0, 1]
    several = {"raw/node-label.csv.gz": "1,1\n0,1\n0,0\n1,0\n1,1\n0,0\n"}
    assert load(write(several)).multilabel


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("raw/node-feat.csv.gz", None, "has no node-feat.csv.gz; a graph is"),
        (
            "raw/num-node-list.csv.gz",
            "3\n3\n",
            r"must hold one number, for one graph, got \[3, 3\]",
        ),
        ("raw/num-node-list.csv.gz", "-6\n", "must hold one number"),
        ("raw/num-node-list.csv.gz", "7\n", r"node-feat\.csv\.gz must have 7 rows.* has 6"),
        ("raw/num-node-list.csv.gz", "1000000000000\n", "must have 1000000000000 rows"),
        ("raw/num-edge-list.csv.gz", "7\n", r"edge\.csv\.gz must have 7 rows.* has 6"),
        ("raw/edge.csv.gz", "0,1\n" * 5 + "0,6\n", "names nodes from 0 to 6, but there are 0 to 5"),
        ("raw/edge.csv.gz", "0,1\n" * 5 + "0,-1\n", "names nodes from -1 to 1"),
        ("raw/edge.csv.gz", "0,1,2\n" * 6, "must have 2 columns, got 3"),
        ("raw/edge.csv.gz", "a,b\n" * 6, r"edge\.csv\.gz is not a compressed table of numbers"),
        ("raw/edge.csv.gz", "0,1\n0,1,2\n", "not a compressed table of numbers"),
        ("raw/edge.csv.gz", b"0,1\n" * 6, "not a compressed table of numbers"),
        (
            "raw/edge.csv.gz",
            gzip.compress(b"0,1\n" * 6, mtime=0)[:-9],
            "not a compressed table of numbers",
        ),
        ("raw/edge.csv.gz", "", r"must have 6 rows"),
        ("raw/node-feat.csv.gz", "1\n2\nnan\n4\n5\n6\n", "X must be finite, .* in row 2"),
        ("raw/node-feat.csv.gz", "1\n2\ninf\n4\n5\n6\n", "X must be finite"),
        ("raw/node-label.csv.gz", "1\n2\n3.5\n4\n5\n6\n", "whole numbers, one per class, got 3.5"),
        ("raw/node-label.csv.gz", "1\n" * 6 + "2\n", "must have 6 rows"),
        ("split/time/train.csv.gz", "-1\n", r"train\.csv\.gz names nodes from -1 to -1"),
        ("split/time/train.csv.gz", "99\n", r"train\.csv\.gz names nodes from 99 to 99"),
        ("split/time/valid.csv.gz", "0\n", "train and val overlap"),
        ("split/time/valid.csv.gz", "", "a single known label, which leaves none to validate on"),
        ("split/time/test.csv.gz", None, "has no test.csv.gz"),
        ("raw/relations/cites.csv", "0", "several types of nodes"),
    ],
)
def test_a_wrong_file_is_one_sentence(write, name, content, sentence):
    with pytest.raises(DataError, match=sentence):
        load(write({name: content}))
