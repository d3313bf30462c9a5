"""One epoch of GCNII-64 on Cora (train step + evaluation): this code, PyG and the authors' manner, interleaved.

    GCNII_MIRROR=… python benchmarks/epoch.py [--rounds 10] [--graph cora] [--layers 64]

Times are the best of all rounds, because whatever else the machine does only adds to them; the ratios are what counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings

import torch
from peers import Epoch, authors_manner, pyg
from torch.nn.functional import dropout

from gcnii.data import load
from gcnii.dropout import Dropout, epoch_key, keyed
from gcnii.graph import Graph
from gcnii.train.cpu import tuned_cpu
from gcnii.train.group import Group
from gcnii.train.plan import make_plan
from gcnii.train.run import Run
from gcnii.train.task import Task


def ours(graph: Graph, layers: int) -> tuple[Epoch, tuple[float, ...]]:
    """An epoch of `fit`, and the settings the peers need for the same network."""
    plan = make_plan("gcnii", {"layers": layers}, graph)
    group = Group(Task.of(graph, plan, torch.device("cpu")), [Run(0)])
    settings = plan.model_settings
    return lambda: group.advance()[0][0].val_loss, tuple(
        settings[name] for name in ("width", "alpha", "lam", "dropout")
    )


def best_of(rounds: int, steps: dict[str, Epoch]) -> dict[str, float]:
    """Milliseconds, the best of `rounds`, one after the other in every round."""
    best = dict.fromkeys(steps, float("inf"))
    with tuned_cpu():
        for _ in range(rounds):
            for name, step in steps.items():
                start = time.perf_counter()
                step()
                best[name] = min(best[name], 1000 * (time.perf_counter() - start))
    return best


def masks(rounds: int) -> dict[str, float]:
    """Dropout alone, at 2708×64."""
    H, drop, key = torch.rand(2708, 64), Dropout(0.6), epoch_key(torch.tensor([0]), 0)[0]

    def hashed() -> float:
        with keyed(key):
            return float(drop(H)[0, 0])

    return best_of(20 * rounds, {"gcnii": hashed, "torch": lambda: float(dropout(H, 0.6)[0, 0])})


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=10)
    arguments.add_argument("--graph", default="cora")
    arguments.add_argument("--layers", type=int, default=64)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    warnings.filterwarnings("ignore", message="Sparse")
    graph = load(options.graph)
    own, settings = ours(graph, options.layers)
    peers = {"pyg": pyg, "authors": authors_manner}
    steps = {"gcnii": own} | {name: peer(graph, options.layers, *settings) for name, peer in peers.items()}
    epoch, mask = best_of(options.rounds, steps), masks(options.rounds)
    found = {
        "command": " ".join(["python benchmarks/epoch.py", *sys.argv[1:]]),
        "graph": options.graph,
        "layers": options.layers,
        "threads": torch.get_num_threads(),
    }
    if options.json:
        print(json.dumps(found | {"epoch_ms": epoch, "dropout_ms": mask}, indent=1))
        return
    print(f"GCNII, {options.layers} layers, on {options.graph}, {found['threads']} threads; best of {options.rounds}")
    for name, ms in epoch.items():
        print(f"  epoch    {name:8} {ms:8.1f} ms   {ms / epoch['gcnii']:5.2f} × ours")
    for name, ms in mask.items():
        print(f"  dropout  {name:8} {ms:8.3f} ms   {ms / mask['gcnii']:5.2f} × ours")


if __name__ == "__main__":
    main()
