"""The page on explanations shows what results/explain holds, and says whether the bar is met."""

import json
from pathlib import Path

import pytest

from gcnii.errors import InputError
from gcnii.files import write_document
from gcnii_paper.explaining import explaining_table

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "results" / "explain" / "cora.json"


def test_the_page_holds_the_table():
    table, measured = explaining_table(MEASURED), json.loads(MEASURED.read_text("utf-8"))
    assert table in (ROOT / "docs" / "evidence" / "answers.md").read_text("utf-8")
    for way in measured["ways"].values():
        assert f"|{way['drop']:+.4f}|" in table
    assert "    python -m gcnii_paper.explaining --out results/explain/cora.json\n" in table


def test_a_missed_bar_is_said(tmp_path):
    worse = json.loads(MEASURED.read_text("utf-8"))
    ways = worse["ways"]
    ways["gradient"]["seconds"] = 0.3
    ways["search"] |= {"seconds": 1.0, "against": {"mean": -0.02, "low": -0.03, "high": -0.01}}
    ways["random"]["against"] |= {"low": -0.01}
    text = explaining_table(write_document(tmp_path / "worse.json", worse))
    assert "significantly above that of random edges (missed)" in text
    assert "significantly below the search's (missed)" in text
    assert "(missed: 1/3)" in text


def test_a_damaged_measurement_is_named(tmp_path):
    write_document(tmp_path / "x.json", {"graph": "x"})
    with pytest.raises(InputError, match=r"x\.json is not a measurement of explanations: "):
        explaining_table(tmp_path / "x.json")
