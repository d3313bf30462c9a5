"""Question: which settings are best for a graph, by which metric, among which models.

The search sees a graph without test nodes.  Where a single split has few validation nodes, each
seed divides the nodes that are not test anew.  Of several splits, each chooses by its own
validation nodes alone, because they are test nodes in others (nested selection).  It tries the
settings whose annotations have a range, where they make a difference.  It begins with what `gcnii
train` would train, so that a search never ends with less, then the two baselines, and settings that
were good on many graphs: with them small budgets already pay.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import ceil
from pathlib import Path
from typing import TypeAlias

import numpy as np

from gcnii.errors import GraphError, InputError, notice, suggestion
from gcnii.files import Document, document_key, read_document, user_path
from gcnii.graph import Graph, Split
from gcnii.graph.graph import strata
from gcnii.nn import MODELS
from gcnii.nn.settings import Choice, Range, Settings, setting_of, whole
from gcnii.propagation import Loops
from gcnii.propagation.adjacency import OWN_LOOPS
from gcnii.results.bundle import read_record
from gcnii.results.fit import SILENT, Session
from gcnii.targets import Classes, target_of
from gcnii.targets.objective import rare_class, refuse_equal_numbers
from gcnii.targets.scores import RARE, Metric, Score
from gcnii.train.plan import (
    SHARED,
    Plan,
    auto_scale,
    chosen_model,
    combines,
    known_model,
    make_plan,
    model_defaults,
    model_hints,
    refuse_no_graph,
)
from gcnii.train.presets import PLAIN, PORTFOLIO, Point, portfolio
from gcnii.train.recipe import RECIPE_FIELDS, recipe_hints
from gcnii.train.stopping import make_runs
from gcnii.tuning.portfolio import EXTENTS, Course, prepared

Space: TypeAlias = dict[str, Range | Choice]

# Without effect on a model that does not use the graph.
OF_LINKS = ("direction", "edge_weights", "loops", "norm", "decay_conv", "structure")
OF_VIEWS = ("views", "drop_node", "consistency", "sharpen", "warm_up")  # for few labels
OF_WORDS = ("none", "standard", "columns", "rows", "length")  # choices of `scale`
FEW_SHARE = 0.1  # share of the nodes, below which labels are few
DIGITS = 2  # of a number on a logarithmic scale: more say nothing


def space_of(
    model: str, graph: Graph, metric: Metric, fixed: Settings, *, numeric: bool = False
) -> Space:
    """The settings of this model that are tried on this graph, those of Recipe among them.

    numeric  whether features are numbers rather than words, so that their ranks may tell more, and
             so few that columns of the graph's structure may add to them
    """
    declared = {
        name: setting.search
        for name, hint in (recipe_hints() | model_hints(model)).items()
        if (setting := setting_of(hint)[1]).search is not None
    }
    loops = loops_of(model, graph, fixed)
    declared["loops"] = Choice(loops)
    if not numeric:
        declared["scale"] = Choice(OF_WORDS)
    pointless = {
        "direction": not graph.directed,
        "edge_weights": not graph.weighted,
        "edge_types": not graph.typed or not MODELS[model].uses_types,
        "loops": len(loops) == 1,
        "class_weight": metric not in RARE,
        "focal": rare_class(graph) is None,
        "structure": not numeric,
    }
    if not few_labels(graph):
        pointless |= dict.fromkeys(OF_VIEWS, True)
    if not MODELS[model].card.uses_graph:
        pointless |= dict.fromkeys(OF_LINKS, True)
    return {
        name: search
        for name, search in declared.items()
        if search is not None and name not in fixed and not pointless.get(name, False)
    }


def few_labels(graph: Graph) -> bool:
    """Whether most nodes are neither trained on nor validated: they can teach consistency."""
    return bool(graph.splits[0].train.mean() < FEW_SHARE)


def loops_of(model: str, graph: Graph, fixed: Settings) -> tuple[Loops, ...]:
    """The choices of `loops` that differ on this graph, and that what is fixed allows."""
    refused = _adds_loops({**MODELS[model].card.recipe, **fixed}) or fixed.get("norm") in OWN_LOOPS
    looped = bool((graph.edges[0] == graph.edges[1]).any())
    kinds: tuple[Loops, ...] = ("keep", "remove") if looped else ("keep",)
    return kinds if refused else (*kinds, "none")


def _adds_loops(recipe: Mapping[str, object]) -> bool:
    """Whether nodes gather from themselves, whatever `loops` says."""
    return any(recipe.get(name, "none") != "none" for name in ("geometry", "diffusion"))


def parameter(model: str, name: str) -> str:
    """Optuna's name of a setting, in which a model's own settings carry the model's name.

    So do loops where the model has other choices: a study has one set of choices for each name.
    """
    own = name in model_hints(model) or (name == "loops" and _adds_loops(MODELS[model].card.recipe))
    return f"{model}.{name}" if own else name


def settings_of(model: str, space: Space, parameters: Mapping[str, object]) -> Settings:
    """The settings that Optuna's parameters mean."""
    found = {name: parameters[parameter(model, name)] for name in space}
    return {name: _rounded(space[name], value) for name, value in found.items()}


