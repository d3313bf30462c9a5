"""Types of edges on graphs of the HGB benchmark, and what is said of their gain."""

import json
import zipfile

import numpy as np
import pytest

from gcnii.files import write_document
from gcnii_paper import hgb

ABOUT = '{"link.dat": {"link type": {"0": {"meaning": "writes"}, "1": {"meaning": "written"}}}}'
TABLES = {
    "node.dat": "0\ta\t0\t1,0\n1\tb\t0\t0,1\n2\tc\t1\n3\td\t0\t1,1\n4\te\t1\n5\tf\t0\t0,0\n",
    "link.dat": "0\t2\t0\t1\n2\t0\t1\t1\n1\t4\t0\t1\n4\t1\t1\t1\n3\t4\t0\t1\n4\t3\t1\t1\n",
    "label.dat": "0\ta\t0\t1\n1\tb\t0\t0\n5\tf\t0\t1\n",
    "label.dat.test": "3\td\t0\t0\n",
    "info.dat": ABOUT,
}


def archive(path, **changed):
    with zipfile.ZipFile(path, "w") as file:
        for name, text in (TABLES | changed).items():
            file.writestr(f"{path.stem}/{name}", text)
    return path


def test_links_keep_their_types_and_nodes_of_a_type_their_columns(tmp_path):
    graph = hgb.hgb_graph(archive(tmp_path / "ACM.zip"), seeds=2)
    assert graph.edge_type_names == ("writes", "written")
    assert graph.edge_types.tolist() == [0, 1, 0, 1, 0, 1]
    assert graph.y.tolist() == [1, 0, -1, 0, -1, 1]
    # A one and two columns of the first type, then a one of the second, which has no columns.
    X = [[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
    assert graph.X.toarray().tolist() == X
    assert len(graph.splits) == 2
    for split in graph.splits:
        assert split.test.nonzero()[0].tolist() == [3]
        assert not (split.train & split.val).any()


def test_several_labels_of_a_node_are_read_as_such(tmp_path):
    labels = {"label.dat": "0\ta\t0\t1\n1\tb\t0\t0,1\n5\tf\t0\t1\n"}
    graph = hgb.hgb_graph(archive(tmp_path / "IMDB.zip", **labels), seeds=1)
    assert graph.y.tolist()[:2] == [[0, 1], [1, 1]]
    assert graph.y.tolist()[2] == [-1, -1]


def test_both_ways_are_measured_on_the_same_splits(monkeypatch, tmp_path):
    random, n = np.random.default_rng(0), 60
    y, kind = random.integers(0, 2, n), random.integers(0, 2, 240)
    u = random.integers(0, n, 240)
    alike = [
        random.choice(np.flatnonzero((y == y[one]) == same))
        for one, same in zip(u, kind, strict=True)
    ]
    links = "".join(f"{a}\t{b}\t{t}\t1\n" for a, b, t in zip(u, alike, kind, strict=True))
    x = y + random.normal(size=n)
    nodes = "".join(f"{i}\tv\t0\t{one},1\n" for i, one in enumerate(x))
    label = [f"{i}\tv\t0\t{c}\n" for i, c in enumerate(y)]
    tables = {"node.dat": nodes, "link.dat": links, "label.dat": "".join(label[:40])}
    path = archive(tmp_path / "ACM.zip", **tables, **{"label.dat.test": "".join(label[40:])})
    monkeypatch.setattr(hgb, "SETTINGS", {"layers": 2, "epochs": 20})
    hgb.main(path.parent, "ACM", seeds=3, out=tmp_path / "out")
    found = json.loads((tmp_path / "out" / "ACM.json").read_text("utf-8"))
    assert found["edge_types"] == 2
    assert found["command"] == f"python -m gcnii_paper.hgb {path.parent.name} ACM --seeds 3"
    assert len(found["use"]["test"]) == len(found["ignore"]["test"]) == 3
    assert found["use"]["test"] != found["ignore"]["test"]


def measured(name, use, ignore):
    def scores(own):
        return {"val": own, "test": own, "seconds": 1.0}

    about = {"graph": name, "edge_types": 2, "edges": 1234, "measured": "accuracy", "seeds": 2}
    return about | {
        "settings": {"layers": 4},
        "command": "python -m x",
        "use": scores(use),
        "ignore": scores(ignore),
    }


def test_the_table_says_where_types_help_and_whether_on_two_of_three(tmp_path):
    write_document(tmp_path / "ACM.json", measured("ACM", [0.9, 0.8], [0.8, 0.71]))
    write_document(tmp_path / "DBLP.json", measured("DBLP", [0.5, 0.6], [0.6, 0.6]))
    table = hgb.typed_table(tmp_path)
    assert "|ACM|1,234|2|85.0 ± 7.1|75.5 ± 6.4|+9.5 [+3.1, +15.9]|" in table
    assert "above on 1 of 2 (the bar: 2 of 3, missed)" in table
    write_document(tmp_path / "DBLP.json", measured("DBLP", [0.7, 0.7], [0.6, 0.6]))
    assert "above on 2 of 2 (the bar: 2 of 3, met)" in hgb.typed_table(tmp_path)
    assert table.rstrip().endswith("    python -m x")


@pytest.mark.parametrize("name", hgb.GRAPHS)
def test_a_graph_is_looked_for_in_the_folder(name, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{name}.zip"):
        hgb.hgb_graph(tmp_path / f"{name}.zip")
