"""What the manual marks as slow, or for a GPU or a cluster, runs, shortened, on a small graph."""

import re
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
import pytest
from support import postgres
from support.command_line import call
from support.manual import PAGES, SLOW, blocks, measured_commands, words
from support.waiting import PATIENCE

pytestmark = pytest.mark.slow

# What a command says, and what it says here.  A budget is kept, and the trials end before it.
QUICK = r"\g<0> --epochs 3 --patience 2"
SHORTER = [
    (r"\b(cora|citeseer|path/to/my_graph)\b", "my_graph"),
    (r"gcnii tune .*", rf"{QUICK} --trials 3 --seeds 1"),
    (r"gcnii doctor my_graph$", r"\g<0> --trials 1"),
    (r"gcnii doctor (?!.*--trials).*", r"\g<0> --trials 0"),
    (r"gcnii doctor (?!.*--depths).*", r"\g<0> --depths 2"),
    (r"gcnii doctor (?!.*--model).*", r"\g<0> --model gcnii"),
    (r"--depths [\d,]+", "--depths 2"),
    (r"gcnii train (?!.*--settings).*", rf"{QUICK} --overwrite"),
    (r"--nnodes \d+ --nproc-per-node \d+", "--nnodes 1 --nproc-per-node 1"),
    (r"--nproc-per-node 4", "--nproc-per-node 2"),
    (r"HOST:\d+", "127.0.0.1:0"),
    (r"\bNODE\b", "n7"),
]


def commands(page):
    """The commands of a page that are not run as they are, but for those that need Slurm."""
    if page == "README.md":
        return [line for line in measured_commands(page) if not line.startswith("make")]
    unrun = [
        block for block in blocks(page) if block.mark in ("minutes", "hours", "gpu", "cluster")
    ]
    lines = [line for block in unrun for line in block.lines if "--slurm" not in line]
    return [line for line in lines if not line.startswith("gcnii reproduce")]  # needs real data


COMMANDS = {page: commands(page) for page in ("README.md", *PAGES)}


def shortened(line):
    """The command, quick and on a small graph."""
    line = " ".join(words(line))
    for pattern, here in SHORTER:
        line = re.sub(pattern, here, line)
    return line


@pytest.fixture(scope="module")
def database():
    """The address of a PostgreSQL server with an empty database; None without PostgreSQL."""
    if postgres.find() is None or postgres.owner() is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder, postgres.server(folder) as url:
        yield url


@pytest.fixture
def folder(tmp_path):
    """A folder with my_graph: even nodes are linked to even ones, and odd to odd ones."""
    odd = np.arange(60) % 2
    nodes = pd.DataFrame({"id": [f"n{i}" for i in range(60)], "x": odd + np.arange(60) % 5})
    nodes["label"] = np.where(odd, "odd", "even")
    edges = pd.DataFrame({"source": nodes["id"][:-2], "target": nodes["id"][2:].to_numpy()})
    (tmp_path / "my_graph").mkdir()
    nodes.to_csv(tmp_path / "my_graph" / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "my_graph" / "edges.csv", index=False)
    return tmp_path


def answer_to(line, folder):
    """The exit code and what was printed to stderr."""
    command, *rest = words(line)
    if command == "gcnii":
        answer = call(*rest, cwd=folder)
        return answer.code, answer.err
    assert command == "torchrun", line
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *rest],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("page", [page for page, lines in COMMANDS.items() if lines])
def test_every_command_of_a_page_runs_on_a_cpu(page, folder, database):
    lines = [line for line in map(shortened, COMMANDS[page]) if database or "--storage" not in line]
    if not lines:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    for line in lines:
        code, err = answer_to(re.sub(r"--storage \S+", f"--storage {database}", line), folder)
        assert code == 0, (line, err)


def test_a_cell_of_a_table_is_trained_and_judged(real_data, tmp_path):
    real_data("cora")  # or skip
    (line, _) = (one.lines[0] for one in blocks("docs/tutorials/reproduce.md") if one.mark == SLOW)
    answer = call(*words(line.replace("--runs 3", "--runs 1"))[1:], cwd=tmp_path)
    assert (answer.code, answer.err) == (0, "")
    assert "(1/39) ◆ 82.2" in answer.out


def test_data_sets_are_fetched_and_used_without_a_network(real_data, tmp_path):
    real_data("cora"), real_data("citeseer")  # or skip
    (fetching,) = (one for one in blocks("docs/howto/machines.md") if "data fetch" in one.text)
    for line in fetching.lines:
        _, *rest = words(line)
        quick = ("--epochs", "1", "--layers", "2") if rest[0] == "train" else ()
        answer = call(*rest, *quick, cwd=tmp_path)
        assert answer.code == 0, (line, answer.err)
