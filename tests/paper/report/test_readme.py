"""The README tells the truth: its numbers come from results/, its Python runs, its length is
bearable.
"""

import json
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.made_up_cells import around, measured

from gcnii_paper.defaults import defaults_tables, points_table, read_defaults
from gcnii_paper.report.figures import LINES, draw_depth
from gcnii_paper.report.grid import notes
from gcnii_paper.report.markdown import results_page, scores_table
from gcnii_paper.report.page import visit_markdown
from gcnii_paper.report.performance import (
    comparison,
    findings,
    old_records,
    read_records,
    short_comparison,
    speed_tables,
)
from gcnii_paper.report.readme import (
    all_results,
    consistency_table,
    summary,
    tuning_table,
    update_readme,
)
from gcnii_paper.standing import beyond_rows, findings_table, read_findings
from gcnii_paper.tables.cells import read_cells
from gcnii_paper.tables.printed import DEPTHS

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def cells():
    return read_cells(ROOT / "results" / "cells")


def parts_marked(text):
    """The texts between two comments each."""
    return re.findall(r"`gcnii report readme` -->\n(.*?)<!-- end of results -->", text, re.DOTALL)


def marked(text):
    """The text between the two comments."""
    (part,) = parts_marked(text)
    return part


def test_the_readme_and_the_page_of_results_say_what_the_cells_give(cells):
    rows = beyond_rows(cells, folder=ROOT / "results" / "beyond")
    assert marked(README) == summary(cells, ROOT / "results" / "bench")
    assert all_results(cells, rows) == (ROOT / "docs" / "evidence" / "results.md").read_text(
        "utf-8"
    )


def test_the_page_of_speed_has_the_findings_and_the_tables_that_results_give():
    bench = ROOT / "results" / "bench"
    parts = [findings(bench), speed_tables(read_records(bench))]
    assert parts_marked((ROOT / "docs" / "evidence" / "performance.md").read_text("utf-8")) == parts


def test_the_page_of_scale_has_the_tables_of_memory_that_results_give():
    tables = speed_tables(read_records(ROOT / "results" / "memory"))
    page = (ROOT / "docs" / "evidence" / "scale.md").read_text("utf-8")
    assert parts_marked(page)[1] == tables
    assert "gcnii predict" in tables


def test_the_page_of_the_doctor_has_the_advice_and_the_table_that_results_give():
    found = visit_markdown(ROOT / "results" / "doctor" / "cora.json")
    assert marked((ROOT / "docs" / "understand" / "over-smoothing.md").read_text("utf-8")) == found


def test_the_page_of_defaults_has_the_points_of_the_portfolio():
    page = (ROOT / "docs" / "understand" / "defaults.md").read_text("utf-8")
    assert marked(page) == points_table()


def test_the_page_of_settings_has_what_defaults_and_searches_reached():
    page = (ROOT / "docs" / "evidence" / "settings.md").read_text("utf-8")
    assert parts_marked(page)[:2] == [
        defaults_tables(read_defaults(ROOT / "results" / "defaults")),
        tuning_table(ROOT / "results" / "tuning"),
    ]


def test_the_page_of_consistency_has_the_runs_that_results_hold():
    table = consistency_table(ROOT / "results" / "consistency")
    page = (ROOT / "docs" / "evidence" / "settings.md").read_text("utf-8")
    assert parts_marked(page)[2] == table
    flags = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert flags[0] == "none"
    assert flags[-1].startswith("`--views 4 --drop-node 0.3 --consistency 1 --sharpen 0.3")


def test_the_page_beyond_the_paper_says_how_the_records_were_found():
    table = findings_table(read_findings(ROOT / "results" / "beyond" / "studies"))
    assert parts_marked((ROOT / "docs" / "evidence" / "beyond.md").read_text("utf-8"))[0] == table


