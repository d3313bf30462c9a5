"""Many settings at once against one after the other, and against as many seeds of one setting.

    python benchmarks/settings.py [--layers 64] [--settings 64] [--epochs 300] [--alone 8]

trains GCNII on Cora with a fixed number of epochs: all settings as one batch, as many seeds of one
setting as one batch, and `--alone` of the settings one after the other, which is scaled up to all.
Best of two, interleaved.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import gcnii
from gcnii.results.fit import fit_plans
from gcnii.train.plan import Plan, make_plans


def plans(graph: gcnii.data.Graph, layers: int, count: int, epochs: int) -> list[Plan]:
    """Settings that differ in every number that can be batched."""
    random = np.random.default_rng(0)
    lists = {
        "alpha": random.uniform(0.05, 0.5, count),
        "lam": random.uniform(0.3, 1.5, count),
        "dropout": random.uniform(0.1, 0.8, count),
        "lr": 10 ** random.uniform(-3, -2, count),
        "decay_conv": 10 ** random.uniform(-4, -2, count),
        "decay_dense": 10 ** random.uniform(-4, -2, count),
    }
    shared = {"layers": layers, "epochs": epochs, "patience": epochs}
    return make_plans("gcnii", shared | {name: one.tolist() for name, one in lists.items()}, graph)


def seconds(graph: gcnii.data.Graph, some: list[Plan], seeds: int) -> float:
    """The time of a fit."""
    start = time.perf_counter()
    fit_plans(graph, some, seeds=range(seeds))
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=64)
    parser.add_argument("--settings", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--alone", type=int, default=8)
    given = parser.parse_args()
    graph = gcnii.load("cora")
    many = plans(graph, given.layers, given.settings, given.epochs)
    seconds(graph, many[:2], 1)  # compiles
    together, seeds, alone = [], [], []
    for _ in range(2):
        together.append(seconds(graph, many, 1))
        seeds.append(seconds(graph, many[:1], given.settings))
        each = sum(seconds(graph, [plan], 1) for plan in many[: given.alone])
        alone.append(each * given.settings / given.alone)
    fast, same, slow = min(together), min(seeds), min(alone)
    print(f"{given.settings} settings, GCNII-{given.layers}×64 on Cora, {given.epochs} epochs")
    print(f"at once             {fast:8.2f} s")
    print(f"seeds of one        {same:8.2f} s   ratio {fast / same:.2f}")
    print(f"one after the other {slow:8.2f} s   ratio {slow / fast:.1f}  ({given.alone} measured)")


if __name__ == "__main__":
    main()
