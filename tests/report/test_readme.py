"""The README tells the truth: its numbers come from results/, its Python runs, its length is bearable."""

import json
import re
import shutil
from pathlib import Path

import pytest

from gcnii.experiments.printed import CORA_BY_DEPTH, TABLE_2, TABLE_5
from gcnii.experiments.results import read_results
from gcnii.report.readme import results_page, scores_table, update_readme
from gcnii.report.speed import read_record, read_records, speed_sentence, speed_tables

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_table_is_the_one_that_results_give():
    results = read_results(ROOT / "results" / "train")
    assert scores_table(results, TABLE_2) in README
    assert speed_sentence(read_record(ROOT / "results" / "bench" / "cora-1-cpu.json")) in README
    assert results_page(results) == (ROOT / "docs" / "results.md").read_text("utf-8")


def test_the_page_of_speed_has_the_tables_that_results_give():
    tables = speed_tables(read_records(ROOT / "results" / "bench"))
    assert f"`gcnii report readme` -->\n{tables}<!-- end" in (ROOT / "docs" / "performance.md").read_text("utf-8")


def test_every_measured_result_is_on_the_page():
    results = read_results(ROOT / "results" / "train")
    assert all(f"|`{result.command}`|" in results_page(results) for result in results)
    assert len({result.command for result in results}) == len(results)


def test_a_number_that_was_not_measured_is_a_dash_beside_the_papers():
    texas = [r for r in read_results(ROOT / "results" / "train") if (r.graph, r.model) == ("texas", "gcnii")]
    (row,) = scores_table(texas, TABLE_5).splitlines()[2:]
    assert row.startswith("|gcnii|– · 88.49|")


def test_no_seed_is_left_out_of_a_result():
    for path in (ROOT / "results" / "train").glob("*.json"):
        seeds = [run["seed"] for run in json.loads(path.read_text())["runs"]]
        assert seeds == list(range(len(seeds))), path


def test_every_depth_of_the_figure_was_measured():
    results = read_results(ROOT / "results" / "train")
    for model, printed in CORA_BY_DEPTH.items():
        depths = {r.settings["layers"] for r in results if (r.graph, r.model) == ("cora", model)}
        assert depths == set(printed)


@pytest.fixture
def project(tmp_path):
    """A folder with results and pages, whose README may be changed."""
    for part in ("results", "docs"):
        shutil.copytree(ROOT / part, tmp_path / part)
    return tmp_path


def test_updating_changes_nothing_but_the_marked_part(project):
    (project / "README.md").write_text(re.sub(r"\|gcnii\|.*\n", "", README), "utf-8")
    page = (project / "docs" / "performance.md").read_text("utf-8")
    (project / "docs" / "performance.md").write_text(re.sub(r"\|here\|.*\n", "", page), "utf-8")
    (project / "docs" / "depth.png").unlink()
    update_readme(project)
    assert (project / "README.md").read_text("utf-8") == README
    assert (project / "docs" / "performance.md").read_text("utf-8") == page
    assert (project / "docs" / "depth.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["README.md", "docs/performance.md"])
def test_a_page_without_a_place_for_results_is_refused(name, project):
    (project / "README.md").write_text(README, "utf-8")
    (project / name).write_text("# nothing\n")
    with pytest.raises(ValueError, match=f"{name} must have one place for results, between two comments, got 0"):
        update_readme(project)


def test_the_ten_lines_of_python_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(code, names)
    assert names["labels"].shape == (1797,)
    assert names["result"].test.mean() > 0.9


def test_its_length_is_400_to_900_words():
    assert 400 <= len(README.split()) <= 900
