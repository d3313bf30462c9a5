"""Settings: which values are allowed, and what is made of them."""

from math import inf, nan

import numpy as np
import pytest

from gcnii.errors import InputError
from gcnii.nn.settings import whole
from gcnii.train.plan import make_plan
from gcnii.train.recipe import Recipe


@pytest.mark.parametrize("value", [1.5, nan, inf, -inf, 0, True, "3", None, [3]])
@pytest.mark.parametrize("name", ["epochs", "patience"])
def test_only_an_integer_counts_epochs(name, value):
    with pytest.raises(InputError, match=rf"^{name} must be an integer ≥ 1, got "):
        make_plan("gcnii", {name: value})


@pytest.mark.parametrize("value", [nan, inf, True, "0.1", 1j, 10**400])
def test_only_a_finite_number_is_a_step_size(value):
    with pytest.raises(InputError, match=r"^lr must be a number > 0, got "):
        Recipe(lr=value)


@pytest.mark.parametrize("power", [10, 20, 400])
def test_an_integer_that_no_tensor_can_hold_is_refused(power):
    with pytest.raises(InputError, match=r"^epochs must be an integer ≤ 2,147,483,647, got 10+$"):
        Recipe(epochs=10**power)


@pytest.mark.parametrize(
    ("name", "given", "plain"),
    [
        ("layers", np.int64(4), 4),
        ("layers", 4.0, 4),
        ("epochs", np.float64(9), 9),
        ("lr", np.float32(0.5), 0.5),
        ("lr", 1, 1),  # a key says 1, as it did
        ("fanout", np.array([3, 4]), [3, 4]),
        ("fanout", [3, 4.0], [3, 4]),
    ],
)
def test_numbers_of_numpy_become_such_as_json_can_hold(name, given, plain):
    value = make_plan("gcnii", {name: given}).settings[name]
    assert (value, type(value)) == (plain, type(plain))


def test_the_step_size_cannot_fall_to_a_floor_above_it():
    with pytest.raises(
        InputError, match=r"^plateau_floor must be at most lr, .* got 1 with lr 0\.1"
    ):
        Recipe(lr=0.1, plateau=5, plateau_floor=1.0)
    assert Recipe(lr=0.1, plateau=5, plateau_floor=0.1).plateau_floor == 0.1
    assert Recipe(lr=0.1, plateau_floor=1.0).plateau_floor == 1.0  # not in use


def test_a_count_is_an_integer_or_not_given():
    assert (whole("batch", None, 1), whole("batch", np.int32(2), 1)) == (None, 2)
    with pytest.raises(InputError, match=r"^batch must be an integer ≥ 1, got -1$"):
        whole("batch", -1, 1)
