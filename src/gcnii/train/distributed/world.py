"""World: the processes that torchrun started, what they tell one another, and who is missed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from gcnii.errors import GcniiError

STARTED_BY = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun sets
MEETING = timedelta(minutes=30)  # in which all load the graph, and one of them cuts it
WAITING = timedelta(seconds=50)  # for an answer while training
SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE = 5.0  # seconds in which the survivors of a process say that they are alive


class Lost(GcniiError):
    """Another process did not answer."""


class Told(BaseException):
    """A signal told this process to end; what is under way is left, and nobody is asked."""


class RankEnded(GcniiError):
    """A process of the training has ended, and so the others must."""


def started() -> tuple[int, int]:
    """The number of this process and how many there are; 0 and 1 without torchrun."""
    if not all(os.environ.get(name) for name in STARTED_BY):
        return 0, 1
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


@dataclass(frozen=True, eq=False)
class World:
    """All processes of a training.

    rank    the number of this one
    size    how many there are
    hosted  whether rows on a GPU go over the host
    """

    rank: int
    size: int
    store: Store
    hosted: bool

    def total(self, sums: Tensor) -> Tensor:
        """The sum over all processes, the same bits on each; gradients pass as they are."""
        return Total.apply(sums, self)  # type: ignore[no-any-return, no-untyped-call]

    def added(self, sums: Tensor) -> Tensor:
        """The sum over all processes; torch records nothing."""
        sums = sums.detach().clone(memory_format=torch.contiguous_format)
        with _asking():
            dist.all_reduce(sums)
        return sums

    def most(self, numbers: Tensor) -> Tensor:
        """The largest of all processes, number by number."""
        numbers = numbers.clone()
        with _asking():
            dist.all_reduce(numbers, dist.ReduceOp.MAX)
        return numbers

    def gathered(self, rows: Tensor) -> Tensor:
        """The rows of all processes, one process after the other."""
        home, rows = rows.device, rows.detach().contiguous()
        rows = rows.cpu() if self.hosted else rows
        counts = torch.zeros(self.size, dtype=torch.int64)
        counts[self.rank] = len(rows)
        boxes = [rows.new_empty(one, *rows.shape[1:]) for one in self.added(counts).tolist()]
        boxes[self.rank] = rows
        with _asking():
            for rank, box in enumerate(boxes):
                dist.broadcast(box, rank)
        return torch.cat(boxes).to(home)

    def any(self, here: bool) -> bool:
        """Whether it is so in one process or more."""
        return bool(self.added(torch.tensor(int(here))))

    def same(self, number: int) -> bool:
        """Whether all processes have the same number."""
        ends = torch.tensor([number, -number])
        with _asking():
            dist.all_reduce(ends, dist.ReduceOp.MAX)
        return bool(ends.sum() == 0)

    def from_first(self, numbers: Tensor) -> Tensor:
        """The numbers that rank 0 has, in the shape and type that all have."""
        with _asking():
            dist.broadcast(numbers, 0)
        return numbers

    def hurry(self) -> None:
        """From now on, nobody waits long for an answer: all are training."""
        dist.distributed_c10d._set_pg_timeout(WAITING)

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """Rank 0 is within before the others are."""
        if self.rank:
            self.any(False)
        yield
        if not self.rank:
            self.any(False)

    def exchange(
        self, rows: Tensor, sent: Sequence[int], received: Sequence[int]
    ) -> Callable[[], Tensor]:
        """Send rows to each process, and receive some: a function that waits for these.

        sent, received  how many rows, for each process
        """
        home = rows.device
        rows = (rows.cpu() if self.hosted else rows).contiguous()
        inbox = rows.new_empty(sum(received), *rows.shape[1:])
        with _asking():
            work = dist.all_to_all_single(inbox, rows, list(received), list(sent), async_op=True)

        def wait() -> Tensor:
            with _asking():
                work.wait()
            return inbox.to(home)

        return wait

    def missing(self) -> list[int]:
        """The processes that do not say in time that they are alive; asks the store, not them."""
        self.store.set(f"alive/{self.rank}", "yes")
        end = time.monotonic() + GRACE
        while True:
            absent = [i for i in range(self.size) if not self.store.check([f"alive/{i}"])]
            if not absent or time.monotonic() > end:
                return absent
            time.sleep(0.1)


class Total(torch.autograd.Function):
    """The sum over the processes.  Each differentiates by its own part, so gradients pass."""

    @staticmethod
    def forward(ctx: Any, sums: Tensor, world: World) -> Tensor:
        """Add up."""
        return world.added(sums)

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, None]:
        """The gradient as it is."""
        return G, None


@contextmanager
def _asking() -> Iterator[None]:
    """Within, a failure of torch.distributed means that another process is lost."""
    try:
        yield
    except RuntimeError as error:
        raise Lost(f"another process does not answer: {error}") from error


@contextmanager
def joined(device: torch.device) -> Iterator[World | None]:
    """The world of this process, until its end; None where it is alone.

    Within, a signal to stop ends the process at once: a training of several processes resumes from
    its last checkpoint.
    """
    rank, size = started()
    if size == 1:
        yield None
        return
    store, *_ = next(rendezvous("env://", timeout=MEETING))
    fast = device.type == "cuda" and _a_gpu_each()  # NCCL takes one process a GPU
    backend = "cpu:gloo,cuda:nccl" if fast else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=MEETING)
    world = World(rank, size, PrefixStore("gcnii", store), not fast)
    with _telling():
        try:
            try:
                yield world
            except Lost:
                _stop_listening()  # a signal that comes before this is caught below, with the rest
                raise
        except (Lost, Told) as error:
            _stop_listening()
            raise _obituary(world) from error
        finally:
            _leave()


def own_device(device: torch.device) -> torch.device:
    """The GPU of this process, where it is to use one and they are not numbered yet."""
    if str(device) != "cuda" or started()[1] == 1:
        return device
    local = int(os.environ.get("LOCAL_RANK", "0"))
    return torch.device("cuda", local % torch.cuda.device_count())


def _a_gpu_each() -> bool:
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= torch.cuda.device_count()


@contextmanager
def _telling() -> Iterator[None]:
    """Within, the first SIGINT or SIGTERM raises Told."""
    told = list[int]()

    def tell(number: int, frame: FrameType | None) -> None:
        told.append(number)
        if len(told) == 1:
            raise Told(signal.Signals(number).name)

    earlier = {number: signal.signal(number, tell) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _stop_listening() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _obituary(world: World) -> RankEnded:
    """Who is missed, for the user; those who still wait for this process are let go first."""
    _leave()
    resume = "run the same command again to resume from the last checkpoint"
    try:
        absent = world.missing()
    except RuntimeError:  # the store is gone, too
        return RankEnded(f"another of {world.size} processes ended; {resume}")
    if not absent:
        return RankEnded(f"all {world.size} processes were stopped; {resume}")
    who = "rank" if len(absent) == 1 else "ranks"
    names = ", ".join(map(str, absent))
    return RankEnded(f"{who} {names} of {world.size} ended, and so did the others; {resume}")


def _leave() -> None:
    with suppress(Exception):  # of a world that has fallen apart
        if dist.is_initialized():
            dist.destroy_process_group()
