"""Several tasks at once, each in a process of its own, so that a GPU or a CPU is kept busy.

A small training is limited by its kernel launches and by what comes before the first epoch, not by
the device.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import connection, get_context, resource_tracker
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple, TypeVar

import torch

from gcnii.errors import GcniiError
from gcnii.train.hardware import CPU_THREADS

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Pipe = connection.Connection


class WorkerKilled(GcniiError, ChildProcessError):
    """A worker process ended without an answer."""


class WorkerWarning(NamedTuple):
    """A warning of a worker, sent before its answer; the parent repeats it as its own."""

    words: str


def run_parallel(
    task: Callable[[Item], Answer], items: Sequence[Item], jobs: int
) -> Iterator[tuple[Item, Answer]]:
    """Each item with the task's answer, in the order in which the answers come.

    Ctrl-C is passed on to the tasks in progress, and raised here when they have stopped.
    """
    workers = _start(task, min(jobs, len(items)))
    busy: dict[Pipe, Item] = {}
    try:
        yield from _answers(workers, busy, list(reversed(items)))
    except BaseException:
        for pipe in busy:
            with suppress(ProcessLookupError):
                os.kill(workers[pipe].pid or 0, signal.SIGINT)
        raise
    finally:
        for pipe, worker in workers.items():
            pipe.close()  # which ends a worker as soon as it waits for the next item
            worker.join()


def _answers(
    workers: dict[Pipe, SpawnProcess], busy: dict[Pipe, Item], todo: list[Item]
) -> Iterator[tuple[Item, Any]]:
    """Keep all workers busy until every item has its answer."""
    for pipe in workers:
        _send_next(pipe, busy, todo)
    while busy:
        ready = connection.wait(busy)
        for pipe in [pipe for pipe in busy if pipe in ready]:
            answer = _receive(pipe, workers[pipe])
            if isinstance(answer, WorkerWarning):
                warnings.warn(answer.words, stacklevel=3)
                continue
            item = busy.pop(pipe)
            _send_next(pipe, busy, todo)
            yield item, answer


def _send_next(pipe: Pipe, busy: dict[Pipe, Item], todo: list[Item]) -> None:
    if todo:
        busy[pipe] = todo.pop()
        with suppress(ConnectionError):  # a dead worker, which `_receive` reports
            pipe.send(busy[pipe])


def _start(task: Callable[[Item], Answer], count: int) -> dict[Pipe, SpawnProcess]:
    context, workers = get_context("spawn"), {}
    threads = max(CPU_THREADS.number() // max(count, 1), 1)
    # The first worker's start would do this, and unblock the signal that is blocked here.
    resource_tracker.ensure_running()
    # The workers inherit this; `_work` unblocks the signal when it is ready for it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    for _ in range(count):
        here, there = context.Pipe()
        worker = context.Process(
            target=_work, args=(there, task, os.getpid(), threads), daemon=True
        )
        worker.start()
        there.close()
        workers[here] = worker
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return workers


def _receive(pipe: Pipe, worker: SpawnProcess) -> Any:
    try:
        answer = pipe.recv()
    except (EOFError, ConnectionError):
        worker.join()
        raise WorkerKilled(
            f"one of the jobs was killed (exit code {worker.exitcode}); "
            "run the same again with fewer jobs"
        ) from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _work(pipe: Pipe, task: Callable[[Item], Answer], parent: int, threads: int) -> None:
    """Answer items until the parent closes the pipe."""
    os.setpgrp()  # the terminal's Ctrl-C goes to the parent alone, which passes it on
    stop = threading.Event()  # set by Ctrl-C between two items, or before the first
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    torch.set_num_threads(threads)
    warnings.showwarning = partial(_say, pipe)
    with suppress(EOFError, OSError):  # the parent has closed the pipe
        while True:
            pipe.send(_outcome(task, pipe.recv(), stop))


def _outcome(
    task: Callable[[Item], Answer], item: Item, stop: threading.Event
) -> Answer | BaseException:
    """What the task returns, or the exception that it raises."""
    between = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if stop.is_set():
            raise KeyboardInterrupt
        return task(item)
    except BaseException as error:
        error.add_note(traceback.format_exc())
        return error
    finally:
        signal.signal(signal.SIGINT, between)


def _say(pipe: Pipe, warning: Warning | str, *_: object) -> None:
    with suppress(OSError):  # the parent has closed the pipe
        pipe.send(WorkerWarning(str(warning)))


def _end_with(parent: int) -> None:
    """Exit when the parent is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
