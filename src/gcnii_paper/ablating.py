"""What does each option of GCNII+ give?  Each is changed alone, around the record of a data set.

    python -m gcnii_paper.ablating chameleon texas … [--out results/beyond/ablation]
    python -m gcnii_paper.ablating cora --depths 2 8 32

trains the record settings and each change with the same ten seeds, one on each split, and writes
the scores.  Among the changes are six options that were tried and left out; they live here alone.
With depths, it is the paper's GCNII at each of them, with and without attention over P̃'s links.
results/beyond/ablation becomes tables for docs/evidence/beyond.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, cast, get_args

import numpy as np
import torch
from cyclopts import Parameter
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, linear, normalize, relu

import gcnii
from gcnii.files import Document, write_document
from gcnii.graph import Graph
from gcnii.nn import MODELS, GCNIIPlus
from gcnii.nn.dropedge import NodeNorm
from gcnii.nn.engine.skeleton import Convs
from gcnii.nn.gcnii_plus import PlusConv
from gcnii.nn.model import uniform
from gcnii.propagation import Sparse
from gcnii.propagation.attention import row_max
from gcnii.propagation.sparse import row_sums, to_entries
from gcnii.report.tables import markdown_table
from gcnii.train.plan import make_plan
from gcnii.train.presets import record_of
from gcnii_paper.documents import made_by, read_folder, run_script

MOVED = ("benchmarks/ablating.py", "-m gcnii_paper.ablating")  # in older records
RECORD = "record"
BY_DEPTH = "-by-depth"
SCORES = {"val": "Validation", "test": "Test"}
SHAPE = {
    "graph": str,
    "command": str,
    "rows": {str: {"val": [float], "test": [float], "seconds": float}},
}


def ablation_tables(folder: Path) -> str:
    """One table of differences on validation nodes, one on test nodes, and attention by depth."""
    found: dict[str, Document] = read_folder(folder, SHAPE, "ablation", dict)
    around = [one for name, one in found.items() if not name.endswith(BY_DEPTH)]
    deep = [one for name, one in found.items() if name.endswith(BY_DEPTH)]
    parts = [_differences(around, score) for score in SCORES] if around else []
    parts += [_by_depth(one) for one in deep]
    commands = [f"    {one['command'].replace(*MOVED)}" for one in (*around, *deep)]
    return "\n".join([*parts, *commands]) + "\n"


def _differences(found: Sequence[Document], score: str) -> str:
    """A row for each change, a column for each graph; a dot where the record has that value."""
    labels = list(dict.fromkeys(label for one in found for label in one["rows"]))
    labels.remove(RECORD)
    settings = list(dict.fromkeys(map(_setting, labels)))
    # The values of a setting stand together; what was left out comes last.
    labels.sort(key=lambda label: (_setting(label) is None, settings.index(_setting(label))))
    heads = [SCORES[score], *(one["graph"] for one in found)]
    own = (f"{100 * np.mean(one['rows'][RECORD][score]):.1f}" for one in found)
    rows = ([label, *(_cell(one, label, score) for one in found)] for label in labels)
    return markdown_table(heads, [["the record", *own], *rows])


def _cell(found: Document, label: str, score: str) -> str:
    rows, setting = found["rows"], _setting(label)
    if label in rows:
        return _gap(_array(rows[label][score]) - _array(rows[RECORD][score]))
    changed = setting is not None and any(_setting(other) == setting for other in rows)
    return "●" if changed else "–"


def _setting(label: str) -> str | None:
    """`row_norm` of `row_norm length`; None of what is not a value of a setting."""
    name, _, value = label.partition(" ")
    return name if value and name.islower() and label not in LEFT_OUT else None


LEFT_OUT = ("attention", "in-links", "hops", "batch norm")


def _gap(gaps: NDArray[np.float64]) -> str:
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    return f"{100 * gaps.mean():+.1f} ± {100 * error:.1f}"


def _by_depth(found: Document) -> str:
    """The paper's GCNII on one graph at several depths, without and with attention."""
    heads = (found["graph"], "validation", "test", "seconds")
    rows = []
    for label, row in found["rows"].items():
        val, test = (_array(row[score]) for score in SCORES)
        spread = 100 * test.std(ddof=1)
        cells = (label, f"{100 * val.mean():.1f}", f"{100 * test.mean():.1f} ± {spread:.1f}")
        rows.append((*cells, f"{row['seconds']:.0f}"))
    return markdown_table(heads, rows)


