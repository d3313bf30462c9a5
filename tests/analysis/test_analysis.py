"""The room's public names, and the order of the rooms within it."""

from pathlib import Path

import pytest

import gcnii
from gcnii import analysis

ROOT = Path(analysis.__file__).parent


def test_there_is_one_watch():
    assert gcnii.watch is analysis.watch
    assert isinstance(gcnii.watch(gcnii.nn.GCN(5, 3)), analysis.Watch)


@pytest.mark.parametrize(
    "name", ["Doctor", "Study", "by_degree", "forecast", "influence", "response"]
)
def test_what_a_user_needs_is_exported_and_documented(name):
    assert getattr(analysis, name).__doc__


@pytest.mark.parametrize("room", ["filters", "layers", "theory"])
def test_what_measures_does_not_import_what_draws(room):
    files = list((ROOT / room).glob("*.py"))
    assert files
    assert not [path.name for path in files if "analysis.report" in path.read_text("utf-8")]
