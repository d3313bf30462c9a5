"""One deep training foretells shallower ones, and its error is measured."""

import numpy as np
import pytest

from gcnii import fit
from gcnii.analysis.filters.depth_forecast import Forecast, compare_depths, forecast
from gcnii.data.generators import csbm


def flat(*val, nodes=100):
    return Forecast(val, val, nodes)


def test_the_fewest_layers_within_one_standard_error_of_the_best_are_recommended():
    # At 0.8 on 100 nodes the standard error is 0.04: 0.75 is outside of it, 0.77 is within.
    assert flat(0.5, 0.75, 0.77, 0.78, 0.8).recommended == 2
    assert flat(0.5, 0.75, 0.77, 0.78, 0.8, nodes=10_000).recommended == 4


def test_where_layers_do_harm_none_are_recommended():
    found = flat(0.9, 0.8, 0.8)
    assert found.recommended == found.best == 0
    assert compare_depths(found, {1: 0.8, 2: 0.7}).regret == 0


def test_a_score_moved_above_1_still_has_an_error_of_0():
    assert flat(0.5, 1.0, 1.02).recommended == 1


def test_layers_that_the_network_itself_still_needs_are_recommended_too():
    probes = (0.5, 0.8, 0.8, 0.8)
    assert Forecast(probes, probes, 100, stopped=(0.1, 0.3, 0.79, 0.8)).recommended == 2
    assert Forecast(probes, probes, 100, stopped=(0.1, 0.3, 0.3, 0.8)).recommended == 3


def test_where_the_two_curves_never_agree_all_layers_stay():
    probes = (0.8, 0.5, 0.5)
    assert Forecast(probes, probes, 100, stopped=(0.1, 0.8, 0.5)).recommended == 2


def test_a_comparison_tells_both_curves_and_what_the_advice_costs():
    found = compare_depths(flat(0.5, 0.6, 0.7, 0.7, 0.7), {1: 0.6, 2: 0.8, 4: 0.9})
    assert (found.depths, found.foretold, found.true) == (
        (1, 2, 4),
        (0.6, 0.7, 0.7),
        (0.6, 0.8, 0.9),
    )
    assert found.error == pytest.approx(0.1)
    assert found.recommended == 2
    assert found.regret == pytest.approx(0.1)
    assert found.order == pytest.approx(0.866, abs=1e-3)


def test_between_two_trained_depths_the_cost_is_interpolated():
    found = compare_depths(flat(0.5, 0.6, 0.7, 0.9, 0.9, nodes=10_000), {2: 0.7, 4: 0.9})
    assert found.recommended == 3
    assert found.regret == pytest.approx(0.2 * (1 - np.log2(1.5)))


def test_a_sweep_may_not_go_deeper_than_the_forecast():
    with pytest.raises(ValueError, match="ends at 2 layers, got a sweep up to 8"):
        compare_depths(flat(0.1, 0.2, 0.3), {2: 0.3, 8: 0.4})


def test_curves_without_a_slope_have_no_order():
    assert np.isnan(compare_depths(flat(0.5, 0.5, 0.5), {1: 0.4, 2: 0.6}).order)


@pytest.fixture(scope="module")
def graph():
    """Features say little about the class, and neighbours much: depth is needed."""
    return csbm.read(n=300, degree=8, homophily=0.9, signal=1.0, features=8)


@pytest.mark.long
def test_a_forecast_ends_at_the_score_of_the_network_itself(graph):
    result = fit(graph, "gcnii", layers=6, width=16, epochs=40, seeds=[0], device="cpu")
    found = forecast(graph, result)
    assert len(found.val) == len(found.test) == 7
    assert found.val[-1] == pytest.approx(result.val[0])
    assert found.test[-1] == pytest.approx(result.test[0])
    assert found.nodes == 90
    assert len(found.stopped) == 7
    assert found.stopped[-1] == pytest.approx(result.val[0])


def test_a_model_of_another_skeleton_is_foretold_by_probes_alone(graph):
    found = forecast(graph, fit(graph, "sgc", layers=3, epochs=5, seeds=[0], device="cpu"))
    assert (len(found.val), found.stopped) == (4, ())


def test_where_neighbours_tell_the_class_layers_are_foretold_to_help(graph):
    result = fit(graph, "gcnii", layers=6, width=16, epochs=40, seeds=[0], device="cpu")
    found = forecast(graph, result)
    assert found.test[0] + 0.1 < found.test[4]


def test_where_links_say_nothing_no_layers_are_recommended():
    mixed = csbm.read(n=300, degree=8, homophily=0.5, signal=4.0, features=8)
    result = fit(mixed, "gcnii", layers=6, width=16, epochs=40, seeds=[0], device="cpu")
    assert forecast(mixed, result).recommended == 0


def test_a_model_without_layers_has_no_depth(graph):
    with pytest.raises(ValueError, match="mlp has no layers to choose from"):
        forecast(graph, fit(graph, "mlp", epochs=2, seeds=[0], device="cpu"))
