"""gcnii reproduce search and adopt."""

import json
import re

import pytest
from support import knobs
from support.command_line import call, files


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("adopt", "nowhere"), "nowhere is not a folder; give the one that"),
        (("search", "table2"), "no search has 'table2' in its name"),
        (
            ("search", "table3", "--device", "foo"),
            "device must be auto, cpu or cuda, got 'foo'",
        ),
        (("search", "table3", "--trials", "0"), "--trials must be at least 1, got 0"),
    ],
)
def test_wrong_usage_is_refused_and_leaves_no_file(words, sentence, tmp_path):
    answer = call("reproduce", *words, cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"gcnii: {sentence}")
    assert files(tmp_path) == []


@pytest.fixture
def tiny(monkeypatch):
    """A search of the name figure9/gcnii/2."""
    from gcnii_paper.search import SEARCHES, Search

    axes = (({"alpha": 0.1}, {"alpha": 0.5}),)
    search = Search(
        "figure9/gcnii/2", "csbm", "gcnii", {"layers": 2, "width": 4, "epochs": 2}, axes
    )
    monkeypatch.setitem(SEARCHES, search.name, search)


def test_search_keeps_its_tries(tiny, tmp_path):
    words = ("reproduce", "search", "figure9", "--trials", 2, "--device", "cpu")
    answer = call(*words, cwd=tmp_path)
    record = json.loads((tmp_path / "results/search/figure9-gcnii-2.json").read_text())
    assert (
        answer.out == f"figure9/gcnii/2: {json.dumps(record['winner'])}, best of 2 by validation\n"
    )
    assert (answer.err, files(tmp_path)) == ("", ["results/search/figure9-gcnii-2.json"])


def test_trials_may_still_be_called_budget(tiny, tmp_path):
    words = ("reproduce", "search", "figure9", "--budget", 1, "--device", "cpu")
    answer = call(*words, cwd=tmp_path)
    assert (answer.code, answer.err) == (
        0,
        "gcnii: --budget is called --trials now; use --trials 1\n",
    )
    record = json.loads((tmp_path / "results/search/figure9-gcnii-2.json").read_text())
    assert record["command"] == "gcnii reproduce search figure9/gcnii/2 --trials 1"


def test_without_optuna_a_search_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(knobs.FIND_OPTUNA, lambda name: None)
    answer = call("reproduce", "search", "table3", cwd=tmp_path)
    assert answer.err.startswith("gcnii: reproduce search needs Optuna; install it: pip install")


def keep_search(folder, name, tries, val=0.5):
    """Write the record of a search with this number of tries, all alike."""
    done = {"settings": {"lr": 0.1}, "val": [val], "val_loss": [val]}
    record = {"search": name, "budget": tries, "winner": {"lr": 0.1}, "tries": [done] * tries}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record))


def test_winners_with_enough_tries_are_added_to_those_adopted_before(tmp_path):
    for name, tries in (("a", 9), ("b", 10)):
        keep_search(tmp_path / "results" / "search", name, tries)
    (tmp_path / "found.json").write_text('{"b": {"lr": 0.2}, "c": {"lr": 0.3}}')
    answer = call("reproduce", "adopt", "--out", "found.json", cwd=tmp_path)
    assert answer.out == "1 winners of at least 10 tries adopted; found.json holds 2\n"
    assert json.loads((tmp_path / "found.json").read_text()) == {"b": {"lr": 0.1}, "c": {"lr": 0.3}}


@pytest.mark.parametrize(("tries", "val"), [(9, 0.5), (10, None)])
def test_without_a_winner_nothing_is_adopted(tries, val, tmp_path):
    keep_search(tmp_path / "search", "a", tries, val)
    answer = call("reproduce", "adopt", "search", "--out", "found.json", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(
        "gcnii: search has no winner of at least 10 tries; run `gcnii reproduce"
    )
    assert not (tmp_path / "found.json").exists()


@pytest.mark.parametrize("more", [(), ("--jobs", "2")], ids=["alone", "jobs"])
def test_ctrl_c_in_a_search_keeps_its_tries_and_says_so(more, monkeypatch, tmp_path):
    def stop(*words, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("gcnii_paper.searching.run_search", stop)
    monkeypatch.setattr("gcnii.parallel.run_parallel", stop)
    answer = call(
        "reproduce", "search", "table3/cora-gcnii-searched/4", *more, "--out", "kept", cwd=tmp_path
    )
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.endswith("gcnii: stopped; kept keeps every finished try\n")


@pytest.mark.parametrize("text", ["milk", "[]", '{"milk": 2}'])
def test_adopt_leaves_a_file_of_something_else_as_it_is(text, tmp_path):
    keep_search(tmp_path / "search", "a", 10)
    (tmp_path / "notes.txt").write_text(text)
    answer = call("reproduce", "adopt", "search", "--out", "notes.txt", cwd=tmp_path)
    assert answer.err.startswith("gcnii: notes.txt is not a file of adopted settings: ")
    assert (tmp_path / "notes.txt").read_text() == text


WRONG = (
    "{bad",
    "[]",
    '{"search": "a"}',
    '{"search": "a", "budget": "x", "winner": {}, "tries": []}',
    '{"search": "a", "budget": 1, "winner": {}, "tries": [7]}',
    '{"search": "a", "budget": 10, "winner": {}, '
    '"tries": [{"settings": {}, "val": [0.5], "val_loss": []}]}',
)


@pytest.mark.parametrize("text", WRONG)
def test_adopt_refuses_what_is_not_a_record_of_a_search(text, tmp_path):
    folder = tmp_path / "search"
    folder.mkdir()
    answer = call("reproduce", "adopt", "search", "--out", "found.json", cwd=tmp_path)
    assert answer.err.startswith("gcnii: search holds no searches; give the folder that")
    (folder / "a.json").write_text(text)
    answer = call("reproduce", "adopt", "search", "--out", "found.json", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert re.fullmatch(
        r"gcnii: search/a.json is not a record of a search: .*; restore it, or move it away\n",
        answer.err,
    )
    assert not (tmp_path / "found.json").exists()
