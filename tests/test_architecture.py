"""Data flows one way: each room may import only from the rooms before it."""

import ast
from pathlib import Path

import gcnii

ROOMS = [
    "errors",
    "files",
    "graph",
    "data",
    "kernels",
    "propagation",
    "dropout",
    "nn",
    "metrics",
    "train",
    "analysis",
    "paper",
    "cli",
]
ROOT = Path(gcnii.__file__).parent
FILES = [
    path for path in ROOT.rglob("*.py") if path.parent != ROOT or not path.stem.startswith("__")
]
LONGEST_FILE, LONGEST_FUNCTION = 300, 50  # lines of code


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "gcnii":
            yield from (alias.name for alias in node.names if alias.name in ROOMS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gcnii."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (
                alias.name.split(".")[1] for alias in node.names if alias.name.startswith("gcnii.")
            )


def test_rooms_import_only_from_earlier_rooms():
    for path in FILES:
        here = path.relative_to(ROOT).with_suffix("").parts[0]
        for there in imported_rooms(path):
            assert ROOMS.index(there) <= ROOMS.index(here), (
                f"{path.name}: {here} must not import {there}"
            )


def test_every_room_is_listed():
    found = {
        path.stem
        for path in ROOT.iterdir()
        if path.stem[0] not in "_." and (path.is_dir() or path.suffix == ".py")
    }
    assert found <= set(ROOMS), f"new room {found - set(ROOMS)}: decide its place in ROOMS"


def test_there_is_no_drawer():
    assert not {path.stem for path in FILES} & {"utils", "helpers", "common", "misc"}


def code_lines(node, text):
    lines = (
        text.splitlines()[node.lineno - 1 : node.end_lineno]
        if hasattr(node, "lineno")
        else text.splitlines()
    )
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("#"))


def test_files_and_functions_are_small():
    for path in FILES:
        text = path.read_text()
        tree = ast.parse(text)
        assert code_lines(tree, text) <= LONGEST_FILE, path
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                assert code_lines(node, text) <= LONGEST_FUNCTION, f"{path}: {node.name}"


def test_nothing_is_unpickled_but_by_the_restricted_reader():
    for path in FILES:
        text = path.read_text()
        assert "allow_pickle=True" not in text, path
        assert "torch.load(" not in text, path
        assert ("import pickle" in text) == (path.name == "unpickle.py"), path


def test_the_names_at_the_top_are_those_that_are_promised():
    for name in (
        "load",
        "fit",
        "open_bundle",
        "Graph",
        "Split",
        "Recipe",
        "Result",
        "watch",
        "nn",
        "data",
    ):
        assert getattr(gcnii, name) is not None
