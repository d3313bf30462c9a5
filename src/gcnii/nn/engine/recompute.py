"""Less memory for depth: compute activations again in backward, and let inputs wait on the host.

The second pass gives the same bits as the first, because a dropout mask is a hash and not a stream
of random numbers: a function with dropout takes its key as an input, and runs under `keyed(key)`.

With a Stash, the inputs of segments of layers wait on the host.  While a segment is computed, a
stream beside the computing one copies the segment's input to pinned host memory; while it is
differentiated, the input of the segment before comes back.  On a CPU, the host's memory is the
memory at hand: nothing is copied.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import finalize

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gcnii.errors import GcniiError, UsageError
from gcnii.propagation.sparse import VmapInfo


def recompute(
    function: Callable[..., Tensor], *inputs: Tensor, place: SegmentInput | None = None
) -> Tensor:
    """function(*inputs), of which only the inputs are kept for backward.

    Gradients reach the inputs, so every weight must be one of them; what else `function` holds must
    not need a gradient and must be the same for all replicas.

    place  where the first input waits for backward; None: where it is
    """
    return Recompute.apply(function, place, *inputs)  # type: ignore[no-any-return, no-untyped-call]


class Recompute(torch.autograd.Function):
    """A function of tensors that runs again in backward; under vmap, the function is vmapped."""

    @staticmethod
    def forward(
        function: Callable[..., Tensor], place: SegmentInput | None, *inputs: Tensor
    ) -> Tensor:
        """Run the function; torch records nothing."""
        if place is not None:
            place.put(inputs[0])
        return function(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save the inputs, but for one that has a place of its own."""
        ctx.function, ctx.place, *tensors = inputs
        ctx.save_for_backward(*(tensors if ctx.place is None else tensors[1:]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, ...]:
        """Run the function again, this time recorded, and differentiate it."""
        needed = ctx.needs_input_grad[2:]
        first = () if ctx.place is None else (ctx.place.take(),)
        inputs = [
            tensor.detach().requires_grad_(need)
            for tensor, need in zip((*first, *ctx.saved_tensors), needed, strict=True)
        ]
        with torch.enable_grad():
            output = ctx.function(*inputs)
        wanted = [tensor for tensor in inputs if tensor.requires_grad]
        gradients = iter(torch.autograd.grad(output, wanted, G, allow_unused=True))
        return None, None, *(next(gradients) if need else None for need in needed)

    @staticmethod
    def vmap(
        info: VmapInfo,
        in_dims: tuple[int | None, ...],
        function: Callable[..., Tensor],
        place: SegmentInput | None,
        *inputs: Tensor,
    ) -> tuple[Tensor, int]:
        """Recompute all replicas in one pass."""
        return recompute(torch.func.vmap(function, in_dims[2:]), *inputs, place=place), 0


SPENT = (
    "with memory offload, backward runs only once, because what forward sent to the host's memory "
    "is then overwritten; run forward again"
)


class HostBuffer:
    """Bytes of the host's memory, pinned, so that a GPU copies from and to them while it computes.

    torch's own pinned memory has sizes that are powers of two, and is never handed back: 14 inputs
    of 4.7 GiB would take 112 GiB instead of 65.
    """

    def __init__(self, size: int, *, pinned: bool):
        self.size, self.bytes = size, _bytes(size)
        if pinned:
            self._pin()

    def _pin(self) -> None:
        self.bytes.zero_()  # by all threads; pinning would ask for the pages one after the other
        runtime, address = torch.cuda.cudart(), self.bytes.data_ptr()
        error = runtime.cudaHostRegister(address, self.size, 0)
        if int(error):
            raise GcniiError(
                f"cannot pin {self.size / 2**30:.1f} GiB of the host's memory "
                f"({runtime.cudaGetErrorString(error)}); use memory recompute"
            )
        finalize(self, _unpin, address).atexit = False  # at the exit, the driver does it

    def shaped(self, like: Tensor) -> Tensor:
        """The first bytes as a tensor of the same shape, strides and dtype."""
        numbers = self.bytes[: like.numel() * like.itemsize].view(like.dtype)
        return numbers.as_strided(like.shape, like.stride())


def _bytes(size: int) -> Tensor:
    """Memory in pages as large as the system has: less of them are asked for, and pinned."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):  # not on Linux
        return torch.empty(size, dtype=torch.uint8)
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return torch.frombuffer(memory, dtype=torch.uint8)


def _unpin(address: int) -> None:
    torch.cuda.synchronize()  # of a pass that was given up, copies may be under way
    torch.cuda.cudart().cudaHostUnregister(address)


class Stash:
    """Where the inputs of segments are between forward and backward.

    The buffers of a pass are used again by the next one, because to pin memory takes longer than to
    copy; they are freed with the stash.

    A tensor that the side stream reads or writes is held here until the computing stream has waited
    for it: its memory is given to others in the computing stream's order.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self.side = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.free: list[HostBuffer] = []
        self.last: SegmentInput | None = None
        self.moving: list[Tensor] = []

    def place(self, *, first: bool, last: bool) -> SegmentInput:
        """For the input of the next segment.

        The first one's is H0, which all segments need, and the last one's is needed as soon as
        backward begins: these two stay on the device.
        """
        if first:
            self.settle()
        before = None if first else self.last
        self.last = SegmentInput(self, before, stays=first or last or self.side is None)
        return self.last

    def settle(self) -> None:
        """Let the computing stream wait until nothing is under way."""
        if self.side is not None and self.moving:
            torch.cuda.current_stream(self.device).wait_stream(self.side)
        self.moving.clear()

    def copy(self, source: Tensor, target: Tensor, held: Tensor) -> None:
        """Copy beside the computing stream, once that has done all that it was told so far."""
        assert self.side is not None
        self.side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.side):
            target.copy_(source, non_blocking=True)
        self.moving.append(held)

    def buffer(self, size: int) -> HostBuffer:
        """A free one of this size or larger, else a new one in the place of a smaller one."""
        fitting = [one for one in self.free if one.size >= size]
        if fitting:
            found = min(fitting, key=lambda one: one.size)
            self.free.remove(found)
            return found
        if self.free:
            self.free.remove(max(self.free, key=lambda one: one.size))
        return HostBuffer(size, pinned=self.side is not None)


