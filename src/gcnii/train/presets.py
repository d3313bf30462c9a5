"""What fills in the settings that are not given: published settings, records, the portfolio.

presets.toml holds what was published, by data set and model.  record.json holds the best that our
own searches have found.  All other graphs, your own among them, are trained with the points of
portfolio.toml.  A model that is named has the settings of its best point.
docs/understand/defaults.md describes both.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from gcnii.data.catalog import CATALOG
from gcnii.errors import InputError
from gcnii.files import Document, Only, read_document
from gcnii.graph import Graph

Settings: TypeAlias = dict[str, Any]

HERE = Path(__file__).parent
PUBLISHED, POINTS = HERE / "presets.toml", HERE / "portfolio.toml"
LIKE = {"ppi-like": "ppi"}  # a stand-in is trained like the data set it stands for


@cache
def _published() -> Mapping[str, Mapping[str, tuple[str, Settings]]]:
    """data set → model → who published its settings, and these."""
    found: dict[str, dict[str, tuple[str, Settings]]] = {}
    for block in tomllib.loads(PUBLISHED.read_text("utf-8"))["published"]:
        for name, own in block["on"].items():
            given = own | block.get("settings", {})
            # TOML has lists where settings have tuples: `fanout`.
            settings = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
            by_model = dict.fromkeys(block["models"], (block["by"], settings))
            found[name] = found.get(name, {}) | by_model
    return found | {name: found[other] for name, other in LIKE.items()}


def uses_own_default(name: str) -> bool:
    """Whether a graph of this catalog name is trained with the portfolio.

    So are your own graphs, whose name is empty, that of tables, and downloaded ones without
    published settings.  Another generated graph keeps the defaults of the model and of Recipe, on
    which earlier results rest.
    """
    if name not in CATALOG:
        return not name
    return CATALOG[name].tables or (bool(CATALOG[name].files) and not presets_of(name))


def presets_of(name: str) -> Mapping[str, Settings]:
    """model → settings for a data set of the catalog; empty if none were published."""
    return {model: settings for model, (_, settings) in _published().get(name, {}).items()}


def preset(name: str, model: str) -> Settings:
    """A new dict of the settings for a model on a data set; empty if none were published."""
    return dict(presets_of(name).get(model, {}))


def published_by(name: str, model: str) -> str:
    """Who published the settings of a model on a data set; "" if nobody did."""
    return _published().get(name, {}).get(model, ("", {}))[0]


# Records: for a data set, the best settings that our own searches have found, by validation alone.
# They are winners of `gcnii tune`, not published ones; `gcnii reproduce beyond` measures them.

FILE = HERE / "record.json"  # made by `gcnii reproduce adopt-record`
_RECORDS = {str: Only({"model": str, "settings": dict, "tried": int, "val": float})}


@dataclass(frozen=True)
class Record:
    """The choice of our searches on a data set.

    settings  that differ from the defaults of the model and of Recipe; nothing published is below
    tried     the number of settings that it was chosen from
    val       its mean validation score
    """

    model: str
    settings: Settings
    tried: int
    val: float

    def document(self) -> Document:
        """As record.json has it."""
        return asdict(self) | {"settings": dict(sorted(self.settings.items()))}


def records(file: Path | None = None) -> dict[str, Record]:
    """data set → its record, of those that have one; `file` is FILE unless given."""
    file = file or FILE
    held: Document = read_document(file, _RECORDS, "file of record settings", dict)
    return {name: Record(**record) for name, record in held.items()}


def record_of(name: str, graph: str = "") -> Record:
    """The record of a data set of the catalog; InputError, naming the graph, if there is none."""
    held = records()
    if name not in held:
        known = f"there are some for {', '.join(held)}" if held else "no data set has any yet"
        raise InputError(
            f"{graph or name} has no record settings; {known}; leave the preset out, or search "
            "with `gcnii tune`"
        )
    return held[name]


# The portfolio.

STOP: Settings = {"epochs": 500, "patience": 60}
LONGEST = 4000  # epochs on a user's own graph that still improves after STOP's


@dataclass(frozen=True)
class Point:
    """A model with settings, under a name of its own."""

    name: str
    model: str
    settings: Settings


PORTFOLIO = tuple(
    Point(name, **one) for name, one in tomllib.loads(POINTS.read_text("utf-8")).items()
)
_GIVEN = {point.name: point.settings for point in PORTFOLIO}
SOME, MANY = _GIVEN["gcnii-mild"], _GIVEN["gcnii-table"]
# GCNII+ without its options.
PLAIN: Settings = {
    **{"product_first": False, "row_norm": "none", "head": "last", "residual": False},
    "loops": "keep",
}
# The point that a model has where it is named, and no settings are given.
ALONE = {"gcnii": "gcnii-mild", "gcnii-plus": "plus-features"}

FAMILY = ("gcnii-star", "gcnii-star-printed")  # have GCNII's settings, as in the paper
OURS = ("gcnii-plus",)  # nobody published settings for it, on any graph

# GraphSAGE's card samples neighbours, for graphs that exceed memory.  Below this number of nodes an
# epoch on the full graph needs a few hundred MB, and sampling only adds noise and time.
MOST_NODES = 200_000
SAMPLING = frozenset({"batches", "batch_size", "clusters", "fanout", "history"})


def portfolio(graph: Graph) -> list[Point]:
    """The points that apply to a graph: those of one direction need a directed one.

    Models that cannot use edge weights, or types of edges, are left out where there are some.
    """
    from gcnii.nn import MODELS  # which loads torch, and plans do without

    return [
        point
        for point in PORTFOLIO
        if (graph.directed or "direction" not in point.settings)
        and (not graph.weighted or MODELS[point.model].card.uses_weights)
        and (not graph.typed or MODELS[point.model].uses_types)
    ]


def first_point(model: str) -> Point | None:
    """Where a model that is named has its settings from; None if it keeps those of its card."""
    wanted = "gcnii" if model in FAMILY else model
    name = ALONE.get(wanted)
    own = (point for point in PORTFOLIO if point.model == wanted)
    return next((point for point in own if name in (None, point.name)), None)


def presets_for(
    model: str, graph: Graph, given: Mapping[str, object] | None = None
) -> Iterator[tuple[str, Settings]]:
    """Settings for a graph and where they come from, each over those before it.

    They are what was published for the graph, or else the default for graphs without.  `given` are
    settings that are given: someone who sets how to sample wants to sample.
    """
    given, name = given or {}, graph.catalog_name
    if model not in OURS and not uses_own_default(name):
        who = published_by(name, model)
        yield f"published: {who}" if who else "preset, tried by hand", preset(name, model)
        return
    without = "default for graphs without published settings"
    yield without, _of_every_model(graph)
    yield "default for two classes, one of them rare", _of_a_rare_class(graph, given)
    if point := first_point(model):
        yield without, _stopping(graph, given)
        if model == "graphsage-mean" and graph.n <= MOST_NODES and not SAMPLING & given.keys():
            yield without, {"batches": "full"}
        yield f"point {point.name} of the portfolio", point.settings


def _of_every_model(graph: Graph) -> Settings:
    """Features, edges and labels."""
    return {
        "scale": "auto",
        **({"direction": "both"} if graph.directed else {}),
        **({"edge_weights": "auto"} if graph.weighted else {}),
        **({"label_threshold": "validation"} if graph.multilabel else {}),
    }


def _of_a_rare_class(graph: Graph, given: Mapping[str, object]) -> Settings:
    """What finds it: accuracy would be high without; nothing where accuracy is asked for."""
    from gcnii.targets.objective import rare_class  # which loads torch
    from gcnii.train.stopping import RULES

    rule = RULES.get(str(given.get("monitor")))
    named = {str(given.get("metric", "auto")), rule.metric if rule else "auto"} - {"auto"}
    if rare_class(graph) is None or "accuracy" in named:
        return {}
    return {"label_threshold": "validation"} | ({} if named else {"metric": "ap"})


def _stopping(graph: Graph, given: Mapping[str, object]) -> Settings:
    """When a model of the portfolio stops; others keep their own rules.

    A graph of one's own is trained on while it improves, unless epochs or the monitor `last` is
    given.
    """
    # The score that a monitor sees is that at one half, not at thresholds from validation.
    by_loss = graph.multilabel or graph.targets
    monitor = {"monitor": "val_loss" if by_loss else "val_score_loss"}
    ends = graph.catalog_name or "epochs" in given or given.get("monitor") == "last"
    return STOP | monitor | ({} if ends else {"longest": LONGEST})
