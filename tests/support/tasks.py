"""Tasks for worker processes, which must be able to import them."""

import os
import signal
import time
import warnings

import torch

from support.waiting import PATIENCE


def whoami(item):
    """The process that did it, and its number of threads."""
    time.sleep(0.5)  # so that one worker cannot do both
    return os.getpid(), torch.get_num_threads()


def refuse(item):
    raise ValueError(f"no {item}")


def complain(item):
    warnings.warn(f"beware of {item}", stacklevel=2)
    return item.upper()


def die(item):
    os.kill(os.getpid(), signal.SIGKILL)


def wait(item):
    """Sleep until Ctrl-C, which is answered by making a file."""
    try:
        item.with_suffix(".begun").touch()
        time.sleep(PATIENCE)
    except KeyboardInterrupt:
        item.touch()
        raise
