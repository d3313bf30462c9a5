"""gcnii reproduce: interrupted tables resume, and several processes share the work."""

import json
import re
import signal

import pytest
from support import knobs
from support.command_line import call, files, finish, run, start
from support.waiting import PATIENCE, wait_until

from gcnii_paper.tables import registry as tables
from gcnii_paper.tables.cells import Cell
from gcnii_paper.tables.printed import Printed

RUNS = 3
EPOCHS = 40
FIELDS = {"table": "table2", "column": "Drawn", "graph": "csbm", "runs": RUNS}
SETTINGS = {"layers": 2, "width": 8, "epochs": EPOCHS, "patience": EPOCHS}
CELLS = (
    Cell(row="GCNII", model="gcnii", settings=SETTINGS, printed=Printed(60.0, 0.5), **FIELDS),
    Cell(row="GCN", model="deep-gcn", settings=SETTINGS, note="nobody printed it", **FIELDS),
)
# The command line with these cells as Table 2, a checkpoint after every epoch, and no line of
# progress, however busy the machine is.
PROGRAM = f"""
from gcnii_paper.tables import registry as tables
from gcnii_paper.tables.cells import Cell
from gcnii_paper.tables.printed import Printed
from gcnii.train import callbacks, group
callbacks.EVERY, group.SAVE_EVERY = {PATIENCE}, 0.0
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
    """cell → its runs, without what differs from machine to machine."""
    left_out = ("seconds", "versions", "commit")
    cells = json.loads(text)["cells"]
    return {
        cell["cell"]: [
            {name: value for name, value in run.items() if name not in left_out}
            for run in cell["runs"]
        ]
        for cell in cells
    }


def begin(folder, *more):
    """Start a process that works on the table with one thread."""
    return start(*WORDS, *more, cwd=folder, program=("-c", PROGRAM), OMP_NUM_THREADS="1")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The numbers of a table that was not interrupted."""
    answer = finish(begin(tmp_path_factory.mktemp("whole")))
    assert (answer.code, answer.err) == (0, "")
    return numbers(answer.out)


def stop(folder, number, *more):
    """Signal a process once it has begun the second run of a cell."""
    process = begin(folder, *more)
    unfinished = folder / "ledger.sqlite-unfinished"
    wait_until(lambda: process.poll() is not None or list(unfinished.glob("*-1-1-1.safetensors")))
    assert process.poll() is None, finish(process)
    process.send_signal(number)
    return finish(process)


@pytest.mark.slow
@pytest.mark.long
def test_ctrl_c_keeps_every_finished_run_and_the_same_command_resumes(tmp_path, uninterrupted):
    answer = stop(tmp_path, signal.SIGINT)
    assert (answer.code, answer.out) == (1, "")
    stopping = "gcnii: stopping after this epoch; press Ctrl-C again to stop now\n"
    assert answer.err == f"{stopping}gcnii: stopped; ledger.sqlite keeps every finished run\n"
    again = call(*WORDS, cwd=tmp_path)
    assert (again.code, again.err) == (0, "")
    assert numbers(again.out) == uninterrupted
    assert not list(tmp_path.glob("ledger.sqlite-unfinished/*"))


@pytest.mark.slow
def test_kill_9_keeps_every_finished_run_and_the_same_command_resumes(tmp_path, uninterrupted):
    assert stop(tmp_path, signal.SIGKILL).code == -signal.SIGKILL
    again = call(*WORDS, cwd=tmp_path)
    assert (again.code, again.err) == (0, "")
    assert numbers(again.out) == uninterrupted


@pytest.mark.slow
def test_two_processes_at_once_share_the_work(tmp_path, uninterrupted):
    processes = [begin(tmp_path) for _ in range(2)]
    answers = [finish(process) for process in processes]
    assert [(answer.code, answer.err) for answer in answers] == [(0, "")] * 2
    assert [numbers(answer.out) for answer in answers] == [uninterrupted] * 2


def test_a_full_disk_is_reported_in_one_sentence(tmp_path, monkeypatch):
    from gcnii_paper import ledger

    whole = ledger.Ledger.__init__

    def small(self, path):
        whole(self, path)
        (pages,) = self.connection.execute("PRAGMA page_count").fetchone()
        self.connection.execute(f"PRAGMA max_page_count = {pages}")

    monkeypatch.setattr(ledger.Ledger, "__init__", small)
    monkeypatch.setattr("gcnii_paper.reproduce.versions", lambda: {"torch": "x" * 9000})
    answer = call(*WORDS, "--runs", 1, cwd=tmp_path)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == (
        "gcnii: cannot use the ledger ledger.sqlite: database or disk is full; "
        "finished runs in it are kept: solve this, then run the same command again\n"
    )


