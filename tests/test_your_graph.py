"""Every line of docs/your-graph.md runs, in order, in an empty folder."""

import re
import shlex
import warnings
from pathlib import Path

from support.command_line import call

PAGE = Path(__file__).parents[1] / "docs" / "your-graph.md"


def blocks():
    """The page's blocks of code: (language, code)."""
    return re.findall(r"^```(python|sh)\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)


def test_every_line_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for language, code in blocks():
        if language == "python":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is left out is a notice, not an error
                exec(compile(code, str(PAGE), "exec"), names)
        else:
            for line in code.splitlines():
                answer = call(*shlex.split(line)[1:], cwd=tmp_path)
                assert answer.code == 0, (line, answer.err)
    assert "node,label,probability,known,split,p(lost)" in Path("labels.csv").read_text()
