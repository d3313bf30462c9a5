"""Batches made ahead: while a step runs, a thread makes the batch of the next one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from gcnii.train.batches.batch import Batch


def ahead(makers: Iterable[Callable[[], Batch]]) -> Generator[Batch, None, None]:
    """What the makers return, in their order; each is called while the batch before is in use.

    What a maker raises is raised here, when its batch is due.  The thread lives from the first
    batch until the iterator is exhausted or closed, and is waited for: after an epoch nothing is
    left of it, so that it neither meets the capture of a CUDA graph nor outlives a training.
    """
    with ThreadPoolExecutor(1, "gcnii-batches") as thread:
        due: Future[Batch] | None = None
        for make in makers:
            made, due = due, thread.submit(make)
            if made is not None:
                yield made.result()
        if due is not None:
            yield due.result()
