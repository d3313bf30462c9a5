"""Seconds an epoch: a training step and an evaluation, from the rates of a device."""

from __future__ import annotations

from dataclasses import dataclass

from gcnii.cost.cut import Cut
from gcnii.cost.device import Device, Rates
from gcnii.cost.network import Form, Network, form_of
from gcnii.data.sizes import Size

SPARSE = 3  # sparse products of a layer: forward, backward and in evaluation
# Passes over n · h and n · k numbers outside of the layers: both dense maps with their dropout, and
# the loss with its gradient; and over the weights, in Adam.
AROUND, LOSS, ADAM = 24, 60, 12
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
        """All of them."""
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
    form = form_of(network, place.device.kind, place.devices)
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
    numbers = AROUND * n * h * replicas + LOSS * n * size.k * replicas + ADAM * weights
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
