"""Tables as users have them are read from files as from data frames."""

import numpy as np
import pytest
from support.tables import TABLES

import gcnii

SMALL = {"churn": 120, "papers": 150, "fraud": 200, "bipartite": 60, "no_graph": 80}


@pytest.mark.parametrize("name", TABLES)
def test_a_folder_is_the_graph_of_its_data_frames(name, tmp_path):
    table = TABLES[name](SMALL[name])
    read = gcnii.load(table.write(tmp_path / "mine"), **table.reading)
    assert read.fingerprint == table.graph().fingerprint


@pytest.mark.parametrize("name", TABLES)
def test_labels_that_are_told_are_true(name):
    table = TABLES[name](SMALL[name])
    graph = table.graph()
    told = graph.labelled
    assert 0 < told.sum() < (table.truth != "").sum()
    assert (np.array(graph.classes)[graph.labels[told]] == table.truth[told]).all()
