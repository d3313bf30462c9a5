"""from_networkx; and Records, which GraphML and GML files are read into as well.

Records are nodes and edges with attributes, as graph libraries and their formats have them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gcnii.data.tables.assemble import (
    WEIGHT,
    EdgeList,
    Nodes,
    assemble,
    each_once,
    say_types,
)
from gcnii.data.tables.frame import FrameRows
from gcnii.data.tables.reading import READING, Names, Reading, refuse_empty_cells
from gcnii.errors import DataError, GraphError, Problems, is_one_of, notice
from gcnii.graph import Features, Graph
from gcnii.graph.columns import Columns, flag, is_number
from gcnii.graph.types import cut_column, types_by_cuts, types_by_name
from gcnii.graph.weights import check_weights

if TYPE_CHECKING:
    import networkx as nx


Attributes: TypeAlias = Mapping[str, object]
Values: TypeAlias = dict[str, list[object]]  # attribute → its value in each row, None if missing
NESTED = (list, tuple, dict, set, np.ndarray)
PARTS = re.compile(r"(\D*)(\d{0,18})", re.ASCII)


@dataclass(frozen=True)
class Records:
    """The nodes and the edges of a graph, each with attributes that not all need to have.

    names     of the nodes
    nodes     the attributes of each node; None is missing
    edges     the two ends of each edge, as numbers of nodes
    links     the attributes of each edge
    directed  whether edges are one-way
    of_nodes, of_links   the values of attributes where a node or an edge does not have them
    """

    names: Sequence[str]
    nodes: Sequence[Attributes]
    edges: Sequence[tuple[int, int]]
    links: Sequence[Attributes]
    directed: bool
    of_nodes: Attributes = field(default_factory=dict)
    of_links: Attributes = field(default_factory=dict)

    def graph(
        self,
        name: str,
        reading: Reading,
        *,
        X: Features | None = None,
        columns: Columns | None = None,
    ) -> Graph:
        """The graph; `reading` says which attributes are what.

        X        the features, instead of the attributes; the identity matrix if there are neither
        columns  what the attributes are, if that was learnt on another graph
        """
        reading = replace(reading, directed=self.directed)
        links, own = self._links(reading), _names(self.nodes, self.of_nodes)
        if reading.time_edges:
            raise DataError("times of edges are read from tables alone; see from_frames")
        named = (reading.split, reading.time, *reading.labels, *reading.target)
        roles = {role.lower() for role in named}
        known = [key for key in own if key.lower() in roles]
        if X is None and set(own) - {*known, *reading.drop}:
            refuse_empty_cells("the nodes", len(self.nodes), len(own), sum(map(len, self.nodes)))
            attributes = self._by_name(own)
            _refuse_nested(attributes, reading.drop)
            return self._of_attributes(name, attributes, links, reading, columns)
        attributes = self._by_name(known)
        _refuse_nested(attributes, ())
        if X is None:
            notice(
                "the nodes have no attributes beside their labels, so each is made a feature of "
                "its own: a model of such a graph cannot label new nodes"
            )
        elif np.shape(X)[:1] != (len(self.names),):
            raise DataError(
                f"X must have one row per node, {len(self.names)} in all, got shape {np.shape(X)}"
            )
        return self._with_features(name, X, attributes, links, reading)

    def _by_name(self, names: Sequence[str]) -> Values:
        return {
            name: [row.get(name, default) for row in self.nodes]
            for name, default in ((name, self.of_nodes.get(name)) for name in names)
        }

    def _of_attributes(
        self,
        name: str,
        attributes: Values,
        links: EdgeList,
        reading: Reading,
        known: Columns | None,
    ) -> Graph:
        """With the attributes as features."""
        rows = self._rows(attributes)
        elsewhere = set(_names(self.links, self.of_links)) - set(attributes)
        drop = tuple(name for name in reading.drop if name not in elsewhere)
        own = replace(reading, id=rows.header[0], drop=drop)
        return assemble(Nodes(rows, own, Problems(), known=known), links, name)

    def _with_features(
        self, name: str, X: Features | None, known: Values, links: EdgeList, reading: Reading
    ) -> Graph:
        """With these features, or one for each node; of attributes, labels and splits are used."""
        nodes = Nodes(self._rows(known), reading, Problems())
        labels, (times, dated) = nodes.labels(), nodes.times()
        splits = nodes.splits(labels, times, dated=dated)
        nodes.problems.refuse()
        return Graph(
            X=sp.eye_array(len(self.names), format="csr", dtype=np.float32) if X is None else X,
            **each_once(links, reading, self.names)._asdict(),
            **labels._asdict(),
            splits=splits,
            times=times,
            dated=dated,
            directed=self.directed,
            name=name,
            nodes=tuple(self.names),
            features=tuple(self.names) if X is None else None,
        )

    def _rows(self, attributes: Values) -> FrameRows:
        """The names, in the first column, and the attributes."""
        import pandas as pd

        frame = pd.DataFrame({_unused("id", attributes): list(self.names), **attributes})
        return FrameRows(frame, "nodes", lambda i: f"node {self.names[i]!r}")

    def _links(self, reading: Reading) -> EdgeList:
        """The edges as they are listed; weights that are all 1 are none."""
        wanted = reading.weight or WEIGHT
        known = _names(self.links, self.of_links)
        if reading.weight and reading.weight not in known:
            raise DataError(
                f"no edge has the attribute {wanted!r}; edges have {', '.join(known) or 'none'}"
            )
        used = wanted in known and wanted not in reading.drop
        types = self._types(reading, known)
        taken = {*reading.drop, *([wanted] if used else [])}
        if types:  # of a column, or of one that is cut
            taken |= {reading.edge_type, reading.edge_type.rpartition("=")[0]}
        if unused := [key for key in known if key not in taken]:
            notice(f"the edge attributes {', '.join(unused)} are not used")
        edges = np.array(self.edges, np.int64).reshape(-1, 2).T
        parallel = len(self.edges) - len(set(self.edges))
        kinds, called = types or (None, None)
        if not used:
            if parallel and not types and not reading.duplicates:
                notice(
                    f"{parallel} edges are parallel to others and count once; "
                    "duplicates='add' (--duplicates add) makes their number the weight"
                )
            return EdgeList(edges, None, None, kinds, called)
        weights = check_weights(self._numbers(wanted), edges, self.names)
        count = parallel or (weights != 1).any()
        return EdgeList(edges, weights if count else None, None, kinds, called)

    def _types(
        self, reading: Reading, known: Sequence[str]
    ) -> tuple[NDArray[np.int64], tuple[str, ...]] | None:
        """The types of the edges and their names; None if they have none."""
        wanted, cuts = reading.edge_type, tuple[float, ...]()
        if wanted not in known and "=" in wanted:
            wanted, cuts = cut_column(wanted)
        if wanted not in known and wanted not in ("", Reading.edge_type):
            raise DataError(
                f"no edge has the attribute {wanted!r}; edges have {', '.join(known) or 'none'}"
            )
        if wanted not in known or wanted in reading.drop:
            return None
        values = self._of_links(wanted, "leave it out: edge_type='' (--edge-type '')")
        if cuts:
            types, names = types_by_cuts(self._numbers(wanted), wanted, cuts)
        else:
            types, names = types_by_name(list(map(str, values)))
        say_types("edges", wanted, names, np.bincount(types).tolist())
        return types, names

    def _of_links(self, wanted: str, otherwise: str) -> list[object]:
        """The attribute of each edge; DataError if one has none."""
        values = [link.get(wanted, self.of_links.get(wanted)) for link in self.links]
        if lacking := values.count(None):
            raise DataError(
                f"{lacking} of {len(values)} edges have no {wanted!r}, first the edge from "
                f"{self._ends(values.index(None))}; give every edge one, or {otherwise}"
            )
        return values

    def _numbers(self, wanted: str) -> NDArray[np.float64]:
        values = self._of_links(wanted, "none")
        for i, value in enumerate(values):
            if not _is_number(value):
                raise DataError(
                    f"the {wanted} of the edge from {self._ends(i)} is {value!r}; "
                    "it must be a number"
                )
        return np.array([float(value) for value in values])  # type: ignore[arg-type]

    def _ends(self, i: int) -> str:
        u, v = self.edges[i]
        return f"{self.names[u]!r} to {self.names[v]!r}"


def _is_number(value: Any) -> bool:
    """Whether it is a number, or a text as a table has numbers: float() takes 1_000 as well."""
    if isinstance(value, str):
        return is_number(value.strip())
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(value, bytes | bytearray)


def _names(rows: Sequence[Attributes], defaults: Attributes) -> list[str]:
    """All attributes by letters, and x2 before x10: in one order, whichever node comes first."""
    own = {key for row in rows for key in row} | set(defaults)
    return sorted(own, key=lambda name: (_parts(name), name))


def _parts(name: str) -> list[tuple[str, int]]:
    """Letters and the number after them, in turn; -1 where there is none."""
    return [(text, int(digits or -1)) for text, digits in PARTS.findall(name)]


def _unused(name: str, columns: Values) -> str:
    """The name, or one like it that no column has."""
    taken = {column.lower() for column in columns}
    while name in taken:
        name = f"_{name}"
    return name


def _refuse_nested(columns: Values, drop: Sequence[str]) -> None:
    for name, column in columns.items():
        odd = next((kind for kind in set(map(type, column)) if issubclass(kind, NESTED)), None)
        if odd is not None and name not in drop:
            raise DataError(
                f"the node attribute {name!r} holds values of type {odd.__name__}, but a "
                f"feature is one number or text; leave it out: {flag('drop', name)}"
            )


def from_networkx(
    G: nx.Graph,
    *,
    label: Names = "label",
    target: Names = (),
    split: str = "split",
    weight: str | None = "weight",
    edge_type: str = "type",
    duplicates: str = "",
    X: Features | None = None,
    drop: Names = (),
    numeric: Names = (),
    categorical: Names = (),
    date: Names = (),
    text: Names = (),
    unknown: str = "",
    multilabel: bool = False,
    seed: int = 0,
    time: str = "",
    time_shares: Sequence[float] | str = (),
    time_cuts: Names = (),
    name: str = "",
) -> Graph:
    """Make a graph from a networkx Graph, DiGraph, MultiGraph or MultiDiGraph.

    Parameters
    ----------
    G : networkx graph
        The graph.
    label : str or list of str
        The node attribute with the labels, if any.
    target : str or list of str
        The node attribute with numbers to predict, in the place of labels.
    split : str
        The node attribute with train, val or test, if any.
    weight : str or None
        The edge attribute with the weights, which either all edges have or none; None ignores
        weights.
    edge_type : str
        The edge attribute with the types, which either all edges have or none; "": no types.
        Parallel edges of several types are kept apart.
    duplicates : str
        What the weights of parallel edges become: add, mean, max or first.  Default: they are added
        up, and edges without weights count once; with add, their number is the weight.
    X : (n, d) array or sparse matrix, optional
        Features in the order of G.nodes; default: the other attributes of the nodes in the order of
        their names, or the identity matrix if there are none.
    drop : str or list of str
        Attributes to ignore.
    numeric, categorical, date, text, unknown, multilabel, seed, time, time_shares, time_cuts, name
        As in `from_frames`.

    Returns
    -------
    Graph

    Examples
    --------
    >>> import gcnii
    >>> import networkx as nx
    >>> import numpy as np
    >>> G = nx.karate_club_graph()
    >>> gcnii.from_networkx(G, label="club", weight=None, X=np.eye(34))
    Graph(Zachary's Karate Club: 34 nodes, 78 undirected edges, 34 features, 2 classes)
    """
    given = locals()
    if isinstance(G, type) or not (hasattr(G, "is_multigraph") and hasattr(G, "nodes")):
        raise GraphError(f"from_networkx takes a networkx graph, got {type(G).__name__}")
    given["weight"] = "" if weight is None or is_one_of(weight, ["weight"]) else str(weight)
    reading = Reading(**{option: given[option] for option in READING if option in given})
    # Without weights, types alone are of use: of a column, or of one that is cut.
    types = {reading.edge_type, reading.edge_type.rpartition("=")[0]}
    records = _records(G, types if weight is None else None)
    graph = records.graph(name or G.name or "graph", reading, X=X)
    return graph._with_origin("", loaded_with=reading.given)


def _records(G: nx.Graph, alone: Container[str] | None) -> Records:
    """The graph's; of the attributes of its edges, these alone, if some are named."""
    place = {node: i for i, node in enumerate(G)}
    names = [str(node) for node in place]
    if not names:
        raise GraphError("G has no nodes; a graph needs at least one")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise GraphError(
            f"two nodes of G are called {name!r} when written as text; "
            "rename one with networkx.relabel_nodes"
        )
    edges = list(G.edges(data=True))
    links = [_texts_of(attributes) for *_, attributes in edges]
    return Records(
        names=names,
        nodes=[_texts_of(attributes) for _, attributes in G.nodes(data=True)],
        edges=[(place[u], place[v]) for u, v, _ in edges],
        links=[
            link if alone is None else {name: one for name, one in link.items() if name in alone}
            for link in links
        ],
        directed=G.is_directed(),
    )


def _texts_of(attributes: dict[object, object]) -> dict[str, object]:
    """Keys as text; two that are written alike, such as 1 and "1", are refused."""
    found = {str(key): value for key, value in attributes.items()}
    if len(found) < len(attributes):
        raise GraphError(f"attributes must have different names as text, got {list(attributes)}")
    return found
