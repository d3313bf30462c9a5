"""Tests of every model: the fast ones train one model of each kind, and `make slow` all others."""

import pytest

from gcnii.nn import MODELS

EACH_KIND = (
    "gcnii",  # layers of one loop, fused on a GPU
    "gcnii-plus",  # two branches, and a gate
    "gcn",  # layers one by one
    "appnp",  # no weights between hops
    "gat",  # weights of links from scores
    "geom-gcn-i",  # several matrices, by relation
    "graphsage-mean",  # drawn neighbours
    "cluster-gcn",  # drawn clusters
    "jknet-lstm",  # all layers read by an LSTM
)


def of_each_kind(argument, models=MODELS, others=pytest.mark.slow):
    """Parametrize a test by models; all but `EACH_KIND` are marked, as slow or as told."""
    return pytest.mark.parametrize(
        argument,
        [name if name in EACH_KIND else pytest.param(name, marks=others) for name in models],
    )
