"""Every line of some pages of docs/ runs, in order, in an empty folder."""

import re
import shlex
import warnings
from pathlib import Path

import pytest
from support.command_line import call

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page):
    """The page's blocks of code: (language, code)."""
    return re.findall(r"^```(python|sh)\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("your-graph.md", "labels.csv", "node,label,probability,known,split,p(lost)"),
        ("tuning.md", "labels.csv", "node,label,probability,known,split,p(0)"),
        ("explaining.md", "why.svg", "link for it"),
        ("consistency.md", "runs/views/run.json", '"views": 2'),
        ("evaluation.md", "evaluation.json", "does not beat naming the largest class"),
    ],
)
def test_every_line_of_a_page_runs(name, file, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page, names = DOCS / name, {}
    for language, code in blocks(page):
        if language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is left out is a notice, not an error
                exec(compile(code, str(page), "exec"), names)
        else:
            for line in code.splitlines():
                answer = call(*shlex.split(line)[1:], cwd=tmp_path)
                assert answer.code == 0, (line, answer.err)
    assert words in Path(file).read_text()
