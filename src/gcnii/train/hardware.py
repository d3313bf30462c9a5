"""Where and how training computes: device, precision, settings of the CPU, and memory."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

from gcnii.errors import InputError
from gcnii.memory import KEPT, LARGEST_POOLED, POOLED, SHARE, Held, choose_held, segments
from gcnii.nn import MODELS
from gcnii.nn.engine.fused import are_compiled
from gcnii.nn.settings import whole
from gcnii.train.recipe import Recipe
from gcnii.train.task import Task

TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4  # glibc's names for mallopt
POOL = 1 << 30  # bytes
MMAPS = 1 << 16  # blocks that glibc asks the system for on their own, as it does by default
# Numbers of a layer's state, up to which one thread is enough; and of one of compiled layers.
SMALL, SMALL_COMPILED = 1 << 18, 1 << 15
MOST_THREADS = 1024  # OpenMP ends the process where the system refuses more
MEMINFO, CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
# What limits a container's CPU time, as files in CONTAINER: `quota period` in one, or a file each.
QUOTAS = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))
ROUNDED = ("tf32", "bfloat16")  # precisions of a GPU
# The host reads what the device measured after at most this many epochs, because that waits for the
# device.
SYNC_EVERY = {"cpu": 1, "cuda": 64}


def choose_device(name: str | torch.device = "auto") -> torch.device:
    """The torch device for auto, cpu, cuda or cuda:N; or that device itself."""
    name = str(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise InputError(f"device must be auto, cpu or cuda, got {name!r}")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError(
            "device cuda was asked for, but torch finds no CUDA device; use device cpu or auto"
        )
    return torch.device(name)


def is_gpu(device: torch.device) -> bool:
    """Whether it trains many runs as fast as one, captures graphs and has memory of its own."""
    return device.type == "cuda"


def epochs_per_sync(device: torch.device) -> int:
    """After how many epochs, at most, the host reads what the device measured."""
    return SYNC_EVERY[device.type]


def device_name(device: torch.device) -> str:
    """For the record: `cpu`, or `cuda: ` and the card's name."""
    return f"cuda: {torch.cuda.get_device_name(device)}" if is_gpu(device) else "cpu"


@contextmanager
def arithmetic(recipe: Recipe, device: torch.device) -> Iterator[None]:
    """Multiply and store numbers in the recipe's precision in this context.

    tf32      float32 matrices are multiplied with 10 bits of mantissa and summed in float32
    bfloat16  the same, and activations have 7 bits; weights, sums and the loss stay float32

    On a CPU, which gains nothing by them, both are float32.
    """
    rounded = is_gpu(device) and recipe.precision in ROUNDED
    halves = rounded and recipe.precision == "bfloat16"
    # Without autocast's cache of converted weights, which would outlive the CUDA graph it was made
    # in.
    with (
        PRODUCTS.at("high" if rounded else "highest"),
        torch.autocast("cuda", torch.bfloat16, halves, cache_enabled=False),
    ):
        yield


class ProductPrecision:
    """torch's precision of float32 products, which all threads share.

    Threads that ask for the same one work at the same time, others wait for them; the last one to
    leave puts back what was there.
    """

    def __init__(self) -> None:
        self.free = threading.Condition()
        self.users = 0
        self.before = ""

    @contextmanager
    def at(self, precision: str) -> Iterator[None]:
        """Use this precision in this context."""
        with self.free:
            self.free.wait_for(lambda: not self.users or precision == _product_precision())
            if not self.users:
                self.before = _product_precision()
                torch.set_float32_matmul_precision(precision)
            self.users += 1
        try:
            yield
        finally:
            with self.free:
                self.users -= 1
                if not self.users:
                    torch.set_float32_matmul_precision(self.before)
                self.free.notify_all()


PRODUCTS = ProductPrecision()


def _product_precision() -> str:
    return torch.get_float32_matmul_precision()


@contextmanager
def ordinary_autograd() -> Iterator[None]:
    """Record gradients and keep the type of numbers, whatever the caller has set."""
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast("cpu", enabled=False),
        torch.autocast("cuda", enabled=False),
    ):
        yield


