"""Every line of the manual runs, or is marked as needing what a test does not have."""

import re
import tomllib
import warnings
from pathlib import Path

import pytest
from support.command_line import call
from support.manual import PAGES, ROOT, UNRUN, blocks, measured_commands, understand, words

EVIDENCE = {
    "docs/howto/tables.md": ("labels.csv", "node,label,probability,known,split,p(lost)"),
    "docs/howto/tune.md": ("labels.csv", "node,label,probability,known,split,p(0)"),
    "docs/understand/explanations.md": ("why.svg", "link for it"),
    "docs/howto/few-labels.md": ("runs/views/run.json", '"views": 2'),
    "docs/understand/evaluation.md": ("evaluation.json", "does not beat naming the largest class"),
}
RUN = [
    page
    for page in ("README.md", *PAGES)
    if any(block.language in ("python", "sh") and not block.mark for block in blocks(page))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_every_line_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(page):
        if block.language == "python" and not block.mark:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is left out is a notice, not an error
                exec(compile(block.text, page, "exec"), names)
        elif block.language == "sh" and not block.mark:
            for line in block.lines:
                command, *rest = words(line)
                answer = call(*rest, cwd=tmp_path)
                assert (command, answer.code) == ("gcnii", 0), (line, answer.err)
    if page in EVIDENCE:
        file, text = EVIDENCE[page]
        assert text in Path(file).read_text()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *PAGES])
def test_what_is_not_run_is_marked_and_still_a_command_or_python(page):
    for block in blocks(page):
        assert block.language in ("python", "sh", "text", "json", "bibtex"), block
        assert block.mark in ("", *UNRUN), block
        if block.language == "sh":
            for line in block.lines:
                understand(line)
        elif block.language == "python":
            compile(block.text, page, "exec")
    for line in measured_commands(page):
        understand(line)


def test_extras_that_a_page_installs_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for page in ("README.md", *PAGES):
        for names in re.findall(r"gcnii\[([\w,]+)\]", (ROOT / page).read_text("utf-8")):
            assert set(names.split(",")) <= set(extras), (page, names)
