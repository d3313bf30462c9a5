"""The README tells the truth: its numbers come from results/, its Python runs, its length is bearable."""

import json
import re
import shutil
from pathlib import Path

import pytest

from gcnii.experiments.printed import CORA_BY_DEPTH, TABLE_2, TABLE_5
from gcnii.experiments.results import read_results
from gcnii.report.readme import results_page, scores_table, speed_sentence, update_readme

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_table_is_the_one_that_results_give():
    results = read_results(ROOT / "results" / "train")
    assert scores_table(results, TABLE_2) in README
    assert speed_sentence(ROOT / "results" / "bench" / "epoch.json") in README
    assert results_page(results) == (ROOT / "docs" / "results.md").read_text("utf-8")


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


def test_updating_changes_nothing_but_the_marked_part(tmp_path):
    shutil.copytree(ROOT / "results", tmp_path / "results")
    (tmp_path / "README.md").write_text(re.sub(r"\|gcnii\|.*\n", "", README), "utf-8")
    update_readme(tmp_path)
    assert (tmp_path / "README.md").read_text("utf-8") == README
    assert (tmp_path / "docs" / "depth.png").stat().st_size > 10_000


def test_a_readme_without_a_place_for_results_is_refused(tmp_path):
    shutil.copytree(ROOT / "results", tmp_path / "results")
    (tmp_path / "README.md").write_text("# nothing\n")
    with pytest.raises(ValueError, match="must have one place for results, between two comments, got 0"):
        update_readme(tmp_path)


def test_the_ten_lines_of_python_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(code, names)
    assert names["labels"].shape == (1797,)
    assert names["result"].test.mean() > 0.9


def test_its_length_is_400_to_900_words():
    assert 400 <= len(README.split()) <= 900
