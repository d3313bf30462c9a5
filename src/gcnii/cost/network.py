"""Network: what of a training decides its cost, and how its layers are computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, isqrt
from typing import Literal

from gcnii.errors import InputError, did_you_mean

Way = Literal["keep", "recompute", "offload"]  # what becomes of activations
Kind = Literal["cpu", "cuda"]

# Matrices of weights in a layer.
MODELS = {"gcnii": 1, "gcnii-star": 2, "gcnii-star-printed": 2, "gcnii-plus": 1}
PRECISIONS = ("float32", "float64", "tf32", "bfloat16")
NARROW = 128  # up to this width a GPU computes a layer in one kernel
OFFLOADED = 4  # layers, at most, between two activations in the host's memory


@dataclass(frozen=True, kw_only=True)
class Network:
    """A model of this depth and width, and how it is trained."""

    model: str = "gcnii"
    layers: int = 64
    width: int = 64
    precision: str = "float32"
    memory: Way = "keep"
    replicas: int = 1

    def __post_init__(self) -> None:
        """Refuse what no plan is made of."""
        if self.model not in MODELS:
            guess = did_you_mean(self.model, MODELS)
            raise InputError(f"plans are made of {', '.join(MODELS)}, got {self.model!r}; {guess}")
        if self.precision not in PRECISIONS:
            raise InputError(
                f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}"
            )

    @property
    def matrices(self) -> int:
        """Matrices of weights in a layer."""
        return MODELS[self.model]

    def item(self, kind: Kind) -> int:
        """Bytes of a number of an activation on this kind of device."""
        halves = kind == "cuda" and self.precision == "bfloat16"
        return 8 if self.precision == "float64" else 2 if halves else 4

    def weights(self, d: int, k: int) -> int:
        """The number of weights."""
        h = self.width
        return self.layers * self.matrices * h * h + (d + 1) * h + (h + 1) * k

    @property
    def segment(self) -> int:
        """Layers whose activations are computed again together, as `GCNIISkeleton` has them."""
        length = isqrt(max(self.layers - 1, 0) // 2) + 1
        return min(length, OFFLOADED) if self.memory == "offload" else length

    @property
    def segments(self) -> int:
        """How many of them there are."""
        return ceil(self.layers / self.segment)

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
    masked    whether dropout's masks are hashed in steps of their own
    """

    forward: float
    backward: float
    evaluation: float
    products: tuple[int, int, int]
    kept: int
    masked: bool


# One kernel a layer in each direction (performance.md counts its passes).
NARROW_ON_GPU = Form(4, 6, 3, (1, 3, 1), kept=2, masked=False)
# Gather, product and ReLU with dropout apart.
WIDE_ON_GPU = Form(6, 9, 6, (1, 2, 1), kept=2, masked=False)
# nn/fused.py: α H0 is added (3 numbers), ReLU (2); backward adds to dH0 (3) and masks dZ (3).
ON_CPU = Form(5, 6, 5, (1, 2, 1), kept=2, masked=True)
# What several processes add to each of the three: the product by others' columns is written, and
# read by the one kernel, or added to the sums.
READ, ADDED = 2, 4


def form_of(network: Network, kind: Kind, devices: int) -> Form:
    """How this network's layers are computed."""
    narrow = kind == "cuda" and network.width <= NARROW
    form = NARROW_ON_GPU if narrow else ON_CPU if kind == "cpu" else WIDE_ON_GPU
    if devices == 1:
        return form
    more = READ if narrow else ADDED
    forward, backward, evaluation = form.forward, form.backward, form.evaluation
    return replace(
        form, forward=forward + more, backward=backward + more, evaluation=evaluation + more
    )
