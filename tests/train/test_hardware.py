"""What training sets in the process is taken back where others would stumble over it."""

import torch
from scipy.spatial import KDTree

from gcnii import data
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
