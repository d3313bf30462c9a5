"""Trainings that several tests share, each done once."""

import os
from unittest import mock

import pytest
from support.command_line import BUNDLE, SMALL, call, write_pets


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A folder to work in, with the graph `pets` in it."""
    folder = tmp_path_factory.mktemp("home")
    write_pets(folder / "pets")
    return folder


@pytest.fixture(scope="session")
def trained_json(home):
    """The answer of `gcnii train --json` with two runs on digits."""
    return call("train", *SMALL, "--runs", 2, "--json", cwd=home)


@pytest.fixture(scope="session")
def trained(home):
    """The answer of `gcnii train pets` in a terminal that is too narrow."""
    with mock.patch.dict(os.environ, COLUMNS="20"):
        return call("train", "pets", *SMALL, "--out", BUNDLE, cwd=home)


@pytest.fixture(scope="session")
def bundle(home, trained):
    """The bundle that `trained` wrote."""
    assert trained.code == 0, trained.err
    return home / BUNDLE
