"""The room's public names, and the order of the rooms within it."""

import subprocess
import sys
from pathlib import Path

import pytest

import gcnii
from gcnii import analysis
from gcnii_paper import theory

ROOT = Path(analysis.__file__).parent


def test_there_is_one_watch():
    assert gcnii.watch is analysis.watch
    assert isinstance(gcnii.watch(gcnii.nn.GCN(5, 3)), analysis.Watch)


@pytest.mark.parametrize("name", ["Doctor", "by_degree", "influence", "response"])
def test_what_a_user_needs_is_exported_and_documented(name):
    assert getattr(analysis, name).__doc__


def test_the_name_of_sampled_values_before_is_found_for_now():
    with pytest.warns(DeprecationWarning, match=r"use gcnii\.analysis\.SampledValue$"):
        assert analysis.Estimate is analysis.SampledValue


@pytest.mark.parametrize("name", ["Study", "karate_club"])
def test_the_theorems_have_moved_to_the_study_and_are_found_there_for_now(name):
    with pytest.warns(DeprecationWarning, match=f"use gcnii_paper.theory.{name}$"):
        assert getattr(analysis, name) is getattr(theory, name)


def test_it_is_imported_where_optuna_is_not_installed():
    rooms = "gcnii.analysis, gcnii.analysis.report"
    code = f"import sys; sys.modules['optuna'] = None; import {rooms}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_not_there_is_not_found():
    with pytest.raises(AttributeError, match="analysis has no 'forecast'"):
        _ = analysis.forecast


@pytest.mark.parametrize("name", ["states", "smoothing", "checkup", "filters"])
def test_what_measures_does_not_import_what_draws(name):
    assert "analysis.report" not in (ROOT / f"{name}.py").read_text("utf-8")
