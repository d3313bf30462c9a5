"""Do the links that `explain` names matter more than others, and what does it cost to find them?

    python -m gcnii_paper.explaining [--nodes 100] [--links 3] [--layers 16] [--out FILE.json]

trains GCNII on Cora (one seed, one thread), draws test nodes by a fixed seed, and for each of them
drops a few links, normalises anew and runs again.  The links are those named by the gradient, by a
search that drops each link of the 2-hop neighbourhood alone, by PyG's GNNExplainer with its
defaults if it is installed, and links drawn from that neighbourhood.  Before that, 100 validation
nodes decide which gradient it is: of P's values, or through the normalisation, at the weights as
they are or halfway to no links.  results/explain becomes a table for docs/.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import gcnii
from gcnii.files import Document, Maybe, read_document, write_document
from gcnii.inference.attribution import BestRun, ExplainedScore, near, strongest
from gcnii.propagation import Sparse
from gcnii.report.tables import markdown_table
from gcnii.results.result import Result
from gcnii.targets.interval import over_runs
from gcnii_paper.documents import made_by, met, run_script

MOVED = ("benchmarks/explaining.py", "-m gcnii_paper.explaining")  # in older records
_WAY = {"drop": float, "seconds": float, "against": {"mean": float, "low": float, "high": float}}
SHAPE = {
    **{"graph": str, "model": str, "command": str, "device": str},
    **{"layers": int, "nodes": int, "links": int, "draws": int, "test": float},
    "estimates": {str: float},
    "ways": {"gradient": _WAY, "search": _WAY, "random": _WAY, "gnnexplainer": Maybe(_WAY)},
}
WAYS = {
    "gradient": "gradient, as `explain` has it",
    "search": "search: each edge of the 2-hop neighbourhood dropped alone",
    "gnnexplainer": "GNNExplainer (PyG, its defaults)",
    "random": "random edges of the 2-hop neighbourhood",
}
HEADS = ("edges found by", "drop in probability", "gradient's drop less this one's", "CPU s a node")
MOST_TIME = 0.1  # the bar: of the search's time


def explaining_table(path: Path) -> str:
    """One row for each way to find links, whether the bar is met, and what decided the gradient."""
    measured: Document = read_document(path, SHAPE, "measurement of explanations", dict)
    ways = measured["ways"]
    table = markdown_table(HEADS, [_cells(name, ways[name]) for name in WAYS if name in ways])
    about = (
        f"{measured['model']} of {measured['layers']} layers on {measured['graph']}, test accuracy "
        f"{100 * measured['test']:.1f}; the same {measured['nodes']} test nodes for all, "
        f"{measured['links']} edges each, random ones drawn {measured['draws']} times; 95 % "
        f"intervals of paired differences; on one thread of a {measured['device'].upper()}."
    )
    found = "; ".join(f"{name} {drop:.4f}" for name, drop in measured["estimates"].items())
    chosen = f"Chosen on {measured['nodes']} validation nodes, by the drop in probability: {found}."
    command = f"    {measured['command'].replace(*MOVED)}"
    return "\n".join([table, about, "", _verdict(ways), "", chosen, "", command]) + "\n"


def _cells(name: str, way: Document) -> list[str]:
    versus = way["against"]
    compared = f"{versus['mean']:+.4f} ({versus['low']:+.4f} to {versus['high']:+.4f})"
    own = name == "gradient"
    return [WAYS[name], f"{way['drop']:+.4f}", "" if own else compared, f"{way['seconds']:.3f}"]


def _verdict(ways: Document) -> str:
    """Whether each part of the bar is met."""
    own, random, search = ways["gradient"], ways["random"], ways["search"]
    above = random["against"]["low"] > 0
    versus, share = search["against"], own["seconds"] / search["seconds"]
    return (
        f"The bar: the drop is significantly above that of random edges ({met(above)}), and not "
        f"significantly below the search's ({met(versus['high'] >= 0)}); and finding the edges "
        f"takes less than a tenth of its time ({met(share < MOST_TIME)}: 1/{1 / share:.0f})."
    )


DRAWS = 10  # of random links
DRAWN_BY = 0  # the seed by which nodes and random links are drawn
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Find = Callable[[ExplainedScore, Ints], Ints]
Drops = dict[str, Floats]


class Trial:
    """One trained network and the ways to find links that matter."""

    def __init__(self, result: Result, graph: gcnii.Graph, count: int):
        self.network, self.count = BestRun.of(result, graph, "cpu"), count
        self.links = self.network.links
        self.P = self.network.predict_proba()
        self.random = np.random.default_rng(DRAWN_BY)

    def question(self, node: int) -> ExplainedScore:
        """The score of the predicted class."""
        return ExplainedScore(node, int(self.P[node].argmax()))

    def drop(self, question: ExplainedScore, some: Ints) -> float:
        """By how much the probability falls without these links."""
        before = self.P[question.node, question.label]
        return float(before - self.network.probability(question, some))

    def by_gradient(self, question: ExplainedScore, near: Ints) -> Ints:
        """As `explain` finds them."""
        return strongest(self.network.effects(question), self.count)

    def by_gradient_as_it_is(self, question: ExplainedScore, near: Ints) -> Ints:
        """Through the normalisation, at the weights as they are."""
        kept = torch.ones_like(self.network.task.adjacency.weights, requires_grad=True)
        (slope,) = torch.autograd.grad(self.network.log_probability(question, kept), kept)
        return strongest(self.links.summed(slope), self.count)

    def by_gradient_of_P(self, question: ExplainedScore, near: Ints) -> Ints:
        """By gradient × value of P, as if the other links kept theirs."""
        values = self.network.task.P.values.clone().requires_grad_()
        P = Sparse(self.network.task.P.pattern, values)
        logs = self.network.scores(P)[question.node].log_softmax(0)
        (slope,) = torch.autograd.grad(logs[question.label], values)
        return strongest(self.links.summed(slope * values.detach()), self.count)

    def by_search(self, question: ExplainedScore, near: Ints) -> Ints:
        """The best single links: each is dropped alone."""
        alone = np.array([self.drop(question, near[[i]]) for i in range(len(near))])
        return near[strongest(alone, self.count)]

    def at_random(self, question: ExplainedScore, near: Ints) -> Ints:
        """Drawn from the neighbourhood."""
        return self.random.choice(near, min(self.count, len(near)), replace=False)

    def measure(self, ways: dict[str, Find], nodes: Ints) -> tuple[Drops, dict[str, float]]:
        """For each way the drop at each node, and the CPU seconds a node to find its links.

        Node by node all ways in turn, so that what else the machine does befalls all of them.
        """
        drops: Drops = {name: np.zeros(len(nodes)) for name in ways}
        seconds = dict.fromkeys(ways, 0.0)
        for i, node in enumerate([nodes[0], *nodes], -1):  # the first is not counted: it warms up
            question = self.question(int(node))
            around = near(self.links.ends, self.network.paths(int(node))[0])
            for name, find in ways.items():
                start = time.process_time()
                found = [find(question, around) for _ in range(DRAWS if name == "random" else 1)]
                spent = (time.process_time() - start) / len(found)
                if i >= 0:
                    seconds[name] += spent / len(nodes)
                    drops[name][i] = fmean(self.drop(question, some) for some in found)
        return drops, seconds


class PygNetwork(nn.Module):
    """The layers above H0 with PyG's GCN2Conv and the same weights, for its explainers."""

    def __init__(self, network: BestRun):
        from torch_geometric.nn import GCN2Conv

        super().__init__()
        settings, own = network.plan.model_settings, cast(Any, network.model)
        self.decode = own.dense["decode"]
        self.convs = nn.ModuleList()
        for l, conv in enumerate(own.convs, 1):
            layer = GCN2Conv(
                settings["width"], settings["alpha"], settings["lam"], l, normalize=False
            )
            layer.weight1.data = conv.W.detach()
            self.convs.append(layer)

    def forward(self, H0: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Scores (n, k)."""
        H = H0
        for conv in self.convs:
            H = conv(H, H0, edge_index, edge_weight).relu()
        scores: Tensor = self.decode(H)
        return scores


def gnn_explainer(trial: Trial) -> Find:
    """PyG's GNNExplainer with its defaults, for links alone."""
    from torch_geometric.explain import Explainer, GNNExplainer

    network = trial.network
    model, P = PygNetwork(network).eval(), network.task.P
    H0 = cast(Any, network.model).dense["encode"](network.task.X).relu().detach()
    edges = torch.stack([P.pattern.columns.long(), P.pattern.row_of])
    same = torch.allclose(model(H0, edges, P.values), network.scores(), atol=1e-4)
    assert same, "PyG's network is not ours"
    explainer = Explainer(
        model,
        GNNExplainer(),
        explanation_type="model",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "raw",
        },
    )

    def find(question: ExplainedScore, near: Ints) -> Ints:
        torch.manual_seed(question.node)
        mask = explainer(H0, edges, index=question.node, edge_weight=P.values).edge_mask
        return strongest(trial.links.summed(mask), trial.count)

    return find


