"""A study that is damaged, or not ours, is refused by one sentence, or gives the same answer."""

import json
import shutil
import sqlite3
from contextlib import closing
from unittest import mock

import pytest
from support import knobs
from support.small_studies import QUICK, few_runs, settings_tried

import gcnii
from gcnii.errors import DataError, InputError
from gcnii.results.fit import Session
from gcnii.tuning import storage, worker
from gcnii.tuning.proposals import propose
from gcnii.tuning.question import Question
from gcnii.tuning.storage import Held
from gcnii.tuning.study import Tuner

ASKED = {"models": ["gcnii", "gcn"], "layers": 2, **QUICK}
TRIALS = 6  # that are finished; a seventh was left by a worker that died
NESTED = """distribution_json = replace(distribution_json, 's": [', 's": [[[1]], ')"""
WIDER = "distribution_json = replace(distribution_json, '0.03', '0.04')"
TOLD = "trial_user_attributes WHERE trial_id = 3 AND key = 'told'"


class Searched(Exception):
    """A search is over; closing the study would only take time."""

    def __init__(self, question, trials, *_):
        self.trials = trials


@pytest.fixture(scope="module")
def kept(graph, tmp_path_factory):
    """The storage of a study that was interrupted."""
    path = tmp_path_factory.mktemp("kept")
    with few_runs():
        gcnii.tune(graph, trials=TRIALS, out=path, **ASKED)
        tuner = tuner_of(graph, path)
        with tuner.study() as study:
            left = Held(study).claim()
            propose(tuner.question, left)
            storage.give_back(study, [left])
            again = Held(study).claim()
            propose(tuner.question, again)
    with closing(sqlite3.connect(path / "study.db")) as file, file:
        file.execute("UPDATE trial_heartbeats SET heartbeat = datetime('now', '-1 hour')")
        file.execute("INSERT INTO study_system_attributes VALUES (1, 1, 'of Optuna', '1')")
    return path / "study.db"


def tuner_of(graph, path):
    fixed = {name: ASKED[name] for name in ("layers", "epochs", "patience")}
    question = Question.of(graph, ASKED["models"], QUICK["seeds"], fixed=fixed)
    return Tuner.of(question, out=path, session=Session(device="cpu", threads=1))


@pytest.fixture
def tampered(kept, tmp_path):
    """Changes a copy of the study by SQL; its folder."""

    def change(*statements):
        folder = tmp_path / "study"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        shutil.copy(kept, folder)
        with closing(sqlite3.connect(folder / "study.db")) as file, file:
            file.execute("PRAGMA ignore_check_constraints = ON")
            for statement in statements:
                file.execute(*(statement if isinstance(statement, tuple) else (statement,)))
        return folder

    return change


@pytest.fixture(autouse=True)
def _quick():
    """The dead are given up sooner, and nothing is trained anew in the end."""
    with (
        mock.patch(knobs.GRACE, 1),
        mock.patch.object(worker, "PAUSE", 0.02),
        mock.patch(knobs.CLOSE, side_effect=lambda *words: throw(words)),
    ):
        yield


def throw(words):
    raise Searched(*words)


def resumed(graph, folder):
    """What a search that goes on has to choose from."""
    with pytest.raises(Searched) as over:
        gcnii.tune(graph, trials=TRIALS + 1, out=folder, **ASKED)
    return over.value.trials


@pytest.fixture(scope="module")
def untouched(graph, kept, tmp_path_factory):
    folder = tmp_path_factory.mktemp("untouched")
    shutil.copy(kept, folder)
    with few_runs(), mock.patch(knobs.CLOSE, side_effect=lambda *a: throw(a)):
        return settings_tried(resumed(graph, folder))


def judged(graph, folder, untouched):
    """`refused`, or `same`; anything else fails."""
    before = (folder / "study.db").read_bytes()
    try:
        found = settings_tried(resumed(graph, folder))
    except InputError as error:
        sentence = str(error)
    else:
        assert found == untouched
        return "same"
    assert sentence.startswith("the study in ") or "study.db holds another study" in sentence
    assert len(sentence) <= 900
    assert (folder / "study.db").read_bytes()[100:200] == before[100:200]
    return "refused"


