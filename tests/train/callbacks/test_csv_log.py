"""CsvLog: the curves of all runs in a file, complete at any moment."""

import pytest

import gcnii
from gcnii import CsvLog, EpochReport, fit
from gcnii.errors import InputError, UsageError
from gcnii.train.callbacks.report import EpochMeasures

HEADER = "seed,epoch,train_loss,val_loss,val\n"
SMALL = {"layers": 2, "width": 8, "epochs": 5, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    return gcnii.load("csbm", n=60)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "logs" / "curves.csv"


def report(epoch=0, seeds=(0,)):
    measures = {seed: EpochMeasures(0.5, 0.25 + seed, 0.75) for seed in seeds}
    return EpochReport(epoch, 0, len(seeds), measures)


def test_rows_are_in_the_file_as_soon_as_they_are_reported(path):
    log = CsvLog(path)
    log(report(0, [3, 7]))
    assert path.read_text() == f"{HEADER}3,0,0.5,3.25,0.75\n7,0,0.5,7.25,0.75\n"
    log(report(1, [7]))
    assert path.read_text().endswith("7,1,0.5,7.25,0.75\n")
    log.close()


@pytest.mark.parametrize("batch", [1, 2])
def test_the_log_holds_what_the_bundles_curves_hold(batch, graph, path, tmp_path):
    log = CsvLog(path)
    result = fit(graph, seeds=range(2), batch=batch, callbacks=[log], **SMALL)
    bundle = result.save(tmp_path / "bundle")
    assert sorted(path.read_text().split()) == sorted((bundle / "curves.csv").read_text().split())
    assert log.file is None  # fit has closed it


def test_an_older_log_is_replaced_at_the_first_report_and_not_before(path):
    for epochs in (3, 1):
        log = CsvLog(path)
        for epoch in range(epochs):
            log(report(epoch))
        log.close()
    CsvLog(path).close()
    assert path.read_text() == f"{HEADER}0,0,0.5,0.25,0.75\n"


@pytest.mark.parametrize("text", ["id,label\n1,2\n", HEADER.replace("val\n", "val,more\n")])
def test_a_file_that_is_not_a_log_is_refused(text, tmp_path):
    path = tmp_path / "nodes.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r"nodes.csv was not written by CsvLog; choose another"):
        CsvLog(path)
    assert path.read_text() == text


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is not a file; give the log the name of a .csv file"):
        CsvLog(tmp_path)


def test_a_training_that_is_refused_leaves_no_log(graph, path):
    with pytest.raises(InputError):
        fit(graph, seeds=[-1], callbacks=[CsvLog(path)], **SMALL)
    assert not path.parent.exists()


def test_a_log_is_of_one_training(graph, path):
    log = CsvLog(path)
    fit(graph, callbacks=[log], **SMALL)
    before = path.read_text()
    with pytest.raises(UsageError, match=r"is complete; make a new CsvLog for each fit"):
        fit(graph, callbacks=[log], **SMALL)
    assert path.read_text() == before
