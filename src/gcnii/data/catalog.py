"""The catalog: every data set known by name, with its files, its counts and how it is read.

`size_of` and `counted` say how large a graph is, also one that need not be at hand.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path, PurePosixPath

import numpy as np
import scipy.sparse as sp

from gcnii.data import benchmarks, generators
from gcnii.errors import DataError, did_you_mean
from gcnii.graph import Graph


@dataclass(frozen=True)
class File:
    """One upstream file.

    path      relative to the cache folder and to a mirror
    url       address of the file or, if `archived`, of the zip archive that contains it
    digest    `sha256:…`, or `git:…` (the SHA-1 of a git blob) if only that is known
    size      in bytes, if it is known
    """

    path: str
    url: str
    digest: str
    archived: bool = False
    size: int | None = None

    @property
    def name(self) -> str:
        """The file name without its folders."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True)
class Counts:
    """Numbers of nodes, edges (as in `Graph.m`; None if unknown), features and classes."""

    nodes: int
    edges: int | None
    features: int
    classes: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set: where it comes from, how it is read, and what is in it.

    read      Files → Graph; for a generated graph (no `files`), parameters → Graph
    counts    of the files, which may differ from the paper's Table 1; of a generated graph with
              its default parameters
    notes     known faults, one sentence each
    neighbourhoods  geometry → the file of neighbours that Geom-GCN published; not needed by `load`
    """

    name: str
    title: str
    read: Callable[..., Graph]
    counts: Counts
    licence: str
    source: str
    files: tuple[File, ...] = ()
    notes: tuple[str, ...] = ()
    neighbourhoods: Mapping[str, File] = field(default_factory=dict)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that `load` accepts: those of `read` for a generated graph, else none."""
        return () if self.files else tuple(inspect.signature(self.read).parameters)


RAW = "https://raw.githubusercontent.com"
PLANETOID = f"{RAW}/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data"
GEOM_GCN = f"{RAW}/graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
GEOM_GCN_2022 = "https://github.com/bingzhewei/geom-gcn/raw/1124af1"
HETEROPHILOUS = (
    f"{RAW}/yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318/data"
)
GNN_DATASETS = f"{RAW}/CrawlScript/gnn_datasets/482d7152d60e429763ca256dd0906fa9badaae0c"
PPI = "https://data.dgl.ai/dataset/ppi.zip"

CITATION = "the Planetoid repository is MIT; none is stated for the papers' data, research use"
MIT = "the repository of {} is MIT; none is stated for the original data, research use"
UNSTATED = "none stated upstream; research use"
WEB = "CMU WebKB; prepared by Pei et al., Geom-GCN, ICLR 2020"
SHARES = "The splits named 0.6_0.2 are 48/32/20, and they are not stratified by class."
LONELY = "Class 1 has one node, which several splits do not train on."
DIVIDED = "Rows of features are divided by their sum, as in chameleon; Platonov et al. do not."
DRAWN = "No split was published: ten are drawn, 60/20/20 of each class, by the seeds 0 to 9."


def _published() -> dict[str, tuple[str, int]]:
    """path → digest and size of every file in the packaged FILES."""
    lines = resources.files("gcnii.data").joinpath("FILES").read_text("ascii").splitlines()
    return {path: (f"sha256:{sha256}", int(size)) for sha256, size, path in map(str.split, lines)}


_PUBLISHED = _published()


def _file(path: str, base: str, below: str) -> File:
    """The file at `path` = below/REST, which is at base/REST upstream."""
    digest, size = _PUBLISHED[path]
    return File(path, f"{base}/{path.removeprefix(below + '/')}", digest, size=size)


def _planetoid_files(stem: str) -> tuple[File, ...]:
    parts = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
    return tuple(_file(f"planetoid/ind.{stem}.{part}", PLANETOID, "planetoid") for part in parts)


def _split_files(stem: str) -> tuple[File, ...]:
    names = (benchmarks.split_name(stem, i) for i in range(benchmarks.SPLITS))
    return tuple(_file(f"geom-gcn/splits/{name}", GEOM_GCN, "geom-gcn") for name in names)


def _web_files(stem: str, folder: str = "geom-gcn", base: str = GEOM_GCN) -> tuple[File, ...]:
    names = (benchmarks.NODES, benchmarks.EDGES)
    return (
        *(_file(f"{folder}/new_data/{stem}/{name}", base, folder) for name in names),
        *_split_files(stem),
    )


