"""Cost: what a training will take on a place, whether it fits, and what to change if not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, get_args

from gcnii.cost.cut import MOST, Cut, estimated_cut, measured_cut, uncut
from gcnii.cost.device import H200, Device, Rates, h200_rates
from gcnii.cost.memory import Memory, memory
from gcnii.cost.network import Network, Way
from gcnii.cost.seconds import Place, Seconds, seconds
from gcnii.data.sizes import Size
from gcnii.errors import InputError
from gcnii.files import Document

if TYPE_CHECKING:
    from gcnii.graph import Graph

ROOM = 0.95  # share of a device's memory that a training can use; the rest is lost in pieces
# How auto chooses, as in `train.hardware`: activations are kept, 3 numbers of each, if they take at
# most this share of what is free; else computed again, if these take this share, with as many
# matrices around them; else offloaded.
KEPT, SHARE, FILLED, AROUND = 3, 0.7, 0.9, 10
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
        device = {"name": place.device.name, "bytes": _finite(place.device.memory)}
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


def _finite(number: float) -> float | None:
    return number if number < float("inf") else None


def estimate(
    size: Size, network: Network, device: Device, cut: Cut, devices: int = 1, machines: int = 1
) -> Cost:
    """Both costs; on a CPU, its rates are measured now."""
    rates = _rates(replace(size, n=cut.nodes, entries=_own(size, cut)), network, device)
    where = Place(device=device, rates=rates, cut=cut, devices=devices, machines=machines)
    return cost_at(size, network, where)


def cost_at(size: Size, network: Network, place: Place) -> Cost:
    """Both costs on a place whose rates are known."""
    held = memory(size, network, place.device, place.cut, place.devices)
    return Cost(size, network, place, held, seconds(size, network, place))


def _own(size: Size, cut: Cut) -> int:
    """The entries of a part."""
    return round(size.entries * cut.nodes / size.n)


def _rates(size: Size, network: Network, device: Device) -> Rates:
    if device is H200:
        return h200_rates(network)
    from gcnii.cost.calibrate import calibrate  # loads torch

    return calibrate(size, network)


def chosen_memory(asked: str, network: Network, nodes: int, device: Device) -> Network:
    """The network with the memory asked for; auto as `train` chooses it."""
    if asked == "auto":
        return replace(network, memory=_way(network, nodes, device))
    if asked == "offload" and device.kind == "cpu":
        raise InputError("memory offload is for GPUs: on a CPU, all memory is the host's")
    for known in get_args(Way):
        if asked == known:
            return replace(network, memory=known)
    raise InputError(f"memory must be auto, keep, recompute or offload, got {asked!r}")


def _way(network: Network, nodes: int, device: Device) -> Way:
    """What auto chooses."""
    item = 8 if network.precision == "float64" else 4
    matrix = nodes * network.width * network.replicas * item
    if KEPT * network.layers * matrix <= SHARE * device.memory:
        return "keep"
    again = replace(network, memory="recompute")
    held = (again.segments + KEPT * again.segment + AROUND) * matrix
    return "recompute" if device.kind == "cpu" or held <= FILLED * device.memory else "offload"


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
    from gcnii.train.batches.clusters import metis

    A = adjacency(graph)
    labels = metis(A, devices)
    return estimated_cut(size, devices) if labels is None else measured_cut(A, labels, "metis")


def changes(cost: Cost) -> Iterator[tuple[str, Memory]]:
    """What would make a training fit that does not, the cheapest first."""
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
