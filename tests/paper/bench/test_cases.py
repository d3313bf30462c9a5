"""The cases: graphs of the shape that was asked for, and the networks of the paper."""

import pytest
import torch

from gcnii_paper.bench.cases import CASES, GRAPHS, Shape, find_case
from gcnii_paper.bench.graphs import draw_links, make_bench_graph
from gcnii_paper.bench.measure import plan_of

CPU = torch.device("cpu")


def test_drawn_links_are_symmetric_with_every_loop_and_about_as_many_entries_as_asked():
    links = draw_links(Shape(n=500, entries=6000, d=1, k=1), CPU)
    A = links.to(CPU, torch.float64).whole.to_dense()
    assert torch.equal(A, A.T)
    assert A.diagonal().min() > 0
    assert 0.9 * 6000 < int(links.weights.sum()) <= 6000


def test_the_best_connected_node_has_about_as_many_neighbours_as_asked_and_most_have_few():
    links = draw_links(Shape(n=20_000, entries=400_000, d=1, k=1, hub=2000), CPU)
    degrees = links.pattern.rows.diff() - 1
    assert 0.7 * 2000 < int(degrees.max()) < 1.3 * 2000
    assert degrees.median() < degrees.double().mean()


def test_without_its_files_a_graph_of_cora_s_size_is_drawn(monkeypatch, tmp_path):
    monkeypatch.setenv("GCNII_DATA", str(tmp_path))
    monkeypatch.delenv("GCNII_MIRROR", raising=False)
    bench_graph = make_bench_graph(GRAPHS["cora"], CPU)
    assert bench_graph.drawn
    assert bench_graph.graph.name == "a drawn graph of cora's size"
    assert (bench_graph.graph.n, bench_graph.graph.d, bench_graph.graph.k) == (2708, 1433, 7)
    assert bench_graph.entries == pytest.approx(2 * 5278 + 2708, rel=0.01)


def test_the_products_case_has_the_numbers_of_ogbn_products():
    (shape,) = {line.graph for line in CASES["products"].cuda}
    assert (shape.n, shape.entries, shape.d, shape.k) == (2_449_029, 123_718_280, 100, 47)


def test_a_case_can_be_tried_on_smaller_graphs():
    small = CASES["offload"].scaled(0.001)
    assert {line.graph for line in small.cuda + small.cpu} == {
        Shape(n=2449, entries=123_718, d=100, k=47, hub=17)
    }
    assert small.scale == 0.001
    assert CASES["cora-1"].scaled(1.0) is CASES["cora-1"]


@pytest.mark.parametrize(
    ("name", "share", "sentence"),
    [
        ("offload", 0.0, r"--scale must lie in \(0, 1\], got 0"),
        ("offload", 1.5, r"--scale must lie in \(0, 1\], got 1.5"),
        ("cora-1", 0.5, "--scale is for cases whose graph is drawn; cora-1 measures on cora"),
    ],
)
def test_other_shares_and_graphs_of_files_are_refused(name, share, sentence):
    with pytest.raises(ValueError, match=sentence):
        CASES[name].scaled(share)


def test_offloading_is_compared_with_recomputing_of_the_same_width():
    settings = [plan_of(line).settings for line in CASES["offload"].cuda]
    assert [(one["memory"], one["layers"], one["width"]) for one in settings] == [
        ("recompute", 16, 512),
        ("offload", 64, 512),
    ]


def test_a_case_for_a_cpu_says_so():
    with pytest.raises(ValueError, match="predict-memory is measured on a CPU; use --device cpu"):
        CASES["predict-memory"].lines("cuda")


def test_a_case_is_guessed_from_its_name():
    with pytest.raises(ValueError, match="no case 'cora1'; did you mean 'cora-1'"):
        find_case("cora1")


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("cora-1", (64, 64)),
        ("cora-100", (64, 64)),
        ("citeseer-10", (32, 256)),
        ("pubmed-10", (16, 256)),
        ("ppi", (9, 2048)),
    ],
)
def test_everybody_trains_the_paper_s_network(name, network):
    lines = [line for line in CASES[name].cuda + CASES[name].cpu if line.precision == "float32"]
    settings = [plan_of(line).model_settings for line in lines]
    assert {(one["layers"], one["width"]) for one in settings} == {network}
    assert {line.who for line in lines} >= {"gcnii", "authors"}
