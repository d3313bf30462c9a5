"""from_networkx: a Graph of a networkx graph."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gcnii.data.converters.records import Records
from gcnii.data.tables.reading import Names, Reading
from gcnii.errors import GraphError
from gcnii.graph import Features, Graph

if TYPE_CHECKING:
    import networkx as nx


def from_networkx(
    G: nx.Graph,
    *,
    label: Names = "label",
    split: str = "split",
    weight: str | None = "weight",
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
    name: str = "",
) -> Graph:
    """Make a graph from a networkx Graph, DiGraph, MultiGraph or MultiDiGraph.

    Parameters
    ----------
    G : networkx graph
        The graph.
    label : str or list of str
        The node attribute with the labels, if any.
    split : str
        The node attribute with train, val or test, if any.
    weight : str or None
        The edge attribute with the weights, which either all edges have or none; None ignores
        weights.
    duplicates : str
        What the weights of parallel edges become: add, mean, max or first.  Default: they are added
        up, and edges without weights count once; with add, their number is the weight.
    X : (n, d) array or sparse matrix, optional
        Features in the order of G.nodes; default: the other attributes of the nodes in the order of
        their names, or the identity matrix if there are none.
    drop : str or list of str
        Attributes to ignore.
    numeric, categorical, date, text, unknown, multilabel, seed, name
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
    if isinstance(G, type) or not (hasattr(G, "is_multigraph") and hasattr(G, "nodes")):
        raise GraphError(f"from_networkx takes a networkx graph, got {type(G).__name__}")
    reading = Reading(
        label=label,
        split=split,
        weight="" if weight in (None, "weight") else str(weight),
        duplicates=duplicates,
        drop=drop,
        numeric=numeric,
        categorical=categorical,
        date=date,
        text=text,
        unknown=unknown,
        multilabel=multilabel,
        seed=seed,
    )
    graph = _records(G, weight is not None).graph(name or G.name or "graph", reading, X=X)
    return graph._with_origin("", loaded_with=reading.given)


def _records(G: nx.Graph, weighted: bool) -> Records:
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
    return Records(
        names=names,
        nodes=[_texts_of(attributes) for _, attributes in G.nodes(data=True)],
        edges=[(place[u], place[v]) for u, v, _ in edges],
        links=[_texts_of(attributes) if weighted else {} for *_, attributes in edges],
        directed=G.is_directed(),
    )


def _texts_of(attributes: dict[object, object]) -> dict[str, object]:
    """Keys as text; two that are written alike, such as 1 and "1", are refused."""
    found = {str(key): value for key, value in attributes.items()}
    if len(found) < len(attributes):
        raise GraphError(f"attributes must have different names as text, got {list(attributes)}")
    return found
