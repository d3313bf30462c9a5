"""Nothing is run twice, nothing is lost."""

import contextlib
import multiprocessing
import os
import re
import signal
import sqlite3
import time

import pytest
from support.tiny_cells import run
from support.waiting import PATIENCE, wait_until

from gcnii_paper import ledger as ledger_module
from gcnii_paper.ledger import Ledger, LedgerError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "ledger.sqlite"


@pytest.fixture
def ledger(path):
    with Ledger(path) as ledger:
        yield ledger


on_linux = pytest.mark.skipif(
    not os.path.exists("/proc/self/stat"), reason="the system does not tell when a process began"
)
GROUP = {"who": "test", "from": 1, "below": 2, "nodes": 7, "accuracy": 0.5}


def test_a_run_comes_back_as_it_was(ledger):
    full = run(3, versions={"torch": "2.13", "triton": None}, commit="abc", by_degree=[GROUP])
    hopeless = run(1, test=None, val=None, val_loss=None)
    assert ledger.record("key", "table2/gcnii/cora", [full, hopeless]) == 2
    assert ledger.runs("key") == [hopeless, full]
    assert ledger.runs("other") == []


def test_a_run_is_kept_once_and_the_first_stays(ledger):
    assert ledger.record("key", "cell", [run(0, test=0.5)]) == 1
    assert ledger.record("key", "cell", [run(0, test=0.9), run(1)]) == 1
    assert [found.test for found in ledger.runs("key")] == [0.5, 0.5]


def test_what_is_recorded_is_there_after_the_ledger_is_opened_again(path):
    with Ledger(path) as ledger:
        ledger.record("key", "cell", [run(0)])
    with Ledger(path) as ledger:
        assert ledger.runs("key") == [run(0)]


def test_two_never_claim_the_same_seed(ledger, path):
    with Ledger(path) as other:
        assert ledger.claim("key", range(5), 3) == [0, 1, 2]
        assert other.claim("key", range(5), 3) == [3, 4]
        assert other.claim("key", range(5), 3) == []
        assert ledger.claimed("key")


def test_finished_seeds_are_not_claimed(ledger):
    ledger.record("key", "cell", [run(0), run(2)])
    assert ledger.claim("key", range(4), 9) == [1, 3]


def test_leaving_gives_claims_back(ledger, path):
    with Ledger(path) as other:
        other.claim("key", range(3), 3)
    assert ledger.claim("key", range(3), 3) == [0, 1, 2]


def test_released_seeds_are_free_and_recorded_ones_unclaimed(ledger):
    ledger.claim("key", range(2), 2)
    ledger.release("key", [1])
    ledger.record("key", "cell", [run(0)])
    assert not ledger.claimed("key")
    assert ledger.claim("key", range(2), 2) == [1]


def hold(path, ready):
    ledger = Ledger(path)
    ledger.claim("key", range(3), 3)
    ready.set()
    time.sleep(PATIENCE)


def test_the_claims_of_a_killed_process_are_void(ledger, path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=hold, args=(path, ready))
    process.start()
    assert ready.wait(PATIENCE)
    assert ledger.claim("key", range(3), 3) == []
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert ledger.claim("key", range(3), 3) == [0, 1, 2]


def test_the_claims_of_a_silent_machine_are_void_and_a_beat_keeps_them(ledger, path, monkeypatch):
    with Ledger(path) as far:
        far.host = "elsewhere"
        far.claim("key", [0], 1)
        monkeypatch.setattr(ledger_module, "BEAT", 0.0)
        age = ("UPDATE claims SET beat = beat - ?", (ledger_module.SILENCE,))
        far.connection.execute(*age)
        far.beat()
        assert ledger.claim("key", [0], 1) == []
        far.connection.execute(*age)
        assert ledger.claim("key", [0], 1) == [0]


def test_a_process_that_lives_here_keeps_its_claims_however_silent_it_is(ledger, path, monkeypatch):
    monkeypatch.setattr(ledger_module, "SILENCE", -1.0)  # no sign of life is late enough
    with Ledger(path) as other:
        other.claim("key", [0], 1)
        assert ledger.claim("key", [0], 1) == []


@on_linux
def test_a_killed_process_that_its_parent_has_not_waited_for_keeps_no_claim(ledger, path):
    process = multiprocessing.get_context("spawn").Process(target=claim_and_hang, args=(path,))
    process.start()
    wait_until(lambda: ledger.claimed("key"))
    os.kill(process.pid, signal.SIGKILL)
    # it is dead, and stays in the system's list
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert ledger.claim("key", range(1), 1) == [0]
    process.join()


