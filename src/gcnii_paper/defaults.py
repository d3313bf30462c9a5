"""What `train` combines on a graph of one's own, measured on twenty graphs.

Every member of the portfolio is trained on three splits of each graph, and the probabilities of its
validation and test nodes are kept in files.  All else is arithmetic over these: the weights of each
effort's members, ensembles without one member, and which networks would be chosen without a graph
and those made of the same data.  Choices are made by validation; test scores are only compared.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from torch import Tensor, nn

from gcnii.data import load
from gcnii.errors import InputError
from gcnii.files import Document, Maybe, atomic_write, write_document
from gcnii.graph import Graph, Split
from gcnii.graph.arrays import dense
from gcnii.members.known import Known
from gcnii.members.propagation import LabelPropagation
from gcnii.members.trees import Trees
from gcnii.report.tables import markdown_table
from gcnii.results.ensemble import greedy
from gcnii.results.fit import Session, fit_plans
from gcnii.results.provenance import commit
from gcnii.targets import Classes, SeveralLabels, label_target_of
from gcnii.targets.scores import Answers
from gcnii.targets.target import Floats, Ints, LabelTarget
from gcnii.train.features import Scaling
from gcnii.train.hardware import choose_device, device_name
from gcnii.train.plan import make_plan
from gcnii.train.presets import PLAIN, PORTFOLIO, Point, portfolio
from gcnii.tuning.portfolio import LABELS, OWN_TREES, QUICK, STANDARD, TREES
from gcnii_paper.documents import read_folder

# Those that take longest first.
GRAPHS = (
    *("squirrel", "facebook", "coauthor-cs", "pubmed-full", "pubmed", "amazon-photo"),
    *("chameleon", "minesweeper", "film", "twitch-engb", "cora-ml", "citeseer-full", "cora-full"),
    *("citeseer", "cora", "humango", "chameleon-filtered", "wisconsin", "texas", "cornell"),
)
# Not of the catalog: NAME.npz in a folder that is given.
FILES = frozenset({"facebook", "humango", "cora-ml", "twitch-engb"})
SPLITS = 3  # of a graph; of one with a single split, seeds
RECIPES = ("pyg-sage", "pyg-gcn")  # what twenty lines of PyG give
BASELINES = ("mlp", "gcn", "gat", "appnp", "graphsage", *RECIPES)
LIGHT = (LABELS, TREES, OWN_TREES)
ALWAYS = (*LIGHT, "mlp")  # what the leaderboard compares with
EFFORTS: Mapping[str, tuple[str, ...]] = {
    "quick": (*LIGHT, *QUICK),
    "standard": (*LIGHT, *STANDARD),
    "best": (*LIGHT, *(point.name for point in PORTFOLIO)),
}
CHOSEN = 8  # networks, where they are chosen without a graph
JUDGED = 1500  # validation nodes, at most, by which they are
PARTS = ("val", "test")
LABELLED = "labels.npz"  # of a graph, beside MEMBER.npz
TINY = 1e-6  # the least probability of what is no network, before its temperature
EPOCHS, PATIENCE = 500, 60


def development_graph(name: str, data: Path | None) -> Graph:
    """A graph of the catalog, or of a file in the folder, as one of a user's own."""
    graph = load(data / f"{name}.npz" if data and name in FILES else name)
    return replace(graph, splits=graph.splits[:SPLITS])


def measure(
    kept: Path,
    names: Sequence[str],
    *,
    data: Path | None = None,
    device: str = "auto",
    told: Callable[[str], None] = print,
) -> None:
    """Train what a folder does not hold yet of these graphs; each member is kept at once."""
    if not data and (files := FILES & set(names)):
        told(f"left out without a folder that holds their npz files: {', '.join(sorted(files))}")
        names = [name for name in names if name not in files]
    for name in names:
        graph = development_graph(name, data)
        if not (kept / name / LABELLED).exists():
            write_about(graph, name, kept / name, device)
        for member in (*LIGHT, *(point.name for point in portfolio(graph)), *RECIPES):
            path, begun = kept / name / f"{member}.npz", time.monotonic()
            if not path.exists():
                answers = [*trained(graph, member, device)]
                keep(path, graph, answers, time.monotonic() - begun)
                told(f"{name}, {member}: {time.monotonic() - begun:.1f} s")


