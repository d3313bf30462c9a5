"""Where a bundle comes from."""

import subprocess
import sys

import pytest

from gcnii import data, fit, open_bundle
from gcnii.results import provenance
from gcnii.results.provenance import ask, git_state

SMALL = {"layers": 2, "width": 8, "epochs": 2, "device": "cpu", "seeds": [0]}


def git(folder, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    return tmp_path


def test_the_git_state_is_the_commit_and_whether_files_differ(repository):
    clean = git_state(repository)
    assert len(clean) == 40
    (repository / "file").write_text("two")
    assert git_state(repository) == f"{clean}-dirty"
    assert git_state(repository, 7) == f"{clean[:7]}-dirty"


def test_outside_a_repository_or_without_git_there_is_none(tmp_path, monkeypatch):
    assert git_state(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ask(["git", "--version"]) is None


def test_git_runs_no_program_of_the_repository(repository, tmp_path_factory):
    trace = tmp_path_factory.mktemp("outside") / "trace"
    git(repository, "config", "core.fsmonitor", f"touch {trace}; false")
    assert git_state(repository) is not None
    assert not trace.exists()


def test_a_bundle_keeps_where_it_comes_from(repository, monkeypatch):
    monkeypatch.chdir(repository)
    graph = data.load("csbm", n=60, degree=6, labels_per_class=5)
    path = fit(graph, **SMALL).save(repository / "one", command="gcnii train x")
    opened = open_bundle(path)
    assert opened.made["command"] == "gcnii train x"
    assert opened.made["git"] == git_state(repository)
    (repository / "file").write_text("two")
    again = open_bundle(opened.save(repository / "two", command="another"))
    assert again.made == opened.made


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
        "import gcnii_paper.reproduce, gcnii_paper.searching, gcnii_paper.bench.measure"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
