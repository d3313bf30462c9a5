"""Time of making the batches of sampled neighbours, by numpy and by the kernels of a GPU.

    python benchmarks/drawing.py [--steps 60] [--data ppi-like]

makes the batches of an epoch's first steps as GraphSAGE, VR-GCN and GaAN have them, 512 nodes each,
in either way in turn, checks that they are the same, and prints the least and the middle time of a
batch, from its nodes to X and the matrices on the GPU.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import numpy as np
import torch

from gcnii import data
from gcnii.graph import Graph
from gcnii.propagation import GraphAdjacency, Norm, adjacency, feature_matrix
from gcnii.train.batches import Batch, History, NeighbourBatches, NeighbourSampler
from gcnii_paper.bench.limits import wait_for

GPU, SIZE, LAYERS = torch.device("cuda"), 512, 2
SETTINGS: dict[str, tuple[Norm, tuple[int, ...], History]] = {
    "GraphSAGE": ("mean", (10, 25), "none"),
    "VR-GCN": ("mean", (1, 0), "cv"),
    "GaAN": ("symmetric", (0, 0), "none"),
}


def measure(graph: Graph, name: str, steps: int) -> dict[str, list[float]]:
    """Milliseconds of each batch, in either way."""
    norm, fanout, history = SETTINGS[name]
    links = GraphAdjacency.of(adjacency(graph), norm).to(GPU, torch.float32)
    X = feature_matrix(graph, dtype=torch.float32).to(GPU)
    nodes = torch.tensor(np.flatnonzero(graph.splits[0].train))
    given = {"size": SIZE, "fanout": fanout, "layers": LAYERS, "history": history}
    both = {how: NeighbourBatches(links, X, nodes, **given) for how in ("numpy", "kernels")}
    both["numpy"].sampler = NeighbourSampler(links.whole)
    order = np.random.default_rng(0).permutation(nodes.numpy())
    found: dict[str, list[float]] = {how: [] for how in both}
    for step in range(steps):
        start, made = step * SIZE % (len(order) - SIZE), {}
        for how, batches in both.items():
            wait_for(GPU)
            began = time.perf_counter()
            made[how] = batches._batch(order[start : start + SIZE], (0, 0, step))
            wait_for(GPU)
            found[how].append(1000 * (time.perf_counter() - began))
        check(made["numpy"], made["kernels"])
    return found


def check(one: Batch, other: Batch) -> None:
    """Raise AssertionError unless both are the same."""
    for layer in range(LAYERS):
        mine, theirs = one.P.at(layer), other.P.at(layer)
        assert torch.equal(mine.pattern.columns, theirs.pattern.columns)
        assert torch.equal(mine.values, theirs.values)


def main() -> None:
    """Read the flags, measure, and print a line for each model and way."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--data", default="ppi-like")
    flags = parser.parse_args()
    graph = data.load(flags.data)
    for name in SETTINGS:
        for how, times in measure(graph, name, flags.steps).items():
            print(f"{name:10} {how:8} best {min(times):6.2f} ms  median {median(times):6.2f} ms")


if __name__ == "__main__":
    main()
