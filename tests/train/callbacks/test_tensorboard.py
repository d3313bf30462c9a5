"""TensorBoard: the curves of each run, as TensorBoard reads them."""

import sys

import pytest

import gcnii
from gcnii import TensorBoard, fit
from gcnii.errors import InputError, UsageError

SMALL = {"layers": 2, "width": 8, "epochs": 4, "device": "cpu"}


@pytest.fixture(scope="module")
def graph():
    return gcnii.load("csbm", n=60)


def curves(folder):
    """tag → [(epoch, value)] of a run, as TensorBoard shows them."""
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = accumulators.EventAccumulator(str(folder))
    run.Reload()
    return {
        tag: [(event.step, event.value) for event in run.Scalars(tag)]
        for tag in run.Tags()["scalars"]
    }


@pytest.mark.parametrize("batch", [1, 2])
def test_each_seed_is_a_run_with_three_curves(batch, graph, tmp_path):
    result = fit(graph, seeds=[2, 5], batch=batch, callbacks=[TensorBoard(tmp_path)], **SMALL)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seed-2", "seed-5"]
    for run in result.runs:
        found = curves(tmp_path / f"seed-{run.seed}")
        assert list(found) == ["train_loss", "val_loss", "val"]
        for i, points in enumerate(found.values()):
            assert [epoch for epoch, _ in points] == [0, 1, 2, 3]
            assert [value for _, value in points] == pytest.approx([now[i] for now in run.curve])


def test_each_of_several_settings_has_curves_of_its_own(graph, tmp_path):
    result = fit(graph, "gcnii", alpha=[0.1, 0.9], callbacks=[TensorBoard(tmp_path)], **SMALL)
    for run, name in zip(result.runs, ("seed-0", "setting-1/seed-0"), strict=True):
        points = [value for _, value in curves(tmp_path / name)["val_loss"]]
        assert points == pytest.approx([now[1] for now in run.curve])


def test_a_new_log_hides_the_older_one_in_its_folder(graph, tmp_path):
    fit(graph, callbacks=[TensorBoard(tmp_path)], **SMALL | {"epochs": 9})
    fit(graph, callbacks=[TensorBoard(tmp_path)], **SMALL)
    assert [epoch for epoch, _ in curves(tmp_path / "seed-0")["val"]] == [0, 1, 2, 3]


def test_without_tensorboard_the_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"pip install 'gcnii\[tensorboard\]', or use CsvLog"):
        TensorBoard(tmp_path)


def test_a_file_is_refused(tmp_path):
    (tmp_path / "logs").touch()
    with pytest.raises(InputError, match="logs is a file; give TensorBoard a folder"):
        TensorBoard(tmp_path / "logs")


def test_a_log_is_of_one_training(graph, tmp_path):
    log = TensorBoard(tmp_path)
    fit(graph, callbacks=[log], **SMALL)
    with pytest.raises(UsageError, match="is complete; make a new TensorBoard for each fit"):
        fit(graph, callbacks=[log], **SMALL)


def test_a_folder_that_cannot_be_is_refused_before_training(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for folder in (tmp_path / "loop", tmp_path / "loop" / "deeper", tmp_path / ("x" * 500)):
        with pytest.raises(InputError, match="cannot be read or written: "):
            TensorBoard(folder)
