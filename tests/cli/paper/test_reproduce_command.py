"""gcnii reproduce: a table grows where it was left, whatever stopped it, and however many work on
it.
"""

import json
import re
import signal
import time

import pytest
from support.command_line import call, files, finish, run, start

from gcnii.paper.tables import registry as tables
from gcnii.paper.tables.cells import Cell
from gcnii.paper.tables.printed import Printed

RUNS = 3
EPOCHS = 40
FIELDS = {"table": "table2", "column": "Drawn", "graph": "csbm", "runs": RUNS}
SETTINGS = {"layers": 2, "width": 8, "epochs": EPOCHS, "patience": EPOCHS}
CELLS = (
    Cell(row="GCNII", model="gcnii", settings=SETTINGS, printed=Printed(60.0, 0.5), **FIELDS),
    Cell(row="GCN", model="deep-gcn", settings=SETTINGS, note="nobody printed it", **FIELDS),
)
# The command line with these cells as Table 2, and a checkpoint after every epoch.
PROGRAM = f"""
from gcnii.paper.tables import registry as tables
from gcnii.paper.tables.cells import Cell
from gcnii.paper.tables.printed import Printed
from gcnii.train import fit as loop
loop.SAVE_EVERY = 0.0
tables.CELLS["table2"] = {CELLS!r}
from gcnii.cli import main
main()
"""
WORDS = ("reproduce", "table2", "--device", "cpu", "--json", "--ledger", "ledger.sqlite")


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """The same cells within this process."""
    monkeypatch.setitem(tables.CELLS, "table2", CELLS)


def numbers(text):
    """cell → what its runs came to."""
    left_out = ("seconds", "versions", "commit")
    cells = json.loads(text)["cells"]
    return {
        cell["cell"]: [
            {name: value for name, value in run.items() if name not in left_out}
            for run in cell["runs"]
        ]
        for cell in cells
    }


