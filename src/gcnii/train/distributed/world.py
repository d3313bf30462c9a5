"""World: the processes that torchrun started, what they tell one another, and which are lost."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event, Thread
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from gcnii.errors import GcniiError, InputError
from gcnii.files import is_running
from gcnii.train.group import handled_by
from gcnii.train.hardware import is_gpu

STARTED_BY = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun sets
JOINING = timedelta(seconds=50)  # for all to start; a process that never does is not waited for
MEETING = timedelta(minutes=30)  # in which all load the graph, and one of them cuts it
WAITING = timedelta(seconds=50)  # for an answer while training
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Seconds in which the survivors say that they are alive; torchrun kills them after 30.
GRACE = 20.0
SHOWN = 40  # characters of a value that processes do not share


class Lost(GcniiError):
    """Another process did not answer."""


class Told(BaseException):
    """A signal told this process to end; it does so at once, without asking the others."""


class RankEnded(GcniiError):
    """A process of the training has ended, and so the others must."""


def started() -> tuple[int, int]:
    """The number of this process and how many there are; 0 and 1 without torchrun."""
    if not all(os.environ.get(name) for name in STARTED_BY):
        return 0, 1
    size = _whole("WORLD_SIZE", 1, 2**31 - 1)
    return _whole("RANK", 0, size - 1), size


def _whole(name: str, least: int, most: int) -> int:
    """A number of the environment; InputError unless it is within."""
    word = os.environ[name]
    number = int(word) if word.isascii() and word.isdigit() else -1
    if not least <= number <= most:
        raise InputError(
            f"the environment's {name} must be an integer from {least} to {most}, got {word!r}; "
            "let torchrun set it"
        )
    return number


@dataclass(frozen=True, eq=False)
class World:
    """All processes of a training.

    rank    the number of this one
    size    how many there are
    hosted  whether rows on a GPU go over the host
    begun   set once all are training
    """

    rank: int
    size: int
    store: Store
    hosted: bool
    begun: Event = field(default_factory=Event)

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
        return bool(self.most(torch.tensor([number, -number])).sum() == 0)

    def from_first(self, numbers: Tensor) -> Tensor:
        """The numbers that rank 0 has, in the shape and type that all have."""
        with _asking():
            dist.broadcast(numbers, 0)
        return numbers

    def hurry(self) -> None:
        """Shorten the timeout: from now on all processes are training."""
        self.begun.set()
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

    def say_alive(self) -> None:
        """Note in the store that this process has survived the others."""
        self.store.set(f"alive/{self.rank}", "yes")

    def missing(self, end: float) -> list[int]:
        """The processes that have ended; asks the store and the system, not them.

        One of another machine has ended if it has not said at this time that it is alive.
        """
        while silent := [i for i in range(self.size) if not self.store.check([f"alive/{i}"])]:
            running = {i: self._is_running(i) for i in silent}
            if time.monotonic() > end or all(one is False for one in running.values()):
                return [i for i in silent if not running[i]]
            time.sleep(0.05)
        return []

    def _is_running(self, rank: int) -> bool | None:
        """Whether a process of this machine is running; None if it is of another."""
        if not self.store.check([f"process/{rank}"]):
            return None
        machine, _, number = self.store.get(f"process/{rank}").decode().rpartition(" ")
        return is_running(int(number)) if machine == _machine() else None

    def part(self, absent: Sequence[int], end: float) -> None:
        """Let the store go, which rank 0 keeps until those who are left have read it, too."""
        self.store.set(f"read/{self.rank}", "yes")
        if self.rank == 0 and not _of_agent():
            others = [i for i in range(self.size) if i not in absent]
            _absent(self.store, "read", others, end - time.monotonic())

    def agree(self, given: Mapping[str, object]) -> None:
        """Raise InputError, in all processes, unless all were given the same."""
        own = {**given, "backend": "gloo" if self.hosted else "nccl"}
        self.store.set(f"given/{self.rank}", json.dumps(own))
        self.any(False)  # all have written theirs, or one has ended
        words = self.store.multi_get([f"given/{i}" for i in range(self.size)])
        if sentence := _difference([json.loads(word) for word in words]):
            _stop_listening()  # to torchrun, which stops the others when the first has ended
            self.any(False)  # all have read: the store ends with rank 0
            raise InputError(sentence)

    def withdraw(self, error: Exception) -> None:
        """Tell the others why this process cannot take part; they end when they wait for it."""
        _stop_listening()
        with suppress(RuntimeError):  # the store is gone
            self.store.set(f"failed/{self.rank}", str(error) or type(error).__name__)
            self.say_alive()
            _leave()
            end = time.monotonic() + GRACE
            self.part(self.missing(end) if self.rank == 0 else (), end)

    def reasons(self) -> list[str]:
        """Why processes could not take part, as they have told."""
        failed = [i for i in range(self.size) if self.store.check([f"failed/{i}"])]
        return [f"rank {i}: {self.store.get(f'failed/{i}').decode()}" for i in failed]


@contextmanager
def meeting(world: World | None) -> Iterator[dict[str, object]]:
    """Let a process read and note what it was given; at the end, all compare notes.

    What fails within is told to the others.
    """
    given = dict[str, object]()
    try:
        yield given
    except Exception as error:
        if world:
            world.withdraw(error)
        raise
    if world:
        world.agree(given)


def _difference(notes: Sequence[Mapping[str, object]]) -> str:
    """What processes were given that is not the same, as a sentence; "" if all is."""
    names = dict.fromkeys(name for note in notes for name in note)
    differ = []
    for name in names:
        ranks = dict[str, list[int]]()
        for rank, note in enumerate(notes):
            ranks.setdefault(json.dumps(note.get(name), ensure_ascii=False), []).append(rank)
        if len(ranks) > 1:
            each = (f"{_ranks(who)}: {_short(value)}" for value, who in ranks.items())
            differ.append(f"{name} ({'; '.join(each)})")
    if not differ:
        return ""
    more = f" and {len(differ) - 3} more" if len(differ) > 3 else ""
    return (
        f"the processes were given different things: {', '.join(differ[:3])}{more}; start all of "
        "them with the same graph, settings, seeds, output folder and version"
    )


def _ranks(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8])) + (" …" if len(numbers) > 8 else "")
    return f"rank{'s' if len(numbers) > 1 else ''} {shown}"


def _short(value: str) -> str:
    word = "not set" if value == "null" else value.strip('"')
    return word if len(word) <= SHOWN else f"{word[: SHOWN // 2]}…{word[-SHOWN // 2 :]}"


def _machine() -> str:
    """The same for processes that see one another: the host, and the numbering of its processes."""
    try:
        numbering = os.stat("/proc/self/ns/pid").st_ino  # a container has one of its own
    except OSError:
        numbering = 0
    return f"{socket.gethostname()} {numbering}"


def _absent(
    store: Store,
    key: str,
    ranks: Iterable[int],
    seconds: float,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[int]:
    """Those of these processes that have not written this key when so many seconds have passed."""
    end = time.monotonic() + seconds
    names = {i: f"{key}/{i}" for i in ranks}
    while not store.check(list(names.values())):
        if time.monotonic() > end:
            return [i for i, name in names.items() if not store.check([name])]
        meanwhile()
        time.sleep(0.05)
    return []


class Total(torch.autograd.Function):
    """The sum over the processes.  Each differentiates by its own part, so gradients pass."""

    @staticmethod
    def forward(ctx: Any, sums: Tensor, world: World) -> Tensor:
        return world.added(sums)

    @staticmethod
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, None]:
        return G, None


@contextmanager
def _asking() -> Iterator[None]:
    """Take a failure of torch.distributed to mean that another process is lost."""
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
    fast = is_gpu(device) and _a_gpu_each()  # NCCL takes one process a GPU
    backend = "cpu:gloo,cuda:nccl" if fast else "gloo"
    notes = _met(_store(rank, size), rank, size)
    try:
        dist.init_process_group(backend, store=notes, rank=rank, world_size=size, timeout=JOINING)
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise RankEnded(f"the {size} processes cannot reach one another: {reason}") from None
    dist.distributed_c10d._set_pg_timeout(MEETING)
    world = World(rank, size, PrefixStore("gcnii", notes), not fast)
    world.store.set(f"process/{rank}", f"{_machine()} {os.getpid()}")
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


def _of_agent() -> bool:
    """Whether torchrun has the store, and keeps it when it restarts processes."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def _store(rank: int, size: int) -> Store:
    """Where processes leave notes for one another; rank 0 has it, or torchrun."""
    host, port = os.environ["MASTER_ADDR"], _whole("MASTER_PORT", 0, 65535)
    hosts = rank == 0 and not _of_agent()
    if not hosts:
        _wait_for_host(rank, host, port)
    made: list[Store | RuntimeError] = []

    def make() -> None:
        try:
            made.append(TCPStore(host, port, size, hosts, JOINING, False, multi_tenant=hosts))
        except RuntimeError as error:
            made.append(error)

    # torch waits forever for a server that takes connections and never answers.
    thread = Thread(target=make, daemon=True)
    thread.start()
    thread.join(JOINING.total_seconds())
    if made and isinstance(made[0], Store):
        return made[0]
    if hosts:
        reason = str(made[0]).rpartition("message: ")[2] if made else "no answer"
        raise InputError(
            f"rank 0 cannot listen at {host}:{port}: {reason}; choose another MASTER_PORT"
        )
    raise InputError(
        f"rank {rank} found something other than rank 0 at {host}:{port}; give all processes the "
        "same MASTER_ADDR and MASTER_PORT"
    )


