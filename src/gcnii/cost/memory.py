"""Memory of a process by kind: what a training holds at its peak."""

from __future__ import annotations

from dataclasses import dataclass

from gcnii.cost.cut import Cut
from gcnii.cost.device import Device
from gcnii.cost.network import Kind, Network, form_of
from gcnii.data.sizes import Size

# Bytes for each entry of P̃: its links, both orders of its values and columns, and on a GPU the
# kernels' layouts of both.  The difference of two lines of `gcnii bench edges`, by their entries.
ENTRY: dict[Kind, float] = {"cuda": 129, "cpu": 88}
# Bytes for each number of a sparse X: values and columns in both orders, and what dropout leaves;
# the last for each replica.
STORED, DROPPED = {"cuda": 60, "cpu": 38}, 8
# Copies of a dense X: as it is, and with dropout; on a CPU its hashed numbers, of half the size.
COPIES = {"cuda": 2.0, "cpu": 2.5}
# Copies of the weights: now, at the best epoch, Adam's two moments, the gradient and its parts.
WEIGHTS = {"cuda": 6.5, "cpu": 7.0}
# Matrices of n · h beside those that are kept: H0, gradients and masks in the making.
WORK = {"cuda": 5.0, "cpu": 7.0}
# On a CPU, smaller matrices are not handed back: see `hardware.tuned_cpu`.  Then these are held.
SMALL, POOLED, POOLED_AGAIN = 32 << 20, 16.0, 22.0


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
    kind, form = device.kind, form_of(network, device.kind, devices)
    item, share = network.item(kind), cut.nodes / size.n
    wide = 2 if network.precision == "float64" else 1
    matrix = cut.nodes * network.width * item * network.replicas
    P = ENTRY[kind] * size.entries * share * (1 if wide == 1 else 1.3)
    weights = WEIGHTS[kind] * 4 * wide * network.weights(size.d, size.k) * network.replicas
    kept, host = _kept(network, form.kept)
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


def _kept(network: Network, each: int) -> tuple[float, float]:
    """Matrices that are kept on the device, and on the host."""
    if network.memory == "keep":
        return each * network.layers, 0.0
    at_hand = each * min(network.segment, network.layers)
    if network.memory == "offload":
        return at_hand + 2, network.offloaded  # one on its way in, and one out
    return network.segments + at_hand, 0.0


def _work(network: Network, kind: Kind, matrix: float) -> float:
    if kind == "cpu" and matrix < SMALL:
        return POOLED if network.memory == "keep" else POOLED_AGAIN
    return WORK[kind]


def _features(size: Size, kind: Kind, network: Network) -> float:
    if not size.sparse:
        return COPIES[kind] * 4 * size.stored
    more = DROPPED * network.replicas if kind == "cuda" else 0
    return (STORED[kind] + more) * size.stored