@pytest.mark.parametrize(
    "name",
    [
        *("model", "settings", "val", "rungs"),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("val_loss", "epochs", "seconds", "final_seconds", "lost")
        ),
    ],
)
def test_nothing_that_is_told_of_a_setting_is_trusted(name, graph, kept, tampered, untouched):
    with closing(sqlite3.connect(kept)) as file:
        told = json.loads(file.execute(f"SELECT value_json FROM {TOLD}").fetchone()[0])
    plain = {one: value for one, value in told.items() if one != "seal"}  # as version 1.0 wrote it
    missing = {one: value for one, value in plain.items() if one != name}
    for case in (missing, plain | {name: None}, told | {name: "x"}):
        assert judged(graph, changed(tampered, case), untouched) == "refused", case


def test_a_study_of_version_1_goes_on_without_seals(graph, kept, tampered, untouched):
    with closing(sqlite3.connect(kept)) as file:
        told = json.loads(file.execute(f"SELECT value_json FROM {TOLD}").fetchone()[0])
    plain = {one: value for one, value in told.items() if one != "seal"}
    assert judged(graph, changed(tampered, plain), untouched) == "same"


def changed(tampered, told):
    """A study in which this is told of a setting."""
    place = TOLD.replace(" WHERE", " SET value_json = ? WHERE")
    return tampered((f"UPDATE {place}", (json.dumps(told),)))


def test_a_plausible_score_in_place_of_another_is_noticed(graph, kept, tampered):
    with closing(sqlite3.connect(kept)) as file:
        told = json.loads(file.execute(f"SELECT value_json FROM {TOLD}").fetchone()[0])
    better = told | {"val": [0.99, 0.99]}
    folder = changed(tampered, better)
    with closing(sqlite3.connect(folder / "study.db")) as file, file:
        file.execute("UPDATE trial_values SET value = 0.99 WHERE trial_id = 3")
    with pytest.raises(DataError, match="setting 2: its record was changed; restore it"):
        resumed(graph, folder)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE trials SET state = 'PRUNED' WHERE number = 2", "it cannot be given up"),
        ("UPDATE trials SET number = 1 WHERE number = 2", "not numbered from 0"),
        (
            "UPDATE trial_values SET value = 0.999 WHERE trial_id = 3",
            "setting 2: its score must be",
        ),
        ("UPDATE trial_values SET value_type = 'INF_POS' WHERE trial_id = 3", "is damaged: Assert"),
        ("UPDATE study_directions SET direction = 'MINIMIZE'", "it does not maximise one score"),
        ("UPDATE study_user_attributes SET value_json = 'null'", "seconds"),
        (
            "UPDATE trial_params SET param_value = 0 WHERE param_name = 'model'",
            "it was trained with another model|not searched in this way",
        ),
        ("UPDATE trial_params SET param_value = 0.02 WHERE param_name = 'lr'", "another lr"),
        (f"UPDATE trial_params SET {WIDER} WHERE param_name = 'lr'", "lr is not searched in this"),
        (f"UPDATE trial_params SET {NESTED} WHERE param_name = 'model'", "model is not searched"),
        ("DELETE FROM trial_params WHERE param_name = 'lr'", "KeyError"),
        ("DELETE FROM trial_user_attributes WHERE key = 'told'", "setting 0: "),
        ("DELETE FROM trials WHERE number = 0", "rows of trial_.* belong to nothing"),
        ("UPDATE trial_heartbeats SET heartbeat = 'wrong'", "Invalid isoformat string"),
        ("UPDATE trial_system_attributes SET value_json = '[]'", "must be a whole number"),
        ("UPDATE alembic_version SET version_num = 'v99'", "is damaged: The runtime optuna"),
        ("DROP TABLE trial_values", "its score must be"),
    ],
)
def test_a_damaged_study_says_what_is_wrong(statement, reason, graph, tampered):
    with pytest.raises(DataError, match=reason) as error:
        resumed(graph, tampered(statement))
    assert "restore it from a copy, or start over in another folder or database" in str(error.value)


def test_the_study_of_another_question_is_refused(graph, tampered):
    folder = tampered("UPDATE studies SET study_name = 'another'")
    with pytest.raises(
        InputError, match=r"study\.db holds another study: of another graph, or with"
    ):
        resumed(graph, folder)


def test_a_setting_whose_worker_was_never_heard_of_is_given_back(graph, tampered, untouched):
    assert judged(graph, tampered("DELETE FROM trial_heartbeats"), untouched) == "same"


@pytest.mark.parametrize("bytes_", [b"not a database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_not_a_database_is_refused(bytes_, graph, tmp_path):
    (tmp_path / "study.db").write_bytes(bytes_)
    with pytest.raises(DataError, match="is damaged: file is not a database; restore it"):
        resumed(graph, tmp_path)
    assert (tmp_path / "study.db").read_bytes() == bytes_
