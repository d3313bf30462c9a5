"""Several processes, with a graph in parts or whole, give the curves and scores of one."""

import json

import numpy as np
import pytest
from support.processes import TESTS, torchrun
from support.together import graph_of, trained

from gcnii.data import load
from gcnii.nn import MODELS
from gcnii.train.distributed.shard import pack

pytestmark = pytest.mark.filterwarnings("ignore:pymetis is not installed")
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
    "offloaded": ("gcnii", {}, {"memory": "offload", "layers": 6}),
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
    "weights, degrees by row and column": (
        "gcnii",
        {"weighted": True, "directed": True},
        {"loops": "none", "drop_edge": 0.3, "scale": "columns"},
    ),
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
# Which graphs each of so many processes reads as a whole; of the others it reads its parts, of
# which there are twice as many as processes in some.
WHOLE = {
    2: ("gcnii", "views", "DropEdge of pairs", "links of a diffusion"),
    4: ("gcnii", "odd width, sparse features", "DropEdge"),
}
TWICE = ("gcn", "one-way links", "several labels", "ranking")


ON_A_GPU = ("gcnii", "odd width, sparse features", "DropEdge of pairs", "ranking")
ON_A_GPU += ("weights, degrees by row and column",)


def together(folder, size, names, whole=(), device="cpu"):
    """What so many processes found for each of these plans, and the plan with its graph."""
    plans, out, chosen = folder / "plans.json", folder / "out.json", {}
    for name in names:
        chosen[name] = PLANS[name]
        if name not in whole:
            parts = 2 * size if name in TWICE else size
            pack(graph_of(**PLANS[name]["graph"]), folder / name, parts)
            chosen[name] = PLANS[name] | {"graph": str(folder / name)}
    plans.write_text(json.dumps([*chosen.values()]))
    done = torchrun(size, TESTS / "support" / "train_together.py", plans, out, device)
    assert done.returncode == 0, done.stderr
    return zip(names, chosen.values(), json.loads(out.read_text()), strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.long)])
def test_several_processes_train_as_one(size, tmp_path):
    for one in together(tmp_path, size, PLANS if size == 2 else IN_FOUR, WHOLE[size]):
        check(*one)


@pytest.mark.cuda
@pytest.mark.slow
def test_several_processes_on_a_gpu_train_as_one_on_a_cpu(tmp_path):
    for one in together(tmp_path, 2, ON_A_GPU, device="cuda:0"):
        check(*one)


def check(name, plan, found):
    about = plan["graph"]
    graph = load(about) if isinstance(about, str) else graph_of(**about)
    alone = trained(graph, plan["model"], plan["settings"])
    assert found["settings"] == alone["settings"], name
    losses = np.array(alone["curve"][0])[:, 0]
    assert np.abs(np.diff(losses)).max() > 1e-3, (
        name
    )  # it learns, so that equal curves say something
    assert found["epochs"] == alone["epochs"], name
    for what in ("curve", "test", "temperature", "scores"):
        assert np.allclose(
            np.array(found[what], float), np.array(alone[what], float), 1e-9, 1e-9, True
        ), (name, what)
