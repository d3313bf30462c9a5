"""The manual builds without a warning, its notebooks run, and it loads nothing from other hosts."""

import re
import subprocess
import sys

import pytest
from support.manual import PAGES, ROOT, made_pages

from gcnii.nn import MODELS
from gcnii.train.recipe import RECIPE_FIELDS

API = made_pages().API
LOADED = re.compile(r"<(?:script|link|img|iframe|source|video|audio|object|embed)\b[^>]*>")
LINK = re.compile(r'<a\b[^>]*href="([^"#:?]*)(?:#([^"]*))?"')
TARGET = re.compile(r'\bid="([^"]*)"')
REMOTE = re.compile(r"""(?:src|href|data|srcset)=["']?(?:https?:)?//""")


@pytest.mark.slow
def test_the_manual_builds_leads_somewhere_and_loads_nothing_from_another_host(tmp_path):
    # A notebook that is not run has no language.
    unrun = ("-D", "nb_execution_mode=off", "-D", "suppress_warnings=myst-nb.lexer")
    site = built(tmp_path / "html", *unrun)  # it takes a while, so all is looked at in one test
    every_page_is_there(site)
    nothing_is_loaded_from_another_host(site)
    links_within_the_manual_lead_somewhere(site)
    a_command_a_name_and_a_setting_have_their_places(site)
    formulas_need_no_script(site)


@pytest.mark.long
def test_the_notebooks_run_and_have_pictures(tmp_path):
    site = built(tmp_path / "html")
    for notebook in ("digits", "over-smoothing", "customers"):
        text = (site / "tutorials" / f"{notebook}.html").read_text("utf-8")
        assert "cell_output" in text
        assert "../_images/" in text
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
