"""Whatever comes in, the answer is right or one sentence: some cases of every kind."""

import os
import time

import pytest
from support.command_line import call

from gcnii.data import load
from hostile import run
from hostile.commands import Ended
from hostile.judging import SORTS, Wrong, answer_of, judge_sentence
from hostile.run import KINDS, Failure, Tally, report, run_all, run_kind
from hostile.tables import compare, meaning_of_graph


def judged(kind, count):
    tally = run_kind(kind, range(count))
    if tally.skipped:
        pytest.skip(tally.skipped)
    assert not tally.failures, "\n".join(report([tally]))


class Here:
    """Commands in this process: a zygote takes seconds to start."""

    def run(self, words, cwd):
        return Ended(*call(*words, cwd=cwd))


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.few])
def test_the_first_cases_are_answered_properly(kind, monkeypatch):
    for module in ("names", "outputs"):
        monkeypatch.setattr(f"hostile.{module}.zygote", Here)
    judged(kind, KINDS[kind].few)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_case_is_answered_properly(kind):
    judged(kind, KINDS[kind].quick)


def test_a_long_run_has_ten_thousand_cases():
    assert sum(kind.long for kind in KINDS.values()) >= 10_000


def test_the_table_counts_each_sort_of_failure():
    tally = Tally("folders", 9, 1.0, failures={3: Failure("lost", "gone"), 5: Failure("hung", "")})
    head, row, total, *failures = report([tally])
    assert head.split() == ["kind", "cases", "proper", *SORTS, "seconds"]
    assert row.split() == ["folders", "9", "7", "0", "0", "1", "1", "0", "1.0"]
    assert total.split()[1:] == row.split()[1:]
    assert failures[0].splitlines()[1:] == [
        "python tests/hostile/run.py --kind folders --case 3",
        "    lost: gone",
    ]


class Explosive:
    """A case that ends its process, one that never ends, and others."""

    name, few, quick, long = "explosive", 0, 4, 4

    def __init__(self, home):
        pass

    def attempt(self, random, folder):
        case = int(folder.name)
        if case == 1:
            os._exit(7)
        while case == 2:
            time.sleep(1)

    def close(self):
        pass


@pytest.mark.slow
def test_a_process_that_dies_or_hangs_costs_its_case_alone(monkeypatch):
    monkeypatch.setitem(KINDS, "explosive", Explosive)
    monkeypatch.setattr(run, "PATIENCE", 3.0)
    monkeypatch.setattr(run, "STARTED_BY", "fork")  # which knows this kind
    tally = run_all([("explosive", [0, 1, 2, 3])], 2)["explosive"]
    assert (tally.tried, tally.failures[1].sort, tally.failures[2].sort) == (4, "traceback", "hung")


def test_the_judge_notices_another_graph(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,x,label\na,1,c\nb,2,d\nc,3,c\nd,5,d\ne,1,c\nf,2,d\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    graph = answer_of(lambda: load(tmp_path)).value
    whole = meaning_of_graph(graph)
    compare(graph, whole)
    others = (
        whole._replace(nodes=whole.nodes[::-1]),
        whole._replace(labels=whole.labels | {"a": "d"}),
        whole._replace(edges=whole.edges | {("a", "c"): 1.0}),
        whole._replace(edges=whole.edges | {("a", "b"): 2.0}),
        whole._replace(cells=whole.cells | {("x", "a"): 1.5}),
    )
    for other in others:
        with pytest.raises(Wrong):
            compare(graph, other)


@pytest.mark.parametrize("words", ["two\nlines", "\x1b[31mred", "x" * 1000])
def test_the_judge_takes_one_short_line_alone(words):
    with pytest.raises(Wrong):
        judge_sentence(words)
