"""report.html: every cell with its verdict, its seeds and its command, and nothing fetched."""

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from support.elements import Elements
from support.hostile_pages import NAMES, hostile_page
from support.made_up_cells import a_page_of_everything, around, cell_of, measured

from gcnii_paper.report.figures import figures
from gcnii_paper.report.grid import MARKS, TableCell, dot_plot, grid, judged
from gcnii_paper.report.markdown import takeaway
from gcnii_paper.report.page import page
from gcnii_paper.tables.printed import Printed
from gcnii_paper.tables.registry import CELLS


def written(cells):
    return page(cells, figures(cells))


def details(html, name):
    """The details of the cell of this id."""
    (part,) = re.findall(rf'<details class="cell" id="{name}">.*?</details>', html, re.DOTALL)
    return part


@pytest.fixture(scope="module")
def html():
    return written(a_page_of_everything())


@pytest.mark.parametrize(
    ("name", "scores", "changes", "word"),
    [
        ("table2/gcnii/cora", around(85.5), {}, "replicates"),
        ("table2/gcn/cora", around(90, 100), {}, "higher"),
        ("table2/gcn/cora", around(70, 100), {}, "lower"),
        ("table2/gcn/cora", around(90, 99), {}, "undecided"),
        ("table2/gcn/cora", [80.0], {}, "undecided"),
        ("table3/cora-gcn/64", around(90, 100), {}, "other settings"),
        ("table2/gcnii-star-as-printed/cora", around(85.3), {}, "other settings"),
        ("table3/pubmed-incep/64", around(77), {}, "unprinted"),
        ("table4/gcnii/ppi", [99.53], {"stand_in": True}, "stand-in"),
        ("table2/gcnii/cora", [85.5, None], {}, "failed"),
        ("table2/gcnii/cora", [], {}, "missing"),
    ],
)
def test_a_cell_has_one_word(name, scores, changes, word):
    cell = measured(name, scores, **changes)
    assert TableCell(cell_of(name), cell, judged([cell]).get(name)).word == word
    assert word in MARKS


def test_numbers_have_the_digits_of_the_table_they_stand_in():
    cells = [measured("table2/gcnii/cora", [85.02, 85.06]), measured("table5/gcnii/cora", [88.0])]
    two, five = (TableCell(cell_of(one.cell), one, judged(cells)[one.cell]) for one in cells)
    assert (two.difference, two.runs) == ("-0.5±0.1", "2/100")
    assert (five.difference, five.runs) == ("-0.49", "1/30")
    assert (two.ours, two.printed) == ("85.0 ± 0.0", "85.5 ± 0.5")
    assert (five.ours, five.printed) == ("88.00", "88.49")
    assert TableCell(cell_of("table2/gcnii/cora"), None).ours == "–"


def test_a_table_has_every_cell_that_is_declared_and_counts_the_papers_own():
    table = grid("table2", a_page_of_everything())
    assert sorted(shown.cell.id for shown in table.shown) == sorted(
        cell.id for cell in CELLS["table2"]
    )
    assert list(table.parts) == ["", "Not in the paper"]
    assert list(table.parts[""])[-2:] == ["GCNII", "GCNII*"]
    assert table.counts == {"replicates": 1, "higher": 1, "lower": 1, "undecided": 1, "missing": 20}


def test_where_the_paper_has_no_cell_there_is_none():
    assert grid("table3", []).parts["Cora"]["JKNet"][0] is None


def test_where_columns_are_depths_each_graph_is_a_part_of_its_own():
    assert list(grid("table3", []).parts) == ["Cora", "Citeseer", "Pubmed", "Not in the paper"]


def test_every_cell_has_its_place_on_the_page(html):
    for table in CELLS:
        for cell in CELLS[table]:
            assert html.count(f'id="{cell.id}"') == 1
            # figures have their drawing
            assert html.count(f'href="#{cell.id}"') == table.startswith("table")


