"""Adopt the winners of `gcnii tune` as record settings; the studies are kept beside the results."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isclose
from pathlib import Path
from statistics import fmean

from gcnii.data import CATALOG, load
from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, read_document, write_document
from gcnii.targets import target_of
from gcnii.train.plan import make_plan
from gcnii.train.presets import Record, Settings, records
from gcnii.train.recipe import Recipe
from gcnii.tuning.question import STUDY

LEAST = 5  # runs behind the validation score of a choice
PLACES = ("--out", "--storage", "--slurm")  # flags whose value is of one machine
SHAPE = {
    **dict.fromkeys(("graph", "fingerprint", "measured", "command"), str),
    "tried": int,
    "winner": {"number": int, "model": str, "val": float, "settings": dict},
    "searched": {str: [str]},
    "trials": [
        {"number": int, "model": str, "outcome": str, "settings": dict, "val": [(float, NOTHING)]}
    ],
}
GONE = {("row_norm", "length"), ("head", "all")}  # options that GCNII+ had
DIGITS = 4  # of a trial's scores that are kept


@dataclass(frozen=True)
class Study:
    """A study that was closed and checked: its graph, its winner, and its document to keep.

    record  none if the winner has an option that GCNII+ has no more; its settings were tried still
    """

    graph: str
    tried: int
    record: Record | None
    document: Document


def adopt_studies(paths: Sequence[Path], file: Path, folder: Path) -> dict[str, Record]:
    """Write the records of these studies to the file and the studies to the folder.

    Several studies of one data set count together: the best by validation wins, among all their
    settings; a winner that stops by validation loss before others, whose scores are those of the
    best epoch and so higher by luck.  Nothing is written if one of the studies is refused.
    """
    held, found = records(file) if file.exists() else {}, dict[str, list[Study]]()
    for path in paths:
        study = read_study(path / STUDY if path.is_dir() else path)
        found.setdefault(study.graph, []).append(study)
    adopted = {name: _best(name, studies) for name, studies in found.items()}
    for name, studies in found.items():
        for number, study in enumerate(studies, 1):
            write_document(folder / f"{name}{f'-{number}' * (number > 1)}.json", study.document)
    # last, so that no record is without its study
    every = {**held, **adopted}
    write_document(file, {name: every[name].document() for name in sorted(every)})
    return adopted


def _best(name: str, studies: Sequence[Study]) -> Record:
    able = [study.record for study in studies if study.record]
    if not able:
        raise InputError(
            f"no winner of these studies of {name} can be trained any more; give a newer study, too"
        )
    best = max(able, key=lambda record: (_unbiased(record), record.val))
    return replace(best, tried=sum(study.tried for study in studies))


def _unbiased(record: Record) -> bool:
    monitor = record.settings.get("monitor", Recipe.monitor)
    return bool(monitor == "val_loss")


def read_study(path: Path) -> Study:
    """The study of a document of `gcnii tune`; InputError if it cannot be a record."""
    return read_document(path, SHAPE, "study of `gcnii tune`", _checked)


def _checked(document: Document) -> Study:
    name, won = document["graph"], document["winner"]
    if name not in CATALOG:
        raise InputError(f"{name!r} is not a data set of the catalog")
    _refuse_other_graph(document)
    (own, *_) = [one for one in document["trials"] if one["number"] == won["number"]] or [None]
    if own is None or own["outcome"] != "complete" or document["tried"] != len(document["trials"]):
        raise InputError("its winner must be a complete one of its trials, and all must be there")
    scores = [score for score in own["val"] if score is not None]
    if len(scores) < LEAST or len(scores) < len(own["val"]):
        raise InputError(
            f"the winner's validation score must be of at least {LEAST} runs, got {len(scores)}"
        )
    if not 0 <= won["val"] <= 1 or not isclose(fmean(scores), won["val"], abs_tol=10**-DIGITS):
        raise InputError(f"the winner's val must be the mean of its runs, got {won['val']}")
    tried, record = document["tried"], None
    if not GONE & won["settings"].items():
        settings = _differing(won["model"], won["settings"])
        record = Record(won["model"], settings, tried, won["val"])
    return Study(name, tried, record, _to_keep(document, name))


def _to_keep(document: Document, name: str) -> Document:
    """The study without what is of one machine; of each trial, the settings that were searched."""
    searched = document["searched"]
    trials = [
        {
            **{field: trial[field] for field in ("number", "model", "outcome")},
            "settings": {one: trial["settings"][one] for one in searched[trial["model"]]},
            "val": [score if score is None else round(score, DIGITS) for score in trial["val"]],
        }
        for trial in document["trials"]
    ]
    return document | {"command": own_words(document["command"], name), "trials": trials}


def _refuse_other_graph(document: Document) -> None:
    graph = load(document["graph"])
    if document["fingerprint"] != graph.fingerprint:
        raise InputError(
            f"it is of another graph than {graph.name} of the catalog, or other splits"
        )
    usual = target_of(graph).score("auto").name
    if document["measured"] != usual:
        raise InputError(f"it must maximise {usual}, got {document['measured']}")


def _differing(model: str, settings: Settings) -> Settings:
    """Those that differ from the defaults of the model and of Recipe; refuses unknown ones."""
    usual, whole = make_plan(model, {}).settings, make_plan(model, settings).settings
    return {name: value for name, value in whole.items() if value != usual[name]}


def own_words(command: str, graph: str) -> str:
    """The command without what is of one machine alone: its folders and its database."""
    kept, words = list[str](), iter(shlex.split(command))
    for word in words:
        if word in PLACES:
            next(words, None)
        elif word.partition("=")[0] not in PLACES:
            kept.append(graph if Path(word).is_absolute() else word)
    return shlex.join(kept)
