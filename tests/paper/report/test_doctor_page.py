"""The doctor's documents come back as what they were, and stand in the page."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from gcnii.analysis.checkup import Checkup, Doctor, diagnose
from gcnii.analysis.filters import Influence, Learned, Response
from gcnii.data import load
from gcnii_paper.report.page import CAPTIONS, DoctorVisit, page, read_visits


@pytest.fixture(scope="module")
def checkup():
    return Doctor(load("csbm", n=120), device="cpu").check("gcn", 2)


def test_a_checkup_read_from_json_is_the_checkup(checkup):
    again = Checkup.of(checkup.graph, json.loads(json.dumps(checkup.summary())))
    assert json.dumps(again.summary()) == json.dumps(checkup.summary())
    assert again.after[-1].state.energy == checkup.after[-1].state.energy
    assert np.isclose(again.test, checkup.test)


@pytest.fixture(scope="module")
def document(checkup):
    """Without the further answers."""
    found = checkup.summary() | {"diagnosis": diagnose(checkup.after, edges=10).summary()}
    head = {
        "graph": "csbm",
        "epochs": 60,
        "command": "gcnii doctor csbm --json",
        "comparison": ["gcn is <best>."],
    }
    return json.loads(json.dumps(head | {"checkups": [found]}))


@pytest.fixture(scope="module")
def answers():
    """To both further questions, of one network."""
    bands = np.linspace(0.1, 1.4, 4)
    return {
        "filter": {"gcn": Response(bands, 1 - bands, 0.1 * bands, bands / 3, bands / 2).summary()},
        "influence": {
            "gcn": Influence(np.array([0.75, 0.25]), np.array([0.1, 0.1]), 64, 3).summary()
        },
    }


def test_the_page_has_the_doctors_verdicts_and_figures(document, tmp_path):
    (tmp_path / "csbm.json").write_text(json.dumps(document), "utf-8")
    (visit,) = read_visits(tmp_path)
    html = page([], [], [visit])
    assert 'id="doctor-csbm"' in html
    assert document["checkups"][0]["diagnosis"]["text"].replace("'", "&#39;") in html
    assert "gcn is &lt;best&gt;." in html
    assert html.count("<figure") == len(visit.figures) == 6


@pytest.mark.parametrize("text", ["", "[]", "{}"])
def test_a_file_that_is_not_a_document_of_the_doctor_is_named(text, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(
        ValueError,
        match=r"x\.json is not a document of `gcnii doctor GRAPH --json`: .*; restore it",
    ):
        read_visits(tmp_path)


def _cut(document, *place):
    """A copy without the last element of the list at this place."""
    copy = json.loads(json.dumps(document))
    found = copy
    for step in place:
        found = found[step]
    found.pop()
    return copy


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (("checkups",), "it has no checkups"),
        (
            ("checkups", 0, "after", 0, "energy"),
            r"checkups\[0\].after\[0\].energy must be a list of 2",
        ),
        (("filter", "gcn", "gain"), ".*same size"),
    ],
)
def test_a_document_with_a_hole_is_named(place, sentence, document, answers, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(_cut(document | answers, *place)))
    with pytest.raises(
        ValueError, match=rf"x\.json is not a document of `gcnii doctor GRAPH --json`: {sentence}"
    ):
        read_visits(tmp_path)


def test_without_further_answers_there_is_neither_a_heading_nor_a_caption_for_them(document):
    html = page([], [], [DoctorVisit(document)])
    assert "<h3>" not in html
    assert "<figcaption>" not in html


def test_the_page_has_a_picture_of_each_further_answer_and_says_what_it_shows(document, answers):
    html = page([], [], [DoctorVisit(document | answers)])
    assert html.count("<figure") == 8
    assert "<h3>What the deepest networks have learned</h3>" in html
    for name, caption in CAPTIONS.items():
        (figure,) = re.findall(
            rf'<figure class="narrow">\n(?:<div [^>]+>\n)+<svg [^>]+"csbm: {name}".*?</figure>',
            html,
            re.S,
        )
        assert f"<figcaption>{caption}</figcaption>" in figure


@pytest.mark.parametrize(
    ("asked", "drawn"),
    [("filter influence", {"filter", "influence"}), ("", set())],
)
def test_a_question_that_was_not_asked_has_no_picture(asked, drawn, document, answers):
    visit = DoctorVisit(document | {name: answers[name] for name in asked.split()})
    assert set(visit.learned) == drawn


def test_answers_read_from_json_are_the_answers(checkup, answers):
    again = json.loads(json.dumps(answers))
    assert Learned.of(again, [checkup]).document() == answers


@pytest.mark.slow
def test_the_advice_stands_in_the_page_and_is_optional(document):
    lines = ["use: gcn (validation accuracy 90.0)", "depth: 2 layers", "run: gcnii train a&b"]
    html = page([], [], [DoctorVisit(document | {"advice": {"lines": lines}})])
    assert "<li>run: gcnii train a&amp;b</li>" in html
    assert "by validation alone" not in page([], [], [DoctorVisit(document)])


def test_a_document_of_an_earlier_version_with_a_forecast_is_still_read(document):
    assert DoctorVisit(document | {"depth": {"gcn": {"recommended": 2}}}).learned == {}


def test_what_is_committed_can_be_read_and_has_every_picture():
    folder = Path(__file__).parents[3] / "results" / "doctor"
    visits = {visit.graph: visit for visit in read_visits(folder)}
    assert all(visit.verdicts for visit in visits.values())
    assert set(visits["cora"].learned) == set(CAPTIONS)
