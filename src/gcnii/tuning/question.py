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

from gcnii.errors import GraphError, InputError, did_you_mean
from gcnii.files import Document, document_key
from gcnii.graph import Graph, Split
from gcnii.nn.settings import Settings
from gcnii.targets import target_of
from gcnii.targets.scores import Metric
from gcnii.train.plan import Plan, known_model, make_plan, model_defaults
from gcnii.train.recipe import RECIPE_FIELDS
from gcnii.train.run import make_runs
from gcnii.tuning.space import Space, few_labels, space_of

BASELINES = ("mlp", "gcn")  # without the graph, and the plainest model with it
MODELS = ("gcnii-plus", "gcnii-star", "gcn", "dropedge-gcn", "graphsage-mean", "mlp")
SEEDS, MOST_SEEDS = 3, 10  # per trial; the more where there are few labels
ENOUGH = 500  # validation nodes of a split, without which others are drawn from the labelled ones
SURE = 1500  # validation nodes of a trial: the standard error of an accuracy is ≤ 1.3 points
FINAL = 10  # runs of the winner, at least
FRESH = 1000  # seeds below are the search's
MOST_GIVEN = FRESH // 2  # seeds per trial: the best few are trained with as many again
# All trials of a study stop alike: the score of the best epoch is higher than that of the epoch of
# the lowest loss, by luck, and would win.
STOP: Settings = {
    **{"batches": "full", "epochs": 1000, "patience": 80, "window": 0},
    **{"monitor": "val_score_loss"},
}
# With few labels as the paper does it, and longer: consistency takes its time to grow.
FEW: Settings = {"patience": 150, "monitor": "val_loss"}
# At one half, a score says little of several labels per node.
SEVERAL: Settings = {"monitor": "val_loss"}
VERSION = 2  # of what a trial's settings mean; a study of another version is another study
WEIGHTED = 3  # the same of a graph with edge weights, whose trials choose what they count


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
        names = tuple(dict.fromkeys((*map(known_model, models or MODELS), *BASELINES)))
        seeds = _seeds(graph) if seeds is None else seeds
        if seeds > MOST_GIVEN:
            raise InputError(f"seeds must be at most {MOST_GIVEN} per setting, got {seeds}")
        _refuse_unknown(fixed or {}, names)
        question = cls(graph, names, seeds, metric, dict(fixed or {}))
        plans = [question.plan(model, {}) for model in names]
        plain = {name: one for plan in plans for name, one in plan.settings.items()}
        question = replace(question, fixed={name: plain[name] for name in question.fixed})
        for each in (graph, question.hidden):  # before a search, not after it
            plans[0].recipe.refuse_labels(each, range(len(each.splits)))
        return question

    @property
    def identity(self) -> Document:
        """What makes it this question: the same one goes on where its study stopped.

        No label of a test node is in it, for proposals are drawn from it.
        """
        return {
            "version": WEIGHTED if self.graph.weighted else VERSION,
            "graph": self.hidden.fingerprint,
            "models": list(self.models),
            "seeds": self.seeds,
            "metric": self.metric,
            "fixed": self.fixed,
        }

    @property
    def asked(self) -> Document:
        """As study.json has it."""
        asked = {name: one for name, one in self.identity.items() if name != "graph"}
        return asked | {"fingerprint": self.graph.fingerprint}

    @property
    def name(self) -> str:
        """The name of its study."""
        return f"{self.graph.name}-{document_key(self.identity)}"

    @property
    def measured(self) -> str:
        """What its scores are."""
        return target_of(self.graph).score(self.metric).name

    def space(self, model: str) -> Space:
        """What is tried of a model."""
        return space_of(model, self.graph, self.metric, self.fixed)

    def plan(self, model: str, settings: Mapping[str, object]) -> Plan:
        """The plan of a trial: on the full graph, because replicas are trained as one batch.

        All models stop alike, whatever their presets say.
        """
        metric = {} if self.metric == "auto" else {"metric": self.metric}
        fixed = {name: one for name, one in self.fixed.items() if name in _known(model)}
        return make_plan(model, {**self.stop, **metric, **settings, **fixed}, self.graph)

    @cached_property
    def stop(self) -> Settings:
        """By which rule all trials stop."""
        few, several = few_labels(self.graph), self.graph.multilabel
        return STOP | (FEW if few else {}) | (SEVERAL if several else {})

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
    return {*model_defaults(model), *RECIPE_FIELDS}


def _refuse_unknown(fixed: Mapping[str, object], models: tuple[str, ...]) -> None:
    """Raise InputError for a setting that none of the models has: it would have no effect."""
    known = set().union(*map(_known, models))
    for name in fixed:
        if name not in known:
            guess = did_you_mean(name, sorted(known))
            raise InputError(
                f"none of {', '.join(models)} has a setting {name!r}; {guess}known: "
                f"{', '.join(sorted(known))}"
            )


def _seeds(graph: Graph) -> int:
    """SEEDS, or as many as validate on SURE nodes in all."""
    nodes = int(graph.splits[0].val.sum())
    return int(np.clip(ceil(SURE / nodes), SEEDS, MOST_SEEDS))


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