def write_about(graph: Graph, name: str, folder: Path, device: str) -> None:
    """What is known of a graph beside its members: labels, and where they are trained."""
    target = label_target_of(graph)
    about = {
        **{"graph": name, "metric": target.score("auto").name, "k": graph.k},
        **{"n": graph.n, "m": graph.m, "d": graph.d},
        **{"directed": graph.directed, "multilabel": graph.multilabel},
        **{"device": device_name(choose_device(device)), "commit": commit()},
    }
    folder.mkdir(parents=True, exist_ok=True)
    labels = {
        f"{part}{s}": graph.labels[getattr(split, part)]
        for s, split in enumerate(splits_of(graph))
        for part in PARTS
    }
    _write(folder / LABELLED, {**labels, "about": np.array(json.dumps(about))})


def keep(path: Path, graph: Graph, answers: Sequence[Floats], seconds: float) -> None:
    """Write the probabilities of validation and test nodes, of each split."""
    arrays = {
        f"{part}{s}": P[getattr(split, part)].astype(np.float32)
        for s, (split, P) in enumerate(zip(splits_of(graph), answers, strict=True))
        for part in PARTS
    }
    _write(path, {**arrays, "seconds": np.array(seconds)})


def _write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def splits_of(graph: Graph) -> list[Split]:
    """The split of each run."""
    return [graph.splits[s % len(graph.splits)] for s in range(SPLITS)]


def trained(graph: Graph, member: str, device: str) -> Iterator[Floats]:
    """(n, k) calibrated probabilities of a member, split by split."""
    points = {point.name: point for point in PORTFOLIO}
    if member in points:
        yield from _networks(graph, points[member].model, points[member].settings, device)
        return
    for s, split in enumerate(splits_of(graph)):
        if member in RECIPES:
            P = recipe(graph, split, member, s, device)
        elif member == LABELS:
            P = LabelPropagation.fit(graph, split)(graph, Known.of(graph, split))
        else:
            columns = "own" if member == OWN_TREES else "neighbourhood"
            trees = Trees.fit(graph, split, columns=columns, seed=s)  # type: ignore[arg-type]
            P = trees.answers(graph, Known.of(graph, split))
        yield calibrated(label_target_of(graph), P, graph, split)


def _networks(
    graph: Graph, model: str, settings: Mapping[str, object], device: str
) -> Iterator[Floats]:
    # Without its catalog name a graph has no preset.
    own = graph._with_origin(graph.source, "", graph.loaded_with)
    plan = make_plan(model, {**settings, "longest": 0}, own)
    session = Session(device=device)
    result = fit_plans(own, [plan], session, seeds=range(SPLITS), calibrate="temperature")
    for i in range(SPLITS):
        yield result.alone(i).predict_proba(own, device)


def calibrated(target: LabelTarget, P: Floats, graph: Graph, split: Split) -> Floats:
    """Probabilities at the temperature that suits the validation nodes."""
    if not target.exclusive:
        return P
    P = np.maximum(P, TINY)
    T = target.best_temperature(np.log(P[split.val]), graph.labels[split.val])
    return target.tempered(P, T)


