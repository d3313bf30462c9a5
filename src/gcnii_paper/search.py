"""Searches for settings that nobody has published: what is tried, which try wins, who adopts it.

A search's document holds every try and no test score.  Winners of `gcnii tune` become the record
settings of a data set; their studies are kept beside the results.
"""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf, isclose, isfinite, prod
from pathlib import Path
from statistics import fmean

from gcnii.data import CATALOG, load
from gcnii.errors import InputError
from gcnii.files import NOTHING, Document, Maybe, read_document, write_document
from gcnii.targets import target_of
from gcnii.train.plan import make_plan
from gcnii.train.presets import Record, Settings, preset, records
from gcnii.tuning.question import STUDY
from gcnii_paper.tables.cells import Cell
from gcnii_paper.tables.registry import CELLS, ENOUGH, FAMILY, SEARCHED


@dataclass(frozen=True)
class Search:
    """A model on a graph, its `fixed` settings, and axes: each try takes one point of each axis.

    The first try is `fixed` alone, over the preset.  The name seeds what is proposed next.
    """

    name: str
    graph: str
    model: str
    fixed: Settings
    axes: tuple[tuple[Settings, ...], ...]

    def at(self, places: Mapping[str, int]) -> Settings:
        """The settings of a try; axis → the place of its point."""
        points = (axis[places[name]] for name, axis in self.named_axes.items())
        return self.fixed | {name: value for point in points for name, value in point.items()}

    def places(self, settings: Settings) -> dict[str, int]:
        """`at` backwards; empty for `fixed` alone."""
        found = {
            name: place
            for name, axis in self.named_axes.items()
            for place, point in enumerate(axis)
            if point.items() <= settings.items()
        }
        return found if len(found) == len(self.axes) else {}

    @property
    def named_axes(self) -> dict[str, tuple[Settings, ...]]:
        """The axes by the settings that their points have."""
        return {"+".join(axis[0]): axis for axis in self.axes}

    @property
    def size(self) -> int:
        """The number of different tries."""
        return 1 + prod(map(len, self.axes))

    @property
    def about(self) -> Document:
        """What its document says of it; a document that says otherwise is another search's."""
        space = asdict(self)
        return {"search": space.pop("name"), **space}

    @property
    def file(self) -> str:
        """The name of its document."""
        return f"{self.name.replace('/', '-')}.json"


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


Axis = tuple[Settings, ...]


_SPACES = tomllib.loads(Path(__file__).with_name("spaces.toml").read_text("utf-8"))


def _axes(space: str) -> tuple[Axis, ...]:
    """The axes of a space; the settings that `+` joins have the same value."""
    return tuple(
        tuple(dict.fromkeys(names.split("+"), value) for value in values)
        for names, values in _SPACES[space].items()
    )


DROPEDGE = dict.fromkeys(FAMILY, _axes("dropedge"))
AT_EACH_DEPTH = dict.fromkeys(("gcnii", "gcnii-star"), _axes("gcnii"))
PLAIN = _axes("skeleton")
SKELETON = {
    "deep-gcn": PLAIN,
    "gcn-residual": PLAIN,
    "gcn-initial": PLAIN + _axes("gcn-initial"),
    "gcn-identity": PLAIN + _axes("gcn-identity"),
}


def _searches(cells: Iterable[Cell], axes: dict[str, tuple[Axis, ...]]) -> list[Search]:
    return [
        Search(
            cell.id, cell.graph, cell.model, {"layers": cell.settings["layers"]}, axes[cell.model]
        )
        for cell in cells
    ]


def _unpublished(cell: Cell) -> bool:
    """Whether it has DropEdge, at another depth than the published one."""
    return (
        "(Drop)" in cell.row and preset(cell.graph, cell.model)["layers"] != cell.settings["layers"]
    )


SEARCHES = {
    search.name: search
    for search in (
        *_searches(filter(_unpublished, CELLS["table3"]), DROPEDGE),
        *_searches(SEARCHED, AT_EACH_DEPTH),
        *_searches(CELLS["figure1"], SKELETON),
        *_searches((cell for cell in CELLS["figure2"] if cell.model in SKELETON), SKELETON),
    )
}


def choose_searches(word: str) -> list[Search]:
    """The searches whose name contains this word."""
    found = [search for name, search in SEARCHES.items() if word.lower() in name]
    if not found:
        raise InputError(
            f"no search has {word!r} in its name; names are like {next(iter(SEARCHES))}"
        )
    return found


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
# Settings of a trial of our own before the studies, with test scores beside those of validation.
# Its best by validation are among the first points of every search with few labels (views, mild and
# loose of good.toml).
EARLIER = {"cora": 11, "citeseer": 12, "pubmed": 21}
GONE = {("row_norm", "length"), ("head", "all")}  # options that GCNII+ had
DIGITS = 4  # of a trial's scores that are kept


@dataclass(frozen=True)
class CheckedStudy:
    """A study that was closed and checked: its graph, its winner, and its document to keep.

    val     the mean validation score of its winner
    record  none if the winner has an option that GCNII+ has no more; its settings were tried still
    """

    graph: str
    tried: int
    val: float
    record: Record | None
    document: Document


def adopt_studies(paths: Sequence[Path], file: Path, folder: Path) -> dict[str, Record]:
    """Write the records of these studies to the file and the studies to the folder.

    Several studies of one data set count together: the highest validation score wins, whatever
    the stopping rule, among all their settings and those of EARLIER.  Nothing is written if one of
    the studies is refused.
    """
    held, found = records(file) if file.exists() else {}, dict[str, list[CheckedStudy]]()
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


def _best(name: str, studies: Sequence[CheckedStudy]) -> Record:
    best = max(studies, key=lambda study: study.val)
    if not best.record:
        raise InputError(
            f"the best of these studies of {name} has an option that GCNII+ no longer has; give a "
            "newer study that is better on validation, too"
        )
    tried = sum(study.tried for study in studies) + EARLIER.get(name, 0)
    return replace(best.record, tried=tried)


def read_study(path: Path) -> CheckedStudy:
    """The study of a document of `gcnii tune`; InputError if it cannot be a record."""
    return read_document(path, SHAPE, "study of `gcnii tune`", _checked_study)


def _checked_study(document: Document) -> CheckedStudy:
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
    return CheckedStudy(name, tried, won["val"], record, _to_keep(document, name))


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
