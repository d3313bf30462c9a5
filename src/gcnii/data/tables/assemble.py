"""From a table of nodes and a table of edges to a Graph, with all that is wrong said at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gcnii.columns.table import Texts
from gcnii.data.arrays import merged, merged_weighted
from gcnii.data.tables.ids import Ids
from gcnii.data.tables.links import Links, read_links
from gcnii.data.tables.nodes import Nodes
from gcnii.data.tables.rows import Rows
from gcnii.errors import DataError, GraphError
from gcnii.graph import Graph


def assemble(nodes: Nodes, edges: Rows, name: str) -> Graph:
    """The graph of two tables; DataError with all problems if there is any."""
    reading, problems = nodes.reading, nodes.problems
    nodes.note_wrong_names(edges.header)
    texts, labels = nodes.ids(), nodes.labels()
    table, columns = nodes.features()
    links = read_links(edges, Ids(texts), reading, problems)
    splits = nodes.splits(labels)
    problems.refuse()
    nodes.say_what_is_ignored(columns)
    X, features = columns.encode(table, nodes.rows.name)
    ends, weights = _merged(links, reading.directed, texts)
    graph = Graph(
        X=X,
        features=features,
        edges=ends,
        weights=weights,
        y=labels.y,
        splits=splits,
        directed=reading.directed,
        name=name,
        nodes=tuple(texts),
        classes=labels.classes,
    )
    return graph._with_table(table, columns)


def _merged(
    links: Links, directed: bool, texts: Texts
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    if links.weights is None:
        return merged(links.edges, directed=directed), None
    try:
        return merged_weighted(links.edges, links.weights, directed=directed, nodes=list(texts))
    except GraphError as error:
        raise DataError(str(error)) from None
