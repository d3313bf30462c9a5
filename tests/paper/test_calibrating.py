"""The table of calibration in docs/evaluation.md."""

import json

import pytest

from gcnii.errors import InputError
from gcnii_paper.calibrating import calibration_table, read_calibrations

SETS = {"lac": {"coverage": 0.9, "size": 1.2}, "aps": {"coverage": 0.905, "size": 1.5}}


def measured(graph, after, sets=SETS):
    run = {"seed": 0, "split": 0, "temperature": 0.5, "before": 0.3, "after_20": 0.06}
    runs = [run | {"after": one} for one in after]
    about = {"settings": {"layers": 4}, "validation": 500, "coverage": 0.9, "redivisions": 100}
    return {"graph": graph, **about, "test_mean": 0.8, "sets": sets, "runs": runs, "command": "x"}


@pytest.fixture
def folder(tmp_path):
    def write(*documents):
        for one in documents:
            (tmp_path / f"{one['graph']}.json").write_text(json.dumps(one))
        return tmp_path

    return write


def test_a_row_holds_means_over_the_seeds(folder):
    table = calibration_table(read_calibrations(folder(measured("cora", [0.02, 0.04]))))
    assert "|cora|80.0|0.50|0.300|0.030|0.060|0.900|1.20|0.905|1.50|" in table
    assert "after calibration (met on all)" in table
    assert "asked for (met on all)" in table


def test_bars_that_are_missed_are_named(folder):
    low = {**SETS, "lac": {"coverage": 0.88, "size": 1.0}}
    found = read_calibrations(folder(measured("cora", [0.02]), measured("pubmed", [0.06], low)))
    table = calibration_table(found)
    assert "after calibration (missed on pubmed)" in table
    assert "asked for (missed on pubmed (LAC))" in table


def test_without_measurements_the_command_is_named(tmp_path):
    with pytest.raises(InputError, match=r"`python -m gcnii_paper.calibrating` makes it"):
        read_calibrations(tmp_path)
