"""What `gcnii bench` measures: cases, each with lines that are timed in turn.

Nothing here imports torch, so that the command line can name the cases without waiting for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from gcnii.errors import InputError, did_you_mean
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


PRECISIONS = ("float32", "tf32", "bfloat16")  # on a GPU; the baselines lack the last
OURS: tuple[Ours, ...] = get_args(Ours)
OTHER_CODE: tuple[Who, ...] = ("pyg-graph", "pyg-edges", "pyg", "authors")
CORA, CITESEER, PUBMED = Named("cora"), Named("citeseer"), Named("pubmed")
PPI = Named("ppi-like", (("n", 2245), ("degree", 27.2)))  # the mean of PPI's training graphs
# four of its training graphs, and one each for validation and testing
SMALL_PPI = Named("ppi-like", (("graphs", 6), ("n", 2245), ("degree", 27.2)))
PHOTO = Named("amazon-photo")
# the size of ogbn-products
PRODUCTS = Shape(n=2_449_029, entries=123_718_280, d=100, k=47, hub=17_000)


def _race(
    graph: Named | Shape,
    baselines: tuple[Who, ...] = OTHER_CODE,
    *,
    model: str = "gcnii",
    replicas: int = 1,
    precisions: tuple[str, ...] = ("float32",),
) -> tuple[Line, ...]:
    """Ours in every precision; then the baselines, one run at a time, in those that plain PyTorch
    has a switch for.
    """

    def line(who: Who, precision: str, replicas: int = 1) -> Line:
        return Line(who=who, graph=graph, model=model, precision=precision, replicas=replicas)

    ours = [line("gcnii", precision, replicas) for precision in precisions]
    common = [precision for precision in precisions if precision != "bfloat16"]
    return (*ours, *(line(who, precision) for precision in common for who in baselines))


def _by_depth(*depths: int) -> tuple[Line, ...]:
    return tuple(Line(who="gcnii", graph=CORA, settings={"layers": layers}) for layers in depths)


def _by_nodes(*who: Who) -> tuple[Line, ...]:
    shape = Shape(n=300_000, entries=6_000_000, d=64, k=10)
    return tuple(Line(who=one, graph=shape, settings={"layers": 8}) for one in who)


def _by_edges(*edges: int) -> tuple[Line, ...]:
    shapes = [Shape(n=100_000, entries=2 * m, d=64, k=10) for m in edges]
    return tuple(Line(who="gcnii", graph=shape, settings={"layers": 8}) for shape in shapes)


def _options() -> tuple[Line, ...]:
    """GCNII, and GCNII+ with each option alone."""
    shape = {"layers": 16, "width": 64}
    options: dict[str, Settings] = {
        "options off": {},
        "product first": {"product_first": True},
        "head features": {"head": "features"},
        "layer norm": {"row_norm": "layer"},
        "residual": {"residual": True},
        "4 views": {"views": 4, "drop_node": 0.5, "consistency": 1.0},
    }
    alone = Line(who="gcnii", graph=CORA, settings=shape, label="GCNII")
    return alone, *(
        Line(who="gcnii", graph=CORA, model="gcnii-plus", settings=shape | one, label=label)
        for label, one in options.items()
    )


SAMPLED: Settings = {"batches": "neighbours", "batch_size": 512, "layers": 2}
SAGE: Settings = {**SAMPLED, "fanout": (10, 25), "width": 128, "dropout": 0.0}
VR_GCN: Settings = {**SAMPLED, "fanout": (1, 0), "width": 128, "dropout": 0.0}
GAT: Settings = {**SAMPLED, "fanout": (10, 25), "width": 8, "heads": 8, "monitor": "val_loss"}


def _sage(graph: Named) -> tuple[Line, ...]:
    """GraphSAGE, here and of PyG's parts; VR-GCN, which draws one neighbour."""
    sage, vr_gcn = "graphsage-mean", "vr-gcn-cv"
    return (
        Line(who="gcnii", graph=graph, model=sage, settings=SAGE, label="GraphSAGE"),
        Line(who="pyg-sampled", graph=graph, model=sage, settings=SAGE, label="GraphSAGE"),
        Line(who="gcnii", graph=graph, model=vr_gcn, settings=VR_GCN, label="VR-GCN"),
    )


def _gat(graph: Named) -> tuple[Line, ...]:
    """GAT on sampled neighbours, here and of PyG's layers."""
    names: tuple[Who, ...] = ("gcnii", "pyg-sampled")
    return tuple(
        Line(who=who, graph=graph, model="gat", settings=GAT, label="GAT") for who in names
    )


def _products() -> tuple[Line, ...]:
    settings = {"width": 128, "memory": "auto"}
    ours = [
        Line(who="gcnii", graph=PRODUCTS, settings=settings | {"layers": 64}, precision=precision)
        for precision in PRECISIONS
    ]
    # PyG's activations leave no room for 64 layers; this is measured too.
    theirs = [
        Line(who="pyg", graph=PRODUCTS, settings=settings | {"layers": layers})
        for layers in (4, 16, 64)
    ]
    return (*ours, *theirs)


def _offload() -> tuple[Line, ...]:
    """They differ in depth alone: 64 layers of this width fit only if offloaded."""
    settings: list[Settings] = [
        {"memory": memory, "layers": layers, "width": 512}
        for memory, layers in (("recompute", 16), ("offload", 64))
    ]
    return tuple(
        Line(who="gcnii", graph=PRODUCTS, settings=one, label=one["memory"]) for one in settings
    )


