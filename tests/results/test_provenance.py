"""Where a bundle comes from."""

import shutil
import subprocess
import sys
import tarfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

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


@pytest.fixture
def project(tmp_path):
    """A repository with this module at its place in src/, and the attributes of ours."""
    here = Path(provenance.__file__)
    source = tmp_path / "src" / "gcnii"
    (source / "results").mkdir(parents=True)
    (source / "__init__.py").touch()
    shutil.copy(here, source / "results")
    shutil.copy(here.parents[3] / ".gitattributes", tmp_path)
    (tmp_path / "score.json").write_text("1")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    return tmp_path


def commit_in(project, monkeypatch):
    """What the module of a project says of its code."""
    path = project / "src" / "gcnii" / "results" / "provenance.py"
    module = module_from_spec(spec_from_file_location("copied", path))
    module.__spec__.loader.exec_module(module)
    monkeypatch.setattr(module, "gcnii", SimpleNamespace(__file__=str(path.parents[1] / "x.py")))
    return module.commit()


def test_results_leave_a_commit_clean_and_code_makes_it_dirty(project, monkeypatch):
    clean = git_state(project)[:7]
    (project / "score.json").write_text("2")
    assert commit_in(project, monkeypatch) == clean
    new = project / "src" / "new.py"
    new.touch()
    assert commit_in(project, monkeypatch) == f"{clean}-dirty"
    new.unlink()
    (project / "src" / "gcnii" / "__init__.py").write_text("changed = True")
    assert commit_in(project, monkeypatch) == f"{clean}-dirty"


def test_an_archive_knows_its_commit_and_a_plain_copy_knows_none(
    project, monkeypatch, tmp_path_factory
):
    outside = tmp_path_factory.mktemp("outside")
    git(project, "archive", "--output", outside / "all.tar", "HEAD")
    with tarfile.open(outside / "all.tar") as archive:
        archive.extractall(outside / "unpacked", filter="data")
    assert commit_in(outside / "unpacked", monkeypatch) == git_state(project)[:7]
    shutil.copytree(project / "src", outside / "copied" / "src")
    assert commit_in(outside / "copied", monkeypatch) is None


def test_git_is_asked_once_so_that_a_later_commit_is_not_recorded(monkeypatch):
    answers = iter(["tracked", "first", "", "tracked", "later", ""])
    monkeypatch.setattr(provenance, "ask", lambda command: next(answers))
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
