"""report.html in Chromium: it opens without errors or network, sorts, and fits a narrow screen."""

import os
from pathlib import Path

import pytest
from support import chromium
from support.hostile_pages import NAMES, hostile_page
from support.made_up_cells import a_page_of_everything

from gcnii.paper.report.doctor_page import read_visits
from gcnii.paper.report.figures.paper_figures import figures
from gcnii.paper.report.page import page


@pytest.fixture(scope="module")
def browser():
    """Headless; without one the tests skip, or fail if $GCNII_REQUIRE_BROWSER is 1."""
    options = chromium.launch_options()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        options = None
    if not options:
        if os.environ.get("GCNII_REQUIRE_BROWSER") == "1":
            names = ", ".join(chromium.NAMES)
            pytest.fail(
                f"needs playwright, and tests/support/chromium.py run or one of {names} on the PATH"
            )
        pytest.skip("no Chromium, or no playwright")
    with sync_playwright() as driver:
        yield driver.chromium.launch(**options)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    cells = a_page_of_everything()
    visits = read_visits(Path(__file__).parents[3] / "results" / "doctor")
    path.write_text(page(cells, figures(cells), visits), "utf-8")
    return path.as_uri()


@pytest.fixture
def tab(browser, address):
    """The page, wide; its errors, messages and requests are in `tab.heard`."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.heard = []
    tab.on("console", lambda message: tab.heard.append(message.text))
    tab.on("pageerror", lambda error: tab.heard.append(str(error)))
    tab.on(
        "request", lambda request: tab.heard.append(request.url) if request.url != address else None
    )
    tab.goto(address)
    yield tab
    tab.close()


@pytest.fixture
def hostile_tab(browser, tmp_path):
    """A page whose every text from a file is hostile; its `dialogs`, and errors in `heard`."""
    path, tab = tmp_path / "report.html", browser.new_page()
    path.write_text(hostile_page(), "utf-8")
    tab.heard, tab.dialogs = [], []
    tab.on("dialog", lambda dialog: (tab.dialogs.append(dialog.message), dialog.dismiss()))
    tab.on("console", lambda message: tab.heard.append(message.text))
    tab.on("pageerror", lambda error: tab.heard.append(str(error)))
    tab.goto(path.as_uri())
    yield tab
    tab.close()


def methods(tab):
    return tab.eval_on_selector_all(
        "#table2 tbody:first-of-type th[scope=row]", "all => all.map(th => th.textContent)"
    )


def test_it_opens_without_an_error_and_requests_nothing(tab):
    tab.click("#table2 .all > summary")
    tab.click("#table2 th button >> nth=1")
    assert tab.title() == "GCNII, measured again"
    assert [one for one in tab.heard if not one.startswith("data:")] == []


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
    assert tab.dialogs == tab.heard == []


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
    tab.set_viewport_size({"width": width, "height": 900})
    tab.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    assert tab.evaluate("document.scrollingElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1280, 400])
def test_every_word_of_the_doctors_pictures_lies_within_them(width, tab):
    """But for the empty pixels above a title's letters."""
    tab.set_viewport_size({"width": width, "height": 900})
    beyond = """all => all.flatMap(svg => [...svg.querySelectorAll("text")].filter(text => {
      const [a, b] = [text.getBoundingClientRect(), svg.getBoundingClientRect()];
      return Math.max(b.left - a.left, a.right - b.right, b.top - a.top, a.bottom - b.bottom) > 2;
    }).map(text => `${svg.ariaLabel}: ${text.textContent}`))"""
    assert tab.eval_on_selector_all("#doctor-cora svg", beyond) == []
    assert tab.locator("#doctor-cora svg").count() == 8


def test_a_picture_of_one_panel_needs_no_scrolling_on_a_narrow_screen(tab):
    tab.set_viewport_size({"width": 400, "height": 900})
    sizes = "all => all.map(box => [box.ariaLabel, box.scrollWidth <= box.clientWidth])"
    found = dict(tab.eval_on_selector_all("#doctor-cora figure.narrow .scroll", sizes))
    assert found == {f"cora: {name}": True for name in ("depth", "filter", "influence")}


def test_a_wide_table_scrolls_within_its_own_box(tab):
    tab.set_viewport_size({"width": 400, "height": 900})
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_stands_out_from_its_ground(scheme, tab):
    """WCAG's contrast of at least 4.5 for text."""
    tab.emulate_media(color_scheme=scheme)
    contrast = """all => all.map(one => {
      const light = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(c => c / 255)
        .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
      const [a, b] = [getComputedStyle(one).color, getComputedStyle(document.body).backgroundColor]
        .map(light);
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    })"""
    assert (
        min(tab.eval_on_selector_all(".word, .paper, .ours, figcaption, a, code", contrast)) >= 4.5
    )


def test_a_browser_that_is_not_the_pinned_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(
        chromium.subprocess, "run", lambda *_, cwd, **__: Path(cwd, "a.tgz").write_bytes(b"another")
    )
    monkeypatch.setattr(chromium, "FOLDER", tmp_path / "chromium")
    with pytest.raises(ValueError, match=r"chromium@[\d.]+ has the SHA-512 .*, expected "):
        chromium.install()
    assert list(tmp_path.iterdir()) == []
