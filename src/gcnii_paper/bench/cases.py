"""What `gcnii bench` measures: cases, each with lines that are timed in turn, from cases.toml.

Nothing here imports torch, so that the command line can name the cases without waiting for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Literal, get_args

from gcnii.errors import InputError, did_you_mean
from gcnii.files import Document
from gcnii.train.presets import Settings


@dataclass(frozen=True)
class Named:
    """A graph of the catalog; without its files, a random one of the same size is drawn."""

    name: str
    parameters: tuple[tuple[str, float], ...] = ()  # of a generator


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A random graph: n nodes with d features in k classes.

    entries  of A: two per edge
    hub      neighbours of the best connected node, from where degrees fall by a power law; 0: all
             pairs are equally likely
    density  share of X that is not zero; below 1, X is sparse
    """

    n: int
    entries: int
    d: int
    k: int
    hub: int = 0
    density: float = 1.0

    def scaled(self, share: float) -> Shape:
        """A graph like it with this share of the nodes and links."""
        n, entries, hub = (round(share * number) for number in (self.n, self.entries, self.hub))
        return replace(self, n=n, entries=entries, hub=hub)


Ours = Literal["gcnii", "end-to-end", "predict", "command"]
PyG = Literal["pyg-graph", "pyg-compiled", "pyg-edges", "pyg", "pyg-sampled"]
Who = Literal[Ours, PyG, "authors", "authors-csr"]
Unit = Literal["replicas", "layers", "entries"]


@dataclass(frozen=True, kw_only=True)
class Line:
    """One row of a case: whose code trains which network, how many replicas at once, on what.

    label  what sets it apart from other rows of the same code, if its numbers do not
    """

    who: Who
    graph: Named | Shape
    model: str = "gcnii"
    settings: Settings = field(default_factory=dict)  # over the preset of the graph
    precision: str = "float32"
    replicas: int = 1
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class BenchCase:
    """Lines for each kind of device, and how they are timed.

    per       what a time is divided by before two lines are compared; a ratio of 1.00 then means
              growth in proportion
    why_cuda  why there are no lines for a CPU, if there are none
    scale     share of the nodes and links of drawn graphs
    rounds    the number of turns that each line has
    warm_up   epochs before the first round on a GPU; on a CPU one is enough
    together  whether all lines are in memory at once and take turns, or come one after the other
    """

    name: str
    title: str
    cuda: tuple[Line, ...]
    cpu: tuple[Line, ...] = ()
    per: tuple[Unit, ...] = ("replicas", "layers")
    why_cuda: str = ""
    rounds: int = 10
    warm_up: int = 5
    together: bool = True
    scale: float = 1.0

    def scaled(self, share: float) -> BenchCase:
        """The case with smaller drawn graphs, to try it."""
        if not 0 < share <= 1:
            raise InputError(f"--scale must lie in (0, 1], got {share:g}")
        named = {one.graph.name for one in self.cuda + self.cpu if isinstance(one.graph, Named)}
        if named and share < 1:
            raise InputError(
                f"--scale is for cases whose graph is drawn; {self.name} measures on "
                f"{', '.join(sorted(named))}"
            )
        if share == 1:
            return self
        cuda, cpu = ([_smaller(one, share) for one in lines] for lines in (self.cuda, self.cpu))
        return replace(self, cuda=tuple(cuda), cpu=tuple(cpu), scale=share)

    def lines(self, device: str) -> tuple[Line, ...]:
        """The lines for `cpu` or `cuda`; an error if there are none."""
        lines = self.cuda if device == "cuda" else self.cpu
        if not lines and device == "cuda":
            raise InputError(f"{self.name} is measured on a CPU; use --device cpu")
        if not lines:
            raise InputError(f"{self.name} needs a CUDA device: {self.why_cuda}")
        return lines


def _smaller(line: Line, share: float) -> Line:
    assert isinstance(line.graph, Shape)
    return replace(line, graph=line.graph.scaled(share))


OURS: tuple[Ours, ...] = get_args(Ours)
_SAID = tomllib.loads(Path(__file__).with_name("cases.toml").read_text("utf-8"))


def _graph(said: Document) -> Named | Shape:
    if "name" not in said:
        return Shape(**said)
    return Named(said["name"], tuple(said.get("parameters", {}).items()))


GRAPHS = {name: _graph(said) for name, said in _SAID["graphs"].items()}


def _lines(said: Iterable[Document]) -> Iterator[Line]:
    """A line for each precision and code; those of a label have its settings."""
    for one in said:
        settings = one.get("settings", _SAID["settings"].get(one.get("label"), {}))
        # TOML has lists where settings have tuples: `fanout`.
        own = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
        for precision, who in product(one.get("precision", ["float32"]), one["who"]):
            about = {"graph": GRAPHS[one["graph"]], "precision": precision, "who": who}
            yield Line(**{**one, **about, "settings": own})


def _case(said: Document) -> BenchCase:
    """The case; `lines` are those of either device."""
    both: list[Document] = said.pop("lines", [])
    lines = {device: tuple(_lines(said.get(device, both))) for device in ("cpu", "cuda")}
    per = {"per": tuple(said["per"])} if "per" in said else {}
    return BenchCase(**said | lines | per)


CASES: Mapping[str, BenchCase] = {one["name"]: _case(one) for one in _SAID["cases"]}


def find_case(name: str) -> BenchCase:
    """The case of that name, or an error that guesses which was meant."""
    if name not in CASES:
        raise InputError(f"no case {name!r}; {did_you_mean(name, CASES)}known: {', '.join(CASES)}")
    return CASES[name]
