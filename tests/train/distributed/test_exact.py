"""Several processes give the curves, scores and temperatures of one."""

import json

import numpy as np
import pytest
from support.processes import TESTS, torchrun
from support.together import graph_of, trained

from gcnii.nn import MODELS

SMALL = {"layers": 3, "width": 8, "epochs": 30, "patience": 30}
ABLE = [name for name, model in MODELS.items() if model.can_be_cut]
OWN = {
    "mlp": {"layers": None},
    "sgc": {"width": None},
    "gcnii-plus": {
        "product_first": True,
        "row_norm": "layer",
        "head": "features",
        "residual": True,
    },
}
CASES = {
    "odd width, sparse features": ("gcnii", {"sparse": True}, {"width": 7}),
    "one-way links": ("gcnii", {"directed": True}, {"direction": "out"}),
    "recomputed": ("gcnii-star", {}, {"memory": "recompute", "layers": 6}),
    "DropEdge": ("gcnii", {}, {"drop_edge": 0.4}),
    "DropEdge of pairs": ("gcn", {"directed": True}, {"drop_edge": 0.4, "drop_form": "pairs"}),
    "views": (
        "gcnii",
        {"sparse": True},
        {"views": 2, "drop_node": 0.3, "consistency": 1.0, "drop_edge": 0.2},
    ),
    "macro-F1 and weights of classes": (
        "gcnii",
        {},
        {"monitor": "val_f1", "class_weight": "balanced"},
    ),
    "ranking": ("gcnii", {}, {"monitor": "val_auc", "patience": 5}),
    "several labels": ("gcnii", {"multilabel": True}, {"label_threshold": "validation"}),
    "patience": ("gcnii", {}, {"epochs": 200, "patience": 3, "lr": 0.1}),
    "a plateau": ("appnp", {}, {"plateau": 2, "lr": 0.1}),
    "links of a diffusion": ("gcnii", {}, {"diffusion": "ppr", "top_k": 4}),
}


def plan_of(model, graph=None, settings=None):
    chosen = SMALL | OWN.get(model, {}) | (settings or {})
    settings = {name: value for name, value in chosen.items() if value is not None}
    return {"graph": {"n": 60} | (graph or {}), "model": model, "settings": settings}


PLANS = {name: plan_of(name) for name in ABLE} | {
    name: plan_of(*case) for name, case in CASES.items()
}
# Four processes on two cores wait more than they compute.
IN_FOUR = ("gcnii", "gcn", "sgc", "appnp", "odd width, sparse features", "DropEdge", "ranking")


@pytest.fixture
def together(request, tmp_path):
    """What so many processes found for each plan."""
    plans, out = tmp_path / "plans.json", tmp_path / "out.json"
    chosen = PLANS if request.param == 2 else {name: PLANS[name] for name in IN_FOUR}
    plans.write_text(json.dumps([*chosen.values()]))
    done = torchrun(request.param, TESTS / "support" / "train_together.py", plans, out)
    assert done.returncode == 0, done.stderr
    return dict(zip(chosen, json.loads(out.read_text()), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("together", [2, 4], indirect=True)
def test_several_processes_train_as_one(together):
    for name, found in together.items():
        check(name, found)


def check(name, found):
    plan = PLANS[name]
    alone = trained(graph_of(**plan["graph"]), plan["model"], plan["settings"])
    losses = np.array(alone["curve"][0])[:, 0]
    assert np.abs(np.diff(losses)).max() > 1e-3, (
        name
    )  # it learns, so that equal curves say something
    assert found["epochs"] == alone["epochs"], name
    for what in ("curve", "test", "temperature", "scores"):
        assert np.allclose(
            np.array(found[what], float), np.array(alone[what], float), 1e-9, 1e-9, True
        ), (name, what)