def recipe(graph: Graph, split: Split, member: str, seed: int, device: str) -> Floats:
    """(n, k) of PyG's SAGE or GCN: 3 × 256, layer norm, jumping knowledge, dropout 0.5, lr 0.005.

    Features are scaled as those of our members, and edges count in both directions.
    """
    try:
        from torch_geometric.nn import GCN, GraphSAGE
        from torch_geometric.utils import to_undirected
    except ImportError:
        raise InputError("pyg-sage and pyg-gcn need PyG; pip install gcnii[pyg]") from None
    where = choose_device(device)
    X = Scaling.learn(graph.X, "auto", columns=graph.columns).apply(graph.X)
    inputs = torch.tensor(np.asarray(dense(X), np.float32), device=where)
    edges = to_undirected(torch.tensor(np.array(graph.edges)), num_nodes=graph.n).to(where)
    torch.manual_seed(seed)
    make = GraphSAGE if member == "pyg-sage" else GCN
    norm = {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}}
    net = make(graph.d, 256, 3, graph.k, dropout=0.5, jk="cat", **norm).to(where)
    return _by_best_epoch(net, lambda: net(inputs, edges), graph, split)


def _by_best_epoch(
    net: nn.Module, scores: Callable[[], Tensor], graph: Graph, split: Split
) -> Floats:
    """(n, k) in the epoch with the highest validation score."""
    target, adam = label_target_of(graph), torch.optim.Adam(net.parameters(), lr=0.005)
    train, labels = torch.tensor(split.train), torch.tensor(np.array(graph.labels))
    best, since, answer = -np.inf, 0, np.empty(0)
    for _ in range(EPOCHS):
        net.train()
        adam.zero_grad()
        found = scores()
        y = labels.to(found.device)[train]
        target.losses(found[None, train], y, None).mean().backward()
        adam.step()
        net.eval()
        with torch.no_grad():
            P = target.answers(scores().cpu())
        now, since = score(target, P[split.val], graph.labels[split.val]), since + 1
        if now > best:
            best, since, answer = now, 0, P
        if since >= PATIENCE:
            break
    return answer


def score(target: LabelTarget, P: Floats, y: Ints, threshold: float | None = None) -> float:
    """In %; the threshold of several labels is that which suits these nodes, unless it is given."""
    at = target.best_threshold(P, y) if threshold is None else threshold
    said = Answers(target, P, target.decided(P, at), y)
    key = target.score("auto").key
    return 100 * float(said.scored(key)(np.ones((said.m, 1)))[0])


@dataclass(frozen=True, eq=False)
class Kept:
    """What was kept of a graph: the probabilities of its members, and labels.

    judged  the honest validation score of each set of members that was asked for
    """

    folder: Path
    judged: dict[frozenset[str], float] = field(default_factory=dict)

    @cached_property
    def labels(self) -> Mapping[str, Ints]:
        with np.load(self.folder / LABELLED) as file:
            return {name: file[name] for name in file.files if name != "about"}

    @cached_property
    def about(self) -> Document:
        with np.load(self.folder / LABELLED) as file:
            document: Document = json.loads(str(file["about"]))
        return document

    @cached_property
    def target(self) -> LabelTarget:
        return (SeveralLabels if self.about["multilabel"] else Classes)(self.about["k"])

    @cached_property
    def members(self) -> dict[str, dict[str, Floats]]:
        """Each member's arrays, by part and split, and its seconds."""
        found = {}
        for path in sorted(self.folder.glob("*.npz")):
            if path.name != LABELLED:
                with np.load(path) as file:
                    found[path.stem] = {one: file[one].astype(np.float64) for one in file.files}
        return found

    def of(self, names: Sequence[str], part: str) -> Floats:
        """(m, nodes, k) of these members, for a part such as val0."""
        return np.stack([self.members[name][part] for name in names])

    def has(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name in self.members]

    def ensemble(self, names: Sequence[str]) -> Document:
        """Weights, validation and test scores of the members, split by split."""
        names = self.has(names)
        found: Document = {"weights": [], "val": [], "test": []}
        for s in range(SPLITS):
            P, y = self.of(names, f"val{s}"), self.labels[f"val{s}"]
            weights = greedy(P, y, self.target)
            mean = np.tensordot(weights, P, 1)
            threshold = self.target.best_threshold(mean, y)
            tested = np.tensordot(weights, self.of(names, f"test{s}"), 1)
            shares = zip(names, weights, strict=True)
            found["weights"].append({name: round(float(w), 3) for name, w in shares if w})
            found["val"].append(round(score(self.target, mean, y), 3))
            test = score(self.target, tested, self.labels[f"test{s}"], threshold)
            found["test"].append(round(test, 3))
        return found

    def honest(self, names: Sequence[str]) -> float:
        """The validation score of members that are weighed on the other half of the nodes."""
        key = frozenset(self.has(names))
        if key not in self.judged:
            each = [self._halves(sorted(key), s) for s in range(SPLITS)]
            self.judged[key] = fmean(one for pair in each for one in pair)
        return self.judged[key]

    def _halves(self, names: Sequence[str], s: int) -> Iterator[float]:
        P, y = self.of(names, f"val{s}"), self.labels[f"val{s}"]
        nodes = np.random.default_rng(s).permutation(len(y))[:JUDGED]
        halves = np.array_split(nodes, 2)
        for one, other in (halves, halves[::-1]):
            weights = greedy(P[:, one], y[one], self.target, bags=5)
            threshold = self.target.best_threshold(np.tensordot(weights, P[:, one], 1), y[one])
            mean = np.tensordot(weights, P[:, other], 1)
            yield score(self.target, mean, y[other], threshold)