def begin(folder):
    """A process at work on the table; one thread is enough for it, and leaves room for others."""
    return start(*WORDS, cwd=folder, program=("-c", PROGRAM), OMP_NUM_THREADS="1")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The numbers of a table that nothing stopped."""
    answer = finish(begin(tmp_path_factory.mktemp("whole")))
    assert (answer.code, answer.err) == (0, "")
    return numbers(answer.out)


def stop(folder, number):
    """Signal a process once it is at work on a later run than the first."""
    process = begin(folder)
    deadline = time.monotonic() + 60
    while not list(folder.glob("ledger.sqlite-unfinished/*-1-1-1.safetensors")):
        assert process.poll() is None, finish(process)
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(number)
    return finish(process)


def test_ctrl_c_keeps_every_finished_run_and_the_same_command_goes_on(tmp_path, uninterrupted):
    answer = stop(tmp_path, signal.SIGINT)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == "gcnii: stopped; ledger.sqlite keeps every finished run\n"
    again = call(*WORDS, cwd=tmp_path)
    assert (again.code, again.err) == (0, "")
    assert numbers(again.out) == uninterrupted
    assert not list(tmp_path.glob("ledger.sqlite-unfinished/*"))


def test_kill_9_keeps_every_finished_run_and_the_same_command_goes_on(tmp_path, uninterrupted):
    assert stop(tmp_path, signal.SIGKILL).code == -signal.SIGKILL
    again = call(*WORDS, cwd=tmp_path)
    assert (again.code, again.err) == (0, "")
    assert numbers(again.out) == uninterrupted


def test_two_processes_at_once_share_the_work(tmp_path, uninterrupted):
    processes = [begin(tmp_path) for _ in range(2)]
    answers = [finish(process) for process in processes]
    assert [(answer.code, answer.err) for answer in answers] == [(0, "")] * 2
    assert [numbers(answer.out) for answer in answers] == [uninterrupted] * 2


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    from gcnii.paper.ledger import ledger

    whole = ledger.Ledger.__init__

    def small(self, path):
        whole(self, path)
        (pages,) = self.connection.execute("PRAGMA page_count").fetchone()
        self.connection.execute(f"PRAGMA max_page_count = {pages}")

    monkeypatch.setattr(ledger.Ledger, "__init__", small)
    monkeypatch.setattr("gcnii.paper.reproduce.versions", lambda: {"torch": "x" * 9000})
    answer = call(*WORDS, "--runs", 1, cwd=tmp_path)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == (
        "gcnii: cannot use the ledger ledger.sqlite: database or disk is full; "
        "finished runs in it are kept: solve this, then run the same command again\n"
    )


def test_the_table_has_ours_beside_the_paper_s(tmp_path):
    answer = call(*WORDS[:4], "--runs", 2, "--ledger", tmp_path / "ledger", cwd=tmp_path)
    lines = answer.out.splitlines()
    assert lines[0] == "Table 2: accuracy on the public splits (%)"
    assert lines[1].split() == ["Drawn"]
    assert lines[2].split()[0] == "GCNII"
    _, ours, runs, mark, printed = lines[2].split()
    assert re.fullmatch(r"\d+\.\d±\d+\.\d", ours)
    assert (runs, printed) == ("(2)", "60.0±0.5")
    assert mark in "●▲▼◆"
    assert lines[3].split()[0] == "GCN"
    assert lines[3].split()[-1] == "■"
    assert lines[4] == "  GCN: nobody printed it"
    assert lines[6].startswith("ours±sd (runs), mark, the paper's: ")
    assert lines[6].endswith(", ■ unprinted; margin: the sd that the paper prints, else 1 point")


def test_json_has_mean_and_verdict(tmp_path):
    document = json.loads(call(*WORDS, "--runs", 2, "--only", "gcnii", cwd=tmp_path).out)
    (cell,) = document["cells"]
    assert cell["mean"] == pytest.approx(50 * sum(run["test"] for run in cell["runs"]))
    assert cell["n"] == 2
    assert cell["verdict"]["word"] in ("replicates", "higher", "lower", "undecided")
    assert cell["verdict"]["margin"] == 0.5


def test_one_run_has_no_infinite_interval_in_json(tmp_path):
    (cell,) = json.loads(call(*WORDS, "--runs", 1, "--only", "gcnii", cwd=tmp_path).out)["cells"]
    assert (cell["verdict"]["word"], cell["verdict"]["low"], cell["sd"]) == (
        "undecided",
        None,
        None,
    )


def test_export_and_import_move_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("gcnii.cli.paper.reproduce.cells_of", lambda table: CELLS)
    first = call(*WORDS, "--runs", 1, cwd=tmp_path)
    assert (
        call("reproduce", "export", "--ledger", "ledger.sqlite", cwd=tmp_path).out
        == "2 cells in results/cells\n"
    )
    assert sorted(path.name for path in (tmp_path / "results/cells/table2").iterdir()) == [
        "gcn-drawn.json",
        "gcnii-drawn.json",
    ]
    answer = call("reproduce", "import", "results/cells", "--ledger", "other", cwd=tmp_path)
    assert answer.out == "2 new runs in other\n"
    monkeypatch.setattr("gcnii.paper.reproduce.fit_plan", None)  # nothing is left to train
    assert json.loads(call(*WORDS[:-1], "other", "--runs", 1, cwd=tmp_path).out) == json.loads(
        first.out
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("reproduce", "table9"), "the paper has no 'table9'; did you mean"),
        (("reproduce", "table2", "--only", "mars"), "no cell of table2 has 'mars' in its name"),
        (("reproduce", "table2", "--runs", "0"), "--runs must be at least 1, got 0"),
        (
            ("reproduce", "table2", "--device", "foo", "--ledger", "new/l"),
            "device must be auto, cpu or cuda, got 'foo'",
        ),
        (
            ("reproduce", "export", "--ledger", "gone/l.sqlite"),
            "gone/l.sqlite does not exist; give --ledger the",
        ),
        (("reproduce", "table2", "--ledger", "notes/l.sqlite"), "cannot write to notes: "),
        (
            ("reproduce", "export", "--ledger", "notes"),
            "notes is not a ledger and is left as it is; give another file",
        ),
        (
            ("reproduce", "export", "--ledger", "documents"),
            "documents is a folder, not a ledger; give --ledger a file",
        ),
        (
            ("reproduce", "import", "documents", "--ledger", "new/l"),
            "documents/wrong.json is no document with runs: ",
        ),
        (("reproduce", "import", "nowhere"), "nowhere is no folder"),
        (("reproduce", "import", "empty"), "empty holds no JSON document; give the folder that"),
        (("reproduce", "table2", "--jobs", "0"), "--jobs must be at least 1, got 0"),
        (("reproduce", "adopt", "nowhere"), "nowhere is no folder"),
        (("reproduce", "search", "table2"), "no search has 'table2' in its name"),
        (
            ("reproduce", "search", "table3", "--device", "foo"),
            "device must be auto, cpu or cuda, got 'foo'",
        ),
        (("reproduce", "search", "table3", "--budget", "0"), "--budget must be at least 1, got 0"),
    ],
)
def test_wrong_words_are_told_and_leave_no_file(words, sentence, tmp_path):
    (tmp_path / "notes").write_text("not a database " * 50)
    (tmp_path / "empty").mkdir()
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "wrong.json").write_text("[]")
    answer = call(*words, cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"gcnii: {sentence}")
    assert files(tmp_path) == ["documents/wrong.json", "notes"]
    assert not (tmp_path / "new").exists()


def test_import_says_how_many_documents_are_of_no_cell(tmp_path):
    (tmp_path / "documents").mkdir()
    document = {"graph": "csbm", "model": "mlp", "settings": {}, "runs": []}
    (tmp_path / "documents" / "mlp.json").write_text(json.dumps(document))
    answer = call("reproduce", "import", "documents", "--ledger", "l", cwd=tmp_path)
    assert answer == (
        0,
        "0 new runs in l\n",
        "gcnii: documents left out, as no cell of the tables is measured so: 1\n",
    )


def test_search_keeps_its_tries(tmp_path, monkeypatch):
    from gcnii.paper.search import spaces
    from gcnii.paper.search.search import Search

    axes = (({"alpha": 0.1}, {"alpha": 0.5}),)
    search = Search(
        "figure9/gcnii/2", "csbm", "gcnii", {"layers": 2, "width": 4, "epochs": 2}, axes
    )
    monkeypatch.setitem(spaces.SEARCHES, search.name, search)
    answer = call("reproduce", "search", "figure9", "--budget", 2, "--device", "cpu", cwd=tmp_path)
    record = json.loads((tmp_path / "results/search/figure9-gcnii-2.json").read_text())
    assert (
        answer.out == f"figure9/gcnii/2: {json.dumps(record['winner'])}, best of 2 by validation\n"
    )


def keep_search(folder, name, tries, val=0.5):
    """A record of so many tries, all alike."""
    done = {"settings": {"lr": 0.1}, "val": [val], "val_loss": [val]}
    record = {"search": name, "budget": tries, "winner": {"lr": 0.1}, "tries": [done] * tries}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record))


def test_winners_are_adopted_after_enough_tries_beside_those_of_before(tmp_path):
    for name, tries in (("a", 9), ("b", 10)):
        keep_search(tmp_path / "results" / "search", name, tries)
    (tmp_path / "found.json").write_text('{"b": {"lr": 0.2}, "c": {"lr": 0.3}}')
    answer = call("reproduce", "adopt", "--out", "found.json", cwd=tmp_path)
    assert answer.out == "1 winners of searches with at least 10 tries; found.json holds 2\n"
    assert json.loads((tmp_path / "found.json").read_text()) == {"b": {"lr": 0.1}, "c": {"lr": 0.3}}


@pytest.mark.parametrize(("tries", "val"), [(9, 0.5), (10, None)])
def test_without_a_winner_nothing_is_adopted(tries, val, tmp_path):
    keep_search(tmp_path / "search", "a", tries, val)
    answer = call("reproduce", "adopt", "search", "--out", "found.json", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("gcnii: search has no winner of at least 10 tries; go on with")
    assert not (tmp_path / "found.json").exists()


@pytest.mark.parametrize("more", [(), ("--jobs", "2")], ids=["alone", "jobs"])
def test_ctrl_c_in_a_search_says_that_its_tries_are_kept(more, monkeypatch, tmp_path):
    def stop(*words, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("gcnii.paper.search.search.run_search", stop)
    monkeypatch.setattr("gcnii.paper.parallel.run_parallel", stop)
    answer = call(
        "reproduce", "search", "table3/cora-gcnii-searched/4", *more, "--out", "kept", cwd=tmp_path
    )
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.endswith("gcnii: stopped; kept keeps every finished try\n")


@pytest.mark.parametrize("text", ["milk", "[]", '{"milk": 2}'])
def test_a_file_of_something_else_is_not_adopted_into(text, tmp_path):
    keep_search(tmp_path / "search", "a", 10)
    (tmp_path / "notes.txt").write_text(text)
    answer = call("reproduce", "adopt", "search", "--out", "notes.txt", cwd=tmp_path)
    assert answer.err.startswith("gcnii: notes.txt is no file of adopted settings: ")
    assert (tmp_path / "notes.txt").read_text() == text


WRONG = (
    "{bad",
    "[]",
    '{"search": "a"}',
    '{"search": "a", "budget": "x", "winner": {}, "tries": []}',
    '{"search": "a", "budget": 1, "winner": {}, "tries": [7]}',
    '{"search": "a", "budget": 10, "winner": {}, "tries": [{"settings": {}, "val": [0.5], "val_loss": []}]}',
)


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_search_is_not_adopted_and_changes_nothing(text, tmp_path):
    folder = tmp_path / "search"
    folder.mkdir()
    answer = call("reproduce", "adopt", "search", "--out", "found.json", cwd=tmp_path)
    assert answer.err.startswith("gcnii: search holds no searches; give the folder that")
    (folder / "a.json").write_text(text)
    answer = call("reproduce", "adopt", "search", "--out", "found.json", cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert re.fullmatch(
        r"gcnii: search/a.json is no record of a search: .*; restore it, or move it away\n",
        answer.err,
    )
    assert not (tmp_path / "found.json").exists()


def test_help_names_the_tables(tmp_path):
    answer = run("reproduce", "--help", cwd=tmp_path)
    assert answer.code == 0
    assert "table2, table3, table4, table5, figure1, figure2 or all" in answer.out
