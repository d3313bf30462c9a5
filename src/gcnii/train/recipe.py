"""Recipe: how a model is trained.  Each setting is declared once, as a field.

The command line makes flags of the fields, a bundle stores them, and a run's key is made of those
that are in force.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_type_hints

import torch

from gcnii.dropout import DropForm
from gcnii.errors import InputError
from gcnii.graph.types import EdgeTypes
from gcnii.graph.weights import EdgeWeights
from gcnii.nn.settings import (
    ANY,
    Bounds,
    Choice,
    Range,
    Setting,
    Settings,
    check_settings,
    setting_of,
)
from gcnii.propagation import Diffusion, Direction, Geometry, Loops, Norm
from gcnii.propagation.diffusion import LONGEST_HEAT
from gcnii.targets import LabelTarget, target_of
from gcnii.targets.numbers import Loss
from gcnii.targets.objective import (
    ClassWeight,
    positive_class,
    refuse_equal_numbers,
    refuse_unranked,
)
from gcnii.targets.scores import Metric, sign_of
from gcnii.train.batches import Batching, History
from gcnii.train.features import Scale, Structure
from gcnii.train.stopping import RULES, Monitor, Rule

if TYPE_CHECKING:
    from gcnii.graph import Graph
    from gcnii.train.stopping import Run

Memory = Literal["auto", "keep", "recompute", "offload"]
Thresholds = Literal["half", "validation"]
Precision = Literal["float32", "float64", "tf32", "bfloat16"]

POSITIVE, NOT_NEGATIVE, SOME = Bounds(above=0), Bounds(least=0), Bounds(least=1)
SHARE = Bounds(least=0, below=1)
MOST_COST = 1e9  # of a miss or a false alarm
NO_CONSISTENCY = ("consistency", (0.0,))
NO_DIFFUSION = ("diffusion", ("none",))
NAMED_METRIC = ("monitor", tuple(name for name, rule in RULES.items() if rule.metric != "auto"))
OF_CLASSES = ("positive", "class_weight", "focal", "label_threshold", "cost", "consistency")


T = TypeVar("T")


def setting(default: T, help: str, bounds: Bounds = ANY, neutral: object = None, **more: Any) -> T:
    """A field with this default; the rest is as in `Setting`."""
    return field(default=default, metadata={"setting": Setting(help, bounds, neutral, **more)})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is trained; the defaults are the paper's for Cora (section 6.1).

    Parameters are the settings of `gcnii train --help-all`, by the same names with underscores, in
    one flat set of fields.  `fit` takes them as keywords, so that a Recipe is seldom made by hand.

    Examples
    --------
    >>> import gcnii
    >>> gcnii.Recipe(lr=0.005).decay_conv
    0.01
    """

    # Adam, with L2 penalties in the paper's two groups of weights.

    lr: float = setting(
        0.01, "learning rate of Adam", POSITIVE, search=Range(1e-3, 3e-2), batched=True
    )
    decay_conv: float = setting(
        0.01,
        "L2 penalty on the convolutions (the paper's L2_c)",
        NOT_NEGATIVE,
        search=Range(1e-6, 3e-2),
        batched=True,
    )
    decay_dense: float = setting(
        5e-4,
        "L2 penalty on the two dense layers (the paper's L2_d)",
        NOT_NEGATIVE,
        search=Range(1e-6, 1e-2),
        batched=True,
    )
    clip: float = setting(
        0.0, "clip every entry of the gradient to ± this; 0: no clipping", NOT_NEGATIVE, 0.0
    )

    # When training stops, and which weights it keeps.

    epochs: int = setting(1500, "maximum number of epochs", SOME, batched=True)
    longest: int = setting(
        0,
        "go on after `epochs`, up to this many, while the best epoch is among the last "
        "`patience`; 0: never; default: 4000 for a graph of your own where epochs is not given",
        NOT_NEGATIVE,
        neutral=0,
        batched=True,
    )
    patience: int = setting(100, "epochs without improvement before stopping", SOME, batched=True)
    monitor: Monitor = setting(
        "val_loss",
        "what counts as an improvement on validation: the loss, the score (see metric), or the "
        "score by the metric named; last: keep the last epoch's weights",
    )
    window: int = setting(
        0,
        "also stop when the validation loss exceeds the mean of this many epochs; 0: never",
        NOT_NEGATIVE,
        neutral=0,
    )
    window_from: int = setting(
        0, "first epoch in which the window counts", NOT_NEGATIVE, unused_when=("window", (0,))
    )
    plateau: int = setting(
        0,
        "epochs without improvement before the learning rate is lowered; 0: never",
        NOT_NEGATIVE,
        neutral=0,
    )
    plateau_factor: float = setting(
        0.5,
        "factor by which a plateau lowers the learning rate",
        Bounds(above=0, below=1),
        unused_when=("plateau", (0,)),
    )
    plateau_floor: float = setting(
        0.0, "smallest learning rate", NOT_NEGATIVE, unused_when=("plateau", (0,))
    )

    # What labels weigh in the loss, and how predicted ones are graded.

    metric: Metric = setting(
        "auto",
        "what the scores measure; auto: what the monitor names, else accuracy, or micro-F1 "
        "with several labels per node, or r2; f1: macro-F1, or micro-F1; auc: ROC AUC, and ap: "
        "average precision, of the positive class, else the mean over the classes; of numbers to "
        "predict, r2: R², mae: mean absolute error, or rmse: root of the mean squared error",
        neutral="auto",
        unused_when=NAMED_METRIC,
    )
    positive: str = setting(
        "",
        "the class that ROC AUC and average precision are of, and the threshold of two classes; "
        "default: of two the one of fewer training nodes, of more the mean over the classes",
        neutral="",
    )
    class_weight: ClassWeight = setting(
        "none",
        "weigh rare classes more in the training and validation loss; balanced: by "
        "n / (classes · n_c) on the training nodes; with several labels per node, a label's "
        "positives by negatives / positives, in [1, 100]",
        neutral="none",
        search=Choice(("none", "balanced")),
    )
    focal: float = setting(
        0.0,
        "let nodes that are easy weigh less in the loss, by (1 - p)^γ with this γ (focal loss)",
        Bounds(least=0, most=10),
        neutral=0.0,
        search=Choice((0, 1, 2)),
    )
    loss: Loss = setting(
        "squared",
        "of numbers to predict, in standard deviations: squared, or huber, which is linear beyond "
        "one of them, so that a few extreme numbers weigh less",
        neutral="squared",
    )
    label_threshold: Thresholds = setting(
        "half",
        "predict labels above one half, or above the probability that is best on validation: "
        "with several labels per node, by micro-F1; of two classes, by the F1 of `positive`, "
        "or by cost; default: validation with several labels, or a class of less than 20 %, in "
        "a graph of your own; it is found after training, and the monitor always uses one half",
        neutral="half",
    )
    cost: str = setting(
        "",
        "of two classes, what missing a node of `positive` costs, to what a false alarm "
        "costs, such as 10:1; the threshold is the one of least cost",
        neutral="",
    )

    # What is done to X before a model sees it.

    scale: Scale = setting(
        "none",
        "scale the features by column (standard, columns; quantile: by the rank in it) or by "
        "row (rows: of sum 1; length: of length 1); auto: length if sparse, ≥ 0, of one size "
        "and not a table's columns, else standard; default: none for a graph with published "
        "settings or a generated one, else auto",
        neutral="none",
        search=Choice(("none", "standard", "columns", "rows", "length", "quantile")),
    )
    structure: Structure = setting(
        "none",
        "add columns of the graph's structure to the features: the degrees; or (walk) these, "
        "PageRank and how likely a random walk returns in 2 and in 3 steps",
        neutral="none",
        search=Choice(("none", "degree", "walk")),
    )

    # How P is made of the graph.

    direction: Direction = setting(
        "out",
        "in a directed graph, gather from out-neighbours, in-neighbours or both; default: out "
        "in a graph with published settings, else both",
        search=Choice(("out", "in", "both")),
    )
    edge_weights: EdgeWeights = setting(
        "raw",
        "what edge weights count, beside a self-loop's 1: their rank, their logarithm, their "
        "ratio to the median, themselves (raw) or nothing (none); auto, the default of your "
        "own graph: rank if the heaviest 1 % of the edges carry 5 % of all weight, else median",
        neutral="raw",
        search=Choice(("median", "log", "rank", "none")),
    )
    edge_types: EdgeTypes = setting(
        "use",
        "gather over edges of each type with a learned share of each type in each layer, or "
        "over all edges alike (ignore)",
        neutral="use",
        search=Choice(("use", "ignore")),
    )
    loops: Loops = setting(
        "keep",
        "keep the graph's own self-loops beside the one that P̃ adds, or remove them; none: no "
        "node gathers from itself, and P̃ adds no loop either",
        search=Choice(("keep", "remove", "none")),
    )
    norm: Norm = setting(
        "symmetric",
        "how the propagation matrix is normalised",
        neutral="symmetric",
        search=Choice(("symmetric", "walk")),
    )
    diffusion: Diffusion = setting(
        "none", "replace the edges by a diffusion over them (GDC)", neutral="none"
    )
    teleport: float = setting(
        0.05,
        "probability of returning to the start in each step of a ppr diffusion",
        Bounds(above=0, below=1),
        unused_when=NO_DIFFUSION,
    )
    heat_time: float = setting(
        5.0,
        "how long a heat diffusion lasts",
        Bounds(least=0, most=LONGEST_HEAT),
        unused_when=NO_DIFFUSION,
    )
    top_k: int = setting(
        128,
        "number of a diffusion's largest edges to keep per node; 0: use threshold",
        NOT_NEGATIVE,
        unused_when=NO_DIFFUSION,
    )
    threshold: float = setting(
        1e-4,
        "with top_k 0, keep a diffusion's edges of at least this weight",
        NOT_NEGATIVE,
        unused_when=NO_DIFFUSION,
    )
    geometry: Geometry = setting(
        "none",
        "embedding in a plane that adds neighbours and sorts them (Geom-GCN)",
        neutral="none",
    )
    drop_edge: float = setting(
        0.0, "share of edges left out in each epoch (DropEdge)", SHARE, 0.0, batched=True
    )
    drop_form: DropForm = setting(
        "entries",
        "leave out edges one direction at a time, or both directions together",
        unused_when=("drop_edge", (0.0,)),
    )

    # How many views a step has, and how strongly they are pulled together (GRAND).

    views: int = setting(
        1,
        "random views of the graph in each step; the loss is their mean",
        SOME,
        1,
        search=Choice((1, 2, 4)),
    )
    drop_node: float = setting(
        0.0,
        "share of nodes whose features are set to zero in each view (DropNode)",
        SHARE,
        0.0,
        search=Range(0.0, 0.6, 0.1),
        batched=True,
    )
    consistency: float = setting(
        0.0,
        "weight of the distance of each view's probabilities, on all nodes, to the sharpened "
        "mean of the views (λ_c of GRAND)",
        NOT_NEGATIVE,
        0.0,
        search=Range(0.0, 1.6, 0.1),
        batched=True,
    )
    sharpen: float = setting(
        0.5,
        "temperature by which that mean is sharpened; 1: not at all",
        Bounds(above=0, most=1),
        unused_when=NO_CONSISTENCY,
        search=Range(0.1, 0.6, 0.1),
        batched=True,
    )
    warm_up: int = setting(
        0,
        "epochs over which the weight of consistency grows from 0",
        NOT_NEGATIVE,
        unused_when=NO_CONSISTENCY,
        search=Range(0, 300, 50),
        batched=True,
    )

    # What one step of training sees.

    batches: Batching = setting(
        "full", "what a step sees: the full graph, parts, clusters or neighbours", neutral="full"
    )
    batch_size: int = setting(
        0,
        "graphs, clusters or nodes per step; 0: 1 graph, 1 cluster or 512 nodes",
        NOT_NEGATIVE,
        unused_when=("batches", ("full",)),
    )
    clusters: int = setting(
        50,
        "number of clusters into which the graph is cut",
        SOME,
        unused_when=("batches", ("full", "parts", "neighbours")),
    )
    fanout: tuple[int, ...] = setting(
        (10, 25),
        "neighbours sampled per node, layer by layer from the last; 0: all",
        NOT_NEGATIVE,
        unused_when=("batches", ("full", "parts", "clusters")),
    )
    history: History = setting(
        "none",
        "old activations stand in for neighbours that were not sampled (VR-GCN)",
        unused_when=("batches", ("full", "parts", "clusters")),
    )

    # Where numbers are kept, and how exactly they are multiplied.

    memory: Memory = setting(
        "auto",
        "keep activations for backward, recompute them, or recompute them from states that "
        "wait in the host's memory (offload); auto: as memory allows",
        ignored=True,
    )
    precision: Precision = setting(
        "float32",
        "of the numbers; on a GPU, tf32 or bfloat16 round products for speed; in float64, "
        "tables and data sets of the catalog are still read as float32, arrays as they are",
        neutral="float32",
    )

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        for name, value in check_settings(recipe_hints(), vars(self)).items():
            object.__setattr__(self, name, value)
        if self.plateau and self.plateau_floor > self.lr:
            raise InputError(
                f"plateau_floor must be at most lr, from which the learning rate falls to it, got "
                f"{self.plateau_floor:g} with lr {self.lr:g}"
            )
        if self.cost:
            price_of(self.cost)
        if self.rule.noisy and self.batches != "full":
            raise InputError(
                f"monitor {self.monitor} needs the full graph in one batch, got batches "
                f"{self.batches}; monitor val_loss"
            )

        if self.metric not in ("auto", self.scored_by):
            raise InputError(
                f"monitor {self.monitor} needs metric {self.scored_by}, got {self.metric}; leave "
                "metric at auto, or monitor val_score, which follows the metric"
            )

    @property
    def scored_by(self) -> Metric:
        """What scores measure: what the monitor names, else `metric`."""
        return self.metric if self.rule.metric == "auto" else self.rule.metric

    def refuse_labels(self, graph: Graph, splits: Iterable[int]) -> None:
        """Raise an error if these splits' labels cannot be trained on or graded so."""
        target = target_of(graph)
        if not isinstance(target, LabelTarget):
            self._refuse_numbers(graph)
            if self.rule.by_score:
                refuse_equal_numbers(graph, self.scored_by, splits)
            return
        if self.loss != "squared":
            raise InputError(
                f"loss {self.loss} is for numbers to predict, but nodes of {graph.name} have "
                "labels; leave it at squared"
            )
        asked = f"cost {self.cost}" if self.cost else f"label_threshold {self.label_threshold}"
        if self.has_threshold and target.exclusive and not target.binary:
            raise InputError(
                f"{asked} is for two classes or several labels per node, but nodes of {graph.name} "
                f"have one of {target.k}; leave it out"
            )
        if self.cost and not target.exclusive:
            raise InputError(f"{asked} is for two classes, but nodes of {graph.name} have several")
        if self.positive:
            positive_class(graph, self.positive)
        if target.score(self.scored_by).ranks:
            refuse_unranked(graph, self.scored_by, splits, self.positive)

    def _refuse_numbers(self, graph: Graph) -> None:
        """Raise InputError for settings that speak of classes."""
        target_of(graph).score(self.scored_by)
        for name in OF_CLASSES:
            if (value := getattr(self, name)) != getattr(Recipe, name):
                raise InputError(
                    f"{name} {value} is for classes, but {graph.name} has numbers to predict; "
                    "leave it out"
                )

    @property
    def has_threshold(self) -> bool:
        """Whether a threshold is chosen on validation."""
        return self.label_threshold == "validation" or bool(self.cost)

    @property
    def price(self) -> float | None:
        """What a miss costs, in false alarms; None where F1 chooses."""
        return price_of(self.cost) if self.cost else None

    @property
    def rule(self) -> Rule:
        """What `monitor` names."""
        return RULES[self.monitor]

    def allowed(self, epochs: int) -> int:
        """The limit of epochs for a run that has done this number of them."""
        return self.epochs if epochs < self.epochs else max(self.epochs, self.longest)

    def cut_short(self, run: Run) -> bool:
        """Whether a run ended at its limit while validation was still improving."""
        at_limit = run.stopped and run.epochs >= max(self.epochs, self.longest) > self.patience
        return at_limit and self.monitor != "last" and run.epochs - run.best_epoch <= self.patience

    def best(self, runs: Sequence[Run]) -> int:
        """The index of the run that was best on validation."""
        sign = sign_of(self.scored_by)
        badness = [-sign * run.val if self.rule.by_score else run.val_loss for run in runs]
        # NaN for a run that diverged, or that has nothing to be judged by.
        return min(range(len(runs)), key=lambda i: (isnan(badness[i]), badness[i]))

    @property
    def dtype(self) -> torch.dtype:
        """`precision` as torch names it."""
        return torch.float64 if self.precision == "float64" else torch.float32


