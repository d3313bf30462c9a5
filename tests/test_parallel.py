"""Several tasks at once, each in a process of its own."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from support.tasks import complain, die, refuse, whoami
from support.tiny_cells import cell
from support.waiting import PATIENCE, wait_until

from gcnii.parallel import run_parallel
from gcnii_paper.ledger import Ledger, measured
from gcnii_paper.reproduce import reproduce, reproduce_one


def test_tasks_share_the_threads_and_the_answers_come_with_their_items():
    answers = dict(run_parallel(whoami, ["a", "b", "c"], 2))
    assert set(answers) == {"a", "b", "c"}
    pids = {pid for pid, _ in answers.values()}
    assert len(pids | {os.getpid()}) == 3
    assert {threads for _, threads in answers.values()} == {max(torch.get_num_threads() // 2, 1)}


@pytest.mark.slow
def test_an_error_of_a_task_is_raised_here():
    with pytest.raises(ValueError, match="no a"):
        list(run_parallel(refuse, ["a"], 2))


def test_a_killed_task_is_reported():
    with pytest.raises(
        ChildProcessError,
        match=r"killed \(exit code -9\); run the same again with fewer jobs",
    ):
        list(run_parallel(die, ["a"], 2))


@pytest.mark.slow
def test_a_warning_of_a_task_is_repeated_here():
    with pytest.warns(UserWarning, match="^beware of a$"):
        assert list(run_parallel(complain, ["a"], 2)) == [("a", "A")]


@pytest.mark.slow
def test_cells_at_once_are_the_cells_one_by_one(tmp_path):
    cells = [cell(runs=2), cell("GCN", "deep-gcn", runs=2)]
    one = partial(reproduce_one, ledger=tmp_path / "many", runs=None, device="cpu")
    assert {done.id for done, _ in run_parallel(one, cells, 2)} == {done.id for done in cells}
    with Ledger(tmp_path / "many") as many, Ledger(tmp_path / "alone") as alone:
        reproduce(cells, alone, device="cpu")
        for each in cells:
            assert measured(each, many).test == measured(each, alone).test


SCRIPT = """
import signal
from pathlib import Path
from gcnii.parallel import run_parallel
from support.tasks import wait
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    list(run_parallel(wait, [Path("a"), Path("b")], 2))
"""


def begun(process, folder):
    return len(list(folder.glob("*.begun"))) == 2


def starting(process, folder):
    """Two workers and the resource tracker have started, and import what they need."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        process.kill()
        pytest.skip("only Linux tells a process's children so")
    return len(children.read_text().split()) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "when"),
    [
        (signal.SIGINT, begun),
        # On a busy machine the signal can come while Python itself is starting, which says so, too.
        pytest.param(signal.SIGINT, starting, marks=pytest.mark.long),
        (signal.SIGKILL, begun),
    ],
)
def test_tasks_hear_of_ctrl_c_and_end_with_a_killed_parent(number, when, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: when(process, tmp_path))
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)  # stderr ends when the last of them has
    assert process.returncode != 0
    assert said.count(b"Traceback") == (number == signal.SIGINT)  # the parent's own
    heard = number == signal.SIGINT and when is begun
    assert sorted(path.name for path in tmp_path.glob("?")) == (["a", "b"] if heard else [])
