"""Peak memory: the most that a line of a case adds while it trains to what was there before."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import torch

from gcnii.train.hardware import hand_back

STATUS, REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Peak:
    """Made before a line is built; `begin` after, because what only the building took does not
    count.
    """

    def __init__(self, device: torch.device):
        self.device = device
        self.before = self._held_now()

    def begin(self) -> None:
        """Forget every peak so far."""
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        elif sys.platform == "linux":
            hand_back()
            try:
                REFERENCES.write_text("5")  # resets the high-water mark of the process
            # Where this is not allowed, the mark is that of earlier lines.
            except OSError:
                self.before = None

    def bytes(self) -> int | None:
        """Allocated by torch on a GPU, resident memory on a CPU; None if that is not known."""
        if self.device.type == "cuda":
            found: int | None = torch.cuda.max_memory_allocated(self.device)
        else:
            found = highest()
        return None if found is None or self.before is None else found - self.before

    def _held_now(self) -> int | None:
        gc.collect()
        if self.device.type == "cuda":
            return torch.cuda.memory_allocated(self.device)
        hand_back()
        return _status("VmRSS")


def highest() -> int | None:
    """The most resident memory that this process has had, in bytes, if the system tells."""
    return _status("VmHWM")


def _status(name: str) -> int | None:
    """A field of /proc/self/status, in bytes."""
    if not STATUS.exists():
        return None
    found = [
        line.split()[1] for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:")
    ]
    return 1024 * int(found[0]) if found else None
