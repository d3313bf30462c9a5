"""How activations wait for backward: kept, computed again, or offloaded to the host.

Counts and rules that training follows and that a plan foretells.  Nothing here loads torch.
"""

from __future__ import annotations

from math import isqrt
from typing import Literal

Held = Literal["keep", "recompute", "offload"]

# Up to this width a GPU computes a layer in one kernel; wider matrices are multiplied faster on
# their own.  Where this many rows keep it busy, so are float32 matrices beyond the second width,
# whose product takes too many registers.
NARROW, NARROW_IF_BUSY, BUSY = 128, 64, 1 << 14
# bytes; larger blocks glibc hands back to the system at once: the most that it allows for
# MMAP_THRESHOLD, and more than a layer's activations take on Pubmed
LARGEST_POOLED = 32 << 20
# Where freed blocks are kept on a CPU: matrices of n · h that a training holds beside those that it
# keeps for backward.
POOLED = 16
# Layers of a segment whose input goes to the host: a GPU computes four in a few times what a copy
# of one state takes, and shorter segments would fill the host's memory.
OFFLOADED = 4
# Numbers that backward keeps of each activation: before the weights, after the ReLU, the mask (two
# of them where the layers are fused).
KEPT = 3
# Share of the free memory that they may take; weights, Adam's moments and the current layer need
# some too.
SHARE = 0.7
# Where segments are recomputed, states of the whole graph beside their inputs and activations: H0
# and the sum of its gradient, the gradients of a layer's input, product and output, and buffers.
AROUND = 10
FILLED = 0.9  # share of the free memory that may be taken where all of it is counted


def is_one_kernel(rows: int, width: int, *, halves: bool) -> bool:
    """Whether a GPU computes a layer in one kernel.

    rows    over all replicas
    halves  whether numbers have 16 bits
    """
    return width <= (NARROW if halves or rows < BUSY else NARROW_IF_BUSY)


def segment_length(layers: int, *, offloads: bool = False) -> int:
    """The number of layers whose activations are computed again together.

    Backward needs two numbers per entry of the segment at hand, and the inputs of all segments: the
    sum of layers / length and 2 length is least at length = √(layers / 2).  Where the inputs wait
    on the host, shorter segments need less of the device.
    """
    length = isqrt(max(layers - 1, 0) // 2) + 1
    return min(length, OFFLOADED) if offloads else length


def segments(layers: int, *, offloads: bool = False) -> int:
    """The number of segments of layers, whose inputs wait for backward."""
    return -(-layers // segment_length(layers, offloads=offloads))


def choose_held(layers: int, state: float, free: float, host: float) -> Held:
    """How to hold the activations of these layers; no result depends on it.

    state  bytes of a layer's state, of all replicas
    free   bytes of the device
    host   bytes of the host, to which they can be offloaded; 0 on a CPU
    """
    if layers * KEPT * state <= SHARE * free:
        return "keep"
    recomputed = segments(layers) + KEPT * segment_length(layers) + AROUND
    fits = recomputed * state <= FILLED * free
    if fits or segments(layers, offloads=True) * state > FILLED * host:
        return "recompute"
    return "offload"
