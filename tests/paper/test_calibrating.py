"""The table of calibration in docs/evidence/answers.md."""

import json

import pytest

import gcnii
from gcnii.errors import InputError
from gcnii_paper.calibrating import calibration_table, covered

LAC = {"coverage": 0.9, "size": 1.2}


def sets(lac):
    """Of two runs, which differ."""
    aps = {"coverage": 0.905, "size": 1.5}
    other = {"coverage": lac["coverage"] + 0.01, "size": lac["size"]}
    return [{"lac": lac, "aps": aps}, {"lac": other, "aps": aps}]


def measured(graph, after, lac=LAC):
    run = {"seed": 0, "split": 0, "temperature": 0.5, "before": 0.3, "after_20": 0.06}
    runs = [run | {"after": one} | two for one, two in zip(after, sets(lac), strict=True)]
    about = {"settings": {"layers": 4}, "validation": 500, "coverage": 0.9}
    return {"graph": graph, **about, "test_mean": 0.8, "runs": runs, "command": "x"}


@pytest.fixture
def folder(tmp_path):
    def write(*documents):
        for one in documents:
            (tmp_path / f"{one['graph']}.json").write_text(json.dumps(one))
        return tmp_path

    return write


def test_a_row_holds_means_over_the_seeds(folder):
    table = calibration_table(folder(measured("cora", [0.02, 0.04])))
    assert "|cora|80.0|0.50|0.300|0.030|0.060|0.905 ± 0.007|1.20|0.905 ± 0.000|1.50|" in table
    assert "after calibration (met on all)" in table
    assert "asked for (met on all)" in table


def test_bars_that_are_missed_are_named(folder):
    low = {"coverage": 0.88, "size": 1.0}
    found = [measured("cora", [0.02, 0.03]), measured("pubmed", [0.06, 0.07], low)]
    table = calibration_table(folder(*found))
    assert "after calibration (missed on pubmed)" in table
    assert "asked for (missed on pubmed (LAC))" in table


def test_sets_are_measured_as_predict_sets_gives_them():
    graph = gcnii.load("csbm", n=300)
    result = gcnii.fit(graph, "gcn", layers=2, epochs=5, device="cpu")
    split = graph.splits[0]
    found = covered(result, graph, split, "lac")
    inside = result.predict_sets(graph, 0.9)[split.test]
    assert found["coverage"] == inside[range(len(inside)), graph.labels[split.test]].mean()
    assert found["size"] == inside.sum(1).mean()


def test_without_measurements_the_command_is_named(tmp_path):
    with pytest.raises(InputError, match=r"`python -m gcnii_paper.calibrating` makes it"):
        calibration_table(tmp_path)