def test_the_table_of_tuning_says_how_many_settings_the_baselines_had():
    table = tuning_table(ROOT / "results" / "tuning")
    (path, *_) = (ROOT / "results" / "tuning").glob("*.json")
    study = json.loads(path.read_text("utf-8"))
    tried = sum(trial["model"] == "mlp" for trial in study["trials"])
    score = f"{100 * study['baselines']['mlp']['test_mean']:.1f}"
    assert f"|{score} ({tried} tried)|" in table
    assert "hardly tuned baselines" in table


def test_a_number_has_its_runs_and_its_verdict_before_the_printed_one():
    cells = [
        measured("table2/gcnii/cora", around(85.5, 100)),
        measured("table2/gcn/cora", around(90.5, 100)),
        measured("table2/gat/cora", [80.0]),
        measured("table2/appnp/cora", [80.0, None]),
    ]
    lines = scores_table(cells).splitlines()
    starts = {line.split("|")[1]: line.split("|")[2] for line in lines if line.startswith("|")}
    assert starts["GCNII"] == "85.5±2.9 (100) ● 85.5±0.5"
    assert starts["GCN"] == "90.5±2.9 (100) ▲ 81.5"
    assert starts["GAT"] == "80.0 (1/100) ◆ 83.1"
    assert starts["APPNP"] == "failed (1/2) ✕ 83.3"
    assert starts["GCNII*"] == "○ 85.3±0.2"
    assert lines[0] == "Marks: ● replicates, ▲ higher, ◆ undecided, ✕ failed, ○ missing."
    assert [*starts][2:5] == ["GCN", "GCNII", "GAT"]  # the best one first


def test_the_readme_has_the_papers_rows_alone_and_the_page_ours_too():
    cells = [measured("table2/gcnii-no-own-loops/citeseer", around(73))]
    assert "no own loops" not in scores_table(cells)
    assert "|GCNII, no own loops|–|73.0±0.3 (10) ◇ 73.4±0.6 δ -0.4±0.2|" in results_page(cells)
    assert "- GCNII, no own loops: the authors' code counts" in results_page(cells)


def test_a_note_that_is_not_of_a_whole_row_names_the_columns():
    names = ("table3/cora-jknet/4", "table3/cora-jknet/8", "table3/cora-gcnii/2")
    bare = [
        replace(measured(name, [80.0]), note=note)
        for name, note in zip(names, ("one", "", "all"), strict=True)
    ]
    assert notes(bare) == ["Cora JKNet (4): one", "Cora GCNII: all"]


def test_the_page_counts_the_verdicts_and_shows_what_the_paper_does_not_print():
    cells = [measured("table2/gcn/cora", around(81.5)), measured("figure2/cora-gcn/64", around(30))]
    cells.append(measured("table4/gcnii/ppi", [61.2], graph="ppi-like", stand_in=True))
    page = results_page(cells)
    assert "|Table 2|1||||||||23|24|" in page
    assert "|GCN|○|○|○|○|○|30.0±0.3 (10) ■|" in page
    assert "|GCNII|61.20 (1) □ 99.53±0.01|" in page
    assert "|JKNet|–|○ 80.2|" in page  # Table 3 begins at 4 layers


def test_no_seed_is_left_out_of_a_cell(cells):
    for cell in cells:
        assert [run.seed for run in cell.runs] == list(range(cell.n)), cell.cell


def test_every_depth_of_the_picture_was_measured(cells):
    for row, *_ in LINES:
        assert {int(cell.column) for cell in cells if cell.row == row} == set(DEPTHS)


def test_a_picture_of_nothing_is_refused_with_the_command_that_measures_it(tmp_path):
    with pytest.raises(
        ValueError,
        match="no run of GCNII or GCN on Cora by depth; `gcnii reproduce table3 --only cora-gcnii`",
    ):
        draw_depth(tmp_path / "depth.png", [measured("table2/gcnii/cora", [85.0])])
    assert not list(tmp_path.iterdir())


def test_the_picture_needs_no_second_run(tmp_path):
    cells = [measured(f"table3/cora-{row}/2", [80.0]) for row in ("gcnii", "gcn-kipf-s")]
    assert draw_depth(tmp_path / "depth.png", cells).stat().st_size > 10_000