def claim_and_hang(path):
    ledger = Ledger(path)
    ledger.claim("key", range(1), 1)
    time.sleep(PATIENCE)


def test_a_name_with_a_meaning_to_sqlite_is_the_name_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Ledger(":memory:") as ledger:
        ledger.record("key", "cell", [run(0)])
    assert (tmp_path / ":memory:").is_file()


@on_linux
def test_a_process_that_was_given_the_number_of_a_dead_one_does_not_keep_its_claims(ledger, path):
    with Ledger(path) as other:
        other.claim("key", [0], 1)
        other.connection.execute(
            "UPDATE claims SET beat = ?", (ledger_module._started(os.getpid()) - 2,)
        )
        assert ledger.claim("key", [0], 1) == [0]


def test_runs_of_several_cells_are_kept_all_or_none(ledger):
    with pytest.raises(LedgerError):
        ledger.record_all([("key", "cell", [run(0)]), ("other", "cell", [run(0, test=object())])])
    assert ledger.cells() == set()
    assert ledger.record_all([("key", "one", [run(0)]), ("other", "two", [run(0), run(1)])]) == 3
    assert ledger.cells() == {"one", "two"}


def race(path, start, taken):
    with Ledger(path) as ledger:
        start.wait(30)
        mine = []
        while seeds := ledger.claim("key", range(40), 3):
            mine += seeds
            ledger.record("key", "cell", [run(seed) for seed in seeds])
        taken.put(mine)


def test_two_processes_at_once_share_the_seeds(path):
    context = multiprocessing.get_context("spawn")
    Ledger(path).close()
    start, taken = context.Event(), context.Queue()
    processes = [context.Process(target=race, args=(path, start, taken)) for _ in range(2)]
    for process in processes:
        process.start()
    start.set()
    seeds = [seed for _ in processes for seed in taken.get(timeout=PATIENCE)]
    for process in processes:
        process.join()
    assert sorted(seeds) == list(range(40))


def test_a_full_disk_is_told_in_one_sentence_and_loses_nothing(ledger, path):
    ledger.record("key", "cell", [run(0)])
    (pages,) = ledger.connection.execute("PRAGMA page_count").fetchone()
    ledger.connection.execute(f"PRAGMA max_page_count = {pages}")
    wide = [run(seed, versions={"torch": "x" * 1000}) for seed in range(1, 50)]
    sentence = (
        f"cannot use the ledger {path}: database or disk is full; finished runs in it are kept: "
        "solve this, then run the same command again"
    )
    with pytest.raises(LedgerError, match=f"^{re.escape(sentence)}$"):
        ledger.record("key", "cell", wide)
    assert ledger.runs("key") == [run(0)]
    ledger.connection.execute("PRAGMA max_page_count = 1000000")
    assert ledger.record("key", "cell", wide) == 49


def test_a_file_that_is_not_a_ledger_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but longer than the hundred bytes of a header " * 10)
    with pytest.raises(
        ValueError, match=r"notes.txt is not a ledger and is left as it is; give another file"
    ):
        Ledger(path)
    assert path.read_text().startswith("not a database")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("statement", ["CREATE TABLE letters (text)", "PRAGMA user_version = 1"])
def test_somebody_else_s_database_is_left_alone(statement, tmp_path):
    path = tmp_path / "other.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute(statement)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"other.sqlite is not a ledger"):
        Ledger(path)
    assert path.read_bytes() == before


def test_a_ledger_of_a_later_format_is_refused(path):
    with Ledger(path) as ledger:
        ledger.connection.execute("PRAGMA user_version = 9")
    with pytest.raises(LedgerError, match="format 9, this gcnii reads 1; update gcnii"):
        Ledger(path)


def test_commits_reach_the_disk(ledger):
    assert ledger.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ledger.connection.execute("PRAGMA synchronous").fetchone() == (2,)


@pytest.mark.parametrize("versions", ["{", "3", 3])
def test_a_row_that_is_not_a_run_is_damage_and_names_the_ledger(versions, ledger):
    ledger.record("key", "cell", [run(0, versions={"torch": "2.13"})])
    ledger.connection.execute("UPDATE runs SET versions = ?", (versions,))
    with pytest.raises(
        LedgerError, match=r"the ledger .* is damaged: .*; restore a copy of it, or move it away"
    ):
        ledger.runs("key")


def test_a_damaged_file_is_not_said_to_keep_its_runs(tmp_path):
    path = tmp_path / "l.sqlite"
    with Ledger(path) as ledger:
        ledger.record("key", "cell", [run(seed, device="x" * 1000) for seed in range(20)])
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"is damaged: ") as told, Ledger(path) as ledger:
        ledger.runs("key")
    assert "are kept" not in str(told.value)
