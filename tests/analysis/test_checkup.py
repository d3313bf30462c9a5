"""A checkup: one model at one depth, before and after a short training."""

from unittest import mock

import pytest
from support import knobs

from gcnii.analysis import Doctor, checkup
from gcnii.data import load
from gcnii.results import fit


@pytest.fixture(scope="module", autouse=True)
def short():
    """Trainings of two epochs."""
    with mock.patch(knobs.EXAMINED_EPOCHS, 2):
        yield


@pytest.fixture(scope="module")
def doctor():
    return Doctor(load("csbm", n=60, labels_per_class=5), device="cpu")


def test_a_plan_is_made_once_per_training(doctor):
    with (
        mock.patch.object(fit, "make_plans", side_effect=AssertionError("planned again")),
        mock.patch.object(checkup, "make_plan", wraps=checkup.make_plan) as planned,
    ):
        found = doctor.check("gcn", 2)
    assert planned.call_count == 1
    assert found.result.plan.settings == found.settings


def test_an_interrupted_training_ends_the_checkup(doctor):
    stopped = mock.Mock(interrupted=True)
    with (
        mock.patch(knobs.EXAMINED_FIT, return_value=stopped),
        pytest.raises(KeyboardInterrupt),
    ):
        doctor.check("gcn", 2)
