"""gcnii plan: what a training will take, before it is started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table

from gcnii.cli.options import Json, print_json, refuse_below_one
from gcnii.cli.terminal import say, table_console
from gcnii.cost import (
    GIB,
    H200,
    MATRICES,
    PER_MACHINE,
    WHOLE,
    Cost,
    Device,
    Network,
    changes,
    chosen_memory,
    cut_of,
    estimate,
    this_cpu,
)
from gcnii.data import CATALOG, load
from gcnii.data.catalog import KNOWN, Size, counted, size_of
from gcnii.errors import DataError, InputError, notice
from gcnii.files import user_path
from gcnii.report.tables import plain_table
from gcnii.train.presets import Settings, first_point, preset, presets_for

# torch takes seconds to import; a plan from counts alone does without: hence imports below
if TYPE_CHECKING:
    from gcnii.graph import Graph

Source = Annotated[
    str,
    Parameter(
        help="A name from `gcnii data list`, the path of a graph, or a graph of known size: "
        f"{', '.join(KNOWN)}."
    ),
]
Model = Annotated[str, Parameter(help=f"One of {', '.join(MATRICES)}.")]
Machines = Annotated[
    int | None, Parameter(help=f"Machines they are in; default: one for {PER_MACHINE} devices.")
]
DRIVER = Path("/proc/driver/nvidia")
KINDS = {
    "P": "P̃",
    "X": "X",
    "weights": "weights, Adam",
    "kept": "activations kept",
    "work": "work space",
    "halo": "halo buffers",
}


def plan(
    graph: Source,
    /,
    *,
    model: Model = "gcnii",
    layers: int | None = None,
    width: int | None = None,
    precision: str = "float32",
    memory: str = "auto",
    device: str = "auto",
    devices: int = 1,
    machines: Machines = None,
    json: Json = False,
) -> None:
    """Say what a training will take: memory by kind, seconds an epoch, traffic between devices.

    Parameters
    ----------
    layers
        Number of layers; default: that of `gcnii train`.
    width
        Width of a layer; default: that of `gcnii train`.
    precision
        float32, float64, tf32 or bfloat16.
    memory
        auto, keep, recompute or offload, which keeps activations on the host.
    device
        cpu: this machine, measured now; h200; auto: the device here.
    devices
        Number of devices, or of processes on a CPU.
    """
    refuse_below_one(layers=layers, width=width, devices=devices)
    machines = _machines(devices, machines)
    where = _device(device)
    Network(model=model, precision=precision)  # refuses before anything is read
    data, size = _found(graph)
    if data is not None and data.typed:
        notice(
            f"{data.name} has edges of {data.type_count} types, and this is what it takes with "
            "--edge-types ignore: a matrix for each, and layers that are not fused, take more"
        )
    depth, wide = _shape(graph, data, model)
    network = Network(model=model, precision=precision, layers=layers or depth, width=width or wide)
    cut = cut_of(size, devices, data)
    network = chosen_memory(memory, network, cut.nodes, where)
    cost = estimate(size, network, where, cut, devices, machines)
    if json:
        others = [{"flags": flags, "bytes": held.total} for flags, held in changes(cost)]
        print_json({"name": graph} | cost.document() | {"changes": others})
        return
    _print(graph, cost)


def _machines(devices: int, machines: int | None) -> int:
    refuse_below_one(machines=machines)
    found = machines or -(-devices // PER_MACHINE)
    if devices % found:
        raise InputError(
            f"--devices must be the same number on each machine, got {devices} on {found}"
        )
    return found


def _device(word: str) -> Device:
    if word == "auto":
        word = "cuda" if DRIVER.exists() else "cpu"
    if word == "cpu":
        return this_cpu()
    if word == "cuda":
        _refuse_other_cards()
    elif word != "h200":
        raise InputError(f"device must be auto, cpu or h200, got {word!r}")
    return H200


def _refuse_other_cards() -> None:
    import torch

    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device"
    if "H200" not in name:
        raise InputError(f"plans are made for an H200 and for CPUs, got {name}; give --device")


def _found(source: str) -> tuple[Graph | None, Size]:
    """The graph, if it is at hand, and its size."""
    known = counted(source)
    if source not in CATALOG and known and not user_path(source).exists():
        return None, known
    if source not in CATALOG and not known and not _is_path(source):
        raise InputError(
            f"no graph {source!r}; give a name from `gcnii data list`, the path of a graph, or one "
            f"of {', '.join(KNOWN)}"
        )
    try:
        graph = load(source, offline=True)
    except DataError:
        if source not in CATALOG or not known:
            raise
        return None, known  # its files were not fetched
    return graph, size_of(graph)


def _is_path(source: str) -> bool:
    return any(sign in source for sign in "/.\\") or user_path(source).exists()


def _shape(name: str, graph: Graph | None, model: str) -> tuple[int, int]:
    """Layers and width of this model, as `train` chooses them."""
    found: Settings = {}
    if graph is None:
        point = first_point(model)
        found = preset(name, model) or (point.settings if point else {})
    else:
        for _, settings in presets_for(model, graph):
            found |= settings
    return found.get("layers", Network.layers), found.get("width", Network.width)


def _print(name: str, cost: Cost) -> None:
    console = table_console()
    for line in _about(name, cost):
        say(line)
    print()
    console.print(_memory_table(cost))
    print()
    console.print(_seconds_table(cost))
    for line in (*_traffic(cost), *_verdict(cost)):
        say(line)


def _about(name: str, cost: Cost) -> Iterator[str]:
    size, network, place = cost.size, cost.network, cost.place
    source = "" if size.exact else " (from counts alone)"
    yield (
        f"{name}: {size.n:,} nodes, {size.entries:,} entries of P̃, {size.d:,} features, "
        f"{size.k} classes{source}"
    )
    machines = f" in {place.machines} machines" if place.machines > 1 else ""
    yield (
        f"{network.model}, {network.layers} layers × {network.width}, {network.precision}, memory "
        f"{network.memory}, on {place.devices} × {place.device.name}{machines}"
    )
    yield place.device.where


def _memory_table(cost: Cost) -> Table:
    table = plain_table("memory of a device", "")
    for kind, word in KINDS.items():
        table.add_row(word, amount(getattr(cost.memory, kind)))
    table.add_row("all", amount(cost.memory.total))
    if cost.memory.host:
        table.add_row("on the host, pinned", amount(cost.memory.host))
    return table


def _seconds_table(cost: Cost) -> Table:
    table = plain_table("seconds an epoch", "")
    found = cost.seconds
    rows = {"products by P̃": found.sparse, "products by weights": found.dense}
    rows |= {"passes, masks": found.passes, "around the layers": found.around}
    if cost.place.devices > 1:
        rows["exchange, not hidden"] = found.exchange
    if cost.memory.host:
        rows["to the host, not hidden"] = found.host
    for word, number in (rows | {"all": found.total}).items():
        table.add_row(word, f"{number:.3g}")
    return table


def _traffic(cost: Cost) -> Iterator[str]:
    place, found = cost.place, cost.seconds
    if place.devices == 1:
        return
    how = f"{place.cut.how}, from the mean degree" if place.cut.how == "estimated" else "by METIS"
    cut = place.cut
    yield ""
    yield (
        f"halo: {cut.halo:,} rows beside {cut.nodes:,} of its own, {cut.halo / cut.nodes:.0%} "
        f"({how}); {cut.crossing:.0%} of the edges cross"
    )
    yield (
        f"traffic: {amount(found.traffic)} received a layer in each direction, {found.hidden:.0%} "
        "of its time hidden behind the product by a device's own columns"
    )
    whole = amount(WHOLE * cost.size.entries)
    yield f"loaded in parts (`gcnii data pack --parts`); else each device holds {whole} more"


def _verdict(cost: Cost) -> Iterator[str]:
    room = cost.place.device.memory
    has = "" if room == float("inf") else f" of {amount(room)}"
    yield ""
    if cost.fits:
        yield f"it fits: {amount(cost.memory.total)}{has}"
        return
    yield f"it does not fit: {amount(cost.memory.total)}{has}; what would:"
    found = list(changes(cost))
    yield from (f"  {flags}" for flags, _ in found)
    if not found:
        yield "  nothing that was tried: fewer layers, or batches of the graph"


def amount(size: float) -> str:
    """Bytes, in MiB or GiB."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / 2**20:.1f} MiB"