def parameters_of(
    model: str, space: Mapping[str, Range | Choice], settings: Mapping[str, object]
) -> Settings:
    """Optuna's parameters for these settings; a number becomes the nearest that is tried."""
    return {parameter(model, name): _inside(space[name], settings[name]) for name in space}


def _rounded(search: Range | Choice, value: object) -> object:
    if isinstance(search, Choice) or not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if search.log else round(value, 6)


def _inside(search: Range | Choice, value: object) -> object:
    """The value itself, or the nearest that is tried; of words, the first."""
    if isinstance(search, Choice):
        if value in search.values or not isinstance(value, int | float):
            return value if value in search.values else search.values[0]
        return min(search.values, key=lambda one: abs(float(one) - value))
    assert isinstance(value, int | float)
    number = float(np.clip(value, search.low, search.high))
    if search.step is None:
        return number
    return round(search.low + round((number - search.low) / search.step) * search.step, 6)


BASELINES = ("mlp", "gcn")  # without the graph, and the plainest model with it
SEARCHED = ("gcnii-plus", "gcnii-star", "gcn", "dropedge-gcn", "graphsage-mean", "mlp")
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
STOP_FEW: Settings = {"patience": 150, "monitor": "val_loss"}
# At one half, a score says little of several labels per node.
STOP_SEVERAL: Settings = {"monitor": "val_loss"}
VERSION = 2  # of what a trial's settings mean; a study of another version is another study
WEIGHTED = 3  # the same of a graph with edge weights, whose trials choose what they count
NESTED = 4  # the same of a graph with several splits, each of which chooses for itself
NUMERIC = 10  # added where features are numbers, whose trials choose `quantile` and `structure`


def searched(graph: Graph) -> tuple[str, ...]:
    """The models of a search that names none: those that can use types of edges, if there are."""
    return tuple(name for name in SEARCHED if not graph.typed or MODELS[name].uses_types)