def _array(numbers: Sequence[float]) -> NDArray[np.float64]:
    return np.asarray(numbers, np.float64)


SEEDS = range(2000, 2010)  # the search has seen none of them
CHOICES: dict[str, tuple[Any, ...]] = {
    "product_first": (False, True),
    "loops": ("keep", "none"),
    "direction": ("out", "in", "both"),
    "row_norm": ("none", "layer"),
    "head": ("last", "features"),
    "residual": (False, True),
}
Extra = Literal["attention", "in-links", "hops", "batch norm", "row_norm length", "head all"]


class LeftOut(GCNIIPlus):
    """GCNII+ with one of the options that were left out.

    attention   P̃'s entries times exp(LeakyReLU(a · H_u + b · H_v)), each row scaled to its old sum
    in-links    P̃ᵀ H W_in added to every convolution and to the first map
    hops        scores from Σ_l γ_l H_l with learned γ
    batch norm  over the nodes, in the place of a norm over rows
    row_norm length   rows of length 1, in the place of a layer norm
    head all    scores from H0 ‖ H_1 ‖ … ‖ H_L
    """

    extra: ClassVar[Extra]

    @wraps(GCNIIPlus.__init__)  # type: ignore[misc]  # the settings are read from the signature
    def __init__(self, d: int, k: int, **own: Any):
        super().__init__(d, k, **own)
        extra, layers, width = self.extra, own["layers"], own["width"]
        convs = [Wrapped(conv, width, extra) for conv in self.convs]
        self.convs = type(self.convs)(convs)
        if norm := NORMS.get(extra):
            self.dense["norm"] = norm(width)
        if extra == "head all":
            self.dense["decode"] = nn.Linear((layers + 1) * width, k)
        if extra == "in-links":
            self.dense["encode_in"] = nn.Linear(d, width, bias=False)
        if extra == "hops":
            self.dense["decode"] = nn.Linear(width, k)
            self.dense["gamma"] = Gamma(layers + 1)

    def _first(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        if self.extra != "in-links" or not self.product_first:
            return super()._first(P, X)
        encode: Any = self.dense["encode"]
        Z = P @ linear(cast(Tensor, X), encode.weight) + encode.bias
        return relu(self.dense["norm"](Z + transpose(P) @ self.dense["encode_in"](X)))

    def embed(self, P: Sparse, X: Tensor | Sparse) -> Tensor:
        """As GCNII+, but for the sum over hops, or all of them side by side."""
        if self.extra not in ("hops", "head all"):
            return super().embed(P, X)
        states = [self._first(P, self.drop_input(X))]
        for l in range(len(self.convs)):
            one = cast(Convs, self.convs[l : l + 1])
            states.append(self.pass_through(one, P, states[-1], states[0]))
        if self.extra == "head all":
            return torch.cat(states, 1)
        hops: Tensor = self.dense["gamma"](torch.stack(states))
        return hops


class UnitRows(nn.Module):
    """Every row divided by its length; a row of zeros stays."""

    def __init__(self, width: int):
        super().__init__()

    def forward(self, Z: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        return normalize(Z, dim=1)


NORMS: dict[str, Callable[[int], nn.Module]] = {"batch norm": NodeNorm, "row_norm length": UnitRows}


class Wrapped(nn.Module):
    """A convolution with attention, in-links or another norm."""

    def __init__(self, conv: nn.Module, width: int, extra: Extra):
        super().__init__()
        self.conv = conv
        self.a = None
        if extra == "attention":
            self.a = nn.Parameter(torch.empty(2, width).uniform_(-0.1, 0.1))
        self.W_in = uniform(width, width) if extra == "in-links" else None
        self.norm = NORMS[extra](width) if extra in NORMS else nn.Identity()
        if extra in NORMS and isinstance(conv, PlusConv):
            conv.norm = nn.Identity()

    def forward(self, P: Sparse, H: Tensor, H0: Tensor) -> Tensor:
        """(n, width) → (n, width)."""
        Z = self.conv(P if self.a is None else attended(P, H, self.a), H, H0)
        if self.W_in is not None:
            Z = Z + cast(Any, self.conv).beta * ((transpose(P) @ H) @ self.W_in)
        normed: Tensor = self.norm(Z)
        return normed


class Gamma(nn.Module):
    """Σ_l γ_l H_l."""

    def __init__(self, count: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.full((count,), 1 / count))

    def forward(self, H: Tensor) -> Tensor:
        """(count, n, width) → (n, width)."""
        total: Tensor = torch.tensordot(self.gamma, H, 1)
        return total


def transpose(P: Sparse) -> Sparse:
    """P̃ᵀ: from whom a node is linked to."""
    return Sparse(P.pattern.transposed[0], P.transposed)


def attended(P: Sparse, H: Tensor, a: Tensor) -> Sparse:
    """P with its entries weighed by attention; with a = 0 it is P."""
    pattern, (left, right) = P.pattern, (H @ a.T)[..., None].unbind(1)
    E = leaky_relu(to_entries(pattern, left, end="row") + to_entries(pattern, right, end="column"))
    E = torch.where(P.values[:, None] != 0, E, -torch.inf)
    top = row_max(pattern, E.detach())
    top = torch.where(top.isfinite(), top, 0)
    Z = (E - top.index_select(0, pattern.row_of)).exp()[:, 0] * P.values
    total, before = row_sums(pattern, Z), row_sums(pattern, P.values)
    share = before / torch.where(total > 0, total, 1)
    return P.with_values(Z * to_entries(pattern, share[:, None], end="row")[:, 0])


def around_record(graph: Graph) -> dict[str, tuple[str, dict[str, Any]]]:
    """name → model and settings: the record, each change of it, and each option left out."""
    record = record_of(graph.catalog_name)
    settings = _fields(make_plan(record.model, record.settings).settings)
    changed = changes(settings, graph).items()
    return {label: (record.model, settings | one) for label, one in changed} | {
        label: (label, settings) for label in left_out(graph)
    }


def by_depth(graph: Graph, depths: Sequence[int]) -> dict[str, tuple[str, dict[str, Any]]]:
    """name → model and settings: the paper's GCNII at each depth, without and with attention."""
    settings = _fields(make_plan("gcnii", {}, graph).settings)
    settings["input_dropout"] = settings["dropout"]
    left_out(graph)
    return {
        f"{layers} layers{', attention' * (model == 'attention')}": (model, settings | own)
        for layers in depths
        for own in ({"layers": layers},)
        for model in ("gcnii-plus", "attention")
    }


def _fields(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name != "memory"}


def changes(settings: dict[str, Any], graph: Graph) -> dict[str, dict[str, Any]]:
    """name → what is changed in the record's settings."""
    found: dict[str, dict[str, Any]] = {"record": {}}
    for name, values in CHOICES.items():
        if name != "direction" or graph.directed:
            others = (value for value in values if value != settings[name])
            found |= {f"{name} {value}".lower(): {name: value} for value in others}
    if settings["input_dropout"] != settings["dropout"]:
        found["input_dropout as dropout"] = {"input_dropout": settings["dropout"]}
    if settings["views"] > 1:
        found["views 1, consistency 0"] = {"views": 1, "consistency": 0.0}
    return found


def left_out(graph: Graph) -> list[Extra]:
    """The options that are not GCNII+'s, and their models, under their names."""
    names: tuple[Extra, ...] = get_args(Extra)
    for name in names:
        MODELS[name] = type("LeftOut", (LeftOut,), {"extra": name})
    return [name for name in names if name != "in-links" or graph.directed]


def trained(graph: Graph, model: str, settings: dict[str, Any]) -> Document:
    """The scores of these settings, and the time that they took."""
    how: dict[str, Any] = {"seeds": SEEDS, "verbose": False, "calibrate": "none"}
    result = gcnii.fit(graph, model, **settings, **how)
    return {
        "val": [round(run.val, 5) for run in result.runs],
        "test": [round(float(score), 5) for score in result.test],
        "seconds": round(sum(run.seconds for run in result.runs), 1),
    }


def main(
    *names: Annotated[str, Parameter(required=True)],
    depths: Annotated[tuple[int, ...], Parameter(consume_multiple=True)] = (),
    out: Path = Path("results/beyond/ablation"),
) -> None:
    """Measure the data sets that are named."""
    for name in names:
        graph = gcnii.load(name)
        every = by_depth(graph, depths) if depths else around_record(graph)
        words = ("--depths", *depths) if depths else ()
        about = {"graph": name, "seeds": list(SEEDS), **made_by("ablating", name, *words)}
        file = out / f"{name}{BY_DEPTH * bool(depths)}.json"
        rows: dict[str, Document] = {}
        for label, (model, settings) in every.items():
            rows[label] = trained(graph, model, settings)
            print(f"{name}: {label}: {rows[label]['seconds']} s", file=sys.stderr)
            write_document(file, about | {"rows": rows})


if __name__ == "__main__":
    run_script(main)
