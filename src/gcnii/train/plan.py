"""A plan: which model, with which settings, trained how; presets fill in what is not given."""

from __future__ import annotations

import inspect
import json
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Literal, TypeAlias, cast, get_args, get_origin, get_type_hints

import numpy as np

from gcnii.errors import InputError, is_one_of, notice, suggestion, visible
from gcnii.files import Document
from gcnii.graph import Graph, Piece
from gcnii.graph.past import features_there, past
from gcnii.graph.weights import EdgeWeights, about_skew, chosen_kind
from gcnii.nn import MODELS, Model
from gcnii.nn.model import DrawnFrom
from gcnii.nn.settings import Settings, check_settings, setting_of
from gcnii.targets import target_of
from gcnii.targets.objective import rare_class, scarce_class
from gcnii.train.features import WIDTHS, Kind, Structure, choose
from gcnii.train.presets import presets_for, record_of, uses_own_default
from gcnii.train.recipe import RECIPE_FIELDS, Recipe, in_force, recipe_hints

# What fills in the settings that are not given: what was published for the graph, else the default
# for graphs without; or the best that our own searches have found for it.
Preset: TypeAlias = Literal["published", "record"]


@dataclass(frozen=True)
class Plan:
    """A model of the registry, its settings, and a Recipe.

    sources  setting → where its value comes from, in words; it decides nothing
    types    of edges that the model weighs; 1: it takes all edges alike
    """

    model: str
    model_settings: Mapping[str, Any]
    recipe: Recipe
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    types: int = 1

    @property
    def settings(self) -> Settings:
        """Every setting of model and recipe in one flat dictionary, as JSON has it."""
        settings = dict(self.model_settings) | asdict(self.recipe)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in settings.items()
        }

    @property
    def structure(self) -> Structure:
        """What is added to the features: nothing for a model that does not use the graph."""
        return self.recipe.structure if MODELS[self.model].card.uses_graph else "none"

    def identity(self, fingerprint: str) -> Document:
        """What decides a run beside its seed: the graph, the model and the settings in force."""
        return {"graph": fingerprint, "model": self.model, "settings": in_force(self.settings)}

    def build(self, d: int, k: int, seed: int = 0) -> Model:
        """The model with the weights of this seed: drawn on the CPU, the same on every device.

        d  features of the graph, beside which the model takes the columns of its structure
        """
        d += WIDTHS[self.structure]
        with DrawnFrom(seed):
            model = MODELS[self.model](d, k, **self.model_settings)
            return model.over_types(self.types).to(self.recipe.dtype)

    def over(self, types: int) -> Plan:
        """The plan for a graph with edges of so many types, if it does not ignore them."""
        used = self.recipe.edge_types == "use" and MODELS[self.model].card.uses_graph
        return replace(self, types=types) if used else self


def make_plan(
    model: str,
    settings: Mapping[str, Any],
    graph: Graph | None = None,
    preset: Preset = "published",
) -> Plan:
    """Settings given, over a preset, over the model card's, over the defaults of the classes.

    The preset is what was published for a graph of the catalog, or else the default for graphs
    without one, or our record; without a graph there is none.  A scale "auto" becomes what it means
    for the graph.
    """
    defaults = model_defaults(known_model(model))
    known = (*defaults, *RECIPE_FIELDS)
    for name in settings:
        if name not in known:
            raise InputError(f"{model} has no setting {name!r}; {suggestion(name, known)}")
    sources = dict.fromkeys(RECIPE_FIELDS, "default of Recipe")
    sources |= dict.fromkeys(defaults, f"default of {model}")
    merged: Settings = {}
    for source, layer in _layers(model, settings, graph, preset):
        if layer.get("metric") == "auto":  # what the layers before it say
            layer = {name: one for name, one in layer.items() if name != "metric"}
        merged |= layer
        sources |= dict.fromkeys(layer, source)
    recipe = Recipe(**{name: merged[name] for name in RECIPE_FIELDS if name in merged})
    if graph is not None and recipe.scale == "auto":
        recipe = replace(recipe, scale=auto_scale(graph))
        sources["scale"] += ": auto, by the features"
    if graph is not None and recipe.edge_weights == "auto":
        recipe = replace(recipe, edge_weights=_auto_weights(graph))
        sources["edge_weights"] += ": auto, by the weights"
    model_settings = {name: merged.get(name, default) for name, default in defaults.items()}
    model_settings = check_settings(model_hints(model), model_settings)
    _check_batches(model, recipe)
    if graph is not None:
        refuse_edges(graph, model, recipe)
    if recipe.memory in ("recompute", "offload") and not MODELS[model].can_recompute:
        raise InputError(f"{model} cannot recompute its activations; use memory auto or keep")
    plan = Plan(model, model_settings, recipe, {name: sources[name] for name in known})
    return plan if graph is None else plan.over(graph.type_count)


