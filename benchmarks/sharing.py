"""How much memory does each process of a training take: from a graph in one file, and in parts?

    python benchmarks/sharing.py FOLDER [--nodes 300000] [--processes 2 4] [--dropout 0.5 0]

makes a graph in FOLDER, of nodes on a ring with links to near and to far ones, packs it in one file
and in parts, trains it from each by torchrun, and prints the largest peak over the processes:

resident   all pages, those of mapped files among them, which the system can take back
own        the pages that are in no file
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from itertools import product
from pathlib import Path

import numpy as np

from gcnii.data.formats.packed import save
from gcnii.graph import Graph, Split

TRAIN = ("--layers", "4", "--width", "16", "--epochs", "3", "--patience", "3", "--model", "gcnii")
TRAIN += ("--device", "cpu", "--threads", "1", "--quiet", "--overwrite")
WITHIN = "GCNII_SHARING_PEAKS"  # the folder to which each process writes its peaks


def made(nodes: int, features: int) -> Graph:
    """A ring whose nodes have four links to near nodes and one in a hundred to a far one."""
    rng = np.random.default_rng(0)
    u = np.tile(np.arange(nodes), 5)
    near = u + rng.integers(1, 20, len(u))
    v = np.where(rng.random(len(u)) < 0.002, rng.integers(0, nodes, len(u)), near) % nodes
    X = rng.standard_normal((nodes, features), np.float32)
    y = np.arange(nodes) * 10 // nodes
    roles = rng.choice(np.array(["train", "val", "test", None]), nodes, p=(0.1, 0.05, 0.1, 0.75))
    return Graph(X=X, edges=np.stack([u, v]), y=y, splits=(Split.of_roles(roles),), name="ring")


def status(name: str) -> int:
    """A number of /proc/self/status, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) // 1024
    return 0


def watched() -> None:
    """Run the command line that is given, and write this process's peaks."""
    from gcnii.cli import main

    own, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.01):
            own.append(status("RssAnon"))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        main()
    finally:
        done.set()
        thread.join()
        peaks = {"resident": status("VmHWM"), "own": max(own)}
        place = Path(os.environ[WITHIN]) / f"{os.environ.get('RANK', '0')}.json"
        place.write_text(json.dumps(peaks))


def peaks_of(graph: Path, processes: int, dropout: str, folder: Path) -> dict[str, int]:
    """The largest over the processes of a training."""
    peaks = folder / "peaks"
    peaks.mkdir(exist_ok=True)
    for old in peaks.iterdir():
        old.unlink()
    start = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes))
    words = (__file__, "train", str(graph), *TRAIN, "--dropout", dropout)
    command, env = [*start, *words, "--out", str(folder / "run")], {WITHIN: str(peaks)}
    subprocess.run(command, check=True, env=os.environ | env, stdout=sys.stderr)
    each = [json.loads(one.read_text()) for one in peaks.iterdir()]
    assert len(each) == processes
    return {name: max(one[name] for one in each) for name in ("resident", "own")}


def compare() -> None:
    """Make the graph, pack it, train, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=300_000)
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--dropout", nargs="+", default=["0.5", "0"])
    asked = parser.parse_args()
    whole = asked.folder / "ring.safetensors"
    save(made(asked.nodes, asked.features), whole)
    print("processes  graph     dropout  resident MB   own MB")
    for processes in asked.processes:
        parts = asked.folder / f"ring-{processes}"
        pack = ("-m", "gcnii", "data", "pack", str(whole), str(parts), "--parts", str(processes))
        subprocess.run([sys.executable, *pack], check=True, stdout=sys.stderr)
        forms = (("one file", whole), ("parts", parts))
        for (name, graph), dropout in product(forms, asked.dropout):
            found = peaks_of(graph, processes, dropout, asked.folder)
            peaks = f"{found['resident']:12,} {found['own']:8,}"
            print(f"{processes:9}  {name:8} {dropout:>8} {peaks}", flush=True)


if __name__ == "__main__":
    watched() if WITHIN in os.environ else compare()
