"""The cheat sheet's lines are right: both columns run, in order, on a small graph."""

import re
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from support import knobs
from support.command_line import call
from support.manual import ROOT, understand, words

import gcnii
from gcnii.tuning.portfolio import Extent

TEXT = (ROOT / "docs" / "reference" / "cheatsheet.md").read_text("utf-8")
ROWS = [line.strip("|").split("|") for line in TEXT.splitlines() if line.startswith("|")][2:]
# These take long, or do not end; test_guide.py and the tests of pages run all but two.
UNRUN = ("demo", "tune", "doctor", "theory", "reproduce", "report", "serve")
COMMANDS = [code for row in ROWS for code in re.findall(r"`((?:gcnii|torchrun) .*?)`", row[1])]
PYTHON = [code for row in ROWS if len(row) > 2 for code in re.findall(r"`(.*?)`", row[2])]
# A search of minutes and what it finds; a database; arguments of another line; a page of a minute.
SEARCH = ("best = ", "gcnii.fit(graph, best.model")
SKIPPED = (
    *SEARCH,
    "gcnii.from_query",
    "callbacks=",
    "verbose=",
    "cross_val_score",
    "result.report",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with my_graph, another of its kind, and a node that is new.

    Labels are told by all features together, which networks learn and trees do not; a portfolio has
    two networks and two folds.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(knobs.EXTENTS, {"standard": Extent(("mlp", "gcnii-mild"), 2)})
    X = np.random.default_rng(0).normal(size=(120, 6)).round(2)
    nodes = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    nodes.insert(0, "id", [f"n{i}" for i in range(120)])
    nodes["label"] = np.where(X.sum(1) > 0, "a", "b")
    nodes.loc[:5, "label"] = None
    edges = pd.DataFrame({"source": nodes["id"][:-2], "target": nodes["id"][2:].to_numpy()})
    papers = nodes.assign(year=np.arange(120) // 4)
    cited = edges.assign(kind=np.where(edges.index % 2, "a", "b"))
    flats = nodes.drop(columns="label").assign(price=X[:, :2].sum(1).round(2))
    graphs = {"my_graph": (nodes, edges), "other": (nodes, edges)}
    for name, tables in (graphs | {"papers": (papers, cited), "flats": (flats, edges)}).items():
        (tmp_path / name).mkdir()
        for file, table in zip(("nodes.csv", "edges.csv"), tables, strict=True):
            table.to_csv(tmp_path / name / file, index=False)
    (tmp_path / "fresh").mkdir()
    (tmp_path / "fresh" / "nodes.csv").write_text("id,x0,x1,x2,x3,x4,x5\nnew,1,2,0,1,0,1\n")
    (tmp_path / "fresh" / "edges.csv").write_text("source,target\nnew,n7\n")
    return tmp_path


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_exists_with_these_flags(line):
    understand(line)


@pytest.mark.slow
def test_the_commands_run(folder):
    for name, layers in (("mine", 4), ("tuned", 2)):  # a bundle has settings, as a search does
        gcnii.fit(gcnii.load("my_graph"), layers=layers, epochs=3).save(f"runs/{name}")
    run = 0
    for line in COMMANDS:
        command, *rest = words(line.replace("NODE", "n7"))
        if command != "gcnii" or rest[0] in UNRUN:
            continue
        answer = call(*rest, *(("--epochs", "2") if rest[0] == "train" else ()), cwd=folder)
        assert answer.code == 0, (line, answer.err)
        run += 1
    assert run >= 19


@pytest.mark.slow
def test_the_python_runs(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyG
        from torch_geometric.data import Data
    random, ring = np.random.default_rng(0), torch.arange(30)
    links = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
    names = {"gcnii": gcnii, "graph": gcnii.load("my_graph")}
    names |= {"G": nx.karate_club_graph(), "A": np.ones((9, 9)), "X": random.random((9, 2))}
    names |= {"y": [0, 1, 1] * 3, "data": Data(x=torch.rand(30, 2), edge_index=links, y=ring % 2)}
    names |= {
        "nodes": pd.read_csv("my_graph/nodes.csv"),
        "edges": pd.read_csv("my_graph/edges.csv"),
    }
    names |= {"fresh": pd.read_csv("fresh/nodes.csv"), "links": pd.read_csv("fresh/edges.csv")}
    names |= {"model": gcnii.nn.GCNII(6, 2, layers=2)}
    run = 0
    for code in PYTHON:
        if not code.startswith(SKIPPED):
            epochs = 30 if code.startswith("result") else 2  # as printed, but quick
            code = re.sub(r"(gcnii\.fit\(.*)\)$", rf"\1, epochs={epochs})", code)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # so small a graph is warned of
                exec(code.replace('"NODE"', '"n7"'), names)
            run += 1
    assert run >= 20
