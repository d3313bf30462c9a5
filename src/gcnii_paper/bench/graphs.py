"""Graphs to measure on: those of the catalog, or random ones of any size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from gcnii import data
from gcnii.errors import DataError
from gcnii.graph import Graph, Split
from gcnii.propagation import Adjacency, adjacency, feature_matrix
from gcnii.propagation.sparse import Pattern
from gcnii.train.group import ReplicaGroup
from gcnii.train.plan import Plan, make_plan
from gcnii.train.task import Task
from gcnii_paper.bench.cases import Named, Shape

TRAINING, VALIDATION = 20, 500  # nodes per class, and nodes: Planetoid's
ENDLESS = {"epochs": 20_000, "patience": 20_000}  # more than are ever timed: nothing stops early


def endless_plan(layers: int, width: int, memory: str) -> Plan:
    """GCNII without early stopping."""
    return make_plan("gcnii", {"layers": layers, "width": width, "memory": memory, **ENDLESS})


def advance(group: ReplicaGroup, count: int) -> int:
    """Train that number of epochs or slightly more; their number."""
    start = group.epoch
    while group.epoch - start < count:
        group.advance()
    return group.epoch - start


@dataclass(frozen=True, eq=False)
class BenchGraph:
    """A graph's features, labels and splits, and beside them its links.

    graph  has no edges if the links were drawn: to check and sort millions of them on the CPU would
           take minutes
    drawn  whether the links were drawn at random
    """

    graph: Graph
    links: Adjacency
    drawn: bool

    @classmethod
    def of(cls, graph: Graph) -> BenchGraph:
        """A graph with its own links."""
        return cls(graph, Adjacency.of(adjacency(graph)), drawn=False)

    @property
    def entries(self) -> int:
        """The number of stored entries of P̃."""
        return len(self.links.pattern.columns)

    def task(self, plan: Plan, device: torch.device) -> Task:
        """The plan on this graph, with the features as they are."""
        links = replace(self.links, norm=plan.recipe.norm).to(device, plan.recipe.dtype)
        X = feature_matrix(self.graph, dtype=plan.recipe.dtype).to(device)
        return Task(self.graph, plan, device, links, X)


def make_bench_graph(source: Named | Shape, device: torch.device) -> BenchGraph:
    """The named graph, or a random one drawn on the device; also if the named one is not here."""
    if isinstance(source, Shape):
        return _drawn(source, device, f"a drawn graph of {source.n:,} nodes")
    try:
        graph = data.load(source.name, offline=True, **dict(source.parameters))
    except DataError:
        if not data.lookup(source.name).files:
            raise  # no file was missing: the parameters are wrong
        return _drawn(_shape_of(source.name), device, f"a drawn graph of {source.name}'s size")
    return BenchGraph.of(graph)


def _shape_of(name: str) -> Shape:
    counts = data.lookup(name).counts
    n, entries = counts.nodes, 2 * (counts.edges or 0)
    return Shape(n=n, entries=entries, d=counts.features, k=counts.classes, density=0.01)


def _drawn(shape: Shape, device: torch.device, name: str) -> BenchGraph:
    random = np.random.default_rng(0)
    training, validation = (min(count, shape.n // 3) for count in (TRAINING * shape.k, VALIDATION))
    graph = Graph(
        X=_features(shape, random),
        edges=np.zeros((2, 0), np.int64),
        y=np.arange(shape.n) % shape.k,
        splits=_splits(shape.n, training, validation),
        name=name,
    )
    return BenchGraph(graph, draw_links(shape, device), drawn=True)


def _splits(n: int, training: int, validation: int) -> tuple[Split]:
    """The first nodes for training, the next for validation, the rest for testing."""
    roles = np.full(n, "test", dtype=object)
    roles[:training] = "train"
    roles[training : training + validation] = "val"
    return (Split.of_roles(roles),)


def _features(shape: Shape, random: np.random.Generator) -> NDArray[np.float32] | sp.csr_array:
    if shape.density == 1:
        return random.standard_normal((shape.n, shape.d), dtype=np.float32)
    X = sp.random_array(
        (shape.n, shape.d), density=shape.density, format="csr", dtype=np.float32, rng=random
    )
    return sp.csr_array(X)


def draw_links(shape: Shape, device: torch.device) -> Adjacency:
    """Random symmetric links with about `entries` entries: slightly fewer, as pairs may repeat.

    Ends are drawn by rank: the share of ends within the first x of n ranks is (x/n)^s, with s such
    that the first rank has `hub` neighbours.
    """
    n, generator = shape.n, torch.Generator(device).manual_seed(0)
    s = log(shape.entries / shape.hub) / log(n) if shape.hub else 1.0
    number = torch.randperm(n, generator=generator, device=device)

    def ends() -> Tensor:
        share = torch.rand(
            shape.entries // 2, generator=generator, device=device, dtype=torch.float64
        )
        return number[(share.pow_(1 / s) * n).long().clamp_(max=n - 1)]

    u, v = ends(), ends()
    each = torch.arange(n, device=device)
    codes = torch.cat([u * n + v, v * n + u, each * (n + 1)]).unique()
    row, column = codes // n, codes % n
    loops = row == column
    pattern = Pattern.from_sorted(row, column, (n, n))
    return Adjacency(pattern, (~loops).float(), loops.float())


def near_graph(
    n: int, degree: float = 10, reach: float = 50, far: float = 0.02, d: int = 64
) -> Graph:
    """n nodes on a circle, numbered at random, with links to nodes nearby.

    degree  mean number of neighbours
    reach   mean distance of a link on the circle
    far     share of the links that end anywhere
    """
    random, k = np.random.default_rng(0), 10
    begin = random.integers(n, size=round(n * degree / 2))
    step = 1 + random.exponential(reach, len(begin)).astype(np.int64)
    end = np.where(
        random.random(len(begin)) < far, random.integers(n, size=len(begin)), begin + step
    )
    number = random.permutation(n)
    return Graph(
        X=random.standard_normal((n, d), dtype=np.float32),
        edges=number[np.stack([begin, end % n])],
        y=np.arange(n) % k,
        splits=_splits(n, TRAINING * k, VALIDATION),
        name=f"a near graph of {n:,} nodes",
    )