def _neighbourhoods(stem: str) -> dict[str, File]:
    folder = "geom-gcn/structural_neighborhood"
    paths = {
        kind: f"{folder}/{benchmarks.neighbourhood_name(stem, kind)}" for kind in benchmarks.KINDS
    }
    return {
        kind: _file(path, GEOM_GCN, "geom-gcn")
        for kind, path in paths.items()
        if path in _PUBLISHED
    }


def _public(stem: str, title: str, counts: Counts, *notes: str) -> Entry:
    return Entry(
        name=stem,
        title=f"{title}; public split, 20 labels per class",
        read=partial(benchmarks.read_public, stem=stem),
        counts=counts,
        licence=CITATION,
        source="Sen et al. 2008; split by Yang et al., Planetoid, ICML 2016",
        files=_planetoid_files(stem),
        notes=notes,
    )


def _full(stem: str, title: str, counts: Counts, *notes: str) -> Entry:
    name = f"{stem}-full"
    return Entry(
        name=name,
        title=f"{title}; ten splits, 48 % of the labels",
        read=partial(benchmarks.read_full, stem=stem),
        counts=counts,
        licence=CITATION,
        source="Sen et al. 2008, as in Planetoid; split by Pei et al., Geom-GCN, ICLR 2020",
        files=_planetoid_files(stem) + _split_files(stem),
        notes=(*notes, SHARES),
        neighbourhoods=_neighbourhoods(stem),
    )


def _web(name: str, title: str, counts: Counts, *notes: str, source: str = WEB) -> Entry:
    stem = name.removesuffix("-2022")
    corrected = ("geom-gcn-2022", GEOM_GCN_2022) if name != stem else ()
    return Entry(
        name=name,
        title=f"{title}; ten splits, 48 % of the labels",
        read=partial(benchmarks.read_web, stem=stem, name=name),
        counts=counts,
        licence=UNSTATED,
        source=source,
        files=_web_files(stem, *corrected),
        notes=(*notes, SHARES),
        # the files refer to the nodes in their order of 2020
        neighbourhoods={} if corrected else _neighbourhoods(stem),
    )


def _wikipedia(name: str, stem: str, title: str, counts: Counts, *notes: str) -> Entry:
    return Entry(
        name=name,
        title=f"{title}; ten splits, 48 % of the labels",
        read=partial(benchmarks.read_heterophilous, name=name, directed=True),
        counts=counts,
        licence=MIT.format("Platonov et al."),
        source="Rozemberczki et al. 2021; prepared by Platonov et al., ICLR 2023",
        files=(_heterophilous_file(stem),),
        notes=(*notes, DIVIDED),
    )


def _heterophilous_file(stem: str) -> File:
    return _file(f"heterophilous/{stem}.npz", HETEROPHILOUS, "heterophilous")


def _zipped(name: str, folder: str, title: str, counts: Counts, source: str, *notes: str) -> Entry:
    return Entry(
        name=name,
        title=f"{title}; ten splits, 60 % of the labels",
        read=partial(benchmarks.read_zipped, name=name),
        counts=counts,
        licence=MIT.format("Shchur et al."),
        source=f"{source}; prepared by Shchur et al. 2018",
        files=(_file(f"gnn-benchmark/{name}.zip", f"{GNN_DATASETS}/{folder}", "gnn-benchmark"),),
        notes=(*notes, DRAWN),
    )


