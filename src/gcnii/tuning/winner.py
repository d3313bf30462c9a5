"""The winner of a study that was closed: its model and settings, read from study.json."""

from __future__ import annotations

from pathlib import Path

from gcnii.errors import InputError
from gcnii.files import Document, read_document, user_path
from gcnii.nn.settings import Settings
from gcnii.results.bundle import read_record

STUDY = "study.json"
SHAPE = {"winner": {"model": str, "settings": dict}}
# What a study asked, so that another does not take its place.
ASKED = ("version", "fingerprint", "models", "seeds", "metric", "fixed")


def winner_in(folder: Path) -> tuple[str, Settings]:
    """The model and the settings of a study's winner, or of a bundle."""
    folder = user_path(folder)
    if (folder / STUDY).exists():
        return read_document(folder / STUDY, SHAPE, "study", _winner)
    if (folder / "run.json").exists():
        record = read_record(folder)
        return str(record["model"]), dict(record["settings"])
    raise InputError(
        f"{folder} holds neither {STUDY} nor a bundle; give the folder that `gcnii tune` wrote"
    )


def _winner(document: Document) -> tuple[str, Settings]:
    won = document["winner"]
    return won["model"], won["settings"]


def asked_in(folder: Path) -> Document:
    """What the study in a folder asked."""
    asked: Document = read_document(folder / STUDY, {}, "study", dict)
    return {name: asked.get(name) for name in ASKED}