# Settings that draw no mask at 0, after which the masks of dropout differ.
DRAWN = ("drop_edge", "drop_node")


def batched(model: str) -> frozenset[str]:
    """The settings of a model and its recipe in which the replicas of one batch may differ."""
    of_recipe = {name for name, hint in recipe_hints().items() if setting_of(hint)[1].batched}
    return MODELS[model].batched & set(model_defaults(model)) | of_recipe


def batch_key(plan: Plan) -> str:
    """Plans with the same key can be trained as one batch: they differ in numbers alone."""
    apart = batched(plan.model)
    rest = {name: value for name, value in plan.settings.items() if name not in apart}
    about = {"model": plan.model, **{name: getattr(plan.recipe, name) > 0 for name in DRAWN}}
    return json.dumps(about | {"settings": rest}, sort_keys=True)


def make_plans(
    model: str,
    settings: Mapping[str, Any],
    graph: Graph | None = None,
    each: Sequence[Mapping[str, Any]] | None = None,
    preset: Preset = "published",
) -> list[Plan]:
    """A plan for each of several settings that can be trained as one batch.

    settings  for all of them; lists, in fields that can be batched, go together and must be of
              equal length
    each      or one dictionary for each, beside `settings`
    """
    can = batched(known_model(model))
    lists = {name: value for name, value in settings.items() if _is_list(name, value, model)}
    listed = each is None or (
        isinstance(each, Sequence) and each and all(isinstance(one, Mapping) for one in each)
    )
    if not listed:
        raise InputError(f"settings must be a list of one or more dictionaries, got {each!r}")
    if each is not None and lists:
        raise InputError(f"give several values of {', '.join(lists)} in `settings`, or as lists")
    if wrong := sorted((lists.keys() | {name for one in each or () for name in one}) - can):
        raise InputError(
            f"{wrong[0]} must be the same in one fit, got several; call fit for each, or let tune "
            f"try them. Lists may be given for {', '.join(sorted(can))}"
        )
    if len({len(values) for values in lists.values()}) > 1:
        counts = ", ".join(f"{name} {len(values)}" for name, values in lists.items())
        raise InputError(f"lists of settings must be of one length, got {counts}")
    shared = {name: value for name, value in settings.items() if name not in lists}
    if each is None:
        rows = zip(*lists.values(), strict=True)
        each = [dict(zip(lists, row, strict=True)) for row in rows] if lists else [{}]
    if not each:
        raise InputError(f"{', '.join(lists)} must have one value or more, got none")
    plans = [make_plan(model, {**shared, **one}, graph, preset) for one in each]
    for name in DRAWN:
        if len({getattr(plan.recipe, name) > 0 for plan in plans}) > 1:
            raise InputError(f"{name} must be 0 in all settings of a fit, or in none")
    return plans


def _is_list(name: str, value: object, model: str) -> bool:
    """Whether a setting is given several values; `fanout` is one tuple."""
    hints = recipe_hints() | model_hints(model)
    several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    return several and not (name in hints and get_origin(get_args(hints[name])[0]) is tuple)