class CpuThreads:
    """torch's number of CPU threads while some threads of this process train with another one.

    A number that is set holds for the thread that sets it, and for those that start later: without
    this, a training would take the number of another one for the process's own.

    forked  whether this process was forked after a training; OpenMP's threads are not in it, and
            work for more than one would wait for them forever
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside: list[int] = []  # the threads that train; one whose callback trains, twice
        self.outside = 0
        self.forked = False

    def number(self) -> int:
        """The number of threads outside of trainings, or of CPUs if this process may use fewer."""
        with self.lock:
            return min(self.outside if self.inside else torch.get_num_threads(), allowed_cpus())

    @contextmanager
    def at(self, number: int) -> Iterator[None]:
        """Use this number of threads in this thread."""
        me = threading.get_ident()
        with self.lock:
            others = self.inside and me not in self.inside
            before = self.outside if others else torch.get_num_threads()
            self.outside = self.outside if self.inside else before
            self.inside.append(me)
            torch.set_num_threads(number)
        try:
            yield
        finally:
            with self.lock:
                self.inside.remove(me)
                torch.set_num_threads(before)


CPU_THREADS = CpuThreads()


def allowed_cpus() -> int:
    """The number of CPUs that this process may use, by its affinity and its container's quota."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    cpus = len(affinity(0)) if affinity else os.cpu_count() or 1
    for names in QUOTAS:
        try:
            words = " ".join((CONTAINER / name).read_text() for name in names).split()
            quota, period = map(int, words)
        except (OSError, ValueError):  # no such file, or no limit: `max`
            continue
        if quota > 0 and period > 0:  # -1 is no limit
            cpus = min(cpus, max(1, quota // period))
    return cpus


def threads_for(task: Task, asked: int | None = None, batch: int | None = None) -> int:
    """The number of CPU threads to train with: those asked for, or one where the work is small.

    Threads of small work wait for one another more than they compute: on two cores, two are no
    faster than one up to about 2,700 nodes × 64, and beside two busy processes half as fast.  Those
    of compiled layers stay together: from 600 nodes × 64 on, two are faster.
    """
    asked = whole("threads", asked, least=1)
    if asked and asked > MOST_THREADS:
        raise InputError(f"threads must be at most {MOST_THREADS}, got {asked}")
    if CPU_THREADS.forked and asked and asked > 1:
        raise InputError(
            f"threads must be 1 in a process that was forked after a training run, got {asked}; "
            'start processes with multiprocessing.get_context("spawn")'
        )
    if asked or is_gpu(task.device):
        return asked or CPU_THREADS.number()
    plan, width = task.plan, task.plan.model_settings.get("width", 1)
    compiled = MODELS[plan.model].fused and are_compiled(width, plan.recipe.dtype)
    numbers = (batch or 1) * task.graph.n * width
    return _threads(numbers, SMALL_COMPILED if compiled else SMALL)


@contextmanager
def suited_threads(numbers: int) -> Iterator[None]:
    """Use one CPU thread where a layer has few numbers, as in training."""
    with CPU_THREADS.at(_threads(numbers)):
        yield


def _threads(numbers: int, small: int = SMALL) -> int:
    most = 1 if numbers <= small else CPU_THREADS.number()
    return 1 if most > 1 and _spins_for_long() and _crowded(most) else most


def _spins_for_long() -> bool:
    """Whether torch was loaded before `gcnii` could shorten the spinning of its threads."""
    return not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys()


def _crowded(threads: int) -> bool:
    """Whether other processes are so busy that threads which spin take 10 times as long as one."""
    numbers, seconds = torch.ones(threads << 15), {}  # torch gives each thread that many
    for count in (1, threads):
        with CPU_THREADS.at(count):
            numbers.add(1)
            start = time.perf_counter()
            for _ in range(20):
                numbers.add(1)
            seconds[count] = time.perf_counter() - start
    return seconds[threads] > 10 * seconds[1]


@contextmanager
def tuned_cpu(threads: int | None = None) -> Iterator[None]:
    """Count denormals as zero and use this number of threads in this context.

    From now on, freed memory is kept for the next epoch, and torch has one thread in processes that
    are forked.
    """
    _keep_memory()
    _tell_forks()
    # Dead layers underflow, and a CPU computes with denormal numbers many times slower.  Other
    # libraries need them: SciPy's KDTree may split a space forever where the next number after zero
    # is zero.
    smallest = torch.tensor(5e-324, dtype=torch.float64)
    flushed_before = bool(smallest * 1 == 0)
    with CPU_THREADS.at(threads or CPU_THREADS.number()):
        torch.set_flush_denormal(True)
        try:
            yield
        finally:
            torch.set_flush_denormal(flushed_before)


@cache
def _tell_forks() -> None:
    if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
        os.register_at_fork(after_in_child=_start_over_with_one_thread)


def _start_over_with_one_thread() -> None:
    """In a forked process: it has a copy of the locks, and none of the threads that hold them."""
    PRODUCTS.free, PRODUCTS.users = threading.Condition(), 0
    CPU_THREADS.lock, CPU_THREADS.inside, CPU_THREADS.forked = threading.Lock(), [], True
    torch.set_num_threads(1)


def _keep_memory() -> None:
    # An epoch frees all its activations.  glibc would return them to the system and fault each
    # page in again: thousands of faults an epoch on Cora, a tenth of its time and more on virtual
    # machines.
    if mallopt := _of_glibc("mallopt"):
        mallopt(MMAP_THRESHOLD, LARGEST_POOLED)
        mallopt(TRIM_THRESHOLD, POOL)


@contextmanager
def large_blocks_kept(wanted: bool) -> Iterator[None]:
    """Keep freed blocks of any size for the next epoch in this context, if that is wanted.

    Where trainings overlap in threads, the first that ends ends it for all: they become slower.
    """
    mallopt = _of_glibc("mallopt") if wanted else None
    if mallopt is None:
        yield
        return
    mallopt(MMAP_MAX, 0)
    mallopt(TRIM_THRESHOLD, -1)  # never
    try:
        yield
    finally:
        mallopt(MMAP_MAX, MMAPS)
        mallopt(TRIM_THRESHOLD, POOL)
        trim_memory()


def trim_memory() -> None:
    """Return freed memory to the system, so that what a process then takes is new memory."""
    if trim := _of_glibc("malloc_trim"):
        trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    """A function of the C library; None where that does not have it."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


def can_keep_large_blocks(task: Task, replicas: int) -> bool:
    """Whether layers' matrices are larger than malloc keeps, and memory has room for freed ones."""
    if is_gpu(task.device) or not MODELS[task.plan.model].can_recompute:
        return False
    state, layers = _state(task, replicas), task.plan.model_settings.get("layers", 0)
    fits = (KEPT * layers + POOLED) * state <= SHARE * _free(task.device)
    return state >= LARGEST_POOLED and fits and held_how(task, replicas) == "keep"


def held_how(task: Task, replicas: int) -> Held:
    """How this number of replicas should hold activations for backward; no result depends on it.

    Each view of a step is one more replica.
    """
    recipe, settings = task.plan.recipe, task.plan.model_settings
    if not MODELS[task.plan.model].can_recompute or recipe.memory == "keep":
        return "keep"
    layers, state = settings.get("layers", 0), _state(task, replicas)
    if recipe.memory == "offload":
        _refuse_small_host(task.device, segments(layers, offloads=True) * state)
    if recipe.memory != "auto":
        return recipe.memory
    host = _host_free() if is_gpu(task.device) else 0.0
    return choose_held(layers, state, _free(task.device), host)


def _state(task: Task, replicas: int) -> int:
    """Bytes of a layer's state of these replicas."""
    recipe, width = task.plan.recipe, task.plan.model_settings["width"]
    return int(replicas * recipe.views * task.X.shape[0] * width * recipe.dtype.itemsize)


def _refuse_small_host(device: torch.device, needed: int) -> None:
    free = _host_free()
    if is_gpu(device) and needed > free:
        raise InputError(
            f"memory offload needs {needed / 2**30:.0f} GiB of the host's memory, of which "
            f"{free / 2**30:.0f} are free; use memory recompute, a smaller width or fewer runs at "
            "once"
        )


def lacks_memory(error: BaseException) -> bool:
    """torch has no MemoryError: it raises a RuntimeError, of a different wording on each device."""
    return (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or "out of memory" in str(error)
        or "allocate memory" in str(error)
    )


def _free(device: torch.device) -> float:
    """Bytes, as far as the system tells."""
    if is_gpu(device):
        # Memory that torch keeps from an earlier training counts as free: the next one gets it.
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + idle)
    return _host_free()


def _host_free() -> float:
    """Available bytes of the host's memory: what the system can spare, within its limit."""
    try:
        able = _lines(MEMINFO)["MemAvailable"] * 1024
    except (OSError, KeyError):  # not on Linux
        return _free_pages()
    try:
        limit, held = int((CONTAINER / "memory.max").read_text()), _lines(CONTAINER / "memory.stat")
        return float(min(able, limit - held["anon"]))
    except (OSError, KeyError, ValueError):  # no container, or one without a limit
        return float(able)


def _lines(path: Path) -> dict[str, int]:
    """`name number` lines of the system; a colon or a unit does not matter."""
    words = (line.replace(":", " ").split() for line in path.read_text().splitlines())
    return {name: int(number) for name, number, *_ in words}


def _free_pages() -> float:
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # not every system has these
        return float("inf")
