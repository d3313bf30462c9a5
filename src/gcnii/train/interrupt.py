"""Ctrl-C between epochs, so that nothing is half-written when training stops."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Becomes true at the first Ctrl-C; a second one stops at once."""

    def __init__(self) -> None:
        self.asked = False

    def __bool__(self) -> bool:
        return self.asked

    def ask(self, number: int, frame: FrameType | None) -> None:
        """The handler of SIGINT."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Within, the first Ctrl-C asks to stop instead of raising.

    Nothing changes in other threads, which get no signals, or in processes that ignore Ctrl-C, as
    under nohup.
    """
    interrupt = Interrupt()
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    before = signal.signal(signal.SIGINT, interrupt.ask)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, before)
