"""docs/evidence/settings.md shows what the studies in results/tuning hold."""

from pathlib import Path

import pytest

from gcnii.errors import InputError
from gcnii.files import write_document
from gcnii_paper.report.readme import read_studies, tuning_table

ROOT = Path(__file__).parents[3]


def test_each_study_is_a_row_with_its_command():
    studies = read_studies(ROOT / "results" / "tuning")
    table = tuning_table(studies)
    assert len(studies) >= 6
    for study in studies:
        row = next(line for line in table.splitlines() if line.startswith(f"|{study['graph']}|"))
        assert f"{100 * study['final']['test_mean']:.1f} ± " in row
        assert f"|{study['tried']}|{study['winner']['model']}|" in row
        assert f"    {study['command']}\n" in table


def test_the_page_holds_the_table():
    table = tuning_table(read_studies(ROOT / "results" / "tuning"))
    assert table in (ROOT / "docs" / "evidence" / "settings.md").read_text("utf-8")


def test_a_damaged_study_is_named(tmp_path):
    write_document(tmp_path / "x.json", {"graph": "x"})
    with pytest.raises(InputError, match=r"x\.json is not a study: measured is missing"):
        read_studies(tmp_path)
