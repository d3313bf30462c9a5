"""report.html in Chromium: it opens without errors or network, sorts, and fits a narrow screen."""

from pathlib import Path

import pytest
from support import chromium
from support.hostile_pages import NAMES, hostile_page
from support.made_up_cells import a_page_of_everything

from gcnii_paper.report.figures import figures
from gcnii_paper.report.page import page, read_visits


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    cells = a_page_of_everything()
    visits = read_visits(Path(__file__).parents[3] / "results" / "doctor")
    path.write_text(page(cells, figures(cells), visits), "utf-8")
    return path.as_uri()


@pytest.fixture
def tab(browser, address):
    """The page, wide."""
    with chromium.tab_of(browser, address) as tab:
        yield tab


@pytest.fixture
def hostile_tab(browser, tmp_path):
    """A page whose every text from a file is hostile."""
    path = tmp_path / "report.html"
    path.write_text(hostile_page(), "utf-8")
    with chromium.tab_of(browser, path.as_uri()) as tab:
        yield tab


def methods(tab):
    return tab.eval_on_selector_all(
        "#table2 tbody:first-of-type th[scope=row]", "all => all.map(th => th.textContent)"
    )


def test_it_opens_without_an_error_and_requests_nothing(tab):
    tab.click("#table2 .all > summary")
    tab.click("#table2 th button >> nth=1")
    assert tab.title() == "GCNII, measured again"
    assert tab.heard == tab.asked == []


def test_a_hostile_name_is_shown_and_not_run_and_the_page_works(hostile_tab):
    tab = hostile_tab
    for name, link in zip(NAMES, tab.locator("nav a[href^='#doctor-']").all(), strict=True):
        assert link.inner_text() == f"Doctor, {name}"
        link.click()
        section = tab.locator(link.get_attribute("href"))
        assert section.locator("svg").first.get_attribute("aria-label") == f"{name}: energy"
        assert name in "\n".join(section.locator("svg text").all_text_contents())
    assert tab.locator("img, main style, svg script").count() == 0
    tab.click("a[href='#table2/gcnii/cora']")
    assert tab.is_visible("[id='table2/gcnii/cora'] code")
    tab.click("#table2 th button:text('Cora')")
    assert methods(tab)[0] == "GCNII"
    assert tab.dialogs == tab.heard == tab.asked == []


