"""What a training gives, so that several processes can be held against one."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from gcnii import data
from gcnii.results.fit import Session, fit_plans
from gcnii.train.plan import make_plan


def graph_of(sparse=False, directed=False, multilabel=False, weighted=False, **about):
    """A small csbm graph; sparse features, one-way or weighted links, several labels a node."""
    graph = data.load("csbm", **about)
    rng = np.random.default_rng(0)
    if sparse:
        X = np.asarray(graph.X) * (rng.random(graph.X.shape) < 0.5)
        graph = replace(graph, X=sp.csr_array(X))
    if directed:
        keep = rng.random(graph.edges.shape[1]) < 0.7
        graph = replace(graph, edges=graph.edges[:, keep], directed=True)
    if multilabel:
        other = rng.integers(0, 2, (graph.n, 2))
        graph = replace(graph, y=np.stack([graph.y % 2, *other.T], 1), classes=None)
    if weighted:
        low, high = np.sort(graph.edges, 0)
        graph = replace(graph, weights=1 + (7 * low + 3 * high) % 11 / 10)
    return graph


def trained(graph, model, settings, world=None, seeds=(0,), **how):
    """The curve, the scores and the probabilities of a training in float64, as JSON has them."""
    plan = make_plan(model, {"precision": "float64"} | settings, graph)
    session = Session(world=world, **{"device": "cpu", "threads": 1} | how)
    result = fit_plans(graph, [plan], session, seeds=seeds, calibrate="temperature")
    shared = result.outputs.shared
    answers = result.outputs.scores[0].numpy() if shared else result.scores(graph, "cpu")
    used = np.any([mask for one in graph.splits for mask in vars(one).values()], 0)
    return {
        "curve": [list(run.curve) for run in result.runs],
        "test": [run.test for run in result.runs],
        "epochs": [run.epochs for run in result.runs],
        "temperature": [run.temperature for run in result.runs],
        "settings": plan.settings,
        "scores": (answers if shared else answers[used]).tolist(),
    }
