"""The floor is counted in the paper's symbols, from rates that are measured."""

import pytest
import torch

from gcnii_paper.bench import limits
from gcnii_paper.bench.limits import EpochWork, Rates, measure_rates

CORA = EpochWork(
    trained=2708, evaluated=2708, at_once=2708, entries=13_264, h=64, layers=64, replicas=1
)
SLOW_MEMORY = Rates(bandwidth=1e9, operations={"float32": 1e15, "bfloat16": 1e15}, cache=None)
SLOW_PRODUCTS = Rates(bandwidth=1e15, operations={"float32": 1e9}, cache=None)


def test_an_epoch_passes_13_times_over_n_by_h_numbers_of_every_layer():
    found = SLOW_MEMORY.floor(CORA, "float32")
    assert found.bytes == 13 * 2708 * 64 * 64 * 4
    assert (found.bound, found.seconds) == ("bytes", pytest.approx(found.bytes / 1e9))


def test_an_epoch_makes_5_products_of_2nh2_operations_in_every_layer():
    found = SLOW_PRODUCTS.floor(CORA, "float32")
    assert found.operations == 5 * 2 * 2708 * 64**2 * 64
    assert (found.bound, found.seconds) == ("operations", pytest.approx(found.operations / 1e9))


def test_half_as_many_bytes_a_number_take_half_the_time():
    assert (
        SLOW_MEMORY.floor(CORA, "bfloat16").seconds
        == SLOW_MEMORY.floor(CORA, "float32").seconds / 2
    )


def test_rows_are_fetched_for_every_entry_where_the_cache_is_too_small():
    small = Rates(1e9, {"float32": 1e15}, cache=2708 * 64 * 4 - 1)
    large = Rates(1e9, {"float32": 1e15}, cache=2708 * 64 * 4)
    assert large.floor(CORA, "float32") == SLOW_MEMORY.floor(CORA, "float32")
    more = small.floor(CORA, "float32").bytes - large.floor(CORA, "float32").bytes
    assert more == 3 * 13_264 * 64 * 64 * 4


def test_of_several_graphs_those_that_are_only_evaluated_count_3_passes_and_1_product():
    work = EpochWork(trained=100, evaluated=10, at_once=5, entries=0, h=8, layers=2, replicas=3)
    found = SLOW_MEMORY.floor(work, "float32")
    assert found.bytes == (10 * 100 + 3 * 10) * 8 * 2 * 3 * 4
    assert found.operations == (4 * 100 + 10) * 2 * 8**2 * 2 * 3


def test_of_two_measurements_the_faster_counts_rate_by_rate():
    one, other = Rates(1.0, {"float32": 4.0}, 5), Rates(2.0, {"float32": 3.0}, 5)
    assert one.or_faster(other) == other.or_faster(one) == Rates(2.0, {"float32": 4.0}, 5)


def test_the_rates_of_this_machine_are_finite_and_above_zero(monkeypatch):
    monkeypatch.setattr(limits, "COPIED", {"cpu": 1 << 20})
    monkeypatch.setattr(limits, "SIDE", {"cpu": 64})
    rates = measure_rates(torch.device("cpu"), ["float32", "float64"])
    assert list(rates.operations) == ["float32", "float64"]
    assert all(0 < rate < float("inf") for rate in (rates.bandwidth, *rates.operations.values()))