@pytest.fixture
def project(tmp_path):
    """A folder with results and pages, whose README may be changed."""
    for part in ("results", "docs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    return tmp_path


def test_updating_changes_nothing_but_the_marked_part(project):
    (project / "README.md").write_text(re.sub(r"\|GCNII\|.*\n", "", README), "utf-8")
    page = (project / "docs" / "evidence" / "performance.md").read_text("utf-8")
    (project / "docs" / "evidence" / "performance.md").write_text(
        re.sub(r"\|here\|.*\n", "", page), "utf-8"
    )
    (project / "docs" / "evidence" / "results.md").write_text("# Results of last year\n", "utf-8")
    (project / "docs" / "pictures" / "depth.png").unlink()
    update_readme(project)
    assert (project / "README.md").read_text("utf-8") == README
    assert (project / "docs" / "evidence" / "results.md").read_text("utf-8") == (
        ROOT / "docs" / "evidence" / "results.md"
    ).read_text("utf-8")
    assert (project / "docs" / "evidence" / "performance.md").read_text("utf-8") == page
    assert (project / "docs" / "pictures" / "depth.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("README.md", 1),
        ("docs/evidence/performance.md", 2),
        ("docs/understand/over-smoothing.md", 1),
        ("docs/evidence/answers.md", 3),
    ],
)
def test_a_page_without_a_place_for_results_is_refused(name, places, project):
    (project / "README.md").write_text(README, "utf-8")
    (project / name).write_text("# nothing\n")
    with pytest.raises(
        ValueError, match=f"{name} must have as many places .* comments: {places}, got 0"
    ):
        update_readme(project)


def test_the_ten_lines_of_python_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(code, names)
    assert names["labels"].shape == (1500,)
    assert set(names["labels"]) == {"leaves", "stays"}


def test_a_measurement_that_is_missing_is_named_with_its_command(project):
    (project / "README.md").write_text(README, "utf-8")
    (project / "results" / "bench" / "cora-1-cuda.json").unlink()
    with pytest.raises(
        ValueError, match=r"no .*cora-1-cuda\.json; `gcnii bench cora-1 --device cuda` measures it"
    ):
        update_readme(project)


def put_speed(project, name, runs, **others):
    """A document of one run in 2 ms, or of many in 30, and of other code: best and median in ms."""
    path = project / "results" / "bench" / f"{name}.json"
    record = json.loads(path.read_text("utf-8"))
    ours = record["lines"][0] | {"best": 0.002 if runs == 1 else 0.03, "replicas": runs}
    lines = [ours | {"median": 1.1 * ours["best"]}]
    for who, (best, median) in others.items():
        times = {"best": best / 1000, "median": median / 1000, "ratio": 1.0}
        lines.append(ours | times | {"who": who.replace("_", "-"), "replicas": 1})
    made = {"lines": lines, "commit": "1234567", "day": "2030-01-02"}
    path.write_text(json.dumps(record | made))
    (path.parent / "cora-1-compiled-cuda.json").unlink(missing_ok=True)


def rows_of(project):
    """code → cells, for each of the three parts of the table."""
    parts = comparison(project / "results" / "bench").split("**here: ")[1:]
    tables = [[row.split("|")[1:-1] for row in f"|{part}".splitlines()] for part in parts]
    return [{cells[0]: cells[1:] for cells in table if cells} for table in tables]


GRAPH = "PyG's GCN2Conv in a CUDA graph"


