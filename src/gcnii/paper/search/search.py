"""Random search for settings by validation alone: test scores are neither read nor kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from math import inf, isfinite
from pathlib import Path
from statistics import fmean
from zlib import crc32

import numpy as np
import torch

from gcnii.data import load
from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, read_document, write_document
from gcnii.paper.provenance import commit, versions
from gcnii.paper.tables.searched import ENOUGH
from gcnii.train.fit import fit_plan
from gcnii.train.hardware import choose_device, device_name, lacks_memory
from gcnii.train.plan import make_plan
from gcnii.train.presets import preset
from gcnii.train.presets.settings import Settings
from gcnii.train.replicas.group import Diverged
from gcnii.train.results.result import Result

SEEDS = 3  # runs per try
_SCORES = [(float, NOTHING)]
RECORD = {
    "search": str,
    "budget": int,
    "tries": [{"settings": dict, "val": _SCORES, "val_loss": _SCORES}],
}
RULE = (
    f"highest mean validation score of seeds 0 to {SEEDS - 1}; "
    "of equals, the one with the lowest validation loss"
)


@dataclass(frozen=True)
class Search:
    """A model on a graph, its `fixed` settings, and axes: each try takes one point of each axis.

    The first try is `fixed` alone, over the preset.  The name seeds the generator, so that every
    machine draws the same tries.
    """

    name: str
    graph: str
    model: str
    fixed: Settings
    axes: tuple[tuple[Settings, ...], ...]

    def tries(self) -> Iterator[Settings]:
        """Settings, without end; some may be repeated."""
        yield dict(self.fixed)
        random = np.random.default_rng(crc32(self.name.encode()))
        while True:
            points = [axis[random.integers(len(axis))] for axis in self.axes]
            yield self.fixed | {name: value for point in points for name, value in point.items()}

    @property
    def file(self) -> str:
        """The name of its document."""
        return f"{self.name.replace('/', '-')}.json"


def run_search(
    search: Search,
    folder: Path,
    budget: int,
    device: str = "auto",
    on_try: Callable[[str], None] = lambda words: None,
) -> Document:
    """Train until the search's document in the folder has `budget` tries, and return the document.

    Tries of earlier calls and of other processes count.  `on_try` is called with the settings of
    each try, also of those that are there already.
    """
    commit()  # recorded with each try; later it might be another one
    path = folder / search.file
    for _, settings in zip(range(budget), _fresh(search), strict=False):
        on_try(", ".join(f"{name} {value}" for name, value in settings.items()))
        if not any(done["settings"] == settings for done in _tried(search, path)):
            _keep(search, path, _try(search, settings, device))
    return _record(search, _tried(search, path))


def winners(folder: Path) -> dict[str, Settings]:
    """name → best settings, for the searches in the folder that have enough tries and a winner."""
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


def adopt(folder: Path, file: Path) -> tuple[int, int]:
    """Add the winners of the searches in the folder to the file; their number, and that of all."""
    found = winners(folder)
    if not found:
        raise InputError(
            f"{folder} has no winner of at least {ENOUGH} tries; run `gcnii reproduce search` again"
        )
    held = (
        read_document(file, {str: dict}, "file of adopted settings", dict) if file.exists() else {}
    )
    adopted = held | found
    write_document(file, {name: dict(sorted(adopted[name].items())) for name in sorted(adopted)})
    return len(found), len(adopted)


def score(done: Document) -> tuple[float, float]:
    """What tries are compared by; higher is better.  A try without a finite loss loses."""
    if any(value is None or not isfinite(value) for value in (*done["val"], *done["val_loss"])):
        return -inf, -inf
    return fmean(done["val"]), -fmean(done["val_loss"])


def _fresh(search: Search) -> Iterator[Settings]:
    """The tries without repetitions; ends when there are no new ones."""
    seen, stale = [], 0
    for settings in search.tries():
        stale = stale + 1 if settings in seen else 0
        if stale > 1000:
            return  # the space is small, and all of it has been tried
        if not stale:
            seen.append(settings)
            yield settings


def _try(search: Search, settings: Settings, device: str) -> Document:
    start, result = time.perf_counter(), _fit(search, settings, device)
    if result and result.interrupted:
        raise KeyboardInterrupt
    lost = [{"val": None, "val_loss": None}] * SEEDS
    runs = [run.summary() for run in result.runs] if result else lost
    return {
        "settings": settings,
        **{name: [run[name] for run in runs] for name in ("val", "val_loss")},
        "seconds": time.perf_counter() - start,
        "device": device_name(choose_device(device)),
        "versions": versions(),
        "commit": commit(),
    }


def _fit(search: Search, settings: Settings, device: str) -> Result | None:
    """The result; None for a try that loses: it diverged, or not even one seed fits in memory."""
    plan = make_plan(search.model, {**preset(search.graph, search.model), **settings})
    graph, seeds = load(search.graph), range(SEEDS)
    for batch in (None, 1):
        try:
            return fit_plan(graph, plan, seeds=seeds, batch=batch, device=device)
        except Diverged:
            return None
        except (MemoryError, RuntimeError) as error:
            if not lacks_memory(error):
                raise
        torch.cuda.empty_cache()  # does nothing without a GPU
    return None


def _winner(tries: list[Document]) -> Settings | None:
    """The settings of the best try; None if there are no tries, or if all of them lost."""
    best = max(tries, key=score, default=None)
    return best["settings"] if best and isfinite(score(best)[0]) else None


def _record(search: Search, tries: list[Document]) -> Document:
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


def _keep(search: Search, path: Path, done: Document) -> None:
    """Add a try to the file, unless another process has added the same settings meanwhile."""
    # If two processes end a try within the milliseconds from here to the writing, the earlier
    # one's is lost.  There is no lock, because the next call makes up for it.
    tries = _tried(search, path)
    if any(other["settings"] == done["settings"] for other in tries):
        return
    write_document(path, _record(search, [*tries, done]))


def _read(path: Path) -> Document:
    return read_document(path, RECORD, "record of a search", _checked)


def _checked(record: Document) -> Document:
    if any(not done["val"] or not done["val_loss"] for done in record["tries"]):
        raise InputError("a try has no scores")
    return record


def _tried(search: Search, path: Path) -> list[Document]:
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
