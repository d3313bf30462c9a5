"""Several tasks at once, a process each: what one leaves idle of a GPU or a CPU, another uses.

A small training is bound by its launches and by what comes before the first epoch, not by the
device.
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

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Pipe = connection.Connection


class Said(NamedTuple):
    """What a worker warns of, before it has an answer: the parent says it, as it says its own."""

    words: str


def run_parallel(
    task: Callable[[Item], Answer], items: Sequence[Item], jobs: int
) -> Iterator[tuple[Item, Answer]]:
    """Each item and what the task answers, as they come; Ctrl-C reaches the tasks at work and
    raises when they stop.
    """
    workers, todo = _start(task, min(jobs, len(items))), list(reversed(items))
    busy: dict[Any, Item] = {}

    def hand_to(pipe: Pipe) -> None:
        if todo:
            busy[pipe] = todo.pop()
            with suppress(ConnectionError):  # it is dead, which `_receive` will tell
                pipe.send(busy[pipe])

    try:
        for pipe in workers:
            hand_to(pipe)
        while busy:
            for pipe in connection.wait(busy):  # type: ignore[assignment]
                answer = _receive(pipe, workers[pipe])
                if isinstance(answer, Said):
                    warnings.warn(answer.words, stacklevel=2)
                    continue
                item = busy.pop(pipe)
                hand_to(pipe)
                yield item, answer
    except BaseException:
        for pipe in busy:
            with suppress(ProcessLookupError):
                os.kill(workers[pipe].pid or 0, signal.SIGINT)
        raise
    finally:
        for pipe, worker in workers.items():
            pipe.close()  # which ends a worker, as soon as it waits for the next item
            worker.join()


def _start(task: Callable[[Any], Any], count: int) -> dict[Pipe, SpawnProcess]:
    context, workers = get_context("spawn"), {}
    threads = max(torch.get_num_threads() // max(count, 1), 1)
    # which would unblock what is blocked, were it left to the first worker's start
    resource_tracker.ensure_running()
    # inherited; `_work` is ready for it
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
        raise ChildProcessError(
            f"one of the jobs was killed (exit code {worker.exitcode}); give the same command again, with fewer --jobs"
        ) from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _work(pipe: Pipe, task: Callable[[Any], Any], parent: int, threads: int) -> None:
    """Answer items until there are no more.  The terminal's Ctrl-C goes to the parent alone, which
    passes it on.
    """
    os.setpgrp()
    stop = threading.Event()  # Ctrl-C that comes between two items, or before the first
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    torch.set_num_threads(threads)
    warnings.showwarning = partial(_say, pipe)
    with suppress(EOFError, OSError):  # the parent closed the pipe: nobody wants more
        while True:
            pipe.send(_outcome(task, pipe.recv(), stop))


def _outcome(task: Callable[[Any], Any], item: Any, stop: threading.Event) -> Any:
    """What the task returns or raises."""
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


def _say(pipe: Pipe, warning: Warning | str, *_: Any) -> None:
    with suppress(OSError):  # nobody listens any more
        pipe.send(Said(str(warning)))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
