"""The doctor's documents come back as what they were, and stand in the page."""

import json
from pathlib import Path

import numpy as np
import pytest

from gcnii.analysis.checkup import Checkup, Doctor
from gcnii.analysis.diagnosis import diagnose
from gcnii.data import load
from gcnii.report.page import page
from gcnii.report.visits import Visit, read_visits


@pytest.fixture(scope="module")
def checkup():
    return Doctor(load("csbm", n=120), device="cpu").check("gcn", 2)


def test_a_checkup_read_from_json_is_the_checkup(checkup):
    again = Checkup.of(checkup.graph, json.loads(json.dumps(checkup.summary())))
    assert json.dumps(again.summary()) == json.dumps(checkup.summary())
    assert again.after[-1].state.energy == checkup.after[-1].state.energy
    assert np.isclose(again.test, checkup.test)


def test_the_page_has_the_doctors_verdicts_and_figures(checkup, tmp_path):
    found = checkup.summary() | {"diagnosis": diagnose(checkup.after, edges=10).summary()}
    head = {"graph": "csbm", "epochs": 60, "command": "gcnii doctor csbm --json", "comparison": ["gcn is <best>."]}
    (tmp_path / "csbm.json").write_text(json.dumps(head | {"checkups": [found]}), "utf-8")
    (visit,) = read_visits(tmp_path)
    html = page([], [], [visit])
    assert 'id="doctor-csbm"' in html
    assert found["diagnosis"]["text"].replace("'", "&#39;") in html
    assert "gcn is &lt;best&gt;." in html
    assert html.count("<svg") == len(visit.figures) == 6


def test_what_is_committed_can_be_read():
    folder = Path(__file__).parents[2] / "results" / "doctor"
    assert all(isinstance(visit, Visit) and visit.verdicts for visit in read_visits(folder))
    assert read_visits(folder)
