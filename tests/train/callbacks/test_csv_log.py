"""CsvLog: the curves of all runs in a file, complete at any moment."""

import resource

import pytest

import gcnii
from gcnii import CsvLog, EpochReport, fit
from gcnii.errors import InputError, UsageError
from gcnii.train.callbacks import EpochMeasures

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
    assert log.files == {}  # fit has closed it


@pytest.mark.parametrize("batch", [1, 2])
def test_each_of_several_settings_has_a_file_of_its_own(batch, graph, path):
    result = fit(graph, "gcnii", alpha=[0.1, 0.9], batch=batch, callbacks=[CsvLog(path)], **SMALL)
    for run, name in zip(result.runs, ("curves.csv", "curves-setting-1.csv"), strict=True):
        (*_, last) = path.with_name(name).read_text().split()
        assert last == ",".join(map(str, (0, 4, *run.curve[-1])))


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
    with pytest.raises(InputError, match=r"nodes.csv exists and gcnii did not write it; choose"):
        CsvLog(path)(report())
    assert path.read_text() == text
    log = CsvLog(path, overwrite=True)
    log(report())
    log.close()
    assert path.read_text().startswith(HEADER)


def test_a_file_that_comes_after_the_log_was_made_is_not_replaced(graph, path):
    log = CsvLog(path)
    path.parent.mkdir()
    path.write_text("id,label\n")
    with pytest.raises(InputError, match=r"curves.csv exists and gcnii did not write it"):
        fit(graph, callbacks=[log], **SMALL)
    assert path.read_text() == "id,label\n"


def test_the_curves_of_a_bundle_are_not_replaced_even_if_asked(graph, tmp_path):
    bundle = fit(graph, **SMALL).save(tmp_path / "bundle")
    before = (bundle / "curves.csv").read_bytes()
    with pytest.raises(
        InputError, match=r"curves.csv is a file of a bundle, so it is not replaced"
    ):
        CsvLog(bundle / "curves.csv", overwrite=True)(report())
    assert (bundle / "curves.csv").read_bytes() == before


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is not a regular file; choose another name"):
        CsvLog(tmp_path)(report())


@pytest.mark.parametrize("name", ["file/log.csv", "a\x00b.csv", f"{'x' * 300}.csv"])
@pytest.mark.parametrize("kind", [CsvLog, gcnii.TensorBoard])
def test_a_log_that_cannot_be_written_is_one_sentence(kind, name, graph, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be (read or )?written"):
        fit(graph, callbacks=[kind(tmp_path / name)], **SMALL)


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


def test_a_full_disk_names_the_log(path):
    log = CsvLog(path)
    log(report(0))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            log(report(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.filename == str(path)
    log.close()


@pytest.mark.parametrize("log", [gcnii.CsvLog, gcnii.TensorBoard])
@pytest.mark.parametrize("given", [3, b"x.csv", []])
def test_a_log_needs_a_path(log, given):
    with pytest.raises(InputError, match="expected the path of a file or folder"):
        log(given)
