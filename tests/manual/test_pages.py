"""Every line of the manual runs and prints what is shown, or needs what a test does not have."""

import re
import tomllib
from pathlib import Path

import pytest
from support.manual import (
    FAILS,
    OUTPUT,
    PAGES,
    ROOT,
    SERVER,
    SLOW,
    UNRUN,
    blocks,
    cut,
    differs,
    measured_commands,
    run,
    understand,
)

EVIDENCE = {
    "docs/howto/tables.md": ("labels.csv", "node,label,probability,known,split,p(lost)"),
    "docs/howto/tune.md": ("labels.csv", "node,label,probability,known,split,p(0)"),
    "docs/understand/explanations.md": ("why.svg", "edge for it"),
    "docs/howto/few-labels.md": ("runs/views/run.json", '"views": 2'),
    "docs/understand/evaluation.md": ("evaluation.json", "columns that tell the classes apart"),
}
RUN = [page for page in ("README.md", *PAGES) if any(block.runs() for block in blocks(page))]


SHOWING = [page for page in PAGES if page.split("/")[1] in ("start", "tutorials", "howto")]


@pytest.mark.parametrize("page", SHOWING)
def test_a_page_to_learn_or_to_do_by_shows_an_output_or_a_picture(page):
    text = (ROOT / page).read_text("utf-8")
    shown = any(block.is_output for block in blocks(page)) or "](../pictures/" in text
    assert shown or "```{code-cell}" in text  # a notebook, which prints when the manual is built


def test_nothing_that_is_printed_in_80_columns_is_cut():
    lines = [
        (page, line)
        for page in ("README.md", *PAGES)
        for block in blocks(page)
        if block.is_output
        for line in block.text.splitlines()
    ]
    assert len(lines) > 500
    assert [one for one in lines if "…" in one[1]] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_every_line_of_a_page_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = None
    for block, answer in run(page, tmp_path):
        if block.is_output and printed is not None:  # else it takes too long for a test
            more, less = differs(block.text, printed, block.mark)
            hint = f"`make outputs PAGES={page}` would change: -{more} +{less}\n{printed}"
            assert (more, less) == ([], []), hint
        elif block.language in ("python", "sh"):
            printed = answer
    if page in EVIDENCE:
        file, text = EVIDENCE[page]
        assert text in Path(file).read_text()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *PAGES])
def test_what_is_not_run_is_marked_and_still_a_command_or_python(page):
    code = None
    for block in blocks(page):
        if block.is_output:
            assert OUTPUT.fullmatch(block.mark), block
            assert block.text.strip(), f"{page}: an empty output; `make outputs PAGES={page}`"
            assert code, f"{page}: an output without code before it"
            assert code.runs(slow=True), f"{page}: an output of code that is not run: {code}"
            continue
        assert block.language in ("python", "sh", "text", "json", "bibtex"), block
        assert block.mark in ("", FAILS, SERVER, SLOW, *UNRUN), block
        if block.language == "sh":
            for line in block.lines:
                understand(line)
        elif block.language == "python":
            compile(block.text, page, "exec")
        code = block if block.language in ("python", "sh") else code
    for line in measured_commands(page):
        understand(line)


SHOWN = "seed  val  best epoch\n   0 98.0          66\nbundle: runs/x1"


@pytest.mark.parametrize(
    ("printed", "difference"),
    [
        ("seed   val best epoch\n   0  97.25        101\n bundle:   runs/x2", ([], [])),
        ("seed  val  epoch\n   0 98.0          66\nbundle: runs/x1", (["best"], [])),
        ("seed  val  best epoch  loss\n   0 98.0  66  1.0\nbundle: runs/x1", ([], ["loss"])),
        ("", (["best", "bundle", "epoch", "runs", "seed", "val"], [])),
    ],
)
def test_an_output_differs_by_its_words_and_not_by_its_numbers(printed, difference):
    assert differs(SHOWN, printed, "output") == difference


def test_of_a_part_that_is_shown_no_word_may_be_gone():
    printed = "one\ntwo\nthree"
    assert cut(printed, "output head=1") == "one\n..."
    assert cut(printed, "output tail=1") == "...\nthree"
    assert differs("one\n...", printed, "output head=1") == ([], [])
    assert differs("four\n...", printed, "output head=1") == (["four"], [])


def test_extras_that_a_page_installs_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for page in ("README.md", *PAGES):
        for names in re.findall(r"gcnii\[([\w,]+)\]", (ROOT / page).read_text("utf-8")):
            assert set(names.split(",")) <= set(extras), (page, names)
