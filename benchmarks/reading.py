"""Time and memory of reading a large graph from CSV files.

    python benchmarks/reading.py [--nodes 1000000] [--edges 5000000] [--columns 16] [--folder DIR]

makes nodes.csv and edges.csv in a temporary folder (or uses those that are in DIR), reads them with
`gcnii.load`, and prints the seconds and the peak memory above what the process had before, beside
the size of the arrays that hold X and the edges.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

MEGABYTE = 1e6
CLASSES = 10
BLOCK = 100_000  # rows written at a time


def write_graph(folder: Path, nodes: int, edges: int, columns: int) -> None:
    """nodes.csv and edges.csv of a random graph whose ids are numbers in no order."""
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    ids = random.permutation(10 * nodes)[:nodes]
    for start in range(0, nodes, BLOCK):
        block = ids[start : start + BLOCK]
        numbers = random.standard_normal((len(block), columns), np.float32)
        frame = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(columns)])
        frame.insert(0, "id", block)
        frame["label"] = [f"class {c}" for c in random.integers(0, CLASSES, len(block))]
        frame.to_csv(folder / "nodes.csv", index=False, header=not start, mode="a")
    for start in range(0, edges, BLOCK):
        ends = ids[random.integers(0, nodes, (min(BLOCK, edges - start), 2))]
        frame = pd.DataFrame(ends, columns=["source", "target"])
        frame.to_csv(folder / "edges.csv", index=False, header=not start, mode="a")


def peak() -> float:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def measure(folder: Path, edges: int) -> None:
    """Read the graph and print what that took."""
    import pandas  # noqa: F401 - so that its own memory is not counted

    import gcnii

    before, start, work = peak(), time.perf_counter(), time.process_time()
    graph = gcnii.load(folder)
    seconds, work = time.perf_counter() - start, time.process_time() - work
    more, arrays = peak() - before, graph.X.nbytes + 2 * 8 * edges
    print(f"{graph.n:,} nodes, {graph.d} features, {edges:,} edges")
    print(f"{seconds:.1f} s ({work:.1f} s of CPU time)")
    print(
        f"peak {more / MEGABYTE:.0f} MB, {more / arrays:.2f} times the arrays' "
        f"{arrays / MEGABYTE:.0f} MB"
    )


def main() -> None:
    """Write in another process, whose memory is not counted, and read in this one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=5_000_000)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--folder", type=Path, help="keep the files here, and use them again")
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        if asked.write:
            write_graph(folder, asked.nodes, asked.edges, asked.columns)
            return
        if not (folder / "edges.csv").exists():
            words = [*sys.argv, "--write", "--folder", str(folder)]
            subprocess.run([sys.executable, *words], check=True)
        measure(folder, asked.edges)


if __name__ == "__main__":
    main()
