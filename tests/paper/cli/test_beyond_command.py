"""gcnii reproduce beyond and adopt-record, and gcnii train --preset record."""

import json

import pytest
from support import knobs
from support.command_line import call
from support.made_up_records import hold

from gcnii_paper.tables import beyond
from gcnii_paper.tables.beyond import BestKnown

SETTINGS = {"layers": 2, "width": 8, "epochs": 3}
RECORD = {"model": "gcnii-star", "settings": SETTINGS}
WORDS = ("reproduce", "beyond", "--ledger", "ledger.sqlite", "--device", "cpu")


@pytest.fixture
def held(monkeypatch, tmp_path):
    monkeypatch.setattr(beyond, "BEST", (BestKnown("csbm", "Drawn", 60.0, "Nobody 2020"),))
    return hold(monkeypatch, tmp_path, {"csbm": RECORD})


def test_a_record_is_measured_once_and_kept_in_the_ledger(held, tmp_path, monkeypatch):
    first = json.loads(call(*WORDS, "--runs", 3, "--json", cwd=tmp_path).out)
    (row,) = first["rows"]
    assert (row["graph"], row["ours"]["n"], row["record"]["tried"]) == ("csbm", 3, 40)
    assert first["cells"][0]["model"] == "gcnii-star"
    monkeypatch.setattr(knobs.REPRODUCED_FIT, None)  # nothing is left to train
    assert json.loads(call(*WORDS, "--runs", 3, "--json", cwd=tmp_path).out) == first
    answer = call("reproduce", "export", "--ledger", "ledger.sqlite", cwd=tmp_path)
    assert answer.out == "1 cells in results/cells\n"
    assert (tmp_path / "results/cells/beyond/record-csbm.json").exists()


def test_a_data_set_without_a_record_is_shown_as_missing_with_what_to_do(held, tmp_path):
    held.write_text("{}")
    answer = call(*WORDS, cwd=tmp_path)
    assert answer.code == 0
    assert "missing" in answer.out
    assert "gcnii tune NAME" in answer.out
    assert json.loads(call(*WORDS, "--json", cwd=tmp_path).out)["rows"][0]["ours"] is None


def test_train_uses_the_record_and_its_bundle_holds_plain_settings(held, tmp_path):
    words = ("train", "csbm", "--preset", "record", "--device", "cpu", "--out", "b")
    answer = call(*words, "--width", 4, "--json", cwd=tmp_path)
    assert answer.code == 0, answer.err
    record = json.loads((tmp_path / "b" / "run.json").read_text())
    assert record["model"] == "gcnii-star"
    assert (record["settings"]["layers"], record["settings"]["width"]) == (2, 4)
    assert "preset" not in record["settings"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("train", "csbm", "--preset", "record", "--model", "gcn"),
            "the record of csbm has settings of gcnii-star, got the model gcn;",
        ),
        (
            ("train", "digits", "--preset", "record"),
            "digits has no record settings; there are some for csbm;",
        ),
        (
            ("train", "csbm", "--preset", "record", "--settings", "s"),
            "--settings and --preset record both choose the settings; give one",
        ),
        (("reproduce", "beyond", "--only", "mars"), "beyond has no data set 'mars'; known: "),
        (("reproduce", "adopt-record"), "give at least one study.json that `gcnii tune` wrote"),
        (("reproduce", "adopt-record", "gone.json"), "gone.json"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(words, sentence, held, tmp_path):
    answer = call(*words, cwd=tmp_path)
    assert answer.code != 0
    assert sentence in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["record.json"]


def test_a_data_set_says_that_it_has_a_record(held, tmp_path):
    line = "record: gcnii-star, by validation the best of 40 settings (gcnii train csbm --preset"
    assert line in call("data", "show", "csbm", cwd=tmp_path).out
    assert (
        json.loads(call("data", "show", "csbm", "--json", cwd=tmp_path).out)["record"]["tried"]
        == 40
    )
    assert "record:" not in call("data", "show", "digits", cwd=tmp_path).out