class SegmentInput:
    """The place of one segment's input; `before` is that of the segment before."""

    def __init__(self, stash: Stash, before: SegmentInput | None, *, stays: bool):
        self.stash, self.before, self.stays = stash, before, stays
        self.tensor: Tensor | None = None
        self.like: Tensor | None = None  # on the meta device: shape, strides and dtype
        self.buffer: HostBuffer | None = None

    def put(self, H: Tensor) -> None:
        """Take the input before its segment is computed; what left before is on the host then."""
        self.stash.settle()
        if self.stays:
            self.tensor = H
            return
        self.like = torch.empty_like(H, device="meta")
        self.buffer = self.stash.buffer(H.numel() * H.itemsize)
        self.stash.copy(H, self.buffer.shaped(self.like), held=H)

    def call(self) -> None:
        """Let it come back while the segment after it is differentiated."""
        if self.stays or self.buffer is None or self.like is None:
            return
        self.tensor = torch.empty_strided(
            self.like.shape, self.like.stride(), dtype=self.like.dtype, device=self.stash.device
        )
        self.stash.copy(self.buffer.shaped(self.like), self.tensor, held=self.tensor)
        # The next pass writes to it on the same stream, and so after this copy.
        self.stash.free.append(self.buffer)
        self.buffer = None

    def take(self) -> Tensor:
        """The input, once, for its segment to be differentiated."""
        if self.buffer is not None:  # nobody called
            self.call()
        if self.tensor is None:
            raise UsageError(SPENT)
        self.stash.settle()
        if self.before is not None:
            self.before.call()
        tensor, self.tensor, self.before = self.tensor, None, None
        return tensor
