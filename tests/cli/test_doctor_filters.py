"""gcnii doctor --filter."""

import json
from unittest import mock

import numpy as np
import pytest
from support import knobs
from support.command_line import call, files

import gcnii
from gcnii.analysis.filters import refuse_filters
from gcnii.errors import InputError
from gcnii.train.plan import make_plan

QUICK = ("--depths", "4,2", "--device", "cpu", "--trials", "0")


@pytest.fixture(scope="module", autouse=True)
def short():
    """Train for three epochs only."""
    with mock.patch(knobs.EXAMINED_EPOCHS, 3):
        yield


def test_filters_are_printed_for_the_deepest_network_of_each_model(home):
    answer = call("doctor", "pets", "--model", "gcn,gcnii", *QUICK, "--filter", cwd=home)
    assert answer.code == 0, answer.err
    assert "(1-λ)^4:" in answer.out
    assert "Influence by hop" in answer.out


@pytest.mark.long
def test_json_and_figures_hold_filters(home):
    flags = ("--filter", "--json", "--out", "pictures")
    answer = call("doctor", "pets", "--model", "gcnii", *QUICK, *flags, cwd=home)
    document = json.loads(answer.out)
    assert {"frequency", "gain", "error", "share", "purity"} == set(document["filter"]["gcnii"])
    assert sum(document["influence"]["gcnii"]["share"]) == pytest.approx(1)
    assert {"filter.svg", "filter.png", "influence.svg"} <= set(files(home / "pictures"))


def test_without_the_flag_the_document_has_none(home):
    document = json.loads(
        call("doctor", "pets", "--model", "gcnii", *QUICK, "--json", cwd=home).out
    )
    assert not {"filter", "influence"} & set(document)


def test_a_model_without_frequencies_is_refused_before_training():
    graph = gcnii.Graph(X=np.eye(3), edges=[[0, 1], [1, 2]], directed=True, name="pets")
    with pytest.raises(InputError) as error:
        refuse_filters(graph, [make_plan("gcnii", {"direction": "out"}, graph)])
    assert "gcnii's P̃ on pets is not symmetric" in str(error.value)
    assert "leave out the filter (--filter)" in str(error.value)