def choose_nodes(mask: NDArray[np.bool_], count: int) -> Ints:
    """Some of these nodes."""
    return np.random.default_rng(DRAWN_BY).choice(np.flatnonzero(mask), count, replace=False)


def compare(trial: Trial, nodes: Ints) -> Iterator[Document]:
    """All ways on the same nodes; GNNExplainer, which takes very long, comes last."""
    drops, seconds = trial.measure(
        {"gradient": trial.by_gradient, "search": trial.by_search, "random": trial.at_random}, nodes
    )
    yield summary(drops, seconds)
    if find_spec("torch_geometric"):
        more = trial.measure({"gnnexplainer": gnn_explainer(trial)}, nodes)
        yield summary(drops | more[0], seconds | more[1])


def summary(drops: Drops, seconds: dict[str, float]) -> Document:
    """What was measured of each way."""
    for name, each in drops.items():
        print(f"{name:14} drop {each.mean():+.4f}   {seconds[name]:8.4f} s a node", flush=True)
    return {
        name: {
            "drop": float(each.mean()),
            "seconds": seconds[name],
            "against": over_runs(drops["gradient"] - each).document(),
            "drops": each.round(6).tolist(),
        }
        for name, each in drops.items()
    }


def main(*, nodes: int = 100, links: int = 3, layers: int = 16, out: Path | None = None) -> None:
    """Train, choose the estimate on validation nodes, compare on test nodes, and write."""
    made = made_by("explaining", *sys.argv[1:])
    torch.set_num_threads(1)
    graph = gcnii.load("cora")
    result = gcnii.fit(graph, "gcnii", layers=layers, seeds=[0], device="cpu", threads=1)
    torch.set_num_threads(1)
    assert isinstance(result, Result)
    split, trial = graph.splits[0], Trial(result, graph, links)
    tried: dict[str, Find] = {
        "of P's values": trial.by_gradient_of_P,
        "through the normalisation": trial.by_gradient_as_it_is,
        "the same, halfway": trial.by_gradient,
        "search": trial.by_search,
    }
    drops, _ = trial.measure(tried, choose_nodes(split.val, nodes))
    estimates = {name: float(each.mean()) for name, each in drops.items()}
    print("on validation nodes:", estimates, flush=True)
    about = {"graph": "cora", "model": "gcnii", "layers": layers, "seed": 0, "split": 0}
    run = {"nodes": nodes, "links": links, "draws": DRAWS, "threads": 1}
    made["device"] = result.device
    scores = {"test": float(result.test[0]), "estimates": estimates}
    for ways in compare(trial, choose_nodes(split.test, nodes)):
        if out:
            write_document(out, about | run | scores | {"ways": ways} | made)


if __name__ == "__main__":
    run_script(main)
