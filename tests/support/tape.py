"""A stand-in for a CUDA graph: an epoch's operations on tensors, written down once and played back
without its Python.

As with a graph, whatever else the epoch does on the host is not done again, and each operation sees
the same tensors.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

aten = torch.ops.aten
# What asks the device for a number or copies one to it: neither can be captured.
WAITS = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.lift_fresh.default,
}


class Tape(TorchDispatchMode):
    """Within, operations are done and written down."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.calls.append((function, args, kwargs or {}, result))
        return result

    @torch.no_grad()
    def play(self):
        """Do the operations again, on what the tensors hold now."""
        now = {}

        def current(tensor):
            return now.get(id(tensor), tensor)

        for function, args, kwargs, result in self.calls:
            args, kwargs = tree_map_only(torch.Tensor, current, (args, kwargs))
            again = function(*args, **kwargs)
            old, new = (tree_flatten(one)[0] for one in (result, again))
            now |= {
                id(one): two
                for one, two in zip(old, new, strict=True)
                if isinstance(one, torch.Tensor)
            }

    @property
    def waits(self):
        """The operations that no CUDA graph can hold."""
        return [
            str(function)
            for function, args, *_ in self.calls
            if function in WAITS or _counts(function, args)
        ]


def _counts(function, args):
    """Whether how much comes out depends on what is in a mask."""
    if function not in (aten.index.Tensor, aten.index_put_.default):
        return False
    return any(one is not None and one.dtype == torch.bool for one in args[1])


def record(tapes):
    """For `CAPTURES`: a capture that also does the epoch, so that its first replay has nothing left
    to do.
    """

    def capture(epoch, pool):
        with Tape() as tape:
            epoch()
        tapes.append(tape)
        plays = iter([lambda: None])
        return lambda: next(plays, tape.play)()

    return capture