def test_runs_of_which_nothing_is_recorded_are_counted():
    cell = measured("table2/gcnii/cora", [85.0, 86.0, 85.5])
    bare = replace(cell, runs=(replace(cell.runs[0], commit=None), *cell.runs[1:]))
    assert TableCell(cell_of(cell.cell), cell).every("commit") == "abc1234"
    assert (
        TableCell(cell_of(cell.cell), bare).every("commit")
        == "not recorded (1 runs); abc1234 (2 runs)"
    )


def test_a_run_that_cells_share_counts_once():
    cells = [
        measured(name, [85.0, 86.0])
        for name in ("table2/gcnii/cora", "table3/cora-gcnii/64", "table2/gcn/cora")
    ]
    one, shared, other = (
        replace(cell, settings_hash=key) for cell, key in zip(cells, "aab", strict=True)
    )
    assert "beside 4 runs of our own" in written([one, shared, other])


def test_a_table_says_how_long_its_runs_took_each_counted_once():
    cells = [
        measured(name, [85.0, 86.0])
        for name in ("table2/gcnii/cora", "table2/gcnii-star/cora", "table2/gcn/cora")
    ]
    one, shared, other = (
        replace(cell, settings_hash=key) for cell, key in zip(cells, "aab", strict=True)
    )
    slow = replace(
        other, runs=tuple(replace(run, seconds=3600.0, device="cuda: H200") for run in other.runs)
    )
    short = sum(run.seconds for run in one.runs)
    cost = f"2 runs on cpu ({short:.0f} s), 2 runs on cuda: H200 (2.0 h)"
    assert grid("table2", [one, shared, slow]).cost == cost
    assert f"Cost: {cost}" in written([one, shared, slow])
    assert grid("table2", []).cost == ""


def test_a_cell_says_how_it_was_measured_and_how_to_repeat_it(html):
    (part,) = re.findall(
        r'<details class="cell" id="table2/gcnii/cora">.*?</details>', html, re.DOTALL
    )
    for words in (
        "layers 64, alpha 0.1",
        "torch 2.13.0",
        "abc1234",
        "<dd>cpu</dd>",
        "<code>gcnii reproduce table2 --only table2/gcnii/cora --runs 100</code>",
        "+0.00 points",
        "0: 80.55, 1: 80.65",
    ):
        assert words in part
    assert "triton" not in part


def test_a_stand_in_has_no_verdict_and_is_not_drawn_over_the_printed_number(html):
    (part,) = re.findall(
        r'<details class="cell" id="table4/gcnii/ppi">.*?</details>', html, re.DOTALL
    )
    assert 'href="#mark-stand-in"/></svg> stand-in' in part
    assert "difference" not in part
    assert 'class="band"' not in part


def test_the_page_names_no_file_but_itself(html):
    assert not re.findall(r'(?:src|href)="(?!#|data:,)[^"]*"', html)
    assert "@import" not in html
    assert "url(" not in html.replace("url(#", "")  # clip paths of the figures


def test_every_element_is_closed_in_its_turn(html):
    class Strict(HTMLParser):
        open: list[str]

        def handle_starttag(self, tag, attributes):
            if tag not in ("meta", "link"):
                self.open.append(tag)

        def handle_startendtag(self, tag, attributes):
            pass

        def handle_endtag(self, tag):
            assert self.open.pop() == tag, self.getpos()

    reader = Strict()
    reader.open = []
    reader.feed(html)
    assert reader.open == []


def test_an_id_stands_once(html):
    names = re.findall(r'\bid="([^"]+)"', html)
    assert len(names) == len(set(names))


