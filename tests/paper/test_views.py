"""Twitch's views, and what is said of the default on them."""

import json

import numpy as np
import pytest

from gcnii.files import write_document
from gcnii_paper import views


@pytest.fixture
def folder(tmp_path):
    random, n = np.random.default_rng(0), 120
    kind = random.integers(0, 3, n)
    rows = [f"{900 + i},5,False,{1 + 10 ** int(kind[i])},False,{i}" for i in range(n)]
    header = "id,days,mature,views,partner,new_id"
    (tmp_path / "target.csv").write_text("\n".join([header, *rows[::-1]]) + "\n")
    pairs = [(a, b) for a in range(n) for b in range(a) if kind[a] == kind[b] and not (a + b) % 11]
    lines = (f"{a},{b}" for a, b in pairs)
    (tmp_path / "edges.csv").write_text("\n".join(["from,to", *lines]) + "\n")
    own = {str(i): [int(kind[i]), 3 + i % 4, 3 + i % 4] for i in range(n)}
    (tmp_path / "features.json").write_text(json.dumps(own))
    return tmp_path


def test_streamers_are_the_nodes_and_the_logarithm_of_their_views_the_target(folder):
    graph = views.views_graph(folder, 2)
    assert graph.n == 120
    assert graph.targets == ("log views",)
    assert len(graph.splits) == 2
    assert set(np.round(np.exp(graph.y[:, 0])).astype(int)) == {2, 11, 101}
    assert graph.X.max() == 1
    assert graph.X.sum() == 240


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the intervals are set by:UserWarning")  # of few nodes
def test_the_default_is_measured_beside_trees_and_an_mlp(folder):
    found = views.measure(views.views_graph(folder, 2), "quick")
    assert len(found["splits"]) == 2
    for row in found["splits"]:
        assert 0.5 < row["trees"] <= 1
        assert 0.5 < row["linear"] <= 1
        assert row["r2"] > 0.5
        assert 0.5 <= row["coverage"] <= 1
        assert row["width"] > 0


def test_the_table_says_which_bars_are_met(tmp_path):
    def table(r2, coverage):
        row = {
            "r2": r2,
            "mlp": 0.5,
            "trees": 0.6,
            "linear": 0.9,
            "coverage": coverage,
            "width": 1.0,
        }
        about = {"graph": "g", "effort": "quick", "command": "python -m x", "seconds": 9.0}
        measured = about | {"splits": [row, row | {"r2": r2 + 0.02}]}
        return views.views_table(write_document(tmp_path / "x.json", measured))

    said = table(0.9, 0.9)
    assert "|0|0.900|0.600|0.500|0.900|0.900|1.000|" in said
    assert (
        "|mean ± deviation|0.910 ± 0.014|0.600 ± 0.000|0.500 ± 0.000|0.900 ± 0.000|0.900 ± 0.000|"
        in said
    )
    assert "R² differs by +0.310 [+0.183, +0.437] against gradient boosting, +0.410" in said
    assert "gradient boosting, the MLP and linear regression (met)" in said
    assert "0.9 ± 0.02 on test nodes (met: 0.900)" in said
    assert "the MLP and linear regression (missed)" in table(0.8, 0.9)
    assert "on test nodes (missed: 0.940)" in table(0.6, 0.94)