_ENTRIES = (
    _public(
        "cora",
        "2708 papers on machine learning and their citations",
        Counts(2708, 5278, 1433, 7),
        "Table 1 of the paper says 5429 edges: half of the 10858 list entries, with duplicates.",
    ),
    _public(
        "citeseer",
        "3327 papers on computer science and their citations",
        Counts(3327, 4552, 3703, 6),
        "15 nodes have neither features nor a label; they are in no mask.",
        "124 nodes cite themselves, 48 have no other neighbour.",
        "Table 1 of the paper says 4732 edges: half of the 9464 list entries, with duplicates and "
        "self-loops.",
    ),
    _public(
        "pubmed",
        "19717 papers on diabetes and their citations",
        Counts(19717, 44324, 500, 3),
        "3 nodes cite themselves.",
        "Table 1 of the paper says 44338 edges: half of the 88676 list entries, with duplicates "
        "and self-loops.",
    ),
    _full(
        "cora",
        "2708 papers on machine learning and their citations",
        Counts(2708, 5278, 1433, 7),
        "The splits cover the 2485 nodes of the largest component.",
    ),
    _full(
        "citeseer",
        "3327 papers on computer science and their citations",
        Counts(3327, 4552, 3703, 6),
        "15 nodes without features or label count as class 0, as in the authors' code, and are in "
        "the masks.",
        "Splits 4 and 5 cover only the 2120 nodes of the largest component; the others cover all.",
    ),
    _full("pubmed", "19717 papers on diabetes and their citations", Counts(19717, 44324, 500, 3)),
    _web(
        "chameleon",
        "2277 Wikipedia pages on chameleons and their links, by traffic",
        Counts(2277, 36051, 2325, 5),
        "Table 1 of the paper says 4 classes; the files hold 5.",
        "Table 1 of the paper says 36101 edges: all lines of the file, of which 50 are self-loops.",
        "233 nodes have no features.",
        "Many nodes are copies of one another across the splits (Platonov et al., ICLR 2023).",
        source="Rozemberczki et al. 2021; prepared by Pei et al., Geom-GCN, ICLR 2020",
    ),
    _web(
        "cornell",
        "183 web pages of Cornell and their links, as shipped in 2020",
        Counts(183, 295, 1703, 5),
        "The features and labels are those of Texas, a mistake of 2020 that the paper's numbers "
        "share.",
        LONELY,
    ),
    _web(
        "cornell-2022",
        "183 web pages of Cornell and their links, as corrected in 2022",
        Counts(183, 295, 1703, 5),
        "The order of the nodes is not that of 2020, but the splits are.",
    ),
    _web("texas", "183 web pages of Texas and their links", Counts(183, 309, 1703, 5), LONELY),
    _web(
        "wisconsin",
        "251 web pages of Wisconsin and their links",
        Counts(251, 499, 1703, 5),
        "3 feature rows are repeated.",
    ),
    _web(
        "film",
        "7600 actors, joined where a Wikipedia page names both, by the words on their pages",
        Counts(7600, 29926, 932, 5),
        "Edges are one-way, as in Geom-GCN's code, and join 26659 pairs; 93 are self-loops.",
        source="Tang et al. 2009; prepared by Pei et al., Geom-GCN, ICLR 2020",
    ),
    _wikipedia(
        "squirrel",
        "squirrel_directed",
        "5201 Wikipedia pages on squirrels and their links, by traffic",
        Counts(5201, 216933, 2089, 5),
        "Many nodes are copies of one another across the splits: in the first, 650 of 1041 test "
        "nodes have the links and the label of a training node.",
        "165 nodes have no features, 140 link to themselves.",
    ),
    _wikipedia(
        "chameleon-filtered",
        "chameleon_filtered_directed",
        "890 Wikipedia pages on chameleons and their links, by traffic, without copies",
        Counts(890, 13534, 2325, 5),
        "The splits are what remains of those of chameleon, so their sizes differ.",
        "94 nodes have no features, 50 link to themselves.",
    ),
    Entry(
        name="minesweeper",
        title="a 100 × 100 grid of the game, by mine or no mine; ten splits, 50 % of the labels",
        read=partial(benchmarks.read_heterophilous, name="minesweeper"),
        counts=Counts(10000, 39402, 7, 2),
        licence="MIT",
        source="generated by Platonov et al., ICLR 2023",
        files=(_heterophilous_file("minesweeper"),),
        notes=("80 % of the nodes are not mines; Platonov et al. report ROC AUC, not accuracy.",),
    ),
    _zipped(
        "amazon-photo",
        "AmazonElectronics",
        "7650 photo goods and which are bought together, by kind",
        Counts(7650, 119081, 745, 8),
        "McAuley et al. 2015",
        "The file lists most edges in one direction only; all are taken as undirected.",
        "115 nodes have no neighbour, 1 links to itself.",
    ),
    _zipped(
        "coauthor-cs",
        "Coauthor",
        "18333 computer scientists and who wrote with whom, by field",
        Counts(18333, 81894, 6805, 15),
        "Microsoft Academic Graph, KDD Cup 2016",
        "A word counts once however often it occurs, as in the code of Shchur et al.",
        "The names of the classes are Python objects in the file, which are not read.",
    ),
    Entry(
        name="ppi",
        title="24 graphs of proteins in human tissues, 121 labels each; whole graphs split 20/2/2",
        read=benchmarks.read_ppi,
        counts=Counts(56944, None, 50, 121),
        licence=UNSTATED,
        source="Zitnik & Leskovec 2017; split by Hamilton et al., GraphSAGE, NeurIPS 2017",
        files=tuple(
            File(f"ppi/{name}", PPI, f"git:{blob}", archived=True)
            for name, blob in benchmarks.PPI_BLOBS.items()
        ),
        notes=(
            "Features are used as shipped; upstream is believed to have standardised them.",
            "Table 1 of the paper says 818716 edges, the number of links in GraphSAGE's files.",
        ),
    ),
    Entry(
        name="ppi-like",
        title="a generated stand-in for ppi, of the same shape; needs no download",
        read=generators.ppi_like,
        counts=Counts(56952, 797328, 50, 121),
        licence="none needed; generated",
        source="generated: communities, noisy features, 121 labels per node",
        notes=("Scores on it do not predict scores on ppi.",),
    ),
    Entry(
        name="digits",
        title="1797 handwritten digits, joined to their nearest neighbours; needs no download",
        read=generators.digits,
        counts=Counts(1797, 9929, 64, 10),
        licence="CC BY 4.0",
        source="Alpaydin & Kaynak 1998 (UCI), test part, as shipped with scikit-learn",
    ),
    Entry(
        name="csbm",
        title="contextual stochastic block model, generated from its parameters",
        read=generators.csbm,
        counts=Counts(1000, 5000, 16, 2),
        licence="none needed; generated",
        source="Deshpande et al., NeurIPS 2018",
    ),
)

