"""What is installed is pinned: the releases in constraints.txt, the build backend in pyproject."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
PINNED = [line.partition("==")[0] for line in LINES if not line.startswith("#")]
CUDA = ("nvidia-", "cuda-")  # the libraries of other builds of torch


def needed(name, extras=(), found=None):
    """The names of all distributions that this one needs here, directly or not."""
    found = set() if found is None else found
    try:
        lines = requires(name) or []
    except PackageNotFoundError:  # not in this environment
        return found
    for one in map(Requirement, lines):
        if one.marker and not any(one.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            continue
        key = (canonicalize_name(one.name), *sorted(one.extras))
        if key not in found and not key[0].startswith(CUDA):
            found.add(key)
            needed(one.name, one.extras, found)
    return found


def test_every_distribution_that_is_needed_is_pinned():
    names = {name for name, *_ in needed("gcnii", ["dev"])} - {"gcnii"}
    assert len(names) > 50
    assert names <= set(PINNED)


def test_a_pin_is_a_name_and_a_release_that_any_registry_has():
    pins = [line for line in LINES if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line) for line in pins)
    assert pins == sorted(pins)
    assert len(set(PINNED)) == len(PINNED)


def test_the_build_backend_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert all("==" in one for one in project["build-system"]["requires"])