@dataclass(frozen=True, eq=False)
class Question:
    """What a study asks.

    models  names of the registry; the baselines are always among them
    seeds   runs per trial; seed s is on split s modulo the number of splits
    fixed   settings that are given, and not searched
    before  whether it is asked as before there were choices for features that are numbers
    """

    graph: Graph
    models: tuple[str, ...] = SEARCHED
    seeds: int = SEEDS
    metric: Metric = "auto"
    fixed: Settings = field(default_factory=dict)
    before: bool = False

    @classmethod
    def of(
        cls,
        graph: Graph,
        models: Sequence[str] | None = None,
        seeds: int | None = None,
        metric: Metric = "auto",
        fixed: Mapping[str, object] | None = None,
    ) -> Question:
        """The question, with what is not given chosen for the graph; refuses what cannot be."""
        refuse_no_graph(graph)
        make_runs(graph, None, None)  # refuses a graph without labels or splits
        if metric == "auto" and "metric" not in (fixed or {}) and rare_class(graph) is not None:
            metric = "ap"
        models = (models,) if isinstance(models, str) else models
        if models is not None and not (isinstance(models, Sequence) and models):
            raise InputError(f"models must be a list of one or more names, got {models!r}")
        names = tuple(dict.fromkeys((*map(known_model, models or searched(graph)), *BASELINES)))
        seeds = _seeds(graph, whole("seeds", seeds, 1))
        if seeds > MOST_GIVEN:
            raise InputError(f"seeds must be at most {MOST_GIVEN} per setting, got {seeds}")
        _refuse_unknown(fixed or {}, names)
        question = cls(graph, names, seeds, metric, dict(fixed or {}))
        plans = [question.plan(model, {}) for model in names]
        plain = {name: one for plan in plans for name, one in plan.settings.items()}
        question = replace(question, fixed={name: plain[name] for name in question.fixed})
        for each in (graph, question.hidden):  # before a search, not after it
            plans[0].recipe.refuse_labels(each, range(len(each.splits)))
        if graph.targets:  # scores decide between settings, whatever decides within a run
            refuse_equal_numbers(each, metric, range(len(each.splits)))
        return question

    @property
    def identity(self) -> Document:
        """What identifies the question: asked again, it resumes its study.

        No label of a node that any split tests is in it, for proposals are drawn from it.
        """
        version = NESTED if self.nested else WEIGHTED if self.graph.weighted else VERSION
        return {
            "version": version + NUMERIC * self.numeric,
            "graph": self._told.fingerprint,
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
        return f"{self.graph.name}-{document_key(self.identity)}"

    @property
    def score(self) -> Score:
        """What its scores are of."""
        return target_of(self.graph).score(self.metric)

    @property
    def measured(self) -> str:
        """Its name."""
        return self.score.name

    def space(self, model: str) -> Space:
        """What is tried of a model."""
        return space_of(model, self.graph, self.metric, self.fixed, numeric=self.numeric)

    @cached_property
    def numeric(self) -> bool:
        """Whether features are numbers rather than words, and it is not asked as before."""
        return not self.before and auto_scale(self.graph) == "standard"

    def plan(self, model: str, settings: Mapping[str, object]) -> Plan:
        """The plan of a trial: on the full graph, because replicas are trained as one batch.

        All models stop alike, whatever their presets say.
        """
        given = {name: one for name, one in self.given.items() if name in _known(model)}
        return make_plan(model, {**self.stop, **settings, **given}, self.graph)

    @cached_property
    def default(self) -> Plan:
        """What `gcnii train` would train, or the first of the models if they leave that one out.

        It stops as `train` does, but is monitored as all trials are, so that scores are comparable.
        """
        model = chosen_model(None, self.graph)
        if not self.free and model not in self.models:
            model = self.models[0]
        same = {name: self.stop[name] for name in ("batches", "monitor")}
        given = {name: one for name, one in self.given.items() if name in _known(model)}
        return make_plan(model, {**same, **given}, self.graph)

    @property
    def free(self) -> bool:
        """Whether no models are named."""
        return self.models == searched(self.graph)

    @property
    def nested(self) -> bool:
        """Whether there are several splits: no one choice for all of them is free of test nodes."""
        return len(self.graph.splits) > 1

    @property
    def combines(self) -> bool:
        """Whether the best are combined, those of each split: else one setting wins."""
        return self.nested or self.from_portfolio

    @property
    def from_portfolio(self) -> bool:
        """Whether a search goes on from the portfolio, as no models are named."""
        shared = self.free and self.fixed.keys() <= SHARED
        return shared and (self.nested or self.trains_portfolio)

    @cached_property
    def trains_portfolio(self) -> bool:
        """Whether `gcnii train` would combine the members of its portfolio."""
        return self.free and combines(self.graph, None, "published", self.fixed)

    def course(self, session: Session = SILENT) -> Course:
        """What is trained before a search whose best are combined."""
        if self.from_portfolio:
            return prepared(self.graph, self.given, session)
        plans = {name: self.plan(name, {}) for name in BASELINES}
        points = [Point(name, plan.model, plan.settings) for name, plan in plans.items()]
        return prepared(self.graph, None, session, points=(self.train_point, *points))

    @property
    def train_point(self) -> Point:
        """The single model that `gcnii train` would train."""
        return Point("default", self.default.model, self.default.settings)

    @property
    def given(self) -> Settings:
        """What all members of a portfolio are given."""
        return self.fixed | ({} if self.metric == "auto" else {"metric": self.metric})

    @cached_property
    def stop(self) -> Settings:
        """By which rule all trials stop."""
        few, one = few_labels(self.graph), isinstance(target_of(self.graph), Classes)
        return STOP | (STOP_FEW if few else {}) | ({} if one else STOP_SEVERAL)

    @cached_property
    def hidden(self) -> Graph:
        """The graph as the search sees it: no split has test nodes, no label that only they have.

        Split s is that of seed s, where the nodes that are not test are divided anew.
        """
        graph, splits = self.graph, self.graph.splits
        tested = np.all([split.test for split in splits], axis=0)
        y = graph.labels.copy()
        y[tested] = np.nan if graph.targets else -1
        drawn_again = len(splits) == 1 and graph.times is None  # else the order of time would go
        if drawn_again and splits[0].val.sum() < ENOUGH:
            splits = tuple(_divided_anew(graph, splits[0], seed) for seed in range(self.seeds))
        none = np.zeros(graph.n, bool)
        bare = tuple(Split(train=split.train, val=split.val, test=none) for split in splits)
        target = target_of(graph)
        # Without names, k would be lower where only test nodes are of the last class.
        classes = target.names if isinstance(target, Classes) else graph.classes
        return replace(graph, y=y, splits=bare, classes=classes)._loaded_as(graph)

    @property
    def _told(self) -> Graph:
        """The graph without any label of a test node, of whichever split."""
        if not self.nested:
            return self.hidden
        y = self.graph.labels.copy()
        y[np.any([split.test for split in self.graph.splits], axis=0)] = 0
        return replace(self.hidden, y=y)

    @property
    def divided_anew(self) -> bool:
        """Whether the search divides the nodes that are not test anew for each seed."""
        return len(self.hidden.splits) != len(self.graph.splits)

    @property
    def final_seeds(self) -> range:
        """Fresh seeds for a winner of a single split."""
        return range(FRESH, FRESH + FINAL)

    @cached_property
    def final_runs(self) -> int:
        """The runs of a setting that is trained anew: fresh seeds, or those of every member."""
        return len(self.course().layout if self.combines else self.final_seeds)


def _known(model: str) -> set[str]:
    return {*model_defaults(model), *RECIPE_FIELDS}


def _refuse_unknown(fixed: Mapping[str, object], models: tuple[str, ...]) -> None:
    """Raise InputError for a setting that none of the models has: it would have no effect."""
    known = set().union(*map(_known, models))
    for name in fixed:
        if name not in known:
            of = f"none of {', '.join(models)} has a setting {name!r}"
            raise InputError(f"{of}; {suggestion(name, sorted(known))}")


def _seeds(graph: Graph, given: int | None) -> int:
    """SEEDS, or as many as validate on SURE nodes in all; at least one on every split."""
    splits = len(graph.splits)
    if splits > 1:
        if given and given < splits:
            notice(f"each of the {splits} splits chooses for itself: {splits} seeds, not {given}")
        return max(given or splits * ceil(SEEDS / splits), splits)
    nodes = int(graph.splits[0].val.sum())
    return given or int(np.clip(ceil(SURE / nodes), SEEDS, MOST_SEEDS))


def _divided_anew(graph: Graph, split: Split, seed: int) -> Split:
    """As many training nodes as in the split, of each class where a node has one label."""
    random, pool = np.random.default_rng(seed), np.flatnonzero(split.train | split.val)
    kind = strata(graph.labels)
    train = np.zeros(graph.n, bool)
    for label in np.unique(kind[pool]):
        own = random.permutation(pool[kind[pool] == label])
        train[own[: int(split.train[own].sum())]] = True
    val = (split.train | split.val) & ~train
    if not val.any() or not train.any():
        raise GraphError(f"{graph.name} has too few labels to be divided anew; label more nodes")
    return Split(train=train, val=val, test=np.zeros(graph.n, bool))


GoodPoint = tuple[str, Settings]


def _good() -> Iterator[GoodPoint]:
    """The points of good.toml; what is not said of GCNII+ is as it is in GCNII."""
    said = tomllib.loads(Path(__file__).with_name("good.toml").read_text("utf-8"))
    known = {point.name: point.settings for point in PORTFOLIO} | said["settings"]
    for block in said["points"]:
        models, names = block.pop("models"), block.pop("of")
        for settings, model in product((known[name] for name in names), models):
            plain = {"input_dropout": settings.get("dropout"), **PLAIN}
            yield model, {**(plain if model == "gcnii-plus" else {}), **settings, **block}


GOOD = tuple(_good())
# With each of which GCNII is tried; what a graph has no choice of is its first choice.
CHANGES: tuple[Settings, ...] = (
    *({"scale": scale} for scale in ("none", "standard", "length", "quantile")),
    {"structure": "walk"},
)


def first_points(question: Question) -> list[Settings]:
    """Optuna's parameters of the first trials, `model` among them."""
    points: list[GoodPoint] = [(model, {}) for model in (*BASELINES, question.models[0])]
    if question.combines:  # the portfolio has them, and is trained before
        points = []
    points += GOOD
    points += [(model, settings | one) for one in CHANGES for model, settings in GOOD[:8]]
    found: list[Settings] = []
    for model, settings in points:
        if question.from_portfolio and _in_portfolio(settings, question.graph):
            continue
        if model in question.models and ("views" not in settings or few_labels(question.graph)):
            plan = question.plan(model, settings)
            own = parameters_of(model, question.space(model), plan.settings)
            if (point := {"model": model, **own}) not in found:
                found.append(point)
    return found


def _in_portfolio(settings: Settings, graph: Graph) -> bool:
    """Whether a member of the portfolio has these settings, under any name of its model."""
    names = EXTENTS["standard"].points or ()
    known = (point.settings for point in portfolio(graph) if point.name in names)
    return any(len(one) > 1 and one.items() <= settings.items() for one in known)


STUDY = "study.json"
SHAPE = {"winner": {"model": str, "settings": dict}}
# What a study asked, so that another does not take its place.
ASKED = ("version", "fingerprint", "models", "seeds", "metric", "fixed")


def winner_in(folder: Path) -> tuple[str, Settings]:
    """The model and the settings of a study's winner, or of a bundle."""
    folder = user_path(folder)
    if (folder / STUDY).exists():
        won = read_document(folder / STUDY, SHAPE, "study", lambda document: document["winner"])
        return won["model"], won["settings"]
    if (folder / "run.json").exists():
        record = read_record(folder)
        return str(record["model"]), dict(record["settings"])
    raise InputError(
        f"{folder} holds neither {STUDY} nor a bundle; give the folder that `gcnii tune` wrote"
    )


def asked_in(folder: Path) -> Document:
    """What the study in a folder asked."""
    asked: Document = read_document(folder / STUDY, {}, "study", dict)
    return {name: asked.get(name) for name in ASKED}
