"""One of several processes that meet again and again, as the ranks of one training after another.

    python meetings.py RANK CASES.json FOLDER

CASES.json: a list of cases, each with `ranks`: for each process the words of a command line, or
null if it does not take part; `env`: for each what its environment has beside MASTER_PORT;
`version`: for each a version of gcnii; `joining`: seconds that they wait for one another to start;
`dies`: a process that is killed while it reads the graph, in the last case.  FOLDER/CASE.RANK.json
becomes the exit code and what was printed.  Loading torch takes longer than a meeting, so that all
cases share two processes.
"""

import io
import json
import os
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path

import gcnii
import gcnii.cli.train
from gcnii.cli import main
from gcnii.train.distributed import world
from support.waiting import wait_until


def answered(words):
    """The exit code of a command line, what it printed, and how long it took."""
    out, errors, code, start = io.StringIO(), io.StringIO(), 0, time.monotonic()
    sys.argv = ["gcnii", *words]
    with redirect_stdout(out), redirect_stderr(errors):
        try:
            main()
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            errors.write(f"Traceback: {error!r}")
            code = "traceback"
    return {
        "code": code,
        "out": out.getvalue(),
        "errors": errors.getvalue(),
        "seconds": time.monotonic() - start,
    }


def _begin(folder, case, rank, size):
    """All begin a case together, whoever was done first with the one before."""
    (folder / f"{case}.{rank}.here").touch()
    wait_until(lambda: all((folder / f"{case}.{one}.here").exists() for one in range(size)))


if __name__ == "__main__":
    rank, cases, folder = int(sys.argv[1]), *map(Path, sys.argv[2:])
    world.GRACE = 10.0
    for i, case in enumerate(json.loads(cases.read_text())):
        size = len(case["ranks"])
        usual = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1"}
        os.environ.update(usual | {"MASTER_PORT": str(case["port"])} | case["env"][rank])
        gcnii.__version__ = case["version"][rank]
        world.JOINING = timedelta(seconds=case["joining"])
        if case["dies"] == rank:
            gcnii.cli.train.load_graph = lambda *words, **more: os._exit(9)
        _begin(folder, i, rank, size)
        words = case["ranks"][rank]
        found = answered(words) if words is not None else None
        (folder / f"{i}.{rank}.json").write_text(json.dumps(found))
