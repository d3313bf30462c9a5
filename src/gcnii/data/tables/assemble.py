"""From a table of nodes and a table of edges to a Graph, with all that is wrong said at once."""

from __future__ import annotations

from gcnii.columns.table import Texts
from gcnii.data.tables.ids import Ids
from gcnii.data.tables.links import NONE, Links, read_links
from gcnii.data.tables.nodes import Nodes
from gcnii.data.tables.reading import Reading
from gcnii.data.tables.rows import Rows
from gcnii.errors import DataError, GraphError, Problems
from gcnii.graph import Graph
from gcnii.graph.arrays import freeze, merged
from gcnii.graph.weights import merged_weighted


def assemble(nodes: Nodes, edges: Rows, name: str) -> Graph:
    """The graph of two tables; DataError with all problems if there is any."""
    reading, problems = nodes.reading, nodes.problems
    nodes.note_wrong_names(edges.header)
    texts, labels = nodes.ids(), nodes.labels()
    # Before the features are read: both together would be the most memory that is needed.
    links = NONE if texts is None else _links(edges, texts, reading, problems)
    table, columns = nodes.features()
    splits = nodes.splits(labels)
    problems.refuse()
    nodes.say_what_is_ignored(columns)
    X, features = columns.encode(table, nodes.rows.name)
    graph = Graph(
        X=freeze(X),
        features=features,
        edges=links.edges,
        weights=links.weights,
        y=labels.y,
        splits=splits,
        directed=reading.directed,
        name=name,
        nodes=tuple(() if texts is None else texts),
        classes=labels.classes,
    )
    return graph._with_table(columns.sharing(table, graph.X), columns)


def _links(rows: Rows, texts: Texts, reading: Reading, problems: Problems) -> Links:
    """The edges without duplicates, as the graph keeps them."""
    edges, weights = read_links(rows, Ids(texts), reading, problems)
    if weights is None:
        return Links(merged(edges, directed=reading.directed), None)
    try:
        return Links(*merged_weighted(edges, weights, directed=reading.directed, nodes=list(texts)))
    except GraphError as error:
        raise DataError(str(error)) from None
