"""Memory, time and traffic of a training, before it starts.

A network, a device and a cut of the graph are counts; bytes and seconds follow from them.  A plan
from counts alone does not load torch; the rates of a CPU are measured, by `calibrate`.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import inf
from statistics import median
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.catalog import Size
from gcnii.errors import InputError, did_you_mean
from gcnii.files import Document
from gcnii.memory import (
    LARGEST_POOLED,
    POOLED,
    Held,
    choose_held,
    is_one_kernel,
    segment_length,
    segments,
)

if TYPE_CHECKING:
    from torch import Tensor

    from gcnii.graph import Graph
    from gcnii.propagation.sparse import Pattern

Kind = Literal["cpu", "cuda"]
WAYS: tuple[Held, ...] = get_args(Held)  # to hold activations

# model → matrices of weights in a layer
MATRICES = {"gcnii": 1, "gcnii-star": 2, "gcnii-star-printed": 2, "gcnii-plus": 1}
PRECISIONS = ("float32", "float64", "tf32", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class Network:
    """A model of this depth and width, and how it is trained."""

    model: str = "gcnii"
    layers: int = 64
    width: int = 64
    precision: str = "float32"
    memory: Held = "keep"
    replicas: int = 1

    def __post_init__(self) -> None:
        """Refuse what no plan is made of."""
        if self.model not in MATRICES:
            guess = did_you_mean(self.model, MATRICES) or "choose one of them"
            raise InputError(
                f"plans are made of {', '.join(MATRICES)}, got {self.model!r}; {guess.rstrip()}"
            )
        if self.precision not in PRECISIONS:
            raise InputError(
                f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}"
            )

    @property
    def matrices(self) -> int:
        """Matrices of weights in a layer."""
        return MATRICES[self.model]

    def item(self, kind: Kind) -> int:
        """Bytes of a number of an activation on this kind of device."""
        halves = kind == "cuda" and self.precision == "bfloat16"
        return 8 if self.precision == "float64" else 2 if halves else 4

    def weights(self, d: int, k: int) -> int:
        h = self.width
        return self.layers * self.matrices * h * h + (d + 1) * h + (h + 1) * k

    @property
    def segment(self) -> int:
        """Layers whose activations are computed again together."""
        return segment_length(self.layers, offloads=self.memory == "offload")

    @property
    def segments(self) -> int:
        """How many of them there are."""
        return segments(self.layers, offloads=self.memory == "offload")

    @property
    def offloaded(self) -> int:
        """Inputs of segments that wait on the host: all but the first and the last."""
        return max(0, self.segments - 2) if self.memory == "offload" else 0


@dataclass(frozen=True)
class Form:
    """How the layers are computed.  Passes are over matrices of n · h numbers.

    forward, backward, evaluation  numbers that are read or written for one of a matrix, without
                                   those that a sparse product gathers
    products  dense products of a layer in an epoch: forward, backward and in evaluation
    kept      matrices that backward needs of a layer
    again     those of them that a segment holds whose layers are computed again
    masked    whether dropout's masks are hashed in steps of their own
    """

    forward: float
    backward: float
    evaluation: float
    products: tuple[int, int, int]
    kept: int
    again: int
    masked: bool


# One kernel a layer in each direction (performance.md counts its passes).
NARROW_ON_GPU = Form(4, 6, 3, (1, 3, 1), kept=2, again=1, masked=False)
# Gather, product and ReLU with dropout apart.
WIDE_ON_GPU = Form(6, 9, 6, (1, 2, 1), kept=2, again=2, masked=False)
# nn/engine/fused.py: α H0 is added (3 numbers), ReLU (2); backward adds to dH0 (3), masks dZ (3).
ON_CPU = Form(5, 6, 5, (1, 2, 1), kept=2, again=2, masked=True)
# kernels/layer.c: H0 is read, S and H are written (3 numbers); backward reads S and D, adds to dH0,
# and writes dS (5).
COMPILED = Form(3, 5, 2, (1, 2, 1), kept=2, again=2, masked=False)
# What several processes add to each of the three: the product by others' columns is written, and
# read by the one kernel, or added to the sums.
READ, ADDED = 2, 4


def is_narrow(network: Network, rows: int) -> bool:
    """Whether a GPU computes a layer of this many rows in one kernel."""
    halves = network.precision == "bfloat16"
    return is_one_kernel(network.replicas * rows, network.width, halves=halves)


def form_of(network: Network, kind: Kind, devices: int, rows: int, compiled: bool = False) -> Form:
    """How this network's layers are computed on this many rows."""
    narrow = kind == "cuda" and is_narrow(network, rows)
    on_cpu = COMPILED if compiled else ON_CPU
    form = NARROW_ON_GPU if narrow else on_cpu if kind == "cpu" else WIDE_ON_GPU
    if devices == 1:
        return form
    more = READ if narrow else ADDED
    forward, backward, evaluation = form.forward, form.backward, form.evaluation
    return replace(
        form, forward=forward + more, backward=backward + more, evaluation=evaluation + more
    )


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
    compiled    whether a CPU's layers are compiled
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
    compiled: bool = False  # as in records of before there were compiled layers

    def document(self) -> Document:
        """As JSON has it; a cache without a limit is None."""
        return asdict(self) | {"cache": None if self.cache == inf else self.cache}

    @classmethod
    def of(cls, document: Document) -> Rates:
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
    fixed=96 * 2**20,
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
    "layer": 6.2e-6,
    "epoch": 0.165e-3,
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


