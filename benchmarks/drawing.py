"""Time of making the batches of sampled neighbours, in numpy and in torch.

    python benchmarks/drawing.py [--device cuda] [--steps 60] [--data ppi-like]

makes the batches of an epoch's first steps as GraphSAGE, VR-GCN and GaAN have them, 512 nodes each,
by either sampler in turn, checks that they are the same, and prints the least and the middle time
of a batch, from its nodes to X and the matrices on the device: on a CPU the process's own time, so
that other load counts less; set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

import numpy as np
import torch

from gcnii import data
from gcnii.graph import Graph
from gcnii.paper.bench.clock import wait_for
from gcnii.propagation import GraphAdjacency, Norm, adjacency, feature_matrix
from gcnii.train.batches import Batch, Neighbours
from gcnii.train.batches.batch import History
from gcnii.train.batches.device_sampler import DeviceSampler
from gcnii.train.batches.sampler import NeighbourSampler

SIZE, LAYERS = 512, 2
SETTINGS: dict[str, tuple[Norm, tuple[int, ...], History]] = {
    "GraphSAGE": ("mean", (10, 25), "none"),
    "VR-GCN": ("mean", (1, 0), "cv"),
    "GaAN": ("symmetric", (0, 0), "none"),
}


def measure(graph: Graph, name: str, device: torch.device, steps: int) -> dict[str, list[float]]:
    """Milliseconds of each batch, by each sampler."""
    norm, fanout, history = SETTINGS[name]
    links = GraphAdjacency.of(adjacency(graph), norm).to(device, torch.float32)
    X = feature_matrix(graph, dtype=torch.float32).to(device)
    nodes = torch.tensor(np.flatnonzero(graph.splits[0].train))
    given = {"size": SIZE, "fanout": fanout, "layers": LAYERS, "history": history}
    both = {"numpy": Neighbours(links, X, nodes, **given)}
    both["torch"] = Neighbours(links, X, nodes, **given)
    both["numpy"].sampler, both["torch"].sampler = (
        NeighbourSampler(links.whole),
        DeviceSampler(links.whole),
    )
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    order = np.random.default_rng(0).permutation(nodes.numpy())
    found: dict[str, list[float]] = {"numpy": [], "torch": []}
    for step in range(steps):
        start = step * SIZE % (len(order) - SIZE)
        made = {}
        for kind, batches in both.items():
            wait_for(device)
            began = clock()
            made[kind] = batches._batch(order[start : start + SIZE], (0, 0, step))
            wait_for(device)
            found[kind].append(1000 * (clock() - began))
        check(made["numpy"], made["torch"])
    return found


def check(one: Batch, other: Batch) -> None:
    """Raise AssertionError unless both are the same."""
    for layer in range(LAYERS):
        mine, theirs = one.P.at(layer), other.P.at(layer)
        assert torch.equal(mine.pattern.columns, theirs.pattern.columns)
        assert torch.equal(mine.values, theirs.values)


def main() -> None:
    """Read the flags, measure, and print a line for each model and sampler."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--data", default="ppi-like")
    flags = parser.parse_args()
    graph, device = data.load(flags.data), torch.device(flags.device)
    for name in SETTINGS:
        for kind, times in measure(graph, name, device, flags.steps).items():
            print(f"{name:10} {kind:6} best {min(times):6.2f} ms  median {median(times):6.2f} ms")


if __name__ == "__main__":
    main()