def _predicting(*depths: int) -> tuple[Line, ...]:
    settings = ({"layers": layers, "width": 128, "epochs": 1} for layers in depths)
    return tuple(Line(who="predict", graph=PRODUCTS, settings=one) for one in settings)


_ALL = (
    BenchCase(
        name="cora-1",
        title="GCNII, 64 layers, one run",
        cpu=_race(CORA),
        cuda=_race(CORA, precisions=PRECISIONS),
    ),
    BenchCase(
        name="cora-100",
        title="GCNII, 64 layers, a hundred runs",
        cuda=_race(CORA, replicas=100, precisions=PRECISIONS),
        why_cuda="a CPU trains one run after the other, which is what cora-1 measures",
    ),
    BenchCase(
        name="cora-1-compiled",
        title="GCNII, 64 layers, one run of PyG by torch.compile, which takes minutes",
        # Alone in its process: beside our own graph it ended in an illegal memory access.
        cuda=(Line(who="pyg-compiled", graph=CORA),),
        why_cuda="torch.compile(mode='reduce-overhead') makes CUDA graphs",
    ),
    *(
        BenchCase(
            name=f"{graph.name}-10",
            title=f"GCNII, {layers} layers × 256, ten runs; on a CPU one after the other",
            cpu=_race(graph),
            cuda=_race(graph, replicas=10, precisions=PRECISIONS),
            rounds=5,
        )
        for graph, layers in ((CITESEER, 32), (PUBMED, 16))
    ),
    BenchCase(
        name="ppi",
        title="GCNII with skip connections, 9 layers × 2048, 20 graphs an epoch",
        cuda=_race(PPI, ("authors", "authors-csr"), model="gcnii-ppi", precisions=PRECISIONS),
        why_cuda="an epoch is 17 · 10¹² operations, minutes on a CPU",
        rounds=5,
    ),
    BenchCase(
        name="products",
        title="GCNII, 64 layers × 128, on 2.4 million nodes",
        cuda=_products(),
        why_cuda="2.4 million nodes, 124 million entries and 64 layers: an hour per epoch on a CPU",
        rounds=3,
        warm_up=2,  # an epoch takes seconds, and none of it waits for launches
        together=False,
    ),
    BenchCase(
        name="offload",
        title="GCNII on 2.4 million nodes, where activations wait on the device or on the host",
        cuda=_offload(),
        cpu=_offload(),
        rounds=2,
        warm_up=1,
        together=False,
    ),
    BenchCase(
        name="predict-memory",
        title="`gcnii predict` on a CPU, width 128, on 2.4 million nodes: peak is all it holds",
        cuda=(),
        cpu=_predicting(8, 64),
        per=("replicas",),
        rounds=1,
        warm_up=0,
        together=False,
    ),
    BenchCase(
        name="depth",
        title="GCNII on Cora at 8, 16, 32 and 64 layers",
        cpu=_by_depth(8, 16, 32, 64),
        cuda=_by_depth(8, 16, 32, 64),
    ),
    BenchCase(
        name="edges",
        title="GCNII, 8 layers, 100,000 nodes, half a million and five million edges",
        cpu=_by_edges(500_000, 5_000_000),
        cuda=_by_edges(500_000, 5_000_000),
        per=("replicas", "layers", "entries"),
        rounds=5,
    ),
    BenchCase(
        name="nodes",
        title="GCNII, 8 layers × 64, on 300,000 nodes",
        cpu=_by_nodes("gcnii", "pyg"),
        cuda=_by_nodes("gcnii", "pyg"),
        rounds=3,
    ),
    BenchCase(
        name="first",
        title="`gcnii train digits --layers 8`, from the command to the bundle",
        cuda=(),
        cpu=(Line(who="command", graph=Named("digits"), settings={"layers": 8}),),
        per=("replicas",),
        rounds=5,
        warm_up=0,
    ),
    BenchCase(
        name="plus",
        title="GCNII and GCNII+ with each option, 16 layers",
        cpu=_options(),
        cuda=_options(),
    ),
    *(
        BenchCase(name=f"{name}-{graph}", title=title, cpu=make(cpu), cuda=make(cuda), rounds=5)
        for name, title, make in (
            ("sage", "2 layers × 128 on sampled neighbours, 512 nodes a step", _sage),
            ("gat", "GAT, 2 layers of 8 heads × 8 on sampled neighbours, 512 nodes a step", _gat),
        )
        for graph, cpu, cuda in (("ppi", SMALL_PPI, PPI), ("photo", PHOTO, PHOTO))
    ),
    BenchCase(
        name="table2-cora",
        title="GCNII on Cora from load to test score, a hundred runs with early stopping",
        cuda=(Line(who="end-to-end", graph=CORA, replicas=100),),
        per=("replicas",),
        why_cuda="on a CPU a hundred runs take an hour; use `gcnii train cora --runs 100`",
        rounds=1,
        warm_up=0,
    ),
)
CASES: Mapping[str, BenchCase] = {case.name: case for case in _ALL}


def find_case(name: str) -> BenchCase:
    """The case of that name, or an error that guesses which was meant."""
    if name not in CASES:
        raise InputError(f"no case {name!r}; {did_you_mean(name, CASES)}known: {', '.join(CASES)}")
    return CASES[name]
