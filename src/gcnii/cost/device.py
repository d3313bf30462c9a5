"""Devices: how much memory they have, and how fast they are at what a layer does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf

from gcnii.cost.network import NARROW, Kind, Network
from gcnii.files import Document

GIB = 2**30
GLOO = 1e9  # bytes/s between two processes, each way


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Measured speeds.

    bandwidth   bytes/s of passes over matrices
    gather      numbers/s that sparse products fetch, while a matrix of n · h fits into the cache
    beyond      bytes/s that they fetch where it does not
    cache       bytes
    operations  operations/s of dense products
    gradient    operations/s of products Sᵀ G, whose sums are over the nodes
    mask        seconds to hash a number's mask, where that is a step of its own
    layer       seconds that a layer takes in an epoch on no nodes at all
    epoch       seconds that the rest takes
    """

    bandwidth: float
    gather: float
    beyond: float
    cache: float
    operations: float
    gradient: float
    mask: float
    layer: float
    epoch: float

    def document(self) -> Document:
        """As JSON has it; a cache without a limit is None."""
        return asdict(self) | {"cache": None if self.cache == inf else self.cache}

    @classmethod
    def of(cls, document: Document) -> Rates:
        """From what `document` gave."""
        return cls(**document | {"cache": inf if document["cache"] is None else document["cache"]})


@dataclass(frozen=True, kw_only=True)
class Device:
    """A device of some kind.

    memory  bytes that a training may take
    fixed   bytes that libraries take
    link    bytes/s to another device of the same machine, each way
    network bytes/s to one of another machine, each way
    host    bytes/s to pinned memory of the host
    where   which of these numbers were measured
    """

    name: str
    kind: Kind
    memory: float
    fixed: float
    link: float
    network: float
    host: float
    where: str


# An H200, from results/bench: copies, and sparse products at two numbers of entries (edges), GCNII
# at four depths (depth), and matrix products.  The speed of links is that of the data sheet.
H200 = Device(
    name="h200",
    kind="cuda",
    memory=139 * GIB,
    fixed=66 * 2**20,
    link=450e9,
    network=50e9,
    host=55e9,
    where="rates measured on one H200; 450 GB/s each way by NVLink and 50 GB/s between machines, "
    "by the data sheets; 55 GB/s to the host",
)
_H200 = {
    "bandwidth": 4.1e12,
    "gather": 2.35e12,
    "beyond": 4.1e12,
    "cache": 60e6,
    "layer": 20e-6,
    "epoch": 0.5e-3,
    "mask": 8 * 4 / 4.1e12,  # eight passes of integers
}
# Full float32 within the fused layer: three products in TF32, whose registers leave room for fewer
# threads, so that rows beyond the cache are fetched more slowly, too.
_FUSED = {"operations": 70e12, "beyond": 2.9e12}
_OPERATIONS: Mapping[str, float] = {
    "float32": 50.6e12,
    "tf32": 410e12,
    "bfloat16": 785e12,
    "float64": 50.6e12,
}
# A product of few columns whose sum is over many rows: 0.077 ms for 200,000 × 64 in float32.
_THIN = 200_000 * 2 * 64 * 64 / 0.077e-3


def h200_rates(network: Network) -> Rates:
    """Of an H200, for these layers; gradients of several replicas are computed at once."""
    rates = _H200 | {"operations": _OPERATIONS[network.precision]}
    if network.precision == "float32" and network.width <= NARROW:
        rates |= _FUSED
    thin = _THIN * network.width / 64 * network.replicas
    return Rates(**rates, gradient=min(rates["operations"], thin))


def this_cpu() -> Device:
    """The CPU of this machine; its rates are measured in `calibrate`."""
    return Device(
        name="cpu",
        kind="cpu",
        memory=free_memory(),
        fixed=0.0,
        link=GLOO,
        network=GLOO,
        host=inf,
        where=f"rates measured now, on one thread; {GLOO / 1e9:g} GB/s between processes (gloo)",
    )


def free_memory() -> float:
    """Bytes that are free here, as far as the system tells."""
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # not every system has these
        return inf
