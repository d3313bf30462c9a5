"""What training sets in the process is taken back where others would stumble over it."""

import pytest
import torch
from scipy.spatial import KDTree

from gcnii import data, load
from gcnii.errors import InputError
from gcnii.train.fit import fit
from gcnii.train.hardware import tuned_cpu


def counts_denormals():
    return bool(torch.tensor(5e-324, dtype=torch.float64) * 1 > 0)


def test_denormal_numbers_are_zero_in_training_and_numbers_again_after_it():
    assert counts_denormals()
    with tuned_cpu():
        assert not counts_denormals()
    assert counts_denormals()


def test_after_a_fit_the_process_is_as_it_was():
    fit(data.load("csbm", n=60), layers=2, width=4, epochs=1, device="cpu")
    assert counts_denormals()
    KDTree(torch.zeros(500, 2).numpy()).count_neighbors(KDTree(torch.zeros(500, 2).numpy()), 1.0)


@pytest.mark.parametrize(
    ("n", "asked", "threads"), [(600, None, 1), (600, 2, 2), (1025, None, 3), (1025, 1, 1)]
)
def test_small_work_is_done_by_one_thread_unless_asked_otherwise(n, asked, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    graph, seen = load("csbm", n=n), []
    see = lambda report: seen.append(torch.get_num_threads())  # noqa: E731
    try:
        fit(graph, layers=1, width=64, epochs=1, device="cpu", threads=asked, callbacks=[see])
        assert (seen, torch.get_num_threads()) == ([threads], 3)
    finally:
        torch.set_num_threads(before)


def test_fewer_threads_than_one_are_refused():
    with pytest.raises(InputError, match="threads must be an integer ≥ 1, got 0"):
        fit(load("csbm", n=60), layers=1, width=4, epochs=1, device="cpu", threads=0)