def _wait_for_host(rank: int, host: str, port: int) -> None:
    """Return once a server listens there; torch prints its own frames if it times out."""
    end = time.monotonic() + JOINING.total_seconds()
    while True:
        left = end - time.monotonic()
        try:
            socket.create_connection((host, port), max(left, 0.1)).close()
            return
        except OSError as error:
            if left <= 0:
                raise RankEnded(
                    f"rank {rank} did not find rank 0 at {host}:{port} within "
                    f"{JOINING.total_seconds():g} seconds ({error.strerror or error}); see what "
                    "rank 0 printed, and give all processes the same MASTER_ADDR and MASTER_PORT"
                ) from None
        time.sleep(0.1)


def _met(store: Store, rank: int, size: int) -> Store:
    """The part of a store that is of these processes alone, once all of them are there.

    torchrun keeps the store when it restarts processes: what those before have left there, their
    addresses, too, must not be read again.  So rank 0 answers each process by the word that it has
    left, which no process has had before.  torchrun's own count of restarts would not do: of two
    machines, only the one on which a process failed counts on.
    """
    try:
        # Where torchrun has the store, it numbers the processes, too.
        if not _of_agent() and store.add(f"rank/{rank}", 1) > 1:
            raise InputError(f"two processes have RANK {rank}; number them from 0 to {size - 1}")
        name = secrets.token_hex(8) if rank == 0 else _welcome(store, rank, size)
        notes = PrefixStore(name, store)
        notes.set(f"came/{rank}", "yes")

        def answer() -> None:
            for one in range(1, size) if rank == 0 else ():
                if store.check([f"ready/{one}"]) and not notes.check([f"came/{one}"]):
                    store.set(f"welcome/{store.get(f'ready/{one}').decode()}", f"{name} {size}")

        absent = _absent(notes, "came", range(size), JOINING.total_seconds(), answer)
    except RuntimeError:
        raise RankEnded("rank 0 ended before all processes were there") from None
    if absent:
        raise RankEnded(_late(absent, size))
    return notes


