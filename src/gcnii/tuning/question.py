"""Question: which settings are best for a graph, by which metric, among which models.

The search sees a graph without test nodes.  Where a single split has few validation nodes, each
seed divides the nodes that are not test anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil

import numpy as np

from gcnii.errors import GraphError, InputError
from gcnii.files import Document, document_key
from gcnii.graph import Graph, Split
from gcnii.metrics.objective import Metric, metric_name
from gcnii.nn.settings import Settings
from gcnii.train.plan import Plan, known_model, make_plan
from gcnii.train.results.run import make_runs
from gcnii.tuning.space import Space, space_of

BASELINES = ("mlp", "gcn")  # without the graph, and the plainest model with it
MODELS = ("gcnii", "gcnii-star", "gcn", "dropedge-gcn", "graphsage-mean", "mlp")
SEEDS, MOST_SEEDS = 3, 10  # per trial; the more where there are few labels
ENOUGH = 500  # validation nodes: then the standard error of an accuracy is at most 2.2 points
FINAL = 10  # runs of the winner, at least
FRESH = 1000  # seeds below are the search's
VERSION = 1  # of what a trial's settings mean; a study of another version is another study


@dataclass(frozen=True, eq=False)
class Question:
    """What a study asks.

    models  names of the registry; the baselines are always among them
    seeds   runs per trial; seed s is on split s modulo the number of splits
    fixed   settings that are given, and not searched
    """

    graph: Graph
    models: tuple[str, ...] = MODELS
    seeds: int = SEEDS
    metric: Metric = "auto"
    fixed: Settings = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        graph: Graph,
        models: tuple[str, ...] | None = None,
        seeds: int | None = None,
        metric: Metric = "auto",
        fixed: Mapping[str, object] | None = None,
    ) -> Question:
        """The question, with what is not given chosen for the graph; refuses what cannot be."""
        make_runs(graph, None, None)  # refuses a graph without labels or splits
        names = dict.fromkeys((*map(known_model, models or MODELS), *BASELINES))
        question = cls(graph, tuple(names), seeds or _seeds(graph), metric, dict(fixed or {}))
        if question.seeds >= FRESH:
            raise InputError(f"seeds must be below {FRESH:,} per trial, got {question.seeds}")
        for model in question.models:
            question.plan(model, {})
        first = question.plan(question.models[0], {})
        first.recipe.refuse_labels(question.hidden, range(len(question.hidden.splits)))
        return question

    @property
    def identity(self) -> Document:
        """What makes it this question: the same one goes on where its study stopped."""
        return {
            "version": VERSION,
            "graph": self.graph.fingerprint,
            "models": list(self.models),
            "seeds": self.seeds,
            "metric": self.metric,
            "fixed": self.fixed,
        }

    @property
    def name(self) -> str:
        """The name of its study."""
        return f"{self.graph.name}-{document_key(self.identity)}"

    @property
    def measured(self) -> str:
        """What its scores are."""
        return metric_name(self.metric, multilabel=self.graph.multilabel)

    def space(self, model: str) -> Space:
        """What is tried of a model."""
        return space_of(model, self.graph, self.metric, self.fixed)

    def plan(self, model: str, settings: Mapping[str, object]) -> Plan:
        """The plan of a trial: on the full graph, because replicas are trained as one batch."""
        metric = {} if self.metric == "auto" else {"metric": self.metric}
        fixed = {name: one for name, one in self.fixed.items() if name in _known(model)}
        return make_plan(model, {"batches": "full", **metric, **settings, **fixed}, self.graph)

    @cached_property
    def hidden(self) -> Graph:
        """The graph as the search sees it: no split has test nodes, no label that only they have.

        Split s is that of seed s, where the nodes that are not test are divided anew.
        """
        graph, splits = self.graph, self.graph.splits
        tested = np.all([split.test for split in splits], axis=0)
        y = graph.labels.copy()
        y[tested] = -1
        if len(splits) == 1 and splits[0].val.sum() < ENOUGH:
            splits = tuple(_divided_anew(graph, splits[0], seed) for seed in range(self.seeds))
        none = np.zeros(graph.n, bool)
        bare = tuple(Split(train=split.train, val=split.val, test=none) for split in splits)
        classes = graph.classes or (
            None if graph.multilabel else tuple(map(str, range(graph.k)))
        )  # or k would be lower where only test nodes are of the last class
        return replace(graph, y=y, splits=bare, classes=classes)

    @property
    def divided_anew(self) -> bool:
        """Whether the search divides the nodes that are not test anew for each seed."""
        return len(self.hidden.splits) != len(self.graph.splits)

    @property
    def final_seeds(self) -> range:
        """Fresh seeds, as many on each split as make FINAL runs or more."""
        splits = len(self.graph.splits)
        first = ceil(FRESH / splits) * splits
        return range(first, first + splits * ceil(FINAL / splits))


def _known(model: str) -> set[str]:
    from gcnii.train.plan import model_defaults
    from gcnii.train.recipe import RECIPE_FIELDS

    return {*model_defaults(model), *RECIPE_FIELDS}


def _seeds(graph: Graph) -> int:
    """SEEDS, or as many as validate on ENOUGH nodes in all."""
    if len(graph.splits) > 1:
        return SEEDS
    nodes = int(graph.splits[0].val.sum())
    return int(np.clip(ceil(ENOUGH / nodes), SEEDS, MOST_SEEDS))


def _divided_anew(graph: Graph, split: Split, seed: int) -> Split:
    """As many training nodes as in the split, of each class where a node has one label."""
    random, pool = np.random.default_rng(seed), np.flatnonzero(split.train | split.val)
    kind = np.zeros(graph.n, int) if graph.multilabel else graph.labels
    train = np.zeros(graph.n, bool)
    for label in np.unique(kind[pool]):
        own = random.permutation(pool[kind[pool] == label])
        train[own[: int(split.train[own].sum())]] = True
    val = (split.train | split.val) & ~train
    if not val.any() or not train.any():
        raise GraphError(f"{graph.name} has too few labels to be divided anew; label more nodes")
    return Split(train=train, val=val, test=np.zeros(graph.n, bool))