def test_the_table_has_our_numbers_beside_the_paper_s(tmp_path):
    answer = call(*WORDS[:4], "--runs", 2, "--ledger", tmp_path / "ledger", cwd=tmp_path)
    lines = answer.out.splitlines()
    assert lines[0] == "Table 2: accuracy on the public splits (%)"
    assert lines[1].split() == ["Drawn"]
    assert lines[2].split()[0] == "GCNII"
    _, ours, runs, mark, printed = lines[2].split()
    assert re.fullmatch(r"\d+\.\d±\d+\.\d", ours)
    assert (runs, printed) == ("(2/100)", "60.0±0.5")
    assert mark in "●▲▼◆"
    assert lines[3].split()[0] == "GCN"
    assert lines[3].split()[-1] == "■"
    assert lines[4] == "  GCN: nobody printed it"
    legend = " ".join(map(str.strip, lines[6:]))
    assert legend.startswith("ours±sd (runs/needed), mark, the paper's: ")
    assert ", ■ unprinted; margin: the sd that the paper prints, else 1 point; " in legend


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


MISSING = ("--missing", "--budget", "1h")


def test_what_is_missing_is_told_with_an_estimate_and_trained_within_the_budget(tmp_path):
    call(*WORDS, "--only", "gcnii", cwd=tmp_path)
    answer = call(*WORDS, *MISSING, cwd=tmp_path)
    (cell,) = json.loads(answer.out)["cells"]
    assert (cell["cell"], cell["n"]) == ("table2/gcn/drawn", RUNS)
    first, *_ = lines = answer.err.splitlines()
    assert first == "missing: 1 cells, about 0 s; in this order:"
    assert lines[1] == "  table2/gcn/drawn: 3 runs, unknown time"
    assert lines[-1] == "left: 0 cells, about 0 s"


@pytest.mark.slow
def test_kill_9_in_what_is_missing_loses_nothing(tmp_path, uninterrupted):
    assert stop(tmp_path, signal.SIGKILL, *MISSING).code == -signal.SIGKILL
    assert call(*WORDS, *MISSING, cwd=tmp_path).code == 0
    assert numbers(call(*WORDS, cwd=tmp_path).out) == uninterrupted


def test_export_and_import_move_runs(tmp_path, monkeypatch):
    own = {"all": CELLS, "beyond": ()}
    monkeypatch.setattr("gcnii_paper.cli.reproduce.cells_of", own.get)
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
    monkeypatch.setattr(knobs.REPRODUCED_FIT, None)  # nothing is left to train
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
            "documents/wrong.json is not a document with runs: ",
        ),
        (("reproduce", "import", "nowhere"), "nowhere is not a folder; give the one that"),
        (("reproduce", "import", "empty"), "empty holds no JSON document; give the folder that"),
        (("reproduce", "table2", "--jobs", "0"), "--jobs must be at least 1, got 0"),
        (("reproduce", "table2", "--budget", "5m"), "--budget goes with --missing; add it, or"),
        (("reproduce", "table2", "--missing", "--runs", "3"), "--missing takes neither --runs nor"),
        (
            ("reproduce", "table2", "--missing", "--budget", "soon", "--ledger", "new/l"),
            "budget must be a time such as 90s, 10m or 2h, got 'soon'",
        ),
        (
            ("reproduce", "beyond", "--missing"),
            "--missing is for the paper's tables, not for beyond",
        ),
    ],
)
def test_wrong_usage_is_refused_and_leaves_no_file(words, sentence, tmp_path):
    (tmp_path / "notes").write_text("not a database " * 50)
    (tmp_path / "empty").mkdir()
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "wrong.json").write_text("[]")
    answer = call(*words, cwd=tmp_path)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"gcnii: {sentence}")
    assert files(tmp_path) == ["documents/wrong.json", "notes"]
    assert not (tmp_path / "new").exists()


def test_import_counts_the_documents_that_match_no_cell(tmp_path):
    (tmp_path / "documents").mkdir()
    document = {"graph": "csbm", "model": "mlp", "settings": {}, "runs": []}
    (tmp_path / "documents" / "mlp.json").write_text(json.dumps(document))
    answer = call("reproduce", "import", "documents", "--ledger", "l", cwd=tmp_path)
    assert answer == (
        0,
        "0 new runs in l\n",
        "gcnii: documents left out because they match no cell of the tables: 1\n",
    )


def test_help_names_the_tables(tmp_path):
    answer = run("reproduce", "--help", cwd=tmp_path)
    assert answer.code == 0
    assert "table2, table3, table4, table5, figure1, figure2 or all" in answer.out
