"""Fitting settings that may fail: what diverges or does not fit in memory is lost, and no error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from gcnii.graph import Graph
from gcnii.results.fit import Calibrate, Session, fit_plans
from gcnii.results.result import Result
from gcnii.train.group import Diverged
from gcnii.train.hardware import lacks_memory
from gcnii.train.plan import Plan


def fitted(
    graph: Graph,
    plans: Sequence[Plan],
    at_once: int,
    session: Session,
    seeds: Sequence[int],
    calibrate: Calibrate = "none",
) -> Result | None:
    """The result of training `at_once` replicas at a time, or fewer where memory is short.

    None for settings that lose: they diverged, or not even one run fits.
    """
    for size in dict.fromkeys((at_once, max(at_once // 4, 1), 1)):
        try:
            smaller = replace(session, batch=size)
            return fit_plans(graph, plans, smaller, seeds=seeds, calibrate=calibrate)
        except Diverged:
            return None
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
        torch.cuda.empty_cache()  # does nothing without a GPU
    return None