def _welcome(store: Store, rank: int, size: int) -> str:
    """What rank 0 calls this attempt."""
    word = secrets.token_hex(8)
    store.set(f"ready/{rank}", word)
    end = time.monotonic() + JOINING.total_seconds()
    while not store.check([f"welcome/{word}"]):
        if time.monotonic() > end:
            raise RankEnded(_late([0], size))
        time.sleep(0.05)
    name, others = store.get(f"welcome/{word}").decode().split()
    if int(others) != size:
        raise InputError(
            f"WORLD_SIZE is {size} for rank {rank} and {others} for rank 0; give all of them the "
            "same"
        )
    return name


def _late(ranks: Sequence[int], size: int) -> str:
    return (
        f"{_ranks(ranks)} of {size} did not start within {JOINING.total_seconds():g} seconds; see "
        "what it printed, and start all of them at the same time"
    )


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
    """Let the first SIGINT or SIGTERM raise Told."""
    told = list[int]()

    def tell(number: int, frame: FrameType | None) -> None:
        told.append(number)
        if len(told) == 1:
            raise Told(signal.Signals(number).name)

    with handled_by(tell, SIGNALS):
        yield


def _stop_listening() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _obituary(world: World) -> RankEnded:
    """A sentence on the lost processes; those that still wait for this one are released first."""
    end = time.monotonic() + GRACE
    with suppress(RuntimeError):  # the store is gone
        world.say_alive()  # before leaving, which may take long
    _leave()
    begun = world.begun.is_set()
    when = "" if begun else " before the training began"
    advice = "; run the same command again to resume from the last checkpoint" if begun else ""
    try:
        absent, reasons = world.missing(end), world.reasons()
    except RuntimeError:  # the store is gone, too
        return RankEnded(f"another of {world.size} processes ended{when}{advice}")
    with suppress(RuntimeError):
        world.part(absent, end)
    if reasons:
        return RankEnded(f"{reasons[0]} (so the other processes ended, too)")
    if not absent:
        return RankEnded(f"all {world.size} processes were stopped{when}{advice}")
    who = f"{_ranks(absent)} of {world.size} ended{when}"
    return RankEnded(f"{who}, and so did the others{advice or '; see what it printed'}")


def _leave() -> None:
    with suppress(Exception):  # other processes are gone
        if dist.is_initialized():
            dist.destroy_process_group()
