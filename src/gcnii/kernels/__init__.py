"""Hand-written GPU kernels (Triton): the same numbers as the plain code, only faster.

They know nothing but tensors.  A caller asks `usable` first and imports a kernel where it calls it,
because most machines have no Triton.
"""

from functools import cache
from importlib.util import find_spec

from torch import Tensor


def usable(tensor: Tensor) -> bool:
    """Whether the kernels take this tensor: on a GPU, with Triton, < 2^31 entries per matrix."""
    return tensor.is_cuda and _triton() and tensor.shape[-2:].numel() < 1 << 31


@cache
def _triton() -> bool:
    return find_spec("triton") is not None
