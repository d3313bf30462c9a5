"""Data flows one way: each room may import only from the rooms before it."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import gcnii
import gcnii_paper

ROOMS = [
    "errors",
    "files",
    "memory",
    "report",
    "graph",
    "data",
    "kernels",
    "propagation",
    "dropout",
    "nn",
    "targets",
    "members",
    "train",
    "results",
    "parallel",
    "cost",
    "tuning",
    "analysis",
    "inference",
    "mlflow",
    "serving",
    "estimator",
    "cli",
]
# The study of the paper uses the library; its commands are registered in one place.
STUDY = Path(gcnii_paper.__file__).parent
REGISTERED = "cli/__init__.py"
# Trained has methods, and fit a portfolio, that a later room implements; it is imported when they
# are called.
FACADE = {("results/trained.py", "inference"), ("results/fit.py", "tuning")}
ROOT = Path(gcnii.__file__).parent
TESTS = Path(__file__).parent
LIBRARY = [
    path for path in ROOT.rglob("*.py") if path.parent != ROOT or not path.stem.startswith("__")
]
FILES = [*LIBRARY, *STUDY.rglob("*.py")]
LONGEST_FUNCTION = 50  # lines of code
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
BUILT_IN = {"ValueError", "RuntimeError", "TypeError", "ChildProcessError", "Exception"}
MOST_ANY = 120  # lines with Any


@cache
def nodes(path):
    return list(ast.walk(ast.parse(path.read_text())))


def imported_rooms(path):
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module == "gcnii":
            yield from (alias.name for alias in node.names if alias.name in ROOMS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gcnii."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
            yield from (name.split(".")[1] for name in names if name.startswith("gcnii."))


def test_rooms_import_only_from_earlier_rooms():
    for path in LIBRARY:
        here = path.relative_to(ROOT).with_suffix("").parts[0]
        allowed = {there for name, there in FACADE if path == ROOT / name}
        for there in set(imported_rooms(path)) - allowed:
            assert ROOMS.index(there) <= ROOMS.index(here), f"{path}: {here} imports {there}"


def imports_of(path):
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_library_knows_of_the_study_where_its_commands_are_registered_and_nowhere_else():
    found = {
        (str(path.relative_to(ROOT)), name)
        for path in ROOT.rglob("*.py")
        for name in imports_of(path)
        if name.startswith("gcnii_paper")
    }
    assert found == {(REGISTERED, "gcnii_paper.cli")}


def entries(folder):
    return [path for path in folder.iterdir() if path.stem[0] not in "_."]


def test_every_room_is_listed():
    found = {path.stem for path in entries(ROOT) if path.is_dir() or path.suffix == ".py"}
    assert found == set(ROOMS), f"{found ^ set(ROOMS)}: decide its place in ROOMS"


def test_there_is_no_drawer():
    assert not {path.stem for path in FILES} & {"utils", "helpers", "common", "misc"}


def code_lines(node, text):
    """Lines that are neither empty, nor a comment, nor of a docstring."""
    lines = text.splitlines()
    for inner in ast.walk(node):
        if isinstance(inner, DOCUMENTED) and ast.get_docstring(inner) is not None:
            first, last = inner.body[0].lineno, inner.body[0].end_lineno
            lines[first - 1 : last] = [""] * (last - first + 1)
    lines = lines[node.lineno - 1 : node.end_lineno] if hasattr(node, "lineno") else lines
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("#"))


def test_functions_are_small():
    for path in FILES:
        text = path.read_text()
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                assert code_lines(node, text) <= LONGEST_FUNCTION, f"{path}: {node.name}"


def test_types_are_said():
    lines = [line for path in FILES for line in path.read_text().splitlines()]
    found = [line for line in lines if re.search(r"\bAny\b", line) and "import" not in line]
    assert len(found) < MOST_ANY


def test_nothing_is_unpickled_but_by_the_restricted_reader():
    for path in FILES:
        text = path.read_text()
        assert "allow_pickle=True" not in text, path
        assert "torch.load(" not in text, path
        assert ("import pickle" in text) == (path.name == "benchmarks.py"), path


@pytest.mark.parametrize("name", dir(gcnii))
def test_every_public_name_is_there_and_documented(name):
    assert getattr(gcnii, name).__doc__ or name.startswith("__")


def test_type_checkers_see_the_public_names():
    typed = {}
    for node in ast.walk(ast.parse(Path(gcnii.__file__).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "gcnii":
            typed |= {one.asname: f"{node.module}.{one.name}" for one in node.names}
    there = {name: f"gcnii.{home}.{name}" for name, home in gcnii._HOME.items()}
    assert typed == there | {name: f"gcnii.{name}" for name in gcnii._PACKAGES}
    assert set(dir(gcnii)) == {*typed, "__version__"}


def test_every_error_has_one_base_class():
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                assert ast.unparse(node.exc.func) not in BUILT_IN, path


# What takes longer to import than a small training, or is for some commands alone.
HEAVY = (
    *("IPython", "lightgbm", "matplotlib", "narwhals", "networkx", "optuna", "pandas", "polars"),
    *("pyarrow", "scipy.optimize", "scipy.sparse.csgraph", "scipy.stats", "sklearn", "tensorboard"),
    "torch._dynamo",
)
FIT = """
import gcnii
gcnii.fit(gcnii.load("digits"), layers=2, width=4, epochs=2, device="cpu")
"""
TRAIN = """
import sys, gcnii.cli
words = "train digits --layers 2 --width 4 --epochs 2 --device cpu --out OUT"
sys.argv = ["gcnii", *words.split()]
gcnii.cli.main()
"""


def imported(code, of, folder):
    """The modules of these packages that the code imports."""
    tell = f"{code}\nimport sys\nprint(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", tell]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    modules = done.stderr.split("\n")[-2].split()
    return [name for name in modules if name.startswith(tuple(of))]


def test_importing_gcnii_imports_nothing_that_takes_time(tmp_path):
    assert imported("import gcnii", ("numpy", "scipy", "torch", *HEAVY), tmp_path) == []


@pytest.mark.slow
def test_a_first_training_imports_torch_and_nothing_else_that_takes_time(tmp_path):
    rooms = ("gcnii_paper", "gcnii.cli", "gcnii.analysis", "gcnii.inference")
    assert imported(FIT, (*rooms, *HEAVY), tmp_path) == []
    rooms = ("gcnii_paper.", "gcnii.analysis", "gcnii.inference")
    allowed = ["gcnii_paper.cli"]  # which registers its commands
    assert imported(TRAIN, (*rooms, *HEAVY), tmp_path) == allowed


def test_no_test_imports_another_and_names_are_readable():
    for path in TESTS.rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").split(".")[-1].startswith("test_"), path
            if isinstance(node, ast.FunctionDef):
                assert len(node.name) <= 90, f"{path}: {node.name}"


def said(path):
    """The sentences of errors and warnings in a file."""
    for node in nodes(path):
        if isinstance(node, ast.Raise) and node.exc:
            yield ast.unparse(node.exc)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("notice", "add")):
            yield ast.unparse(node)


def test_an_error_in_python_does_not_speak_of_flags_alone():
    rooms = [path for path in FILES if not {"cli", "paper"} & set(path.parts)]
    alone = [
        sentence
        for path in rooms
        for sentence in said(path)
        if re.search(r"--[a-z]+", re.sub(r"\([^()]*--.*?\)", "", sentence))  # not in brackets
        and not re.search("in Python|gcnii data pack", sentence)
    ]
    assert alone == []
