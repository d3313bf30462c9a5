"""The manual builds without a warning, its notebooks run, and it loads nothing from other hosts."""

import re
import subprocess
import sys

import pytest
from support.chromium import CONTRAST, launched
from support.manual import PAGES, ROOT, docs_module

from gcnii.nn import MODELS
from gcnii.train.recipe import RECIPE_FIELDS

API = docs_module("generated").API
LOADED = re.compile(r"<(?:script|link|img|iframe|source|video|audio|object|embed)\b[^>]*>")
LINK = re.compile(r'<a\b[^>]*href="([^"#:?]*)(?:#([^"]*))?"')
# What is in a page and reaches beyond the window, but for what scrolls by itself.
WIDER = """() => [...document.querySelectorAll("article *")]
  .filter(one => !one.closest("pre, table, .math, .cell_output"))
  .filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(one => one.textContent.slice(0, 60))"""
TARGET = re.compile(r'\bid="([^"]*)"')
REMOTE = re.compile(r"""(?:src|href|data|srcset)=["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The manual without its notebooks run; one that is not run has no language."""
    unrun = ("-D", "nb_execution_mode=off", "-D", "suppress_warnings=myst-nb.lexer")
    return built(tmp_path_factory.mktemp("site") / "html", *unrun)


browser = pytest.fixture(scope="module")(launched)


@pytest.mark.slow
def test_the_manual_builds_leads_somewhere_and_loads_nothing_from_another_host(site):
    every_page_is_there(site)
    nothing_is_loaded_from_another_host(site)
    links_within_the_manual_lead_somewhere(site)
    a_command_a_name_and_a_setting_have_their_places(site)
    formulas_need_no_script(site)


@pytest.mark.slow
def test_only_tables_code_and_formulas_are_wider_than_a_phone(site, browser):
    tab = browser.new_page(viewport={"width": 390, "height": 800})
    for page in sorted(site.rglob("*.html")):
        tab.goto(page.as_uri())
        assert tab.evaluate(WIDER) == [], page
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, page
    tab.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_at_1280_pixels_all_is_in_view_and_legible(site, browser, scheme):
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab = context.new_page()
    tab.goto((site / "howto/tables.html").as_uri())
    for part in (".sidebar-tree details[open] a.current", ".toc-tree", "article h1"):
        box = tab.locator(part).first.bounding_box()
        assert box["x"] >= 0, part
        assert box["x"] + box["width"] <= 1280, part
    assert tab.locator(".sidebar-tree details[open]").count() == 1
    code = tab.locator("div.highlight-sh:not(.output) div.highlight").first
    code.hover()
    code.locator(".copy").click()
    tab.wait_for_function("document.querySelector('.highlight-sh .copy').textContent == 'Copied'")
    assert tab.evaluate("navigator.clipboard.readText()") == code.locator("pre").inner_text()
    assert tab.locator(".output .copy").count() == 0
    assert min(tab.locator("article p, article a, article h2").evaluate_all(CONTRAST)) >= 4.5
    context.close()


@pytest.mark.long
def test_the_notebooks_run_and_have_pictures(tmp_path):
    site = built(tmp_path / "html")
    for notebook in ("digits", "over-smoothing", "customers", "service"):
        text = (site / "tutorials" / f"{notebook}.html").read_text("utf-8")
        assert "cell_output" in text
        assert "../_images/" in text or notebook == "service"
        assert "Traceback" not in text


def test_no_line_is_taken_for_a_comment_and_lost():
    lines = (
        (page, line) for page in PAGES for line in (ROOT / page).read_text("utf-8").split("\n")
    )
    assert [(page, line) for page, line in lines if line.startswith("%")] == []


def built(folder, *options):
    """The manual, built as `make docs` builds it."""
    words = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", *options]
    done = subprocess.run([*words, "docs", folder], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return folder


def every_page_is_there(site):
    assert (site / "llms.txt").exists()
    assert (site / "SKILL.md").exists()
    for page in PAGES:
        assert (site / page.removeprefix("docs/")).with_suffix(".html").exists(), page


def nothing_is_loaded_from_another_host(site):
    for page in site.rglob("*.html"):
        tags = LOADED.findall(page.read_text("utf-8"))
        assert [tag for tag in tags if REMOTE.search(tag)] == [], page
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text("utf-8")), (
            style
        )


def links_within_the_manual_lead_somewhere(site):
    texts = {page.resolve(): page.read_text("utf-8") for page in site.rglob("*.html")}
    targets = {page: set(TARGET.findall(text)) for page, text in texts.items()}
    for page, text in texts.items():
        for file, anchor in LINK.findall(text):
            there = (page.parent / file).resolve() if file else page
            assert there.exists(), (page, file)
            if anchor and there in targets:
                assert anchor in targets[there], (page, file, anchor)


def a_command_a_name_and_a_setting_have_their_places(site):
    train = (site / "reference/commands/train.html").read_text("utf-8")
    assert 'id="cmdoption-gcnii-train-decay-conv"' in train
    assert "../../howto/choose.html" in train
    tables = {
        name: (site / f"reference/{name}.html").read_text("utf-8")
        for name in ("commands", "api", "models", "settings")
    }
    for command in ("gcnii-train", "gcnii-data-check", "gcnii-reproduce"):  # as on one page before
        assert f'id="{command}"' in tables["commands"]
    for names in API.values():
        for name in names:
            assert (site / f"reference/api/{name}.html").exists()
    assert 'id="gcnii.Result"' in tables["api"]
    assert all(name in tables["models"] for name in MODELS)
    assert all(name in tables["settings"] for name in RECIPE_FIELDS)


def formulas_need_no_script(site):
    paper = (site / "understand/paper.html").read_text("utf-8")
    assert paper.count("<math ") > 10
    assert "MathJax" not in paper
