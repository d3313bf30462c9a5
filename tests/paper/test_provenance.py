"""Where a measured number comes from."""

import subprocess

from gcnii.paper import provenance


def test_a_repository_that_this_code_only_lies_in_is_not_its_own(tmp_path, monkeypatch):
    def git(*words):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True
        )

    (tmp_path / "mine.txt").touch()
    git("init", "--quiet")
    git("add", "mine.txt")
    git("commit", "--quiet", "--message", "mine")
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "mine.txt"))
    assert provenance._commit()
    (tmp_path / "installed.py").touch()
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "installed.py"))
    assert provenance._commit() is None
