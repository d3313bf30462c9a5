"""An epoch as one CUDA graph: hundreds of small kernels launched at once, not one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch

from gcnii.train.hardware import is_gpu

Work = Callable[[], object]
Pool: TypeAlias = Any  # torch's handle has no public type
WARM = 3  # epochs run kernel by kernel first: torch allocates, Triton compiles, caches fill


class CapturedEpoch:
    """Calls an epoch; after a few times, as a CUDA graph.

    The epoch may change tensors in place only.  Capturing computes nothing, so nothing in it may
    depend on values that the host has read.

    why_not  a sentence on why there is no graph, if there is none
    refused  whether that was found out by trying
    """

    def __init__(
        self,
        device: torch.device,
        why_not: str = "",
        stream: torch.cuda.Stream | None = None,
        pool: Pool | None = None,
    ):
        self.device = device
        self.capture = CAPTURES.get(device.type)
        self.why_not = why_not or ("" if self.capture else f"there are none on a {device.type}")
        self.refused = False
        self.stream = torch.cuda.Stream(device) if is_gpu(device) and not stream else stream
        self.pool = torch.cuda.graph_pool_handle() if is_gpu(device) and not pool else pool
        self.warm = 0
        self.replay: Work | None = None

    def another(self) -> CapturedEpoch:
        """For another epoch, in the same memory: graphs that take turns can share it."""
        return CapturedEpoch(self.device, self.why_not, self.stream, self.pool)

    def __call__(self, epoch: Work) -> None:
        """One epoch; the stream of the caller waits for it, the host does not."""
        with _aside(self.stream):
            if not self.replay and not self.why_not and self.warm == WARM:
                self._try(epoch)
            if self.replay:
                self.replay()
            else:
                epoch()
                self.warm += 1

    def _try(self, epoch: Work) -> None:
        assert self.capture
        try:
            self.replay = self.capture(epoch, self.pool)
        except torch.OutOfMemoryError:
            raise  # without a graph it would not fit either; the caller may try fewer replicas
        except RuntimeError as error:
            # What broke the capture, and not what its end met with because of it.
            first = error.__context__ if isinstance(error.__context__, RuntimeError) else error
            self.refused, self.why_not = True, str(first).splitlines()[0]


@contextmanager
def _aside(stream: torch.cuda.Stream | None) -> Iterator[None]:
    """Within, on this stream: the default one cannot be captured, and warm-up belongs on it too."""
    if stream is None:
        yield
        return
    before = torch.cuda.current_stream(stream.device)
    stream.wait_stream(before)
    with torch.cuda.stream(stream):
        yield
    before.wait_stream(stream)


def cuda_graph(epoch: Work, pool: Pool | None) -> Work:
    """Capture on the current stream, into memory of this pool."""
    graph = torch.cuda.CUDAGraph()
    # What other threads do meanwhile goes to streams of their own and breaks nothing here.
    with torch.cuda.graph(graph, pool, torch.cuda.current_stream(), "thread_local"):
        epoch()
    return graph.replay


CAPTURES: dict[str, Callable[[Work, Pool | None], Work]] = {"cuda": cuda_graph}
