"""Where a measured number comes from."""

import subprocess
import sys

import pytest

from gcnii.paper import provenance


def test_a_repository_that_does_not_track_this_code_is_not_its_own(tmp_path, monkeypatch):
    def git(*words):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True
        )

    (tmp_path / "mine.txt").touch()
    git("init", "--quiet")
    git("add", "mine.txt")
    git("commit", "--quiet", "--message", "mine")
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "mine.txt"))
    assert provenance.commit.__wrapped__()
    (tmp_path / "installed.py").touch()
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "installed.py"))
    assert provenance.commit.__wrapped__() is None


def test_git_is_asked_once_so_that_a_later_commit_is_not_recorded(monkeypatch):
    answers = iter(["first", "later"])
    monkeypatch.setattr(provenance, "git_state", lambda folder, digits: next(answers))
    provenance.commit.cache_clear()
    try:
        assert provenance.commit() == provenance.commit() == "first"
    finally:
        provenance.commit.cache_clear()


@pytest.mark.slow
def test_importing_a_room_runs_no_git():
    code = (
        "import subprocess, sys\n"
        "subprocess.run = None\n"
        "import gcnii.paper.reproduce, gcnii.paper.search.run, gcnii.paper.bench.record\n"
        "import gcnii.paper.forecast"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
