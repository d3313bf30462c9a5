"""`gcnii predict` as a process of its own: its time, and the most memory that it has held."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from weakref import finalize

import numpy as np
import torch

from gcnii.data.formats.packed import save
from gcnii.errors import GcniiError
from gcnii.files import Document
from gcnii.graph import Graph
from gcnii.graph.arrays import freeze
from gcnii.results.fit import Session, fit_plans
from gcnii.train.plan import Plan
from gcnii_paper.bench.cases import Line, Shape
from gcnii_paper.bench.graphs import BenchGraph, make_bench_graph

# The command of the words after it, and the peak of the process as the last line.
COMMAND = """
from gcnii.cli import main
from gcnii_paper.bench.peak import highest
main()
print(highest())
"""
STUDIED = 1000  # nodes of the graph on which the model is trained: labels need not be good


class Prediction:
    """A packed graph and a trained model in a folder of their own, and the command on them.

    facts  what was found by the last run
    """

    def __init__(self, line: Line, bench_graph: BenchGraph, plan: Plan):
        assert isinstance(line.graph, Shape)
        self.facts: Document = {}
        self.folder = here = Path(mkdtemp())
        finalize(self, shutil.rmtree, here, ignore_errors=True)
        save(_with_edges(bench_graph), here / "graph.safetensors")
        small = Shape(n=STUDIED, entries=STUDIED, d=line.graph.d, k=line.graph.k)
        graph = make_bench_graph(small, torch.device("cpu")).graph
        fit_plans(graph, [plan], Session(device="cpu"), seeds=[0]).save(here / "model")

    def runs(self, count: int) -> int:
        """Label all nodes `count` times."""
        here = self.folder
        words = ("predict", here / "model", "--graph", here / "graph.safetensors")
        where = ("--device", "cpu", "--out", here / "labels.csv", "--quiet")
        command = (sys.executable, "-c", COMMAND, *map(str, (*words, *where)))
        for _ in range(count):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise GcniiError(f"gcnii predict failed: {done.stderr.strip()}")
            self.facts["peak_bytes"] = int(done.stdout.splitlines()[-1])
        return count


def _with_edges(bench_graph: BenchGraph) -> Graph:
    """The graph with its drawn links as edges, each once."""
    pattern, graph = bench_graph.links.pattern, bench_graph.graph
    once = pattern.row_of < pattern.columns
    edges = np.stack([pattern.row_of[once].numpy(), pattern.columns[once].numpy()])
    return Graph(X=graph.X, edges=freeze(edges), y=graph.y, splits=graph.splits, name=graph.name)