CATALOG: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def lookup(name: str) -> Entry:
    """The entry of that name; DataError, with the closest name, if there is none."""
    if name in CATALOG:
        return CATALOG[name]
    beside = (path.parent.name for path in Path().glob("*/nodes.*"))  # a folder may be misspelt
    raise DataError(
        f"no dataset {name!r}; {did_you_mean(name, [*CATALOG, *beside])}known: "
        f"{', '.join(CATALOG)}, "
        "or the path of a folder with nodes.csv"
    )


OGB = "ogbn-"  # what names of the Open Graph Benchmark begin with, and may be given without
# As published: Hu et al. 2020 (OGB); Hamilton et al. 2017 (reddit).  A link counts once.
KNOWN = {
    "ogbn-arxiv": Counts(169_343, 1_166_243, 128, 40),
    "ogbn-products": Counts(2_449_029, 61_859_140, 100, 47),
    "ogbn-papers100m": Counts(111_059_956, 1_615_685_872, 128, 172),
    "reddit": Counts(232_965, 57_307_946, 602, 41),
}
# Of the catalog's sparse features, the share that is stored where the files are not at hand.
DENSITY = 0.02


@dataclass(frozen=True, kw_only=True)
class Size:
    """n nodes with d features in k classes.

    entries  of P̃: each link twice, and a loop for each node
    stored   numbers of X: n · d, or of a sparse X those that are not zero
    sparse   whether X is
    exact    False where it is from counts alone: links that are listed in both directions then
             count twice
    """

    n: int
    entries: int
    d: int
    k: int
    stored: int
    sparse: bool = False
    exact: bool = True

    @property
    def degree(self) -> float:
        """Entries of a row of P̃, on average."""
        return self.entries / self.n


def size_of(graph: Graph) -> Size:
    """The size of a graph at hand; of a directed one, each node gathers over one direction."""
    entries = (1 if graph.directed else 2) * graph.m + graph.n
    X, sparse = graph.X, isinstance(graph.X, sp.csr_array)
    stored = int(X.nnz) if isinstance(X, sp.csr_array) else int(np.prod(X.shape))
    return Size(n=graph.n, entries=entries, d=graph.d, k=graph.k, stored=stored, sparse=sparse)


def counted(name: str) -> Size | None:
    """The size of a graph of the catalog, or of another well-known one; None if it is not known."""
    if name in CATALOG and (counts := CATALOG[name].counts).edges is not None:
        # Files of benchmarks are bags of words; what is generated is dense.
        return _of_counts(counts, DENSITY if CATALOG[name].files else 1.0)
    low = name.lower()
    found = KNOWN.get(low) or KNOWN.get(f"{OGB}{low}")
    return _of_counts(found, 1.0) if found else None


def _of_counts(counts: Counts, density: float) -> Size:
    n, d = counts.nodes, counts.features
    entries, stored = 2 * (counts.edges or 0) + n, round(n * d * density)
    known = {"n": n, "entries": entries, "d": d, "k": counts.classes, "stored": stored}
    return Size(**known, sparse=density < 1, exact=False)