def test_the_page_begins_with_what_replicates_and_what_does_not():
    cells = a_page_of_everything()
    sentences = takeaway([grid(name, cells) for name in CELLS], figures(cells))
    own = "The paper's own models replicate in 1 of 2 numbers; 1 is failed."
    again = "Of all 5 printed numbers that were measured again with their settings, 1 replicates"
    rest = "1 is undecided, 1 is higher, 1 is lower and 1 is failed"
    assert sentences[0] == f"{own} {again}; {rest}."
    assert sentences[1] == "Theirs that differ: Cora GCNII, 64 layers (failed)."
    assert sentences[-1].endswith(
        "are not measured yet and 1 is measured on a stand-in graph only."
    )
    html = written(cells)
    assert html.index('<p class="takeaway">') < html.index("<nav")


def test_without_a_measured_number_the_page_says_so():
    printed = sum(bool(one.printed) for cells in CELLS.values() for one in cells if not one.extra)
    (sentence,) = takeaway([grid(name, []) for name in CELLS], figures([]))
    assert sentence == f"None of the {printed} numbers that the paper prints has been measured yet."


def test_what_stands_in_a_file_cannot_write_html():
    evil = measured("table2/gcnii/cora", around(85), command="<script>alert(1)</script>")
    assert "<script>alert" not in written([evil])


def test_hostile_names_add_no_element_attribute_or_id_to_the_page(html):
    evil, usual = Elements(hostile_page()), Elements(html)
    assert {*evil.tags} <= {*usual.tags} | {"strong", "tspan"}  # of models and of powers of ten
    assert not [name for name in evil.names if name.startswith("on") or name == "style"]
    assert (evil.tags.count("script"), evil.tags.count("style")) == (1, 1)
    for name in NAMES:
        shown = [text for tag, text in evil.texts if tag == "text" and name in text]
        assert len(shown) >= 12  # a title in each of six figures, and the model in their legends


def test_the_page_allows_its_own_style_and_script_alone(html):
    found = Elements(html)
    parts = dict(one.split(" ", 1) for one in found.policy.split("; "))
    assert parts["default-src"] == "'none'"
    for tag in ("style", "script"):
        (text,) = (text for inside, text in found.texts if inside == tag and text.strip())
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert parts[f"{tag}-src"] == f"'sha256-{digest}'"
    assert html.index("Content-Security-Policy") < html.index("<style>")


def test_figures_that_were_not_measured_say_how_to_measure_them():
    assert written([]).count("<code>gcnii reproduce figure1</code> measures it") == 1


def test_a_dot_plot_has_a_dot_a_seed_and_says_in_words_what_it_shows():
    drawing = dot_plot([85.0, 86.0, 85.0], 85.4, Printed(85.5, 0.5))
    (dots,) = re.findall(r'class="dots"[^>]* d="([^"]+)"', drawing)
    assert dots.count("h0") == len(set(re.findall(r"M\S+ \S+", dots))) == 3  # none upon another
    assert "<title>3 seeds from 85.0 to 86.0, mean 85.4; printed 85.5 ± 0.5</title>" in drawing
    assert 'class="band"' not in dot_plot([85.0], 85.0, None)
    assert dot_plot([float("nan")], float("nan"), None) == ""
    # a cell has no mean where a run has no score
    lost = dot_plot([85.0, float("nan")], float("nan"), None)
    assert 'class="mean"' not in lost
    assert "<title>1 seed from 85.0 to 85.0</title>" in lost


def test_a_hundred_equal_seeds_stay_within_the_drawing():
    drawing = dot_plot([85.0] * 100, 85.0, Printed(85.5, 0.5))
    height = float(re.findall(r'height="([\d.]+)" role', drawing)[0])
    assert all(0 <= float(y) <= height for y in re.findall(r"M\S+ (\S+)h0", drawing))


def test_every_verdict_has_a_shape_of_its_own_that_needs_no_font(html):
    shapes = re.findall(r'<symbol id="mark-([\w-]+)"[^>]*>(.*?)</symbol>', html)
    assert [word for word, _ in shapes] == [word.replace(" ", "-") for word in MARKS]
    assert len({shape for _, shape in shapes}) == len(MARKS)