def kin(name: str) -> str:
    """The data that a graph is made of: the file of cornell holds the pages of texas."""
    return "texas" if name == "cornell" else name.split("-")[0]


def chosen_by(graphs: Sequence[Kept], count: int = CHOSEN) -> list[str]:
    """The networks that, one after the other, most raise the mean honest validation score."""
    found: list[str] = []
    rest = [point.name for point in PORTFOLIO if point.name not in ALWAYS]
    for _ in range(min(count, len(rest))):
        best = max(
            rest, key=lambda name: fmean(one.honest([*ALWAYS, *found, name]) for one in graphs)
        )
        found.append(best)
        rest.remove(best)
    return found


def judge(kept: Path, out: Path, names: Sequence[str]) -> None:
    """Write GRAPH.json for each graph that was measured: all that is said about it."""
    graphs = {name: Kept(kept / name) for name in names if (kept / name / LABELLED).exists()}
    for name, one in graphs.items():
        others = [other for left, other in graphs.items() if kin(left) != kin(name)]
        networks = chosen_by(others) if others else []
        best = EFFORTS["best"]
        document = {
            **one.about,
            "members": {member: _alone(one, member) for member in one.members},
            "efforts": {effort: one.ensemble(members) for effort, members in EFFORTS.items()},
            "left_out": {"networks": networks, **one.ensemble([*ALWAYS, *networks])},
            "without": {
                member: one.ensemble([other for other in best if other != member])["test"]
                for member in one.has(best)
            },
        }
        write_document(out / f"{name}.json", document)


def _alone(one: Kept, member: str) -> Document:
    ensemble = one.ensemble([member])
    seconds = round(float(one.members[member]["seconds"]), 1)
    return {"val": ensemble["val"], "test": ensemble["test"], "seconds": seconds}


_SCORES = {"val": [float], "test": [float]}
SHAPE = {
    **{"graph": str, "metric": str, "n": int, "m": int, "d": int, "k": int, "directed": bool},
    **{"device": str, "commit": Maybe(str), "members": {str: {**_SCORES, "seconds": float}}},
    "efforts": {str: {**_SCORES, "weights": [{str: float}]}},
    "left_out": {**_SCORES, "networks": [str], "weights": [{str: float}]},
    "without": {str: [float]},
}


def read_defaults(folder: Path) -> list[Document]:
    """What `judge` wrote, in the order of the names."""
    command = "gcnii reproduce defaults"
    return [*read_folder(folder, SHAPE, "record of a portfolio", dict, command).values()]