def _layers(
    model: str, given: Mapping[str, Any], graph: Graph | None, preset: Preset
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Settings and where they come from, each over those before it: the order of precedence."""
    yield f"card of {model}", MODELS[model].card.recipe
    if graph is not None and preset == "record":
        record = record_of(graph.catalog_name, graph.name)
        yield f"record: by validation the best of {record.tried} settings", record.settings
    elif graph is not None:
        yield from presets_for(model, graph, given)
    yield "given", given


AUTO = "auto"  # in the place of a model: that several are to be combined
# Settings that all members of a portfolio can be given: what is asked, not how a model learns.
SHARED = frozenset(
    {
        *("metric", "positive", "class_weight", "focal", "edge_weights", "scale"),
        *("label_threshold", "cost"),
        *("epochs", "patience", "precision", "memory"),
    }
)


def combines(
    graph: Graph,
    model: str | None,
    preset: Preset,
    given: Collection[str],
    *,
    one_training: bool = False,
) -> bool:
    """Whether a portfolio is trained: it is asked for, or nothing says otherwise.

    one_training  whether something is asked for that only one training can have, such as its log
    """
    chosen = None if is_one_of(model, [""]) else model
    alone = sorted(name for name in given if name not in SHARED)
    if is_one_of(chosen, [AUTO]):
        if alone or one_training or preset == "record" or isinstance(graph, Piece):
            what = f"the setting {alone[0]}" if alone else "a log, a checkpoint or a record"
            what = "a graph in several processes" if isinstance(graph, Piece) else what
            raise InputError(f"{what} is for one model, and auto combines several; name a model")
        return True
    open_question = chosen is None and preset == "published" and not alone and not one_training
    is_graph = isinstance(graph, Graph) and not isinstance(graph, Piece)
    return open_question and is_graph and uses_own_default(graph.catalog_name)


def refuse_no_graph(graph: object) -> None:
    """Raise InputError for what is given in the place of a graph."""
    if not isinstance(graph, Graph):
        raise InputError(
            f"graph must be a gcnii.Graph, got {type(graph).__name__}; gcnii.load reads one"
        )


def chosen_model(model: str | None, graph: Graph, preset: Preset = "published") -> str:
    """The model that is given; else gcnii, or that of the record with the preset `record`."""
    refuse_no_graph(graph)
    if not is_one_of(preset, get_args(Preset)):
        raise InputError(f"preset must be {' or '.join(get_args(Preset))}, got {preset!r}")
    if preset == "published":
        return "gcnii" if model is None or is_one_of(model, [""]) else model
    found = record_of(graph.catalog_name, graph.name).model
    if model is not None and not is_one_of(model, [found]):
        raise InputError(
            f"the record of {graph.name} has settings of {found}, got the model {model}; leave the "
            "model out, or the preset"
        )
    return found


def source_of_model(model: str | None, preset: Preset = "published") -> str:
    """Where the model that `chosen_model` returns comes from, in words."""
    if preset == "record":
        return "record"
    return "given" if model else "default"


def auto_scale(graph: Graph) -> Kind:
    """What the scale "auto" means for a graph; a Piece knows it of the whole."""
    if not isinstance(graph, Piece):
        return choose(features_there(past(graph, "train")), graph.columns)
    known = graph.whole.known
    if "traits" in known:  # an older gcnii, in which the default and "auto" differed
        sparse = cast(Document, known["traits"])["sparse"]
        return "length" if sparse else "standard"
    return cast(Kind, known["scale"])


def _auto_weights(graph: Graph) -> EdgeWeights:
    """What the edge weights "auto" mean for a graph; parts of an older gcnii keep the older way."""
    if not graph.weighted:
        return "raw"
    if isinstance(graph, Piece) and "weights" not in graph.whole.known:
        notice(
            f"the parts of {graph.name} were packed by an older gcnii and do not tell what a "
            "typical edge weighs; weights count as they are (raw): pack the graph again"
        )
        return "raw"
    return chosen_kind(past(graph, "train").typical_weights)


def warn_about(graph: Graph, plan: Plan, given: Container[str]) -> None:
    """Warn if a few heavy edges dominate, or if that was avoided without being asked for.

    And if training nodes validate, for want of others, if a model takes no structure columns, or if
    more clusters are asked for than there are nodes.
    """
    asked = plan.recipe.clusters
    if plan.recipe.batches == "clusters" and "clusters" in given and asked > graph.n:
        notice(f"{graph.name} has {graph.n} nodes, and so as many clusters, not {asked}")
    if plan.structure != plan.recipe.structure:
        notice(f"{plan.model} does not use the graph, and so no columns of its structure")
    if sentence := about_rare(graph, plan.recipe, given):
        notice(sentence)
    whole = [] if isinstance(graph, Piece) else range(len(graph.splits))
    if any(graph.validation_is_drawn(i) for i in whole):
        notice(
            f"{graph.name} has no validation nodes; a fifth of its training nodes, drawn by "
            "chance, validates (with --model auto, all of them train)"
        )
    kind = plan.recipe.edge_weights
    if not graph.weighted or (kind == "raw" and isinstance(graph, Piece)):
        return
    if sentence := about_skew(graph.typical_weights, kind, given="edge_weights" in given):
        notice(f"{graph.name}: {sentence}")


def warn_of_idle(recipe: Recipe, given: Container[str]) -> None:
    """Warn of each given setting that is not used, because of another one."""
    for name, hint in recipe_hints().items():
        other, idle = setting_of(hint)[1].unused_when or ("", ())
        if name in given and (value := getattr(recipe, other, None)) in idle:
            notice(f"{name} is not used, since {other} is {value}")


FEW = 20  # nodes of a rare class


def about_rare(graph: Graph, recipe: Recipe, given: Container[str]) -> str:
    """That a class is rare, what follows from it by default, and how to have it otherwise.

    "" if there is no such class, or a metric was given.
    """
    j = scarce_class(graph)
    if j is None or "metric" in given or recipe.rule.metric != "auto":
        return ""
    known = np.any([split.train | split.val for split in graph.splits], 0)
    target, of_it = target_of(graph), graph.labels[known] == j
    name, score = target.names[j], target.score(recipe.scored_by).name
    share = f"{100 * of_it.mean():.2g} % of the labels of {graph.name} are {visible(name)}"
    if rare_class(graph) is None:
        return (
            f"{share}, and of no validation node of a split: {score} chooses, which can be as high "
            "without that class; let some of its nodes validate"
        )
    by = f"least cost at {recipe.cost}" if recipe.cost else "its best F1"
    who = visible(recipe.positive) if recipe.positive not in ("", name) else "it"
    decides = f", and {who} is named above the probability of {by} on validation"
    few = f"; {of_it.sum()} nodes are few to choose by" if of_it.sum() < FEW else ""
    return (
        f"{share}: {score} chooses, not accuracy{decides if recipe.has_threshold else ''}{few}; "
        "--metric accuracy undoes that, --positive names another class, --cost 10:1 says what a "
        "miss costs"
    )


def refuse_edges(graph: Graph, model: str, recipe: Recipe) -> None:
    """Raise InputError if this model would not use weights or types of edges with this recipe."""
    if graph.weighted and recipe.edge_weights != "none":
        _refuse_weights(model, recipe)
    if graph.typed and recipe.edge_types != "ignore" and MODELS[model].card.uses_graph:
        _refuse_types(model, recipe)


def _refuse_weights(model: str, recipe: Recipe) -> None:
    if recipe.geometry != "none":
        who = f"the neighbours of the geometry {recipe.geometry} have no weights"
    elif not MODELS[model].card.uses_weights:
        who = f"{model} does not use edge weights"
    else:
        return
    raise InputError(
        f"{who}; take a model that uses them, such as gcnii, or leave them out: edge_weights none "
        "(--edge-weights none)"
    )


def _refuse_types(model: str, recipe: Recipe) -> None:
    if recipe.geometry != "none":
        who = f"the neighbours of the geometry {recipe.geometry} have"
    elif recipe.diffusion != "none":
        who = f"the edges of the diffusion {recipe.diffusion} have"
    elif recipe.batches == "neighbours":
        who = "sampled neighbours have"
    elif not MODELS[model].uses_types:
        who = f"in {model}, edges have"
    else:
        return
    raise InputError(
        f"{who} no types; take a model that uses them, such as gcnii, on the full graph, or take "
        "all edges alike: edge_types ignore (--edge-types ignore)"
    )


def known_model(name: str) -> str:
    """The name itself, or an error that guesses which model was meant."""
    if not is_one_of(name, MODELS):
        known = (*MODELS, AUTO)
        raise InputError(f"no model {name!r}; {suggestion(name, known, '`gcnii models`')}")
    return name


@cache
def model_hints(model: str) -> dict[str, Any]:
    """The annotations of a model's settings, its class's keyword-only arguments."""
    hints = get_type_hints(MODELS[model].__init__, include_extras=True)
    return {name: hints[name] for name in model_defaults(model)}


def model_defaults(model: str) -> Settings:
    """The default of each of a model's settings."""
    parameters = inspect.signature(MODELS[model]).parameters.values()
    return {one.name: one.default for one in parameters if one.kind == one.KEYWORD_ONLY}


def _check_batches(name: str, recipe: Recipe) -> None:
    model = MODELS[name]
    if recipe.batches != "neighbours":
        return
    if not model.supports_sampling:
        raise InputError(
            f"{name} cannot be trained on sampled neighbours; use batches full, parts or clusters"
        )
    if recipe.drop_edge:
        raise InputError(
            "DropEdge does not apply to sampled neighbours; set drop_edge to 0, "
            f"got {recipe.drop_edge}"
        )
    if recipe.history != "none" and not model.supports_history:
        raise InputError(f"{name} does not use old activations; set history to none")
    if recipe.history != "none" and recipe.views > 1:
        raise InputError(
            f"history {recipe.history} remembers one activation of each node, got {recipe.views} "
            "views; set history to none or views to 1"
        )
