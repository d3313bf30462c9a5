"""What is released: a version, a citation, and a wheel that works where there is no source tree."""

import os
import re
import subprocess
import sys
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from support.manual import ROOT

import gcnii

PACKAGE = ROOT / "src" / "gcnii"


def test_the_version_is_the_citations():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == gcnii.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", gcnii.__version__)
    (paper,) = citation["references"]
    assert paper["title"] == "Simple and Deep Graph Convolutional Networks"
    assert [one["family-names"] for one in paper["authors"]] == [
        *("Chen", "Wei", "Huang", "Ding", "Li")
    ]


def bare(folder):
    """A new environment with nothing in it but a path to the dependencies that are installed here.

    They are not installed again, because torch alone takes minutes; what is installed here for
    editing is not seen, because files of this kind in that folder are not read.
    """
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    homes = {Path(find_spec(name).origin).parents[1] for name in ("torch", "hatchling")}
    (packages / "dependencies.pth").write_text("\n".join(map(str, homes)))
    return folder / "bin" / "python"


def outside(*words, cwd):
    """Run a command that cannot see the source tree."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_the_source_distribution_installs_and_trains_in_a_bare_environment(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (source,) = (list((tmp_path / "dist").glob(kind)) for kind in ("*.whl", "*.tar.gz"))
    with zipfile.ZipFile(wheel) as held:
        packed = set(held.namelist())
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert {f"gcnii/{path.relative_to(PACKAGE)}" for path in files} <= packed
    python = bare(tmp_path / "bare")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    done = outside(*pip, "--no-build-isolation", str(source), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    program = str(python.with_name("gcnii"))
    assert outside(program, "--version", cwd=tmp_path).stdout == f"{gcnii.__version__}\n"
    small = ("--layers", "4", "--epochs", "10", "--out", "bundle")
    trained = outside(program, "train", "digits", *small, cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert "test accuracy" in trained.stdout
    where = outside(str(python), "-c", "import gcnii; print(gcnii.__file__)", cwd=tmp_path)
    assert where.stdout.startswith(str(tmp_path / "bare"))
