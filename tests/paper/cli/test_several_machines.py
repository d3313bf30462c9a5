"""docs/tutorials/reproduce.md: a table over several machines that share no disk, then in one."""

import json
import re
from pathlib import Path

import pytest
from support import knobs
from support.command_line import call
from support.tiny_cells import cell

from gcnii_paper.tables import registry as tables

RECIPE = Path(__file__).parents[3] / "docs" / "tutorials" / "reproduce.md"
CELLS = (cell("GCNII", runs=2), cell("GCN", "deep-gcn", runs=2))


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """Table 2 is two cells that train in a moment."""
    monkeypatch.setitem(tables.CELLS, "table2", CELLS)


def done(*words, cwd):
    """What a command printed that had nothing to complain of."""
    answer = call(*words, cwd=cwd)
    assert (answer.code, answer.err) == (0, "")
    return answer.out


def scores(text):
    return {one["cell"]: [run["test"] for run in one["runs"]] for one in json.loads(text)["cells"]}


def test_two_machines_do_a_part_each_and_a_third_puts_them_together(tmp_path, monkeypatch):
    machines = {"one": "table2/gcnii/", "other": "table2/gcn/"}
    parts = {}
    for name, only in machines.items():
        (tmp_path / name).mkdir()
        words = ("reproduce", "table2", "--only", only, "--device", "cpu", "--json")
        parts |= scores(done(*words, "--ledger", "ledger.sqlite", cwd=tmp_path / name))
        words = ("reproduce", "export", "--ledger", "ledger.sqlite", "--out", "cells")
        assert done(*words, cwd=tmp_path / name) == "1 cells in cells\n"
    home = tmp_path / "home"
    home.mkdir()
    for name in machines:
        words = ("reproduce", "import", tmp_path / name / "cells", "--ledger", "all.sqlite")
        assert done(*words, cwd=home) == "2 new runs in all.sqlite\n"
    monkeypatch.setattr(knobs.REPRODUCED_FIT, None)  # nothing is left to train
    words = ("reproduce", "table2", "--device", "cpu", "--json", "--ledger", "all.sqlite")
    whole = scores(done(*words, cwd=home))
    assert whole == parts
    assert sorted(whole) == ["table2/gcn/drawn", "table2/gcnii/drawn"]
    # The same files again add nothing.
    again = ("reproduce", "import", tmp_path / "one" / "cells", "--ledger", "all.sqlite")
    assert done(*again, cwd=home) == "0 new runs in all.sqlite\n"


def test_the_recipe_has_these_commands():
    commands = re.findall(r"^    gcnii reproduce .*", RECIPE.read_text("utf-8"), re.MULTILINE)
    words = " ".join(commands)
    assert all(word in words for word in ("--only", "--ledger", "export --", "import "))