def price_of(cost: str) -> float:
    """ "10:1" → 10.0; InputError for anything but two numbers above 0."""
    found = re.fullmatch(r"(\d*\.?\d+) ?: ?(\d*\.?\d+)", cost)
    pair = [float(one) for one in found.groups()] if found else []
    if not pair or not all(0 < one < MOST_COST for one in pair):
        raise InputError(
            "cost must be what a miss and what a false alarm cost, two numbers above 0 such as "
            f"10:1, got {cost!r}"
        )
    return pair[0] / pair[1]


RECIPE_FIELDS = tuple(one.name for one in fields(Recipe))


@cache
def recipe_hints() -> dict[str, Any]:
    """Each field's type and Setting, annotated as a model's arguments are."""
    kinds = get_type_hints(Recipe)
    return {one.name: Annotated[kinds[one.name], one.metadata["setting"]] for one in fields(Recipe)}


def in_force(settings: Mapping[str, Any]) -> Settings:
    """The settings that some number depends on: what a run's key is made of.

    A setting at its neutral value is left out, and so is one that nothing asks for.
    """
    known = {name: setting_of(hint)[1] for name, hint in recipe_hints().items()}
    neutral = {name: one.neutral for name, one in known.items() if one.neutral is not None}
    settings = {**neutral, **settings}

    def counts(name: str, value: object) -> bool:
        if name not in known:
            return True  # a model's own
        one = known[name]
        other, values = one.unused_when or ("", ())
        used = not one.unused_when or settings.get(other) not in values
        return used and not one.ignored and not (name in neutral and value == neutral[name])

    return {name: value for name, value in settings.items() if counts(name, value)}
