"""Ctrl-C, SIGTERM and SIGHUP: a training ends after its epoch, and nothing is lost."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

STOPPED_BY = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Interrupt:
    """Becomes true at the first signal to stop; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.asked = False

    def __bool__(self) -> bool:
        return self.asked

    def ask(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signals."""
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self.asked:
            self.asked = True
            self._acknowledge(number)

    def _acknowledge(self, number: int) -> None:
        if multiprocessing.parent_process() or not sys.stderr:
            return  # the process that started this one got the signal, too
        again = "; press Ctrl-C again to stop now" if number == signal.SIGINT else ""
        # A signal may come while the same stream is being written to, which then refuses.
        with suppress(RuntimeError, OSError, ValueError):
            print(f"gcnii: stopping after this epoch{again}", file=sys.stderr, flush=True)


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Let the first Ctrl-C, SIGTERM or SIGHUP ask to stop instead of ending the process.

    Nothing changes in other threads, which get no signals, for a signal that is ignored, as SIGHUP
    is under nohup, and for a SIGTERM or SIGHUP for which the program has a handler of its own.
    Nested contexts share one Interrupt, which then knows of a signal that came in the last epoch of
    a training.
    """
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    if outer := _outer():
        yield outer
        return
    replaced = [number for number in STOPPED_BY if _is_ours(number)]
    earlier = {number: signal.signal(number, interrupt.ask) for number in replaced}
    try:
        yield interrupt
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _outer() -> Interrupt | None:
    """The Interrupt that handles the signals already, if there is one."""
    asked = (getattr(signal.getsignal(number), "__self__", None) for number in STOPPED_BY)
    return next((one for one in asked if isinstance(one, Interrupt)), None)


def _is_ours(number: int) -> bool:
    """Whether training may handle a signal."""
    handler = signal.getsignal(number)
    if number == signal.SIGINT:
        return handler not in (signal.SIG_IGN, None)  # None: set by another language
    return handler is signal.SIG_DFL