def test_a_style_or_script_that_is_not_the_pages_own_is_blocked(hostile_tab):
    hostile_tab.evaluate("""() => {
      document.body.insertAdjacentHTML("beforeend", '<img src="x" onerror="alert(1)">');
      document.body.append(Object.assign(document.createElement("script"), {text: "alert(2)"}));
      document.body.append(Object.assign(document.createElement("style"), {textContent: "*{}"}));
      document.body.setAttribute("style", "color: red");
    }""")
    hostile_tab.wait_for_timeout(200)
    assert hostile_tab.dialogs == []
    assert len(hostile_tab.heard) >= 4
    assert all("Content Security Policy" in one for one in hostile_tab.heard)
    assert hostile_tab.evaluate("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"


def test_figures_keep_their_colours_without_styles_of_their_own(tab):
    assert tab.locator("figure [style]").count() == 0
    line = "#doctor-cora svg path[stroke-dasharray]"
    colours = "all => [...new Set(all.map(one => getComputedStyle(one).stroke))]"
    assert "rgb(213, 94, 0)" in tab.eval_on_selector_all(line, colours)  # Okabe and Ito's orange


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(width, scheme, tab):
    tab.emulate_media(color_scheme=scheme)
    chromium.resize(tab, width)
    tab.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    assert tab.evaluate("document.scrollingElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1280, 400])
def test_every_word_of_the_doctors_pictures_lies_within_them(width, tab):
    """But for the empty pixels above a title's letters."""
    chromium.resize(tab, width)
    beyond = """all => all.flatMap(svg => [...svg.querySelectorAll("text")].filter(text => {
      const [a, b] = [text.getBoundingClientRect(), svg.getBoundingClientRect()];
      return Math.max(b.left - a.left, a.right - b.right, b.top - a.top, a.bottom - b.bottom) > 2;
    }).map(text => `${svg.ariaLabel}: ${text.textContent}`))"""
    assert tab.eval_on_selector_all("#doctor-cora svg", beyond) == []
    assert tab.locator("#doctor-cora svg").count() == 8


def test_a_picture_of_one_panel_needs_no_scrolling_on_a_narrow_screen(tab):
    chromium.resize(tab, 400)
    sizes = "all => all.map(box => [box.ariaLabel, box.scrollWidth <= box.clientWidth])"
    found = dict(tab.eval_on_selector_all("#doctor-cora figure.narrow .scroll", sizes))
    assert found == {f"cora: {name}": True for name in ("depth", "filter", "influence")}


def test_a_wide_table_scrolls_within_its_own_box(tab):
    chromium.resize(tab, 400)
    assert tab.eval_on_selector("#table5 .scroll", "box => box.scrollWidth > box.clientWidth")


def test_a_click_sorts_by_our_mean_and_another_reverses_it(tab):
    paper = methods(tab)
    tab.click("#table2 th button:text('Cora')")
    assert methods(tab)[:4] == ["GCN", "GCNII", "APPNP", "GAT"]
    assert tab.get_attribute("#table2 thead th:nth-child(2)", "aria-sort") == "descending"
    assert tab.get_attribute("#table2 thead th:nth-child(1)", "aria-sort") == "none"
    tab.click("#table2 th button:text('Cora')")
    assert methods(tab)[:4] == ["GAT", "APPNP", "GCNII", "GCN"]  # what is missing stays last
    tab.click("#table2 th button:text('method')")
    assert methods(tab) == paper


def test_the_keyboard_sorts_too(tab):
    tab.focus("#table2 th button:text('Cora')")
    tab.keyboard.press("Enter")
    assert methods(tab)[0] == "GCN"


def test_rows_that_are_ours_stay_below_the_papers(tab):
    tab.click("#table2 th button:text('Cora')")
    below = tab.locator("#table2 tbody").nth(1).locator("tr").first
    assert below.inner_text() == "Not in the paper"


def test_a_number_leads_to_its_details(tab):
    part = "[id='table2/gcnii/cora']"
    assert not tab.is_visible(f"{part} code")
    tab.click("a[href='#table2/gcnii/cora']")
    assert tab.is_visible(f"{part} code")


def place(tab, selector):
    """Where an element is on the screen."""
    return tab.eval_on_selector(
        selector,
        "one => (({top, bottom, left, right}) => ({top, bottom, left, right}))"
        "(one.getBoundingClientRect())",
    )


@pytest.mark.parametrize("width", [1280, 400])
def test_the_details_open_right_below_the_row_of_their_number_and_both_are_in_sight(width, tab):
    chromium.resize(tab, width)
    tab.click("a[href='#table2/gcnii/cora']")
    row, number = place(tab, ".beside"), place(tab, "[id='at-table2/gcnii/cora']")
    assert row["top"] == pytest.approx(number["bottom"], abs=1)
    assert 0 <= number["top"] < row["top"] < 900
    details = place(tab, "[id='table2/gcnii/cora']")
    assert 0 <= details["left"] < details["right"] <= width
    assert tab.get_attribute("a[href='#table2/gcnii/cora']", "aria-expanded") == "true"


@pytest.mark.parametrize("way", ["Escape", "link", "summary", "number"])
def test_there_is_a_way_back_from_the_details_to_the_number(way, tab):
    number, part = "a[href='#table2/gcnii/cora']", "[id='table2/gcnii/cora']"
    tab.focus(number)
    tab.keyboard.press("Enter")
    assert tab.is_visible(f".beside {part}")
    if way == "Escape":
        tab.keyboard.press("Escape")
    else:
        tab.click({"link": f"{part} .back", "summary": f"{part} > summary", "number": number}[way])
    tab.wait_for_selector(".beside", state="detached")
    assert tab.evaluate("document.activeElement.hash") == "#table2/gcnii/cora"
    assert tab.get_attribute(number, "aria-expanded") == "false"
    assert tab.locator(f"#table2 .all {part}").count() == 1


def test_one_number_of_a_table_is_open_at_a_time_and_moves_with_its_row(tab):
    tab.click("a[href='#table2/gcn/cora']")
    tab.click("a[href='#table2/gcnii/cora']")
    assert tab.locator(".beside").count() == 1
    tab.click("#table2 th button:text('Cora')")
    above = tab.eval_on_selector(
        ".beside", "row => row.previousElementSibling.cells[0].textContent"
    )
    assert above == "GCNII"


def test_an_address_with_a_cell_opens_its_details_beside_the_number(browser, address):
    with chromium.tab_of(browser, f"{address}#table2/gcnii/cora") as tab:
        assert tab.is_visible(".beside [id='table2/gcnii/cora'] code")


def test_the_header_of_a_table_stays_in_sight(tab):
    """At the top of the window, or of its own box where the table scrolls in one."""
    tab.locator("#table5 tbody th[scope=row]").last.scroll_into_view_if_needed()
    assert place(tab, "#table5 .scroll")["top"] < 0
    assert place(tab, "#table5 thead th")["top"] == pytest.approx(0, abs=2)
    chromium.resize(tab, 400)
    tab.wait_for_selector("#table5 .more-right")
    tab.eval_on_selector("#table5 .scroll", "box => box.scrollTop = 400")
    head, box = place(tab, "#table5 thead th"), place(tab, "#table5 .scroll")
    assert head["top"] == pytest.approx(box["top"], abs=2)
    assert place(tab, "#table5 tbody tr")["bottom"] < head["top"]


def test_on_a_narrow_screen_the_first_column_stays_in_sight(tab):
    chromium.resize(tab, 400)
    before = place(tab, "#table5 tbody th[scope=row]")["left"]
    tab.eval_on_selector("#table5 .scroll", "box => box.scrollLeft = 200")
    assert place(tab, "#table5 tbody th[scope=row]")["left"] == before


def test_a_shadow_shows_where_a_box_can_still_be_scrolled(tab):
    edges = "box => [...box.parentElement.classList].filter(name => name !== 'edge').sort()"
    assert tab.eval_on_selector("#table5 .scroll", edges) == ["fits"]
    chromium.resize(tab, 400)
    tab.wait_for_selector("#table5 .more-right")
    assert tab.eval_on_selector("#table5 .scroll", edges) == ["more-right"]
    shade = "edge => getComputedStyle(edge, '::after').opacity"
    tab.wait_for_timeout(200)
    assert tab.eval_on_selector("#table5 .edge", shade) == "1"
    for left, found in ((50, ["more-left", "more-right"]), (10_000, ["more-left"])):
        tab.eval_on_selector("#table5 .scroll", f"box => box.scrollLeft = {left}")
        tab.wait_for_timeout(50)
        assert tab.eval_on_selector("#table5 .scroll", edges) == found


def test_a_wide_screen_is_used(tab):
    """The words are beside the counts, and the doctor's pictures are side by side."""
    chromium.resize(tab, 1920)
    assert place(tab, "main")["right"] > 1800
    assert place(tab, ".words")["left"] > place(tab, ".counts")["right"]
    tops = "all => all.slice(0, 2).map(one => one.getBoundingClientRect().top)"
    first, second = tab.eval_on_selector_all("#doctor-cora figure", tops)
    assert first == second


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_stands_out_from_its_ground(scheme, tab):
    """WCAG's contrast of at least 4.5 for text."""
    tab.emulate_media(color_scheme=scheme)
    words = ".word, .paper, .ours, figcaption, a, code, .takeaway"
    assert min(tab.eval_on_selector_all(words, chromium.CONTRAST)) >= 4.5


def test_a_browser_that_is_not_the_pinned_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(
        chromium.subprocess, "run", lambda *_, cwd, **__: Path(cwd, "a.tgz").write_bytes(b"another")
    )
    monkeypatch.setattr(chromium, "FOLDER", tmp_path / "chromium")
    with pytest.raises(ValueError, match=r"chromium@[\d.]+ has the SHA-512 .*, expected "):
        chromium.install()
    assert list(tmp_path.iterdir()) == []
