"""docs/evidence/settings.md shows what the studies in results/tuning hold."""

import json
from pathlib import Path

import pytest

from gcnii.errors import InputError
from gcnii.files import write_document
from gcnii_paper.report.readme import tuning_table

ROOT = Path(__file__).parents[3]
STUDIES = ROOT / "results" / "tuning"


def test_each_study_is_a_row_with_its_command():
    studies = [json.loads(path.read_text("utf-8")) for path in STUDIES.glob("*.json")]
    table = tuning_table(STUDIES)
    assert len(studies) >= 6
    for study in studies:
        row = next(line for line in table.splitlines() if line.startswith(f"|{study['graph']}|"))
        assert f"{100 * study['final']['test_mean']:.1f} ± " in row
        assert f"|{study['tried']}|{study['winner']['model']}|" in row
        assert f"    {study['command']}\n" in table


def test_the_page_holds_the_table():
    table = tuning_table(STUDIES)
    assert table in (ROOT / "docs" / "evidence" / "settings.md").read_text("utf-8")


def test_a_damaged_study_is_named(tmp_path):
    write_document(tmp_path / "x.json", {"graph": "x"})
    with pytest.raises(InputError, match=r"x\.json is not a study: measured is missing"):
        tuning_table(tmp_path)
