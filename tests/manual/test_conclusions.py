"""Numbers in the text of the manual are those of results/."""

import re

import pytest
from support.manual import ROOT

from gcnii_paper.report.speed import read_record
from gcnii_paper.tables.cells import read_cells

T5 = "table5/{}/{}".format


@pytest.fixture(scope="module")
def mean():
    cells = {cell.cell: cell for cell in read_cells(ROOT / "results" / "cells")}
    return lambda name: f"{cells[name].mean:.1f}"


def text(page):
    return " ".join((ROOT / "docs" / page).read_text("utf-8").split())


def test_the_page_on_the_paper_has_the_measured_depths(mean):
    page = text("explanation/paper.md")
    two, deep = mean("table3/cora-gcnii/2"), mean("table3/cora-gcnii/64")
    assert f"from {two} % at 2 layers to {deep} % at 64" in page
    assert f"a GCN falls to {mean('table3/cora-gcn/64')} %" in page


def test_what_did_not_replicate_has_the_measured_numbers(mean):
    page = text("explanation/not-replicated.md")
    printed = mean(T5("appnp", "cornell")), mean(T5("appnp", "wisconsin"))
    assert "({} and {} for 73.5 and 69.0)".format(*printed) in page
    smaller = (mean(T5("appnp-decay-0-001", graph)) for graph in ("cornell", "wisconsin"))
    assert "it has {} and {}.".format(*smaller) in page
    lost, kept = (mean(T5(f"incep-drop{how}", "chameleon")) for how in ("", "-rate-kept"))
    assert f"{lost} for 61.7, and has {kept} when" in page
    right, wrong = (mean(T5(f"gcnii{how}", "cornell")) for how in ("-corrected-in-2022", ""))
    assert f"GCNII has {right} there, not {wrong}" in page


def test_the_first_sentence_on_results_counts_the_marks_of_the_tables():
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    rows = re.findall(r"^\|Table \d\|(.*)\|$", page, re.MULTILINE)
    counts = [[int(cell or 0) for cell in row.split("|")[:4]] for row in rows]
    kept, higher, lower, undecided = (sum(column) for column in zip(*counts, strict=True))
    every = kept + higher + lower + undecided
    first = f"1. {kept} of the {every} printed numbers that were measured again replicate; "
    assert f"{first}{undecided} are undecided, {higher} are higher and {lower} are lower." in page
    assert len(re.findall(r"^\d+\. ", page.split("\n## ")[0], re.MULTILINE)) == 10


def best(name, who, **wanted):
    lines = read_record(ROOT / "results" / "bench" / f"{name}.json")["lines"]
    fits = [line for line in lines if line["who"] == who]
    return next(x for x in fits if all(x[key] == value for key, value in wanted.items()))


def test_the_conclusions_about_speed_have_the_measured_numbers():
    page = text("performance.md")
    here, pyg = best("cora-1-cpu", "gcnii"), best("cora-1-cpu", "pyg")
    assert f"takes {1000 * here['best']:.0f} ms, a fifth" in page
    assert f"takes ({1000 * pyg['best']:.0f} ms)" in page
    assert 4.5 < pyg["best"] / here["best"] < 5.5
    one, other = best("cora-1-cuda", "gcnii"), best("cora-1-cuda", "pyg")
    times = f"{1000 * one['best']:.1f} ms, PyG {1000 * other['best']:.0f} ms"
    assert f"{times}, {other['best'] / one['best']:.0f} times" in page
    many = best("cora-100-cuda", "gcnii")
    ratio = f"{1000 * many['best']:.0f} ms an epoch, {many['best'] / one['best']:.0f} times"
    assert f"{ratio} as long as one: {10 * many['best']:.2f} ms a run" in page
    above = [line["best"] / line["floor"]["seconds"] for line in (here, one, many)]
    assert f"{above[0]:.1f} times it on the CPU; on the GPU {above[1]:.0f} times" in page
    wide = best("ppi-cuda", "gcnii", precision="float32")
    assert f"{above[2]:.1f} times for a hundred" in page
    assert f"{wide['best'] / wide['floor']['seconds']:.1f} times for PPI" in page


def growth(name):
    lines = read_record(ROOT / "results" / "bench" / f"{name}.json")["lines"]
    return f"{lines[-1]['best'] / lines[0]['best']:.1f}"


def test_the_conclusions_about_growth_have_the_measured_numbers():
    page = text("performance.md")
    assert f"grows by {growth('depth-cpu')} on the CPU and by {growth('depth-cuda')}" in page
    cpu, gpu = growth("edges-cpu"), growth("edges-cuda")
    assert f"take {cpu} times as long on the CPU, and {gpu} times on the GPU" in page
    large, small = (best("products-cuda", "gcnii", precision=x) for x in ("float32", "bfloat16"))
    sizes = [line["peak_bytes"] / 2**30 for line in (large, small)]
    assert f"train in {sizes[0]:.1f} GiB and {large['best']:.1f} s an epoch" in page
    assert f"bfloat16 in {sizes[1]:.1f} GiB and {small['best']:.1f} s" in page


def test_the_answer_about_cora_has_the_measured_numbers(mean):
    assert f"here {mean('table2/gcnii/cora')} over 100 seeds" in text("faq.md")


def test_the_page_on_runs_has_the_measured_ratio():
    one = best("cora-1-cuda", "gcnii", precision="float32")["best"]
    many = best("cora-100-cuda", "gcnii", precision="float32")["best"]
    assert f"take {many / one:.0f} times as long as one" in text("explanation/runs.md")
