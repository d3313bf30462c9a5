"""`gcnii bench scale`, on graphs that take no time."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gcnii.errors import GcniiError
from gcnii_paper.bench import scale
from gcnii_paper.bench.graphs import near_graph
from gcnii_paper.bench.scale import Order, Training, measured, work
from gcnii_paper.report.scale import planned_cost

CPU = torch.device("cpu")
SMALL = Order(n=1000, layers=2, width=8, device="cpu", rounds=2)


def test_the_links_of_a_near_graph_are_short_and_its_numbers_do_not_tell():
    pytest.importorskip("pymetis")
    rows = list(scale.measured_cuts(iter([near_graph(3000, d=1)])))
    halos = {(row["parts"], row["how"]): row["halo"] for row in rows}
    assert halos[2, "metis"] < 0.3 * halos[2, "random"]
    assert halos[2, "blocks"] > 0.9 * halos[2, "random"]
    assert {parts for parts, _ in halos} == set(scale.PARTS)


def test_a_near_graph_has_the_degree_that_is_asked_for():
    graph = near_graph(2000, degree=6, far=0.5)
    assert 2 * graph.m / graph.n == pytest.approx(6, rel=0.05)


def test_a_process_alone_answers_with_its_times():
    answer = work(SMALL)
    assert len(answer["seconds"]) == 2
    assert answer["best"] == min(answer["seconds"])
    assert (answer["waiting"], answer["nodes"]) == (0, 1000)
    assert answer["computing"] == answer["best"]


@pytest.mark.slow
@pytest.mark.long
def test_two_processes_have_half_of_the_nodes_each_and_wait_for_one_another():
    pytest.importorskip("pymetis")
    found = scale.run_workers(SMALL, 2)
    assert found["nodes"] == pytest.approx(500, rel=0.1)
    assert 0 < found["waiting"] < 1
    assert 0 < found["computing"] < found["best"]


def test_efficiency_is_work_over_processes_and_time(monkeypatch):
    times = iter([4.0, 2.5, 2.0, 1.0, 1.25, 2.0])
    monkeypatch.setattr(scale, "run_workers", lambda order, size: {"best": next(times)})
    rows = list(scale.over_processes(SMALL, 10))
    assert [row["n"] for row in rows] == [1000, 1000, 1000, 10, 20, 40]
    assert [row["efficiency"] for row in rows] == pytest.approx([1, 0.8, 0.5, 1, 0.8, 0.5])


@pytest.mark.slow
def test_a_process_that_fails_is_reported_in_a_sentence():
    with pytest.raises(GcniiError, match=r"1 processes could not be measured: .*width must be an"):
        scale.run_workers(replace(SMALL, width=-1), 0)


def test_a_training_is_measured_beside_the_rates_of_its_day():
    about = {"n": 1000, "degree": 6}
    found = measured(Training(graph="csbm", layers=2, width=16, parameters=about))
    assert found["best"] > 0
    assert found["size"]["entries"] == 7 * 1000
    assert found["network"]["width"] == 16
    assert planned_cost(found).seconds.total > 0


def test_what_grows_is_one_of_four_and_the_others_stay(monkeypatch):
    def answer(order, shape):
        n, degree = (order["parameters"][name] for name in ("n", "degree"))
        return {"size": {"entries": n * (degree + 1)}, "order": order}

    monkeypatch.setattr(scale, "launch", answer)
    rows = list(scale.grown())
    assert [row["what"] for row in rows] == [
        what for what in ("n", "entries", "layers", "width") for _ in range(4)
    ]
    base = [row["order"] for row in rows[1::4]]
    assert all(order == base[0] for order in base)
    assert [row["value"] for row in rows[4:8]] == [60_000, 110_000, 210_000, 410_000]


def test_the_document_has_every_part_and_counts_its_steps(monkeypatch):
    told = []
    for name, rows in (("measured_cuts", 36), ("grown", 16), ("planned", 5), ("over_processes", 6)):
        many = [{"row": i} for i in range(rows)]
        monkeypatch.setattr(scale, name, lambda *_, many=many: iter(many))
    found = scale.measure(CPU, told.append)
    assert len(told) == scale.steps(CPU) == 63
    assert found["command"] == "gcnii bench scale --device cpu"
    assert [len(found[part]) for part in ("cuts", "growth", "planned", "processes")] == [
        *(36, 16, 5, 6)
    ]
    assert np.isfinite(found["cores"])
