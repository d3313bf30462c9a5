"""Bundles, checkpoints and ledgers that an older version wrote keep working.

The files were written by version 0.1 before its rooms were moved, on a small drawn graph.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support import knobs

import gcnii
from gcnii_paper.ledger import Ledger, run_key
from gcnii_paper.reproduce import reproduce
from gcnii_paper.tables.cells import Cell

OLD = Path(__file__).parent / "support" / "written_by_0.1"
SETTINGS = {"layers": 2, "width": 4}


@pytest.fixture(scope="module")
def graph():
    return gcnii.load("csbm", n=60)


def test_an_old_bundle_predicts_what_it_predicted(graph):
    bundle = gcnii.open_bundle(OLD / "bundle")
    expected = np.loadtxt(OLD / "bundle" / "expected.csv", delimiter=",")
    np.testing.assert_allclose(bundle.predict_proba(graph, ensemble=False)[:3], expected, rtol=1e-5)
    assert repr(bundle) == "gcnii-star, 2 layers, on csbm: test accuracy 25.0 ± 35.4 (2 runs)"


def test_an_old_bundle_gathers_as_it_did_over_directed_and_weighted_links(graph):
    weights = np.random.default_rng(0).lognormal(size=graph.edges.shape[1])
    other = replace(graph, directed=True, weights=weights)
    with pytest.warns(UserWarning, match="has edge weights"):
        _, task = gcnii.open_bundle(OLD / "bundle").network(other, "cpu")
    P = gcnii.propagation_matrix(other, direction="in")  # as its run.json has it
    torch.testing.assert_close(task.P.values, P.values)


def test_an_old_checkpoint_is_resumed_to_the_same_numbers(graph, tmp_path, caplog):
    shutil.copy(OLD / "checkpoint.safetensors", tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    how = {"seeds": [0], "device": "cpu", "epochs": 8, **SETTINGS}
    with caplog.at_level("INFO", "gcnii"):
        resumed = gcnii.fit(graph, checkpoint=path, **how)
    assert f"resumed 1 of 1 runs: {path}" in caplog.text
    whole = gcnii.fit(graph, **how)
    # The checkpoint is of another processor, which rounds in another way.
    np.testing.assert_allclose(resumed.runs[0].curve, whole.runs[0].curve, rtol=1e-5)


def test_runs_of_an_old_ledger_are_not_run_again(tmp_path, monkeypatch):
    shutil.copy(OLD / "ledger.sqlite", tmp_path)
    settings = SETTINGS | {"epochs": 3, "patience": 3}
    where = {"table": "table2", "row": "GCNII", "column": "Drawn", "graph": "csbm"}
    cell = Cell(model="gcnii", settings=settings, runs=2, **where)
    monkeypatch.setattr(knobs.REPRODUCED_FIT, None)  # nothing is left to train
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        reproduce([cell], ledger, device="cpu")
        assert [run.seed for run in ledger.runs(run_key(cell))] == [0, 1]
