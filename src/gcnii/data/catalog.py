"""The catalog: every data set known by name."""

from __future__ import annotations

from functools import partial
from importlib import resources

from gcnii.data.entry import Counts, Entry, File
from gcnii.data.generators import csbm, digits, ppi_like
from gcnii.data.readers import geom_gcn, planetoid, ppi
from gcnii.errors import DataError, did_you_mean

RAW = "https://raw.githubusercontent.com"
PLANETOID = f"{RAW}/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data"
GEOM_GCN = f"{RAW}/graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
GEOM_GCN_2022 = "https://github.com/bingzhewei/geom-gcn/raw/1124af1"
PPI = "https://data.dgl.ai/dataset/ppi.zip"

# The hash of the archive is not published; these are the git blob hashes of its members.
PPI_BLOBS = {
    "test_feats.npy": "007ffeffe490a05f3d560e4434558398e1dbc1dd",
    "test_graph.json": "6b78a646c24030fa136ec7964eea6abe003b9db1",
    "test_graph_id.npy": "08ce2a7353e397c65c83084d53feaac4979d029c",
    "test_labels.npy": "43d0b45144862ef437186c8183b1247dcbdab436",
    "train_feats.npy": "c3df4929f38f82f3d43bb57ceca1bb182f4ddc95",
    "train_graph.json": "5612b7255e92e2796b4f9cd9b6c803313d60c792",
    "train_graph_id.npy": "f71a82e1e8186119dcf4c80768a9c91a708791f2",
    "train_labels.npy": "92eadf5360f0fc0a48a3f96d79e4a4bd305bce7d",
    "valid_feats.npy": "a9e9b379a2f1f4a83f0f9869f5579aadd1edd380",
    "valid_graph.json": "62fe4f9ed39f35a658561a861e2ddcbf3acbbdba",
    "valid_graph_id.npy": "886ae156536a05fc843055f832185b008080267f",
    "valid_labels.npy": "64b58e8b2f866487ad6fc437ad129bc06b9634da",
}

CITATION = "the Planetoid repository is MIT; none is stated for the papers' data, research use"
UNSTATED = "none stated upstream; research use"
WEB = "CMU WebKB; prepared by Pei et al., Geom-GCN, ICLR 2020"
SHARES = "The splits named 0.6_0.2 are 48/32/20, and they are not stratified by class."
LONELY = "Class 1 has one node, which several splits do not train on."


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
    names = (geom_gcn.split_name(stem, i) for i in range(geom_gcn.SPLITS))
    return tuple(_file(f"geom-gcn/splits/{name}", GEOM_GCN, "geom-gcn") for name in names)


def _web_files(stem: str, folder: str = "geom-gcn", base: str = GEOM_GCN) -> tuple[File, ...]:
    names = (geom_gcn.NODES, geom_gcn.EDGES)
    return (
        *(_file(f"{folder}/new_data/{stem}/{name}", base, folder) for name in names),
        *_split_files(stem),
    )


def _neighbourhoods(stem: str) -> dict[str, File]:
    names = {geometry: geom_gcn.neighbourhood_name(stem, geometry) for geometry in geom_gcn.KINDS}
    folder = "geom-gcn/structural_neighborhood"
    return {
        geometry: _file(f"{folder}/{name}", GEOM_GCN, "geom-gcn")
        for geometry, name in names.items()
    }


def _public(stem: str, title: str, counts: Counts, *notes: str) -> Entry:
    return Entry(
        name=stem,
        title=f"{title}; public split, 20 labels per class",
        read=partial(planetoid.read_public, stem=stem),
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
        read=partial(planetoid.read_full, stem=stem),
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
        read=partial(geom_gcn.read_web, stem=stem, name=name),
        counts=counts,
        licence=UNSTATED,
        source=source,
        files=_web_files(stem, *corrected),
        notes=(*notes, SHARES),
        # the files refer to the nodes in their order of 2020
        neighbourhoods={} if corrected else _neighbourhoods(stem),
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
    Entry(
        name="ppi",
        title="24 graphs of proteins in human tissues, 121 labels each; whole graphs split 20/2/2",
        read=ppi.read,
        counts=Counts(56944, None, 50, 121),
        licence=UNSTATED,
        source="Zitnik & Leskovec 2017; split by Hamilton et al., GraphSAGE, NeurIPS 2017",
        files=tuple(
            File(f"ppi/{name}", PPI, f"git:{blob}", archived=True)
            for name, blob in PPI_BLOBS.items()
        ),
        notes=(
            "Features are used as shipped; upstream is believed to have standardised them.",
            "Table 1 of the paper says 818716 edges, the number of links in GraphSAGE's files.",
        ),
    ),
    Entry(
        name="ppi-like",
        title="a generated stand-in for ppi, of the same shape; needs no download",
        read=ppi_like.read,
        counts=Counts(56952, 797328, 50, 121),
        licence="none needed; generated",
        source="generated: communities, noisy features, 121 labels per node",
        notes=("Scores on it do not predict scores on ppi.",),
    ),
    Entry(
        name="digits",
        title="1797 handwritten digits, joined to their nearest neighbours; needs no download",
        read=digits.read,
        counts=Counts(1797, 9929, 64, 10),
        licence="CC BY 4.0",
        source="Alpaydin & Kaynak 1998 (UCI), test part, as shipped with scikit-learn",
    ),
    Entry(
        name="csbm",
        title="contextual stochastic block model, generated from its parameters",
        read=csbm.read,
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
    raise DataError(
        f"no dataset {name!r}; {did_you_mean(name, CATALOG)}known: {', '.join(CATALOG)}, "
        "or the path of a folder with nodes.csv"
    )
