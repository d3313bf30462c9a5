"""The manual builds without a warning, its notebooks run, and it loads nothing from other hosts."""

import re
import subprocess
import sys

import pytest
from support.manual import PAGES, ROOT

LOADED = re.compile(r"<(?:script|link|img|iframe|source|video|audio|object|embed)\b[^>]*>")
REMOTE = re.compile(r"""(?:src|href|data|srcset)=["']?(?:https?:)?//""")


@pytest.mark.slow
def test_the_manual_builds_leads_somewhere_and_loads_nothing_from_another_host(tmp_path):
    # A notebook that is not run has no language.
    unrun = ("-D", "nb_execution_mode=off", "-D", "suppress_warnings=myst-nb.lexer")
    site = built(tmp_path / "html", *unrun)  # it takes a while, so all is looked at in one test
    every_page_is_there(site)
    nothing_is_loaded_from_another_host(site)
    links_within_the_manual_lead_somewhere(site)
    the_reference_has_every_flag_and_every_model(site)


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
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        for link in re.findall(r'<a\b[^>]*href="([^"#:]+)(?:#[^"]*)?"', text):
            assert (page.parent / link).exists(), (page, link)


def the_reference_has_every_flag_and_every_model(site):
    commands = (site / "reference" / "commands.html").read_text("utf-8")
    models = (site / "reference" / "models.html").read_text("utf-8")
    assert all(f"--{flag}" in commands for flag in ("decay-conv", "coverage", "storage", "against"))
    assert "geom-gcn-s" in models
