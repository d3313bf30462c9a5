"""What a GPU computes by hand-written kernels (Triton): the same numbers as the plain code, only
faster.

They know tensors alone; who uses one asks `usable` and imports it where it is called, because most
machines have none.
"""

from functools import cache
from importlib.util import find_spec

from torch import Tensor


def usable(tensor: Tensor) -> bool:
    """Whether the kernels can take this tensor: Triton is there for its GPU, and 32 bits number a
    matrix's entries.
    """
    return tensor.is_cuda and _triton() and tensor.shape[-2:].numel() < 1 << 31


@cache
def _triton() -> bool:
    return find_spec("triton") is not None
