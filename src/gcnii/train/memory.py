"""Whether backward keeps the layers' activations or computes them again: depth then costs time instead of memory."""

from __future__ import annotations

import os

import torch

from gcnii.nn import MODELS
from gcnii.train.task import Task

KEPT = 3  # numbers that backward keeps of each activation: before the weights, after the ReLU, the mask; fused, two
SHARE = 0.7  # of the free memory may be taken; weights, Adam's moments and the layer at hand need some too


def forgets(task: Task, replicas: int) -> bool:
    """Whether so many replicas of this task had better compute their activations again; no number depends on it."""
    recipe, settings = task.plan.recipe, task.plan.model_settings
    if not MODELS[task.plan.model].can_forget or recipe.memory == "keep":
        return False
    if recipe.memory == "recompute":
        return True
    numbers = replicas * settings.get("layers", 0) * task.graph.n * settings["width"] * KEPT
    return bool(numbers * recipe.dtype.itemsize > SHARE * _free(task.device))


def lacks_memory(error: BaseException) -> bool:
    """torch has no MemoryError: it raises a RuntimeError, of a different wording on each device."""
    return (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or "out of memory" in str(error)
        or "allocate memory" in str(error)
    )


def _free(device: torch.device) -> float:
    """Bytes, as far as the system tells."""
    if device.type == "cuda":
        # What torch keeps of a training before counts as free: the next one is given it.
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + idle)
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # not every system has these
        return float("inf")
