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
VALUES = [None, "wrong", -5, '{"cut": [1, ']
ODD = ["", "x" * 100_000, float("inf"), "nan", b"\xff\x00", 7.5, "[]", "null"]
WEIGHTY = {
    "state",
    "number",
    "value",
    "param_value",
    "distribution_json",
    "value_json",
    "heartbeat",
}
NESTED = """distribution_json = replace(distribution_json, 's": [', 's": [[[1]], ')"""
WIDER = "distribution_json = replace(distribution_json, '0.03', '0.04')"
TOLD = "trial_user_attributes WHERE trial_id = 3 AND key = 'told'"
# Which row is changed: that of a setting that has ended, or was given back.
ROWS = {"trial_user_attributes": "key = 'told'", "trial_heartbeats": "trial_id = 8"}


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


COLUMNS = {
    "studies": ("study_id", "study_name"),
    "version_info": ("version_info_id", "schema_version", "library_version"),
    "study_directions": ("study_direction_id", "direction", "study_id", "objective"),
    "study_user_attributes": ("study_user_attribute_id", "study_id", "key", "value_json"),
    "study_system_attributes": ("study_system_attribute_id", "study_id", "key", "value_json"),
    "trials": ("trial_id", "number", "study_id", "state", "datetime_start", "datetime_complete"),
    "trial_user_attributes": ("trial_user_attribute_id", "trial_id", "key", "value_json"),
    "trial_system_attributes": ("trial_system_attribute_id", "trial_id", "key", "value_json"),
    "trial_params": ("param_id", "trial_id", "param_name", "param_value", "distribution_json"),
    "trial_values": ("trial_value_id", "trial_id", "objective", "value", "value_type"),
    "trial_intermediate_values": (
        *("trial_intermediate_value_id", "trial_id", "step"),
        *("intermediate_value", "intermediate_value_type"),
    ),
    "trial_heartbeats": ("trial_heartbeat_id", "trial_id", "heartbeat"),
    "alembic_version": ("version_num",),
}


@pytest.mark.parametrize(
    ("table", "column"), [(table, one) for table, columns in COLUMNS.items() for one in columns]
)
def test_no_cell_of_a_study_is_trusted(table, column, graph, tampered, untouched):
    done = 0
    for value in VALUES + ODD * (column in WEIGHTY):
        place = f"rowid = (SELECT min(rowid) FROM {table} WHERE {ROWS.get(table, 'true')})"
        try:
            folder = tampered((f"UPDATE {table} SET {column} = ? WHERE {place}", (value,)))
        except sqlite3.Error:
            continue  # the file itself refuses it
        assert judged(graph, folder, untouched), value
        done += 1
    assert done


@pytest.mark.parametrize(
    "name",
    ["model", "settings", "val", "val_loss", "epochs", "seconds", "final_seconds", "lost", "rungs"],
)
def test_nothing_that_is_told_of_a_setting_is_trusted(name, graph, kept, tampered, untouched):
    with closing(sqlite3.connect(kept)) as file:
        told = json.loads(file.execute(f"SELECT value_json FROM {TOLD}").fetchone()[0])
    plain = {one: value for one, value in told.items() if one != "seal"}  # as version 1.0 wrote it
    missing = {one: value for one, value in plain.items() if one != name}
    wrong = ["x", -1, None, [None, 2.0], {"4": {"a": 1}}, {"x": {"0": 1}}]
    cases = [missing, *(plain | {name: value} for value in wrong if plain[name] != value)]
    for case in cases:
        assert judged(graph, changed(tampered, case), untouched) == "refused", case
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


@pytest.mark.parametrize("table", [*COLUMNS])
def test_a_missing_table_or_row_is_refused_or_costs_nothing(table, graph, tampered, untouched):
    assert judged(graph, tampered(f"DROP TABLE {table}"), untouched)
    assert judged(graph, tampered(f"DELETE FROM {table}"), untouched)
    first = f"rowid = (SELECT min(rowid) FROM {table})"
    assert judged(graph, tampered(f"DELETE FROM {table} WHERE {first}"), untouched)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE trials SET state = 'FAIL' WHERE number = 2", "it has a score, and is fail"),
        ("UPDATE trials SET state = 'RUNNING' WHERE number = 2", "it has a score, and is running"),
        ("UPDATE trials SET state = 'PRUNED' WHERE number = 2", "it cannot be given up"),
        ("UPDATE trials SET number = 1 WHERE number = 2", "not numbered from 0"),
        (
            "UPDATE trial_values SET value = 0.999 WHERE trial_id = 3",
            "setting 2: its score must be",
        ),
        ("UPDATE trial_values SET value_type = 'INF_POS' WHERE trial_id = 3", "is damaged: Assert"),
        ("UPDATE study_directions SET direction = 'MINIMIZE'", "it does not maximise one score"),
        ("UPDATE study_user_attributes SET value_json = '-3'", "must be a number ≥ 0, got -3"),
        (
            "UPDATE trial_params SET param_value = 0 WHERE param_name = 'model'",
            "cannot be|missing|way",
        ),
        ("UPDATE trial_params SET param_value = 0.02 WHERE param_name = 'lr'", "another lr"),
        ("UPDATE trial_params SET param_value = 99 WHERE param_name = 'lr'", "lr cannot be 99"),
        (f"UPDATE trial_params SET {WIDER} WHERE param_name = 'lr'", "lr is not searched in this"),
        (f"UPDATE trial_params SET {NESTED} WHERE param_name = 'model'", "model is not searched"),
        ("DELETE FROM trial_params WHERE param_name = 'lr'", "parameters are missing"),
        ("DELETE FROM trial_user_attributes WHERE key = 'told'", "it has ended without a record"),
        ("DELETE FROM trials WHERE number = 0", "rows of trial_.* belong to nothing"),
        (
            "UPDATE trial_heartbeats SET heartbeat = '9999-01-01 00:00:00'",
            "lies in the future",
        ),
        ("UPDATE trial_system_attributes SET value_json = '99'", "must repeat an earlier setting"),
        ("UPDATE alembic_version SET version_num = 'v99'", "is damaged: The runtime optuna"),
        ("DROP TABLE trial_values", "the table trial_values is missing"),
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