def h200_rates(network: Network, nodes: int) -> Rates:
    """Of an H200, for these layers on this many nodes; gradients of several replicas are one."""
    rates = _H200 | {"operations": _OPERATIONS[network.precision]}
    if network.precision == "float32" and is_narrow(network, nodes):
        rates |= _FUSED
    thin = _THIN * network.width / 64 * network.replicas
    gradient = min(rates["operations"], thin)
    return Rates(**rates, gradient=gradient, compiled=False)


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


Labels = NDArray[np.int64]

# What METIS is taken to leave of the halo of a random cut: on citations and goods it left 0.17 to
# 0.33 in 8 parts, and 0.31 to 0.37 in 32 (results/bench/scale-cpu.json).
LEFT = 0.35
MOST = 5_000_000  # entries of a graph that METIS cuts in seconds


@dataclass(frozen=True)
class Cut:
    """What a graph's cut over processes costs.

    nodes     of the largest part
    halo      rows of other processes' nodes that a part gathers from, at most
    crossing  share of the links that join two parts
    how       metis, blocks or random; estimated if no graph was at hand
    """

    nodes: int
    halo: int
    crossing: float
    how: str


def uncut(n: int) -> Cut:
    """One process has all nodes."""
    return Cut(n, 0, 0.0, "one process")


