"""Best epoch, patience and step size in tensors: the same as the rules in plain Python, for each
replica by itself.
"""

from math import nan
from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stopping_oracle import CPU, Oracle, numbers, update

from gcnii.train.recipe import Recipe
from gcnii.train.stopping import Measures, Monitor, Numbers, Run, StoppingState

# Few different values, so that there are ties; in float32, whose sums are exact in float64 in
# whatever order.
LOSSES = st.sampled_from([0.25, 0.5, 0.75, 1.0, 1.5]) | st.floats(0, 8, width=32)
SCORES = st.sampled_from([0.25, 0.5, 0.75, nan])
MEASURES = st.builds(Measures, LOSSES, LOSSES, SCORES, SCORES)
RECIPES = st.builds(
    Recipe,
    epochs=st.integers(1, 30),
    longest=st.integers(0, 40),
    patience=st.integers(1, 8),
    monitor=st.sampled_from(get_args(Monitor)),
    window=st.integers(0, 3),
    window_from=st.integers(0, 5),
    plateau=st.integers(0, 2),
    plateau_factor=st.sampled_from([0.3, 0.5]),
    plateau_floor=st.sampled_from([0.0, 0.004]),
)


def same(run, other):
    """Whether they agree to the bit; NaN is NaN."""
    return all(
        torch.equal(
            *(torch.tensor([float(vars(one)[name])]).nan_to_num(-1) for one in (run, other))
        )
        for name in Numbers._fields
    )


@given(
    RECIPES,
    st.integers(1, 3).flatmap(
        lambda r: st.lists(st.lists(MEASURES, min_size=r, max_size=r), min_size=1)
    ),
)
@settings(max_examples=100, deadline=None)
def test_the_tensors_agree_with_the_rules_in_plain_python(recipe, epochs):
    replicas = len(epochs[0])
    state, oracles = (
        StoppingState([recipe] * replicas, [Run(0)] * replicas, CPU, 1),
        [Oracle(recipe) for _ in range(replicas)],
    )
    for epoch in epochs:
        assert update(state, epoch) == [
            oracle.take(now) for oracle, now in zip(oracles, epoch, strict=True)
        ]
        found = numbers(state, [Run(0) for _ in range(replicas)])
        assert all(same(run, oracle.run) for run, oracle in zip(found, oracles, strict=True))


@given(RECIPES, st.lists(MEASURES, min_size=2, max_size=20), st.data())
@settings(max_examples=100, deadline=None)
def test_a_state_made_from_a_runs_record_goes_on_as_the_old_one(recipe, epochs, data):
    cut = data.draw(st.integers(1, len(epochs) - 1))
    whole, run = StoppingState([recipe], [Run(0)], CPU, 1), Run(0)
    for now in epochs[:cut]:
        update(whole, [now])
    numbers(whole, [run])
    run.curve = [now[:3] for now in epochs[:cut]]
    again = StoppingState([recipe], [run], CPU, 4)
    for now in epochs[cut:]:
        assert update(again, [now]) == update(whole, [now])
    assert same(*(numbers(state, [Run(0)])[0] for state in (whole, again)))


def test_narrowing_keeps_the_numbers_of_those_who_stay():
    recipe = Recipe(window=2, patience=9)
    whole = StoppingState([recipe] * 3, [Run(seed) for seed in range(3)], CPU, 1)
    part = StoppingState([recipe] * 3, [Run(seed) for seed in range(3)], CPU, 1)
    epoch = [Measures(1.0, loss, 0.5, 0.5) for loss in (1.0, 2.0, 3.0)]
    for _ in range(2):
        update(whole, epoch), update(part, epoch)
    part.narrow(torch.tensor([0, 2]))
    worse = [now._replace(val_loss=now.val_loss + 1) for now in epoch]
    update(whole, worse), update(part, [worse[0], worse[2]])
    assert torch.equal(whole.table[:, [0, 2]], part.table)
    assert part.table[-1].tolist() == [1, 1]


@pytest.mark.parametrize("window", [0, 5])
def test_a_look_gives_the_last_epochs_in_their_order(window):
    state = StoppingState([Recipe(window=window)] * 2, [Run(0), Run(1)], CPU, 3)
    for epoch in range(7):
        update(
            state, [Measures(epoch, 10 + epoch, 0.1, 0.2), Measures(epoch, 20 + epoch, 0.3, nan)]
        )
    measures, _ = state.fetch(2)
    assert [[now.val_loss for now in each] for each in measures] == [[15, 25], [16, 26]]
    assert [[now.train_loss for now in each] for each in measures] == [[5, 5], [6, 6]]
