"""The same training over one, two and four processes: how much faster, and who waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace

from gcnii.files import Document
from gcnii_paper.bench.scale.launch import launch
from gcnii_paper.bench.scale.worker import Order

MODULE = "gcnii_paper.bench.scale.worker"
ANSWER = {**{"seconds": [float], "best": float, "waiting": float, "computing": float, "nodes": int}}
SIZES = (1, 2, 4)
ON_CPU = Order(n=40_000, layers=8, width=64, device="cpu", rounds=16)
EACH = 20_000  # nodes of a process, where the work of each is fixed
ON_CUDA = Order(n=1_000_000, layers=8, width=128, device="cuda", rounds=5, epochs=10)
LARGE = Order(n=0, layers=64, width=128, device="cuda", rounds=2, memory="recompute")


def over_processes(order: Order = ON_CPU, each: int = EACH) -> Iterator[Document]:
    """Strong: the graph is fixed; weak: the nodes of a process are.

    efficiency  1 where N processes do N times the work of one in the same time
    """
    for kind in ("strong", "weak"):
        first = 0.0
        for size in SIZES:
            n = order.n if kind == "strong" else each * size
            found = run(replace(order, n=n), size)
            first = first or found["best"]
            gain = first / found["best"] / (size if kind == "strong" else 1)
            yield {"kind": kind, "n": n, "processes": size, "efficiency": gain, **found}


def on_cuda() -> Iterator[Document]:
    """One process with and without torchrun, two on one GPU by gloo, and 2.4 million nodes."""
    for kind, order, size in (
        ("alone", ON_CUDA, 0),
        ("torchrun", ON_CUDA, 1),
        ("two by gloo", replace(ON_CUDA, rounds=3, epochs=3), 2),
        ("2.4 million nodes", LARGE, 0),
    ):
        yield {"kind": kind, "n": order.n, "processes": max(size, 1), **run(order, size)}


def run(order: Order, size: int) -> Document:
    """The answer of `size` processes under torchrun; 0: of one process, without it."""
    found = launch(MODULE, asdict(order), ANSWER, size)
    return {"layers": order.layers, "width": order.width, **found}