def best_baseline(document: Document) -> str:
    """The baseline with the highest mean validation score."""
    members = document["members"]
    there = [name for name in BASELINES if name in members]
    return max(there, key=lambda name: fmean(members[name]["val"]))


POINT_HEADS = ("point", "model", "efforts", "settings")
GRAPH_HEADS = ("graph", "best baseline", "best member", *EFFORTS, "left out", "lead")
MEMBER_HEADS = ("member", "validation", "test", "weight", "without it", "seconds")


def points_table() -> str:
    """The points of the portfolio, as docs/understand/defaults.md has them."""
    return markdown_table(POINT_HEADS, map(_point_row, PORTFOLIO))


def defaults_tables(documents: Sequence[Document]) -> str:
    """The graphs and the members, as docs/evidence/settings.md has them."""
    rows = [_row(document) for document in documents]
    means = [fmean(row[i] for row in rows) for i in range(len(rows[0]))]
    pairs = zip(documents, rows, strict=True)
    named = [[str(one["graph"]), *_cells(row, one)] for one, row in pairs]
    tables = (
        markdown_table(GRAPH_HEADS, [*named, ["**mean**", *_cells(means)]]),
        markdown_table(MEMBER_HEADS, _member_rows(documents)),
    )
    devices = ", ".join(sorted({one["device"] for one in documents}))
    return "\n".join([*tables, f"Networks were trained on {devices}; the rest on a CPU.\n"])


def _point_row(point: Point) -> list[str]:
    chosen = {name: one for name, one in point.settings.items() if PLAIN.get(name) != one}
    words = [name if one is True else f"{name} {one}" for name, one in chosen.items()]
    efforts = [effort for effort, members in EFFORTS.items() if point.name in members]
    return [point.name, point.model, ", ".join(efforts), ", ".join(words) or "those of its card"]


def _row(document: Document) -> list[float]:
    """Test scores of a graph, in the order of the columns, and the lead of `standard`."""
    members, efforts = document["members"], document["efforts"]
    base = fmean(members[best_baseline(document)]["test"])
    own = [name for name in EFFORTS["best"] if name in members]
    single = [
        members[max(own, key=lambda name: members[name]["val"][s])]["test"][s]
        for s in range(SPLITS)
    ]
    combined = [fmean(efforts[effort]["test"]) for effort in EFFORTS]
    lead = fmean(efforts["standard"]["test"]) - base
    return [base, fmean(single), *combined, fmean(document["left_out"]["test"]), lead]


def _cells(row: Sequence[float], document: Document | None = None) -> list[str]:
    first, *rest, lead = (f"{value:.1f}" for value in row)
    name = f" {best_baseline(document)}" if document else ""
    return [first + name, *rest, f"{round(float(lead), 1) + 0.0:+.1f}"]


def _member_rows(documents: Sequence[Document]) -> Iterator[list[str]]:
    """Each member over the graphs that have it: alone, its weight, and the ensemble without it."""
    for name in (*EFFORTS["best"], *RECIPES):
        there = [one for one in documents if name in one["members"]]
        if not there:
            continue
        alone = [one["members"][name] for one in there]
        cells = [f"{fmean(fmean(one[part]) for one in alone):.1f}" for part in PARTS]
        weights = [
            split.get(name, 0.0) for one in there for split in one["efforts"]["best"]["weights"]
        ]
        lost = [
            fmean(one["without"][name]) - fmean(one["efforts"]["best"]["test"])
            for one in there
            if name in one["without"]
        ]
        ours = [f"{fmean(weights):.2f}", f"{fmean(lost):+.2f}"] if lost else ["–", "–"]
        count = "" if len(there) == len(documents) else f" ({len(there)} graphs)"
        yield [name + count, *cells, *ours, f"{fmean(one['seconds'] for one in alone):.1f}"]
