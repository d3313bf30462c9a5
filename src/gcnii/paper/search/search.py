"""Random search for settings that nobody published, by validation alone: the test score is neither
read nor kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from math import inf, isfinite
from pathlib import Path
from statistics import fmean
from typing import Any
from zlib import crc32

import numpy as np
import torch

from gcnii.data import load
from gcnii.errors import InputError
from gcnii.files import NOTHING, read_document, write_document
from gcnii.paper.provenance import COMMIT, versions
from gcnii.paper.tables.searched import ENOUGH
from gcnii.train.fit import fit
from gcnii.train.hardware import choose_device, device_name, lacks_memory
from gcnii.train.replicas.group import Diverged
from gcnii.train.result import Result

Settings = dict[str, Any]
SEEDS = 3  # runs a try
_SCORES = [(float, NOTHING)]
RECORD = {
    "search": str,
    "budget": int,
    "tries": [{"settings": dict, "val": _SCORES, "val_loss": _SCORES}],
}
RULE = f"highest mean validation score of seeds 0 to {SEEDS - 1}; of equals, the one with the lowest validation loss"


@dataclass(frozen=True)
class Search:
    """A model on a graph; `fixed` settings, and axes of which each try takes one point each.

    The first try is `fixed` alone, over the preset; a name draws the same tries on every machine.
    """

    name: str
    graph: str
    model: str
    fixed: Settings
    axes: tuple[tuple[Settings, ...], ...]

    def tries(self) -> Iterator[Settings]:
        """Settings, without end; the same may come twice."""
        yield dict(self.fixed)
        random = np.random.default_rng(crc32(self.name.encode()))
        while True:
            points = [axis[random.integers(len(axis))] for axis in self.axes]
            yield self.fixed | {name: value for point in points for name, value in point.items()}

    @property
    def file(self) -> str:
        """What its record is called."""
        return f"{self.name.replace('/', '-')}.json"


def run_search(
    search: Search,
    folder: Path,
    budget: int,
    device: str = "auto",
    on_try: Callable[[str], None] = lambda words: None,
) -> dict[str, Any]:
    """Try until `budget` tries are kept in the folder, those of others and of earlier calls among
    them; the record.

    `on_try` is told the settings of each, of those that are kept already too.
    """
    path = folder / search.file
    for _, settings in zip(range(budget), _fresh(search), strict=False):
        on_try(", ".join(f"{name} {value}" for name, value in settings.items()))
        if not any(done["settings"] == settings for done in _tried(search, path)):
            _keep(search, path, _try(search, settings, device))
    return _record(search, _tried(search, path))


def winners(folder: Path) -> dict[str, Settings]:
    """Of the searches in the folder that have enough tries, not all of which diverged: name →
    settings.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise InputError(
            f"{folder} holds no searches; give the folder that `gcnii reproduce search` wrote"
        )
    found = {
        record["search"]: _winner(record["tries"])
        for record in map(_read, paths)
        if record["budget"] >= ENOUGH
    }
    return {name: settings for name, settings in found.items() if settings is not None}


def score(done: dict[str, Any]) -> tuple[float, float]:
    """By which a try wins: higher is better.  A try that had no finite loss loses."""
    if any(value is None or not isfinite(value) for value in (*done["val"], *done["val_loss"])):
        return -inf, -inf
    return fmean(done["val"]), -fmean(done["val_loss"])


def _fresh(search: Search) -> Iterator[Settings]:
    """The tries without repetitions, as long as there are new ones."""
    seen, stale = [], 0
    for settings in search.tries():
        stale = stale + 1 if settings in seen else 0
        if stale > 1000:
            return  # the space is small, and all of it is tried
        if not stale:
            seen.append(settings)
            yield settings


def _try(search: Search, settings: Settings, device: str) -> dict[str, Any]:
    start, result = time.perf_counter(), _fit(search, settings, device)
    if result and result.interrupted:
        raise KeyboardInterrupt
    runs = (
        [run.summary() for run in result.runs]
        if result
        else [{"val": None, "val_loss": None}] * SEEDS
    )
    numbers = {name: [run[name] for run in runs] for name in ("val", "val_loss")}
    seconds, where = time.perf_counter() - start, {"versions": versions(), "commit": COMMIT}
    return {
        "settings": settings,
        **numbers,
        "seconds": seconds,
        "device": device_name(choose_device(device)),
        **where,
    }


def _fit(search: Search, settings: Settings, device: str) -> Result | None:
    """None of a try that loses: it diverged, or the device has too little memory even for one seed
    at a time.
    """
    for batch in (None, 1):
        try:
            return fit(
                load(search.graph),
                search.model,
                seeds=range(SEEDS),
                batch=batch,
                device=device,
                **settings,
            )
        except Diverged:
            return None
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
        torch.cuda.empty_cache()  # does nothing where there is no GPU
    return None


def _winner(tries: list[dict[str, Any]]) -> Settings | None:
    """None where there is no try, or where all of them lost."""
    best = max(tries, key=score, default=None)
    return best["settings"] if best and isfinite(score(best)[0]) else None


def _record(search: Search, tries: list[dict[str, Any]]) -> dict[str, Any]:
    about = {
        "search": search.name,
        "command": f"gcnii reproduce search {search.name} --budget {len(tries)}",
    }
    space = {name: value for name, value in asdict(search).items() if name != "name"}
    return (
        about
        | space
        | {"rule": RULE, "budget": len(tries), "winner": _winner(tries), "tries": tries}
    )


def _keep(search: Search, path: Path, done: dict[str, Any]) -> None:
    """Add a try to those that are in the file by now, unless another process was faster with the
    same settings.
    """
    # Two processes that end a try within the milliseconds from here to the replacing lose the
    # earlier one's: there is no lock, because the next call makes up for it.
    tries = _tried(search, path)
    if any(other["settings"] == done["settings"] for other in tries):
        return
    write_document(path, _record(search, [*tries, done]))


def _read(path: Path) -> dict[str, Any]:
    return read_document(path, RECORD, "record of a search", _checked)


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    if any(not done["val"] or not done["val_loss"] for done in record["tries"]):
        raise InputError("a try has no scores")
    return record


def _tried(search: Search, path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    record = _read(path)
    mine = json.loads(json.dumps(_record(search, [])))
    if any(
        record.get(name) != mine[name] for name in ("search", "graph", "model", "fixed", "axes")
    ):
        raise InputError(
            f"{path} holds a search of another space; move it away, or choose another --out"
        )
    return list(record["tries"])
