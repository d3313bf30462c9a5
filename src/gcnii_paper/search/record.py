"""The document of a search: every try, and which one wins.  Test scores are not in it."""

from __future__ import annotations

import json
from math import inf, isfinite
from pathlib import Path
from statistics import fmean

from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, Maybe, read_document, write_document
from gcnii.train.presets import Settings
from gcnii_paper.tables.searched import ENOUGH

SEEDS = 3  # runs per try
GIVEN_UP = "given up"  # the outcome of a try that fell behind; all others have none
_SCORES = [(float, NOTHING)]
_TRY = {"settings": dict, "val": _SCORES, "val_loss": _SCORES, "outcome": Maybe({GIVEN_UP})}
RECORD = {"search": str, "budget": int, "tries": [_TRY]}
RULE = (
    f"highest mean validation score of seeds 0 to {SEEDS - 1}; "
    "of equals, the one with the lowest validation loss; a try that was given up cannot win"
)


def make_record(about: Document, tries: list[Document]) -> Document:
    """The document of a search with these tries; `about` is `Search.about`."""
    name = about["search"]
    command = f"gcnii reproduce search {name} --trials {len(tries)}"
    found = {"rule": RULE, "budget": len(tries), "winner": _winner(tries), "tries": tries}
    return {"search": name, "command": command} | about | found


def read_tries(path: Path, about: Document) -> list[Document]:
    """The tries in a document, none if there is no such file; InputError for another search."""
    if not path.exists():
        return []
    record = _read(path)
    if any(record.get(name) != value for name, value in json.loads(json.dumps(about)).items()):
        raise InputError(
            f"{path} holds a search of another space; move it away, or choose another --out"
        )
    return list(record["tries"])


def score(done: Document) -> tuple[float, float]:
    """What tries are compared by; higher is better.  One that was given up or diverged loses."""
    scores = (*done["val"], *done["val_loss"])
    if "outcome" in done or any(value is None or not isfinite(value) for value in scores):
        return -inf, -inf
    return fmean(done["val"]), -fmean(done["val_loss"])


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


def _winner(tries: list[Document]) -> Settings | None:
    """The settings of the best try; None if there are no tries, or if all of them lost."""
    best = max(tries, key=score, default=None)
    return best["settings"] if best and isfinite(score(best)[0]) else None


def _read(path: Path) -> Document:
    return read_document(path, RECORD, "record of a search", _checked)


def _checked(record: Document) -> Document:
    if any(not done["val"] or not done["val_loss"] for done in record["tries"]):
        raise InputError("a try has no scores")
    return record