def measured_cut(A: sp.csr_array, labels: Labels, how: str) -> Cut:
    """What this part (n,) of each node costs."""
    parts = int(labels.max()) + 1
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    outside = labels[row] != labels[A.indices]
    # A node is in a part's halo once, however many of its nodes gather from it.
    codes = np.unique(labels[row[outside]] * A.shape[0] + A.indices[outside])
    halo = np.bincount(codes // A.shape[0], minlength=parts)
    links = int((row != A.indices).sum())
    share = float(outside.sum()) / links if links else 0.0
    return Cut(int(np.bincount(labels).max()), int(halo.max()), share, how)


def random_cut(size: Size, parts: int) -> Cut:
    """What a random cut costs on average, if all nodes have as many links.

    A node elsewhere is in a part's halo unless none of its links ends there.
    """
    here = 1 / parts
    links = max(size.degree - 1, 0)  # without the loop
    halo = (size.n - size.n * here) * (1 - (1 - here) ** links)
    return Cut(-(-size.n // parts), round(halo), 1 - here, "random")


def estimated_cut(size: Size, parts: int) -> Cut:
    """What METIS may leave of it: as much as on the worst of the graphs that were measured."""
    one = random_cut(size, parts)
    return Cut(one.nodes, round(LEFT * one.halo), LEFT * one.crossing, "estimated")


# Bytes for each entry of P̃: its links, both orders of its values and columns, and on a GPU the
# kernels' layouts of both.  Fitted to the lines of `gcnii bench edges` and `products`.
ENTRY: dict[Kind, float] = {"cuda": 76, "cpu": 88}
# Bytes for each number of a sparse X: values and columns in both orders, and what dropout leaves;
# the last for each replica.
STORED, DROPPED = {"cuda": 60, "cpu": 38}, 8
# Copies of a dense X: as it is, and with dropout; on a CPU its hashed numbers, of half the size.
COPIES = {"cuda": 2.0, "cpu": 2.5}
# Copies of the weights: now, at the best epoch, Adam's two moments, the gradient and its parts.
WEIGHTS = {"cuda": 6.5, "cpu": 7.0}
# Matrices of n · h beside those that are kept: H0, gradients and masks in the making.
WORK = {"cuda": 5.0, "cpu": 7.0}
# On a CPU, matrices below LARGEST_POOLED are not handed back to the system; this many are held.
# Larger ones are kept, too, where memory has room for it: that is speed, and not what is needed.
POOLED_AGAIN = 22.0


@dataclass(frozen=True)
class Memory:
    """Bytes on one device; `host` is what is kept in the host's memory beside it."""

    P: float
    X: float
    weights: float
    kept: float
    work: float
    halo: float
    host: float = 0.0

    @property
    def total(self) -> float:
        """Bytes on the device."""
        return self.P + self.X + self.weights + self.kept + self.work + self.halo


def memory(size: Size, network: Network, device: Device, cut: Cut, devices: int = 1) -> Memory:
    """What the fullest of the devices holds, if each has loaded its own part alone."""
    kind, form = device.kind, form_of(network, device.kind, devices, cut.nodes)
    item, share = network.item(kind), cut.nodes / size.n
    wide = 2 if network.precision == "float64" else 1
    matrix = cut.nodes * network.width * item * network.replicas
    P = ENTRY[kind] * size.entries * share * (1 if wide == 1 else 1.3)
    weights = WEIGHTS[kind] * 4 * wide * network.weights(size.d, size.k) * network.replicas
    kept, host = _kept(network, form)
    return Memory(
        P=P,
        X=_features(size, kind, network) * share * wide,
        weights=weights,
        kept=kept * matrix,
        # Over several processes, also what others' columns add to the sums.
        work=(_work(network, kind, matrix) + (devices > 1)) * matrix + device.fixed,
        # Rows that are sent and received, and on a CPU their gradients, in the order of both.
        halo=3 * cut.halo * network.width * item,
        host=host * matrix,
    )


def _kept(network: Network, form: Form) -> tuple[float, float]:
    """Matrices that are kept on the device, and on the host."""
    if network.memory == "keep":
        return form.kept * network.layers, 0.0
    at_hand = form.again * min(network.segment, network.layers)
    if network.memory == "offload":
        return at_hand + 2, network.offloaded  # one on its way in, and one out
    return network.segments + at_hand, 0.0


def _work(network: Network, kind: Kind, matrix: float) -> float:
    if kind == "cpu" and matrix < LARGEST_POOLED:
        return POOLED if network.memory == "keep" else POOLED_AGAIN
    return WORK[kind]


def _features(size: Size, kind: Kind, network: Network) -> float:
    if not size.sparse:
        return COPIES[kind] * 4 * size.stored
    more = DROPPED * network.replicas if kind == "cuda" else 0
    return (STORED[kind] + more) * size.stored


SPARSE = 3  # sparse products of a layer: forward, backward and in evaluation
# Passes over n · h and n · k numbers outside of the layers: both dense maps with their dropout, and
# the loss with its gradient; and over the weights, in Adam.
PASSES, LOSS, ADAM = 40, 150, 12
DROPS = 4  # times the work of a mask, to drop from a number of X and to bring it into both orders


@dataclass(frozen=True)
class Seconds:
    """Of an epoch.

    sparse    products by P̃
    dense     products by weights
    passes    over activations, and masks
    around    everything outside of the layers
    exchange  of rows with other processes, as far as nothing hides it
    host      traffic with the host's memory, as far as nothing hides it
    hidden    share of the exchange that is hidden behind the products by a process's own columns
    traffic   bytes that a device receives for a layer, in one direction
    """

    sparse: float
    dense: float
    passes: float
    around: float
    exchange: float
    host: float
    hidden: float
    traffic: float

    @property
    def total(self) -> float:
        return self.sparse + self.dense + self.passes + self.around + self.exchange + self.host


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a training runs: a number of devices of one kind, on some machines, and their cut."""

    device: Device
    rates: Rates
    cut: Cut
    devices: int = 1
    machines: int = 1


def seconds(size: Size, network: Network, place: Place) -> Seconds:
    """What an epoch takes, on the device that has most to do."""
    kind = place.device.kind
    form = form_of(network, kind, place.devices, place.cut.nodes, place.rates.compiled)
    again = 0 if network.memory == "keep" else 1  # how often layers are computed again
    share = place.cut.nodes / size.n
    n, replicas, rates = size.n * share, network.replicas, place.rates
    matrix = n * network.width * replicas
    item = network.item(place.device.kind)
    moves = form.forward * (1 + again) + form.backward + form.evaluation
    masks = (1 + again) * form.masked * rates.mask
    gathers = SPARSE + again
    one = _gather(size.entries * share * replicas, n, network.width, item, rates)
    exposed, hidden, traffic = _exchange(network, place, one, gathers, item)
    compute = {
        "sparse": network.layers * gathers * one,
        "dense": network.layers * _dense(network, form, again, matrix, rates),
        "passes": network.layers
        * (moves * matrix * item / rates.bandwidth + masks * matrix + rates.layer),
    }
    around = _around(size, network, share, rates) + rates.epoch
    busy = sum(compute.values())
    host = _host(network, place.device, matrix * item, busy)
    rest = {"exchange": exposed, "host": host, "hidden": hidden, "traffic": traffic}
    return Seconds(**compute, around=around, **rest)


def _gather(entries: float, n: float, width: int, item: int, rates: Rates) -> float:
    """A sparse product: each entry fetches a row."""
    numbers = entries * width
    if n * width * item > rates.cache:
        return numbers * item / rates.beyond
    return numbers / rates.gather


def _dense(network: Network, form: Form, again: int, matrix: float, rates: Rates) -> float:
    """The products of a layer by its weights; one of backward's is a gradient of these."""
    operations = 2 * matrix * network.width * network.matrices
    forward, backward, evaluation = form.products
    others = forward * (1 + again) + backward - 1 + evaluation
    return operations * (others / rates.operations + 1 / rates.gradient)


def _around(size: Size, network: Network, share: float, rates: Rates) -> float:
    n, h, replicas = size.n * share, network.width, network.replicas
    stored = size.stored * share * replicas
    if size.sparse:  # values are dropped, and sorted anew for the transpose
        first = 3 * stored * h / rates.gather + DROPS * stored * rates.mask
    else:
        # These products are in float32, whatever the precision of the layers.
        first = stored * h * 2 * (2 / rates.operations + 1 / rates.gradient)
        first += DROPS / 2 * stored * rates.mask
    weights = network.weights(size.d, size.k) * replicas
    numbers = PASSES * n * h * replicas + LOSS * n * size.k * replicas + ADAM * weights
    last = 3 * 2 * n * h * size.k * replicas / rates.operations
    return first + last + 4 * numbers / rates.bandwidth + 2 * n * h * replicas * rates.mask


def _exchange(
    network: Network, place: Place, product: float, times: int, item: int
) -> tuple[float, float, float]:
    """Seconds that are not hidden, the share that is, and bytes received for a layer."""
    cut, devices, machines = place.cut, place.devices, place.machines
    if devices == 1:
        return 0.0, 0.0, 0.0
    traffic = cut.halo * network.width * item * network.replicas
    # Rows come from all other devices alike.
    beside = devices / machines - 1
    away = (devices - 1 - beside) / (devices - 1)
    device = place.device
    each = max(traffic * (1 - away) / device.link, traffic * away / device.network)
    own = product * (1 - cut.crossing)  # the columns here, meanwhile
    hidden = min(each, own) / each if each else 0.0
    return network.layers * times * each * (1 - hidden), hidden, traffic


def _host(network: Network, device: Device, matrix: float, busy: float) -> float:
    """What the traffic of offloaded activations, out and in, takes longer than all computing."""
    return max(0.0, 2 * network.offloaded * matrix / device.host - busy)


ROOM = 0.95  # share of a device's memory that a training can use; the rest is lost in pieces
WHOLE = 68  # bytes of an entry that every process holds of the whole graph, if it reads all of it
MOST_DEVICES = 4096
LEAST_WIDTH = 16
PER_MACHINE = 8


@dataclass(frozen=True)
class Cost:
    """What a training of a network takes on a graph of this size."""

    size: Size
    network: Network
    place: Place
    memory: Memory
    seconds: Seconds

    @property
    def fits(self) -> bool:
        """Whether the fullest device has room."""
        return self.memory.total <= ROOM * self.place.device.memory

    def document(self) -> Document:
        """As JSON has it: bytes, seconds, and shares."""
        place, found = self.place, asdict(self.seconds)
        hidden, traffic = found.pop("hidden"), found.pop("traffic")
        room = None if place.device.memory == inf else place.device.memory
        device = {"name": place.device.name, "bytes": room}
        return {
            "graph": asdict(self.size),
            "network": asdict(self.network),
            "device": device | {"from": place.device.where, "rates": place.rates.document()},
            "devices": place.devices,
            "machines": place.machines,
            "bytes": asdict(self.memory) | {"total": self.memory.total},
            "seconds": found | {"total": self.seconds.total},
            "cut": asdict(place.cut) | {"bytes_a_layer": traffic, "hidden": hidden},
            "fits": self.fits,
        }


def estimate(
    size: Size, network: Network, device: Device, cut: Cut, devices: int = 1, machines: int = 1
) -> Cost:
    """Both costs; on a CPU, its rates are measured now."""
    part = replace(size, n=cut.nodes, entries=round(size.entries * cut.nodes / size.n))
    if device is H200:
        rates = h200_rates(network, cut.nodes)
    else:
        rates = calibrate(part, network, whole=devices == 1)
    where = Place(device=device, rates=rates, cut=cut, devices=devices, machines=machines)
    return cost_at(size, network, where)


def cost_at(size: Size, network: Network, place: Place) -> Cost:
    """Both costs on a place whose rates are known."""
    held = memory(size, network, place.device, place.cut, place.devices)
    return Cost(size, network, place, held, seconds(size, network, place))


def chosen_memory(asked: str, network: Network, nodes: int, device: Device) -> Network:
    """The network with the memory asked for; auto as `train` chooses it."""
    if asked == "auto":
        item = 8 if network.precision == "float64" else 4
        state = nodes * network.width * network.replicas * item
        host = inf if device.kind == "cuda" else 0.0
        way = choose_held(network.layers, state, device.memory, host)
        return replace(network, memory=way)
    if asked == "offload" and device.kind == "cpu":
        raise InputError("memory offload is for GPUs: on a CPU, all memory is the host's")
    if asked in WAYS:
        return replace(network, memory=asked)
    raise InputError(f"memory must be auto, keep, recompute or offload, got {asked!r}")


def cut_of(size: Size, devices: int, graph: Graph | None) -> Cut:
    """Measured by METIS where the graph is at hand and not too large; else estimated."""
    if devices > size.n:
        raise InputError(
            f"a graph of {size.n:,} nodes cannot be cut over {devices} devices; take fewer"
        )
    if devices == 1:
        return uncut(size.n)
    if graph is None or size.entries > MOST:
        return estimated_cut(size, devices)
    from gcnii.propagation import adjacency  # loads torch
    from gcnii.train.clusters import metis

    A = adjacency(graph)
    labels = metis(A, devices)
    return estimated_cut(size, devices) if labels is None else measured_cut(A, labels, "metis")


def changes(cost: Cost) -> Iterator[tuple[str, Memory]]:
    """What would make a training fit that does not, the cheapest first."""
    if cost.fits:
        return
    size, network, device = cost.size, cost.network, cost.place.device
    cut, devices = cost.place.cut, cost.place.devices
    room = ROOM * device.memory
    ways = ["recompute"] if network.memory == "keep" else []
    ways += ["offload"] if network.memory != "offload" and device.kind == "cuda" else []
    for way in ways:
        held = memory(size, chosen_memory(way, network, cut.nodes, device), device, cut, devices)
        if held.total <= room:
            yield f"--memory {way}", held
    least = network if network.memory != "keep" else replace(network, memory="recompute")
    for more in _doubled(devices, min(size.n, MOST_DEVICES)):
        held = memory(size, least, device, estimated_cut(size, more), more)
        if held.total <= room:
            yield f"--devices {more} --memory {least.memory}", held
            break
    for width in _halved(network.width):
        held = memory(size, replace(least, width=width), device, cut, devices)
        if held.total <= room:
            yield f"--width {width} --memory {least.memory}", held
            break


def _doubled(number: int, most: int) -> Iterator[int]:
    while (number := 2 * number) <= most:
        yield number


def _halved(number: int) -> Iterator[int]:
    while (number := number // 2) >= LEAST_WIDTH:
        yield number


NUMBERS = 1 << 24  # of a matrix, at most: 64 MB, more than malloc keeps
ALL_NUMBERS = 1 << 25  # of all matrices together
LEAST_NODES = 1000
SPENT = 0.08  # seconds on each of the five rates
SHORTEST = 1e-6  # seconds of a call
LAYER, EPOCH = 100e-6, 1e-3  # seconds of Python, for a layer and for the rest of an epoch


def calibrate(size: Size, network: Network, *, whole: bool) -> Rates:
    """The rates of one thread of this CPU, measured in less than a second.

    The graph is drawn, of this degree and at most this number of nodes.  Matrices take turns, as
    many as a training keeps: what it reads was written long before, and is in no cache any more.

    whole  whether one process has the whole graph: then layers may be compiled
    """
    import torch

    from gcnii.dropout import InplaceDropout, epoch_key
    from gcnii.nn.engine.fused import are_compiled, dense_product
    from gcnii.propagation.sparse import multiply_each
    from gcnii.train.hardware import large_blocks_kept, trim_memory, tuned_cpu

    h = network.width
    n = min(size.n, max(LEAST_NODES, NUMBERS // h))
    entries = max(1, round(n * size.degree))
    dtype = torch.float64 if network.precision == "float64" else torch.float32
    with tuned_cpu(1), large_blocks_kept(network.memory == "keep"), torch.no_grad():
        trim_memory()
        count = min(2 * network.layers, max(2, ALL_NUMBERS // (n * h)))
        turns = deque(torch.rand(1, n, h, dtype=dtype) for _ in range(count))

        def turn() -> Tensor:
            turns.rotate(-1)
            return turns[0]  # and turns[-1] is the one before

        def put(product: Callable[[Tensor], Tensor]) -> None:
            result = product(turns[0])
            turn()
            turns[0] = result  # new memory, in the place of the oldest one

        W, out = torch.rand(1, h, h, dtype=dtype), torch.empty(1, h, h, dtype=dtype)
        drop, key = InplaceDropout(turn(), 1 << 15), epoch_key(torch.zeros(1).long(), 0)
        pattern, values = _drawn_pattern(n, entries), torch.ones(1, entries, dtype=dtype)
        numbers, item = n * h, W.element_size()
        typical = partial(_typical, size=numbers * item)
        gather = typical(lambda: put(lambda H: multiply_each(pattern, values, H)))
        return Rates(
            bandwidth=3 * numbers * item / typical(lambda: turn().add_(turns[-1], alpha=0.1)),
            gather=entries * h / gather,
            beyond=entries * h / gather * item,
            cache=inf,  # measured as it is, in the cache or not
            operations=2 * numbers * h / typical(lambda: put(lambda H: dense_product(H, W))),
            gradient=2 * numbers * h / typical(lambda: torch.bmm(turn().mT, turns[-1], out=out)),
            mask=typical(lambda: drop(turn(), key)) / numbers,
            layer=LAYER,
            epoch=EPOCH,
            compiled=whole and are_compiled(h, dtype),
        )


def _drawn_pattern(n: int, entries: int) -> Pattern:
    import torch

    from gcnii.propagation.sparse import Pattern

    rows = torch.linspace(0, entries, n + 1, dtype=torch.float64).int()
    generator = torch.Generator().manual_seed(0)
    columns = torch.randint(n, (entries,), generator=generator, dtype=torch.int32)
    return Pattern(rows, columns, (n, n))


def _typical(run: Callable[[], object], size: int) -> float:
    """CPU seconds of a call that makes a matrix of `size` bytes: of five or more, the least.

    Of large matrices it is the median: malloc may have such a block at hand for one call, but asks
    the system for those of a training.  Smaller ones it keeps, once a few calls have been made.
    """
    run()
    times: list[float] = []
    end = time.process_time() + SPENT
    while len(times) < 5 or time.process_time() < end:
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    # A busy system's clock may stand still for a call.
    return max(SHORTEST, min(times) if size < LARGEST_POOLED else median(times))