def test_the_fastest_other_code_comes_first_and_a_hundred_runs_of_it_take_a_hundred_times(project):
    for name, runs in (("cora-1-cuda", 1), ("cora-100-cuda", 100)):
        put_speed(project, name, runs, pyg=(60, 66), pyg_graph=(8, 9), authors=(50, 70))
    one, many, cpu = rows_of(project)
    assert list(one.values())[:2] == [
        ["2 ms", "2.2 ms", "1", "1"],
        ["no record yet", "–", "–", "–"],  # compiled
    ]
    assert list(one)[2] == list(many)[2] == GRAPH
    assert one[GRAPH] == ["8 ms", "9 ms", "4.0", "4.1"]
    assert many[GRAPH] == ["800 ms", "900 ms", "26.7", "27.3"]
    assert one["PyG's GCN2Conv on CSR, eager"] == ["60 ms", "66 ms", "30.0", "30.0"]
    assert GRAPH not in cpu
    assert "cora-1-cuda at 1234567 on 2030-01-02;" in comparison(project / "results" / "bench")


def test_the_readme_names_the_fastest_other_code_and_not_the_slowest(project):
    for name, runs in (("cora-1-cuda", 1), ("cora-100-cuda", 100)):
        put_speed(project, name, runs, pyg=(60, 66), pyg_graph=(8, 9), authors=(50, 70))
    text = short_comparison(project / "results" / "bench")
    assert f"one run|2 ms|{GRAPH}: 4.0 (4.1)|30.0 (30.0)|at 1234567 on 2030-01-02|" in text


def test_other_code_that_was_not_measured_or_failed_says_so_in_its_row(project):
    put_speed(project, "cora-1-cuda", 1, pyg=(60, 66))
    assert rows_of(project)[0][GRAPH] == ["no record yet", "–", "–", "–"]
    path = project / "results" / "bench" / "cora-1-cuda.json"
    record = json.loads(path.read_text("utf-8"))
    failed = {"who": "pyg-graph", "best": None, "ratio": None, "failed": "failed: no graph"}
    record["lines"].append(record["lines"][0] | failed)
    path.write_text(json.dumps(record))
    assert rows_of(project)[0][GRAPH] == ["failed: no graph", "–", "–", "–"]


def test_a_document_that_is_many_changes_behind_is_named_with_its_command(tmp_path):
    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", "-C", tmp_path, *who, *words], check=True, capture_output=True
        )
        return done.stdout.decode().strip()

    def change(path):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{time.time_ns()}")
        git("add", ".")
        git("commit", "-m", "changed")

    git("init")
    change("src/gcnii/nn/model.py")
    about = {"commit": git("rev-parse", "HEAD"), "day": "2030-01-02", "command": "gcnii bench x"}
    bench = tmp_path / "results" / "bench"
    bench.mkdir(parents=True)
    (bench / "x-cpu.json").write_text(json.dumps(about))
    for _ in range(6):
        change("docs/page.md")
    assert old_records(tmp_path) == []
    for _ in range(6):
        change("src/gcnii/nn/model.py")
    assert old_records(tmp_path) == [
        f"x-cpu was measured at {about['commit']} on 2030-01-02, "
        "6 changes to what it measures ago: gcnii bench x"
    ]
    (bench / "x-cpu.json").write_text(json.dumps(about | {"commit": "1234567-dirty"}))
    assert old_records(tmp_path) == [
        "x-cpu was measured at 1234567-dirty on 2030-01-02, which this repository does not know: "
        "gcnii bench x"
    ]
    shutil.rmtree(tmp_path / ".git")
    assert old_records(tmp_path) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"lines": 3},
            "cora-1-cpu.json is not a document of `gcnii bench`: lines must be a list, got 3;",
        ),
        ({"lines": []}, "cora-1 on cpu has no time of gcnii; measure it: gcnii bench cora-1 "),
        (
            {"per": ["colour"]},
            r"cora-1-cpu.json is not a .*: per\[0\] must be one of entries, layers, replicas,",
        ),
    ],
)
def test_a_damaged_document_of_speed_is_named_and_nothing_is_written(change, sentence, project):
    path = project / "results" / "bench" / "cora-1-cpu.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change))
    (project / "README.md").write_text(README, "utf-8")
    (project / "docs" / "evidence" / "results.md").write_text("old", "utf-8")
    with pytest.raises(ValueError, match=sentence):
        update_readme(project)
    assert (project / "docs" / "evidence" / "results.md").read_text("utf-8") == "old"
