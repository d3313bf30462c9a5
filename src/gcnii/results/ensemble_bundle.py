"""The bundle of an ensemble: run.json, card.md, and a folder `members` with one for each member.

A member of networks is a bundle of its own; any other is one JSON file.  run.json is written last,
and holds the digests of all: until then the folder keeps what it held.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from math import isclose, nan
from pathlib import Path

from gcnii.errors import BundleError, InputError, some_of
from gcnii.files import (
    CARD,
    CHECKPOINT,
    CURVES,
    NOTHING,
    WEIGHTS,
    Document,
    Maybe,
    Only,
    atomic_write,
    check,
    claimed,
    document_key,
    file_sha256,
    naming,
    one_name,
    read_document,
    write_document,
)
from gcnii.members.propagation import CorrectAndSmooth, LabelPropagation
from gcnii.members.trees import Trees
from gcnii.results.bundle import (
    COMBINED,
    GRAPH,
    MADE,
    RUN,
    SCORE,
    open_result,
    open_run,
    provenance,
    read_record,
    refuse_graph_and_runs,
    refusing,
    save_claimed,
)
from gcnii.results.card import card
from gcnii.results.ensemble import (
    Blend,
    Boosted,
    Ensemble,
    Fitted,
    Member,
    Networks,
    Propagated,
    Smoothed,
)
from gcnii.results.result import Origin, Trained
from gcnii.targets import target_of
from gcnii.train.checkpoint import before
from gcnii.train.plan import AUTO, make_plan

MEMBERS, MEMBER, ASKED = "members", "member.json", "asked.json"
CHECKPOINTS = (CHECKPOINT, before(Path(CHECKPOINT)).name)
OF_A_MODEL = (WEIGHTS, CURVES, *CHECKPOINTS)
MOST_FOLDS = 100
NETWORKS = "networks"
KINDS = (NETWORKS, Boosted.kind, Propagated.kind, Smoothed.kind)
SHAPE = {
    "graph": Only(GRAPH),
    "fingerprint": str,
    "model": str,
    "settings": dict,
    "recipe": dict,  # checked by Recipe
    "metric": str,
    "runs": [Only(RUN)],
    "test_mean": SCORE,
    "test_std": SCORE,
    "folds": int,
    "leaderboard": [dict],
    "left_out": [str],
    "departed": [dict],
    "losses": [SCORE],
    "members": [Only({"name": str, "kind": {*KINDS}, "sha256": str})],
    "blends": [Only({"rows": [int], "weights": [float]})],
    "positive": Maybe(str),
    "scores": Maybe(str),  # when they were measured
    "device": str,
    "interrupted": bool,
    "card_sha256": str,
    "versions": {str: str},
    "git": Maybe((str, NOTHING)),
    "command": Maybe((str, NOTHING)),
}
FITTED = {"kind": {*KINDS[1:]}, "runs": [Only(RUN)], "each": [dict], "base": Maybe(str)}


def identity_of(fingerprint: str, settings: Document) -> Document:
    """What decides an ensemble: the graph, and what was asked for."""
    return {"graph": fingerprint, "model": AUTO, "settings": settings}


def ensemble_folder(name: str, fingerprint: str, settings: Document) -> Path:
    """runs/GRAPH-auto-KEY: another graph of this name, or other settings, have another folder."""
    return Path("runs") / f"{name}-{AUTO}-{document_key(identity_of(fingerprint, settings))[:8]}"


@contextmanager
def claimed_ensemble(
    folder: Path, fingerprint: str, settings: Document, *, overwrite: bool = False
) -> Iterator[None]:
    """Claim the folder for this ensemble; InputError, before any work, if that is not possible.

    Members of this ensemble that it holds stay, to go on from; those of another are given up with
    `overwrite`.
    """
    identity = identity_of(fingerprint, settings)
    with claimed(folder):
        entries = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        ours = {"run.json", CARD, MEMBERS, *(OF_A_MODEL if overwrite else ())}
        if foreign := sorted(name for name in entries - ours if not name.startswith(".")):
            raise InputError(
                f"{folder} holds {some_of(foreign)}, which are not of an ensemble; choose another "
                "folder (--out)"
            )
        _refuse_kept(folder, identity, overwrite=overwrite)
        asked = folder / MEMBERS / ASKED
        if not asked.exists() or read_document(asked, {}, "ensemble's settings", dict) != identity:
            shutil.rmtree(folder / MEMBERS, ignore_errors=True)
            write_document(asked, identity)
        yield


def _refuse_kept(folder: Path, identity: Document, *, overwrite: bool) -> None:
    """Raise InputError if what the folder holds is worth more than what will replace it."""
    if overwrite:
        return
    why, asked = "", folder / MEMBERS / ASKED
    if (folder / "run.json").exists():
        held = read_record(folder)
        settings = held["settings"]
        if held["format"] != COMBINED:
            why = "the bundle of another training"
        elif identity_of(held["fingerprint"], settings) != identity:
            why = "the bundle of another ensemble"
    elif asked.exists() and read_document(asked, {}, "ensemble's settings", dict) != identity:
        why = "members of another ensemble"
    if why:
        raise InputError(
            f"{folder} holds {why}; choose another folder, or overwrite it "
            "(--overwrite; in Python, overwrite=True)"
        )


def finished_ensemble(folder: Path, fingerprint: str, settings: Document) -> Ensemble | None:
    """This ensemble, if the folder holds a whole bundle of it."""
    if not (folder / "run.json").exists():
        return None
    record = read_record(folder)
    identity = identity_of(fingerprint, settings)
    if record["format"] != COMBINED or record["interrupted"]:
        return None
    if identity_of(record["fingerprint"], record["settings"]) != identity:
        return None
    try:
        return open_ensemble(folder, record)
    except BundleError:  # what is left of it is gone on from
        return None


def save_ensemble(
    ensemble: Trained, folder: Path, *, overwrite: bool = False, command: str = ""
) -> Path:
    """`Ensemble.save`, once the folder is claimed."""
    assert isinstance(ensemble, Ensemble)
    identity = identity_of(ensemble.origin.fingerprint, ensemble.settings)
    _refuse_kept(folder, identity, overwrite=overwrite)
    if ensemble.made is None:
        ensemble = replace(ensemble, made=provenance(command))
    write_document(folder / MEMBERS / ASKED, identity)
    listed = [save_member(member, folder) for member in ensemble.members]
    with atomic_write(folder / CARD) as temporary, naming(folder / CARD):
        temporary.write_text(card(ensemble), "utf-8")
        digest = file_sha256(temporary)
    record = _record(ensemble) | {"members": listed, "card_sha256": digest}
    again = json.loads(json.dumps(record), parse_constant=lambda word: None)
    open_ensemble(folder, again)  # or an error: what cannot be opened is not saved
    write_document(folder / "run.json", record | {"seal": document_key(record)})
    for name in OF_A_MODEL:
        (folder / name).unlink(missing_ok=True)
    if not ensemble.interrupted:  # else it is gone on from what there is
        _remove_others(folder, {member.name for member in ensemble.members})
    return folder


def _record(ensemble: Ensemble) -> Document:
    """What run.json holds, but for the members and the digest of the card."""
    blends = [{"rows": list(one.rows), "weights": list(one.weights)} for one in ensemble.blends]
    recipe = json.loads(json.dumps(asdict(ensemble.recipe)))
    about = {"graph": ensemble.origin.document(), "recipe": recipe, "blends": blends}
    about["departed"], about["losses"] = list(ensemble.departed), list(ensemble.losses)
    return {"format": COMBINED, **ensemble.summary(), **about, **(ensemble.made or {})}


def _remove_others(folder: Path, names: set[str]) -> None:
    """Members that left before the end are not part of the bundle."""
    for path in (folder / MEMBERS).iterdir():
        if path.is_dir() and path.name not in names:
            shutil.rmtree(path, ignore_errors=True)


def save_member(member: Member, folder: Path) -> Document:
    """Write a member to its folder, unless it is there already; what run.json says of it."""
    place = folder / MEMBERS / member.name
    if isinstance(member, Networks):
        kind, path = NETWORKS, place / "run.json"
        save_claimed(member.result, place, overwrite=True)
        for name in CHECKPOINTS:  # of these runs
            (place / name).unlink(missing_ok=True)
    else:
        assert isinstance(member, Fitted)
        kind, path = member.kind, place / MEMBER
        write_document(path, member.document())
    return {"name": member.name, "kind": kind, "sha256": file_sha256(path)}


def open_ensemble(folder: Path, record: Document, *, curves: bool = False) -> Ensemble:
    """The ensemble of a record that was read, but not checked."""
    with refusing(folder / "run.json"):
        check(record, SHAPE)
        refuse_graph_and_runs(record)
        _refuse_contradictions(record)
        recipe = make_plan("mlp", record["recipe"]).recipe
    members: dict[str, Member] = {}
    for one in record["members"]:
        members[one["name"]] = _open_member(folder, one, members, curves=curves)
    origin = Origin.of_document(record["graph"])
    target = target_of(origin)
    positive = target.names.index(record["positive"]) if "positive" in record else None
    return Ensemble(
        origin=origin,
        members=tuple(members.values()),
        blends=tuple(Blend(tuple(one["rows"]), tuple(one["weights"])) for one in record["blends"]),
        runs=tuple(map(open_run, record["runs"])),
        shared=recipe,
        folds=record["folds"],
        device=record["device"],
        interrupted=record["interrupted"],
        left_out=tuple(record["left_out"]),
        departed=tuple(record["departed"]),
        losses=tuple(nan if one is None else one for one in record["losses"]),
        settings=record["settings"],
        positive=positive,
        made={name: record[name] for name in MADE if name in record},
    )


def _refuse_contradictions(record: Document) -> None:
    names = [one["name"] for one in record["members"]]
    if not names or len(set(names)) < len(names) or any(one_name(one) != one for one in names):
        raise InputError("members must be one or more, of different names that folders can have")
    if len(record["blends"]) != len(record["runs"]):
        raise InputError(f"there are {len(record['runs'])} runs of {len(record['blends'])} blends")
    if len(record["losses"]) != len(names):
        raise InputError(f"there are {len(record['losses'])} losses of {len(names)} members")
    for blend in record["blends"]:
        weights = blend["weights"]
        if len(weights) != len(names) or min(weights) < 0 or not isclose(sum(weights), 1):
            raise InputError("weights must be at least 0, one for each member, and add up to 1")
        if not blend["rows"] or min(blend["rows"]) < 0:
            raise InputError("a blend needs one run or more")
    if not 0 <= record["folds"] <= MOST_FOLDS or record["folds"] == 1:
        raise InputError(f"folds must be 0 or 2 to {MOST_FOLDS}, got {record['folds']}")


def _open_member(
    folder: Path, listed: Document, earlier: Mapping[str, Member], *, curves: bool
) -> Member:
    """A member of the bundle in this folder; it may build on those before it."""
    place = folder / MEMBERS / listed["name"]
    path = place / ("run.json" if listed["kind"] == NETWORKS else MEMBER)
    try:
        same = file_sha256(path) == listed["sha256"]
    except (OSError, InputError):
        same = False
    if not same:
        raise BundleError(
            f"{path} is not the file that run.json was written with; train again or restore it"
        )
    found = read_member(place, earlier, curves=curves)
    if found is None:
        raise BundleError(f"{place} holds no member; train again or restore it")
    return found


def read_member(
    place: Path, earlier: Mapping[str, Member], *, curves: bool = False
) -> Member | None:
    """The member in a folder; None if there is none."""
    if (place / "run.json").exists():
        record = read_record(place)
        if record["format"] != COMBINED:
            return Networks(place.name, open_result(place, record, curves=curves))
    if not (place / MEMBER).exists():
        return None
    with refusing(place / MEMBER):
        document = read_document(place / MEMBER, FITTED, "member of an ensemble", dict)
        runs, each = tuple(map(open_run, document["runs"])), document["each"]
        if not runs or len(each) != len(runs):
            raise InputError(f"there are {len(runs)} runs and {len(each)} of what answers them")
        match document["kind"]:
            case Boosted.kind:
                return Boosted(place.name, runs, tuple(map(Trees.of, each)))
            case Propagated.kind:
                return Propagated(place.name, runs, tuple(map(LabelPropagation.of, each)))
            case _:
                if document.get("base") not in earlier:
                    raise InputError(f"base must be a member, got {document.get('base')!r}")
                smooth = tuple(map(CorrectAndSmooth.of, each))
                return Smoothed(place.name, runs, smooth, earlier[document["base"]])
